"""The costs of a node: multiply-adds (MACs) and scalar operations (FLOPs), in the symbols of its dims.

Counts are part of the op's spec, `OpSpec.macs` and `OpSpec.flops`, so that the cost model of fusion and the profile of
a model agree. MACs count sums of products only, as in papers; FLOPs are twice the MACs plus the costs of the other
operations in the table. The docstring of a rule is its text in `docs/how-to/profile.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from igniter.dialects.onnx.names import VIEWS
from igniter.dialects.onnx.ops import spec_of
from igniter.dialects.onnx.registry import FlopsRule, OpSpec
from igniter.dialects.sym.expr import ZERO, Expr

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

MOVES = frozenset(("movement", "shape"))
"""The kinds of ops without arithmetic, unless their spec has a rule."""

MOVES_TEXT = "0: it moves data"


def counted(text: str, count: Callable[[OnnxOp], Expr]) -> FlopsRule:
    """Returns the rule `count`, with its text for the documentation."""

    def rule(op: OnnxOp) -> Expr:
        return count(op)

    rule.__doc__ = text
    return rule


def times(cost: int, what: str) -> str:
    """Returns the text of `cost` operations for each of `what`."""
    return f"{cost} × {what}" if cost > 1 else what if cost else "0: no arithmetic"


def twice(macs: FlopsRule, text: str = "", rest: FlopsRule | None = None) -> FlopsRule:
    """Returns the FLOPs rule of an op with these MACs: two each, and `rest`, described by `text`."""
    if rest is None:
        return counted("2 × MACs", lambda op: 2 * macs(op))
    return counted(f"2 × MACs + {text}", lambda op: 2 * macs(op) + rest(op))


def no_arithmetic(text: str = "it moves data") -> FlopsRule:
    """Returns the rule of an op without arithmetic, with the reason."""
    return counted(f"0: {text}", lambda op: ZERO)


def macs_of(op: OnnxOp) -> Expr:
    """Returns the multiply-adds of a node; 0 for an op without sums of products.

    Raises `ValueError` or `IndexError` if the rule needs a missing dim or operand.
    """
    spec = spec_of(op)
    return ZERO if spec is None or spec.macs is None else spec.macs(op)


def flops_of(op: OnnxOp) -> Expr | None:
    """Returns the scalar operations of a node, excluding its graphs; `None` if no rule counts them.

    Raises `ValueError` or `IndexError` if the rule needs a missing dim or operand.
    """
    if op.qualified_name in VIEWS:
        return ZERO
    rule = flops_rule(spec_of(op))
    return None if rule is None else rule(op)


def flops_rule(spec: OpSpec | None) -> FlopsRule | None:
    """Returns the rule of a spec, or the one implied by its kind; `None` if it has none."""
    if spec is None:
        return None
    if spec.flops is None and spec.kind in MOVES:
        return _moves
    return spec.flops


def _moves(op: OnnxOp) -> Expr:
    return ZERO


_moves.__doc__ = MOVES_TEXT
