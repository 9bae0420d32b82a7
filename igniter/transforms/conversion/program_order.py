"""The order of the programs of a launch: the blocks of a program, from its number.

Consecutive programs differ in the last dim of the grid first. With `group` in the schedule, they differ in the second
last dim first, for a few of its blocks, so that they load few blocks of both factors of a product.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from igniter.dialects import triton as tt
from igniter.errors import IgniterError

if TYPE_CHECKING:
    from igniter.dialects.sym.expr import Expr
    from igniter.schedules.launch_groups import LaunchGroup
    from igniter.transforms.conversion.block_builder import BlockBuilder
    from igniter.transforms.conversion.lower_to_triton import Dim


def blocks_of_program(
    builder: BlockBuilder,
    index: Mapping[str, SSAValue],
    group: LaunchGroup,
    dims: Sequence[Dim],
    number: SSAValue | None = None,
) -> Iterator[tuple[Dim, SSAValue]]:
    """Yields the dims of the grid, the last one first, each with the number of a program's block along it; `index` has
    the values of symbols. `number` is the program's, its own one in the launch by default."""
    grid = [d for d in dims if d.grid or d.share]
    numbers: dict[str, SSAValue] = {}
    rest = number
    if group.blocks_together > 1:
        numbers, rest = _in_groups(builder, index, group, grid, number)
    for dim in reversed(grid):
        if rest is None:
            rest = builder.add(tt.GetProgramIdOp(0))
        at = numbers.get(dim.name, rest)
        if dim.name not in numbers and dim is not grid[0]:
            programs = _programs_of(builder, index, dim.programs)
            at = builder.add(arith.RemSIOp(rest, programs))
            rest = builder.add(arith.DivSIOp(rest, programs))
        yield dim, builder.to_index(at)


def _programs_of(builder: BlockBuilder, index: Mapping[str, SSAValue], count: Expr) -> SSAValue:
    """Returns a factor of the number of programs. A grid has less than 2^31 programs, so 32 bits hold it."""
    return builder.from_index(builder.expr(count, index), i32)


def _in_groups(
    builder: BlockBuilder,
    index: Mapping[str, SSAValue],
    group: LaunchGroup,
    grid: Sequence[Dim],
    number: SSAValue | None,
) -> tuple[dict[str, SSAValue], SSAValue]:
    """Returns the blocks of a program along the last two dims of the grid, and its number along the others.

    The programs of a group cover a few blocks of the second last dim: for each block of the last dim, all of them. So
    they load few blocks of both factors of a product, which stay in the cache.
    """
    if len(grid) < 2:
        first = group.members[0].label
        raise IgniterError(
            f"lower-to-triton: nest '{first}': 'group {group.blocks_together}' orders programs along two dims of the "
            f"grid, which has {len(grid)}; remove it"
        )
    rows, columns = grid[-2:]
    height = _programs_of(builder, index, rows.programs)
    most = builder.binary(arith.MinSIOp, height, builder.const(group.blocks_together, i32))
    wide = builder.binary(arith.MuliOp, most, _programs_of(builder, index, columns.programs))
    program = rest = builder.add(tt.GetProgramIdOp(0)) if number is None else number
    if len(grid) > 2:
        both = _programs_of(builder, index, rows.programs * columns.programs)
        rest = builder.add(arith.DivSIOp(program, both))
        program = builder.add(arith.RemSIOp(program, both))
    first = builder.binary(arith.MuliOp, builder.add(arith.DivSIOp(program, wide)), most)
    # The last group may be smaller.
    held = builder.binary(arith.MinSIOp, builder.binary(arith.SubiOp, height, first), most)
    inside = builder.add(arith.RemSIOp(program, wide))
    row = builder.binary(arith.AddiOp, first, builder.add(arith.RemSIOp(inside, held)))
    return {rows.name: row, columns.name: builder.add(arith.DivSIOp(inside, held))}, rest
