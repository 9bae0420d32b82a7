"""The distribution of time, operations and bytes: the nodes of a report's graph by op, and by module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_MODULES = 40
"""The limit of modules in the table; deeper levels are merged."""


@dataclass(frozen=True)
class Share:
    """The share of some nodes in a run. `ms` is `None` if no kernel was timed."""

    name: str
    nodes: int
    ms: float | None
    flops: int
    bytes: int


def share_times(nodes: Sequence[dict[str, Any]], groups: Iterable[Mapping[str, Any]]) -> None:
    """Distributes the time of each timed kernel over its nodes, by operations: an estimate."""
    own: dict[str, list[dict[str, Any]]] = {}
    for node in nodes:
        own.setdefault(node["group"], []).append(node)
    for group in groups:
        inside = own.get(group["id"], [])
        if group["kind"] != "region" or "ms" not in group or not inside:
            continue
        whole = sum(node.get("flops") or 0 for node in inside)
        for node in inside:
            part = (node.get("flops") or 0) / whole if whole else 1 / len(inside)
            node["ms"] = group["ms"] * part


def by_op(nodes: Iterable[Mapping[str, Any]]) -> list[Share]:
    """Returns the nodes of each op, the largest share first."""
    return sorted(_shares(nodes, lambda node: node["op"]), key=_weight, reverse=True)


def by_module(nodes: Sequence[Mapping[str, Any]]) -> list[Share]:
    """Returns the nodes of each module, in the order of the graph; empty if the nodes have no modules."""
    depth = max((len(node["module"]) for node in nodes), default=0)
    while depth > 1 and len({tuple(n["module"][:depth]) for n in nodes}) > MOST_MODULES:
        depth -= 1
    if not depth:
        return []
    return _shares(nodes, lambda node: ".".join(node["module"][:depth]) or "in no module")


def _shares(nodes: Iterable[Mapping[str, Any]], key: Callable[[Mapping[str, Any]], str]) -> list[Share]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for node in nodes:
        if node["kind"] in ("node", "left"):
            found.setdefault(key(node), []).append(node)
    return [_share(name, those) for name, those in found.items()]


def _share(name: str, nodes: Sequence[Mapping[str, Any]]) -> Share:
    times = [node["ms"] for node in nodes if "ms" in node]
    flops, moved = (sum(node.get(what) or 0 for node in nodes) for what in ("flops", "bytes"))
    return Share(name, len(nodes), sum(times) if times else None, flops, moved)


def _weight(share: Share) -> tuple[float, int, int]:
    return share.ms or 0.0, share.flops, share.bytes
