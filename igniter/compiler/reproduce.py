"""A compilation that fails leaves a reproducer: it is repeated with a recorder, up to the failure.

A compilation copies no IR as long as it succeeds. If a pass or the emission crashes, the same compilation runs once
more from the original, with a copy of the IR before every pass (`igniter.reproducers`); finished kernels come from the
cache. The file is in the folder `reproducers` of the cache. The environment variable `IGNITER_REPRODUCERS` names
another folder, or is `off`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igniter.dialects.onnx import building
from igniter.errors import IgniterError, is_crash, reproducer_of
from igniter.reproducers import Recorder, name_reproducer
from igniter.runtime.cache import default_folder

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from igniter.compiler.compilation import Compilation

VARIABLE = "IGNITER_REPRODUCERS"


def reproducer_folder() -> Path | None:
    """Returns the folder for reproducers of compilations; `None` if the environment turns them off."""
    said = os.environ.get(VARIABLE, "")
    if said == "off":
        return None
    return Path(said) if said else default_folder() / "reproducers"


def kernel_recorder() -> Recorder | None:
    """Returns the recorder of a compilation: it repeats kernels that crash, and copies nothing before a failure."""
    try:
        folder = reproducer_folder()
    except IgniterError:  # There is no folder for a cache either.
        return None
    return None if folder is None else Recorder(folder=str(folder), eager=False)


@contextmanager
def leaving_reproducer(c: Compilation, original: ModuleOp, lower: Callable[[Compilation], Any]) -> Generator[None]:
    """Gives a crash in the block a reproducer: repeats `lower` on the compilation `c`, from `original`."""
    try:
        yield
    except Exception as error:  # a crash leaves a reproducer; raised again
        if is_crash(error) and not reproducer_of(error):
            name_reproducer(error, _repeated(c, original, lower))
        raise


def _repeated(c: Compilation, original: ModuleOp, lower: Callable[[Compilation], Any]) -> str:
    """Returns the path of the reproducer; "" if the second run does not fail or the file cannot be written."""
    recorder = kernel_recorder()
    if recorder is None:
        return ""
    try:
        lower(again_from(c, original, replace(recorder, eager=True)))
    except Exception as error:  # the same failure is expected
        return reproducer_of(error)
    return ""


def again_from(c: Compilation, original: ModuleOp, recorder: Recorder | None) -> Compilation:
    """Returns a compilation with the same settings at its start, with a recorder."""
    ctx = c.ctx.quiet()
    ctx.recorder = recorder
    return replace(
        c,
        module=building.clone(original),
        ctx=ctx,
        kernels=[],
        programs=[],
        makers=[],
        steps=[],
        nodes_before=0,
        seconds={},
        peak_memory={},
        progress=_quiet,
        isolation=type(c.isolation)(),
    )


def _quiet(stage: str) -> None:
    del stage
