"""A helper of a compilation, in a process of its own: `python -m igniter.compiler.compile_worker`, or a fork.

Reads pickled requests and answers them; as a program from standard input and on the original standard output. The first
request has the options, each further one the text of a kernel. The kernel is compiled and assembled into the cache; an
answer only reports the end.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
from pathlib import Path
from typing import IO

from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from igniter.compiler.compilation import Compilation, CompileOptions
from igniter.context import IgniterContext
from igniter.dialects.loop import KernelOp
from igniter.remarks import Remarks
from igniter.runtime.cache import Cache


def main() -> None:
    requests: IO[bytes] = sys.stdin.buffer
    answers: IO[bytes] = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(requests, answers)


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Compiles the kernels in `requests` until their end."""
    from igniter.compiler.driver import assemble, compile_kernel

    options: CompileOptions
    place: tuple[Path, int]
    options, place, remarks = pickle.load(requests)
    ctx = IgniterContext(remarks=Remarks(enabled=remarks))
    c = Compilation(ModuleOp([]), options, ctx, Cache(*place), strict=True)
    _answer(answers)
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            text: str = pickle.load(requests)
            # After a failure the parent finds nothing in the cache, compiles the kernel itself, and reports the error.
            with contextlib.suppress(Exception):
                kernel = next(op for op in Parser(ctx, text).parse_module().ops if isinstance(op, KernelOp))
                assemble(c, compile_kernel(c, kernel, text))
            _answer(answers)


def _answer(answers: IO[bytes]) -> None:
    pickle.dump("done", answers)
    answers.flush()


if __name__ == "__main__":
    main()
