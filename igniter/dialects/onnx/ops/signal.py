"""Signals: DFT and STFT as products with a matrix of roots of unity, windows, and the triangles of MelWeightMatrix.

A DFT of length N takes N² products here, an FFT N log N: the default pipeline leaves it to ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi
from typing import TYPE_CHECKING

from xdsl.dialects import math
from xdsl.dialects.builtin import f32, f64, i64
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.loop import is_float
from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.ops.normalization import float_legal
from igniter.dialects.onnx.ops.pointwise import EXP, elementwise_flops
from igniter.dialects.onnx.ops.rules import (
    constants,
    element_type,
    infos,
    input_dims,
    known,
    legal,
    normal_axis,
    operand,
    operand_dims,
    tidy,
    unknown_rank,
)
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.onnx.types import BY_CODE
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, floordiv, minimum, mod, product
from igniter.dialects.sym.requirements import FINE, Requirement, at_most, equal

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

COMPLEX = Expr.of(2)
QUADRATIC = "a kernel takes quadratic time in its length; ONNX Runtime has an FFT"


# -- roots of unity ---------------------------------------------------------------------------------------------------


def _roots(ctx: Lowering, taken: Expr, bins: Expr, parts: Expr, length: Expr, inverse: bool) -> SSAValue:
    """Returns the matrix `[taken, parts, bins, 2]` from samples to bins: its parts are real and imaginary."""

    def root(nest: Nest, at: Sequence[Expr]) -> Scalar:
        sample, part, bin_, result = at
        # Computed in f64: the angle of a long signal has no digits left in f32.
        angle = nest.index(mod(sample * bin_, length)).to(f64) * (2 * pi) / nest.index(length).to(f64)
        sine = angle.math("sin") * (-1.0 if inverse else 1.0)
        across = nest.index(part).eq(0).select(-sine, sine)
        value = nest.index(part).eq(nest.index(result)).select(angle.math("cos"), across)
        return value / nest.index(length).to(f64) if inverse else value

    return ctx.generate([taken, parts, bins, COMPLEX], root, element=f64, part="roots")


FoldRule = Callable[[Nest, Sequence[Expr], Sequence[Expr]], Scalar]


def _summed(ctx: Lowering, sample: FoldRule, table: SSAValue, axis: int, over: Sequence[Expr]) -> SSAValue:
    """Returns the transform of samples along an axis: their products with the roots `table[*r, bin, part]`.

    Sums are in f64: cancelling parts would leave the rounding errors of the others. A non-finite signal makes all bins
    NaN, as in an FFT of any length other than a power of two.
    """
    out = ctx.out_dims()

    def product_of(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        return sample(nest, i, r) * nest.read(table, [*r, i[axis], i[-1]])

    def strange(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        value = sample(nest, i, r)
        return value - value  # 0, or NaN for a non-finite value

    total = ctx.generate(out, product_of, over=over, combiner="add", element=f64, part="sum")
    whole = (*out[:axis], ONE, *out[axis + 1 : -1], ONE)
    finite = ctx.generate(whole, strange, over=over, combiner="add", element=f64, part="finite")
    return ctx.map(lambda v, f: (v + f).to(ctx.out_element()), total, finite)


def _bins(length: Expr, onesided: bool) -> Expr:
    return tidy(floordiv(length, Expr.of(2)) + 1) if onesided else length


# -- DFT --------------------------------------------------------------------------------------------------------------


def _dft_axis(op: OnnxOp, rank: int, values: Dims | None) -> int | str:
    if op.opset < 20:
        return normal_axis(int(op.attr("axis", 1)), rank)
    if operand(op, 2) is None:
        return rank - 2
    found = constants(values)
    return "its axis is known only at run time" if found is None else normal_axis(found[0], rank)


def is_real_inverse(op: OnnxOp) -> bool:
    """True if a DFT computes a real signal from half of its bins; the others are their conjugates."""
    return bool(op.attr("onesided", 0)) and bool(op.attr("inverse", 0))


def _dft_length(op: OnnxOp, size: Expr, values: Dims | None) -> Expr | str:
    if operand(op, 1) is None:
        return 2 * (size - 1) if is_real_inverse(op) else size
    return "its length is known only at run time" if values is None else values[0]


def _infer_dft(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    if dims is None:
        return unknown_rank(ctx)
    real = is_real_inverse(ctx.op)
    parts = ONE if real else COMPLEX
    axis = _dft_axis(ctx.op, len(dims), ctx.values(2))
    if isinstance(axis, str):
        return infos(element_type(ctx), [*(ctx.fresh(f"dft_{k}") for k in range(len(dims) - 1)), parts])
    length = _dft_length(ctx.op, dims[axis], ctx.values(1))
    half = bool(ctx.op.attr("onesided", 0)) and not real
    bins = ctx.fresh("bins") if isinstance(length, str) else _bins(length, half)
    return infos(element_type(ctx), [*dims[:axis], bins, *dims[axis + 1 : -1], parts])


def _dft_reason(op: OnnxOp) -> str | None:
    dims = operand_dims(op, 0)
    if len(dims) < 2 or dims[-1].constant not in (1, 2):
        return "its input is not known to be real or complex"
    axis = _dft_axis(op, len(dims), known(op, 2))
    if isinstance(axis, str):
        return axis
    length = _dft_length(op, dims[axis], known(op, 1))
    if isinstance(length, str) or not is_real_inverse(op):
        return length if isinstance(length, str) else None
    if dims[-1].constant != 2:
        return "the bins of its one-sided inverse are not complex numbers"
    if operand(op, 1) is None or tidy(floordiv(length, Expr.of(2)) + 1) == dims[axis]:
        return None
    return "its one-sided inverse is not known to have half of the bins; ONNX Runtime does not fill up with zeros"


def _dft_requires(op: OnnxOp) -> list[Requirement]:
    """Requires a non-empty transform, unless the result is empty."""
    dims = operand_dims(op, 0)
    axis = _dft_axis(op, len(dims), known(op, 2))
    assert isinstance(axis, int)  # `_dft_reason` has checked it
    made = dims_of(op.results[0].type)
    if dims[axis] in made:
        return []
    return [at_most(minimum(Expr.of(1), product(made)), dims[axis], "its axis is empty")]


def _dft(ctx: Lowering) -> list[SSAValue]:
    x, dims, out = ctx.required(0), ctx.dims(0), ctx.out_dims()
    axis = _dft_axis(ctx.op, len(dims), ctx.values(2))
    assert isinstance(axis, int)  # `_dft_reason` has checked it
    length = _dft_length(ctx.op, dims[axis], ctx.values(1))
    assert isinstance(length, Expr)
    real = is_real_inverse(ctx.op)
    taken = dims[axis] if real else tidy(minimum(dims[axis], length))
    table = _roots(ctx, taken, out[axis], dims[-1], length, bool(ctx.attr("inverse", 0)))

    def sample(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        value = nest.read_inside(x, [*i[:axis], r[0], *i[axis + 1 : -1], r[1]]).to(f64)
        if not real:
            return value
        # Every bin also represents its conjugate, except the first, and the last of an even length.
        alone = nest.index(r[0]).eq(0) | nest.index(2 * r[0]).eq(nest.index(length))
        return alone.select(value, value * 2)

    return [_summed(ctx, sample, table, axis, [taken, dims[-1]])]


# -- STFT -------------------------------------------------------------------------------------------------------------


def _frames(
    op: OnnxOp, dims: Dims, step: Dims | None, length: Dims | None, window: Dims | None
) -> tuple[Expr, Expr, Expr] | str:
    """Returns the number of frames, their distance and their length; or the reason why they are unknown."""
    if step is None or (step[0].constant is not None and step[0].constant < 1):
        return "the distance of its frames is known only at run time"
    if operand(op, 3) is not None and length is None:
        return "the length of its frames is known only at run time"
    size = length[0] if length is not None else window[0] if window is not None else dims[1]
    return tidy(floordiv(dims[1] - size, step[0]) + 1), step[0], size


def _infer_stft(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    if dims is None:
        return unknown_rank(ctx)
    found = _frames(ctx.op, dims, ctx.values(1), ctx.values(3), input_dims(ctx, 2))
    if isinstance(found, str):
        return infos(element_type(ctx), [dims[0], ctx.fresh("frames"), ctx.fresh("bins"), COMPLEX])
    bins = _bins(found[2], bool(ctx.op.attr("onesided", 1)))
    return infos(element_type(ctx), [dims[0], found[0], bins, COMPLEX])


def _stft_reason(op: OnnxOp) -> str | None:
    dims = operand_dims(op, 0)
    window = None if operand(op, 2) is None else operand_dims(op, 2)
    if len(dims) not in (2, 3) or (len(dims) == 3 and dims[2].constant not in (1, 2)):
        return "its input is not known to be real or complex"
    found = _frames(op, dims, known(op, 1), known(op, 3), window)
    return found if isinstance(found, str) else None


def _stft_requires(op: OnnxOp) -> list[Requirement]:
    """Requires a window as long as the frames."""
    window = None if operand(op, 2) is None else operand_dims(op, 2)
    found = _frames(op, operand_dims(op, 0), known(op, 1), known(op, 3), window)
    if isinstance(found, str):
        return []
    apart = at_most(1, found[1], "the step between its frames is not positive")
    fits = at_most(found[2], operand_dims(op, 0)[1], "its frames are longer than its signal")
    same = [] if window is None else [equal(window[0], found[2], "its window does not have the length of its frames")]
    return [apart, fits, *same]


def _stft(ctx: Lowering) -> list[SSAValue]:
    window = ctx.input(2)
    dims, out = ctx.dims(0), ctx.out_dims()
    found = _frames(ctx.op, dims, ctx.values(1), ctx.values(3), None if window is None else dims_of(window.type))
    assert not isinstance(found, str)  # `_stft_reason` has checked it
    _, step, length = found
    parts = dims[2] if len(dims) == 3 else ONE
    x = ctx.view(ctx.required(0), (*dims[:2], parts))
    table = _roots(ctx, length, out[2], parts, length, False)

    def sample(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        value = nest.read_inside(x, [i[0], i[1] * step + r[0], r[1]]).to(f64)
        return value if window is None else value * nest.read(window, [r[0]]).to(f64)

    return [_summed(ctx, sample, table, 2, [length, parts])]


def quadratic_flops(op: OnnxOp) -> Expr:
    """2 × elements of the result × elements of a signal, the sum of the definition"""
    return 2 * product(dims_of(op.results[0].type)) * product(operand_dims(op, 0)[1:])


# -- windows ----------------------------------------------------------------------------------------------------------

WINDOWS: dict[str, tuple[float, float, float]] = {
    "BlackmanWindow": (0.42, -0.5, 0.08),
    "HammingWindow": (25 / 46, 25 / 46 - 1, 0.0),
    "HannWindow": (0.5, -0.5, 0.0),
}
"""The weights of 1, cos(t) and cos(2t), with one period of t."""


def _infer_window(ctx: InferContext) -> list[TensorInfo]:
    size = ctx.values(0)
    return infos(_asked_element(ctx.op), [ctx.fresh("window") if size is None else size[0]])


def _asked_element(op: OnnxOp) -> Attribute:
    """Returns the element type with the code `output_datatype`."""
    target = BY_CODE.get(int(op.attr("output_datatype", 1)))
    if target is None:
        raise ValueError(f"unknown element type code {op.attr('output_datatype')}")
    return target.attr


def _window_reason(op: OnnxOp) -> str | None:
    if known(op, 0) is None:
        return "its size is known only at run time"
    return None if is_float(element_of(op.results[0].type)) else "its elements are not floats"


def _window(ctx: Lowering) -> list[SSAValue]:
    one, once, twice = WINDOWS[ctx.op.op_type]
    (size,) = ctx.out_dims()
    around = size if ctx.attr("periodic", 1) else size - 1

    def point(nest: Nest, at: Sequence[Expr]) -> Scalar:
        wide = f64 if ctx.out_element() == f64 else f32
        turn = nest.index(at[0]).to(wide) * (2 * pi) / nest.index(around).to(wide)
        value = turn.math("cos") * once + one
        return (value + (turn * 2).math("cos") * twice if twice else value).to(ctx.out_element())

    return [ctx.generate([size], point)]


# -- MelWeightMatrix --------------------------------------------------------------------------------------------------


def _infer_mel(ctx: InferContext) -> list[TensorInfo]:
    filters, length = ctx.values(0), ctx.values(1)
    rows = ctx.fresh("bins") if length is None else _bins(length[0], True)
    return infos(_asked_element(ctx.op), [rows, ctx.fresh("filters") if filters is None else filters[0]])


def _mel_reason(op: OnnxOp) -> str | None:
    if any(d != ONE for k in range(5) for d in operand_dims(op, k)):
        return "its inputs are not all known to be single numbers"
    if known(op, 0) is None or known(op, 1) is None:
        return "its size is known only at run time"
    if any(element_of(op.operands[k].type) != f32 for k in (3, 4)):
        return "its edges are not f32, the only type that ONNX Runtime supports"
    if element_of(op.results[0].type) in (f32, f64):
        return None
    return "its elements are not f32 or f64: ONNX Runtime divides its integers by sizes that may not fit them"


def _mel_requires(op: OnnxOp) -> list[Requirement]:
    length = known(op, 1)
    return [] if length is None else [at_most(0, length[0], "the length of its DFT is negative")]


def _mel(ctx: Lowering) -> list[SSAValue]:
    length = ctx.values(1)
    assert length is not None  # `_mel_reason` has checked it
    bins, filters = ctx.out_dims()
    _check_edges(ctx, length[0], bins)
    corners = _corners(ctx, length[0], filters + 2)
    element = ctx.out_element()

    def share(part: Scalar, whole: Scalar) -> Scalar:
        return part.to(element) / whole.to(element)

    def point(nest: Nest, at: Sequence[Expr]) -> Scalar:
        """Returns filter `n`, which rises from corner `n` to 1 at the next corner, and falls to the one after it."""
        here = nest.index(at[0])
        left, top, right = (nest.read(corners, [at[1] + k]) for k in range(3))
        rising = ((here >= left) & (here <= top)).select(share(here - left, top - left), 0.0)
        value = top.eq(left).select(here.eq(top).select(nest.const(1.0, element), 0.0), rising)
        return ((here >= top) & (here < right)).select(share(right - here, right - top), value)

    return [ctx.generate([bins, filters], point)]


def _check_edges(ctx: Lowering, length: Expr, bins: Expr) -> None:
    """Makes a run end with an error, as in ONNX Runtime, if an edge is outside the spectrogram."""
    for k in (3, 4):

        def wrong(nest: Nest, _: Sequence[Expr], k: int = k) -> Scalar:
            found = (_number(ctx, nest, k) * nest.index(length + 1).to(f32) / _number(ctx, nest, 2).to(f32)).floor()
            inside = (found >= 0) & (found < nest.index(bins).to(f32))
            return inside.select(nest.const(FINE, i64), found.to(i64).maximum(FINE + 1))

        edge = "lower" if k == 3 else "upper"
        found = ctx.generate([], wrong, element=i64, part=f"check.{edge}")
        ctx.check(found, f"{edge}_edge_hertz is outside of the spectrogram: its bin is", (ZERO, bins - 1))


def _corners(ctx: Lowering, length: Expr, count: Expr) -> SSAValue:
    """Returns the bins of the corners of filters (start, peak, end), evenly spaced on the mel scale, as i64.

    Computed in f64 and in the order of ONNX Runtime. The step is the range over `count`, so the last corner is before
    the end. If the lower edge is exactly a bin, the last bit of the logarithm decides, and may differ from ONNX
    Runtime's.
    """

    def mel(nest: Nest, k: int) -> Scalar:
        return _log10(_number(ctx, nest, k).to(f64) / 700.0 + 1.0) * 2595.0

    def corner(nest: Nest, at: Sequence[Expr]) -> Scalar:
        low, high = mel(nest, 3), mel(nest, 4)
        place = (high - low) / nest.index(count).to(f32).to(f64) * nest.index(at[0]).to(f64) + low
        hertz = (nest.const(10.0, f64).pow(place / 2595.0) - 1.0) * 700.0
        return (hertz * nest.index(length + 1).to(f64) / _number(ctx, nest, 2).to(f64)).floor().to(i64)

    return ctx.generate([count], corner, element=i64, part="corners")


def _number(ctx: Lowering, nest: Nest, index: int) -> Scalar:
    """Reads an operand with a single number."""
    return nest.read(ctx.required(index), [ZERO] * len(ctx.dims(index)))


def _log10(x: Scalar) -> Scalar:
    return x.nest.append(math.Log10Op(x.value), x.element)


SPECS: list[OpSpec] = [
    OpSpec(
        "DFT",
        infer=_infer_dft,
        lower=_dft,
        legal=float_legal(_dft_reason),
        requires=_dft_requires,
        flops=quadratic_flops,
        unprofitable=lambda op, estimate: QUADRATIC,
        kind="other",
    ),
    OpSpec(
        "STFT",
        infer=_infer_stft,
        lower=_stft,
        legal=float_legal(_stft_reason),
        requires=_stft_requires,
        flops=quadratic_flops,
        unprofitable=lambda op, estimate: QUADRATIC,
        kind="other",
    ),
    *(
        OpSpec(
            name,
            infer=_infer_window,
            lower=_window,
            legal=legal(_window_reason),
            flops=elementwise_flops(2 * EXP),
            kind="elementwise",
        )
        for name in WINDOWS
    ),
    OpSpec(
        "MelWeightMatrix",
        infer=_infer_mel,
        lower=_mel,
        legal=legal(_mel_reason),
        requires=_mel_requires,
        flops=elementwise_flops(12),
        kind="elementwise",
    ),
]
