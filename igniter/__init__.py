"""Igniter: a multi-level IR compiler for ONNX.

`load`, `parse`, `compile`, `bench`, `experiment`, `jit`, `shape_engine`, `Module`, `Schedule`, `CompileOptions`,
`Artifact`, `Function`, `Generator`, `VerificationFailed` and `IgniterError` are the public API. Importing the package
imports no module that does work: each name is imported at its first use. Modules that moved are found by their former
names, too (`igniter.moved`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from igniter._version import __version__
from igniter.moved import install

if TYPE_CHECKING:
    from igniter.api import compile, shape_engine
    from igniter.compiler.artifact import Artifact, VerificationFailed
    from igniter.compiler.compilation import CompileOptions
    from igniter.errors import IgniterError
    from igniter.functions import Function, jit
    from igniter.module import Module, load, parse
    from igniter.toolbox.bench.bench import bench
    from igniter.toolbox.experiment.experiment import experiment
    from igniter.toolbox.generate.generator import Generator
    from igniter.toolbox.kernel.schedules import Schedule

__all__ = [
    "Artifact",
    "CompileOptions",
    "Function",
    "Generator",
    "IgniterError",
    "Module",
    "Schedule",
    "VerificationFailed",
    "__version__",
    "bench",
    "compile",
    "experiment",
    "jit",
    "load",
    "parse",
    "shape_engine",
]

_WHERE = {
    "Artifact": "igniter.compiler.artifact",
    "CompileOptions": "igniter.compiler.compilation",
    "Function": "igniter.functions",
    "Generator": "igniter.toolbox.generate.generator",
    "IgniterError": "igniter.errors",
    "Module": "igniter.module",
    "Schedule": "igniter.toolbox.kernel.schedules",
    "VerificationFailed": "igniter.compiler.artifact",
    "bench": "igniter.toolbox.bench.bench",
    "compile": "igniter.api",
    "experiment": "igniter.toolbox.experiment.experiment",
    "jit": "igniter.functions",
    "load": "igniter.module",
    "parse": "igniter.module",
    "shape_engine": "igniter.api",
}

install()
# The library prints nothing: an application that configures `logging` sees the loggers `igniter.*`.
logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'igniter' has no attribute '{name}'")
    from importlib import import_module

    from igniter.environment import require_lock

    if name != "IgniterError":
        require_lock()
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
