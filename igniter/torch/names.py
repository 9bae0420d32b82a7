"""PyTorch's modules, typed as `Any`: PyTorch is an extra, and Igniter is type-checked without it."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeAlias

from igniter.distribution import install_command
from igniter.errors import IgniterError

try:
    torch: Any = import_module("torch")
except ImportError as error:
    raise IgniterError(f"igniter.torch needs PyTorch ({error}): {install_command('torch')}") from error

fx: Any = import_module("torch.fx")
pytree: Any = import_module("torch.utils._pytree")

Tensor: TypeAlias = Any
"""A `torch.Tensor`."""
GraphModule: TypeAlias = Any
"""A `torch.fx.GraphModule`."""
Node: TypeAlias = Any
"""A `torch.fx.Node`."""


def is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def is_symbolic(value: Any) -> bool:
    """True if a value of a traced graph is a symbol for a number; the number is known when the graph runs."""
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))
