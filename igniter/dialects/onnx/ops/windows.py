"""Ops that take windows of tensors, or put windows together: Slice, Split, Concat, Pad."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from igniter.analysis.expr import ONE, ZERO, Expr, floordiv, is_nonneg, maximum, minimum, mod
from igniter.dialects.onnx.ops.rules import (
    INFINITE,
    attr_or_input,
    constants,
    counted,
    element_type,
    infos,
    input_dims,
    is_sure,
    known,
    legal,
    normal_axis,
    operand,
    operand_dims,
    tidy,
    unknown_rank,
)
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of
from igniter.transforms.lowering import Lowering, Nest, Scalar

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

# -- Slice ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Window:
    """What a Slice takes along one axis: element `first + i*step` for `i` in 0..`count`."""

    first: Expr
    step: int
    count: Expr


def window(dim: Expr, start: Expr, end: Expr, step: int) -> Window | str:
    """The window of one axis, clamped as ONNX does; or why it is not known."""
    if not is_sure(start) or not is_sure(end):
        return f"the sign of {start if not is_sure(start) else end} is not known"

    def counted_from_front(value: Expr) -> Expr:
        if value.constant is not None and abs(value.constant) >= INFINITE:
            return dim + 1 if value.constant > 0 else Expr.of(-2)
        return value if is_nonneg(value) else value + dim

    first, last = counted_from_front(start), counted_from_front(end)
    if step > 0:
        first, last = tidy(maximum(first, ZERO)), tidy(minimum(maximum(last, ZERO), dim))
        return Window(first, step, counted(last - first, step))
    if first != dim - 1:
        first = minimum(maximum(first, ZERO), dim - 1)
    first, last = tidy(first), tidy(maximum(last, Expr.of(-1)))
    return Window(first, step, counted(first - last, -step))


def slice_windows(op: OnnxOp, dims: Dims, values: Sequence[Dims | None]) -> dict[int, Window] | str:
    """The windows of the axes that a Slice names; `values` are what is known of operands 1 to 4."""
    starts, ends = (attr_or_input(op, name, v) for name, v in zip(("starts", "ends"), values, strict=False))
    if starts is None or ends is None:
        return "its starts and ends are only known when it runs"
    places, steps = (
        constants(attr_or_input(op, name, v)) for name, v in zip(("axes", "steps"), values[2:], strict=True)
    )
    for index, found in ((3, places), (4, steps)):
        if found is None and operand(op, index) is not None:
            return "its axes or steps are only known when it runs"
    places = list(range(len(starts))) if places is None else places
    steps = [1] * len(starts) if steps is None else steps
    found_windows: dict[int, Window] = {}
    for axis, start, end, step in zip(places, starts, ends, steps, strict=True):
        axis = normal_axis(axis, len(dims))
        made = window(dims[axis], start, end, step)
        if isinstance(made, str):
            return made
        found_windows[axis] = made
    return found_windows


def infer_slice(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    if dims is None:
        return unknown_rank(ctx)
    found = slice_windows(ctx.op, dims, [ctx.values(k) for k in range(1, 5)])
    if isinstance(found, str):
        places = constants(attr_or_input(ctx.op, "axes", ctx.values(3)))
        cut = set(range(len(dims))) if places is None else {normal_axis(a, len(dims)) for a in places}
        return infos(element_type(ctx), [ctx.fresh(f"slice_{k}") if k in cut else d for k, d in enumerate(dims)])
    return infos(element_type(ctx), [found[k].count if k in found else d for k, d in enumerate(dims)])


def slice_reason(op: OnnxOp) -> str | None:
    found = slice_windows(op, operand_dims(op, 0), [known(op, k) for k in range(1, 5)])
    if isinstance(found, str):
        return found
    # Shape inference may take for granted that a window is inside of its table (512 rows hold the sequence, or the Add
    # behind it would fail). The kernel cannot check that, and would read past the table; ORT's Slice clamps, and the
    # region behind it then refuses the dims.
    for axis, made in found.items():
        taken = dims_of(op.results[0].type)[axis]
        if taken != made.count:
            return f"it takes {made.count} of axis {axis}, which is {taken} only if the model's dims allow it"
    return None


def lower_slice(ctx: Lowering) -> list[SSAValue]:
    x, dims = ctx.required(0), ctx.dims(0)
    found = slice_windows(ctx.op, dims, [ctx.values(k) for k in range(1, 5)])
    if isinstance(found, str):
        raise ctx.fail(found)
    if all(w.step == 1 and w.first == ZERO and w.count == dims[k] for k, w in found.items()):
        return [x]

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        return nest.read(x, [found[k].first + e * found[k].step if k in found else e for k, e in enumerate(i)])

    return [ctx.generate(ctx.out_dims(), point)]


# -- Concat, Split ----------------------------------------------------------------------------------------------------


def infer_concat(ctx: InferContext) -> list[TensorInfo]:
    shapes = [input_dims(ctx, k) for k in range(len(ctx.op.inputs))]
    ranked = [s for s in shapes if s is not None]
    if not ranked:
        return unknown_rank(ctx)
    axis = normal_axis(ctx.op.attr("axis", 1), len(ranked[0]))
    result = list(ranked[0])
    for other in ranked[1:]:
        for k, dim in enumerate(other):
            if k != axis:
                ctx.equate(result[k], dim)
                # A known integer says more than a symbol.
                result[k] = dim if result[k].constant is None and dim.constant is not None else result[k]
    joined = len(ranked) == len(shapes)
    result[axis] = sum((s[axis] for s in ranked), start=ZERO) if joined else ctx.fresh("concat")
    return infos(element_type(ctx), result)


def concat_reason(op: OnnxOp) -> str | None:
    shapes = [operand_dims(op, k) for k in range(len(op.inputs))]
    axis = normal_axis(op.attr("axis", 1), len(shapes[0]))
    for shape in shapes[1:]:
        for k, (a, b) in enumerate(zip(shapes[0], shape, strict=True)):
            if k != axis and a != b:
                return f"that its inputs agree along axis {k} ({a} and {b}) is not known"
    return None


def lower_concat(ctx: Lowering) -> list[SSAValue]:
    axis = normal_axis(ctx.attr("axis", 1), len(ctx.out_dims()))
    parts: list[tuple[SSAValue, Expr, Expr]] = []
    offset = ZERO
    for k, tensor in enumerate(ctx.inputs):
        size = ctx.dims(k)[axis]
        if size != ZERO:
            parts.append((tensor, offset, size))
        offset = offset + size
    if not parts:
        return [ctx.generate(ctx.out_dims(), lambda nest, i: nest.const(0, ctx.out_element()))]
    if len(parts) == 1:
        return [ctx.view(parts[0][0], ctx.out_dims())]

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        value: Scalar | None = None
        for tensor, first, size in reversed(parts):
            at = i[axis] - first
            # The last read is guarded from below, the others from above, those in between by the order they stand in.
            guards = [at] if value is None else [size - 1 - at, *([at] if first != ZERO else [])]
            subscripts = [*i[:axis], at, *i[axis + 1 :]]
            value = nest.read(tensor, subscripts, guards=guards, otherwise=value)
        assert value is not None
        return value

    return [ctx.generate(ctx.out_dims(), point)]


def split_sizes(op: OnnxOp, dim: Expr, values: Dims | None) -> list[Expr] | str:
    """The sizes of the parts; or why they are not known."""
    count = len(op.results)
    given = attr_or_input(op, "split", values)
    if given is not None:
        return list(given)
    if operand(op, 1) is not None:
        return "its split is only known when it runs"
    size = tidy(floordiv(dim + (count - 1), Expr.of(count)))
    last = tidy(dim - size * (count - 1))
    if last.constant is not None and last.constant < 0:
        return f"{dim} elements do not make {count} parts"
    return [size] * (count - 1) + [last]


def infer_split(ctx: InferContext) -> list[TensorInfo]:
    dims, count = input_dims(ctx, 0), len(ctx.op.results)
    if dims is None:
        return [TensorInfo(element_type(ctx), None)] * count
    axis = normal_axis(ctx.op.attr("axis", 0), len(dims))
    sizes = split_sizes(ctx.op, dims[axis], ctx.values(1))
    if isinstance(sizes, str):
        sizes = [ctx.fresh(f"split_{k}") for k in range(count)]
    return infos(element_type(ctx), *([*dims[:axis], size, *dims[axis + 1 :]] for size in sizes))


def split_reason(op: OnnxOp) -> str | None:
    dims = operand_dims(op, 0)
    sizes = split_sizes(op, dims[normal_axis(op.attr("axis", 0), len(dims))], known(op, 1))
    return sizes if isinstance(sizes, str) else None


def lower_split(ctx: Lowering) -> list[SSAValue | None]:
    x, dims = ctx.required(0), ctx.dims(0)
    axis = normal_axis(ctx.attr("axis", 0), len(dims))
    sizes = split_sizes(ctx.op, dims[axis], ctx.values(1))
    if isinstance(sizes, str):
        raise ctx.fail(sizes)
    made: list[SSAValue | None] = []
    first = ZERO
    for k, size in enumerate(sizes):

        def point(nest: Nest, i: Sequence[Expr], first: Expr = first) -> Scalar:
            return nest.read(x, [e + first if d == axis else e for d, e in enumerate(i)])

        made.append(ctx.generate(ctx.out_dims(k), point, part=str(k)) if ctx.wants(k) else None)
        first = first + size
    return made


# -- Pad --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Padding:
    """What a Pad does along one axis: `low` and `high` elements are added, or taken away where they are negative."""

    low: Expr
    high: Expr


def paddings(op: OnnxOp, rank: int, values: Sequence[Dims | None]) -> list[Padding] | str:
    """The padding of every axis; `values` are what is known of operands 1 and 3."""
    name = "pads" if op.opset >= 2 else "paddings"
    pads = attr_or_input(op, name, values[0])
    if pads is None:
        return "its pads are only known when it runs"
    places = constants(values[1])
    if places is None and operand(op, 3) is not None:
        return "its axes are only known when it runs"
    places = list(range(rank)) if places is None else [normal_axis(a, rank) for a in places]
    found = [Padding(ZERO, ZERO)] * rank
    for k, axis in enumerate(places):
        found[axis] = Padding(pads[k], pads[k + len(places)])
    for padding in found:
        for amount in (padding.low, padding.high):
            if not is_sure(amount):
                return f"the sign of {amount} is not known"
    return found


def infer_pad(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    if dims is None:
        return unknown_rank(ctx)
    found = paddings(ctx.op, len(dims), [ctx.values(1), ctx.values(3)])
    if isinstance(found, str):
        return infos(element_type(ctx), [ctx.fresh(f"pad_{k}") for k in range(len(dims))])
    return infos(element_type(ctx), [tidy(d + p.low + p.high) for d, p in zip(dims, found, strict=True)])


def pad_slow(op: OnnxOp, estimate: Callable[[Expr], int]) -> str | None:
    return "a wrapped index is a remainder for every element" if op.attr("mode", "constant") == "wrap" else None


def pad_reason(op: OnnxOp) -> str | None:
    found = paddings(op, len(operand_dims(op, 0)), [known(op, 1), known(op, 3)])
    if isinstance(found, str):
        return found
    mode = op.attr("mode", "constant")
    return None if mode in ("constant", "reflect", "edge", "wrap") else f"mode '{mode}' is not known"


def lower_pad(ctx: Lowering) -> list[SSAValue]:
    x, dims = ctx.required(0), ctx.dims(0)
    found = paddings(ctx.op, len(dims), [ctx.values(1), ctx.values(3)])
    if isinstance(found, str):
        raise ctx.fail(found)
    mode = ctx.attr("mode", "constant")
    fill = ctx.input(2)

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        subscripts: list[Expr] = []
        guards: list[Expr] = []
        for dim, padding, e in zip(dims, found, i, strict=True):
            # Negative pads take elements away first; the mode then extends what is left.
            first = ZERO if is_nonneg(padding.low) else -padding.low
            size = dim - first + (ZERO if is_nonneg(padding.high) else padding.high)
            at = e - (padding.low if is_nonneg(padding.low) else ZERO)
            padded = (padding.low, padding.high) != (ZERO, ZERO)
            if mode == "constant":
                guards += [at] if padding.low != ZERO and is_nonneg(padding.low) else []
                guards += [size - 1 - at] if padding.high != ZERO and is_nonneg(padding.high) else []
            elif padded:
                at = extended(mode, at, size, padding)
            subscripts.append(first + at)
        otherwise = None
        if fill is not None:
            otherwise = nest.read(fill, [ZERO] * len(ctx.dims(2)))
        elif ctx.op.opset < 11 and ctx.attr("value", 0.0):
            otherwise = nest.const(ctx.attr("value", 0.0), ctx.out_element())
        return nest.read(x, subscripts, guards=guards, otherwise=otherwise if guards else None)

    return [ctx.generate(ctx.out_dims(), point)]


def extended(mode: str, at: Expr, size: Expr, padding: Padding) -> Expr:
    """Where position `at`, inside or outside of `size` elements, finds its element."""
    if mode == "edge":
        return maximum(minimum(at, size - 1), ZERO)
    if mode == "wrap":
        return mod(at, size)
    if size == ONE:
        return ZERO
    longest = max(p.constant if p.constant is not None else 0 for p in (padding.low, padding.high))
    if size.constant is not None and longest >= size.constant:
        # Reflected more than once.
        at = mod(at, 2 * (size - 1))
        return minimum(at, 2 * (size - 1) - at)
    at = maximum(at, -at) if padding.low != ZERO else at
    return minimum(at, 2 * (size - 1) - at) if padding.high != ZERO else at


SPECS: list[OpSpec] = [
    OpSpec("Concat", infer_concat, lower=lower_concat, legal=legal(concat_reason), kind="movement"),
    OpSpec("Pad", infer_pad, lower=lower_pad, legal=legal(pad_reason), slow=pad_slow, kind="movement"),
    OpSpec("Slice", infer_slice, lower=lower_slice, legal=legal(slice_reason), kind="movement"),
    OpSpec("Split", infer_split, lower=lower_split, legal=legal(split_reason), kind="movement"),
]
