"""Decompositions of f64 ops whose scalar arguments PyTorch's exporter rounds to f32 attributes or constants.

`leaky_relu(x, 0.1)` would multiply by 0.10000000149. Graphs without f64 keep the exporter's translation, because eager
uses the same numbers in f32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from igniter.torch.names import Tensor, is_tensor, torch


def doubles() -> dict[Any, Callable[..., Any]]:
    """Returns the decompositions of this file by op. They return `NotImplemented` for other types than f64."""
    aten = torch.ops.aten
    functions = {
        aten.leaky_relu.default: _leaky_relu,
        aten.softplus.default: _softplus,
        aten.hardtanh.default: _hardtanh,
        aten.hardsigmoid.default: _hardsigmoid,
        aten.hardswish.default: _hardswish,
        aten.gelu.default: _gelu,
        aten.sinc.default: _sinc,
        aten.addcmul.default: _addcmul,
        aten.addmm.default: _addmm,
        aten.addmv.default: _addmv,
    }
    return {op: _of_doubles(function) for op, function in functions.items()}


def _of_doubles(function: Callable[..., Any]) -> Callable[..., Any]:
    def taken_apart(*args: Any, **kwargs: Any) -> Any:
        if not all(value.dtype is torch.float64 for value in args if is_tensor(value)):
            return NotImplemented
        return function(*args, **kwargs)

    return taken_apart


def _leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    return torch.where(x > 0, x, x * negative_slope)


def _softplus(x: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    scaled = x * beta
    return torch.where(scaled > threshold, x, torch.log1p(torch.exp(scaled)) / beta)


def _hardtanh(x: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    return torch.clamp(x, min_val, max_val)


def _hardsigmoid(x: Tensor) -> Tensor:
    return torch.clamp(x + 3, 0, 6) / 6


def _hardswish(x: Tensor) -> Tensor:
    return x * torch.clamp(x + 3, 0, 6) / 6


def _gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    if approximate == "none":
        return NotImplemented
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1 + torch.tanh(inner))


def _sinc(x: Tensor) -> Tensor:
    angle = x * math.pi
    return torch.where(x == 0, 1.0, torch.sin(angle) / angle)


def _addcmul(x: Tensor, a: Tensor, b: Tensor, *, value: float = 1) -> Tensor:
    return x + value * (a * b)


def _addmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    return _sum(x, torch.mm(a, b), beta, alpha)


def _addmv(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    return _sum(x, torch.mv(a, b), beta, alpha)


def _sum(x: Tensor, product: Tensor, beta: float, alpha: float) -> Any:
    """Computes `beta * x + alpha * product`. If `beta` is 0, `x` is ignored, even its NaNs."""
    if beta == alpha == 1:
        return NotImplemented
    product = product if alpha == 1 else product * alpha
    return product.clone() if beta == 0 else product + (x if beta == 1 else x * beta)
