"""The parts of the attention ops: scores, their softmax, and the weighted sum of the values.

The nests are those of attention written in ONNX ops. The body of both contractions is a product of two reads, and
subscripts of reads and writes split and join heads; scale, soft cap and masks are elementwise nests in between. Later
levels therefore treat all forms of attention alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import bf16, f16, f32
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.lowering.broadcast import broadcast_reason
from igniter.dialects.onnx.lowering.context import Subscripts
from igniter.dialects.onnx.lowering.scalar import compute_type
from igniter.dialects.onnx.ops.pointwise import EXP
from igniter.dialects.onnx.ops.rules import operand, operand_dims, tidy
from igniter.dialects.onnx.ops.softmax import softmax_of
from igniter.dialects.onnx.registry import Dims, InferContext, TensorInfo
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, floordiv, product

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

Shapes = Sequence["Dims | None"]
"""The dims of every operand of a node; None for an omitted one."""

Mask = Callable[[Nest, "Point", Scalar], Scalar]
"""A function that applies the mask to the score at a point: it masks keys or adds a bias."""


# -- dims -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AttentionDims:
    """The sizes of one attention: `past` cached keys and `keys` new ones make `total`."""

    batch: Expr
    heads: Expr
    kv_heads: Expr
    queries: Expr
    keys: Expr
    past: Expr
    head: Expr
    value_head: Expr
    joined: bool
    """True if results have heads and features in one dim: [batch, queries, heads*value_head]."""
    buffer: Expr | None = None
    """The rows of a present longer than `total`: a caller's buffer, of which the first `total` rows are keys."""

    @property
    def total(self) -> Expr:
        return self.past + self.keys

    @property
    def result(self) -> Dims:
        if self.joined:
            return (self.batch, self.queries, self.heads * self.value_head)
        return (self.batch, self.heads, self.queries, self.value_head)

    @property
    def scores(self) -> Dims:
        return (self.batch, self.heads, self.queries, self.total)

    def present(self, size: Expr) -> Dims:
        return (self.batch, self.kv_heads, self.total if self.buffer is None else self.buffer, size)

    @property
    def group(self) -> Expr:
        """The number of heads that share one head of keys and values."""
        return ONE if self.heads == self.kv_heads else floordiv(self.heads, self.kv_heads)

    @property
    def macs(self) -> Expr:
        """The multiply-adds of the scores and of the weighted values: every query with every key, masked or not, as in
        ONNX."""
        return product(self.scores) * (self.head + self.value_head)

    @property
    def flops(self) -> Expr:
        return 2 * self.macs + product(self.scores) * (EXP + 4)


def sized(dims: AttentionDims | str) -> AttentionDims:
    """Returns the sizes; raises `ValueError` with the reason if they are unknown."""
    if isinstance(dims, str):
        raise ValueError(dims)
    return dims


def operand_shapes(op: OnnxOp) -> list[Dims | None]:
    """Returns the dims of every operand of a node whose operands are all tensors of known rank."""
    return [None if operand(op, k) is None else operand_dims(op, k) for k in range(len(op.inputs))]


def inferred_shapes(ctx: InferContext) -> list[Dims | None] | None:
    """Returns the dims of every operand in a shape rule; None if the rank of one is unknown."""
    infos = [ctx.input(k) for k in range(len(ctx.op.inputs))]
    if any(info is not None and info.dims is None for info in infos):
        return None
    return [None if info is None else info.dims for info in infos]


def shape_at(shapes: Shapes, index: int) -> Dims | None:
    return shapes[index] if index < len(shapes) else None


def head_size(hidden: Expr, heads: int) -> Expr | str:
    """Returns the features of each of `heads` heads; or the reason why they are unknown."""
    if heads < 1:
        return "it has no attribute for its number of heads"
    if hidden.constant is None or hidden.constant % heads:
        return f"{hidden} features are not known to be a multiple of {heads} heads"
    return tidy(floordiv(hidden, Expr.of(heads)))


def head_sizes(query: tuple[Expr, int], value: tuple[Expr, int]) -> tuple[Expr, Expr] | str:
    """Returns the features of a head of the query and of the value, given the total features and heads of each."""
    first, second = head_size(*query), head_size(*value)
    if isinstance(first, str):
        return first
    return second if isinstance(second, str) else (first, second)


def equate_all(ctx: InferContext, shapes: Shapes, *places: tuple[int, int]) -> None:
    """Records that the dims at `(operand, axis)` are equal, except those of omitted operands."""
    found = [dims[axis] for index, axis in places if (dims := shape_at(shapes, index)) is not None and len(dims) > axis]
    for other in found[1:]:
        ctx.equate(found[0], other)


def dims_reason(shapes: Shapes, names: Sequence[str], wanted: dict[int, Dims]) -> str | None:
    """Returns the reason why the operands are not known to have the dims `wanted`; None if they
    have, or are omitted."""
    for index, dims in wanted.items():
        have = shape_at(shapes, index)
        if have is not None and have != dims:
            return f"its {names[index]} has dims [{_text(have)}], not known to be [{_text(dims)}]"
    return None


def mask_reason(mask: Dims, dims: AttentionDims, what: str) -> str | None:
    """Returns the reason why `read_by_key` cannot read a tensor; None if it can."""
    if not mask:
        return f"its {what} is a scalar"
    reason = broadcast_reason([(*mask[:-1], dims.total)], dims.scores)
    return None if reason is None else f"its {what}: {reason}"


def unknown_infos(ctx: InferContext, element: Attribute, ranks: Sequence[int] | None) -> list[TensorInfo]:
    """Returns results with unknown dims of known ranks; with None, the ranks are unknown too."""
    if ranks is None:
        return [TensorInfo(element, None)] * len(ctx.op.results)
    name = ctx.op.op_type.lower()
    return [
        TensorInfo(element, tuple(ctx.fresh(f"{name}_{k}_{axis}") for axis in range(rank)))
        for k, rank in enumerate(ranks)
    ]


def _text(dims: Dims) -> str:
    return ", ".join(map(str, dims))


# -- operands ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Heads:
    """Queries, keys or values: the location of the feature `d` of head `h` at position `s`."""

    tensor: SSAValue
    length: Expr
    size: Expr
    joined: bool
    """The layout: [batch, position, first + head*size + feature] if joined, or [*lead, batch, head,
    position, feature]."""
    first: Expr = ZERO
    lead: tuple[Expr, ...] = ()

    def read(self, nest: Nest, b: Expr, h: Expr, s: Expr, d: Expr) -> Scalar:
        return nest.read(self.tensor, self.subscripts(b, h, s, d))

    def subscripts(self, b: Expr, h: Expr, s: Expr, d: Expr) -> list[Expr]:
        return [b, s, self.first + h * self.size + d] if self.joined else [*self.lead, b, h, s, d]


@dataclass(frozen=True)
class Point:
    """A score: query `i` and key `j`, in head `h`."""

    b: Expr
    h: Expr
    i: Expr
    j: Expr

    @property
    def subscripts(self) -> list[Expr]:
        return [self.b, self.h, self.i, self.j]


def lowest(element: Attribute) -> float:
    """Returns the least finite number in the arithmetic type of `element`, which ONNX Runtime adds to the score of a
    masked key."""
    return -3.4028234663852886e38 if compute_type(element) == f32 else -1.7976931348623157e308


def with_bias(ctx: Lowering, x: SSAValue, bias: SSAValue | None, first: Expr, part: str) -> SSAValue:
    """Returns `x`, of dims [batch, position, features], plus the part of `bias` that begins at `first`."""
    if bias is None:
        return x

    def point(nest: Nest, at: Subscripts) -> Scalar:
        return nest.read(x, at) + nest.read(bias, [at[2] + first])

    return ctx.generate(dims_of(x.type), point, part=part)


def appended(ctx: Lowering, dims: AttentionDims, past: SSAValue | None, new: Heads, part: str) -> SSAValue:
    """Returns the past keys or values followed by the new ones: [batch, kv_heads, total, size]."""

    def point(nest: Nest, at: Subscripts) -> Scalar:
        b, h, s, d = at
        if past is None:
            return new.read(nest, b, h, s, d)
        later = s - dims.past
        value = nest.read(past, at, guards=[dims.past - 1 - s])
        return nest.read(new.tensor, new.subscripts(b, h, later, d), guards=[later], otherwise=value)

    return ctx.generate(dims.present(new.size), point, part=part)


def read_by_key(nest: Nest, tensor: SSAValue, at: Point, dims: AttentionDims, otherwise: float | None = None) -> Scalar:
    """Reads a tensor that broadcasts to the scores, with keys as its last dim; keys beyond it read `otherwise`.

    ONNX Runtime accepts the node only if that dim is `total`. If the two are not known to be equal (the length of a
    mask and the number of past and new keys), the guard costs less than a fallback.
    """
    own, missing = dims_of(tensor.type), 4 - len(dims_of(tensor.type))
    outer = zip(own[:-1], dims.scores[missing:], at.subscripts[missing:], strict=False)
    subscripts = [ZERO if have == ONE != want else e for have, want, e in outer]
    guards = [own[-1] - 1 - at.j] if own[-1] != dims.total else []
    if otherwise is not None and element_of(tensor.type) in (f16, bf16):
        # The least finite f32 overflows in these types.
        otherwise = -math.inf
    read = nest.read(tensor, [*subscripts, at.j], guards=guards, otherwise=otherwise if guards else None)
    return read.widened() if read.is_float else read


# -- the nests --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Attention:
    """The inputs of an attention. `fully_masked`: a row whose scores are all at most this is fully
    masked, and gives zeros. `sink`: an extra score of each row, whose weight multiplies no value; one for each head
    [1, heads, 1, 1], or one for all."""

    dims: AttentionDims
    query: Heads
    key: Heads
    value: Heads
    scale: float | None
    """The scale of the scores; None for 1 / sqrt(features of a head)."""
    softcap: float = 0.0
    mask: Mask | None = None
    fully_masked: float | None = None
    sink: SSAValue | float | None = None
    unscaled: Callable[[SSAValue], SSAValue] | None = None
    """Makes the result of the weighted sums, [batch, queries, heads, features], where values are codes."""


@dataclass(frozen=True)
class Computed:
    """The result, and its stages: scores after scaling, after the soft cap, after the mask, after the softmax."""

    result: SSAValue
    stages: tuple[SSAValue, SSAValue, SSAValue, SSAValue]


def attend(ctx: Lowering, given: Attention) -> Computed:
    """Builds the nests of one attention: scores, exponentials and sums of 16-bit floats are f32, rounded once at the
    end."""
    dims, element = given.dims, compute_type(element_of(given.query.tensor.type))
    raw = _scores(ctx, given)

    def elementwise(x: SSAValue, function: Callable[[Scalar], Scalar], part: str) -> SSAValue:
        return ctx.map(function, x, element=element, dims=dims.scores, part=part)

    scaled = raw
    if given.scale != 1:
        scaled = elementwise(raw, lambda s: s * _scale(s.nest, given, element), "scale")
    capped = scaled
    if given.softcap > 0:
        capped = elementwise(scaled, lambda s: (s / given.softcap).tanh() * given.softcap, "softcap")
    masked = capped if given.mask is None else _masked(ctx, capped, given.mask, dims, element)
    weights = softmax_of(
        ctx, masked, [3], element, fully_masked=given.fully_masked, weights=True, sink=given.sink, part="weights"
    )
    return Computed(_weighted(ctx, given, weights), (scaled, capped, masked, weights))


def _scale(nest: Nest, given: Attention, element: Attribute) -> Scalar | float:
    head = given.dims.head
    if given.scale is not None:
        return given.scale
    return 1 / math.sqrt(head.constant) if head.constant else 1 / nest.index(head).to(element).sqrt()


def _scores(ctx: Lowering, given: Attention) -> SSAValue:
    group = given.dims.group

    def point(nest: Nest, at: Subscripts, over: Subscripts) -> Scalar:
        b, h, i, j = at
        query = given.query.read(nest, b, h, i, over[0]).widened()
        return query * given.key.read(nest, b, floordiv(h, group), j, over[0]).widened()

    element = compute_type(element_of(given.query.tensor.type))
    return ctx.generate(
        given.dims.scores, point, over=[given.dims.head], combiner="add", element=element, part="scores"
    )


def _masked(ctx: Lowering, x: SSAValue, mask: Mask, dims: AttentionDims, element: Attribute) -> SSAValue:
    def point(nest: Nest, at: Subscripts) -> Scalar:
        return mask(nest, Point(*at), nest.read(x, at))

    return ctx.generate(dims.scores, point, element=element, part="mask")


def _weighted(ctx: Lowering, given: Attention, weights: SSAValue) -> SSAValue:
    """Returns the weighted sum of the values; written with joined heads, if they are joined."""
    dims, element = given.dims, compute_type(element_of(given.value.tensor.type))
    nest = ctx.nest()
    b, h, i, d = nest.axes([dims.batch, dims.heads, dims.queries, dims.value_head])
    j = nest.reduction(dims.total)
    weight = nest.read(weights, [b, h, i, j])
    value = weight * given.value.read(nest, b, floordiv(h, dims.group), j, d).widened()
    if not dims.joined:
        return ctx.rounded(nest.finish(("add", value, [b, h, i, d], tensor_of(element, dims.result)))[0])
    apart = (dims.batch, dims.queries, dims.heads, dims.value_head)
    (made,) = nest.finish(("add", value, [b, i, h, d], tensor_of(element, apart)))
    made = made if given.unscaled is None else given.unscaled(made)
    return ctx.view(ctx.rounded(made), dims.result)
