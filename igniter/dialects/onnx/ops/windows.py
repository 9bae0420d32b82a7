"""Ops on windows of tensors: Slice, Split, Concat, Pad."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.ops.rules import (
    INFINITE,
    attr_or_input,
    constants,
    counted,
    element_type,
    equate_length,
    infos,
    input_dims,
    is_never_negative,
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
from igniter.dialects.sym.expr import ONE, ZERO, Expr, floordiv, maximum, minimum, mod, product
from igniter.dialects.sym.ranges import is_nonneg
from igniter.dialects.sym.requirements import Requirement, at_most, equal

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

# -- Slice ------------------------------------------------------------------------------------------------------------


TO_THE_END = ((1 << 31) - 1, (1 << 63) - 1)
"""The ends that mean "to the end" in ONNX Runtime, in either direction; other large ends are clamped to the dim."""


@dataclass(frozen=True)
class Window:
    """The window of a Slice along one axis: element `first + i*step` for `i` in 0..`count`."""

    first: Expr
    step: int
    count: Expr


def window(dim: Expr, start: Expr, end: Expr, step: int) -> Window | str:
    """Returns the window of one axis, clamped as in ONNX; or the reason why it is unknown."""
    if not is_sure(start) or not is_sure(end):
        return f"the sign of {start if not is_sure(start) else end} is not known"

    def counted_from_front(value: Expr) -> Expr:
        if value.constant is not None and abs(value.constant) >= INFINITE:
            return dim + 1 if value.constant > 0 else Expr.of(-2)
        return value if is_never_negative(value) else value + dim

    first, last = counted_from_front(start), counted_from_front(end)
    if step < 0 and end.constant in TO_THE_END:
        last = Expr.of(-1)
    if step > 0:
        first, last = tidy(maximum(first, ZERO)), tidy(minimum(maximum(last, ZERO), dim))
        return Window(first, step, counted(last - first, step))
    if first != dim - 1:
        first = minimum(maximum(first, ZERO), dim - 1)
    first, last = tidy(first), tidy(maximum(last, Expr.of(-1)))
    return Window(first, step, counted(first - last, -step))


def slice_windows(op: OnnxOp, dims: Dims, values: Sequence[Dims | None]) -> dict[int, Window] | str:
    """Returns the windows of the axes of a Slice, or the reason why they are unknown; `values` are the known elements
    of operands 1 to 4."""
    starts, ends = (attr_or_input(op, name, v) for name, v in zip(("starts", "ends"), values, strict=False))
    if starts is None or ends is None:
        return "its starts and ends are known only at run time"
    places, steps = (
        constants(attr_or_input(op, name, v)) for name, v in zip(("axes", "steps"), values[2:], strict=True)
    )
    for index, found in ((3, places), (4, steps)):
        if found is None and operand(op, index) is not None:
            return "its axes or steps are known only at run time"
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
    return found if isinstance(found, str) else None


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
    result = list(reference_part(ranked, axis))
    for part in ranked:
        if is_nonneg(part[axis] - 1):
            for k, dim in enumerate(part):
                if k != axis and is_nonneg(result[axis] - 1) and not _may_be_empty(dim, result[k]):
                    ctx.equate(result[k], dim)
    for k in dims_of_an_empty_first(ranked, axis) if shapes[0] is not None else ():
        result[k] = ctx.fresh("concat")
    joined = len(ranked) == len(shapes)
    result[axis] = sum((s[axis] for s in ranked), start=ZERO) if joined else ctx.fresh("concat")
    return infos(element_type(ctx), result)


def _may_be_empty(dim: Expr, other: Expr) -> bool:
    """True if a dim of an input is 0 or `other`, a non-zero number: ONNX Runtime accepts an empty input of any dims."""
    return dim.constant is None and other.constant is not None and other != ZERO and not is_nonneg(dim - 1)


def dims_of_an_empty_first(parts: Sequence[Dims], axis: int) -> list[int]:
    """Returns the dims of a Concat's result that depend on run-time sizes, because its first input is always empty.

    If all inputs are empty, ONNX Runtime's result has the dims of the first; otherwise those of a non-empty one. The
    two differ if the first input has no places along the axis and its other dims need not equal the others'.
    """
    filled = any(all(is_nonneg(d - 1) for d in p) for p in parts)
    if filled or parts[0][axis] != ZERO:
        return []
    reference = reference_part(parts, axis)
    return [k for k, dim in enumerate(parts[0]) if k != axis and dim != reference[k]]


def concat_reason(op: OnnxOp) -> str | None:
    """Returns a reason for inputs whose dims are compared only at run time, because ONNX Runtime accepts empty ones."""
    parts = [operand_dims(op, k) for k in range(len(op.inputs))]
    result = dims_of(op.results[0].type)
    axis = normal_axis(op.attr("axis", 1), len(result))
    if dims_of_an_empty_first(parts, axis):
        return "its first input is empty, and its dims match the result only if all other inputs are empty too"
    for part in parts:
        if not is_nonneg(part[axis] - 1):
            continue
        for k, dim in enumerate(part):
            if k != axis and _may_be_empty(dim, result[k]):
                return f"an input has the dim {dim}, others have {result[k]}, or it is empty"
    return None


def reference_part(parts: Sequence[Dims], axis: int) -> Dims:
    """Returns the dims of the reference input of a Concat, matched by the other inputs and the result.

    ONNX Runtime uses the first non-empty input, and ignores the other dims of empty ones. An input without places along
    the axis is not used; one with constant dims is preferred to one with symbols.
    """
    there = [p for p in parts if p[axis] != ZERO] or list(parts)
    certain = [p for p in there if all(is_nonneg(d - 1) for d in p)] or [p for p in there if is_nonneg(p[axis] - 1)]
    return max(certain or there, key=lambda p: sum(d.constant is not None for k, d in enumerate(p) if k != axis))


def concat_requires(op: OnnxOp) -> list[Requirement]:
    """Requires equal dims along the other axes for all inputs with places along the axis; ONNX Runtime ignores empty
    inputs."""
    parts = [operand_dims(op, k) for k in range(len(op.inputs))]
    result = dims_of(op.results[0].type)
    axis = normal_axis(op.attr("axis", 1), len(result))
    text = "its inputs have different dims along an axis"
    return [
        equal((dim - result[k]) * part[axis], 0, text)
        for part in parts
        for k, dim in enumerate(part)
        if k != axis and dim != result[k]
    ]


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
            # The last read has a lower guard, the first one an upper guard, and their nesting bounds those in between.
            guards = [at] if value is None else [size - 1 - at, *([at] if first != ZERO else [])]
            subscripts = [*i[:axis], at, *i[axis + 1 :]]
            value = nest.read(tensor, subscripts, guards=guards, otherwise=value)
        assert value is not None
        return value

    return [ctx.generate(ctx.out_dims(), point)]


def split_sizes(op: OnnxOp, dim: Expr, values: Dims | None) -> list[Expr] | str:
    """Returns the sizes of the parts; or the reason why they are unknown."""
    count = len(op.results)
    given = attr_or_input(op, "split", values)
    if given is not None:
        return list(given)
    if operand(op, 1) is not None:
        return "its split is known only at run time"
    size = tidy(floordiv(dim + (count - 1), Expr.of(count)))
    last = tidy(dim - size * (count - 1))
    if last.constant is not None and last.constant < 0:
        return f"{dim} elements cannot be split into {count} parts"
    return [size] * (count - 1) + [last]


def infer_split(ctx: InferContext) -> list[TensorInfo]:
    dims, count = input_dims(ctx, 0), len(ctx.op.results)
    if dims is None:
        return [TensorInfo(element_type(ctx), None)] * count
    axis = normal_axis(ctx.op.attr("axis", 0), len(dims))
    equate_length(ctx, 1, count)
    sizes = split_sizes(ctx.op, dims[axis], ctx.values(1))
    if isinstance(sizes, str):
        sizes = [ctx.fresh(f"split_{k}") for k in range(count)]
    return infos(element_type(ctx), *([*dims[:axis], size, *dims[axis + 1 :]] for size in sizes))


def split_reason(op: OnnxOp) -> str | None:
    dims = operand_dims(op, 0)
    sizes = split_sizes(op, dims[normal_axis(op.attr("axis", 0), len(dims))], known(op, 1))
    return sizes if isinstance(sizes, str) else None


def split_requires(op: OnnxOp) -> list[Requirement]:
    dim = operand_dims(op, 0)[normal_axis(op.attr("axis", 0), len(operand_dims(op, 0)))]
    sizes = split_sizes(op, dim, known(op, 1))
    if isinstance(sizes, str):
        return []
    if attr_or_input(op, "split", known(op, 1)) is not None:
        found = [at_most(0, size, "a size of its split is negative") for size in sizes]
        return [*found, equal(sum(sizes, start=ZERO), dim, "the sizes of its split do not add up to the dim")]
    if op.opset < 18:
        return [equal(sizes[0] * len(sizes), dim, "the input cannot be split evenly")]
    # Before 1.32, ONNX Runtime rejected an empty last part as too small.
    return [at_most(0, sizes[-1], "the dim is too small for the number of outputs")]


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
    """The padding along one axis: `low` and `high` elements are added, or removed if negative."""

    low: Expr
    high: Expr


def paddings(op: OnnxOp, rank: int, values: Sequence[Dims | None]) -> list[Padding] | str:
    """Returns the padding of every axis, or the reason why it is unknown; `values` are the known elements of operands 1
    and 3."""
    name = "pads" if op.opset >= 2 else "paddings"
    pads = attr_or_input(op, name, values[0])
    if pads is None:
        return "its pads are known only at run time"
    places = constants(values[1])
    if places is None and operand(op, 3) is not None:
        return "its axes are known only at run time"
    places = list(range(rank)) if places is None else [normal_axis(a, rank) for a in places]
    found = [Padding(ZERO, ZERO)] * rank
    for k, axis in enumerate(places):
        found[axis] = Padding(pads[k], pads[k + len(places)])
    for padding in found:
        for amount in (padding.low, padding.high):
            if not is_sure(amount):
                return f"the sign of {amount} is not known"
    return found


@dataclass(frozen=True)
class Sides:
    """A padding as non-negative amounts removed and added on each side."""

    cut_low: Expr
    low: Expr
    cut_high: Expr
    high: Expr

    @staticmethod
    def of(padding: Padding) -> Sides:
        """Returns the sides of a padding whose signs are known."""
        low, high = is_never_negative(padding.low), is_never_negative(padding.high)
        return Sides(
            ZERO if low else -padding.low,
            padding.low if low else ZERO,
            ZERO if high else -padding.high,
            padding.high if high else ZERO,
        )


def infer_pad(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    if dims is None:
        return unknown_rank(ctx)
    if ctx.input(3) is None:
        equate_length(ctx, 1, 2 * len(dims))
    found = paddings(ctx.op, len(dims), [ctx.values(1), ctx.values(3)])
    if isinstance(found, str):
        return infos(element_type(ctx), [ctx.fresh(f"pad_{k}") for k in range(len(dims))])
    return infos(element_type(ctx), [tidy(d + p.low + p.high) for d, p in zip(dims, found, strict=True)])


def pad_slow(op: OnnxOp, estimate: Callable[[Expr], int]) -> str | None:
    return "wrapping takes a remainder for every element" if op.attr("mode", "constant") == "wrap" else None


def pad_reason(op: OnnxOp) -> str | None:
    found = paddings(op, len(operand_dims(op, 0)), [known(op, 1), known(op, 3)])
    if isinstance(found, str):
        return found
    mode = op.attr("mode", "constant")
    return None if mode in ("constant", "reflect", "edge", "wrap") else f"unknown mode '{mode}'"


def pad_requires(op: OnnxOp) -> list[Requirement]:
    """Requires elements to copy, except in mode constant; a reflection needs one more than it adds."""
    dims, mode = operand_dims(op, 0), op.attr("mode", "constant")
    found = paddings(op, len(dims), [known(op, 1), known(op, 3)])
    if isinstance(found, str) or mode == "constant":
        return []
    required = [at_most(1, d, "a dim of 0 cannot be wrapped") for d in dims] if mode == "wrap" else []
    for axis, (dim, padding) in enumerate(zip(dims, found, strict=True)):
        added = [p for p in (padding.low, padding.high) if p != ZERO and is_never_negative(p)]
        left = dim + sum((p for p in (padding.low, padding.high) if not is_never_negative(p)), start=ZERO)
        if (padding.low, padding.high) != (ZERO, ZERO) and not (mode == "reflect" and added):
            required.append(at_most(1, left, f"mode '{mode}' cannot pad a dim of 0"))
        if mode == "reflect":
            others = product((*dims[:axis], *dims[axis + 1 :]))
            required += [_reflected(p, left, others) for p in added]
    return required


def _reflected(added: Expr, left: Expr, others: Expr) -> Requirement:
    """Returns the requirement of a reflection: as many elements as it adds. For a tensor without elements ONNX Runtime
    only requires a non-zero dim."""
    text = "the dim is too small for reflection"
    sure = at_most(added, left - 1, text)
    return sure if sure.proven or is_nonneg(others - 1) else at_most(added * minimum(ONE, others), left - 1, text)


def lower_pad(ctx: Lowering) -> list[SSAValue]:
    dims = ctx.dims(0)
    found = paddings(ctx.op, len(dims), [ctx.values(1), ctx.values(3)])
    if isinstance(found, str):
        raise ctx.fail(found)
    return padded(ctx, [Sides.of(p) for p in found])


def padded(ctx: Lowering, sides: Sequence[Sides]) -> list[SSAValue]:
    """Returns the result of a Pad. Negative pads remove elements first; the mode then extends the rest."""
    x, dims = ctx.required(0), ctx.dims(0)
    mode = ctx.attr("mode", "constant")
    fill = ctx.input(2)

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        subscripts: list[Expr] = []
        guards: list[Expr] = []
        for dim, side, e in zip(dims, sides, i, strict=True):
            size = dim - side.cut_low - side.cut_high
            at = e - side.low
            if mode == "constant":
                guards += [at] if side.low != ZERO else []
                guards += [size - 1 - at] if side.high != ZERO else []
            elif side != Sides(ZERO, ZERO, ZERO, ZERO):
                at = extended(mode, at, size, side)
            subscripts.append(side.cut_low + at)
        otherwise = None
        if fill is not None:
            otherwise = nest.read(fill, [ZERO] * len(ctx.dims(2)))
        elif ctx.op.opset < 11 and ctx.attr("value", 0.0):
            otherwise = nest.const(ctx.attr("value", 0.0), ctx.out_element())
        return nest.read(x, subscripts, guards=guards, otherwise=otherwise if guards else None)

    return [ctx.generate(ctx.out_dims(), point)]


def extended(mode: str, at: Expr, size: Expr, padding: Sides) -> Expr:
    """Returns the source position for position `at`, inside or outside `size` elements."""
    if mode == "edge":
        return maximum(minimum(at, size - 1), ZERO)
    if mode == "wrap":
        return mod(at, size)
    if size == ONE:
        return ZERO
    at = maximum(at, -at) if padding.low != ZERO else at
    return minimum(at, 2 * (size - 1) - at) if padding.high != ZERO else at


SPECS: list[OpSpec] = [
    OpSpec(
        "Concat",
        infer_concat,
        lower=lower_concat,
        legal=legal(concat_reason),
        requires=concat_requires,
        kind="movement",
    ),
    *(
        OpSpec(
            name,
            infer_pad,
            lower=lower_pad,
            legal=legal(pad_reason),
            requires=pad_requires,
            unprofitable=pad_slow,
            kind="movement",
        )
        for name in ("Pad", "com.microsoft.Pad")
    ),
    OpSpec("Slice", infer_slice, lower=lower_slice, legal=legal(slice_reason), kind="movement"),
    OpSpec(
        "Split",
        infer_split,
        lower=lower_split,
        legal=legal(split_reason),
        requires=split_requires,
        kind="movement",
    ),
]
