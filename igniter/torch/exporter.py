"""Export of a functional ATen graph to ONNX, by PyTorch's own exporter.

The exporter takes an `ExportedProgram`. This file wraps one around the graph traced by AOTAutograd or `torch.export`,
so nothing is traced again and the symbols keep the guards checked by Dynamo. Parameters are inputs of the program like
all others; the arguments of the first call decide later which of them become constants.

The exporter's own optimisation is skipped. It takes most of the exporter's time, and Igniter's passes do the same.
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, cast

import onnx

from igniter.torch.decompositions import mended
from igniter.torch.doubles import doubles
from igniter.torch.known_sizes import fix_sizes
from igniter.torch.names import GraphModule, Node, is_symbolic, is_tensor, pytree, torch
from igniter.torch.translations import translations

OPSET = 20
WRITTEN_OPSET = 18
"""The opset declared by the exporter, regardless of the ops in the model."""
BFLOAT16_OPSET = 22
"""The first opset with bfloat16 for convolutions, pooling and most unary functions."""
CHANGED_BEFORE_22 = frozenset(("DFT", "GroupNormalization"))
"""Ops whose opset-18 nodes have another meaning, or are invalid, in opset 22."""

_EXPORTER = "torch.onnx._internal.exporter"
_EXPORT = threading.RLock()
"""One export at a time: the exporter, the filters of warnings and `_doubles_for_numbers` have state of the process."""


@cache
def registry() -> Any:
    """Returns the exporter's registry of translations of ATen ops."""
    with quiet():
        found = import_module(f"{_EXPORTER}._registration").ONNXRegistry.from_torchlib(OPSET)
    for target, function in translations().items():
        found.register_op(target, function)
    return found


@cache
def decompositions() -> dict[Any, Any]:
    """Returns the decompositions of ops without a translation, or without a correct one, in the exporter."""
    decomp = import_module(f"{_EXPORTER}._decomp")
    table: dict[Any, Any] = decomp.create_onnx_friendly_decomposition_table(
        set(decomp.get_onnx_implemented_overloads(registry()))
    )
    # At its decomposition constants are not fake tensors yet. Later it becomes an op known to the exporter.
    table.pop(torch.ops.aten.lift_fresh.default, None)
    # Its decomposition multiplies masked elements, so infinities become NaNs.
    table.pop(torch.ops.aten.cumprod.default, None)
    return {**table, **mended(), **doubles()}


def is_exportable(target: Any) -> bool:
    """True if the exporter has a translation of an op or function."""
    return bool(registry().is_registered(target))


def to_onnx(graph: GraphModule, sizes: dict[str, int]) -> bytes:
    """Returns the ONNX model of a functional graph. Its nodes must have their fake values as `meta["val"]`.

    The inputs of the model are the graph's placeholders by name, with types and with dims as expressions in the graph's
    symbols. The outputs are those of the graph, and must be nodes. `sizes` maps symbols to constant sizes. Errors of
    the exporter are passed on.
    """
    passes = import_module(f"{_EXPORTER}._fx_passes")
    core = import_module(f"{_EXPORTER}._core")
    program = exported_program(graph)
    with _EXPORT, quiet(), _doubles_for_numbers():
        passes.insert_type_promotion_nodes(program.graph_module)
        passes.remove_assertion_nodes(program.graph_module)
        # Rebuilt, because a cast inserted after an output is the new output, and the old program names the node before.
        program = exported_program(program.graph_module)
        made = core._exported_program_to_onnx_program(program, registry=registry())
        model = made.model_proto
    _declare_opset(model)
    fix_sizes(model, sizes)
    for node in model.graph.node:
        # Stack traces and module paths: half of the model's bytes, and different in each process.
        node.ClearField("metadata_props")
    return model.SerializeToString()


@contextmanager
def _doubles_for_numbers() -> Generator[None]:
    """Makes the exporter write Python's floats as f64 in nodes that read or compute f64.

    By default it writes them as f32 and casts the constant to the tensor's type, so `x * 0.1` is off by 1.5e-8.
    The type is chosen for each node: a translation's own constants beside f32 are f32 in the other nodes.
    """
    building: Any = import_module(f"{_EXPORTER}._building")
    core: Any = import_module(f"{_EXPORTER}._core")
    original, translate = building._determine_input_dtype, core._handle_call_function_node_with_lowering
    wide = False

    def determine(parameter: Any, argument: Any, binding: Any) -> Any:
        found = original(parameter, argument, binding)
        bound = parameter.type_constraint in binding or len(parameter.type_constraint.allowed_types) == 1
        number = wide and isinstance(argument, float) and not bound
        return found.DOUBLE if number and found == found.FLOAT else found

    def translated(model: Any, node: Node, *args: Any, **kwargs: Any) -> Any:
        nonlocal wide
        wide = any(map(_is_wide, (node, *node.all_input_nodes)))
        return translate(model, node, *args, **kwargs)

    building._determine_input_dtype = determine
    core._handle_call_function_node_with_lowering = translated
    try:
        yield
    finally:
        building._determine_input_dtype = original
        core._handle_call_function_node_with_lowering = translate


def _is_wide(node: Node) -> bool:
    """True if a value of a node is a tensor of f64."""
    values = pytree.tree_leaves(node.meta.get("val"))
    return any(is_tensor(value) and value.dtype is torch.float64 for value in values)


def _declare_opset(model: Any) -> None:
    """Raises the declared opset of a model if opset 18 lacks its ops or their types."""
    nodes = [node for scope in (model.graph, *model.functions) for node in _nodes(scope.node)]
    used = {node.op_type for node in nodes if not node.domain}
    given = (model.graph.input, model.graph.value_info, model.graph.output)
    bfloat16 = any(value.type.tensor_type.elem_type == _bfloat16() for values in given for value in values)
    version = max((_introduced().get(name, 0) for name in used), default=0)
    version = max(version, BFLOAT16_OPSET) if bfloat16 else version
    if version <= WRITTEN_OPSET or used & CHANGED_BEFORE_22:
        return
    for entry in (*model.opset_import, *(entry for function in model.functions for entry in function.opset_import)):
        if not entry.domain:
            entry.version = version
    for attribute in (a for node in nodes if node.op_type == "GridSample" for a in node.attribute if a.name == "mode"):
        # Opset 20 renames these modes.
        attribute.s = {b"bilinear": b"linear", b"bicubic": b"cubic"}.get(attribute.s, attribute.s)


def _nodes(nodes: Iterable[Any]) -> Generator[Any]:
    """Yields nodes and the nodes of their subgraphs."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _nodes(graph.node)


def _bfloat16() -> int:
    return onnx.TensorProto.BFLOAT16


@cache
def _introduced() -> dict[str, int]:
    """Returns the opset that introduced each op of ONNX."""
    found: dict[str, int] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.domain:
            found[schema.name] = min(schema.since_version, found.get(schema.name, schema.since_version))
    return found


def exported_program(graph: GraphModule) -> Any:
    """Returns an `ExportedProgram` of a graph with all its inputs as user inputs."""
    signature = import_module("torch.export.graph_signature")
    exported = import_module("torch.export.exported_program")

    def argument(node: Node) -> Any:
        value = node.meta.get("val")
        if is_tensor(value):
            return signature.TensorArgument(name=node.name)
        if is_symbolic(value) or node.op != "placeholder":
            return signature.SymIntArgument(name=node.name)
        # The trace specialised this argument to its value.
        return signature.ConstantArgument(name=node.name, value=value)

    taken = [argument(node) for node in graph.graph.nodes if node.op == "placeholder"]
    given = [argument(node) for node in output_nodes(graph)]
    inputs = [signature.InputSpec(signature.InputKind.USER_INPUT, each, None) for each in taken]
    outputs = [signature.OutputSpec(signature.OutputKind.USER_OUTPUT, each, None) for each in given]
    call = exported.ModuleCallSignature(
        [],
        [],
        pytree.tree_flatten((tuple(range(len(taken))), {}))[1],
        pytree.tree_flatten(tuple(range(len(given))))[1],
        [each.name for each in taken],
    )
    return torch.export.ExportedProgram(
        graph,
        graph.graph,
        signature.ExportGraphSignature(inputs, outputs),
        {},
        {},
        [exported.ModuleCallEntry("", call)],
        None,
        {},
    )


def output_nodes(graph: GraphModule) -> list[Any]:
    """Returns the outputs of a graph as a flat list of nodes, and of constants such as `None`."""
    output = next(node for node in reversed(graph.graph.nodes) if node.op == "output")
    value: Any = output.args[0]
    if isinstance(value, (list, tuple)):
        return list(cast("list[Any]", value))
    return [value]


def is_number(value: Any) -> bool:
    """True if a value of a graph is a Python number at run time, not a tensor."""
    return not is_tensor(value) and (isinstance(value, (bool, int, float)) or is_symbolic(value))


@contextmanager
def quiet() -> Generator[None]:
    """Suppresses the exporters' warnings about missing metadata and future changes of PyTorch."""
    logger = logging.getLogger("torch.onnx._internal.exporter")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
