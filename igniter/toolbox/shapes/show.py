"""`igniter shapes`: the shape of every value of a model."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from igniter.analysis.onnx.input_places import by_symbol, place_names, session_sizes
from igniter.api import load
from igniter.errors import IgniterError
from igniter.registry import UnknownName
from igniter.runtime.files import write_whole
from igniter.toolbox.options import InputRequest
from igniter.toolbox.output import console, parse_sizes, print_json, verification_lines
from igniter.toolbox.shapes.compute_nodes import count_nodes
from igniter.toolbox.shapes.shape_engine import SizedShapes
from igniter.toolbox.shapes.shapes import ModelShapes, ValueShape, shape_text, walk_values
from igniter.toolbox.tables import add_rows, csv_text
from igniter.toolbox.verified_save import save_verified

if TYPE_CHECKING:
    from igniter.api import Module
    from igniter.toolbox.shapes.request import ShapesRequest


def run(asked: ShapesRequest) -> None:
    """Infers, and prints or writes."""
    if Path(asked.model).is_dir():
        raise IgniterError(f"{asked.model} is a folder: give an ONNX model, of a compiled one its model.onnx")
    module = load(asked.model)
    given = by_symbol(module.ir, parse_sizes(asked.sizes))
    engine = module.shape_engine()
    places = place_names(module.ir)
    sized = engine.at({places.get(symbol, symbol): size for symbol, size in given.items()}) if given else None
    shown = _chosen(engine.shapes, asked.value, asked.weights)
    written: dict[str, Any] | None = None
    if asked.compute_graph:
        named = session_sizes(module.ir, given)
        asked_for = ",".join(f"{name}={size}" for name, size in named.items())
        checked = InputRequest((asked_for,) if asked_for else ()) if asked.verify else None
        written = _write_compute_graph(module, asked.model, given, asked.compute_graph, checked, asked.json)
    elif not asked.verify:
        raise IgniterError("--no-verify is for --compute-graph: nothing else is verified")
    rows = [_row(engine.shapes, v, sized) for v in shown]
    if asked.csv:
        _write_csv(asked.csv, rows)
    if asked.json:
        print_json(_described(asked.model, engine.shapes, sized, rows, written))
        return
    _print(asked.model, engine.shapes, sized, shown)
    if written is not None:
        if written["verification"] is not None:
            for line in verification_lines(written["verification"]):
                console().print(line)
        console().print(_said(written))


def _chosen(shapes: ModelShapes, asked: Sequence[str], weights: bool) -> list[ValueShape]:
    if not asked:
        return list(walk_values(shapes, weights))
    found: dict[str, ValueShape] = {}
    for pattern in asked:
        hits = {v.name: v for v in shapes.values if v.name == pattern or fnmatchcase(v.name, pattern)}
        if not hits:
            raise UnknownName("value", pattern, {v.name: v for v in shapes.values})
        found.update(hits)
    return [v for v in shapes.values if v.name in found]


def _row(shapes: ModelShapes, v: ValueShape, sized: SizedShapes | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "value": v.name,
        "kind": "output" if v.is_output and v.kind == "value" and not v.scope else v.kind,
        "type": v.type,
        "shape": None if v.dims is None else [d.constant if d.constant is not None else str(d) for d in v.dims],
        "node": v.node,
        "op": v.op,
        "scope": v.scope,
        "depends_on": shapes.unknown_of(v),
    }
    if sized is not None:
        found = sized[v.name]
        row["at_sizes"] = None if found is None else list(found)
    return row


def _described(
    path: str, shapes: ModelShapes, sized: SizedShapes | None, rows: list[dict[str, Any]], written: Any
) -> dict[str, Any]:
    described: dict[str, Any] = {
        "model": path,
        "symbols": list(shapes.symbols),
        "assumptions": [{"holds": str(r), "node": r.node} for r in shapes.assumptions],
        "values": rows,
    }
    if sized is not None:
        described["sizes"] = dict(sized.sizes)
    if written is not None:
        described["compute_graph"] = written
    return described


def _write_csv(path: str, rows: list[dict[str, Any]]) -> None:
    names = ["value", "kind", "type", "shape", "node", "op", "scope", "depends_on"]
    names += ["at_sizes"] if rows and "at_sizes" in rows[0] else []
    cells = [
        {**row, "depends_on": "; ".join(row["depends_on"])}
        | {key: shape_text(row[key]) for key in ("shape", "at_sizes") if key in row}
        for row in rows
    ]
    write_whole(path, csv_text(names, cells))


def _print(path: str, shapes: ModelShapes, sized: SizedShapes | None, shown: Sequence[ValueShape]) -> None:
    out = console()
    told = ", ".join(shapes.symbols) or "none"
    out.print(escape(f"{path}: {len(shapes.values)} values, symbols: {told}"))
    table = Table("value", "type", "shape", *(["at these sizes"] if sized is not None else []), "made by")
    rows: list[list[str]] = []
    for v in shown:
        shape = shape_text(v.dims)
        unknown = "; ".join(shapes.unknown_of(v))
        cells = [v.name, v.type, f"{shape}, by {unknown}" if unknown else shape]
        cells += [shape_text(sized[v.name])] if sized is not None else []
        maker = f"{v.op} {v.node}".strip() if v.kind != "input" else "input"
        rows.append([*cells, f"{maker} (output)" if v.is_output and not v.scope else maker])
    add_rows(table, rows, (), out.width, out)
    out.print(table)
    for r in shapes.assumptions:
        by = f", by node '{r.node}'" if r.node is not None else ""
        out.print(escape(f"it is assumed that {r}{by}"))


def _write_compute_graph(
    module: Module, path: str, sizes: dict[str, int], output: str, checked: InputRequest | None, quiet: bool
) -> dict[str, Any]:
    """Writes the model without shape nodes; returns the counts of nodes, and the remaining computed shapes."""
    before = count_nodes(module.ir)
    module.compute_graph(sizes or None)
    verification = save_verified(module, path, output, checked, "the compute graph", quiet)
    after = count_nodes(module.ir)
    left = [f"'{r.node}': {r.message}" for r in module.remarks if r.pass_name == "drop-shape-nodes"]
    counts = {"nodes_before": before.to_dict(), "nodes_after": after.to_dict()}
    return {"path": output, **counts, "left": left, "verification": verification}


def _said(written: dict[str, Any]) -> str:
    before, after = written["nodes_before"], written["nodes_after"]
    line = f"wrote {written['path']}: {after['nodes']} nodes of {before['nodes']}"
    line += f", of which {after['shape']} of {before['shape']} depend on the shapes of inputs alone"
    line += f" and {after['constant']} of {before['constant']} on no input"
    return escape("\n".join([line, *written["left"]]))
