"""Rules for Identity, If with a constant condition, and unchanged states of a Loop or Scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, Block, Region

from igniter.dialects.onnx.attributes import texts_attr
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.registry import VALUES_ATTRIBUTE
from igniter.transforms.onnx.onnx_rewriting import Replacement, Rewriter, Rules, splat


def drop_identity(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops an Identity. If an output of the graph needs a copy for its name, export adds one."""
    return [op.operands[0]]


def inline_if(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Replaces an If with a constant condition by the taken branch."""
    condition = splat(op.operands[0])
    if condition is None:
        return None
    region = cast(Region, op.attr("then_branch" if condition else "else_branch"))
    block = region.block
    last = block.last_op
    target = op.parent
    assert last is not None and target is not None
    values = list(last.operands)
    block.erase_op(last)
    for inner in list(block.ops):
        inner.detach()
        target.insert_op_before(inner, op)
        rw.push(inner)
    return values


def capture_invariant_state(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Removes a state that every iteration passes on unchanged: the body reads the initial value from outside the loop.

    Exporters pass weights to the steps of a recurrence in this way; as constants they can be packed.
    """
    if op.op_type == "Scan" and op.opset < 9:
        return None
    region = cast(Region, op.attr("body"))
    body, first, back = region.block, *((2, 1) if op.op_type == "Loop" else (0, 0))
    end = body.last_op
    assert end is not None
    states = len(op.operands) - first - int(op.attr("num_scan_inputs", 0) or 0)
    kept: list[int] = []
    for k in range(states):
        if end.operands[back + k] not in (body.args[first + k], op.operands[first + k]):
            kept.append(k)
    if len(kept) == states or not (kept or any(op.inputs[:first])):
        return None
    dropped = [k for k in range(states) if k not in kept]
    for k in dropped:
        argument = body.args[first + k]
        for use in argument.uses:
            rw.push(use.operation)
        argument.replace_all_uses_with(op.operands[first + k])
    _drop_states(body, dropped, first, back)
    op.detach_region(region)
    inputs = [v for k, v in enumerate(op.inputs) if k - first not in dropped]
    types = [r.type for k, r in enumerate(op.results) if k not in dropped]
    attrs = {name: value for name, value in op.attributes.items() if name != VALUES_ATTRIBUTE}
    made = rw.op(op.op_type, inputs, types, {**attrs, "body": region})
    if "node_name" in op.properties:
        made.properties["node_name"] = op.properties["node_name"]
    if any(op.output_names):
        made.properties["output_names"] = texts_attr([n for k, n in enumerate(op.output_names) if k not in dropped])
    results = iter(made.results)
    return [op.operands[first + k] if k in dropped else next(results) for k in range(len(op.results))]


def _drop_states(body: Block, dropped: Sequence[int], first: int, back: int) -> None:
    """Removes unused states from the arguments of a body and from its returned values."""
    end = body.last_op
    assert end is not None
    for key in ("input_names", "input_info", "output_names", "output_info"):
        place = first if key.startswith("input") else back
        found = end.attributes.get(key)
        if isinstance(found, ArrayAttr):
            entries = cast("ArrayAttr[Attribute]", found).data
            end.attributes[key] = ArrayAttr([e for k, e in enumerate(entries) if k - place not in dropped])
    end.operands = [v for k, v in enumerate(end.operands) if k - back not in dropped]
    for k in sorted(dropped, reverse=True):
        body.erase_arg(body.args[first + k])


RULES: Rules = {
    "Identity": [drop_identity],
    "If": [inline_if],
    "Loop": [capture_invariant_state],
    "Scan": [capture_invariant_state],
}
