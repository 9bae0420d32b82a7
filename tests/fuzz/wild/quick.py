"""Machine code in a fraction of the time: LLVM neither optimises it nor chooses instructions well.

What is compiled is the same LLVM IR, so Igniter's own passes are tested as before. A graph of a few nodes takes a third
of the time.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from unittest import mock

import llvmlite.binding as llvm

from igniter.backends.c_runtime.units import link_needed
from igniter.backends.cpu import codegen
from igniter.backends.cpu.target import Target


@contextmanager
def unoptimised() -> Generator[None]:
    """Until it ends, objects are compiled without optimisation. Nothing may be cached meanwhile: caches do not know."""
    with mock.patch.object(codegen, "compile_object", _compile):
        yield


def _compile(ir: str, target: Target) -> bytes:
    context = llvm.create_context()
    module = codegen.parse(ir, context)
    link_needed(module, context, target.arch)
    return bytes(_machine(target).emit_object(module))


@lru_cache(maxsize=16)
def _machine(target: Target) -> Any:
    codegen.parse("")  # LLVM knows its targets from here on
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=0, reloc="pic", codemodel="default"
    )
