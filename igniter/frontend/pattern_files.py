"""Patterns from files: functions in ONNX's text syntax, or those of an ONNX file.

    # tolerance 1e-3                                        a line of conditions, for the function below it
    <domain: "fused", opset_import: ["" : 17]>
    Gelu (x) => (y)
    {
        ...
    }

A text may have several functions, and a function may have choices (`pattern_choices`). In an ONNX file they are the
model's functions, or the main graph if it has none, and the conditions are the lines of the function's, or the graph's,
doc string.
"""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import onnx.parser
from xdsl.dialects.builtin import ModuleOp

from igniter.errors import IgniterError
from igniter.frontend.importer import import_proto
from igniter.frontend.pattern_choices import alternatives
from igniter.frontend.reading import Source, read_model


def read_pattern_file(path: Path) -> tuple[ModuleOp, list[str]]:
    """Returns a module whose functions are the patterns of a file, in order, and the conditions of each."""
    if path.suffix == ".onnx":
        protos = _of_model(path)
    else:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise IgniterError(f"cannot read the pattern {path}: {error}") from error
        protos = parse_patterns(text, str(path))
    return _module(protos, str(path))


def parse_patterns(text: str, name: str) -> list[tuple[onnx.FunctionProto, str]]:
    """Returns the functions of a text with their conditions; `IgniterError` names the wrong one."""
    found: list[tuple[onnx.FunctionProto, str]] = []
    count = 0
    conditions: list[str] = []
    body: list[str] = []

    def finish() -> None:
        if not "".join(body).strip():
            return
        nonlocal count
        count += 1
        where = f"{name}: pattern {count}"
        try:
            listed = alternatives("\n".join(body), conditions, lambda text: _parse(text, where))
        except ValueError as error:
            raise IgniterError(f"{where}: {error}") from error
        found.extend((a.function, "\n".join([*a.conditions, a.function.doc_string])) for a in listed)
        body.clear()
        conditions.clear()

    for line in text.splitlines():
        if line.startswith("#"):
            if "".join(body).strip():
                finish()
            conditions.append(line[1:].strip())
            continue
        if line.startswith("<") and "".join(body).strip():
            finish()
        body.append(line)
    finish()
    if not found:
        raise IgniterError(f"{name} has no pattern; write an ONNX function, <opset_import: ...> Name (x) => (y) {{ }}")
    return found


def _parse(text: str, where: str) -> onnx.FunctionProto:
    try:
        return onnx.parser.parse_function(text)
    except Exception as error:  # the parser's errors have no base of their own
        told = re.sub(r"\s+", " ", str(error)).strip("b'\" ")
        raise IgniterError(f"{where} is not an ONNX function: {told}") from error


def _of_model(path: Path) -> list[tuple[onnx.FunctionProto, str]]:
    model, _ = read_model(path, "")
    if model.functions:
        return [(f, f.doc_string) for f in model.functions]
    graph = model.graph
    weights = {t.name for t in graph.initializer}
    function = onnx.FunctionProto(name=graph.name or "Fused", domain="fused", opset_import=model.opset_import)
    function.input.extend(v.name for v in graph.input if v.name not in weights)
    function.output.extend(v.name for v in graph.output)
    for tensor in graph.initializer:
        function.node.append(onnx.helper.make_node("Constant", [], [tensor.name], value=tensor))
    function.node.extend(graph.node)
    return [(function, graph.doc_string or model.doc_string)]


def _module(found: list[tuple[onnx.FunctionProto, str]], name: str) -> tuple[ModuleOp, list[str]]:
    model = onnx.ModelProto(ir_version=10)
    model.opset_import.add(domain="", version=max(_opset(f) for f, _ in found))
    model.graph.name = "patterns"
    for k, (function, _) in enumerate(found):
        copy = model.functions.add()
        copy.CopyFrom(function)
        # Alternatives may have one name.
        copy.overload = str(k)
        _check(function, name)

    return import_proto(model, Source(folder="")), [conditions for _, conditions in found]


def _opset(function: onnx.FunctionProto) -> int:
    return max((o.version for o in function.opset_import if o.domain in ("", "ai.onnx")), default=17)


def _check(function: onnx.FunctionProto, name: str) -> None:
    known = {"", *function.input}
    for node in function.node:
        for value in node.input:
            if value not in known:
                raise IgniterError(f"{name}: '{value}', which {node.op_type} reads, is not defined before it")
        known.update(node.output)
        if any(a.HasField("g") or len(a.graphs) for a in node.attribute):
            raise IgniterError(f"{name}: {node.op_type} has a subgraph, which patterns cannot have")
    for value in function.output:
        if value not in known:
            raise IgniterError(f"{name}: the output '{value}' is not computed")
