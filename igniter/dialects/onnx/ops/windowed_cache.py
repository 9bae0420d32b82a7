"""Caches of a window (`sliding_window_cache` of GroupQueryAttention): the latest keys of a sequence, in C rows.

After T keys the first L(T) rows hold the keys T - L(T) to T - 1, with W the window and G = C - W + 1:

    L(T) = T                              if T <= C
    L(T) = T - G * ceil((T - C) / G)      otherwise

So the rows move by G when the cache is full, and the window stays in it. A run of several tokens can move out keys that
its first queries see; attention therefore reads the rows before the run followed by the new keys,
[min(C, total - new) + new], and the present takes its rows from there. The result is complete before the present is
written, so a caller may pass one buffer as past and present.

The window of a single token is in the present, so a run of one token moves the rows from past to present, in ascending
order, adds the new one, and attention reads the present. In one buffer nothing is moved while the cache is not full.

Attention counts keys by rows: a query at position p has the row p - (T' - L(T')), with T' the keys before the run; of a
single token the last row of the present.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, Expr

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering.context import Subscripts
    from igniter.dialects.onnx.ops.attention_nests import AttentionDims, Heads


def slides(op: OnnxOp) -> bool:
    """True if the cache of an attention holds a window of the keys."""
    return int(op.attr("sliding_window_cache", 0) or 0) == 1


@dataclass(frozen=True)
class Window:
    """The rows of a cache that slides, for each batch element: tensors of i64, [batch]."""

    capacity: Expr
    resident: SSAValue
    """The rows with keys before the run."""
    kept: SSAValue
    """The rows with keys after it."""
    moved: SSAValue
    """The rows that the run moves out."""
    one_token: bool = False
    """True in a kernel for runs of one token: attention reads the present."""

    @staticmethod
    def of(ctx: Lowering, dims: AttentionDims, lengths: SSAValue) -> Window:
        """Returns the rows for lengths that count the keys of each batch element, less one."""
        assert dims.buffer is not None
        capacity, window = dims.buffer, int(ctx.attr("local_window_size", -1))
        ctx.kernel.in_place = True

        def count(nest: Nest, keys: Scalar) -> Scalar:
            over, step = keys - nest.index(capacity), nest.index(capacity - (window - 1)).maximum(1)
            moves = (over + step - 1) / step
            return (over > 0).select(keys - moves * step, keys)

        def keys_of(nest: Nest, at: Subscripts) -> tuple[Scalar, Scalar]:
            after = nest.read(lengths, at).to(i64) + 1
            return (after - nest.index(dims.queries)).maximum(0), after

        def before(nest: Nest, at: Subscripts) -> Scalar:
            return count(nest, keys_of(nest, at)[0])

        def behind(nest: Nest, at: Subscripts) -> Scalar:
            return count(nest, keys_of(nest, at)[1])

        def moved(nest: Nest, at: Subscripts) -> Scalar:
            first, after = keys_of(nest, at)
            return after - first + nest.read(resident, at) - nest.read(kept, at)

        resident = ctx.generate([dims.batch], before, element=i64, part="resident")
        kept = ctx.generate([dims.batch], behind, element=i64, part="kept")
        away = ctx.generate([dims.batch], moved, element=i64, part="moved")
        return Window(capacity, resident, kept, away, ctx.kernel.one_token)

    def before(self, nest: Nest, b: Expr) -> Scalar:
        """Reads how many rows attention reads before the first new row of batch element `b`."""
        rows = nest.read(self.resident, [b])
        return rows - nest.read(self.moved, [b]) if self.one_token else rows

    def updated(self, ctx: Lowering, past: SSAValue, new: Heads, total: Expr, part: str) -> SSAValue:
        """Returns the cache after a run of one token; the first `total` rows are zeros behind its keys. In one buffer
        the other rows are kept."""
        batch, heads, rows, size = dims_of(past.type)
        p = ctx.procedure([past, new.tensor, self.resident, self.moved], [past.type], part=part)
        old, fresh, resident, moved, present = p.buffers
        b, h = p.parallel(batch), p.parallel(heads)
        by = p.load(moved, [b]).maximum(0)
        first = p.load(resident, [b]) - by

        # A row is tested once, before the loop over its elements.
        def move() -> None:
            with p.sequential(first) as s:
                from_, to = p.index(s) + by, p.index(s)
                with p.within((from_, rows), (to, rows)), p.loop(size) as d:
                    p.store(p.load(old, [b, h, from_, d]), present, [b, h, to, d])

        def clear(end: Expr) -> None:
            with p.loop(p.index(end), first + p.index(new.length)) as s:
                to = p.index(s)
                with p.within((to, rows)), p.loop(size) as d:
                    p.store(0, present, [b, h, to, d])

        with p.if_shared(old, present, shared=True):
            with p.when(by > 0):
                move()
            clear(total)
        with p.if_shared(old, present, shared=False):
            move()
            clear(rows)
        with p.loop(new.length) as s:
            to = first + p.index(s)
            with p.within((to, rows)), p.loop(size) as d:
                p.store(p.load(fresh, new.subscripts(b, h, s, d)), present, [b, h, to, d])
        return p.end()[0]

    def present(self, ctx: Lowering, rows: SSAValue, part: str) -> SSAValue:
        """Returns the cache after the run, of the rows that attention reads; rows behind its keys are zeros."""
        batch, heads, total, size = dims_of(rows.type)
        moved, kept = Expr.of("_0"), Expr.of("_1")

        def point(nest: Nest, at: Subscripts) -> Scalar:
            b, h, s, d = at
            from_ = s + moved
            indices = [nest.read(self.moved, [b]), nest.read(self.kept, [b])]
            guards = [kept - ONE - s, from_, total - ONE - from_]
            return nest.read(rows, [b, h, from_, d], guards=guards, indices=indices)

        return ctx.generate([batch, heads, self.capacity, size], point, element=element_of(rows.type), part=part)
