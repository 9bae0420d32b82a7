"""A Loop with a tensor as trip count and with stacked results: the trip count becomes a dim of a carrier.

    %y = onnx.Loop(%m, %none, %h) ({ .. })     %c = onnx.ConstantOfShape([0, max(%m, 0)]) {igniter.carrier = ".."}
                                           ->  %t = onnx.Shape(%c) {start = 1}
                                               %y = onnx.Loop(%t, %none, %h, %c) ({ .. })

The slice of an iteration must have constant dims. The loop has the carrier as an additional state, passed on by its
body: the runtime of the loop then knows the count.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import NoneType
from xdsl.ir import Attribute, Block, Region, SSAValue

from igniter.analysis.fusion.legality import is_shape_arithmetic, type_symbols
from igniter.analysis.fusion.program_loops import compilable
from igniter.analysis.onnx.graph_runs import is_unconditional
from igniter.dialects.onnx.attributes import texts_attr, texts_of
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.bound import is_carrier
from igniter.dialects.onnx.structure import GraphOp
from igniter.dialects.sym.tensor_types import known_dims_of
from igniter.transforms.onnx.binding.arithmetic import Builder
from igniter.transforms.onnx.binding.sizes import unknown_list
from igniter.transforms.onnx.onnx_rewriting import Replacement, Rewriter, Rules

CARRIED = "igniter.trips"
"""The name of the carrier in the body."""


def _bind_loop(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    if not isinstance(op.parent_op(), GraphOp) or not is_unconditional(op) or any(map(_is_carried, op.operands)):
        return None
    carried = len(op.operands) - 2
    stacked = [r for r in op.results[carried:] if not isinstance(r.type, NoneType)]
    if not stacked or not all(map(_has_constant_slices, stacked)) or not _is_compilable(op):
        return None
    build = Builder(rewriter)
    count = unknown_list(op, 0, build)
    if count is None or len(count) != 1:
        return None
    carrier = build.carrier(count.at_least(0), "its trip count is negative")
    region = cast("Region", op.attr("body")).clone()
    _hand_on(region.block, carried, carrier.type)
    types = [r.type for r in op.results]
    operands = [build.read(carrier, 0, 1), *op.inputs[1:], carrier]
    bound = rewriter.op("Loop", operands, [*types[:carried], carrier.type, *types[carried:]], {"body": region})
    _keep_names(op, bound, carried)
    return [*bound.results[:carried], *bound.results[carried + 1 :]]


def _keep_names(op: OnnxOp, bound: OnnxOp, carried: int) -> None:
    if "node_name" in op.properties:
        bound.properties["node_name"] = op.properties["node_name"]
    names = op.output_names
    if any(names):
        own = f"{CARRIED}.{next(filter(None, names))}"
        bound.properties["output_names"] = texts_attr([*names[:carried], own, *names[carried:]])


def _has_constant_slices(stacked: SSAValue) -> bool:
    """True if the slice of one iteration has constant dims. If the loop never runs, ONNX Runtime takes any other dim to
    be 0, and a count from data is often 0."""
    dims = known_dims_of(stacked.type)
    return dims is not None and all(d.constant is not None for d in dims[1:])


def _is_carried(value: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, OnnxOp) and is_carrier(owner)


def _is_compilable(op: OnnxOp) -> bool:
    """True if all nodes of the body have lowerings: otherwise no kernel uses the count."""
    block = cast("Region", op.attr("body")).block
    values = [v for inner in block.walk() for v in (*inner.operands, *inner.results)]
    symbols = frozenset(s for v in values for s in type_symbols(v.type))
    nodes = [inner for inner in block.ops if isinstance(inner, OnnxOp) and inner.name != "onnx.Constant"]
    return all(is_shape_arithmetic(n) or compilable(n, symbols) is None for n in nodes)


def _hand_on(body: Block, carried: int, kind: Attribute) -> None:
    """Adds an unchanged state to a body, after the others."""
    argument = body.insert_arg(kind, 2 + carried)
    end = body.last_op
    assert end is not None
    end.operands = [*end.operands[: 1 + carried], argument, *end.operands[1 + carried :]]
    for key, place in (("input_names", 2 + carried), ("output_names", 1 + carried)):
        if key in end.attributes:
            names = texts_of(end.attributes[key])
            end.attributes[key] = texts_attr([*names[:place], f"{CARRIED}.{key[:3]}", *names[place:]])


RULES: Rules = {"Loop": [_bind_loop]}
