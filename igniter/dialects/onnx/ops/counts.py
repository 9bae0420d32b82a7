"""What a node computes, counted: multiply-adds (MACs) and scalar operations (FLOPs), in the symbols of its dims.

A count is a part of the op's spec, `OpSpec.macs` and `OpSpec.flops`, so the cost model of fusion and the profile of a
model say the same. MACs are those of sums of products alone, as papers count them; FLOPs are twice the MACs and what
the table of costs says of the rest. The text of a rule is its docstring, from which `docs/profile.md` is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from igniter.dialects.onnx.names import VIEWS
from igniter.dialects.onnx.registry import FlopsRule, OpSpec
from igniter.dialects.sym.expr import ZERO, Expr

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

MOVES = frozenset(("movement", "shape"))
"""The kinds of ops that do no arithmetic on what they move, unless their spec has a rule."""

MOVES_TEXT = "0: it moves data"


def counted(text: str, count: Callable[[OnnxOp], Expr]) -> FlopsRule:
    """The rule `count`, with its text for the documentation."""

    def rule(op: OnnxOp) -> Expr:
        return count(op)

    rule.__doc__ = text
    return rule


def times(cost: int, what: str) -> str:
    """The text of so many operations for each of `what`."""
    return f"{cost} × {what}" if cost > 1 else what if cost else "0: no arithmetic"


def twice(macs: FlopsRule, text: str = "", rest: FlopsRule | None = None) -> FlopsRule:
    """The FLOPs of an op of these MACs: two each, and `rest`, which `text` names."""
    if rest is None:
        return counted("2 × MACs", lambda op: 2 * macs(op))
    return counted(f"2 × MACs + {text}", lambda op: 2 * macs(op) + rest(op))


def no_arithmetic(text: str = "it moves data") -> FlopsRule:
    """The rule of an op that computes nothing, and why."""
    return counted(f"0: {text}", lambda op: ZERO)


def macs_of(op: OnnxOp) -> Expr:
    """The multiply-adds of a node; 0 for an op that is no sum of products.

    `ValueError` or `IndexError` where the rule needs a dim or an operand that the node has not.
    """
    from igniter.dialects.onnx.ops import spec_of

    spec = spec_of(op)
    return ZERO if spec is None or spec.macs is None else spec.macs(op)


def flops_of(op: OnnxOp) -> Expr | None:
    """The scalar operations of a node, its graphs left out; `None` where nothing says how many they are.

    `ValueError` or `IndexError` where the rule needs a dim or an operand that the node has not.
    """
    from igniter.dialects.onnx.ops import spec_of

    if op.qualified_name in VIEWS:
        return ZERO
    rule = flops_rule(spec_of(op))
    return None if rule is None else rule(op)


def flops_rule(spec: OpSpec | None) -> FlopsRule | None:
    """The rule that a spec gives or its kind implies; `None` where there is none."""
    if spec is None:
        return None
    if spec.flops is None and spec.kind in MOVES:
        return _moves
    return spec.flops


def _moves(op: OnnxOp) -> Expr:
    return ZERO


_moves.__doc__ = MOVES_TEXT
