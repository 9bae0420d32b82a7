"""Moving nodes into a `fusion.region`, and regions into a `fusion.program`."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TypeVar

from xdsl.dialects.builtin import NoneType
from xdsl.ir import Block, Operation, Region, SSAValue

from igniter.analysis.fusion_legality import known_values, operand_kind
from igniter.dialects.fusion import DimsOp, ProgramOp, RegionOp, TablesOp, YieldOp

Group = TypeVar("Group", RegionOp, ProgramOp)


def localize_operands(members: Sequence[Operation]) -> list[Operation]:
    """Gives `members` clones, in no block yet, of the constants and known integers among their operands."""
    clones: dict[object, Operation] = {}
    for op in members:
        for index, operand in enumerate(op.operands):
            if operand_kind(op, index) == "tensor":
                continue
            values = known_values(op, index) if operand_kind(op, index) == "values" else None
            key: object = operand if values is None else (values, operand.type)
            if key not in clones:
                clones[key] = _clone(operand) if values is None else DimsOp(values, operand.type)
                clones[key].results[0].name_hint = operand.name_hint
            op.operands[index] = clones[key].results[0]
    return list(clones.values())


def form_region(
    name: str,
    members: Sequence[Operation],
    clones: Sequence[Operation],
    operands: Sequence[SSAValue],
    results: Sequence[SSAValue],
    before: Operation,
    make: type[Group] = RegionOp,
) -> Group:
    """Moves `clones` and `members`, which are in topological order, into a region (or a program, which `make` makes)
    that stands before an op."""
    body = Block(arg_types=[v.type for v in operands])
    inner: dict[SSAValue, SSAValue] = {}
    for operand, argument in zip(operands, body.args, strict=True):
        argument.name_hint = operand.name_hint
        inner[operand] = argument
    for op in members:
        for index, operand in enumerate(op.operands):
            if operand in inner:
                op.operands[index] = inner[operand]
    own = {*members, *clones}
    outside = [[use for use in result.uses if use.operation not in own] for result in results]
    body.add_ops(clones)
    for op in members:
        op.detach()
        body.add_op(op)
    region = make(name, operands, [v.type for v in results], Region(body))
    block = before.parent
    assert block is not None
    block.insert_op_before(region, before)
    for result, value, uses in zip(region.results, results, outside, strict=True):
        result.name_hint = value.name_hint
        for use in uses:
            use.operation.operands[use.index] = result
    body.add_op(YieldOp(results))
    return region


def attach_tables(region: RegionOp, node: Operation, name: str) -> None:
    """Gives a region the tables of one of its nodes as operands; `name` is what their initializers are called after."""
    from igniter.dialects.onnx.base import OnnxOp, make_constant
    from igniter.dialects.onnx.ops import spec_of

    spec = spec_of(node) if isinstance(node, OnnxOp) else None
    block = region.parent
    if not isinstance(node, OnnxOp) or spec is None or spec.tables is None or block is None:
        return
    inner: dict[str, SSAValue] = {}
    for key, array in spec.tables(node).items():
        constant = make_constant(array, f"{node.node_name or name}.{key}")
        block.insert_op_before(constant, region)
        inner[key] = region.block.insert_arg(constant.results[0].type, len(region.block.args))
        region.operands = [*region.operands, constant.results[0]]
    region.block.insert_op_before(TablesOp(inner), node)


def region_results(members: Sequence[Operation], wanted: Set[SSAValue]) -> list[SSAValue]:
    """The tensors that are used outside or `wanted` there, in the order in which they are computed."""
    inside = set(members)
    return [
        result
        for op in members
        for result in op.results
        if not isinstance(result.type, NoneType)
        and (result in wanted or any(use.operation not in inside for use in result.uses))
    ]


def _clone(constant: SSAValue) -> Operation:
    assert isinstance(constant.owner, Operation)
    return constant.owner.clone()
