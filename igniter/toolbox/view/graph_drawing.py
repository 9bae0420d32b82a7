"""A graph of nodes and regions as Graphviz's text and as SVG of a layout of its own.

The layout is Sugiyama's (IEEE Transactions on Systems, Man, and Cybernetics, 1981): the layer of a node is the longest
path to it, the order in a layer follows the mean place of the neighbours, in a few sweeps down and up, and each layer
is centred. It takes linear time per sweep.
"""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

COLORS = ("#cfe2f3", "#d9ead3", "#fff2cc", "#f4cccc", "#d9d2e9", "#fce5cd", "#d0e0e3", "#ead1dc")
"""The colours of regions, in turn; a node outside regions is white."""

SWEEPS = 4
WIDTH, HEIGHT, GAP, LAYER = 110, 26, 14, 56
"""Sizes in pixels: of a node, the gap between two in a layer, and the distance of layers."""


@dataclass(frozen=True)
class Node:
    """A node; `region` is the number of its region in the drawing, -1 for none."""

    name: str
    label: str
    region: int = -1


@dataclass
class Drawing:
    """A drawing: nodes in topological order, the labels of regions by their numbers, and edges by names."""

    nodes: list[Node] = field(default_factory=list[Node])
    regions: dict[int, str] = field(default_factory=dict[int, str])
    edges: dict[tuple[str, str], None] = field(default_factory=dict[tuple[str, str], None])

    def dot(self) -> str:
        """Returns the graph in Graphviz's language, each region a cluster."""
        lines = ["digraph model {", "  node [shape=box, style=rounded, fontname=sans];", "  rankdir=TB;"]
        members: dict[int, list[Node]] = defaultdict(list)
        for node in self.nodes:
            members[node.region].append(node)
        for number, label in self.regions.items():
            lines.append(f"  subgraph cluster_{number} {{")
            lines.append(f"    label={_quoted(label)}; style=filled; color={_quoted(_color(number))};")
            lines += [f"    {node.name} [label={_quoted(node.label)}];" for node in members[number]]
            lines.append("  }")
        lines += [f"  {node.name} [label={_quoted(node.label)}];" for node in members[-1]]
        lines += [f"  {source} -> {target};" for source, target in self.edges]
        return "\n".join([*lines, "}"]) + "\n"

    def svg(self) -> str:
        """Returns the graph as SVG: nodes in layers from the top, in the colours of their regions."""
        layers = self._layers()
        widest = max(map(len, layers), default=1)
        width, height = widest * (WIDTH + GAP) + GAP, len(layers) * LAYER + GAP
        places: dict[str, tuple[float, float]] = {}
        for row, layer in enumerate(layers):
            left = (width - len(layer) * (WIDTH + GAP) + GAP) / 2
            for column, name in enumerate(layer):
                places[name] = (left + column * (WIDTH + GAP), GAP + row * LAYER)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            'font-family="sans-serif" font-size="11" role="img" aria-label="the graph of the model">'
        ]
        parts += [_edge(places[source], places[target]) for source, target in self.edges]
        parts += [self._box(node, places[node.name]) for node in self.nodes]
        return "\n".join([*parts, "</svg>"])

    def _box(self, node: Node, place: tuple[float, float]) -> str:
        x, y = place
        color = "#ffffff" if node.region < 0 else _color(node.region)
        title = html.escape(f"{node.label}, {self.regions.get(node.region, 'in no region')}")
        text = html.escape(_short(node.label))
        return (
            f"<g><title>{title}</title>"
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="{color}" stroke="#666"/>'
            f'<text x="{x + WIDTH / 2:.0f}" y="{y + 17:.0f}" text-anchor="middle">{text}</text></g>'
        )

    def _layers(self) -> list[list[str]]:
        """Returns the names by layer, in drawing order."""
        before, after = self._neighbours()
        depth: dict[str, int] = {}
        for node in self.nodes:
            depth[node.name] = 1 + max((depth[b] for b in before[node.name] if b in depth), default=-1)
        layers: list[list[str]] = [[] for _ in range(1 + max(depth.values(), default=-1))]
        for node in self.nodes:
            layers[depth[node.name]].append(node.name)
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            place = {name: k - len(layer) / 2 for layer in layers for k, name in enumerate(layer)}
            for layer in layers if down else reversed(layers):
                _sort(layer, before if down else after, place)
        return layers

    def _neighbours(self) -> tuple[Mapping[str, list[str]], Mapping[str, list[str]]]:
        before: dict[str, list[str]] = defaultdict(list)
        after: dict[str, list[str]] = defaultdict(list)
        for source, target in self.edges:
            before[target].append(source)
            after[source].append(target)
        return before, after


def _sort(layer: list[str], neighbours: Mapping[str, Sequence[str]], place: dict[str, float]) -> None:
    """Sorts a layer by the mean place of each node's neighbours, and records the new places."""

    def mean(name: str) -> float:
        near = neighbours.get(name, ())
        return sum(place[n] for n in near) / len(near) if near else place[name]

    layer.sort(key=mean)
    place.update((name, k - len(layer) / 2) for k, name in enumerate(layer))


def _edge(source: tuple[float, float], target: tuple[float, float]) -> str:
    x, y = source[0] + WIDTH / 2, source[1] + HEIGHT
    u, v = target[0] + WIDTH / 2, target[1]
    middle = (y + v) / 2
    return (
        f'<path d="M{x:.0f},{y:.0f} C{x:.0f},{middle:.0f} {u:.0f},{middle:.0f} {u:.0f},{v:.0f}" '
        'fill="none" stroke="#999"/>'
    )


def _color(region: int) -> str:
    return COLORS[region % len(COLORS)]


def _short(label: str) -> str:
    return label if len(label) <= 16 else f"{label[:15]}…"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
