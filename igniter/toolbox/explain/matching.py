"""Parts of a model that both sides compute: the smallest sets of nodes that are whole steps on both sides.

    A:  [Mul Add] [Softmax]        B:  [Mul Add Softmax]        one part: Mul, Add, Softmax

Steps are joined if they share a node of the model (union-find over both sides), so a part has the same nodes on both
sides, up to nodes that one side leaves to ONNX Runtime or rewrites under another name.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from igniter.toolbox.explain.sides import Side, SideStep


@dataclass(frozen=True)
class Part:
    """A part of the model: its steps on both sides."""

    nodes: tuple[str, ...]
    a: tuple[SideStep, ...]
    b: tuple[SideStep, ...]

    @property
    def what(self) -> str:
        """The ops in words, from the side with more of them, and the first node."""
        ops = max(([op for s in side for op in s.ops] for side in (self.a, self.b)), key=len)
        counts = dict.fromkeys(ops, 0)
        for op in ops:
            counts[op] += 1
        shown = [f"{n} {op}" if n > 1 else op for op, n in counts.items()]
        more = f" + {len(shown) - 4} more" if len(shown) > 4 else ""
        return f"{' + '.join(shown[:4])}{more} ({self.nodes[0]})"


def parts_of(a: Side, b: Side) -> list[Part]:
    """Returns the parts of a model in the order of execution on the first side, then of the second's own."""
    parents: dict[Hashable, Hashable] = {}

    def root(item: Hashable) -> Hashable:
        while parents.setdefault(item, item) != item:
            parents[item] = parents[parents[item]]
            item = parents[item]
        return item

    for letter, side in (("a", a), ("b", b)):
        for step in side.steps:
            for node in step.nodes:
                parents[root(("node", node))] = root((letter, step.key))
    found: dict[Hashable, tuple[list[SideStep], list[SideStep]]] = {}
    for place, (letter, side) in enumerate((("a", a), ("b", b))):
        for step in side.steps:
            found.setdefault(root((letter, step.key)), ([], []))[place].append(step)
    return [Part(_nodes([*one, *other]), tuple(one), tuple(other)) for one, other in found.values()]


def _nodes(steps: Sequence[SideStep]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(node for step in steps for node in step.nodes))
