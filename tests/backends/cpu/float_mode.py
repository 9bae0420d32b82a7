"""The mode of a thread in which subnormal numbers are 0, set from Python."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import llvmlite.binding as llvm

X86 = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define i64 @get() {
  %p = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %p)
  %v = load i32, ptr %p
  %w = zext i32 %v to i64
  ret i64 %w
}
define void @set(i64 %v) {
  %p = alloca i32
  %w = trunc i64 %v to i32
  store i32 %w, ptr %p
  call void @llvm.x86.sse.ldmxcsr(ptr %p)
  ret void
}
"""
ARM = """
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
define i64 @get() {
  %v = call i64 @llvm.aarch64.get.fpcr()
  ret i64 %v
}
define void @set(i64 %v) {
  call void @llvm.aarch64.set.fpcr(i64 %v)
  ret void
}
"""
ON_X86 = platform.machine() == "x86_64"
FLUSH_BITS = 0x8040 if ON_X86 else 1 << 24


@lru_cache(maxsize=1)
def _functions() -> tuple[Any, Any, Any]:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(X86 if ON_X86 else ARM)
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    get = ctypes.CFUNCTYPE(ctypes.c_uint64)(engine.get_function_address("get"))
    put = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(engine.get_function_address("set"))
    return engine, get, put


def float_mode() -> int:
    """Returns the mode of this thread, without the flags of exceptions."""
    return int(_functions()[1]()) & ~0x3F


@contextmanager
def flushing() -> Generator[None]:
    """Makes subnormal numbers 0 on this thread."""
    _, get, put = _functions()
    before = get()
    put(before | FLUSH_BITS)
    try:
        yield
    finally:
        put(before)
