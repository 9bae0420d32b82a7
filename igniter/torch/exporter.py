"""A functional ATen graph to ONNX, by PyTorch's own exporter.

The exporter takes an `ExportedProgram`. One is put together here around the graph that AOTAutograd or `torch.export`
has traced, so that nothing is traced again: the symbols, and the guards on them, stay those that Dynamo checks.
Parameters are inputs of the program like all else; which become constants is decided later, by what is given at the
first call.

The exporter optimises what it has made, which takes most of its time. That is left out: Igniter's own passes do it.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, cast

from igniter.torch.decompositions import mended
from igniter.torch.doubles import doubles
from igniter.torch.known_sizes import fix_sizes
from igniter.torch.names import GraphModule, Node, is_symbolic, is_tensor, pytree, torch

OPSET = 20
WRITTEN_OPSET = 18
"""The opset that the exporter writes into a model, whatever ops it has used."""
BFLOAT16_OPSET = 22
"""The first opset in which convolutions, pooling and most of the functions of one number take bfloat16."""
CHANGED_BEFORE_22 = frozenset(("DFT", "GroupNormalization"))
"""Ops whose nodes of opset 18 mean something else, or nothing, in opset 22."""

_EXPORTER = "torch.onnx._internal.exporter"


@cache
def registry() -> Any:
    """What the exporter has for each ATen op."""
    with quiet():
        return import_module(f"{_EXPORTER}._registration").ONNXRegistry.from_torchlib(OPSET)


@cache
def decompositions() -> dict[Any, Any]:
    """How ops are taken apart that the exporter has nothing for."""
    decomp = import_module(f"{_EXPORTER}._decomp")
    table: dict[Any, Any] = decomp.create_onnx_friendly_decomposition_table(
        set(decomp.get_onnx_implemented_overloads(registry()))
    )
    # It would be taken apart where constants are no fake tensors yet; the exporter has what it becomes afterwards.
    table.pop(torch.ops.aten.lift_fresh.default, None)
    # A product of masked elements, of which infinities make NaNs.
    table.pop(torch.ops.aten.cumprod.default, None)
    return {**table, **mended(), **doubles()}


def is_exportable(target: Any) -> bool:
    """Whether the exporter knows an op or function."""
    return bool(registry().is_registered(target))


def to_onnx(graph: GraphModule, sizes: dict[str, int]) -> bytes:
    """The ONNX model of a functional graph whose nodes carry their fake values as `meta["val"]`.

    Its inputs are the placeholders by name, each with a type and its dims as expressions in the graph's symbols; its
    outputs are those of the graph, which have to be nodes. `sizes` are symbols that are numbers. Raises what the
    exporter raises.
    """
    passes = import_module(f"{_EXPORTER}._fx_passes")
    core = import_module(f"{_EXPORTER}._core")
    program = exported_program(graph)
    with quiet(), _doubles_for_numbers(graph):
        passes.insert_type_promotion_nodes(program.graph_module)
        passes.remove_assertion_nodes(program.graph_module)
        # Where a cast was inserted behind an output, that is the output now; the program names the node before it.
        program = exported_program(program.graph_module)
        made = core._exported_program_to_onnx_program(program, registry=registry())
        model = made.model_proto
    _declare_opset(model)
    fix_sizes(model, sizes)
    for node in model.graph.node:
        # Stack traces and module paths: half of the model, and another in each process.
        node.ClearField("metadata_props")
    return model.SerializeToString()


@contextmanager
def _doubles_for_numbers(graph: GraphModule) -> Generator[None]:
    """Make the exporter write Python's floats as f64 where a graph computes in f64.

    It writes them as f32 and casts the constant to the type of the tensor: `x * 0.1` was off by 1.5e-8.
    """
    building: Any = import_module(f"{_EXPORTER}._building")
    original: Any = building._determine_input_dtype
    wide = any(
        is_tensor(value) and value.dtype is torch.float64
        for node in graph.graph.nodes
        for value in pytree.tree_leaves(node.meta.get("val"))
    )

    def determine(parameter: Any, argument: Any, binding: Any) -> Any:
        found = original(parameter, argument, binding)
        bound = parameter.type_constraint in binding or len(parameter.type_constraint.allowed_types) == 1
        number = isinstance(argument, float) and not bound
        return found.DOUBLE if number and found == found.FLOAT else found

    building._determine_input_dtype = determine if wide else original
    try:
        yield
    finally:
        building._determine_input_dtype = original


def _declare_opset(model: Any) -> None:
    """Set the opset of a model to one that has its ops with its types, where opset 18 has not."""
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
        # Opset 20 has other names for them.
        attribute.s = {b"bilinear": b"linear", b"bicubic": b"cubic"}.get(attribute.s, attribute.s)


def _nodes(nodes: Iterable[Any]) -> Generator[Any]:
    """Nodes and those of their subgraphs."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _nodes(graph.node)


def _bfloat16() -> int:
    import onnx

    return onnx.TensorProto.BFLOAT16


@cache
def _introduced() -> dict[str, int]:
    """The opset that each op of ONNX first appeared in."""
    import onnx

    found: dict[str, int] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.domain:
            found[schema.name] = min(schema.since_version, found.get(schema.name, schema.since_version))
    return found


def exported_program(graph: GraphModule) -> Any:
    """An `ExportedProgram` around a graph, all of whose inputs are the user's."""
    signature = import_module("torch.export.graph_signature")
    exported = import_module("torch.export.exported_program")

    def argument(node: Node) -> Any:
        value = node.meta.get("val")
        if is_tensor(value):
            return signature.TensorArgument(name=node.name)
        if is_symbolic(value) or node.op != "placeholder":
            return signature.SymIntArgument(name=node.name)
        # An argument that the trace has taken as it was.
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
    """What a graph returns, as a flat list: nodes, and constants such as `None`."""
    output = next(node for node in reversed(graph.graph.nodes) if node.op == "output")
    value: Any = output.args[0]
    if isinstance(value, (list, tuple)):
        return list(cast("list[Any]", value))
    return [value]


def is_number(value: Any) -> bool:
    """Whether a value of a graph is a Python number, rather than a tensor, when the graph runs."""
    return not is_tensor(value) and (isinstance(value, (bool, int, float)) or is_symbolic(value))


@contextmanager
def quiet() -> Generator[None]:
    """Without the warnings of exporters on what their metadata lacks and what will change in PyTorch itself."""
    logger = logging.getLogger("torch.onnx._internal.exporter")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
