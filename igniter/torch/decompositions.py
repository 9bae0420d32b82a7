"""Decompositions of ops with a wrong translation in PyTorch's ONNX exporter, into ops with a correct one.

    exporter                            eager                                   for
    ---------------------------------   -------------------------------------   ------------------------------------
    log1p(x) = Log(1 + x)               x                                       x = 1e-9
    a // b = Floor(Div(a, b))           9                                       1.0 // 0.1
    trunc division of integers in f32   exact                                   integers above 2**24
    sign(x) = Sign(x)                   0                                       NaN
    argmax by ArgMax                    the place of the first NaN              NaN
    logaddexp = Log(Exp(a) + Exp(b))    100.7                                   a = b = 100
    logit(x, eps) by Clip               NaN                                     NaN
    any by ReduceMax                    False                                   no elements
    split by SplitToSequence            views                                   bfloat16, which sequences are not of

Each function here computes the results of the op's CPU kernel with PyTorch ops. Its conditions are those of
`aten/src/ATen/native/cpu`. An op not worth a decomposition stays eager (`STAYS_EAGER`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache
from typing import Any

from igniter.torch.names import Node, Tensor, is_tensor, torch

STAYS_EAGER = {
    "aten::atan2": "ONNX has no such op, and the exporter's form has no NaNs and zeros of only one sign",
    "aten::signbit": "the exporter's form has zeros of only one sign",
    "aten::erfc": "the exporter's form subtracts erf from 1, which cancels small results",
    "aten::special_erfcx": "the exporter's form multiplies infinities by values that round to 0",
    "aten::logcumsumexp": "the exporter's form subtracts the overall maximum, and underflows",
    "aten::diagonal": "the exporter's form multiplies by zeros, which turns infinities into NaNs",
    "aten::sort": "ONNX does not define the order of NaNs",
    "aten::topk": "ONNX does not define the order of NaNs and equal elements",
    "aten::scatter_reduce": "the exporter's form has no mean, and different values for unwritten elements",
    "aten::logaddexp2": "the exporter's form overflows",
}
"""Ops with a wrong translation, and the reasons."""

LARGEST_POWER = 64
"""The largest exponent of an integer power computed by products. Others stay eager: eager wraps, and ONNX does not."""


@cache
def mended() -> dict[Any, Callable[..., Any]]:
    """Returns the decompositions of this file by op, with all overloads of each."""
    functions = {
        "sign": _sign,
        "sgn": _sgn,
        "trunc": _trunc,
        "frac": _frac,
        "remainder": _remainder,
        "floor_divide": _floor_divide,
        "div": _div,
        "log1p": _log1p,
        "expm1": _expm1,
        "logaddexp": _logaddexp,
        "copysign": _copysign,
        "heaviside": _heaviside,
        "celu": _celu,
        "elu": _elu,
        "isinf": _isinf,
        "isposinf": _isposinf,
        "isneginf": _isneginf,
        "argmax": _argmax,
        "argmin": _argmin,
        "any": _any,
        "all": _all,
        "logit": _logit,
        "chunk": _chunk,
        "split_with_sizes": _pieces,
        "unsafe_split_with_sizes": _pieces,
        "unbind": _unbind,
    }
    found: dict[Any, Callable[..., Any]] = {}
    for name, function in functions.items():
        packet = getattr(torch.ops.aten, name)
        for overload in (getattr(packet, each) for each in packet.overloads()):
            arguments = overload._schema.arguments
            if not any(argument.kwarg_only and argument.alias_info for argument in arguments) and any(
                str(argument.type) == "Tensor" for argument in arguments
            ):
                found[overload] = function if name in _OF_ANY_TYPE else _real(function)
    for name in ("Tensor", "Scalar"):
        # True division is translated correctly.
        found.pop(getattr(torch.ops.aten.div, name))
    found[torch.ops.aten.max.dim] = _max
    found[torch.ops.aten.min.dim] = _min
    found[torch.ops.aten.pow.Tensor_Scalar] = _real(_power)
    # The exporter takes a number that is computed from sizes, in some overloads only.
    found[torch.ops.aten.mul.Scalar] = torch.ops.aten.mul.Tensor
    found[torch.ops.aten.sub.Scalar] = torch.ops.aten.sub.Tensor
    found[torch.ops.aten.split.Tensor] = found[torch.ops.aten.unsafe_split.Tensor] = _split
    return found


_OF_ANY_TYPE = frozenset(("chunk", "split_with_sizes", "unsafe_split_with_sizes", "unbind"))


def _real(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function restricted to real numbers. Ops of complex tensors are not decomposed and stay eager."""

    def mended(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(value, complex) or (is_tensor(value) and value.is_complex()) for value in args):
            return NotImplemented
        return function(*args, **kwargs)

    return mended


def why_eager(node: Node) -> str:
    """Returns the reason why an op with a wrong translation stays eager; empty for all other ops."""
    schema = getattr(node.target, "_schema", None)
    name = "" if schema is None else schema.name
    if name == "aten::pow" and not _value(node).is_floating_point():
        return "powers of integers wrap, and ONNX's do not"
    # AOTAutograd replaces `diagonal` by `diagonal_copy` if the result need not be a view.
    return STAYS_EAGER.get(name.removesuffix("_copy"), "")


def _value(node: Node) -> Tensor:
    return node.meta["val"]


def _is_float(*values: Any) -> bool:
    return any(value.is_floating_point() if is_tensor(value) else isinstance(value, float) for value in values)


def _sign(x: Tensor) -> Tensor:
    if not x.is_floating_point():
        return NotImplemented
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)


def _sgn(x: Tensor) -> Tensor:
    return torch.sign(x)


def _trunc(x: Tensor) -> Tensor:
    return torch.where(x < 0, torch.ceil(x), torch.floor(x)) if x.is_floating_point() else x.clone()


def _frac(x: Tensor) -> Tensor:
    return x - _trunc(x)


def _differ(a: Any, b: Any) -> Any:
    """True if exactly one of two numbers is negative."""
    return (a < 0) ^ (b < 0)


def _remainder(a: Any, b: Any) -> Any:
    if not _is_float(a, b):
        # The exporter takes a size as a tensor only.
        number = isinstance(b, torch.SymInt)
        return torch.remainder(a, torch.full((), b, dtype=a.dtype)) if number else NotImplemented
    rest = torch.fmod(*_tensors(a, b))
    return torch.where((rest != 0) & _differ(rest, b), rest + b, rest)


def _tensors(a: Any, b: Any) -> tuple[Any, Any]:
    """Returns the operands with the first one made a tensor."""
    return (a, b) if is_tensor(a) else (torch.full_like(b, a), b)


def _floor_divide(a: Any, b: Any) -> Any:
    a, b = _tensors(a, b)
    if not _is_float(a, b):
        return NotImplemented
    return _float_floor(a, b)


def _float_floor(a: Any, b: Any) -> Any:
    """Computes Python's floor division. The remainder is subtracted first, so the quotient is not rounded up."""
    rest = torch.fmod(a, b)
    quotient = (a - rest) / b
    quotient = torch.where((rest != 0) & _differ(b, rest), quotient - 1, quotient)
    whole = torch.floor(quotient)
    whole = torch.where(quotient - whole > 0.5, whole + 1, whole)
    divided = a / b
    # A zero result has the sign of the quotient.
    result = torch.where(quotient != 0, whole, divided * 0)
    return torch.where(torch.as_tensor(b == 0), divided, result)


def _div(a: Any, b: Any, *, rounding_mode: str | None) -> Any:
    if rounding_mode is None:
        return torch.true_divide(a, b)
    if _is_float(a, b):
        return _float_floor(*_tensors(a, b)) if rounding_mode == "floor" else _trunc(torch.true_divide(a, b))
    a, b = _tensors(a, b)
    floor = torch.ops.aten.floor_divide.default(a, b if is_tensor(b) else torch.full_like(a, b))
    if rounding_mode == "floor":
        return floor
    exact = floor * b == a
    return torch.where(~exact & (floor < 0), floor + 1, floor)


def _log1p(x: Tensor) -> Tensor:
    """Computes log1p by Kahan's method: the rounding error of 1 + x is divided out."""
    x = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    one = wide + 1
    mended = torch.log(one) * (wide / (one - 1))
    return torch.where((one == 1) | (wide == math.inf), wide, mended).to(x.dtype)


def _expm1(x: Tensor) -> Tensor:
    """Computes expm1 by Kahan's method: the rounding error of exp(x) is divided out."""
    x = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    power = torch.exp(wide)
    mended = (power - 1) * (wide / torch.log(power))
    # For large |x| the correction is not needed, and would divide infinities.
    mended = torch.where(wide.abs() > 30, power - 1, mended)
    return torch.where(power == 1, wide, mended).to(x.dtype)


def _logaddexp(a: Tensor, b: Tensor) -> Tensor:
    largest = torch.maximum(a, b)
    return torch.where((a == b) & (a.abs() == math.inf), a, largest + _log1p(torch.exp(-(a - b).abs())))


def _copysign(x: Tensor, sign: Any) -> Tensor:
    """Computes copysign. PyTorch's own decomposition uses an op that treats signs as numbers."""
    x = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    negative = torch.signbit(sign) if is_tensor(sign) else math.copysign(1, sign) < 0
    return torch.where(torch.as_tensor(negative), -x.abs(), x.abs())


def _heaviside(x: Tensor, values: Tensor) -> Tensor:
    return torch.where(x == 0, values, (x > 0).to(values.dtype))


def _elu(x: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    below = torch.where(x == 0, x * (alpha * scale * input_scale), (torch.exp(x * input_scale) - 1) * (alpha * scale))
    return torch.where(x > 0, x * scale, below)


def _celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    return torch.where(x > 0, x, _expm1(x / alpha) * alpha)


def _logit(x: Tensor, eps: float | None = None) -> Tensor:
    x = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    inside = wide if eps is None else torch.clamp(wide, eps, 1 - eps)
    return torch.log(inside / (1 - inside)).to(x.dtype)


def _isinf(x: Tensor) -> Tensor:
    return x.abs() == math.inf if x.is_floating_point() else torch.zeros_like(x, dtype=torch.bool)


def _isposinf(x: Tensor) -> Tensor:
    return x == math.inf if x.is_floating_point() else torch.zeros_like(x, dtype=torch.bool)


def _isneginf(x: Tensor) -> Tensor:
    return x == -math.inf if x.is_floating_point() else torch.zeros_like(x, dtype=torch.bool)


def _argmax(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    return _place(torch.ops.aten.argmax.default, x, dim, keepdim)


def _argmin(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    return _place(torch.ops.aten.argmin.default, x, dim, keepdim)


_inside: ContextVar[bool] = ContextVar("inside", default=False)
"""True while a decomposition calls its own op, after it has handled the NaNs."""


def _place(op: Any, x: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    if not x.is_floating_point() or _inside.get():
        return NotImplemented
    nans = torch.isnan(x).to(torch.int32)
    # The first NaN, if there is one. It is found among integers, because ONNX's op is correct for them.
    first = torch.argmax(nans, dim, keepdim)
    token = _inside.set(True)
    try:
        found = op(x, dim, keepdim)
    finally:
        _inside.reset(token)
    return torch.where(_count(nans, dim, keepdim) > 0, first, found)


def _count(x: Tensor, dim: Any, keepdim: bool) -> Tensor:
    axes = list(range(x.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    return torch.sum(x, axes, keepdim, dtype=torch.int64)


def _max(x: Tensor, dim: int, keepdim: bool = False) -> Any:
    if not x.is_floating_point():
        return NotImplemented
    return torch.amax(x, dim, keepdim), torch.argmax(x, dim, keepdim)


def _min(x: Tensor, dim: int, keepdim: bool = False) -> Any:
    if not x.is_floating_point():
        return NotImplemented
    return torch.amin(x, dim, keepdim), torch.argmin(x, dim, keepdim)


def _any(x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    if x.dtype is torch.uint8:
        return NotImplemented
    return _count((x != 0).to(torch.int64), dim, keepdim) > 0


def _all(x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    if x.dtype is torch.uint8:
        return NotImplemented
    return _count((x == 0).to(torch.int64), dim, keepdim) == 0


def _chunk(x: Tensor, chunks: int, dim: int = 0) -> Any:
    return torch.ops.aten.chunk.default.decompose(x, chunks, dim)


def _split(x: Tensor, size: Any, dim: int = 0) -> Any:
    if not isinstance(size, int):
        return NotImplemented
    whole = x.shape[dim]
    count = max(1, int((whole + size - 1) // size)) if size else 1
    return _pieces(x, [size] * (count - 1) + [whole - size * (count - 1)], dim)


def _pieces(x: Tensor, sizes: Any, dim: int = 0) -> Any:
    """Returns consecutive slices. PyTorch's own decomposition uses strides."""
    found: list[Tensor] = []
    start: Any = 0
    for size in sizes:
        found.append(torch.ops.aten.slice.Tensor(x, dim, start, start + size))
        start = start + size
    return found


def _unbind(x: Tensor, dim: int = 0) -> Any:
    return [torch.ops.aten.select.int(x, dim, place) for place in range(int(x.shape[dim]))]


def _power(x: Tensor, exponent: Any) -> Tensor:
    if isinstance(exponent, torch.SymFloat) and x.is_floating_point():
        return torch.pow(x, torch.full((), exponent, dtype=x.dtype))
    if x.is_floating_point() or x.dtype is torch.bool or not isinstance(exponent, int):
        return NotImplemented
    if not 1 <= exponent <= LARGEST_POWER:
        return NotImplemented
    result, square = None, x
    while exponent:
        if exponent & 1:
            result = square if result is None else result * square
        exponent >>= 1
        square = square * square if exponent else square
    return x.clone() if result is x else result
