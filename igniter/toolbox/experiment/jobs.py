"""Work in processes of its own: `python -m igniter.toolbox.experiment.jobs MODULE:FUNCTION RESULT < ARGUMENTS`.

A function gets its arguments by name from JSON and returns JSON. A job that raises, crashes or hangs is an
`IgniterError` for whoever asked, so a variant that cannot be built costs its own rows. A variant with plug-ins has an
environment of its own (`plugins.py`).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from igniter.errors import IgniterError
from igniter.memory import collect_rarely
from igniter.registry import load
from igniter.runtime.files import write_whole

LAST_LINES = 3
"""The lines of standard error in the message on a crash."""


def run_job(
    place: str, arguments: Mapping[str, Any], *, limit: float, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Runs `MODULE:FUNCTION` on arguments by name, and returns its result. Raises `IgniterError` if it fails, crashes,
    or takes longer than `limit` seconds."""
    with tempfile.TemporaryDirectory(prefix="igniter-job-") as folder:
        result = Path(folder) / "result.json"
        command = [sys.executable, "-m", "igniter.toolbox.experiment.jobs", place, str(result)]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            text=True,
            # A compilation has helper processes: all of them end together.
            start_new_session=True,
        )
        try:
            _, said = process.communicate(json.dumps(arguments), timeout=limit)
        except subprocess.TimeoutExpired:
            raise IgniterError(f"it was not done in {limit:g} seconds") from None
        finally:
            _end(process)
        if not result.is_file():
            raise IgniterError(_ending(process.returncode, said))
        answer = json.loads(result.read_text(encoding="utf-8"))
        if "error" in answer:
            raise IgniterError(answer["error"])
        return cast("dict[str, Any]", answer["result"])


def _end(process: subprocess.Popen[str]) -> None:
    """Ends a job and its helpers."""
    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _ending(status: int, said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()][-LAST_LINES:]
    how = f"status {status}"
    with suppress(ValueError):
        how = signal.Signals(-status).name if status < 0 else how
    return f"its process ended with {how}" + (f": {'; '.join(lines)}" if lines else "")


def main() -> None:
    """Runs the job of the command line."""
    place, result = sys.argv[1:]
    collect_rarely()
    answer: dict[str, Any]
    try:
        answer = {"result": load(place)(**json.load(sys.stdin))}
    except IgniterError as error:
        answer = {"error": error.message}
    except Exception as error:  # the parent process raises any error
        answer = {"error": f"{type(error).__name__}: {error}"}
    write_whole(result, json.dumps(answer, default=str))


if __name__ == "__main__":
    main()
