"""Rules for attention: heads of keys and values that are repeated for groups of queries.

    %u = Unsqueeze(%k, [2])                                     // %k is b x 2 x s x 64
    %e = Expand(%u, [b, 2, 4, s, 64])
    %r = Reshape(%e, [b, 8, s, 64])
    %y = Attention(%q, %r, ..)
becomes
    %y = Attention(%q, %k, ..)                                  // each head of %k for four heads of %q
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.registry import VALUES_ATTRIBUTE
from igniter.dialects.sym.expr import ONE, product
from igniter.transforms.onnx.canonicalization.checks import leave_checks
from igniter.transforms.onnx.onnx_rewriting import Replacement, Rewriter, Rules, defining, known_dims, operand

PAST_KEY = 4


def share_heads(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Gives an Attention the keys and values before their heads are repeated."""
    if len(op.operands) < 3 or operand(op, PAST_KEY) is not None or any(list(r.uses) for r in op.results[1:]):
        return None
    key, value = (_repetition(op.operands[k]) for k in (1, 2))
    if key is None or value is None:
        return None
    before = [nodes[-1].operands[0] for nodes in (key, value)]
    heads = {dims[1] for v in before if (dims := known_dims(v)) is not None}
    if len(heads) > 1 or not leave_checks(*key, *value):
        return None
    attrs = {name: value for name, value in op.attributes.items() if name != VALUES_ATTRIBUTE}
    operands = [op.operands[0], *before, *(operand(op, k) for k in range(3, len(op.operands)))]
    return rw.op("Attention", operands, [r.type for r in op.results], attrs).results


def _repetition(heads: SSAValue) -> list[OnnxOp] | None:
    """Returns the Reshape, Expand and Unsqueeze that repeat each head of a tensor; None without them."""
    joined = defining(heads, "Reshape")
    repeated = defining(joined.operands[0], "Expand") if joined is not None else None
    apart = defining(repeated.operands[0], "Unsqueeze", "Reshape") if repeated is not None else None
    if joined is None or repeated is None or apart is None:
        return None
    own, single, many, result = (
        known_dims(v) for v in (apart.operands[0], apart.results[0], repeated.results[0], heads)
    )
    if own is None or single is None or many is None or result is None or len(own) != 4 or len(many) != 5:
        return None
    batch, count, *rest = own
    is_repetition = (
        single == (batch, count, ONE, *rest)
        and many == (batch, count, many[2], *rest)
        and result == (batch, product((count, many[2])), *rest)
        and many[2].constant is not None
    )
    return [joined, repeated, apart] if is_repetition else None


RULES: Rules = {"Attention": [share_heads]}
