"""Runs `igniter` and `igniter-opt` in forks of a process that has imported them: a start takes a second, a fork none.

    with Warm() as tools:
        out, errors = tools.run(["igniter", "doctor"], folder, environment)

The server imports, and does nothing else: no thread (so no ONNX Runtime), no look at installed packages. So a fork is
as a new process is, with the environment, the folder and the streams of its request.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

MODULES = (
    "archspec.cpu",
    "igniter.analysis.fusion.default_author",
    "igniter.api",
    "igniter.compiler.driver",
    "igniter.schedules.default_author",
    "igniter.toolbox.compile.levels",
    "igniter.tools.igniter_opt",
    "igniter.tools.main",
    "llvmlite.binding",
    "numpy.ma",
    "numpy.random",
    "onnx",
    "rich.console",
    "rich.table",
)
WHOLE = (
    "igniter.backends.cpu",
    "igniter.backends.ort",
    "igniter.dialects.onnx.ops",
    "igniter.transforms.onnx.recompose",
    "igniter.verification",
)
"""Packages of which every module is imported."""


class Warm:
    """The server, which ends with the `with` block."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def run(self, command: Sequence[str], folder: Path, environment: Mapping[str, str], apart: bool) -> tuple[str, str]:
        """Standard output and standard error of a command; with both in the first one unless `apart`."""
        with tempfile.TemporaryDirectory() as where:
            names = [Path(where) / name for name in ("out", "errors")[: 1 + apart]]
            request = {"command": command, "folder": str(folder), "environment": dict(environment)}
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.write(json.dumps({**request, "streams": list(map(str, names))}) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
            assert answer, f"the server ended at {command}"
            found = [name.read_text(encoding="utf-8") for name in names]
        return found[0], found[1] if apart else ""


def serve() -> None:
    """Forks for each request on standard input, and answers with the exit status."""
    from igniter import registry

    packages = [importlib.import_module(name) for name in WHOLE]
    modules = [m.name for p in packages for m in pkgutil.iter_modules(p.__path__, f"{p.__name__}.")]
    for where in (*MODULES, *modules, *registry.PASSES.values(), *registry.DIALECTS.values()):
        importlib.import_module(where.partition(":")[0])
    assert "onnxruntime" not in sys.modules, "its threads would not be in a fork"
    assert not registry.external.cache_info().currsize, "packages of a request would not be looked for"
    for line in sys.stdin:
        child = os.fork()
        if not child:
            become(**json.loads(line))
            return
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def become(command: Sequence[str], folder: str, environment: Mapping[str, str], streams: Sequence[str]) -> None:
    """Runs the command in this process."""
    files = [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) for path in streams]
    for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), files[0], files[-1])):
        os.dup2(file, number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[:0] = environment["PYTHONPATH"].split(os.pathsep)
    importlib.invalidate_caches()
    sys.argv = list(command)
    # As of a script: the help names the program by it.
    sys.modules["__main__"].__package__ = None
    module = {"igniter": "igniter.tools.main", "igniter-opt": "igniter.tools.igniter_opt"}[command[0]]
    importlib.import_module(module).main()


if __name__ == "__main__":
    serve()
