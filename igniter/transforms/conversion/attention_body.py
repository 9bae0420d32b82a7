"""The body of an attention launch: one block of keys after another, with a running maximum (online softmax).

    m, l, o = -inf, 0, 0                                     of a block of rows
    for each block of keys:
        s  = q . k, masked but not scaled                    -inf behind the last key
        m' = max(m, max of s)
        p  = exp2(c * s - c * m')                            c = scale * log2(e)
        l, o = l * exp2(c * m - c * m') + sum of p, o * exp2(c * m - c * m') + p . v
    m = scale * m
    l, o = l * exp(m - floor), o * exp(m - floor) * factors of the row

The exponent is a multiply-add if the scores are small; else it is c * (s - m'), which is exact at the maximum: the
rounding error of c * m' must not be large (`igniter.analysis.structured.attention_scores`).

Scores and weights are products of blocks. An attention without rows, as in a decoding step, uses blocks of keys by
depth and of keys by features, and sums them along one of these.

The least finite number replaces a maximum of -inf, so that a block without any visible key gives exponentials of 0. A
row without any visible key has the same result as without blocks: the result of `floor`, usually NaN.
`igniter.analysis.structured.attention` explains why this is correct.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import e, log2
from typing import TYPE_CHECKING

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Block, Operation, Region, SSAValue

from igniter.analysis.structured.attention import Weights
from igniter.analysis.structured.attention_scores import Condition, Mask, is_small, score_of
from igniter.analysis.structured.dot_products import LEAST, DotProduct, dot_product, hangs_on, narrowed
from igniter.analysis.structured.key_limits import KeyLimits, key_limits
from igniter.dialects import triton as tt
from igniter.dialects.arith import CmpfOp, CmpiOp
from igniter.dialects.loop import NestOp, ReadOp
from igniter.dialects.loop.panels import is_half
from igniter.errors import IgniterError
from igniter.schedules.launch_groups import attention_dims
from igniter.transforms.conversion.block_builder import BlockBuilder
from igniter.transforms.conversion.key_ranges import KeyRange, KeyRanges
from igniter.transforms.conversion.launch_body import LaunchBody
from igniter.transforms.conversion.launch_values import Scope, renamed_names

if TYPE_CHECKING:
    from igniter.transforms.conversion.lower_to_triton import Dim

LEAST_NUMBER = -3.4028234663852886e38
"""The least finite f32."""

LOG2_E = log2(e)

HIDDEN = -(2.0**100)
"""The unscaled score of hidden keys in multiply-adds, instead of a lower finite number: its product with any factor is
exact, and no f32 overflows."""


class AttentionBody(LaunchBody):
    """The kernel of an attention launch."""

    def _place_dims(self) -> None:
        attention, dims = self.group.attention, attention_dims(self.group)
        assert attention is not None
        if dims is None:
            raise IgniterError(
                f"lower-to-triton: nests '{attention.scores.label}' and '{attention.values.label}' are not an "
                "attention: their rows or keys differ, or a block cannot hold their features"
            )
        self.attention, self.at = attention, dims
        self._place_scores()
        self.inner = (dims.rows, dims.keys) if dims.rows else (dims.keys, dims.features)
        """The dims of values computed from scores."""
        self.laned = (dims.rows, dims.features) if dims.rows else self.inner
        self.products = self._both_products() if dims.rows else {}
        self.seen = key_limits(self.score, attention, self.group.names, dims.rows, dims.keys)
        self.limits = self.seen if self.by_name[dims.keys].looped else KeyLimits()
        self.whole = False
        """True while the code for blocks of keys seen whole by every row is emitted."""
        self.keys_end: SSAValue | None = None
        """The number of keys that the rows of the program see, if it is data."""
        self.ready: dict[SSAValue, SSAValue] = {}
        """Factors shared by all blocks of keys."""
        self._require()

    def _place_scores(self) -> None:
        """Finds the scale of the scores, and the form of their exponentials."""
        self.score = score_of(self.attention)
        self.fused = is_small(self.score, self.attention)
        """True if an exponent is a multiply-add."""
        self.hidden = HIDDEN if self.fused else LEAST_NUMBER
        """The unscaled score of keys whose score is a finite low number."""

    def _both_products(self) -> dict[NestOp, DotProduct]:
        """Returns the two products of blocks of an attention with rows."""
        attention, at, names = self.attention, self.at, self.group.names
        inner = dot_product(attention.scores)
        assert inner is not None
        scores = inner.renamed(names[attention.scores])
        weighed = attention.weighed
        if is_half(scores.element) and is_half(narrowed(weighed).type):
            # Weights are rounded to the type of the values, as in every attention on tensor cores: they are at most 1.
            weighed = narrowed(weighed)
        values = DotProduct(attention.weight, weighed, at.rows, at.features, at.keys)
        return {
            attention.scores: scores if (scores.row, scores.column) == self.inner else scores.swapped(),
            attention.values: values,
        }

    def _require(self) -> None:
        """Raises if the schedule asks for an unsupported form."""
        at = self.at
        for name, wanted in ((at.rows, "rows"), (at.keys, "keys"), (at.features, "features"), (at.depth, "depth")):
            if not name:
                continue
            dim = self.by_name[name]
            if dim.lanes < LEAST or (name in (at.features, at.depth) and (dim.grid or dim.looped)):
                raise IgniterError(
                    f"lower-to-triton: the attention of nest '{self.attention.values.label}' needs at least {LEAST} "
                    f"lanes along its {wanted}, and all features in one program"
                )
        wide = [d.name for d in self.dims if d.lanes > 1 and d.name not in (at.rows, at.keys, at.features, at.depth)]
        if wide:
            raise IgniterError(
                f"lower-to-triton: the attention of nest '{self.attention.values.label}' can have lanes only along "
                "its rows, keys and features"
            )

    # -- computing ----------------------------------------------------------------------------------------------------

    def _compute(self, scope: Scope) -> None:
        self._finish_sums(self._along_keys(self._begin(scope), scope), scope)
        self._finish_rest(scope)

    def _finish_rest(self, scope: Scope) -> None:
        """Computes the elementwise nests after the sums."""
        for nest in self.group.members:
            if nest not in self.attention.members and self._is_wanted(nest):
                self._finish(nest, scope, None)

    def _begin(self, scope: Scope) -> list[SSAValue]:
        """Returns the initial maximum and sums, and computes the factors shared by all blocks."""
        attention, builder = self.attention, scope.builder
        scores = self.products.get(attention.scores)
        if scores is not None and self.at.keys not in self._dims_of(attention.scores, scores.a):
            self.ready[scores.a] = self._factor(
                attention.scores, scores.a, (scores.row, scores.depth), scores.depth, scope
            )
        return self._nothing(builder, self.by_name[self.at.rows].lanes if self.at.rows else 1)

    def _nothing(self, builder: BlockBuilder, count: int) -> list[SSAValue]:
        """Returns the maximum and the sums of `count` rows without any key."""
        most = builder.shaped(builder.const(float("-inf"), Float32Type()), (count, 1))
        nothing = builder.const(0.0, Float32Type())
        sums = [builder.shaped(nothing, (count, 1)) for _ in self.attention.sums]
        total = builder.shaped(nothing, (count, self.by_name[self.at.features].lanes))
        return [most, *sums, total]

    def _dims_of(self, nest: NestOp, value: SSAValue) -> frozenset[str]:
        """Returns the dims that a value in the body of a nest depends on."""
        return renamed_names(hangs_on(value), self.group.names[nest])

    def _along_keys(self, kept: Sequence[SSAValue], scope: Scope) -> list[SSAValue]:
        """Returns the maximum and the sums over all keys that a row of the program sees."""
        dim = self.by_name[self.at.keys]
        ranges = KeyRanges(self, scope, self.seen.limits)
        self.keys_end = ranges.end()
        if not dim.looped:
            return self._block_of_keys(kept, scope)
        made = list(kept)
        for each in ranges.ranges():
            made = self._loop_over(each, made, scope)
        return made

    def _loop_over(self, blocks: KeyRange, kept: Sequence[SSAValue], scope: Scope) -> list[SSAValue]:
        """Returns the maximum and the sums after a range of blocks of keys."""
        dim, builder = self.by_name[self.at.keys], scope.builder
        body = Block(arg_types=[builder.index, *(v.type for v in kept)])
        inner = BlockBuilder(body, builder.ranges, builder.index)
        inside = Scope(inner, dict(scope.index), dict(scope.masks), scope.laned, dict(scope.firsts))
        self.whole = blocks.whole
        self._enter(inside, dim, body.args[0])
        body.add_op(scf.YieldOp(*self._block_of_keys(body.args[1:], inside)))
        self.whole = False
        loop = scf.ForOp(blocks.first, blocks.end, builder.number(1), list(kept), Region(body))
        builder.block.add_op(loop)
        return list(loop.results)

    def _enter(self, scope: Scope, dim: Dim, block: SSAValue | None) -> None:
        """Enters a block; rows from the last to the first if later rows see more keys: the longest programs begin
        first."""
        builder = scope.builder
        if block is not None and dim.name == self.at.rows and any(x.upper and x.slope > 0 for x in self.limits.limits):
            last = builder.binary(arith.SubiOp, builder.expr(dim.programs, scope.index), builder.number(1))
            block = builder.binary(arith.SubiOp, last, block)
        super()._enter(scope, dim, block)

    def _span(self, scope: Scope, dim: Dim) -> None:
        super()._span(scope, dim)
        if dim.name != self.at.keys:
            return
        if self.whole:
            scope.masks.pop(dim.name, None)
        elif self.keys_end is not None:
            scope.masks[dim.name] = scope.builder.below(scope.index[dim.name], self.keys_end)

    def value_of(self, nest: NestOp, value: SSAValue, scope: Scope) -> SSAValue:
        """Returns a value of the body of a nest on the blocks of a scope."""
        return self._value(nest, value, scope)

    def part_of(self, builder: BlockBuilder, first: SSAValue, end: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Returns the program's part of a range of blocks of keys: all of it."""
        del builder
        return first, end

    def _block_of_keys(self, kept: Sequence[SSAValue], scope: Scope) -> list[SSAValue]:
        attention, builder = self.attention, scope.builder
        inside = self._across(self.inner, scope)
        most, *sums, total = kept
        seen = self._scores(inside)
        terms = builder.shaped(seen, self._shape(self.group.names[attention.top].values()))
        above = self._combined(attention.top, 0, builder, most, self._folded(attention.top, 0, terms, inside))
        floor = self._floor(builder, above)
        scale = self._fall(builder, self._floor(builder, most), floor)
        inside.values[attention.weights[-1][1].exponential] = self._power(builder, seen, floor)
        made = [above]
        weights = dict(attention.weights)
        for nest, before in zip(attention.sums, sums, strict=True):
            terms = self._bare(nest.yield_op.clauses[0].value, weights[nest], inside)
            terms = builder.shaped(terms, self._shape(self.group.names[nest].values()))
            folded = self._folded(nest, 0, terms, inside)
            made.append(builder.binary(arith.AddfOp, builder.binary(arith.MulfOp, before, scale), folded))
        weight = self._bare(attention.weight, weights[attention.values], inside)
        made.append(self._with_values(weight, builder.binary(arith.MulfOp, total, scale), inside, scope))
        return made

    def _with_values(self, weight: SSAValue, total: SSAValue, inside: Scope, scope: Scope) -> SSAValue:
        """Adds the block's contribution to the weighted sum of the values."""
        attention, builder = self.attention, scope.builder
        values = self.products.get(attention.values)
        if values is not None:
            a = builder.shaped(weight, tuple(self.by_name[name].lanes for name in self.inner))
            b = self._factor(attention.values, values.b, (values.depth, values.column), values.depth, scope)
            if tt.element_type(a.type) != tt.element_type(b.type):
                a = builder.cast(arith.TruncFOp, a, tt.element_type(b.type))
            return self._dot(a, b, total, builder)
        weighed = self._value(attention.values, attention.weighed, inside)
        terms = builder.binary(arith.MulfOp, weight, weighed)
        mask = inside.masks.get(self.at.keys)
        if mask is not None:
            terms = builder.select(mask, terms, builder.const(0.0, Float32Type()))
        terms = builder.shaped(terms, tuple(self.by_name[name].lanes for name in self.inner))
        return builder.binary(arith.AddfOp, total, self._folded(attention.values, 0, terms, inside))

    def _shape(self, names: Iterable[str]) -> tuple[int, ...]:
        known = set(names)
        laned = self.inner if self.at.keys in known and self.at.features not in known else self.laned
        lanes = {d.name: d.lanes for d in self.dims}
        return tuple(lanes[name] if name in known else 1 for name in laned)

    def _scores(self, inside: Scope) -> SSAValue:
        """Returns a block of unscaled scores; those beyond the last key are -inf."""
        builder, score = inside.builder, self.score
        value = self._value(score.nest, score.base, inside)
        for mask in score.masks:
            value = self._masked(value, mask, inside)
        within = inside.masks.get(self.at.keys)
        if within is None:
            return value
        return builder.select(within, value, builder.const(float("-inf"), Float32Type()))

    def _masked(self, value: SSAValue, mask: Mask, inside: Scope) -> SSAValue:
        """Hides the keys of a block for which a condition does not hold."""
        builder = inside.builder
        conditions = [c for each in mask.conditions for c in self._left_of(each)]
        if not conditions:
            return value
        low = builder.const(mask.low if mask.low == float("-inf") else self.hidden, Float32Type())
        # Keys outside of limits are not read in other blocks, so their scores count nowhere, NaN or not.
        added = mask.added and not all(self.limits.is_limit(c) for c in mask.conditions)
        bias = builder.const(0.0, Float32Type()) if added else value
        for condition in conditions:
            holds = self._value(condition.nest, condition.value, inside)
            pair = (bias, low) if condition.shown else (low, bias)
            bias = builder.select(holds, *pair)
        return builder.binary(arith.AddfOp, value, bias) if added else bias

    def _left_of(self, condition: Condition) -> tuple[Condition, ...]:
        """Returns the parts of a condition that can fail in the current blocks."""
        if self.whole and self.limits.rest is not None:
            return self.limits.rest[condition]
        return (condition,)

    def _factor_of_scores(self, builder: BlockBuilder) -> SSAValue:
        return builder.const(self.score.factor * LOG2_E, Float32Type())

    def _floor(self, builder: BlockBuilder, most: SSAValue) -> SSAValue:
        """Returns the value subtracted from exponents, for a maximum of unscaled scores; the least number if that is
        -inf. It is scaled if exponents are multiply-adds."""
        if self.fused:
            most = builder.binary(arith.MulfOp, most, self._factor_of_scores(builder))
        return builder.binary(arith.MaximumfOp, most, builder.const(LEAST_NUMBER, Float32Type()))

    def _power(self, builder: BlockBuilder, score: SSAValue, floor: SSAValue) -> SSAValue:
        """Returns the exponential of unscaled scores, relative to a floor."""
        factor = self._factor_of_scores(builder)
        if not self.fused:
            difference = builder.binary(arith.SubfOp, score, floor)
            return builder.add(math.Exp2Op(builder.binary(arith.MulfOp, difference, factor)))
        below = builder.binary(arith.SubfOp, builder.const(0.0, Float32Type()), floor)
        score, factor, below = builder.together([score, factor, below])
        return builder.add(math.Exp2Op(builder.add(math.FmaOp(score, factor, below))))

    def _fall(self, builder: BlockBuilder, before: SSAValue, floor: SSAValue) -> SSAValue:
        """Returns the factor of sums for a floor that has grown."""
        difference = builder.binary(arith.SubfOp, before, floor)
        if not self.fused:
            difference = builder.binary(arith.MulfOp, difference, self._factor_of_scores(builder))
        return builder.add(math.Exp2Op(difference))

    def _natural(self, builder: BlockBuilder, most: SSAValue) -> SSAValue:
        """Returns the maximum of the scores for the maximum of unscaled ones."""
        made = most
        if self.score.factor != 1:
            made = builder.binary(arith.MulfOp, most, builder.const(self.score.factor, Float32Type()))
        if self.score.low is None:
            return made
        hidden = builder.shaped(builder.const(self.hidden, Float32Type()), tt.shape_of(most.type))
        all_hidden = builder.add(CmpfOp(most, hidden, "oeq"))
        return builder.select(all_hidden, builder.const(self.score.low, Float32Type()), made)

    def _bare(self, value: SSAValue, weights: Weights, inside: Scope) -> SSAValue:
        """Returns the weights without the factors of rows."""
        if value in inside.values:
            return inside.values[value]
        op = value.owner
        assert isinstance(op, Operation)
        if isinstance(op, ReadOp):
            source = op.source.owner
            assert isinstance(source, NestOp)
            index = list(source.outputs).index(op.source)  # pyright: ignore[reportArgumentType]
            made = self._bare(source.yield_op.clauses[index].value, weights, inside)
        elif isinstance(op, (arith.ExtFOp, arith.TruncFOp)):
            bare = self._bare(op.operands[0], weights, inside)
            made = inside.builder.cast(type(op), bare, value.type)
        else:
            factors = {factor.value for factor in weights.factors}
            (rest,) = [v for v in op.operands if v not in factors]
            made = self._bare(rest, weights, inside)
        inside.values[value] = made
        return made

    def _finish_sums(self, kept: Sequence[SSAValue], scope: Scope) -> None:
        """Applies the remaining work per row: exp(m - floor) and the factors."""
        attention, builder = self.attention, scope.builder
        most, *sums, total = kept
        top, most = attention.top.outputs[0], self._natural(builder, most)
        self.folded[top] = most
        if top in self.stored:
            self._store(attention.top, most, top, attention.top.yield_op.clauses[0].subscripts, scope)
        found = attention.weights[-1][1]
        floor = self._value(found.nest, found.floor, scope)
        least = builder.const(LEAST_NUMBER, Float32Type())
        most = builder.binary(arith.MaximumfOp, most, least)
        scale = builder.add(math.ExpOp(builder.binary(arith.SubfOp, most, floor)))
        for (nest, weights), value in zip(attention.weights, (*sums, total), strict=True):
            scaled = builder.binary(arith.MulfOp, value, scale)
            for factor in weights.factors:
                row = self._value(factor.nest, factor.value, scope)
                if tt.element_type(row.type) != Float32Type():
                    row = builder.widened(row)
                scaled = builder.binary(arith.DivfOp if factor.divides else arith.MulfOp, scaled, row)
            scaled = self._or_nothing(scaled, builder, scope)
            self.folded[nest.outputs[0]] = scaled
            if nest.outputs[0] in self.stored:
                self._store(nest, scaled, nest.outputs[0], nest.yield_op.clauses[0].subscripts, scope)

    def _or_nothing(self, value: SSAValue, builder: BlockBuilder, scope: Scope) -> SSAValue:
        """Returns `value`, or 0 for a sum over no keys."""
        extent = self.group.dims[self.at.keys]
        if extent.constant:
            return value
        some = builder.binary(lambda a, b: CmpiOp(a, b, "sgt"), builder.expr(extent, scope.index), builder.number(0))
        return builder.select(some, value, builder.const(0.0, Float32Type()))

    # -- values -------------------------------------------------------------------------------------------------------

    def _factor(self, nest: NestOp, wanted: SSAValue, laned: tuple[str, str], depth: str, scope: Scope) -> SSAValue:
        return self.ready[wanted] if wanted in self.ready else super()._factor(nest, wanted, laned, depth, scope)

    def _of_launch(self, source: SSAValue, scope: Scope) -> SSAValue:
        scores = self.attention.scores
        if source is not scores.outputs[0]:
            return super()._of_launch(source, scope)
        if source not in scope.values:
            if scores in self.products:
                made = self._product(scores, self._initial(scores, 0, scope), scope)
            else:
                made = self._scores_without_rows(scope)
            scope.values[source] = made
        return scope.values[source]

    def _scores_without_rows(self, scope: Scope) -> SSAValue:
        """Computes a score for each key of the block."""
        scores, builder = self.attention.scores, scope.builder
        across = self._across((self.at.keys, self.at.depth), scope)
        terms = self._value(scores, scores.yield_op.clauses[0].value, across)
        mask = across.masks.get(self.at.depth)
        if mask is not None:
            terms = builder.select(mask, terms, builder.const(0.0, Float32Type()))
        terms = builder.shaped(terms, tuple(self.by_name[name].lanes for name in across.laned))
        return self._folded(scores, 0, terms, across)
