"""`igniter diff`: the differences between two models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from igniter.api import load
from igniter.compiler.artifact import Artifact
from igniter.errors import IgniterError
from igniter.runtime.session import silence
from igniter.toolbox.diff.diff import count_kinds
from igniter.toolbox.options import DEFAULT_INPUTS, InputRequest
from igniter.toolbox.output import console, print_json, progress, verification_table

if TYPE_CHECKING:
    from igniter.toolbox.diff.diff import ModelDiff, WeightChange
    from igniter.toolbox.diff.request import DiffRequest
    from igniter.verification.report import Verification

SHOWN = 50
"""The limit of printed changes of one kind; JSON has all."""


def run(asked: DiffRequest) -> int:
    """Compares and prints; returns the exit status, 1 if the models differ."""
    if asked.given != DEFAULT_INPUTS and not asked.compare:
        raise IgniterError("--shape, --inputs, --rtol, --atol, --seed and --budget are for --run: give it too")

    one, other = load(_model(asked.a)), load(_model(asked.b))
    found = one.diff(other)
    outputs = _outputs(asked.a, asked.b, asked.given, asked.json) if asked.compare else None
    differs = bool(found) or (outputs is not None and outputs.status == "differs")
    if asked.json:
        described: dict[str, Any] = {"a": asked.a, "b": asked.b, **found.to_dict(), "same": not differs}
        print_json({**described, "outputs": None if outputs is None else outputs.to_dict()})
    else:
        _print(found, outputs)
    return 1 if differs else 0


def _model(path: str) -> str:
    """Returns the file of a model; for a compiled one, the model in its folder."""
    where = Path(path)
    if where.suffix in (".so", ".dylib", ".dll"):
        raise IgniterError(f"{path} is a library: give models, or the folders that `igniter compile` made")
    if not where.is_dir():
        return path
    return str(Artifact.load(where).model_path)


def _outputs(a: str, b: str, asked: InputRequest, quiet: bool) -> Verification:
    from igniter.toolbox.diff.results import compare_models

    for path in (a, b):
        if path.endswith(".mlir"):
            raise IgniterError(f"{path} is IR, which ONNX Runtime does not run: leave out --run, or give files of ONNX")
    silence()
    with progress("running both", quiet):
        return compare_models(a, b, **asked.for_verify())


def _print(found: ModelDiff, outputs: Verification | None) -> None:
    out = console()
    for line in (*found.header, *found.interface):
        out.print(escape(line))
    for change in found.nodes[:SHOWN]:
        names = change.a if change.a == change.b or not change.b else change.b if not change.a else ""
        name = f"'{names}'" if names else f"'{change.a}' ('{change.b}' in B)"
        where = f" in {change.where}" if change.where else ""
        details = f": {'; '.join(change.details)}" if change.details else ""
        op = change.op if change.kind != "replaced" else "node"
        out.print(escape(f"{change.kind}: {op} {name}{where}{details}"))
    _more(out, len(found.nodes), "changes of nodes")
    if found.weights:
        out.print(_weights(found.weights[:SHOWN]))
        _more(out, len(found.weights), "weights")
    if outputs is not None:
        if outputs.cases:
            out.print(verification_table(outputs))
        told = {"passed": "the outputs agree", "differs": "the outputs differ", "not verified": "nothing was compared"}
        out.print(escape(f"{told[outputs.status]}{f': {outputs.cannot}' if outputs.cannot else ''}"))
    said = {"attributes": "with other attributes"}
    kinds = ", ".join(f"{n} {said.get(kind, kind)}" for kind, n in count_kinds(found.nodes).items()) or "none changed"
    same = f"{found.matched} nodes are in both, {kinds}; {found.same_weights} weights and constants are the same"
    out.print(escape(f"{same}, {len(found.weights)} are not"))


def _weights(changes: tuple[WeightChange, ...]) -> Any:
    table = Table("weight", "in A", "in B", "elements", "largest difference", "relative", "read by")
    for c in changes:
        name = c.a if c.a == c.b else f"{c.a} ({c.b} in B)"
        figures = ["" if f is None else f"{f:.3g}" for f in (c.absolute, c.relative)]
        table.add_row(name, c.type_a, c.type_b, "" if c.elements is None else f"{c.elements:,}", *figures, c.reader)
    return table


def _more(out: Any, count: int, what: str) -> None:
    if count > SHOWN:
        out.print(f"... and {count - SHOWN} more {what}: --json has all")
