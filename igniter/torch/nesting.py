"""Nested arguments and results: `torch.utils._pytree`, but a `torch.Size` does not become a tuple."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from igniter.torch.names import pytree, torch


def unflattener(spec: Any) -> Callable[[Sequence[Any]], Any]:
    """Returns the function from leaves to the nested value of structure `spec`."""
    if torch.Size not in _types(spec):
        return lambda leaves: pytree.tree_unflatten(leaves, spec)
    return lambda leaves: _value(iter(leaves), spec)


def _types(spec: Any) -> set[Any]:
    found = {spec.type}
    for child in spec.children():
        found |= _types(child)
    return found


def _value(leaves: Iterator[Any], spec: Any) -> Any:
    if spec.is_leaf():
        return next(leaves)
    children = [_value(leaves, child) for child in spec.children()]
    if spec.type is torch.Size:
        return torch.Size(children)
    return pytree.SUPPORTED_NODES[spec.type].unflatten_fn(children, spec.context)
