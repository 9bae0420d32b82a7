"""Ops of `llvm` and `ub` on scalars and vectors, as lowerings of other dialects make them; no pointers."""

# Values of the interpreted program have no static type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from xdsl.dialects import builtin
from xdsl.ir import Attribute, Operation

from igniter.verification.mlir.machine import Execute, Machine, rule
from igniter.verification.mlir.values import POISON, Unsupported, element_of, filled, shape_of, zero_of


def _everywhere(value: object, type_: Attribute) -> object:
    return filled(value, shape_of(type_)) if isinstance(type_, builtin.VectorType) else value


@rule("llvm.mlir.undef", "llvm.mlir.poison", "ub.poison")
def poison(_: Machine, op: Operation) -> Execute:
    """Decodes a value that is not defined."""
    type_ = op.results[0].type
    if not isinstance(type_, (builtin.VectorType, builtin.IntegerType, builtin.IndexType, builtin.AnyFloat)):
        raise Unsupported(f"poison of the type {type_}")
    value = _everywhere(POISON, type_)
    return lambda: value


@rule("llvm.mlir.zero")
def zero(_: Machine, op: Operation) -> Execute:
    """Decodes zero."""
    type_ = op.results[0].type
    value = _everywhere(zero_of(element_of(type_)), type_)
    return lambda: value
