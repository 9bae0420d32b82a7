"""Feature ops of ai.onnx.ml: ArrayFeatureExtractor, Binarizer, FeatureVectorizer, Imputer, LabelEncoder, Normalizer,
OneHotEncoder, Scaler. Ops on texts are left to ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import f32, i64
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.loop import is_float
from igniter.dialects.onnx.ops.ml_scores import numbers, text
from igniter.dialects.onnx.ops.pointwise import elementwise_flops
from igniter.dialects.onnx.ops.pooling import LEAST
from igniter.dialects.onnx.ops.rules import element_type, infos, input_dims, legal, operand_dims
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.onnx.types import StringType, element_of_dtype
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import Expr, product
from igniter.dialects.sym.requirements import FINE, Requirement, at_most, equal

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar

Array = np.ndarray[Any, Any]


def _like_input(element: Attribute | None = None) -> Callable[[InferContext], list[TensorInfo]]:
    return lambda ctx: infos(element or element_type(ctx), input_dims(ctx, 0))


def _per_feature(nest: Nest, table: SSAValue, size: int, at: Sequence[Expr]) -> Scalar:
    """Reads the number of a list for a feature: one for all, or one each."""
    return nest.read(table, [0 if size == 1 else at[-1]])


def _list_reason(op: OnnxOp, *lists: str) -> str | None:
    dims = operand_dims(op, 0)
    for name in lists:
        count = len(numbers(op, name))
        if count != 1 and (not dims or dims[-1] != Expr.of(count)):
            return f"its {count} values '{name}' are not known to match its features"
    return None


# -- Scaler, Normalizer, Binarizer, Imputer ---------------------------------------------------------------------------


def lower_scaler(ctx: Lowering) -> list[SSAValue]:
    offset, scale = ctx.table("offset"), ctx.table("scale")
    sizes = len(numbers(ctx.op, "offset")), len(numbers(ctx.op, "scale"))

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        x = nest.read(ctx.required(0), i).to(f32)
        return (x - _per_feature(nest, offset, sizes[0], i)) * _per_feature(nest, scale, sizes[1], i)

    return [ctx.generate(ctx.out_dims(), point)]


def lower_normalizer(ctx: Lowering) -> list[SSAValue]:
    """Divides by the sum of absolute values, the root of the sum of squares, or the greatest value; a row of zeros is
    unchanged.

    NaN is never the greatest value: a row of NaN only is divided by the least number.
    """
    norm, dims = text(ctx.op, "norm", "MAX"), ctx.dims(0)
    last = len(dims) - 1
    x = ctx.map(lambda v: v.to(f32), ctx.required(0), element=f32, part="single")

    def fold(v: Scalar) -> Scalar:
        if norm == "MAX":
            return (v > LEAST[f32]).select(v, LEAST[f32])
        return v.abs() if norm == "L1" else v * v

    total = ctx.reduce("max" if norm == "MAX" else "add", x, [last], fold, part="norm")

    def apply(v: Scalar, t: Scalar) -> Scalar:
        made = (v * v / t).sqrt().copysign(v) if norm == "L2" else v / t
        return t.ne(0).select(made, v)

    return [ctx.map(apply, x, total)]


def _binarizer(ctx: Lowering) -> list[SSAValue]:
    threshold = float(ctx.attr("threshold", 0.0) or 0.0)
    return [ctx.map(lambda x: (x > threshold).select(x.nest.const(1, x.element), 0))]


def lower_imputer(ctx: Lowering) -> list[SSAValue]:
    kind = "float" if is_float(ctx.element(0)) else "int64"
    values, replaced = numbers(ctx.op, f"imputed_value_{kind}s"), ctx.attr(f"replaced_value_{kind}")
    table = ctx.table("values")

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        x = nest.read(ctx.required(0), i)
        missing = x.is_nan() if kind == "float" and np.isnan(replaced) else x.eq(replaced)
        return missing.select(_per_feature(nest, table, len(values), i), x)

    return [ctx.generate(ctx.out_dims(), point)]


def _imputer_reason(op: OnnxOp) -> str | None:
    element = element_of(op.operands[0].type)
    kind = "float" if element == f32 else "int64" if element == i64 else ""
    if not kind or not numbers(op, f"imputed_value_{kind}s") or op.attr(f"replaced_value_{kind}") is None:
        return "its values do not have the type of its input"
    return _list_reason(op, f"imputed_value_{kind}s")


def _imputer_tables(op: OnnxOp) -> Mapping[str, Array]:
    whole = element_of(op.operands[0].type) == i64
    values = numbers(op, "imputed_value_int64s" if whole else "imputed_value_floats")
    return {"values": np.array(values, np.int64 if whole else np.float32)}


# -- FeatureVectorizer, ArrayFeatureExtractor, OneHotEncoder ----------------------------------------------------------


def _widths(op: OnnxOp) -> list[int]:
    return [int(v) for v in numbers(op, "inputdimensions")]


def infer_vectorizer(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    return infos(f32, [_table(dims)[0] if dims else ctx.fresh("rows"), sum(_widths(ctx.op))])


def _table(dims: Dims) -> tuple[Expr, Expr]:
    """Returns rows and features: a vector is one row, and all dims after the first are features."""
    return (Expr.of(1), dims[0]) if len(dims) == 1 else (dims[0], product(dims[1:]))


def lower_vectorizer(ctx: Lowering) -> list[SSAValue]:
    """Takes the declared number of features of each input; missing ones are 0, as in ONNX Runtime."""
    tables = [_table(ctx.dims(k)) for k in range(len(ctx.inputs))]
    views = [ctx.view(ctx.required(k), table) for k, table in enumerate(tables)]
    starts = list(accumulate(_widths(ctx.op), initial=0))

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        made = nest.const(0.0, f32)
        for k, (view, (_, features)) in enumerate(zip(views, tables, strict=True)):
            at = i[1] - starts[k]
            guards = [at, features - 1 - at]
            if k + 1 < len(views):
                guards.append(starts[k + 1] - 1 - i[1])
            own = nest.read(view, [i[0], at], guards=guards).to(f32)
            made = (nest.index(i[1]) >= starts[k]).select(own, made) if k else own
        return made

    return [ctx.generate(ctx.out_dims(), point)]


def _vectorizer_reason(op: OnnxOp) -> str | None:
    if len(_widths(op)) != len(op.inputs):
        return "it has no attribute for the width of each input"
    return None if all(operand_dims(op, k) for k in range(len(op.inputs))) else "one of its inputs is a single element"


def _vectorizer_requires(op: OnnxOp) -> list[Requirement]:
    first, *others = (_table(operand_dims(op, k))[0] for k in range(len(op.inputs)))
    return [equal(rows, first, "its inputs have different numbers of rows") for rows in others]


def infer_extractor(ctx: InferContext) -> list[TensorInfo]:
    dims, picked = input_dims(ctx, 0), input_dims(ctx, 1)
    if dims is None or picked is None:
        return infos(element_type(ctx), None)
    return infos(element_type(ctx), [*(dims[:-1] or (Expr.of(1),)), product(picked)])


def lower_extractor(ctx: Lowering) -> list[SSAValue]:
    dims = ctx.dims(0)
    features = dims[len(dims) - 1]
    picked = ctx.view(ctx.required(1), [product(ctx.dims(1))])
    ctx.check_indices(picked, features, "its indices are out of range", negative=False)

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        index = nest.read(picked, [i[-1]]).to(i64)
        at = Expr.of("_0")
        outer: Sequence[Expr] = i[:-1] if len(dims) > 1 else ()
        return nest.read(ctx.required(0), [*outer, at], guards=[at, features - 1 - at], indices=[index])

    return [ctx.generate(ctx.out_dims(), point)]


def _extractor_requires(op: OnnxOp) -> list[Requirement]:
    return [at_most(1, product(operand_dims(op, 1)), "it has no indices")]


def infer_one_hot(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    count = len(numbers(ctx.op, "cats_int64s")) or len(numbers(ctx.op, "cats_strings"))
    return infos(f32, None if dims is None else [*dims, Expr.of(count)])


def lower_one_hot(ctx: Lowering) -> list[SSAValue]:
    cats = ctx.table("cats")
    if not ctx.attr("zeros", 1):
        _check_categories(ctx, cats)

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        value = nest.read(ctx.required(0), i[:-1]).to(i64)
        return value.eq(nest.read(cats, [i[-1]])).select(nest.const(1.0, f32), 0.0)

    return [ctx.generate(ctx.out_dims(), point)]


def _check_categories(ctx: Lowering, cats: SSAValue) -> None:
    """Makes a run end with an error if a value is in no category."""
    values, dims = ctx.required(0), ctx.dims(0)

    def hit(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        return nest.read(values, i).to(i64).eq(nest.read(cats, r)).to(i64)

    found = ctx.generate(dims, hit, over=dims_of(cats.type), combiner="max", element=i64, part="known")

    def wrong(nest: Nest, _: Sequence[Expr], i: Sequence[Expr]) -> Scalar:
        unknown = nest.read(values, i).to(i64).maximum(FINE + 1)
        return nest.read(found, i).eq(0).select(unknown, nest.const(FINE, i64))

    ctx.check(
        ctx.generate([], wrong, over=dims, combiner="max", element=i64, part="check"),
        ("it has no category for the value"),
    )


def _one_hot_reason(op: OnnxOp) -> str | None:
    return None if numbers(op, "cats_int64s") else "its categories are strings"


# -- LabelEncoder -----------------------------------------------------------------------------------------------------


def _encoder(op: OnnxOp) -> tuple[Array, Array, Any] | str:
    """Returns keys, values and the default; or the reason for a fallback if there are texts among them."""
    found: list[Array] = []
    for what in ("keys", "values"):
        tensor = op.attr(f"{what}_tensor")
        ints, floats = numbers(op, f"{what}_int64s"), numbers(op, f"{what}_floats")
        if tensor is not None:
            array = np.asarray(tensor).reshape(-1)
        elif ints:
            array = np.array(ints, np.int64)
        else:
            array = np.array(floats, np.float32)
        if array.dtype.kind not in "if" or not array.size:
            return "its keys or values are strings"
        found.append(array)
    keys, values = found
    if len(keys) != len(values):
        return f"{len(keys)} keys for {len(values)} values"
    default = op.attr("default_tensor")
    if default is not None:
        return keys, values, np.asarray(default).reshape(-1)[0]
    given = op.attr("default_int64", -1) if values.dtype.kind == "i" else op.attr("default_float", -0.0)
    return keys, values, given


def _encoder_tables(op: OnnxOp) -> Mapping[str, Array]:
    """Returns the sorted keys, each once (the first of equal ones counts), with their values; a NaN key is handled
    separately, and is not a key before version 4."""
    found = _encoder(op)
    assert not isinstance(found, str)
    keys, values, _ = found
    real = keys == keys
    unique, first = np.unique(keys[real], return_index=True)
    return {"keys": unique, "values": values[real][first]}


def infer_encoder(ctx: InferContext) -> list[TensorInfo]:
    tensor = ctx.op.attr("values_tensor")
    if tensor is not None:
        element = element_of_dtype(np.asarray(tensor).dtype).attr
    else:
        texts, whole = numbers(ctx.op, "values_strings"), numbers(ctx.op, "values_int64s")
        element = StringType() if texts else i64 if whole else f32
    return infos(element, input_dims(ctx, 0))


def lower_encoder(ctx: Lowering) -> list[SSAValue]:
    """Lowers to a binary search for every element."""
    found = _encoder(ctx.op)
    assert not isinstance(found, str)
    keys, values, default = found
    tables = _encoder_tables(ctx.op)
    count = len(tables["keys"])
    p = ctx.procedure([ctx.required(0), ctx.table("keys"), ctx.table("values")], [ctx.output_type()])
    source, sorted_keys, mapped, target = p.buffers
    at = list(p.axes(ctx.dims(0)))
    value = p.load(source, at)
    low, high = p.variable(p.const(0, i64), "low"), p.variable(p.const(count, i64), "high")
    with p.sequential(max(1, count.bit_length())):
        middle = (low.get() + high.get()).shift_right(1)
        with p.when(low.get() < high.get()):
            below = p.load(sorted_keys, [middle]) < value
            low.set(below.select(middle + 1, low.get()))
            high.set(below.select(high.get(), middle))
    place = low.get()
    hit = (place < count) & p.load(sorted_keys, [place]).eq(value)
    element = ctx.out_element()
    made = hit.select(p.load(mapped, [place]), p.const(np.asarray(default).item(), element))
    missing = np.flatnonzero(keys != keys)
    if missing.size and ctx.opset >= 4:
        made = value.is_nan().select(p.const(values[missing[0]].item(), element), made)
    p.store(made, target, at)
    return list(p.end())


def _encoder_reason(op: OnnxOp) -> str | None:
    found = _encoder(op)
    return found if isinstance(found, str) else None


def _ml(
    name: str,
    infer: Callable[[InferContext], list[TensorInfo]],
    lower: Callable[[Lowering], list[SSAValue]],
    *checks: Callable[[OnnxOp], str | None],
    tables: Callable[[OnnxOp], Mapping[str, Array]] | None = None,
    requires: Callable[[OnnxOp], list[Requirement]] | None = None,
    cost: int = 0,
    kind: str = "elementwise",
) -> OpSpec:
    return OpSpec(
        f"ai.onnx.ml.{name}",
        infer=infer,
        lower=lower,
        legal=legal(*checks),
        tables=tables,
        requires=requires,
        flops=elementwise_flops(cost) if cost else None,
        kind=kind,
    )


def _needs_features(op: OnnxOp) -> str | None:
    return None if operand_dims(op, 0) else "it has no features"


SPECS: list[OpSpec] = [
    _ml(
        "ArrayFeatureExtractor",
        infer_extractor,
        lower_extractor,
        _needs_features,
        requires=_extractor_requires,
        kind="movement",
    ),
    _ml("Binarizer", _like_input(), _binarizer, cost=1),
    _ml(
        "FeatureVectorizer",
        infer_vectorizer,
        lower_vectorizer,
        _vectorizer_reason,
        requires=_vectorizer_requires,
        kind="movement",
    ),
    _ml("Imputer", _like_input(), lower_imputer, _imputer_reason, cost=1, tables=_imputer_tables),
    _ml("LabelEncoder", infer_encoder, lower_encoder, _encoder_reason, cost=8, tables=_encoder_tables),
    _ml("Normalizer", _like_input(f32), lower_normalizer, _needs_features, cost=4),
    _ml(
        "OneHotEncoder",
        infer_one_hot,
        lower_one_hot,
        _one_hot_reason,
        cost=1,
        tables=lambda op: {"cats": np.array(numbers(op, "cats_int64s"), np.int64)},
    ),
    _ml(
        "Scaler",
        _like_input(f32),
        lower_scaler,
        _needs_features,
        lambda op: _list_reason(op, "offset", "scale"),
        cost=2,
        tables=lambda op: {n: np.array(numbers(op, n), np.float32) for n in ("offset", "scale")},
    ),
]
