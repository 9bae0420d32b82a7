"""Fast construction of ops: xDSL's `Operation.create`, `Block.add_op`, `name_hint` and `clone`, without redundant
checks.

A model of 2,000 nodes is 3,000 ops with their operands, uses and results, created once by the importer and once more by
every copy. xDSL takes about 10 us per op: setters of operands and successors look up the previous ones, a block
searches its ancestors for the op, a name passes two regular expressions. Setting the fields directly takes a third of
this time.

Only this file writes xDSL's private fields of ops, blocks and values. xDSL is pinned, and
`tests/frontend/test_building.py` compares every object made here, field by field, with xDSL's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC, StringAttr
from xdsl.ir import Attribute, Block, Data, Operation, OpResult, Region, SSAValue, Use
from xdsl.ir.core import SSAValues

OpT = TypeVar("OpT", bound=Operation)
DataT = TypeVar("DataT", bound="Data[Any]")
_DIGITS = "0123456789"
_set = object.__setattr__


def data(cls: type[DataT], value: Any) -> DataT:
    """Returns `cls.new(value)`, for an attribute with any value of its type."""
    made = object.__new__(cls)
    _set(made, "data", value)
    return made


def text(value: str) -> StringAttr:
    """Returns `StringAttr(value)`."""
    return data(StringAttr, value)


def new_op(
    cls: type[OpT],
    operands: Sequence[SSAValue],
    result_types: Sequence[Attribute],
    attributes: dict[str, Attribute],
    properties: dict[str, Attribute],
    regions: Sequence[Region] = (),
) -> OpT:
    """Returns `cls.create(...)` for an op without successors; the op takes ownership of the dictionaries."""
    op = cls.__new__(cls)
    uses: list[Use] = []
    for index, value in enumerate(operands):
        first = value.first_use
        use = Use(op, index, None, first)
        if first is not None:
            first._prev_use = use
        value.first_use = use
        uses.append(use)
    op._operands = SSAValues(operands)
    op._operand_uses = tuple(uses)
    op.results = SSAValues([OpResult(type_, op, index) for index, type_ in enumerate(result_types)])
    op.properties = properties
    op.attributes = attributes
    op.location = UNKNOWN_LOC
    op._successors = op._successor_uses = op.regions = ()
    for region in regions:
        op.add_region(region)
    return op


def append(block: Block, op: Operation) -> None:
    """Does `block.add_op(op)` for a newly made op; the op must not contain the block."""
    last = block._last_op
    if last is None:
        block._first_op = op
    else:
        op._prev_op = last
        last._next_op = op
    block._last_op = op
    op.parent = block


def set_hint(value: SSAValue, name: str) -> None:
    """Does `value.name_hint = name` for a legal name."""
    # xDSL strips a numeric suffix, and adds its own if a name is taken. With one suffix left, the name of a value could
    # be that of another one with its suffix.
    while name and name[-1] in _DIGITS:
        head = name.rstrip(_DIGITS)
        if head[-1:] != "_":
            break
        name = head[:-1]
    value._name = name or None


def ops_of(block: Block) -> list[Operation]:
    """Returns `list(block.ops)`."""
    found: list[Operation] = []
    op = block._first_op
    while op is not None:
        found.append(op)
        op = op._next_op
    return found


def ops_inside(op: Operation) -> list[Operation]:
    """Returns `list(op.walk())`: the op, and all ops in its regions."""
    found = [op]
    for region in op.regions:
        for block in region.blocks:
            for inner in ops_of(block):
                if inner.regions:
                    found += ops_inside(inner)
                else:
                    found.append(inner)
    return found


def clone(op: OpT) -> OpT:
    """Returns `op.clone()` for an op without outside values, such as a module. Leaves ops with successors to xDSL."""
    try:
        return _clone(op, {})
    except KeyError:
        # A value is used before its definition.
        return op.clone()


def _clone(op: OpT, values: dict[SSAValue, SSAValue]) -> OpT:
    if op._successors:
        raise KeyError(op)
    operands, types = [values[v] for v in op._operands], [r._type for r in op.results]
    made = new_op(type(op), operands, types, dict(op.attributes), dict(op.properties))
    made.location = op.location
    # The regions come after the op's own uses of outside values, in the order of xDSL.
    for region in op.regions:
        made.add_region(_clone_region(region, values))
    for old, new in zip(op.results, made.results, strict=True):
        values[old] = new
        if old._name is not None:
            new._name = old._name
    return made


def _clone_region(region: Region, values: dict[SSAValue, SSAValue]) -> Region:
    blocks: list[Block] = []
    for block in region.blocks:
        made = Block(arg_types=[a.type for a in block.args])
        for old, new in zip(block.args, made.args, strict=True):
            values[old] = new
            new.location = old.location
            if old._name is not None:
                new._name = old._name
        op = block._first_op
        while op is not None:
            append(made, _clone(op, values))
            op = op._next_op
        blocks.append(made)
    return Region(blocks)
