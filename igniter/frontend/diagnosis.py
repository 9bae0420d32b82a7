"""The errors in a model after a failed import or compilation, in terms of its nodes.

Nothing here runs for a valid model. ONNX's own checker checks the nodes one by one, so each message is about one node;
then ONNX's strict inference checks types and shapes.
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
"""The limit in bytes of a model without its weights, since inference serialises it; a larger one is not inferred."""
_MOST_NODES = 1_000_000
"""The limit in nodes of a model with functions inlined, since inference visits a function at each call."""

_ONLY_IN_ORT = frozenset(
    (
        *("Affine", "Crop", "DynamicSlice", "GivenTensorFill", "ImageScaler", "ParametricSoftplus", "Scale"),
        *("ScaledTanh", "SimplifiedLayerNormalization"),
    )
)
"""Ops that ONNX Runtime adds to ONNX's own domain; ONNX's checker does not know them."""


def node_text(node: onnx.NodeProto, where: str = "the main graph") -> str:
    """Describes a node for messages: by its name, or without one by its output."""
    op = f"{node.domain}.{node.op_type}" if node.domain else node.op_type or "without an op"
    if node.name:
        return f"node {node.name!r} ({op}) of {where}"
    outputs = [name for name in node.output if name]
    return f"the node {op} of {where}" + (f" that computes {outputs[0]!r}" if outputs else "")


def why_invalid(model: str | PathLike[str] | bytes | onnx.ModelProto) -> str | None:
    """Returns the first error in an invalid model, with the node's name; `None` if no error is found."""
    proto, _ = read_model(model, "")
    return next(_problems(proto), None)


def _problems(model: onnx.ModelProto) -> Iterator[str]:
    yield from _bad_text(model, "")
    functions = {(f.domain, f.name) for f in model.functions}
    yield from _bad_nodes(model.graph, _context(model), functions, "the main graph")
    yield from _bad_types(model)


# -- text -------------------------------------------------------------------------------------------------------------


def _bad_text(message: Any, where: str) -> Iterator[str]:
    """Yields strings in other encodings than UTF-8; protobuf's Python returns them as bytes."""
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
        of_runtime = node.domain in ("", "ai.onnx") and node.op_type in _ONLY_IN_ORT
        if (node.domain, node.op_type) not in functions and not of_runtime:
            try:
                onnx.checker.check_node(_alone(node), context)
            except Exception as error:  # the checker has an error class of its own, and raises others on odd values
                yield f"{node_text(node, where)} is not valid: {_sentence(error)}"
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                yield from _bad_nodes(inner, context, functions, f"the graph '{attribute.name}'")


def _alone(node: onnx.NodeProto) -> onnx.NodeProto:
    """Returns the node without the contents of its subgraphs, whose nodes are checked separately, and without its
    tensors, whose bytes are elsewhere."""
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
    except Exception as error:  # inference has an error class of its own, and raises others on odd values
        yield f"the types or shapes do not fit: {_sentence(error)}"


def _inlined_nodes(model: onnx.ModelProto) -> int:
    """Returns the number of nodes with functions inlined; 0 if a function calls itself (inference reports this)."""
    bodies = {(f.domain, f.name, f.overload): partial(_counted, f.node) for f in model.functions}
    called = _counted(model.graph.node)
    try:
        sizes = inlined_sizes(bodies, called)
    except IgniterError:
        return 0
    return sum(times * sizes.get(key, 1) for key, times in called.items())


def _counted(nodes: Iterable[onnx.NodeProto]) -> Counter[Key]:
    """Counts nodes, including those of subgraphs, by the function they may call."""
    found = Counter[Key]()
    for node in nodes:
        found[node.domain, node.op_type, node.overload] += 1
        for attribute in node.attribute:
            for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())):
                found += _counted(graph.node)
    return found


def _sentence(error: Exception) -> str:
    """Returns the first line of an error of `onnx`, without its prefixes."""
    text = str(error).strip().partition("\n")[0] or type(error).__name__
    for noise in ("[ShapeInferenceError] Inference error(s): ", "[ShapeInferenceError] ", "[TypeInferenceError] "):
        text = text.replace(noise, "")
    return text.rstrip(". ")


def checker_says(model: str | PathLike[str] | bytes) -> str | None:
    """Returns the error of ONNX's own checker for a model; `None` for no error. External data is not read.

    An output of unknown rank has no shape in the file, as ONNX's specification requires; the checker demands one
    anyway, and this error is ignored.
    """
    try:
        onnx.checker.check_model(model if isinstance(model, bytes) else str(model))
    except onnx.checker.ValidationError as error:
        said = " ".join(str(error).split())
        return None if "Field 'shape' of 'type' is required but missing" in said else said
    except Exception as error:  # protobuf's limit on bytes, the system's errors
        return str(error)
    return None
