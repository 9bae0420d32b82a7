"""Moves nodes into a `fusion.region`, and regions into a `fusion.program`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import TypeVar

from xdsl.dialects.builtin import NoneType
from xdsl.ir import Block, Operation, Region, SSAValue, Use
from xdsl.traits import IsTerminator

from igniter.analysis.fusion.graph import is_node
from igniter.analysis.fusion.legality import is_shape_arithmetic, known_values, operand_kind
from igniter.analysis.fusion.symbols import is_inside
from igniter.dialects.fusion import DimsOp, PackOp, ProgramOp, RegionOp, TablesOp, YieldOp
from igniter.dialects.onnx.base import OnnxOp, make_constant
from igniter.dialects.onnx.names import is_loop
from igniter.dialects.onnx.ops import spec_of
from igniter.transforms.onnx.onnx_rewriting import is_unused

Group = TypeVar("Group", RegionOp, ProgramOp)


def localize_operands(members: Sequence[Operation]) -> list[Operation]:
    """Clones the constants and known integers among the operands of `members` for their use; the clones are in no block
    yet."""
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


def localize_bodies(loops: Iterable[Operation]) -> None:
    """Applies `localize_operands` to the bodies of loops, and drops the shape arithmetic there."""
    for loop in loops:
        for block in (region.block for region in loop.regions):
            members = [op for op in block.ops if is_node(op) and not is_shape_arithmetic(op)]
            clones = localize_operands(members)
            if clones and block.first_op is not None:
                block.insert_ops_before(clones, block.first_op)
            localize_bodies(op for op in members if is_loop(op))
            op = block.last_op
            while op is not None:
                before = op.prev_op
                if is_unused(op):
                    block.erase_op(op)
                op = before


def hoist_constants(loops: Iterable[Operation]) -> None:
    """Moves constants read by kernels in the bodies of loops, and their packs, before the loops."""
    for loop in loops:
        ops = [op for region in loop.regions for op in region.block.ops]
        hoist_constants(op for op in ops if is_loop(op))
        block = loop.parent
        assert block is not None
        for op in [op for region in loop.regions for op in region.block.ops]:
            if isinstance(op, PackOp) or (op.name == "onnx.Constant" and any(map(_is_read, op.results[0].uses))):
                op.detach()
                block.insert_op_before(op, loop)


def _is_read(use: Use) -> bool:
    """True if the use reads the value as a tensor, not only at compile time."""
    op = use.operation
    return isinstance(op, PackOp) or op.has_trait(IsTerminator) or operand_kind(op, use.index) == "tensor"


def form_region(
    name: str,
    members: Sequence[Operation],
    clones: Sequence[Operation],
    operands: Sequence[SSAValue],
    results: Sequence[SSAValue],
    before: Operation,
    make: type[Group] = RegionOp,
) -> Group:
    """Moves `clones` and `members`, in topological order, into a region (or a program, depending on `make`) before an
    op."""
    body = Block(arg_types=[v.type for v in operands])
    inner: dict[SSAValue, SSAValue] = {}
    for operand, argument in zip(operands, body.args, strict=True):
        argument.name_hint = operand.name_hint
        inner[operand] = argument
    for op in members:
        for reader in _readers(op):
            for index, operand in enumerate(reader.operands):
                if operand in inner:
                    reader.operands[index] = inner[operand]
    own = {*members, *clones}
    outside = [[use for use in result.uses if not is_inside(use.operation, own)] for result in results]
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
    """Adds the tables of one of its nodes to a region as operands. `name` is the prefix of their initializers'
    names."""
    spec = spec_of(node) if isinstance(node, OnnxOp) else None
    block = region.parent
    if not isinstance(node, OnnxOp) or spec is None or spec.tables is None or block is None:
        return
    found = spec.tables(node)
    if not found:
        return
    inner: dict[str, SSAValue] = {}
    for key, table in found.items():
        constant = make_constant(table, f"{node.node_name or name}.{key}")
        block.insert_op_before(constant, region)
        inner[key] = region.block.insert_arg(constant.results[0].type, len(region.block.args))
        region.operands = [*region.operands, constant.results[0]]
    region.block.insert_op_before(TablesOp(inner), node)


def region_results(members: Sequence[Operation], wanted: Set[SSAValue]) -> list[SSAValue]:
    """Returns the tensors used outside or `wanted` there, in the order of their computation."""
    inside = set(members)
    return [
        result
        for op in members
        for result in op.results
        if not isinstance(result.type, NoneType)
        and (result in wanted or any(not is_inside(use.operation, inside) for use in result.uses))
    ]


def _readers(op: Operation) -> Iterator[Operation]:
    """Yields the op and, for a loop, the ops in its body, because these may read values from outside."""
    yield op
    if is_loop(op):
        for inner in (inner for region in op.regions for inner in region.block.ops):
            yield from _readers(inner)


def _clone(constant: SSAValue) -> Operation:
    assert isinstance(constant.owner, Operation)
    return constant.owner.clone()
