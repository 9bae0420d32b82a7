"""Unique: the distinct elements of a tensor, or its distinct slices along an axis (docs/explanation/values.md).

Their places are sorted by merging (stable, bottom-up: J. von Neumann's, as in D. E. Knuth, TAOCP 3, 5.2.4), so that the
first of equal items comes first. NaN is equal to NaN, and greater than everything else, as in ONNX's evaluator; in ONNX
Runtime's search tree, the result of comparing a NaN depends on the other elements. A separate counting node, which also
sorts, counts the distinct items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from igniter.dialects.onnx.bound import BOUND_DOMAIN, COUNT_DOMAIN
from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.ops.pointwise import computed_reason
from igniter.dialects.onnx.ops.rules import element_type, infos, input_dims, legal, normal_axis, operand_dims
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, product

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering.procedure import Procedure

LEVELS = 64
"""An upper bound of the levels of a merge sort."""


def _axis(op: OnnxOp, rank: int) -> int | None:
    given = op.attributes.get("axis")
    return None if given is None else normal_axis(int(op.attr("axis")), rank)


def items(op: OnnxOp, dims: Dims) -> Dims:
    """Returns the dims of the tensor as three: the compared items are its slices along the second."""
    axis = _axis(op, len(dims))
    if axis is None:
        return (ONE, product(dims), ONE)
    return (product(dims[:axis]), dims[axis], product(dims[axis + 1 :]))


def _infer(ctx: InferContext) -> list[TensorInfo]:
    dims, values = input_dims(ctx, 0), input_dims(ctx, 1)
    element = element_type(ctx)
    if dims is None or values is None:
        return [TensorInfo(element, None), *infos(i64, None, None, None)]
    axis = _axis(ctx.op, len(dims))
    found = [values[1]] if axis is None else [*dims[:axis], values[1], *dims[axis + 1 :]]
    return [TensorInfo(element, tuple(found)), *infos(i64, [values[1]], [items(ctx.op, dims)[1]], [values[1]])]


class _Items:
    """The items of a tensor in a procedure, and their order."""

    def __init__(self, p: Procedure, source: SSAValue, dims: Dims):
        self.p = p
        self.source = source
        self.outer, self.count, self.inner = dims

    @property
    def are_single(self) -> bool:
        """True if an item is one element."""
        return self.outer == self.inner == ONE

    def compare(self, a: Scalar, b: Scalar) -> Scalar:
        """Returns -1 if item `a` comes before item `b`, 1 if it comes after it, 0 if they are equal."""
        p = self.p
        if self.are_single:
            x, y = (p.load(self.source, [ZERO, item, ZERO]) for item in (a, b))
            return _less(y, x).to(i64) - _less(x, y).to(i64)
        sign, going = p.variable(p.const(0, i64), "sign"), p.variable(p.const(1, i64), "equal")
        with p.sequential(self.outer, going=going) as o, p.sequential(self.inner, going=going) as k:
            x, y = (p.load(self.source, [o, item, k]) for item in (a, b))
            less, more = _less(x, y).to(i64), _less(y, x).to(i64)
            sign.set(more - less)
            going.set(1 - (more | less))
        return sign.get()

    def sorted(self) -> tuple[SSAValue, Scalar]:
        """Returns a buffer of two rows, and the row with the sorted places of the items."""
        p, count = self.p, self.count
        order = p.local(i64, [2, count], "order")
        with p.loop(count) as t:
            p.store(p.index(t), order, [ZERO, t])
        row, width = p.variable(p.const(0, i64), "row"), p.variable(p.const(1, i64), "width")
        going = p.variable(p.index(count) > 1, "going")
        with p.sequential(LEVELS, going=going):
            self._merge(order, row.get(), width.get())
            row.set(1 - row.get())
            width.set(width.get() + width.get())
            going.set(width.get() < p.index(count))
        return order, row.get()

    def _merge(self, order: SSAValue, row: Scalar, width: Scalar) -> None:
        """Merges each two neighbouring runs of `width` items of a row into the other row."""
        p = self.p
        count = p.index(self.count)
        names = ("left", "middle", "right", "end")
        left, middle, right, end = (p.variable(p.const(0, i64), name) for name in names)
        with p.sequential(self.count) as t:
            here = p.index(t)
            with p.when(here.eq(end.get())):
                left.set(here)
                middle.set((here + width).minimum(count))
                right.set(middle.get())
                end.set((here + width + width).minimum(count))
            both = (left.get() < middle.get()) & (right.get() < end.get())
            mine, other = (p.load(order, [row, place.get()]) for place in (left, right))
            takes = p.variable(left.get() < middle.get(), "takes")
            # For single elements, a superfluous comparison is cheaper than an unpredictable branch.
            with nullcontext() if self.are_single else p.when(both):
                takes.set(both.select(self.compare(other, mine) >= 0, takes.get()))
            taken = takes.get()
            p.store(taken.select(mine, other), order, [1 - row, t])
            left.set(left.get() + taken.to(i64))
            right.set(right.get() + (~taken).to(i64))

    def groups(self, visit: Callable[[Scalar, Scalar, Scalar], None]) -> None:
        """Calls `visit` for every item in order: with the item, the first equal item, and true if it is that one."""
        p = self.p
        order, row = self.sorted()
        first = p.variable(p.const(0, i64), "first")
        with p.sequential(self.count) as t:
            item = p.load(order, [row, t])
            new = p.variable(p.index(t).eq(0), "new")
            with p.when(~new.get()):
                new.set(self.compare(first.get(), item).ne(0))
            first.set(new.get().select(item, first.get()))
            visit(item, first.get(), new.get())


def _less(x: Scalar, y: Scalar) -> Scalar:
    less = x < y
    return less | (y.is_nan() & ~x.is_nan()) if x.is_float else less


def _count(ctx: Lowering) -> list[SSAValue]:
    dims = items(ctx.op, ctx.dims(0))
    p = ctx.procedure([ctx.view(ctx.required(0), dims)], [ctx.output_type()], part="count")
    total = p.variable(p.const(0, i64), "total")
    _Items(p, p.buffers[0], dims).groups(lambda item, first, new: total.set(total.get() + new.to(i64)))
    p.store(total.get(), p.buffers[1], [ZERO])
    return list(p.end())


def _lower(ctx: Lowering) -> list[SSAValue | None]:
    """Computes the places of the kept items, the group of each item and the size of each group;
    then gathers the items."""
    x, dims = ctx.required(0), ctx.dims(0)
    whole = items(ctx.op, dims)
    kept = ctx.out_dims()[_axis(ctx.op, len(dims)) or 0]
    groups = tensor_of(i64, [kept])
    p = ctx.procedure([ctx.view(x, whole)], [groups, tensor_of(i64, [whole[1]]), groups])
    source, places, inverse, counts = p.buffers
    number = p.variable(p.const(0, i64), "number")

    def note(item: Scalar, group: Scalar, new: Scalar) -> None:
        """Records one more item of a group, the first one if it is new."""
        with p.when(new):
            p.store(item, places, [group])
        p.store(group, inverse, [item])
        p.store(new.select(p.const(1, i64), p.load(counts, [group]) + 1), counts, [group])

    if ctx.attr("sorted", 1):

        def visit(item: Scalar, first: Scalar, new: Scalar) -> None:
            number.set(number.get() + new.to(i64))
            note(item, number.get() - 1, new)

        _Items(p, source, whole).groups(visit)
    else:
        firsts, ranks = p.local(i64, [whole[1]], "firsts"), p.local(i64, [whole[1]], "ranks")
        _Items(p, source, whole).groups(lambda item, first, new: p.store(first, firsts, [item]))
        with p.sequential(whole[1]) as t:
            first = p.load(firsts, [t])
            new = first.eq(p.index(t))
            with p.when(new):
                p.store(number.get(), ranks, [t])
                number.set(number.get() + 1)
            note(p.index(t), p.load(ranks, [first]), new)
    taken, given, sizes = p.end()
    flat = ctx.view(x, whole)

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        return nest.read_inside(flat, [i[0], nest.read(taken, [i[1]]), i[2]])

    y = ctx.generate([whole[0], kept, whole[2]], point)
    rest = [value if ctx.wants(k) else None for k, value in ((1, taken), (2, given), (3, sizes))]
    return [ctx.view(y, ctx.out_dims()), *rest]


def _flops(op: OnnxOp) -> Expr:
    """32 × elements of the input: comparisons of a sort"""
    outer, count, inner = items(op, operand_dims(op, 0))
    return outer * count * inner * 32


SPECS: list[OpSpec] = [
    OpSpec(f"{BOUND_DOMAIN}.Unique", _infer, lower=_lower, legal=legal(computed_reason), flops=_flops),
    OpSpec(
        f"{COUNT_DOMAIN}.Unique",
        lambda ctx: infos(i64, [ONE]),
        lower=_count,
        legal=legal(computed_reason),
        flops=_flops,
    ),
]
