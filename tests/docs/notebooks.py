"""Runs a notebook without Jupyter: `python -m tests.docs.notebooks PAGE.ipynb` prints its cells and what they print.

The cells run one after the other in one namespace, in a process of its own. Of what Jupyter adds to Python, a line
that begins with `!` is a command of the shell, which has to succeed, and `%%writefile FILE` writes its cell to a file;
a cell with any other magic is an error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .transcripts import ROOT

FOLDER = ROOT / "docs" / "notebooks"


def cells(path: Path) -> list[dict[str, Any]]:
    """The cells of a notebook."""
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def code_of(path: Path) -> Iterator[str]:
    """The code of a notebook, cell by cell, as Python that needs no Jupyter."""
    for cell in cells(path):
        if cell["cell_type"] == "code":
            yield plain("".join(cell["source"]))


def plain(source: str) -> str:
    """A cell as Python."""
    first, _, rest = source.partition("\n")
    if first.startswith("%%writefile "):
        return f"__import__('pathlib').Path({first.split(maxsplit=1)[1]!r}).write_text({rest + chr(10)!r})"
    lines = [f"_shell({line[1:]!r})" if line.startswith("!") else line for line in source.split("\n")]
    magic = [line for line in lines if line.startswith("%")]
    if magic:
        raise ValueError(f"{magic[0]} is a magic of Jupyter that only Jupyter runs")
    return "\n".join(lines)


def shell(command: str) -> None:
    """Runs a `!` command, except that a command that fails is an error."""
    sys.stdout.flush()
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], stdout=sys.stdout, stderr=subprocess.STDOUT)
    if done.returncode:
        raise SystemExit(f"`{command}` ended with status {done.returncode}")


def run(path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a notebook in a process of its own; temporary folders that it makes are inside of `folder`."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(folder),
        "IGNITER_CACHE_DIR": str(folder / "cache"),
        "COLUMNS": "120",
        "NO_COLOR": "1",
    }
    return subprocess.run(
        [sys.executable, "-m", "tests.docs.notebooks", str(path)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def main() -> None:
    namespace: dict[str, Any] = {"__name__": "__main__", "_shell": shell}
    path = Path(sys.argv[1]).resolve()
    if "TMPDIR" not in os.environ:
        os.environ["TMPDIR"] = tempfile.gettempdir()
    for number, source in enumerate(code_of(path), 1):
        print(f"--- cell {number}", flush=True)
        exec(compile(source, f"{path.name}, cell {number}", "exec"), namespace)
        sys.stdout.flush()
    print("--- done")


if __name__ == "__main__":
    main()
