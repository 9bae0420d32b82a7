"""The size of a model after inlining its functions, computed without inlining.

Nested calls of functions make a small file a large graph: ten calls on eight levels are 10^8 nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from igniter.errors import IgniterError

Key: TypeAlias = tuple[str, str, str]
"""The domain, name and overload of a function."""


def inlined_sizes(bodies: Mapping[Key, Callable[[], Counter[Key]]], called: Iterable[Key]) -> dict[Key, int]:
    """Returns the number of nodes of one call, for the `called` functions and all functions they call.

    `bodies` give the nodes of a function, counted by callee, including subgraphs. Raises `IgniterError` for a recursive
    function. The implementation is iterative, because call chains may be long.
    """
    sizes: dict[Key, int] = {}
    nodes: dict[Key, Counter[Key]] = {}
    pending, is_open = [key for key in called if key in bodies], set[Key]()
    while pending:
        key = pending[-1]
        if key in sizes:
            pending.pop()
            continue
        if key not in nodes:
            nodes[key] = bodies[key]()
            is_open.add(key)
        inner = [each for each in nodes[key] if each in bodies and each not in sizes]
        if any(each in is_open for each in inner):
            raise IgniterError(f"function {'.'.join(key[:2])} calls itself, which ONNX forbids")
        if inner:
            pending += inner
            continue
        sizes[key] = sum(times * sizes.get(each, 1) for each, times in nodes[key].items())
        is_open.discard(key)
        pending.pop()
    return sizes


__all__ = ["Key", "inlined_sizes"]
