"""TopK: the greatest or the least elements along an axis, with their places.

A binary heap holds the best `k` so far, the worst at the root: rejecting an element costs one comparison. Ties prefer
the lower index, and a NaN is greater than any number, as in ONNX Runtime since 1.32. The heap is built in ONNX
Runtime's order (elements from the back to the front, then one after the other), so that the order of an unsorted result
is the same too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from igniter.dialects.loop import TopAttr
from igniter.dialects.onnx.ops.counts import counted
from igniter.dialects.onnx.ops.pointwise import computed_reason
from igniter.dialects.onnx.ops.rules import element_type, input_dims, known, legal, normal_axis, operand_dims
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of, tensor_of
from igniter.dialects.sym.expr import ZERO, Expr, maximum, minimum, product
from igniter.dialects.sym.requirements import Requirement, at_most

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering import Lowering, Scalar
    from igniter.dialects.onnx.lowering.procedure import Procedure, Variable

DEPTH = 64
"""An upper bound of the levels of a heap."""

BLOCK = 128
"""The number of elements compared with the worst one at once, before any is processed individually."""

HEAP_EXPONENT = 0.725
"""The exponent of ORT's choice of algorithm: a heap if `k` is below this power of the dim, and otherwise one whose
order differs only in unsorted results."""


def _count(op: OnnxOp, values: Dims | None) -> Expr | None:
    """Returns `k`; None if it is unknown."""
    given = op.attributes.get("k")
    if given is not None:
        return Expr.of(int(op.attr("k")))
    return values[0] if values else None


def infer_top_k(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    if dims is None:
        return [TensorInfo(element_type(ctx), None), TensorInfo(i64, None)]
    axis = normal_axis(ctx.op.attr("axis", -1), len(dims))
    k = _count(ctx.op, ctx.values(1))
    found = (*dims[:axis], ctx.fresh("k") if k is None else k, *dims[axis + 1 :])
    return [TensorInfo(element_type(ctx), found), TensorInfo(i64, found)]


@dataclass(frozen=True)
class Heap:
    """A heap of elements and their places; the worst is at 0, and a parent never beats a child."""

    p: Procedure
    values: SSAValue
    places: SSAValue
    largest: bool

    def at(self, index: Scalar) -> tuple[Scalar, Scalar]:
        return self.p.load(self.values, [index]), self.p.load(self.places, [index])

    def put(self, index: Scalar, entry: tuple[Scalar, Scalar]) -> None:
        self.p.store(entry[0], self.values, [index])
        self.p.store(entry[1], self.places, [index])

    def better(self, a: Scalar, b: Scalar) -> Scalar:
        """Returns true if the element `a` is preferred to `b`, in an order with NaN as the greatest."""
        if not a.is_float:
            return a > b if self.largest else a < b
        # Comparisons with NaN are false, so their negation is true for a NaN on either side.
        return ~(a <= b) & ~b.is_nan() if self.largest else ~(a >= b) & ~a.is_nan()

    def beats(self, a: tuple[Scalar, Scalar], b: tuple[Scalar, Scalar]) -> Scalar:
        return self.better(a[0], b[0]) | (~self.better(b[0], a[0]) & (a[1] < b[1]))

    def sift(self, start: Scalar, size: Scalar) -> None:
        """Moves the entry at `start` down, past every child that it beats; the worse child moves up."""
        p = self.p
        mine = self.at(start)
        at, going = p.variable(start, "at"), p.variable(p.true(), "going")
        with p.sequential(DEPTH, going=going):
            here = at.get()
            left = here + here + 1
            right = left + 1
            lefts, rights = self.at(left), self.at(right)
            beats_left = (left < size) & self.beats(mine, lefts)
            has_right = right < size
            goes_left = beats_left & (~has_right | self.beats(rights, lefts))
            goes_right = has_right & ~goes_left & (beats_left | self.beats(mine, rights))
            going.set(goes_left | goes_right)
            with p.when(goes_left | goes_right):
                self.put(here, (goes_left.select(lefts[0], rights[0]), goes_left.select(lefts[1], rights[1])))
                at.set(goes_left.select(left, right))
        self.put(at.get(), mine)


def lower_top_k(ctx: Lowering) -> list[SSAValue]:
    dims, out = ctx.dims(0), ctx.out_dims()
    axis = normal_axis(ctx.attr("axis", -1), len(dims))
    shape = (product(dims[:axis]), dims[axis], product(dims[axis + 1 :]))
    k = out[axis]
    kept = (shape[0], k, shape[2])
    p = ctx.procedure([ctx.view(ctx.required(0), shape)], [tensor_of(ctx.element(0), kept), tensor_of(i64, kept)])
    source, values, places = p.buffers
    i, j = p.parallel(shape[0]), p.parallel(shape[2])
    heap = Heap(p, p.local(ctx.element(0), [k], "values"), p.local(i64, [k], "places"), bool(ctx.attr("largest", 1)))
    size, zero = p.index(k), p.const(0, i64)
    with p.sequential(minimum(k, shape[1])) as t:
        at = p.index(k - 1 - t)
        heap.put(at, (p.load(source, [i, t, j]), p.index(t)))
        heap.sift(at, size)
    top = p.variable(heap.at(zero)[0], "top")

    def offer(t: Expr, guards: Sequence[Expr] = ()) -> None:
        worst = top.get()
        value = p.load(source, [i, t, j], guards=guards, otherwise=worst)
        with p.when(heap.better(value, worst)):
            heap.put(zero, (value, p.index(t)))
            heap.sift(zero, size)
            top.set(heap.at(zero)[0])

    if shape[2] == 1:
        _offer_blocks(p, heap, top, source, i, k, shape[1], offer)
    else:
        with p.sequential(shape[1], k) as t:
            offer(t)
    by_heap = None if ctx.attr("sorted", 1) else _heap_guard(k, shape[1])
    if by_heap is not None:
        with p.when(by_heap), p.loop(k) as t:
            value, place = heap.at(p.index(t))
            p.store(value, values, [i, t, j])
            p.store(place, places, [i, t, j])
    with p.when(*([-1 - by_heap] if by_heap is not None else [])), p.sequential(k) as t:
        last = k - 1 - t
        value, place = heap.at(zero)
        p.store(value, values, [i, last, j])
        p.store(place, places, [i, last, j])
        heap.put(zero, heap.at(p.index(last)))
        heap.sift(zero, p.index(last))
    # An unsorted result has the order of ONNX Runtime's heap.
    ordered = ctx.attr("sorted", 1) or k == 1
    computes = TopAttr("largest" if heap.largest else "smallest") if ordered else None
    return [ctx.view(made, out) for made in p.end(computes)]


def _offer_blocks(
    p: Procedure,
    heap: Heap,
    top: Variable,
    source: SSAValue,
    row: Expr,
    first: Expr,
    end: Expr,
    offer: Callable[[Expr, Sequence[Expr]], None],
) -> None:
    """Offers the elements from `first` on, in blocks; skips blocks without an element better than
    the worst one kept."""
    with p.sequential(maximum(end - first, ZERO).ceildiv(BLOCK)) as block:
        begin = first + block * BLOCK
        found = p.variable(p.const(0, i32), "found")
        worst = top.get()
        with p.fold(BLOCK) as lane:
            at = begin + lane
            value = p.load(source, [row, at, ZERO], guards=[end - 1 - at], otherwise=worst)
            better = heap.better(value, worst)
            p.accumulate("max", better.select(p.const(1, i32), p.const(0, i32)), found.buffer, [])
        with p.when(found.get().ne(0)), p.sequential(BLOCK) as lane:
            offer(begin + lane, [end - 1 - begin - lane])


def _heap_guard(k: Expr, dim: Expr) -> Expr | None:
    """Returns an expression that is >= 0 if ORT selects with a heap; None if `dim` alone does not decide."""
    if k.constant is None:
        return None
    if k.constant in (2, 3):
        return Expr.of(0)
    return dim - math.floor(max(k.constant, 1) ** (1 / HEAP_EXPONENT)) - 1


def _reason(op: OnnxOp) -> str | None:
    if not operand_dims(op, 0):
        return "it has no axis to run along"
    if _count(op, known(op, 1)) is None:
        return "its k is known only at run time"
    return None


def _requires(op: OnnxOp) -> list[Requirement]:
    axis = normal_axis(op.attr("axis", -1), len(operand_dims(op, 0)))
    k = dims_of(op.results[0].type)[axis]
    return [at_most(k, operand_dims(op, 0)[axis], "its k is greater than the dim"), at_most(0, k, "its k is negative")]


SPECS: list[OpSpec] = [
    OpSpec(
        "TopK",
        infer_top_k,
        lower=lower_top_k,
        legal=legal(computed_reason, _reason),
        requires=_requires,
        flops=counted("4 × elements of the input", lambda op: product(dims_of(op.operands[0].type)) * 4),
        unprofitable=lambda op, estimate: (
            "ONNX Runtime's selection takes two thirds to three quarters of the time of a kernel's heap"
        ),
        unprofitable_by_steps=True,
        kind="reduction",
    ),
]
