"""Decomposed activations: Gelu (by erf and by tanh), x*sigmoid(a*x), HardSwish and Mish.

All are a polynomial in x and one function T of x. So any order of the factors, and any form of a cube or of a division
by a constant, is one case:

    gelu        0.5*x + 0.5*x*T,   T = erf(0.70710678*x)
    fast gelu   0.5*x + 0.5*x*T,   T = tanh(0.79788456*x + 0.035677408*x^3)
    swish       x*T,               T = sigmoid(a*x)
    hard swish  x*T / 6,           T = clip(x + 3, 0, 6);   x*T,  T = HardSigmoid(x) with 1/6 and 0.5
    mish        x*T,               T = tanh(softplus(x))

The coefficients must match to the precision of the type, and the values between x and the result must have no other
users. In f64 only exact coefficients match: those of ONNX's Gelu by tanh, of HardSwish and of attributes are rounded to
f32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import pi, sqrt
from struct import pack, unpack
from typing import Any

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import SSAValue

from igniter.dialects.onnx.base import OnnxOp
from igniter.transforms.onnx.onnx_rewriting import Replacement, Rewriter, Rules, defining, element, operand, same_dims
from igniter.transforms.onnx.recompose.matching import (
    Monomial,
    Polynomial,
    find_below,
    is_close,
    is_closed,
    is_number,
    polynomial,
    sources,
)

_ERF = 1 / sqrt(2)
_TANH = sqrt(2 / pi)
_CUBE = 0.044715
_HALF_AND_HALF = {(1, 0): 0.5, (1, 1): 0.5}
_PRODUCT = {(1, 1): 1.0}


@dataclass(frozen=True)
class Activation:
    """The result of a pattern: `name` from opset `since` of ai.onnx, else `contrib` of com.microsoft if there is
    one."""

    name: str
    since: int
    attrs: Mapping[str, Any]
    contrib: str = ""
    contrib_attrs: Mapping[str, Any] | None = None


Inner = Callable[[OnnxOp, SSAValue], "tuple[Activation, Mapping[Monomial, float], list[OnnxOp]] | None"]
"""From T and a candidate for x: the result, the required polynomial of the root, and the nodes inside T."""


def _linear(value: SSAValue, x: SSAValue) -> Polynomial | None:
    return polynomial(value, (x,))


def _gelu(t: OnnxOp, x: SSAValue) -> tuple[Activation, Mapping[Monomial, float], list[OnnxOp]] | None:
    inner = _linear(t.operands[0], x)
    if inner is None or not inner.matches({(1,): _ERF}, element(x)):
        return None
    return Activation("Gelu", 20, {}, "Gelu"), _HALF_AND_HALF, list(inner.nodes)


def _fast_gelu(t: OnnxOp, x: SSAValue) -> tuple[Activation, Mapping[Monomial, float], list[OnnxOp]] | None:
    inner = _linear(t.operands[0], x)
    if inner is None or element(x) == f64 or not inner.matches({(1,): _TANH, (3,): _TANH * _CUBE}, element(x)):
        return None
    return Activation("Gelu", 20, {"approximate": "tanh"}, "FastGelu"), _HALF_AND_HALF, list(inner.nodes)


def _swish(t: OnnxOp, x: SSAValue) -> tuple[Activation, Mapping[Monomial, float], list[OnnxOp]] | None:
    inner = _linear(t.operands[0], x)
    if inner is None or inner.terms.keys() != {(1,)}:
        return None
    alpha = inner.terms[(1,)]
    if element(x) == f64 and float(alpha) != unpack("f", pack("f", alpha))[0]:
        return None
    attrs = {"alpha": float(alpha)}
    return Activation("Swish", 24, attrs, "QuickGelu", attrs), _PRODUCT, list(inner.nodes)


def _hard_sigmoid(t: OnnxOp, x: SSAValue) -> tuple[Activation, Mapping[Monomial, float], list[OnnxOp]] | None:
    kind = element(x)
    if t.operands[0] is not x or not is_close(t.attr("alpha"), 1 / 6, kind) or not is_close(t.attr("beta"), 0.5, kind):
        return None
    return Activation("HardSwish", 14, {}), _PRODUCT, []


def _clipped(t: OnnxOp, x: SSAValue) -> tuple[Activation, Mapping[Monomial, float], list[OnnxOp]] | None:
    inner = _linear(t.operands[0], x)
    if inner is None or element(x) == f64 or not inner.matches({(1,): 1.0, (0,): 3.0}, element(x)):
        return None
    if t.opset < 11 or not is_number(operand(t, 1), 0.0) or not is_number(operand(t, 2), 6.0):
        return None
    return Activation("HardSwish", 14, {}), {(1, 1): 1 / 6}, list(inner.nodes)


def _mish(t: OnnxOp, x: SSAValue) -> tuple[Activation, Mapping[Monomial, float], list[OnnxOp]] | None:
    softplus = defining(t.operands[0], "Softplus")
    if softplus is None or softplus.operands[0] is not x:
        return None
    return Activation("Mish", 18, {}), _PRODUCT, [softplus]


INNER: dict[str, tuple[Inner, ...]] = {
    "Erf": (_gelu,),
    "Tanh": (_mish, _fast_gelu),
    "Sigmoid": (_swish,),
    "HardSigmoid": (_hard_sigmoid,),
    "Clip": (_clipped,),
}


def recompose_activation(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Replaces the last node of an activation."""
    t = find_below(op.results[0], tuple(INNER))
    if t is None:
        return None
    for x in _candidates(t):
        for inner in INNER[t.op_type]:
            found = inner(t, x)
            made = _form(op, rw, t, x, *found) if found is not None else None
            if made is not None:
                return made
    return None


def _candidates(t: OnnxOp) -> list[SSAValue]:
    softplus = defining(t.operands[0], "Softplus")
    return [softplus.operands[0]] if softplus is not None else sources(t.operands[0])


def _form(
    op: OnnxOp,
    rw: Rewriter,
    t: OnnxOp,
    x: SSAValue,
    activation: Activation,
    wanted: Mapping[Monomial, float],
    within: list[OnnxOp],
) -> Replacement | None:
    outer = polynomial(op.results[0], (x, t.results[0]))
    if outer is None or not outer.matches(wanted, element(x)):
        return None
    if not same_dims(op.results[0], x) or element(op.results[0]) != element(x):
        return None
    if not is_closed(op, [t, *within, *outer.nodes]):
        return None
    if op.opset >= activation.since:
        return rw.op(activation.name, [x], [op.results[0].type], activation.attrs).results
    if activation.contrib and element(x) == f32:
        name = f"com.microsoft.{activation.contrib}"
        return rw.op(name, [x], [op.results[0].type], activation.contrib_attrs).results
    rw.want_opset(activation.since)
    return None


RULES: Rules = {name: [recompose_activation] for name in ("Mul", "Div", "Add")}
