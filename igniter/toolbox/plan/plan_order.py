"""ONNX Runtime's execution order of a graph's nodes.

Its sequential executor follows one of two orders, by the session's `execution_order`:

* `ort`, the default: a depth-first search against the edges. The search starts at the nodes without readers, the last
  of them first. Among the sources of a node, the last one in the model is visited first; a node runs after all of its
  sources.
* `ort-priority`: of the ready nodes the first one in the model, but `Shape` and `Size` before all others.

Both number the nodes in the model's order, without constants. `model` is the order of the model itself; ONNX requires
it to be executable.

The source is ONNX Runtime's `GraphViewer` (`core/graph/graph_viewer.cc`). Nothing of it is a promise, so
`tests/analysis/model/test_plan_order.py` compares it with the profiles of real runs. ONNX Runtime's own optimisations
replace the model's nodes, so the order is valid for a session without them.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from igniter.dialects.onnx.names import op_name
from igniter.dialects.onnx.structure import ReturnOp
from igniter.errors import IgniterError

ORDERS = ("ort", "ort-priority", "model")
"""The names of the orders."""

NOT_RUN = frozenset(("onnx.Constant", "onnx.NoValue"))
"""Ops for weights and omitted inputs."""


def runs(op: Operation) -> bool:
    """True if an op of a graph is executed as a node."""
    return op.name not in NOT_RUN and not isinstance(op, ReturnOp)


def reads(op: Operation) -> list[SSAValue]:
    """Returns the values read by a node, in order: its operands, and outer values in its graphs."""
    found = list(op.operands)
    for region in op.regions:
        for inner in region.walk():
            found += [v for v in inner.operands if not _is_inside(v, op)]
    return found


def _is_inside(value: SSAValue, op: Operation) -> bool:
    owner = value.owner
    block = owner if isinstance(owner, Block) else owner.parent_block()
    while block is not None:
        parent = block.parent_op()
        if parent is op:
            return True
        block = parent.parent_block() if parent is not None else None
    return False


def run_order(block: Block, order: str = "ort") -> list[Operation]:
    """Returns the nodes of one graph in execution order, without those of nested graphs.

    Raises `IgniterError` for an order outside `ORDERS`.
    """
    nodes = [op for op in block.ops if runs(op)]
    if order == "model":
        return nodes
    number = {op: k for k, op in enumerate(nodes)}
    sources = [
        sorted({number[v.owner] for v in reads(op) if isinstance(v.owner, Operation) and v.owner in number})
        for op in nodes
    ]
    if order == "ort":
        return [nodes[k] for k in _depth_first(sources)]
    if order == "ort-priority":
        return [nodes[k] for k in _by_priority(sources, [op_name(op) in ("Shape", "Size") for op in nodes])]
    raise IgniterError(f"there is no order '{order}'; the orders are {', '.join(ORDERS)}")


def _depth_first(sources: Sequence[Sequence[int]]) -> list[int]:
    """Returns nodes by number, each after all its sources; `sources` are ascending."""
    read = {source for found in sources for source in found}
    # The top of the stack is visited first.
    stack = [(k, False) for k in range(len(sources)) if k not in read]
    entered: set[int] = set()
    done: list[int] = []
    while stack:
        k, leaving = stack.pop()
        if leaving:
            done.append(k)
        elif k not in entered:
            entered.add(k)
            stack.append((k, True))
            stack += [(source, False) for source in sources[k] if source not in entered]
    return done


def _by_priority(sources: Sequence[Sequence[int]], first: Sequence[bool]) -> list[int]:
    """Returns nodes by number; ready nodes marked `first` come before the other ready ones."""
    readers: list[list[int]] = [[] for _ in sources]
    for k, found in enumerate(sources):
        for source in found:
            readers[source].append(k)
    waits = [len(found) for found in sources]
    ready = [(not first[k], k) for k, count in enumerate(waits) if not count]
    heapq.heapify(ready)
    done: list[int] = []
    while ready:
        _, k = heapq.heappop(ready)
        done.append(k)
        for reader in readers[k]:
            waits[reader] -= 1
            if not waits[reader]:
                heapq.heappush(ready, (not first[reader], reader))
    return done
