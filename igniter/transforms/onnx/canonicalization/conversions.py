"""Rules for casts without effect, and pairs of casts whose first is lossless."""

from __future__ import annotations

from xdsl.dialects.builtin import bf16, f16, f32, f64, i1
from xdsl.ir import Attribute

from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.types import BY_NAME
from igniter.transforms.onnx.onnx_rewriting import Replacement, Rewriter, Rules, defining, element


def _type(name: str) -> Attribute:
    return BY_NAME[name].attr


_SIGNED = [_type(n) for n in ("int8", "int16", "int32", "int64")]
_UNSIGNED = [_type(n) for n in ("uint8", "uint16", "uint32", "uint64")]
_MANTISSA: dict[Attribute, int] = {bf16: 8, f16: 11, f32: 24, f64: 53}
_EXPONENT: dict[Attribute, int] = {bf16: 8, f16: 5, f32: 8, f64: 11}


def _bits(kind: Attribute) -> int:
    return 8 << (_SIGNED if kind in _SIGNED else _UNSIGNED).index(kind)


def is_lossless(source: Attribute, target: Attribute) -> bool:
    """True if every value of `source` survives a Cast to `target` unchanged. Conservatively False for types under a
    byte, 8-bit floats, strings and complex numbers."""
    if source == target:
        return source in _MANTISSA or source in _SIGNED or source in _UNSIGNED or source == i1
    if source == i1:
        return target in _MANTISSA or target in _SIGNED or target in _UNSIGNED
    if source in _MANTISSA:
        return target in _MANTISSA and _MANTISSA[source] <= _MANTISSA[target] and _EXPONENT[source] <= _EXPONENT[target]
    if source not in _SIGNED and source not in _UNSIGNED:
        return False
    if target in _MANTISSA:
        # All integers of that many bits must fit the mantissa; and float16 ends at 65504.
        return _bits(source) - (source in _SIGNED) <= _MANTISSA[target] and (target != f16 or _bits(source) == 8)
    if target in _SIGNED:
        return _bits(source) + (source in _UNSIGNED) <= _bits(target)
    return target in _UNSIGNED and source in _UNSIGNED and _bits(source) <= _bits(target)


def drop_same_cast(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops a Cast to the value's own type."""
    kind = element(op.operands[0])
    return [op.operands[0]] if kind is not None and kind == element(op.results[0]) else None


def join_casts(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Joins Cast(Cast(x)) if the inner one is lossless."""
    inner = defining(op.operands[0], "Cast")
    if inner is None:
        return None
    source, middle, target = element(inner.operands[0]), element(inner.results[0]), element(op.results[0])
    if source is None or middle is None or target is None or not is_lossless(source, middle):
        return None
    if source == target:
        return [inner.operands[0]]
    if target not in _MANTISSA and target not in _SIGNED and target not in _UNSIGNED and target != i1:
        return None
    if source == i1 or (source in _MANTISSA) == (middle in _MANTISSA):
        attributes = {k: v for k, v in op.attributes.items() if not k.startswith("igniter.")}
        return rw.op("Cast", [inner.operands[0]], [op.results[0].type], attributes).results
    return None


RULES: Rules = {"Cast": [drop_same_cast, join_casts], "CastLike": [drop_same_cast]}
