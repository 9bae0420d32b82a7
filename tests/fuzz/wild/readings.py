"""What a model means where ONNX Runtime has no one answer: NaN in ops whose result then depends on how it is computed.

Its ReduceMax, ReduceMin, MaxPool, GlobalMaxPool and DynamicQuantizeLinear lose a NaN, or numbers beside it, by where it
is in a vector register; its ArgMax and ArgMin find a NaN only where a row, or a part of it, begins with one; a
transform of a length that is a power of two makes infinities or NaN by the grouping of its butterflies; DeformConv adds
0 times the first element where it looks outside of an image, unlike ONNX's evaluator; Resize adds 0 times a neighbour
along an axis that keeps its size in three dimensions, and not in four; and LRN takes squares from a running sum again,
which an infinity or a NaN stays in.

And normalisations of rows that hardly vary: the mean that its MeanVarianceNormalization takes away is off by more than
what the elements differ by, and the variance of its functions, a mean of squares less a square, is wrong in all its
digits, or negative. Such nodes are computed in f64 here.

`test_readings.py` shows each. Such a node means here what `docs/explanation/numerics.md` says, others what ONNX
Runtime computes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tests.fuzz.wild.pool import Array, is_float, make_model, reads, run_alone, value_info

MOST_SLICES = 400
"""Of an image, to be resized one by one."""


def reading(model: onnx.ModelProto, feed: Mapping[str, Array]) -> list[Array] | None:
    """The outputs, node by node. None where none of them is read otherwise than by ONNX Runtime, or a node does not run
    alone."""
    fixed = {w.name: numpy_helper.to_array(w) for w in model.graph.initializer}
    values: dict[str, Any] = {**fixed, **feed}
    opset = next(i.version for i in model.opset_import if not i.domain)
    differs = False
    for node in model.graph.node:
        arrays = {n: values[n] for n in reads(node) if n in values}
        given = [arrays.get(n) for n in node.input]
        rule = RULES.get(node.op_type) if _is_strange(given) else None
        made = (NORMS.get(node.op_type) or rule or _as_computed)(node, given, opset)
        differs |= made is not None
        if made is None:
            try:
                made = run_alone(node, arrays, {n: a for n, a in arrays.items() if n in fixed}, opset)
            except Exception:  # a sequence, say, which no model of one node takes
                return None
        values.update(zip([o for o in node.output if o], made, strict=False))
    return [values[o.name] for o in model.graph.output] if differs else None


def _is_strange(given: list[Any]) -> bool:
    first = given[0] if given else None
    return isinstance(first, np.ndarray) and is_float(first.dtype) and not np.isfinite(first.astype(np.float64)).all()


def _as_computed(node: onnx.NodeProto, given: list[Any], opset: int) -> None:
    """No rule: as ONNX Runtime computes it."""


def _attrs(node: onnx.NodeProto) -> dict[str, Any]:
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


# -- the ops: a result for each output, or None where ONNX Runtime's is as good as any ---------------------------------


def _extremes(node: onnx.NodeProto, given: list[Any], opset: int) -> list[Array] | None:
    """A NaN is the greatest and the least."""
    attrs, x = _attrs(node), given[0]
    if not np.isnan(x.astype(np.float64)).any():
        return None
    axes = given[1].tolist() if len(given) > 1 and given[1] is not None else attrs.get("axes", [])
    if not axes and attrs.get("noop_with_empty_axes"):
        return None
    pick = np.max if node.op_type == "ReduceMax" else np.min
    if any(x.shape[a] == 0 for a in (axes or range(x.ndim))):
        return None
    over = tuple({int(a) % x.ndim for a in axes}) if axes else None
    made = pick(x.astype(np.float64), axis=over, keepdims=bool(attrs.get("keepdims", 1)))
    return [np.asarray(made).astype(x.dtype)]


def _places(node: onnx.NodeProto, given: list[Any], opset: int) -> list[Array] | None:
    """The first NaN, or the last, is where the extreme is."""
    attrs, x = _attrs(node), given[0].astype(np.float64)
    axis, last = attrs.get("axis", 0), bool(attrs.get("select_last_index", 0))
    if not np.isnan(x).any():
        return None
    pick = np.argmax if node.op_type == "ArgMax" else np.argmin
    made = pick(np.flip(x, axis) if last else x, axis=axis)
    made = x.shape[axis] - 1 - made if last else made
    return [np.asarray(np.expand_dims(made, axis) if attrs.get("keepdims", 1) else made, np.int64)]


def _one_of_a_row(node: onnx.NodeProto, given: list[Any], opset: int) -> list[Array] | None:
    """Hardmax: the first NaN is the greatest."""
    x = given[0].astype(np.float64)
    if not np.isnan(x).any():
        return None
    axis = _attrs(node).get("axis", 1 if opset < 13 else -1) % x.ndim
    rows = x.reshape(int(np.prod(x.shape[:axis])), -1) if opset < 13 else np.moveaxis(x, axis, -1)
    made = np.arange(rows.shape[-1]) == rows.argmax(-1)[..., None]
    made = made.reshape(x.shape) if opset < 13 else np.moveaxis(made, -1, axis)
    return [made.astype(given[0].dtype)]


def _quantised(node: onnx.NodeProto, given: list[Any], opset: int) -> list[Array] | None:
    """The range of what is no NaN, which becomes 0."""
    x = given[0]
    if not np.isnan(x).any():
        return None
    numbers = x[~np.isnan(x)]
    low, high = np.minimum(numbers.min(initial=0), 0), np.maximum(numbers.max(initial=0), 0)
    with np.errstate(all="ignore"):
        step = np.float32(1) if low == high else np.float32((high - low) / np.float32(255))
        start = np.float32(0) - low / step
        nil = np.uint8(np.rint(np.clip(start, 0, 255))) if not np.isnan(start) else np.uint8(255)
        codes = np.clip(np.rint(x / step) + np.float32(nil), 0, 255)
    return [np.where(np.isnan(codes), 0, codes).astype(np.uint8), np.asarray(step), np.asarray(nil)]


def _quantised_product(node: onnx.NodeProto, given: list[Any], opset: int) -> list[Array] | None:
    made = _quantised(node, given, opset)
    if made is None:
        return None
    codes, step, nil = made
    names = [n if a is not None else "" for n, a in zip("bsz+", [*given[1:], *[None] * 4], strict=False)]
    b, scales, zeros, bias = names
    product = helper.make_node(
        "MatMulIntegerToFloat", ["a", b, "step", scales, "nil", zeros, bias], ["y"], domain="com.microsoft"
    )
    arrays = {"a": codes, "step": step, "nil": nil, **{n: a for n, a in zip("bsz+", given[1:], strict=False) if n}}
    return run_alone(product, {n: a for n, a in arrays.items() if a is not None}, {}, opset)


def _greatest_in_windows(node: onnx.NodeProto, given: list[Any], opset: int) -> list[Array] | None:
    """A NaN is the greatest, the first one where there are several: ranks are pooled, of which it has the highest."""
    x = given[0]
    if not np.isnan(x.astype(np.float64)).any():
        return None
    _, ranks = np.unique(x.astype(np.float64), return_inverse=True)
    counted = onnx.NodeProto()
    counted.CopyFrom(node)
    counted.input[:], counted.output[:] = ["ranks"], ["greatest", "places"]
    arrays = {"ranks": ranks.reshape(x.shape).astype(np.float32)}
    asked = run_alone(counted, arrays, {}, max(opset, 12))[1]
    for attr in [a for a in counted.attribute if a.name == "storage_order"]:
        counted.attribute.remove(attr)
    places = run_alone(counted, arrays, {}, max(opset, 12))[1]
    if places.min(initial=0) < 0:
        return None  # a window of padding alone
    return [x.reshape(-1)[places], asked]


def _greatest(node: onnx.NodeProto, given: list[Any], opset: int) -> list[Array] | None:
    x = given[0]
    if not np.isnan(x.astype(np.float64)).any():
        return None
    return [x.astype(np.float64).max(axis=tuple(range(2, x.ndim)), keepdims=True).astype(x.dtype)]


def _deformed(node: onnx.NodeProto, given: list[Any], opset: int) -> list[Array] | None:
    """ONNX's own evaluation, which takes no NaN for a distance, but one that leads outside."""
    distances = given[2].astype(np.float64)
    given = [given[0], given[1], np.where(np.isnan(distances), 1e6, distances).astype(given[2].dtype), *given[3:]]
    arrays = {n: a for n, a in zip(node.input, given, strict=True) if a is not None}
    infos = [value_info(n, a.dtype, a.shape) for n, a in arrays.items()]
    graph = helper.make_graph([node], "alone", infos, [onnx.ValueInfoProto(name=n) for n in node.output])
    made: Any = ReferenceEvaluator(make_model(graph, opset)).run(None, arrays)
    return [a.astype(given[0].dtype) for a in made]


def _resized(node: onnx.NodeProto, given: list[Any], opset: int) -> list[Array] | None:
    """Slice by slice along the axes that keep their size."""
    attrs, x, last = _attrs(node), given[0], len(given) - 1
    mode, factors = attrs.get("coordinate_transformation_mode", b""), given[last]
    if (
        attrs.get("mode", b"nearest") == b"nearest"
        or mode == b"tf_crop_and_resize"
        or "keep_aspect_ratio_policy" in attrs
    ):
        return None
    axes = [a % x.ndim for a in attrs.get("axes", range(x.ndim))]
    ones = x.shape if last == 3 else (1.0,) * x.ndim
    kept = [a for a in range(x.ndim) if x.shape[a] > 1 and (a not in axes or factors[axes.index(a)] == ones[a])]
    if np.prod([x.shape[a] for a in kept]) > MOST_SLICES:
        return None
    if last == 3:
        factors = np.array([1 if a in kept else f for a, f in zip(axes, factors, strict=True)], np.int64)

    def part(sliced: Array, left: list[int]) -> Array:
        if left:
            parts = np.split(sliced, sliced.shape[left[0]], left[0])
            return np.concatenate([part(p, left[1:]) for p in parts], left[0])
        arrays = dict(zip(node.input, [sliced, *given[1:last], factors], strict=True))
        arrays = {n: a for n, a in arrays.items() if a is not None}
        return run_alone(node, arrays, {n: a for n, a in arrays.items() if n != node.input[0]}, opset)[0]

    return [part(x, kept)] if kept else None


def _local(node: onnx.NodeProto, given: list[Any], opset: int) -> list[Array]:
    """Divided by what the squares of the channels around make."""
    attrs, x = _attrs(node), given[0].astype(np.float64)
    size, channels = attrs["size"], x.shape[1]
    with np.errstate(all="ignore"):
        sums = [
            (x[:, max(c - (size - 1) // 2, 0) : c + size // 2 + 1] ** 2).sum(1, keepdims=True) for c in range(channels)
        ]
        factor = attrs.get("alpha", 1e-4) / size * np.concatenate(sums, 1) + attrs.get("bias", 1.0)
        return [(x * factor ** -attrs.get("beta", 0.75)).astype(given[0].dtype)]


def _transform(node: onnx.NodeProto, given: list[Any], opset: int) -> list[Array] | None:
    """A row that is not finite has no number, and no infinity, in its transform."""
    attrs, x = _attrs(node), given[0]
    axis = attrs.get("axis", 1) if opset < 20 else int(given[2]) if len(given) > 2 and given[2] is not None else -2
    arrays = {n: a for n, a in zip(node.input, given, strict=True) if a is not None}
    (made,) = run_alone(node, arrays, {n: a for n, a in arrays.items() if n != node.input[0]}, opset)
    axis %= x.ndim
    length = int(given[1]) if len(given) > 1 and given[1] is not None else x.shape[axis]
    taken = np.take(x, range(min(length, x.shape[axis])), axis)
    fine = np.isfinite(taken.astype(np.float64)).all(axis=(axis, x.ndim - 1), keepdims=True)
    return [np.where(fine, made, np.nan).astype(made.dtype)]


RULES: dict[str, Callable[[onnx.NodeProto, list[Any], int], list[Array] | None]] = {
    "ArgMax": _places,
    "ArgMin": _places,
    "DFT": _transform,
    "DeformConv": _deformed,
    "DynamicQuantizeLinear": _quantised,
    "DynamicQuantizeMatMul": _quantised_product,
    "GlobalMaxPool": _greatest,
    "Hardmax": _one_of_a_row,
    "LRN": _local,
    "MaxPool": _greatest_in_windows,
    "ReduceMax": _extremes,
    "ReduceMin": _extremes,
    "Resize": _resized,
    "Upsample": _resized,
}


# -- normalisations ----------------------------------------------------------------------------------------------------


def _mean_variance(node: onnx.NodeProto, given: list[Any], opset: int) -> list[Array]:
    x = given[0]
    epsilon = 0.0 if x.dtype == np.float16 else 1e-9
    return [_normalised(x, tuple(_attrs(node).get("axes", [0, 2, 3])), lambda v: np.sqrt(v) + epsilon)]


def _by_channel(node: onnx.NodeProto, given: list[Any], opset: int) -> list[Array]:
    """InstanceNormalization, and GroupNormalization, which has as many channels as groups until opset 21."""
    x, scale, bias = given
    attrs = _attrs(node)
    groups = attrs.get("num_groups", x.shape[1])
    epsilon = np.float32(attrs.get("epsilon", 1e-5))
    rows = x.reshape(x.shape[0], groups, -1)
    made = _normalised(rows, (2,), lambda v: np.sqrt(v + epsilon), np.float64)
    by_group = node.op_type == "GroupNormalization" and opset < 21
    made = made if by_group else made.reshape(x.shape[0], x.shape[1], -1)
    made = made * scale.astype(np.float64)[:, None] + bias.astype(np.float64)[:, None]
    return [made.reshape(x.shape).astype(x.dtype)]


def _by_row(node: onnx.NodeProto, given: list[Any], opset: int) -> list[Array] | None:
    """LayerNormalization, of which the statistics are no outputs."""
    if len([o for o in node.output if o]) > 1:
        return None
    x, attrs = given[0], _attrs(node)
    axes = tuple(range(attrs.get("axis", -1) % x.ndim, x.ndim))
    epsilon = np.float32(attrs.get("epsilon", 1e-5))
    made = _normalised(x, axes, lambda v: np.sqrt(v + epsilon), np.float64) * given[1].astype(np.float64)
    if len(given) > 2 and given[2] is not None:
        made = made + given[2].astype(np.float64)
    return [made.astype(x.dtype)]


def _normalised(x: Array, axes: tuple[int, ...], deviation: Callable[[Array], Array], dtype: Any = None) -> Array:
    wide = x.astype(np.longdouble)
    first = wide[tuple(slice(0, 1) if k in {a % x.ndim for a in axes} else slice(None) for k in range(x.ndim))]
    with np.errstate(all="ignore"):
        apart = wide - first  # exact where a row hardly varies
        apart = apart - apart.mean(axis=axes, keepdims=True)
        made = apart / deviation((apart * apart).mean(axis=axes, keepdims=True))
    return made.astype(x.dtype if dtype is None else dtype)


NORMS: dict[str, Callable[[onnx.NodeProto, list[Any], int], list[Array] | None]] = {
    "GroupNormalization": _by_channel,
    "InstanceNormalization": _by_channel,
    "LayerNormalization": _by_row,
    "MeanVarianceNormalization": _mean_variance,
}
"""The ops that are computed more exactly than by ONNX Runtime, whatever their elements are."""
