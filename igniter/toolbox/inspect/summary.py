"""The summary of a model, a compiled model or a library by `igniter inspect`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from igniter.analysis.fusion.legality import as_tensor, has_dims
from igniter.analysis.onnx.input_places import dim_text
from igniter.compiler.compilation import CompileOptions
from igniter.dialects.onnx.structure import main_graph
from igniter.dialects.sym import dims_of
from igniter.toolbox.output import verification_lines

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from igniter.dialects.sym.expr import Expr

MOST_OPS = 12
"""The limit of ops listed with their number; the most frequent ones are listed."""
MOST_VALUES = 8
MOST_REASONS = 5

Lines = list[tuple[str, str]]
"""The subject and the text of each line, with rich's markup: names of a model are escaped."""


def model_lines(described: Mapping[str, Any], module: ModuleOp) -> Lines:
    """Describes a model: its inputs and outputs, its ops and weights."""
    return [
        *_signature(module),
        ("opsets", ", ".join(f"{domain or 'onnx'} {version}" for domain, version in _opsets(module).items())),
        ("nodes", _counted(described["nodes"], described["ops"])),
        ("weights", size(described["weight_bytes"])),
    ]


def artifact_lines(described: Mapping[str, Any], module: ModuleOp, folder: Path, original: bool) -> Lines:
    """Describes a compiled model: its source and target, its verification, and the nodes left to ONNX Runtime.
    `original` is true if its source still exists."""
    lines: Lines = [
        ("compiled", f"{described['nodes_before']} nodes became {described['nodes_after']}, {_kernels(described)}"),
        ("target", ", ".join(_targets(described))),
        *_signature(module),
        *_options(described["options"]),
        ("weights", size(described["model"]["weight_bytes"])),
    ]
    lines += [("verified" if i == 0 else "", line) for i, line in enumerate(_verified(described))]
    lines += [("left to ORT" if i == 0 else "", line) for i, line in enumerate(_left(described["left_to_onnxruntime"]))]
    lines += [("files" if i == 0 else "", line) for i, line in enumerate(_files(described["files"], folder))]
    return [*lines, ("original", _original(described.get("source"), original)), ("made", _made(described))]


def library_lines(described: Mapping[str, Any]) -> Lines:
    """Describes a library: its CPUs or GPUs, and its ops."""
    ops: Mapping[str, Mapping[str, Any]] = described["ops"]
    providers = [name or "CPUExecutionProvider" for name in described["providers"]]
    lines: Lines = [
        ("size", size(Path(described["library"]).stat().st_size)),
        ("target", ", ".join(_target_names([described]))),
        ("runs in", f"{', '.join(providers)} of ONNX Runtime 1.{described['ort_api_version']} and later"),
        ("domain", str(described["domain"])),
    ]
    for i, (name, op) in enumerate(list(ops.items())[:MOST_VALUES]):
        about = escape(f"{name}: {len(op['inputs'])} inputs, {len(op['outputs'])} outputs")
        lines.append(("ops" if i == 0 else "", about))
    if len(ops) > MOST_VALUES:
        lines.append(("", f"and {len(ops) - MOST_VALUES} more"))
    return [*lines, ("made", f"by {_versions(described['versions'])}")]


def size(count: int) -> str:
    """Returns a readable size in bytes."""
    if count < 1 << 10:
        return f"{count} bytes"
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 1 << shift:
            return f"{count / (1 << shift):.4g} {unit}"
    raise AssertionError("unreachable")


def _signature(module: ModuleOp) -> Lines:
    graph = main_graph(module)
    dim = dim_text(module)
    inputs = [value_text(n, a.type, dim) for n, a in zip(graph.input_names, graph.body.args, strict=True)]
    ends = zip(graph.output_names, graph.terminator.operands, strict=True)
    outputs = [value_text(n, v.type, dim) for n, v in ends]
    lines: Lines = []
    for name, values in (("inputs", inputs), ("outputs", outputs)):
        shown = [*values[:MOST_VALUES], *([f"and {len(values) - MOST_VALUES} more"] * (len(values) > MOST_VALUES))]
        lines += [(name if i == 0 else "", value) for i, value in enumerate(shown or ["none"])]
    return lines


def value_text(name: str, found: Any, dim: Callable[[Expr], str] = str) -> str:
    """Returns `input_ids: i64 [batch, seq]`; types other than tensors are shown as in the IR."""
    tensor = as_tensor(found)
    if tensor is None:
        return escape(f"{name}: {found}")
    dims = f" [{', '.join(map(dim, dims_of(tensor)))}]" if has_dims(tensor) else " of unknown shape"
    return escape(f"{name}: {tensor.element_type}{dims}")


def _opsets(module: ModuleOp) -> dict[str, int]:
    model: Any = module.attributes.get("onnx.model")
    imported: Any = model.data.get("opset_import") if model is not None else None
    return {domain: int(version.value.data) for domain, version in imported.data.items()} if imported else {}


def _counted(nodes: int, ops: Mapping[str, int]) -> str:
    listed = [f"{name} {count}" for name, count in list(ops.items())[:MOST_OPS]]
    if len(ops) > MOST_OPS:
        listed.append(f"and {sum(list(ops.values())[MOST_OPS:])} nodes of {len(ops) - MOST_OPS} other ops")
    return escape(f"{nodes}: {', '.join(listed)}") if listed else str(nodes)


def _kernels(described: Mapping[str, Any]) -> str:
    regions, kernels = described["regions"], described["kernels"]
    ops = f"{regions} of them custom ops" if regions != 1 else "1 of them a custom op"
    return f"{ops} with {kernels} different kernel{'s' * (kernels != 1)}"


def _targets(described: Mapping[str, Any]) -> list[str]:
    return _target_names(described["libraries"]) or [str(described["target"])]


def _target_names(libraries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns the targets of libraries; for `native` with its CPU."""
    names: list[str] = []
    for library in libraries:
        cpus = [str(t["cpu"]) for t in library["targets"] if "cpu" in t]
        for name in str(library["target_name"]).split(","):
            names.append(f"native ({', '.join(cpus[:1])})" if name == "native" and cpus else name)
    return list(dict.fromkeys(names))


def _options(options: Mapping[str, Any]) -> Lines:
    """Returns the options that differ from their defaults, without pipelines, which follow from the target."""
    plain: dict[str, Any] = json.loads(json.dumps(CompileOptions().to_dict(), default=str))
    pipelines = {name for name in options if name.endswith("_passes")}
    said = {k: v for k, v in options.items() if k not in pipelines | {"target"} and v != plain.get(k)}
    return [("options", escape(", ".join(f"{name}={value}" for name, value in said.items())))] if said else []


def _verified(described: Mapping[str, Any]) -> list[str]:
    found = described.get("verification")
    if found is None:
        return ["[yellow]no:[/] it was compiled with --no-verify; `igniter verify` does it now"]
    if found["status"] == "differs":
        return ["[red]its outputs differ from the original's[/]"]
    return [line.removeprefix("verified ") for line in verification_lines(found)]


def _left(left: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns the nodes left to ONNX Runtime, by op and reason."""
    if not left:
        return ["nothing"]
    reasons = Counter((str(e["op"]), str(e["reason"]).splitlines()[0]) for e in left)
    named = [(f"{op} ({count})" if count > 1 else op, reason) for (op, reason), count in reasons.most_common()]
    # Some reasons begin with the op.
    lines = [escape(reason if reason.startswith(f"{op}:") else f"{op}: {reason}") for op, reason in named]
    if len(lines) > MOST_REASONS:
        rest = len(left) - sum(count for _, count in reasons.most_common(MOST_REASONS))
        lines[MOST_REASONS:] = [f"and {rest} nodes more"]
    return lines


def _files(files: Sequence[str], folder: Path) -> list[str]:
    return [escape(f"{name} ({size((folder / name).stat().st_size)})") for name in files if (folder / name).exists()]


def _original(source: Mapping[str, str] | None, there: bool) -> str:
    if not source or "path" not in source:
        return "a model in memory"
    path = escape(source["path"])
    return path if there else f"[yellow]not there, or changed:[/] {path}"


def _made(described: Mapping[str, Any]) -> str:
    seconds = sum(described.get("seconds", {}).values())
    return f"in {seconds:.1f} s by {_versions(described['versions'])}"


def _versions(versions: Mapping[str, str]) -> str:
    return f"igniter {versions['igniter']} with LLVM {versions['llvm']}"
