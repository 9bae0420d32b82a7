"""`shard-products`: makes the model of one rank; several ranks share the products with weights.

    %h = MatMul(%x, %w1)                   %h = MatMul(%x, %w1[:, mine])            // columns
    %a = Relu(%h)                 ->       %a = Relu(%h)
    %y = MatMul(%a, %w2)                   %p = MatMul(%a, %w2[mine, :])            // rows
                                           %y = igniter.collective.AllReduce(%p)

    shard-products{ranks=2 rank=0}

Weights are cut by columns if the following nodes keep the columns apart until a product to be cut by rows. Such nodes
are elementwise ones, Transpose, Softmax over another axis, a Reshape of columns into heads or back, and products of two
such values per head. A transformer's feed-forward and attention are shared in this way (Shoeybi et al., Megatron-LM,
2019). Any other product is cut by rows alone, with each rank taking its part of the input (`alone`); one whose weight
cannot be cut evenly stays whole. Products cut by rows give partial sums; `AllReduce` of the domain `igniter.collective`
adds them over all ranks. It has no kernel; the runner of the ranks computes it. Rank 0 adds a bias after rows. Every
rank has the inputs and outputs of the whole model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, OpResult, SSAValue

from igniter.analysis.onnx.shape_inference import infer_shapes
from igniter.dialects.onnx.attributes import text_attr
from igniter.dialects.onnx.base import OnnxOp, constant_value, constant_weight, make_constant, make_op
from igniter.dialects.onnx.structure import main_graph
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.tensor_types import known_dims_of, tensor_element
from igniter.errors import IgniterError
from igniter.frontend.opsets import import_domains
from igniter.remarks import remark
from igniter.toolbox.edit.edit import Edit
from igniter.toolbox.edit.graph_edits import sweep
from igniter.toolbox.edit.names import node_text, result_names, set_result_name
from igniter.toolbox.edit.shape_conflicts import typed_by
from igniter.toolbox.split.sharding_plan import Group, Place, ShardedProduct, ShardingPlan, product_of

Types = Mapping[SSAValue, Attribute]

COLLECTIVES = "igniter.collective"
ALL_REDUCE = "AllReduce"


@dataclass(frozen=True)
class ShardProducts(Edit):
    """Keeps one rank's share of the products with weights."""

    name = "shard-products"
    ranks: int = 2
    """The number of ranks."""
    rank: int = 0
    """The rank of this model."""
    alone: bool = True
    """Also cuts products by rows without a preceding product cut by columns."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.ranks < 2 or not 0 <= self.rank < self.ranks:
            raise IgniterError(f"rank {self.rank} of {self.ranks}: there are 2 ranks at least, counted from 0")
        graph = main_graph(op)
        products = [p for node in graph.body.ops if (p := product_of(node, self.ranks)) is not None]
        facts = infer_shapes(op)
        with typed_by(facts):
            plan = ShardingPlan(self.ranks, products)
            groups = plan.groups()
        done: set[OnnxOp] = set()
        for group in groups:
            _shard_group(group, self.ranks, self.rank, facts.types)
            done |= set(group.columns) | set(group.rows)
            names = ", ".join(node_text(p) for p in group.rows)
            remark(ctx, self.name, node_text(group.columns[0]), "applied", f"by columns, and {names} by rows")
        for found in products:
            if found.node in done:
                continue
            if self.alone and found.can_cut_rows and _shard_alone(found, self.ranks, self.rank, facts.types):
                done.add(found.node)
                how = "by rows, each rank taking its part of the input"
                remark(ctx, self.name, node_text(found.node), "applied", how)
            else:
                remark(ctx, self.name, node_text(found.node), "missed", f"{self.ranks} ranks cannot share its weight")
        if not done:
            raise IgniterError(f"no product of the model has a weight that {self.ranks} ranks can share")
        import_domains(op)


# -- the rank's part --------------------------------------------------------------------------------------------------


def _part(weight: Weight, axis: int, ranks: int, rank: int) -> Weight:
    array = weight.array()
    size = array.shape[axis] // ranks
    index: list[slice] = [slice(None)] * array.ndim
    index[axis] = slice(rank * size, (rank + 1) * size)
    return Weight.of(np.ascontiguousarray(array[tuple(index)]))


def _replace_constant(node: OnnxOp, index: int, made: Weight, ending: str) -> None:
    """Gives a node another constant, with its own name: the old one may have other readers."""

    old = node.operands[index]
    assert isinstance(old, OpResult) and isinstance(old.owner, OnnxOp)
    name = result_names(old.owner)[0] or "constant"
    key = next(n for n in (*node.output_names, node.node_name, "node") if n)
    constant = make_constant(made, f"{name}.{ending}.{key}" if len(list(old.uses)) > 1 else f"{name}.{ending}")
    block = node.parent
    assert block is not None
    block.insert_op_before(constant, old.owner)
    node.operands[index] = constant.results[0]
    sweep([old])


def _smaller(type_: Attribute, axis: int, ranks: int) -> Attribute:
    dims, element = known_dims_of(type_), tensor_element(type_)
    if dims is None or element is None:
        return type_
    size = dims[axis].constant
    made = list(dims)
    made[axis] = Expr.of(size // ranks) if size is not None else dims[axis]
    return tensor_of(element, made)


def _shard_group(group: Group, ranks: int, rank: int, types: Types) -> None:
    for node in group.columns:
        found = product_of(node, ranks)
        assert found is not None
        _replace_constant(node, 1, _part(found.weight, 1 - found.depth, ranks, rank), "columns")
        _cut_bias(node, ranks, rank)
    for node, index, axis in group.constants:
        weight = constant_weight(node.operands[index])
        assert weight is not None
        _replace_constant(node, index, _part(weight, len(weight.shape) + axis, ranks, rank), "part")
    for node, place in group.targets.items():
        _cut_target(node, place, ranks)
    for value, axis in group.axes.items():
        value._type = _smaller(value.type, axis, ranks)
    for node in group.rows:
        found = product_of(node, ranks)
        assert found is not None
        _cut_rows(found, ranks, rank, types)


def _cut_target(node: OnnxOp, place: Place, ranks: int) -> None:
    """Writes a smaller number into the target of a Reshape or Expand; other readers of the target keep the old one."""
    concat, index, position = place
    at, holder = (1, node) if concat is None else (index, concat.clone())
    if concat is not None:
        block = node.parent
        assert block is not None
        block.insert_op_before(holder, node)
        before = node.operands[1]
        node.operands[1] = holder.results[0]
        name = next(n for n in (*node.output_names, node.node_name, "node") if n)
        set_result_name(holder.results[0], f"{name}.shape")
        holder.properties["node_name"] = text_attr(f"{name}.shape")
        sweep([before])
    value = constant_value(holder.operands[at])
    assert value is not None
    _replace_constant(holder, at, Weight.of(_reshaped(value, position, ranks)), "part")


def _reshaped(target: np.ndarray[Any, Any], axis: int, ranks: int) -> np.ndarray[Any, Any]:
    made = target.copy()
    if made[axis] > 0:
        made[axis] //= ranks
    return made


def _cut_bias(node: OnnxOp, ranks: int, rank: int) -> None:
    """Cuts the bias of a Gemm cut by columns."""
    bias = constant_weight(node.operands[2]) if node.op_type == "Gemm" and len(node.operands) > 2 else None
    if bias is not None and bias.shape and bias.shape[-1] > 1:
        _replace_constant(node, 2, _part(bias, len(bias.shape) - 1, ranks, rank), "columns")


def _cut_rows(found: ShardedProduct, ranks: int, rank: int, types: Types) -> None:
    """Cuts a weight by rows, and adds the results of all ranks."""
    node = found.node
    _replace_constant(node, 1, _part(found.weight, found.depth, ranks, rank), "rows")
    if node.op_type == "Gemm" and len(node.operands) > 2 and rank > 0:
        _drop_bias(node)
    result = node.results[0]
    uses = list(result.uses)
    names = node.output_names or [""]
    # It has no shape rule, so the type is written into the model.
    reduced = make_op(
        ALL_REDUCE,
        [result],
        [types.get(result, result.type)],
        {"reduce": "sum", "ranks": ranks},
        domain=COLLECTIVES,
        output_names=names,
    )
    block = node.parent
    assert block is not None
    block.insert_op_after(reduced, node)

    set_result_name(result, f"{names[0]}.partial" if names[0] else "")
    for use in uses:
        use.operation.operands[use.index] = reduced.results[0]


def _drop_bias(node: OnnxOp) -> None:
    """Removes the bias of a Gemm: rank 0 adds it."""
    bias = node.operands[2]
    weight = constant_weight(bias)
    if node.opset >= 11:
        node.operands = node.operands[:2]

        sweep([bias])
    elif weight is not None:
        _replace_constant(node, 2, Weight.of(np.zeros(weight.shape, weight.element.dtype)), "none")
    else:
        raise IgniterError(f"the bias of {node_text(node)} is computed: convert the model to opset 11 or newer first")


def _shard_alone(found: ShardedProduct, ranks: int, rank: int, types: Types) -> bool:
    """Cuts a product by rows whose input is whole: the rank takes its columns of the input."""
    node = found.node
    value = node.operands[0]
    if node.opset < 10:
        return False
    size = found.weight.shape[found.depth] // ranks
    known = types.get(value, value.type)
    dims, element = known_dims_of(known), tensor_element(known)
    if element is None:
        return False
    name = next(n for n in (*node.output_names, node.node_name, "product") if n)
    block = node.parent
    assert block is not None
    limits: list[SSAValue] = []
    for part, number in (("begin", rank * size), ("end", (rank + 1) * size), ("axis", -1)):
        constant = make_constant(np.array([number], np.int64), f"{name}.{part}")
        block.insert_op_before(constant, node)
        limits.append(constant.results[0])
    type_ = tensor_of(element, [*dims[:-1], size]) if dims is not None else known
    cut = make_op("Slice", [value, *limits], [type_], output_names=[f"{name}.part"])
    block.insert_op_before(cut, node)
    node.operands[0] = cut.results[0]
    _cut_rows(found, ranks, rank, types)
    return True
