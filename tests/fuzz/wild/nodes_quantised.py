"""Quantisation, quantised products and what ONNX Runtime has of quantised ops in its own domain."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.fuzz.wild.nodes import rule
from tests.fuzz.wild.pool import BF16, Pool

BYTES = (np.uint8, np.int8)
NIBBLES: tuple[Any, ...] = (ml_dtypes.int4, ml_dtypes.uint4)
SMALL_FLOATS: tuple[Any, ...] = (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)
MS = "com.microsoft."


def scale(p: Pool, shape: tuple[int, ...] = (), dtype: Any = np.float32) -> str:
    """Steps that put values of a few units well inside of a byte."""
    return p.weight(np.asarray(p.data.choice([0.02, 0.05, 0.1, 0.25], shape), dtype))


def zero(p: Pool, dtype: Any, shape: tuple[int, ...] = ()) -> str:
    """A zero point near the middle of a type."""
    kind = np.dtype(dtype)
    if "float" in kind.name:
        return p.weight(np.zeros(shape).astype(dtype))
    middle = {"uint8": 128, "uint16": 32768, "uint4": 8}.get(kind.name, 0)
    return p.weight((middle + p.data.integers(-3, 4, shape)).astype(dtype))


def bytes_(p: Pool, dtype: Any, shape: tuple[int, ...]) -> str:
    """A weight of all of a byte's values; not those at the ends, which overflow sums of products on some CPUs."""
    limits = np.iinfo(dtype)
    return p.weight(
        p.data.integers(limits.min // 2 + (limits.max // 4 if not limits.min else 0), limits.max // 2, shape).astype(
            dtype
        )
    )


@rule(8)
def quantize(p: Pool) -> bool:
    """For the tensor, along an axis, or in blocks."""
    x = p.pick((np.float32, np.float32, np.float16, BF16))
    if x is None:
        return False
    own, shape = p.values[x].dtype, p.shape(x)
    types: list[Any] = [*BYTES, *BYTES]
    domain = ""
    if p.opset >= 21:
        types += [np.int16, np.uint16, *NIBBLES]
    if p.opset >= 19:
        types += SMALL_FLOATS
    if p.chance(0.15):
        domain, types = MS, [*BYTES, np.int16, np.uint16, *NIBBLES]
    to = p.rng.choice(types)
    wide = own if p.opset >= 19 else np.float32
    kind = p.rng.random()
    attrs: dict[str, Any] = {}
    of: tuple[int, ...] = ()
    if shape and p.opset >= 13 and kind < 0.4:
        axis = p.rng.randrange(len(shape))
        of, attrs = (shape[axis],), {"axis": axis - (len(shape) if p.chance(0.3) else 0)}
    elif shape and (p.opset >= 21 or domain) and kind < 0.6:
        axis, block = p.rng.randrange(len(shape)), p.rng.choice([2, 4, 16])
        attrs = {"axis": axis, "block_size": block}
        of = (*shape[:axis], -(-shape[axis] // block), *shape[axis + 1 :])
    if "float" in np.dtype(to).name and p.chance(0.3):
        attrs["saturate"] = 0
    zeros = [zero(p, to, of)] if p.chance(0.9) or to is not np.uint8 else []
    if not p.try_node(domain + "QuantizeLinear", [x, scale(p, of, wide), *zeros], **attrs):
        return False
    if p.chance(0.5):
        attrs.pop("saturate", None)
        q = p.last()
        p.try_node(domain + "DequantizeLinear", [q, scale(p, of, wide), *([zero(p, to, of)] if zeros else [])], **attrs)
    return True


@rule(4)
def dequantize(p: Pool) -> bool:
    q = p.pick((*BYTES, np.int32, np.int16, np.uint16, *NIBBLES, *SMALL_FLOATS))
    if q is None:
        return False
    shape, own = p.shape(q), p.values[q].dtype
    per_axis = bool(shape) and p.opset >= 13 and p.chance(0.4)
    axis = p.rng.randrange(len(shape)) if per_axis else 0
    of = (shape[axis],) if per_axis else ()
    zeros = [zero(p, own, of)] if own != np.int32 and p.chance(0.8) else []
    wide = p.rng.choice([np.float32, np.float32, np.float16]) if p.opset >= 19 else np.float32
    return p.try_node("DequantizeLinear", [q, scale(p, of, wide), *zeros], **({"axis": axis} if per_axis else {}))


@rule(2)
def dynamic_quantize(p: Pool) -> bool:
    x = p.pick((np.float32,))
    # Whether ONNX Runtime sees a NaN depends on where in a vector of its kernel it lies.
    if x is None or p.special or not p.try_node("DynamicQuantizeLinear", [x], 3):
        return False
    q, step, nil = p.last(3), p.last(2), p.last(1)
    if p.values[q].ndim >= 2 and p.chance(0.7):
        depth = p.shape(q)[-1]
        w = bytes_(p, p.rng.choice(BYTES), (depth, p.rng.choice([1, 4, 9])))
        if p.try_node("MatMulInteger", [q, w, nil, zero(p, p.values[w].dtype)]) and p.try_node(
            "Cast", [p.last()], to=1
        ):
            p.try_node("Mul", [p.last(), step])
        return True
    return p.try_node("DequantizeLinear", [q, step, nil])


@rule(5)
def integer_products(p: Pool) -> bool:
    a = p.pick(BYTES, (1, 2, 3, 4))
    if a is None or p.opset < 10:
        return False
    shape, own = p.shape(a), p.values[a].dtype
    to = p.rng.choice(BYTES)
    if len(shape) >= 3 and shape[1] and p.chance(0.5):
        rank = len(shape) - 2
        group = shape[1] if p.chance(0.2) else 1
        w = bytes_(p, to, (2 * group, shape[1] // group, *(p.rng.choice([1, 2, 3]) for _ in range(rank))))
        attrs = {"pads": [p.rng.randrange(2) for _ in range(2 * rank)], "group": group}
        if p.chance(0.5):
            zeros = [zero(p, own), zero(p, to)] if p.chance(0.7) else []
            return p.try_node("ConvInteger", [a, w, *zeros], **attrs)
        out = own
        per = (2 * group,) if p.chance(0.5) else ()
        bias = [p.weight(p.data.integers(-500, 500, 2 * group), np.int32)] if p.chance(0.5) else []
        w_zero = zero(p, to, per) if to == np.uint8 else p.weight(np.zeros(per), np.int8)
        more = [scale(p, per), w_zero, scale(p), zero(p, out), *bias]
        return p.try_node("QLinearConv", [a, scale(p), zero(p, own), w, *more], **attrs)
    columns = p.rng.choice([1, 4, 9, 16])
    w = bytes_(p, to, (shape[-1], columns))
    per = (columns,) if p.chance(0.4) else ()
    w_zero = zero(p, to, per)
    kind = p.rng.randrange(4)
    if kind == 0:
        return p.try_node("MatMulInteger", [a, w, *([zero(p, own), w_zero] if p.chance(0.8) else [])])
    if kind == 1:
        more = [scale(p, per), w_zero, scale(p), zero(p, own)]
        return p.try_node("QLinearMatMul", [a, scale(p), zero(p, own), w, *more])
    if kind == 2:
        bias = [p.weight(p.array(np.float32, (columns,)))] if p.chance(0.5) else []
        more = [zero(p, own), w_zero, *bias]
        return p.try_node(MS + "MatMulIntegerToFloat", [a, w, scale(p), scale(p, per), *more])
    if len(shape) != 2:
        return False
    out = [scale(p), zero(p, own)] if p.chance(0.5) else ["", ""]
    bias_ = p.weight(p.data.integers(-500, 500, columns), np.int32) if p.chance(0.5) else ""
    return p.try_node(MS + "QGemm", [a, scale(p), zero(p, own), w, scale(p, per), w_zero, bias_, *out])


@rule(2)
def dynamic_products(p: Pool) -> bool:
    x = p.pick((np.float32,), (2, 3))
    if x is None:
        return False
    depth, columns = p.shape(x)[-1], p.rng.choice([1, 4, 9, 16])
    if p.chance(0.3):
        bits, block = p.rng.choice([4, 4, 8]), 16
        blocks = -(-depth // block)
        packed = p.weight(p.data.integers(0, 256, (columns, blocks, block * bits // 8)), np.uint8)
        attrs = {"K": depth, "N": columns, "bits": bits, "block_size": block}
        return p.try_node(MS + "MatMulNBits", [x, packed, scale(p, (columns, blocks))], **attrs)
    to = p.rng.choice(BYTES)
    per = (columns,) if p.chance(0.4) else ()
    w = bytes_(p, to, (depth, columns))
    bias = [p.weight(p.array(np.float32, (columns,)))] if p.chance(0.5) else []
    return p.try_node(MS + "DynamicQuantizeMatMul", [x, w, scale(p, per), zero(p, to, per), *bias])


@rule(5)
def quantised_maps(p: Pool) -> bool:
    """Ops on bytes that have scales and zero points of their own."""
    a = p.pick(BYTES)
    if a is None:
        return False
    own, shape = p.values[a].dtype, p.shape(a)
    given = [a, scale(p), zero(p, own)]
    to = [scale(p), zero(p, own)]
    op = p.rng.choice(
        ["Add", "Mul", "Sigmoid", "LeakyRelu", "Concat", "Softmax", "Average", "Global", "Reduce", "Where"]
    )
    if op in ("Add", "Mul"):
        others = [n for n, v in p.values.items() if v.dtype == own and n not in p.weights]
        b = p.rng.choice(others) if p.chance(0.5) else bytes_(p, own, shape[-1:])
        return p.try_node(f"{MS}QLinear{op}", [*given, b, scale(p), zero(p, own), *to])
    if op in ("Sigmoid", "LeakyRelu"):
        return p.try_node(f"{MS}QLinear{op}", [*given, *to])
    if op == "Concat":
        others = [n for n, v in p.values.items() if v.dtype == own and v.ndim == len(shape)]
        if not shape:
            return False
        return p.try_node(
            MS + "QLinearConcat", [*to, *given, p.rng.choice(others), scale(p), zero(p, own)], axis=p.axis(a)
        )
    if op == "Softmax":
        return p.try_node(MS + "QLinearSoftmax", [*given, *to], axis=p.axis(a), opset=13)
    if op == "Average":
        rank = max(len(shape) - 2, 1)
        attrs = {"kernel_shape": [2] * rank, "strides": [p.rng.choice([1, 2])] * rank, "ceil_mode": p.rng.randrange(2)}
        return p.try_node(MS + "QLinearAveragePool", [*given, *to], count_include_pad=p.rng.randrange(2), **attrs)
    if op == "Global":
        return p.try_node(MS + "QLinearGlobalAveragePool", [*given, *to], channels_last=0)
    if op == "Where":
        c = p.pick((np.bool_,))
        return c is not None and p.try_node(
            MS + "QLinearWhere", [c, *given, bytes_(p, own, shape[-1:]), scale(p), zero(p, own), *to]
        )
    return p.try_node(MS + "QLinearReduceMean", [*given, *to], axes=[p.axis(a)], keepdims=p.rng.randrange(2))


@rule(8)
def around(p: Pool) -> bool:
    """Quantised, and back, before and after an op: how quantised models come."""
    x = p.pick((np.float32,), (2, 3, 4))
    if x is None or p.opset < 10:
        return False
    to = p.rng.choice([np.uint8, np.int8, *((np.uint16, np.int16) if p.opset >= 21 else ())])
    low = _there_and_back(p, x, to)
    if low is None:
        return False
    shape = p.shape(x)
    kind = p.rng.randrange(5)
    if kind == 0 and len(shape) in (3, 4) and shape[1]:
        count = p.rng.choice([1, 2, 5])
        per = (count,) if p.opset >= 13 and p.chance(0.6) else ()
        q = bytes_(p, np.int8, (count, shape[1], *(p.rng.choice([1, 2]) for _ in shape[2:])))
        axis = {"axis": 0} if per else {}
        if not p.try_node("DequantizeLinear", [q, scale(p, per), p.weight(np.zeros(per), np.int8)], **axis):
            return True
        done = p.try_node("Conv", [low, p.last()])
    elif kind <= 1:
        columns = p.rng.choice([1, 4, 16])
        per = (columns,) if p.opset >= 13 and p.chance(0.6) else ()
        w_type = p.rng.choice(BYTES)
        axis = {"axis": 1} if per else {}
        q = bytes_(p, w_type, (shape[-1], columns))
        if not p.try_node("DequantizeLinear", [q, scale(p, per), zero(p, w_type, per)], **axis):
            return True
        done = p.try_node("MatMul", [low, p.last()])
    elif kind == 2:
        others = [n for n, v in p.values.items() if v.dtype == np.float32 and n not in p.weights]
        other = _there_and_back(p, p.rng.choice(others), to)
        done = other is not None and p.try_node(p.rng.choice(["Add", "Mul", "Sub", "MatMul"]), [low, other])
    elif kind == 3:
        done = p.try_node(
            p.rng.choice(["Relu", "Sigmoid", "Softmax", "Transpose", "GlobalAveragePool", "LeakyRelu"]), [low]
        )
    else:
        done = p.try_node("Concat", [low, low], axis=0) if p.chance(0.5) else p.try_node("ReduceMax", [low])
    if done:
        _there_and_back(p, p.last(), to)
    return True


def _there_and_back(p: Pool, x: str, to: Any) -> str | None:
    step, nil = scale(p), zero(p, to)
    if p.try_node("QuantizeLinear", [x, step, nil]) and p.try_node("DequantizeLinear", [p.last(), step, nil]):
        return p.last()
    return None
