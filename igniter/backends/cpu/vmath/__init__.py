"""Elementary functions as LLVM IR: our own polynomials, no libm."""

from __future__ import annotations

from collections.abc import Callable

from igniter.backends.cpu.builder import Builder, Value
from igniter.backends.cpu.llvm_types import Type

FUNCTIONS: dict[str, str] = {"math.exp": "exp", "math.sqrt": "sqrt"}


def call(b: Builder, name: str, args: list[Value]) -> Value:
    return _TABLE[name](b, *args)


def _exp(b: Builder, x: Value) -> Value:
    return b.unary_intrinsic("exp", x)


_TABLE: dict[str, Callable[..., Value]] = {"exp": _exp, "sqrt": lambda b, x: b.unary_intrinsic("sqrt", x)}


def max_number(b: Builder, x: Value, y: Value) -> Value:
    return b.binary_intrinsic("maxnum", x, y)


def min_number(b: Builder, x: Value, y: Value) -> Value:
    return b.binary_intrinsic("minnum", x, y)


def extend(b: Builder, x: Value, t: Type) -> Value:
    return b.cast("fpext", x, t)


def truncate(b: Builder, x: Value, t: Type) -> Value:
    return b.cast("fptrunc", x, t)


def widen_half(b: Builder, x: Value) -> Value:
    return x


def fma(b: Builder, x: Value, y: Value, z: Value) -> Value:
    return b.call(f"llvm.fma.{x.type.mangled}", x.type, [x, y, z])
