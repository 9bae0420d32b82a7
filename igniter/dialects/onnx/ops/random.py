"""Random nodes with a seed, by a counter-based generator (docs/explanation/numerics.md, "Random numbers").

Philox-4x32-10: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, Parallel random numbers: as easy as 1, 2, 3, SC'11.
Four words are a function of a counter and a key, so that each element of a result is computed independently: it depends
only on the seed and on its index. The key is the seed's 32 bits (64 of an integer), the counter the number of a block
of four words.

Only nodes marked by `compile-draws` are lowered, because ONNX Runtime's stream differs.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects.builtin import IntegerType, Signedness, f32, f64, i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.onnx.draws import unmarked_reason
from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.lowering.scalar import compute_type
from igniter.dialects.onnx.ops.counts import counted
from igniter.dialects.onnx.ops.rules import element_type, infos, input_dims, legal, operand_dims
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.onnx.types import BY_CODE
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, product
from igniter.dialects.sym.requirements import FINE, Requirement, at_most

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

u32 = IntegerType(32, Signedness.UNSIGNED)
u64 = IntegerType(64, Signedness.UNSIGNED)

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
"""The increments of the key in each round."""
ROUNDS = 10
COST = 60
"""The approximate number of scalar operations of a draw."""


def philox(counter: Sequence[Scalar], key: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """Returns four random 32-bit words for four words of a counter and two of a key."""
    a, b, c, d = counter
    first, second = key
    for number in range(ROUNDS):
        if number:
            first, second = first + WEYL[0], second + WEYL[1]
        high, low = _wide_product(a, MULTIPLIERS[0])
        top, bottom = _wide_product(c, MULTIPLIERS[1])
        a, b, c, d = top ^ b ^ first, bottom, high ^ d ^ second, low
    return a, b, c, d


def _wide_product(word: Scalar, by: int) -> tuple[Scalar, Scalar]:
    """Returns the high and the low word of a product."""
    made = word.to(u64) * by
    return made.shift_right(32).to(u32), made.to(u32)


def seed_words(op: OnnxOp) -> tuple[int, int]:
    """Returns the key: the f32 bits of a float seed, or the bits of an integer seed."""
    seed = op.attr("seed")
    if isinstance(seed, int):
        return seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF
    return struct.unpack("<I", struct.pack("<f", seed))[0], 0


class _Stream:
    """The random stream of one node, indexed by element, computed in a nest or a procedure."""

    def __init__(self, ctx: Lowering, nest: Nest):
        self.nest = nest
        self.key = [nest.const(word, u32) for word in seed_words(ctx.op)]

    def words(self, block: Scalar) -> tuple[Scalar, ...]:
        zero = self.nest.const(0, u32)
        return philox((block.to(u32), block.shift_right(32).to(u32), zero, zero), self.key)

    def uniform(self, number: Scalar, element: Attribute) -> Scalar:
        """Returns a number in [0, 1): 24 bits of one word for an f32, 53 bits of two for an f64."""
        if element == f64:
            words = self.words(number.shift_right(1))
            odd = (number & 1).ne(0)
            return _fraction(odd.select(words[2], words[0]), odd.select(words[3], words[1]))
        words = self.words(number.shift_right(2))
        return _small_fraction(_picked(words, number & 3))

    def normal(self, number: Scalar, element: Attribute) -> Scalar:
        """Returns a normal deviate by G. E. P. Box and M. E. Muller, A note on the generation of random normal
        deviates, 1958: two neighbours are the coordinates of one point."""
        odd = (number & 1).ne(0)
        if element == f64:
            a, b, c, d = self.words(number.shift_right(1))
            distance, turn = _bits53(a, b).to(f64) * 2.0**-53 + 2.0**-54, _fraction(c, d)
        else:
            words = self.words(number.shift_right(2))
            second = (number & 2).ne(0)
            distance = (second.select(words[2], words[0]).to(f32) + 0.5) * 2.0**-32
            turn = _small_fraction(second.select(words[3], words[1]))
        radius = (distance.log() * -2).sqrt()
        # The sine is the cosine of a quarter turn less, which is exact.
        return radius * ((turn - odd.select(_like(turn, 0.25), 0.0)) * (2 * math.pi)).math("cos")


def _like(value: Scalar, number: float) -> Scalar:
    return value.nest.const(number, value.element)


def _picked(words: Sequence[Scalar], place: Scalar) -> Scalar:
    low, high = (place & 1).ne(0), (place & 2).ne(0)
    return high.select(low.select(words[3], words[2]), low.select(words[1], words[0]))


def _small_fraction(word: Scalar) -> Scalar:
    return word.shift_right(8).to(i32).to(f32) * 2.0**-24


def _bits53(high: Scalar, low: Scalar) -> Scalar:
    """Returns 53 bits as a number."""
    return (high.to(u64).shift_left(21) | low.shift_right(11).to(u64)).to(i64)


def _fraction(high: Scalar, low: Scalar) -> Scalar:
    return _bits53(high, low).to(f64) * 2.0**-53


def _drawn(ctx: Lowering, dims: Dims, element: Attribute, draw: Callable[[_Stream, Scalar], Scalar]) -> SSAValue:
    """Returns a tensor of draws, one per element in row-major order."""
    flat = ctx.generate(
        [product(dims)], lambda nest, i: draw(_Stream(ctx, nest), nest.index(i[0])), element=element, part="draw"
    )
    return ctx.view(flat, dims)


# -- RandomUniform, RandomNormal --------------------------------------------------------------------------------------


def _infer_drawn(ctx: InferContext) -> list[TensorInfo]:
    code = ctx.op.attr("dtype", None)
    like = ctx.op.op_type.endswith("Like")
    element = BY_CODE[1 if code is None else code].attr if code is not None or not like else element_type(ctx)
    return infos(element, input_dims(ctx, 0) if like else ctx.op.attr("shape"))


def _drawn_reason(op: OnnxOp) -> str | None:
    """Returns a reason for types other than f32 and f64, and for invalid distributions, which abort ONNX Runtime's
    process."""
    if element_of(op.results[0].type) not in (f32, f64):
        return "it draws 16-bit floats"
    if "Normal" in op.op_type:
        return (
            None if op.attr("scale", 1.0) > 0 and math.isfinite(op.attr("mean", 0.0)) else "its scale is not positive"
        )
    low, high = op.attr("low", 0.0), op.attr("high", 1.0)
    return (
        None
        if low <= high and math.isfinite(high - low)
        else ("its low is above its high, or one of them is not finite")
    )


def _lower_uniform(ctx: Lowering) -> list[SSAValue]:
    element = ctx.out_element()
    number = np.float64 if element == f64 else np.float32
    low, high = number(ctx.attr("low", 0.0)), number(ctx.attr("high", 1.0))
    # Results rounded up to `high` become the next number below it.
    last = float(np.nextafter(high, low))

    def draw(stream: _Stream, at: Scalar) -> Scalar:
        return (stream.uniform(at, element) * float(high - low) + float(low)).minimum(last)

    return [_drawn(ctx, ctx.out_dims(), element, draw)]


def _lower_normal(ctx: Lowering) -> list[SSAValue]:
    element, mean, scale = ctx.out_element(), ctx.attr("mean", 0.0), ctx.attr("scale", 1.0)
    return [_drawn(ctx, ctx.out_dims(), element, lambda stream, at: stream.normal(at, element) * scale + mean)]


# -- Bernoulli --------------------------------------------------------------------------------------------------------


def _lower_bernoulli(ctx: Lowering) -> list[SSAValue]:
    """Gives 1 if the drawn number is at least p, as in ONNX's function body of the op, which ONNX Runtime runs: with
    probability 1 - p, contrary to the specification's text."""
    p, element = ctx.required(0), compute_type(ctx.element(0))
    flat = ctx.view(p, [product(ctx.dims(0))])

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        drawn = _Stream(ctx, nest).uniform(nest.index(i[0]), element)
        return (drawn >= nest.read(flat, i)).to(ctx.out_element())

    return [ctx.view(ctx.generate([product(ctx.dims(0))], point), ctx.out_dims())]


def _infer_bernoulli(ctx: InferContext) -> list[TensorInfo]:
    code = ctx.op.attr("dtype", None)
    return infos(element_type(ctx) if code is None else BY_CODE[code].attr, input_dims(ctx, 0))


# -- Multinomial ------------------------------------------------------------------------------------------------------


def _infer_multinomial(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    element = i64 if ctx.op.attr("dtype", 6) == 7 else i32
    return infos(element, None if dims is None else [dims[0], ctx.op.attr("sample_size", 1)])


def _multinomial_reason(op: OnnxOp) -> str | None:
    if len(operand_dims(op, 0)) != 2 or element_of(op.operands[0].type) != f32:
        return "its input is not a matrix of f32"
    return None if op.attr("sample_size", 1) > 0 else "its number of samples is not positive"


def _multinomial_requires(op: OnnxOp) -> list[Requirement]:
    return [at_most(ONE, operand_dims(op, 0)[1], "there is no class to choose")]


def _lower_multinomial(ctx: Lowering) -> list[SSAValue]:
    """Gives the first class whose cumulative probability exceeds the drawn number. Non-finite inputs have probability
    0; if all are non-finite, the result is the number of classes, as in ONNX Runtime."""
    batches, classes = ctx.dims(0)
    samples = ctx.out_dims()[1]
    p = ctx.procedure([ctx.required(0)], [ctx.output_type()])
    logits, target = p.buffers
    b = p.parallel(batches)
    sums = p.local(f64, [classes], "sums")
    top = p.variable(p.const(-math.inf, f32), "top")

    def finite(value: Scalar) -> Scalar:
        return value.abs() < math.inf

    with p.sequential(classes) as c:
        value = p.load(logits, [b, c])
        top.set(finite(value).select(value, top.get()).maximum(top.get()))
    total = p.variable(p.const(0.0, f64), "total")
    with p.sequential(classes) as c:
        value = p.load(logits, [b, c])
        mass = (finite(value).select(value, top.get()) - top.get()).to(f64).exp()
        total.set(total.get() + finite(value).select(mass, 0.0))
        p.store(total.get(), sums, [c])
    with p.sequential(samples) as s:
        drawn = _Stream(ctx, p).uniform(p.index(b * samples + s), f64) * total.get()
        found = p.variable(p.const(0, i64), "found")
        with p.sequential(classes) as c:
            found.set(found.get() + (p.load(sums, [c]) <= drawn).to(i64))
        p.store(found.get().to(ctx.out_element()), target, [b, s])
    return list(p.end())


# -- Dropout ----------------------------------------------------------------------------------------------------------


def lower_dropout(ctx: Lowering) -> list[SSAValue | None]:
    """Keeps an element in training if the drawn number is at least the ratio, and scales it up to compensate for the
    dropped ones."""
    x, dims = ctx.required(0), ctx.dims(0)
    given, training = ctx.input(1), ctx.required(2)
    element = f64 if given is not None and ctx.element(1) == f64 else f32

    def ratio(nest: Nest) -> Scalar:
        if given is None:
            return nest.const(0.5, element)
        return nest.read(given, [ZERO] * len(dims_of(given.type))).to(element)

    def wrong(nest: Nest, _: Sequence[Expr]) -> Scalar:
        here = ratio(nest)
        return ((here >= 0) & (here < 1)).select(nest.const(FINE, i64), here.to(i64).maximum(FINE + 1))

    if given is not None:
        ctx.check(ctx.generate([], wrong, element=i64, part="check"), "its ratio is not in [0, 1):")

    def keep(stream: _Stream, at: Scalar) -> Scalar:
        trained = stream.nest.read(training, [ZERO] * len(dims_of(training.type)))
        return ~trained | (stream.uniform(at, element) >= ratio(stream.nest))

    mask = _drawn(ctx, dims, i1, keep)

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        value, kept = nest.read(x, i), nest.read(mask, i)
        wide = compute_type(value.element)
        trained = nest.read(training, [ZERO] * len(dims_of(training.type)))
        scale = trained.select(1 / (1 - ratio(nest).to(wide)), nest.const(1.0, wide))
        return value.widened() * kept.select(scale, 0.0)

    return [ctx.generate(dims, point), mask if ctx.wants(1) else None]


def _flops(op: OnnxOp) -> Expr:
    """60 × elements of the result"""
    return product(dims_of(op.results[0].type)) * COST


SPECS: list[OpSpec] = [
    OpSpec(
        "Bernoulli",
        _infer_bernoulli,
        lower=_lower_bernoulli,
        legal=legal(unmarked_reason),
        flops=_flops,
    ),
    OpSpec(
        "Multinomial",
        _infer_multinomial,
        lower=_lower_multinomial,
        legal=legal(unmarked_reason, _multinomial_reason),
        requires=_multinomial_requires,
        flops=counted(
            "elements of the result × (60 + classes)",
            lambda op: product(dims_of(op.results[0].type)) * (operand_dims(op, 0)[1] + COST),
        ),
        kind="reduction",
    ),
    *(
        OpSpec(f"{name}{like}", _infer_drawn, lower=rule, legal=legal(unmarked_reason, _drawn_reason), flops=_flops)
        for name, rule in (("RandomNormal", _lower_normal), ("RandomUniform", _lower_uniform))
        for like in ("", "Like")
    ),
]
