"""Arguments and results of modules as JSON and arrays. A record contains no code, and reading one runs none.

{"tensor": 3, "dtype": "bfloat16"}    array number 3 of the file beside it
{"list": [...]}, {"tuple": [...]}, {"dict": [[key, value], ...]}
{"value": 1}                          None, booleans, numbers and strings
{"object": "DynamicCache"}            any other object: only its class is recorded, so it cannot be replayed
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from igniter.errors import IgniterError
from igniter.torch.names import is_tensor, torch

_BITS = {torch.bfloat16: torch.int16}
"""Element types missing in NumPy, with the integer types that store their bits."""


def encode(value: Any, arrays: list[Any]) -> dict[str, Any]:
    """Returns a value as JSON and appends its tensors to `arrays`."""
    if is_tensor(value):
        dense = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
        arrays.append(dense.view(_BITS[dense.dtype]).numpy() if dense.dtype in _BITS else dense.numpy())
        return {"tensor": len(arrays) - 1, "dtype": str(dense.dtype).removeprefix("torch.")}
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"value": value}
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value)
        return {"dict": [[str(key), encode(each, arrays)] for key, each in items.items()]}
    if isinstance(value, (list, tuple)):
        sequence = cast("list[Any]", value)
        return {"list" if isinstance(value, list) else "tuple": [encode(each, arrays) for each in sequence]}
    return {"object": type(value).__name__}


def decode(tree: Mapping[str, Any], arrays: Mapping[str, Any]) -> Any:
    """Returns the value written by `encode`. Raises `IgniterError` for an object recorded by its class only."""
    if "tensor" in tree:
        dtype = getattr(torch, tree["dtype"])
        read = torch.from_numpy(np.array(arrays[f"arr_{tree['tensor']}"]))
        return read.view(dtype) if dtype in _BITS else read
    if "value" in tree:
        return tree["value"]
    if "dict" in tree:
        return {key: decode(each, arrays) for key, each in tree["dict"]}
    for kind in ("list", "tuple"):
        if kind in tree:
            values: list[Any] = [decode(each, arrays) for each in tree[kind]]
            return values if kind == "list" else tuple(values)
    what = tree.get("object")
    raise IgniterError(f"a {what} was given, which a record names but does not contain; it cannot be replayed")


def can_replay(tree: Any) -> bool:
    """True if `decode` can read all of a tree."""
    if isinstance(tree, Mapping):
        return "object" not in tree and all(can_replay(each) for each in tree.values())  # pyright: ignore[reportUnknownVariableType]
    return all(can_replay(each) for each in tree) if isinstance(tree, list) else True  # pyright: ignore[reportUnknownVariableType]


def summary(value: Any) -> str:
    """Returns a value in one line: `float32[2, 16]` for a tensor, containers with their brackets."""
    if is_tensor(value):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value)
        return "{" + ", ".join(f"{key}: {summary(each)}" for key, each in items.items()) + "}"
    if isinstance(value, (list, tuple)):
        sequence = cast("list[Any]", value)
        left, right = ("[", "]") if isinstance(value, list) else ("(", ")")
        return left + ", ".join(map(summary, sequence)) + right
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    return type(value).__name__
