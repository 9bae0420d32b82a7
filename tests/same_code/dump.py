"""Writes the code that one revision emits: `python dump.py REVISION-FOLDER PLAN OUT`, with that revision on the path.

The file is a program of its own. It runs the `igniter-opt` of another revision, so it imports nothing of this one.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import traceback
from pathlib import Path

ADDRESS = re.compile(r"(?<= at )0x[0-9a-f]+")


def main() -> None:
    tree, plan, out = map(Path, sys.argv[1:4])
    items = json.loads(plan.read_text())
    out.mkdir(parents=True, exist_ok=True)
    os.chdir(tree)
    for item in items:
        target = out / item["name"]
        if target.exists():
            continue
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        temporary.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(_answer(item["args"], Path(item["folder"])))
        temporary.rename(target)


def _answer(args: list[str], folder: Path) -> str:
    """The output of `igniter-opt` on both streams, and its status."""
    from igniter.tools.igniter_opt import run

    os.chdir(folder)
    stdout, stderr = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            status: object = run(args, io.BytesIO(), stdout, stderr)
    except SystemExit as error:
        status = error.code
    except Exception:
        status = traceback.format_exc(limit=0)
    # Objects without a printed form of their own have their address in their text.
    return ADDRESS.sub("0x", f"{stdout.getvalue()}\n== errors\n{stderr.getvalue()}\n== status {status}\n")


if __name__ == "__main__":
    main()
