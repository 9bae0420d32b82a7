"""Nodes in topological order. ONNX requires it; ONNX Runtime runs models without it."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

import onnx

from igniter.errors import IgniterError
from igniter.frontend.diagnosis import node_text


def in_order(nodes: Sequence[onnx.NodeProto], where: str) -> Sequence[onnx.NodeProto]:
    """Returns the nodes of a graph, each after the producers of all values read by it or its subgraphs, otherwise in
    their order.

    Undefined names are ignored. `IgniterError` names the nodes of a cycle.
    """
    maker = {name: k for k, node in enumerate(nodes) for name in node.output if name}
    sources = [{maker[name] for name in _reads(node) if name in maker} for node in nodes]
    if all(source < k for k, found in enumerate(sources) for source in found):
        return nodes
    readers: list[list[int]] = [[] for _ in nodes]
    for k, found in enumerate(sources):
        for source in found:
            readers[source].append(k)
    waits = [len(found) for found in sources]
    ready = [k for k, count in enumerate(waits) if not count]
    done: list[int] = []
    while ready:
        done.append(k := heapq.heappop(ready))
        for reader in readers[k]:
            waits[reader] -= 1
            if not waits[reader]:
                heapq.heappush(ready, reader)
    if len(done) < len(nodes):
        raise IgniterError(_cycle_text(nodes, sources, set(done), where))
    return [nodes[k] for k in done]


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    """Yields the names read by a node, and the names read by its subgraphs from outside."""
    yield from node.input
    for attribute in node.attribute:
        for graph in (*((attribute.g,) if attribute.HasField("g") else ()), *attribute.graphs):
            own = {v.name for v in graph.input} | {t.name for t in graph.initializer}
            own |= {s.values.name for s in graph.sparse_initializer} | {n for x in graph.node for n in x.output}
            for inner in graph.node:
                yield from (name for name in _reads(inner) if name not in own)
            yield from (v.name for v in graph.output if v.name not in own)


def _cycle_text(nodes: Sequence[onnx.NodeProto], sources: Sequence[set[int]], done: set[int], where: str) -> str:
    """Describes a cycle: a walk from a waiting node to its unfinished producers reaches some node twice."""
    walk = [next(k for k in range(len(nodes)) if k not in done)]
    while walk[-1] not in walk[:-1]:
        walk.append(next(k for k in sorted(sources[walk[-1]]) if k not in done))
    cycle = walk[walk.index(walk[-1]) : -1]
    first = node_text(nodes[cycle[0]], where)
    if len(cycle) == 1:
        return f"{first} reads its own result"
    more = f"{first} and {len(cycle) - 1} more read each other's results in a cycle"
    return f"{more}; the next is {node_text(nodes[cycle[1]], where)}"
