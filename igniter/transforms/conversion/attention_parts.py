"""An attention whose keys are split over several programs, as in a decoding step: two kernels.

The first kernel is `AttentionBody` over a part of the keys. For each row and part it stores the maximum, the sums of
exponentials, and the weighted sums. The second kernel has one program per row and combines the parts:

    m' = max(m, max of the parts' m)                         of unscaled scores
    l, o = l * exp2(c * m - c * m') + sum of exp2(c * m_part - c * m') * l_part, and so with o

in blocks of parts, and continues like `AttentionBody`, with the factors of the row and the following nests. The method
is Flash-Decoding (Dao, Haziza, Massa and Sizov, 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import Float32Type, i32
from xdsl.ir import Block, Region, SSAValue

from igniter.analysis.structured.key_limits import KeyLimits
from igniter.dialects import triton as tt
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import Expr, linearize
from igniter.schedules.launch_groups import AttentionDims, LaunchGroup, attention_dims
from igniter.transforms.conversion.attention_body import AttentionBody
from igniter.transforms.conversion.block_builder import BlockBuilder
from igniter.transforms.conversion.launch_values import Scope

if TYPE_CHECKING:
    from igniter.transforms.conversion.lower_to_triton import Dim

PARTS = "parts"
"""The dim of the parts, in the combining kernel."""

PART_LANES = 16
"""The number of parts combined at a time."""

JOIN_WARPS = 4


def _places(group: LaunchGroup, at: AttentionDims) -> list[str]:
    """Returns the dims of results except the features: those of the grid, including the rows."""
    return [name for name in group.dims if name not in (at.keys, at.features, at.depth)]


def _parts_of(dims: Sequence[Dim], at: AttentionDims) -> Expr:
    (keys,) = [d for d in dims if d.name == at.keys]
    return keys.programs


def shapes_of_parts(group: LaunchGroup, dims: Sequence[Dim]) -> list[tuple[str, list[Expr]]]:
    """Returns the tensors stored for parts, each with a label and its dims: the maximum, the sums, and the weighted
    sums."""
    attention, at = group.attention, attention_dims(group)
    assert attention is not None and at is not None
    rows = [*(group.dims[name] for name in _places(group, at)), _parts_of(dims, at)]
    sums = [attention.top, *attention.sums]
    found = [(f"{nest.label}.parts", rows) for nest in sums]
    return [*found, (f"{attention.values.label}.parts", [*rows, group.dims[at.features]])]


def dims_of_join(group: LaunchGroup, dims: Sequence[Dim]) -> list[Dim]:
    """Returns the loops of the combining kernel: a program has one row with all of its parts and features."""
    from igniter.transforms.conversion.lower_to_triton import Dim

    at = attention_dims(group)
    assert at is not None
    parts = _parts_of(dims, at)
    looped = parts.constant is None or parts.constant > PART_LANES
    found = [Dim(d.name, d.extent, grid=True, looped=False, lanes=1) for d in dims if d.name in _places(group, at)]
    features = [d for d in dims if d.name == at.features]
    return [*found, *features, Dim(PARTS, parts, grid=False, looped=looped, lanes=PART_LANES)]


class _WithParts(AttentionBody):
    """The buffers of parts, which both kernels use."""

    parts: Sequence[SSAValue] = ()
    """The buffers of parts, in the order of `shapes_of_parts`."""

    def _offset(self, k: int, part: SSAValue, scope: Scope) -> SSAValue:
        """Returns the offset of the current blocks in the `k`-th buffer of parts."""
        shape = dims_of(self.parts[k].type)
        at = [Expr.of(name) for name in (*_places(self.group, self.at), PARTS, self.at.features)]
        return scope.builder.expr(linearize(at[: len(shape)], shape), {**scope.index, PARTS: part})


class SharedAttentionBody(_WithParts):
    """The kernel that computes parts."""

    def _take_share(self, dim: Dim, number: SSAValue) -> None:
        self.part = number

    def part_of(self, builder: BlockBuilder, first: SSAValue, end: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Returns the program's part of a range of blocks. Equal parts of the keys that rows see keep all programs
        busy, for few keys of a large cache, too."""
        dim = self.by_name[self.at.keys]
        part = builder.to_index(self.part)
        if self.limits.limits:
            # In 32 bits: a division of 64 is a call, around which registers spill.
            parts = self.parts_count
            above = builder.binary(arith.SubiOp, parts, builder.const(1, i32))
            length = builder.from_index(builder.binary(arith.SubiOp, end, first), i32)
            length = builder.binary(arith.MaxSIOp, length, builder.const(0, i32))
            count = builder.add(arith.DivSIOp(builder.binary(arith.AddiOp, length, above), parts))
            count = builder.to_index(count)
        else:
            count = builder.number(dim.share // dim.lanes)
        begin = builder.binary(arith.AddiOp, first, builder.binary(arith.MuliOp, part, count))
        behind = builder.binary(arith.AddiOp, begin, count)
        return builder.binary(arith.MinSIOp, begin, end), builder.binary(arith.MinSIOp, behind, end)

    def _compute(self, scope: Scope) -> None:
        builder = scope.builder
        self.parts_count = builder.from_index(builder.expr(self.by_name[self.at.keys].programs, scope.index), i32)
        kept = self._along_keys(self._begin(scope), scope)
        for k, (buffer, value) in enumerate(zip(self.parts, kept, strict=True)):
            offset = self._offset(k, self.part, scope)
            names = (self.at.rows, self.at.features) if k == len(self.parts) - 1 else (self.at.rows,)
            mask = builder.all_of(self._mask(scope, frozenset(names)))
            given = builder.together([offset, value, *([mask] if mask is not None else [])])
            pointers = self._pointers(builder, buffer, given[0])
            builder.block.add_op(tt.StoreOp(pointers, given[1], given[2] if mask is not None else None))


class AttentionJoin(_WithParts):
    """The kernel that combines parts and computes the following nests."""

    def _place_dims(self) -> None:
        attention, dims = self.group.attention, attention_dims(self.group)
        assert attention is not None and dims is not None
        self.attention, self.at = attention, dims
        self._place_scores()
        self.inner = self.laned = (PARTS, dims.features)
        self.products = {}
        self.ready = {}
        self.limits = KeyLimits()
        self.whole = False
        self.keys_end = None

    def _compute(self, scope: Scope) -> None:
        builder, dim = scope.builder, self.by_name[PARTS]
        kept = self._nothing(builder, 1)
        if not dim.looped:
            kept = self._block_of_parts(kept, scope)
        else:
            end, step = builder.expr(dim.blocks, scope.index), builder.number(1)
            body = Block(arg_types=[builder.index, *(v.type for v in kept)])
            inner = BlockBuilder(body, builder.ranges, builder.index)
            inside = Scope(inner, dict(scope.index), dict(scope.masks), scope.laned, dict(scope.firsts))
            self._enter(inside, dim, body.args[0])
            body.add_op(scf.YieldOp(*self._block_of_parts(body.args[1:], inside)))
            loop = scf.ForOp(builder.number(0), end, step, list(kept), Region(body))
            builder.block.add_op(loop)
            kept = list(loop.results)
        self._finish_sums(kept, scope)
        self._finish_rest(scope)

    def _block_of_parts(self, kept: Sequence[SSAValue], scope: Scope) -> list[SSAValue]:
        """Combines the maximum and the sums with those of a block of parts."""
        builder = scope.builder
        most, *sums = kept
        tops, *others = [self._load_part(k, scope) for k in range(len(self.parts))]
        above = builder.binary(arith.MaximumfOp, most, self._over_parts(arith.MaximumfOp, tops, scope))
        floor = self._floor(builder, above)
        scale = self._fall(builder, self._floor(builder, most), floor)
        weight = self._fall(builder, self._floor(builder, tops), floor)
        made = [above]
        for before, part in zip(sums, others, strict=True):
            added = self._over_parts(arith.AddfOp, builder.binary(arith.MulfOp, weight, part), scope)
            made.append(builder.binary(arith.AddfOp, builder.binary(arith.MulfOp, before, scale), added))
        return made

    def _load_part(self, k: int, scope: Scope) -> SSAValue:
        """Loads the current parts of the maximum (padding: -inf) or of a sum (padding: 0)."""
        builder, last = scope.builder, k == len(self.parts) - 1
        names = (PARTS, self.at.features) if last else (PARTS,)
        offset = self._offset(k, scope.index[PARTS], scope)
        mask = builder.all_of(self._mask(scope, frozenset(names)))
        if mask is None:
            return builder.add(tt.LoadOp(self._pointers(builder, self.parts[k], offset)))
        other = builder.const(0.0 if k else float("-inf"), Float32Type())
        offset, mask, other = builder.together([offset, mask, other])
        return builder.add(tt.LoadOp(self._pointers(builder, self.parts[k], offset), mask, other))

    def _over_parts(self, op: type[arith.MaximumfOp | arith.AddfOp], value: SSAValue, scope: Scope) -> SSAValue:
        """Reduces a block of parts to one."""
        body = Block(arg_types=[Float32Type(), Float32Type()])
        made = op(body.args[0], body.args[1])
        body.add_ops([made, tt.ReduceReturnOp([made.result])])
        reduced = scope.builder.add(tt.ReduceOp([value], 0, Region(body)))
        return scope.builder.add(tt.ExpandDimsOp(reduced, 0))
