"""`igniter inspect`: the contents of a model, a compiled model or a library."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.tree import Tree

from igniter.compiler.artifact import Artifact
from igniter.dialects.onnx.base import OnnxOp, constant_weight
from igniter.dialects.onnx.structure import main_graph
from igniter.errors import IgniterError
from igniter.frontend import import_model
from igniter.runtime.library import library_info
from igniter.toolbox.inspect import summary
from igniter.toolbox.output import console, print_json

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from igniter.toolbox.inspect.request import InspectRequest


def run(asked: InspectRequest) -> None:
    """Prints a description: a summary by default, all known facts with JSON or `everything`."""
    where = Path(asked.path)
    if where.is_dir():
        described, lines = _artifact(where)
    elif where.suffix in (".so", ".dylib", ".dll"):
        described = {"library": str(where), **library_info(where)}
        lines = summary.library_lines(described)
    elif where.suffix == ".onnx":
        described, lines = _model(where)
    else:
        raise IgniterError(
            f"{asked.path} is neither a compiled model's folder, nor a library (.so), nor a model (.onnx)"
        )
    if asked.json:
        print_json(described)
    elif asked.everything:
        _print(described)
    else:
        _print_summary(asked.path, lines)


def _artifact(folder: Path) -> tuple[dict[str, Any], summary.Lines]:
    artifact = Artifact.load(folder)
    module = import_model(artifact.model_path)
    described = _describe_artifact(artifact, module)
    return described, summary.artifact_lines(described, module, folder, artifact.source is not None)


def _model(path: Path) -> tuple[dict[str, Any], summary.Lines]:
    module = import_model(path)
    described = _describe_model(path, module)
    return described, summary.model_lines(described, module)


def _describe_artifact(artifact: Artifact, module: ModuleOp) -> dict[str, Any]:
    """Returns the report without single nodes and regions, and the model and the libraries."""
    report = {k: v for k, v in artifact.report.items() if k not in ("remarks", "fusion")}
    report["programs"] = {p["program"]: f"{len(p['steps'])} kernels" for p in report.get("programs", ())}
    return {
        "folder": str(artifact.folder),
        **report,
        "model": _describe_model(artifact.model_path, module),
        "libraries": artifact.library_infos(),
    }


def _describe_model(path: Path, module: ModuleOp) -> dict[str, Any]:
    """Returns inputs, outputs, opsets, the number of each op, and the size of the weights."""
    graph = main_graph(module)
    ops: Counter[str] = Counter()
    weights = 0
    for op in graph.walk():
        if isinstance(op, OnnxOp) and op.op_type == "Constant":
            weight = constant_weight(op.results[0])
            weights += weight.nbytes if weight is not None else 0
        elif isinstance(op, OnnxOp):
            ops[op.qualified_name] += 1
    model: Any = module.attributes.get("onnx.model")
    return {
        "path": str(path),
        "inputs": {n: str(a.type) for n, a in zip(graph.input_names, graph.body.args, strict=True)},
        "outputs": {n: str(v.type) for n, v in zip(graph.output_names, graph.terminator.operands, strict=True)},
        "opsets": str(model.data.get("opset_import")) if model is not None else "",
        "nodes": sum(ops.values()),
        "weight_bytes": weights,
        "ops": dict(ops.most_common()),
    }


def _print_summary(path: str, lines: summary.Lines) -> None:
    out = console()
    out.print(path, style="bold", markup=False, soft_wrap=True)
    width = max(len(name) for name, _ in lines)
    for name, text in lines:
        # One line for each fact, of any length, so that `grep` finds all of it.
        out.print(f"  [cyan]{name:{width}}[/]  {text}", soft_wrap=True)


def _print(described: dict[str, Any]) -> None:
    root = Tree(f"[bold]{described.get('folder') or described.get('library') or described.get('path')}")
    _grow(root, described)
    console().print(root)


def _grow(tree: Any, value: Any) -> None:
    pairs: Any = value.items() if isinstance(value, dict) else enumerate(value)  # pyright: ignore[reportUnknownVariableType]
    entries: list[tuple[Any, Any]] = list(pairs)
    for key, item in entries:
        if isinstance(item, (dict, list)) and item:
            _grow(tree.add(f"[cyan]{key}"), item)
        elif item not in ({}, [], None):
            text = escape(f"{item}")
            tree.add(f"[cyan]{key}[/]: {text}")
