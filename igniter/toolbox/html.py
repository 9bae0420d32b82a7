"""Objects of the API in a notebook: HTML and SVG without scripts.

A graph is drawn by layers from top to bottom; a region is a box with the types of its nodes. A graph of more than
`MOST_NODES` nodes is summarised by a table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from igniter.dialects.fusion import GroupOp
from igniter.dialects.loop import FuncOp, KernelOp
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.structure import GraphOp

MOST_NODES = 80
WIDTH, HEIGHT, GAP = 150, 26, 22
"""The size of a node and the space between two, in pixels."""
SHOWN_TYPES = 6
"""The op types of a region that its box lists."""


def table(rows: Sequence[Sequence[object]], head: Sequence[str] = ()) -> str:
    """Returns a table; the cells are text."""

    def row(cells: Sequence[object], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"

    return f"<table>{row(head, 'th') if head else ''}{''.join(row(cells, 'td') for cells in rows)}</table>"


def module_html(module: ModuleOp, title: str) -> str:
    """Returns a module: its graph with regions, or a table for a large one, and its kernels."""
    parts = [f"<div><b>{escape(title)}</b></div>"]
    for graph in (op for op in module.ops if isinstance(op, GraphOp)):
        nodes = _nodes(graph.body)
        parts.append(_drawing(nodes) if len(nodes) <= MOST_NODES else _summary(nodes))
    kernels = [op for op in module.ops if isinstance(op, (KernelOp, FuncOp))]
    if kernels:
        shown = [[f"@{op.sym_name.data}", op.name, sum(1 for _ in op.walk())] for op in kernels[:MOST_NODES]]
        parts.append(table(shown, ("kernel", "level", "ops")))
    return "".join(parts)


def _nodes(block: Block) -> list[Operation]:
    constants = ("onnx.Constant", "onnx.return", "onnx.NoValue")
    return [op for op in block.ops if op.name not in constants and (isinstance(op, (OnnxOp, GroupOp)) or op.results)]


def _inside(op: Operation) -> Counter[str]:
    return Counter(n.op_type for n in op.walk() if isinstance(n, OnnxOp) and n is not op and n.op_type != "Constant")


def _lines(op: Operation) -> list[str]:
    """Returns the lines in the box of a node."""
    if not isinstance(op, GroupOp):
        return [op.op_type if isinstance(op, OnnxOp) else op.name]
    types = _inside(op).most_common(SHOWN_TYPES)
    rest = len(_inside(op)) - len(types)
    return [f"@{op.label}", *(f"{n} x {name}" for name, n in types), *([f"{rest} more types"] if rest else [])]


def _summary(nodes: Sequence[Operation]) -> str:
    groups = [op for op in nodes if isinstance(op, GroupOp)]
    left = Counter(op.op_type for op in nodes if isinstance(op, OnnxOp))
    fused = sum((_inside(op) for op in groups), Counter[str]())
    rows = [[name, fused[name], left[name]] for name, _ in (fused + left).most_common(20)]
    what = f"<div>{len(nodes)} nodes, {len(groups)} of them regions</div>"
    return what + table(rows, ("op", "in regions", "outside"))


def _drawing(nodes: Sequence[Operation]) -> str:
    depth: dict[Operation, int] = {}
    for op in nodes:
        owners = [v.owner for v in op.operands if isinstance(v.owner, Operation)]
        depth[op] = max((depth[o] + 1 for o in owners if o in depth), default=0)
    layers = [[op for op in nodes if depth[op] == d] for d in range(max(depth.values(), default=-1) + 1)]
    places: dict[Operation, tuple[int, int, int]] = {}
    top = GAP
    for layer in layers:
        tall = max(len(_lines(op)) for op in layer)
        for column, op in enumerate(layer):
            places[op] = (GAP + column * (WIDTH + GAP), top, 12 + 14 * len(_lines(op)))
        top += 12 + 14 * tall + GAP
    edges = [
        _edge(places[owner], places[op])
        for op in nodes
        for owner in {v.owner for v in op.operands if isinstance(v.owner, Operation)}
        if owner in places
    ]
    width = GAP + max((len(layer) for layer in layers), default=0) * (WIDTH + GAP)
    boxes = "".join(_box(op, places[op]) for op in nodes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top}" font-family="sans-serif" '
        f'font-size="11">{"".join(edges)}{boxes}</svg>'
    )


def _edge(above: tuple[int, int, int], below: tuple[int, int, int]) -> str:
    x1, y1, x2, y2 = above[0] + WIDTH // 2, above[1] + above[2], below[0] + WIDTH // 2, below[1]
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#999"/>'


def _box(op: Operation, place: tuple[int, int, int]) -> str:
    x, y, height = place
    fill = "#dbeafe" if isinstance(op, GroupOp) else "#f3f4f6"
    name = op.node_name if isinstance(op, OnnxOp) else ""
    lines = "".join(
        f'<text x="{x + 6}" y="{y + 16 + 14 * k}">{escape(line)}</text>' for k, line in enumerate(_lines(op))
    )
    return (
        f'<g><title>{escape(name or _lines(op)[0])}</title><rect x="{x}" y="{y}" width="{WIDTH}" height="{height}" '
        f'rx="4" fill="{fill}" stroke="#666"/>{lines}</g>'
    )


def artifact_html(folder: str, report: Mapping[str, Any]) -> str:
    """Returns the summary of a compiled model: its nodes, kernels, verification and, if it was measured, its speed."""
    checked: Mapping[str, Any] = report.get("verification", {})
    errors: Mapping[str, float] = checked.get("max_errors") or {}
    measured: Sequence[str] = report.get("measured", {}).get("text", ())
    rows: list[Sequence[object]] = [
        ["folder", folder],
        ["target", report.get("target", "")],
        ["nodes", f"{report.get('nodes_before', '?')} before, {report.get('nodes_after', '?')} after"],
        ["regions, kernels", f"{report.get('regions', '?')}, {report.get('kernels', '?')}"],
        ["verification", checked.get("status", "not asked for")],
    ]
    if errors:
        rows.append(["largest relative error", ", ".join(f"{name} {e:.1e}" for name, e in errors.items())])
    rows += [("speed", line) for line in measured]
    left = Counter(entry["op"] for entry in report.get("left_to_onnxruntime", ()))
    if left:
        rows.append(["left to ONNX Runtime", ", ".join(f"{n} {op}" for op, n in left.most_common(8))])
    return table(rows)
