"""What is wrong with a model that could not be imported or compiled, in terms of its nodes.

Nothing here runs for a model that compiles. ONNX's own checker looks at one node after another, so that what it says
can be said of a node; then ONNX's strict inference looks at types and shapes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from os import PathLike
from typing import Any, cast

import onnx
import onnx.checker
import onnx.shape_inference

from igniter.dialects.onnx.function_sizes import Key, inlined_sizes
from igniter.errors import IgniterError
from igniter.frontend.reading import byte_size, read_model

_INT32 = 1 << 31
_MOST_BYTES = 1 << 30
"""Inference serialises the model; one bigger than this, without its weights, is left alone."""
_MOST_NODES = 1_000_000
"""Inference goes through a function at each call; a model of more nodes, functions inlined, is left alone."""


def node_text(node: onnx.NodeProto, where: str = "the main graph") -> str:
    """A node for messages: by its name, and where it has none by what it computes."""
    op = f"{node.domain}.{node.op_type}" if node.domain else node.op_type or "without an op"
    if node.name:
        return f"node {node.name!r} ({op}) of {where}"
    outputs = [name for name in node.output if name]
    return f"the node {op} of {where}" + (f" that computes {outputs[0]!r}" if outputs else "")


def why_invalid(model: str | PathLike[str] | bytes | onnx.ModelProto) -> str | None:
    """The first thing that makes a model invalid, with the node's name; `None` where nothing is found."""
    proto, _ = read_model(model, "")
    return next(_problems(proto), None)


def _problems(model: onnx.ModelProto) -> Iterator[str]:
    yield from _bad_text(model, "")
    functions = {(f.domain, f.name) for f in model.functions}
    yield from _bad_nodes(model.graph, _context(model), functions, "the main graph")
    yield from _bad_types(model)


# -- text -------------------------------------------------------------------------------------------------------------


def _bad_text(message: Any, where: str) -> Iterator[str]:
    """Strings that are not UTF-8: protobuf's Python hands them out as bytes."""
    if isinstance(message, onnx.NodeProto) and isinstance(cast("Any", message.name), str):
        where = node_text(message)
    for field, value in message.ListFields():
        if field.type == field.TYPE_STRING:
            for text in [value] if isinstance(value, (str, bytes)) else value:
                if isinstance(text, bytes):
                    yield f"{where}{': ' if where else ''}the field '{field.name}' is not UTF-8: {text[:60]!r}"
        elif field.type == field.TYPE_MESSAGE:
            for inner in [value] if hasattr(value, "ListFields") else value:
                yield from _bad_text(inner, where)


# -- nodes ------------------------------------------------------------------------------------------------------------


def _context(model: onnx.ModelProto) -> Any:
    checker: Any = onnx.checker
    context = checker.C.CheckerContext()
    context.ir_version = max(0, min(model.ir_version, _INT32 - 1))
    context.opset_imports = {entry.domain: entry.version for entry in model.opset_import}
    return context


def _bad_nodes(graph: onnx.GraphProto, context: Any, functions: set[tuple[str, str]], where: str) -> Iterator[str]:
    for node in graph.node:
        if (node.domain, node.op_type) not in functions:
            try:
                onnx.checker.check_node(_alone(node), context)
            except Exception as error:  # the checker has an error of its own, and raises others on odd values
                yield f"{node_text(node, where)} is not valid: {_sentence(error)}"
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                yield from _bad_nodes(inner, context, functions, f"the graph '{attribute.name}'")


def _alone(node: onnx.NodeProto) -> onnx.NodeProto:
    """The node without what is in its subgraphs, whose nodes are looked at by themselves, and without its tensors,
    whose bytes are elsewhere."""
    if not any(a.HasField("g") or a.HasField("t") or len(a.graphs) for a in node.attribute):
        return node
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for attribute in copy.attribute:
        for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            graph.CopyFrom(onnx.GraphProto(name="graph"))
        if attribute.HasField("t"):
            attribute.t.CopyFrom(onnx.TensorProto(data_type=onnx.TensorProto.INT8, dims=[1], int32_data=[0]))
    return copy


# -- types and shapes -------------------------------------------------------------------------------------------------


def _bad_types(model: onnx.ModelProto) -> Iterator[str]:
    if byte_size(model) > _MOST_BYTES or _inlined_nodes(model) > _MOST_NODES:
        return
    named = onnx.ModelProto()
    named.CopyFrom(model)
    for node in named.graph.node:
        node.name = node.name or "of " + ", ".join(name for name in node.output if name)
    try:
        onnx.shape_inference.infer_shapes(named, check_type=True, strict_mode=True)
    except Exception as error:
        yield f"the types or shapes do not fit: {_sentence(error)}"


def _inlined_nodes(model: onnx.ModelProto) -> int:
    """The nodes of a model with its functions inlined; 0 where a function calls itself, which inference says."""
    bodies = {(f.domain, f.name, f.overload): partial(_counted, f.node) for f in model.functions}
    called = _counted(model.graph.node)
    try:
        sizes = inlined_sizes(bodies, called)
    except IgniterError:
        return 0
    return sum(times * sizes.get(key, 1) for key, times in called.items())


def _counted(nodes: Iterable[onnx.NodeProto]) -> Counter[Key]:
    """Nodes, those of their subgraphs included, by what they may call."""
    found = Counter[Key]()
    for node in nodes:
        found[node.domain, node.op_type, node.overload] += 1
        for attribute in node.attribute:
            for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())):
                found += _counted(graph.node)
    return found


def _sentence(error: Exception) -> str:
    """The first line of what `onnx` says, without the name of its own error."""
    text = str(error).strip().partition("\n")[0] or type(error).__name__
    for noise in ("[ShapeInferenceError] Inference error(s): ", "[ShapeInferenceError] ", "[TypeInferenceError] "):
        text = text.replace(noise, "")
    return text.rstrip(". ")


def checker_says(model: str | PathLike[str] | bytes) -> str | None:
    """What ONNX's own checker has against a model; `None` where nothing. External data is not read.

    An output of unknown rank has no shape in the file, as ONNX says; the checker asks for one all the same.
    """
    try:
        onnx.checker.check_model(model if isinstance(model, bytes) else str(model))
    except onnx.checker.ValidationError as error:
        said = " ".join(str(error).split())
        return None if "Field 'shape' of 'type' is required but missing" in said else said
    except Exception as error:  # protobuf's limit on bytes, the system's errors
        return str(error)
    return None
