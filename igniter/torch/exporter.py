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
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, cast

from igniter.torch.decompositions import mended
from igniter.torch.names import GraphModule, Node, is_symbolic, is_tensor, pytree, torch

OPSET = 20

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
    return {**table, **mended()}


def is_exportable(target: Any) -> bool:
    """Whether the exporter knows an op or function."""
    return bool(registry().is_registered(target))


def to_onnx(graph: GraphModule) -> bytes:
    """The ONNX model of a functional graph whose nodes carry their fake values as `meta["val"]`.

    Its inputs are the placeholders by name, each with a type and its dims as expressions in the graph's symbols; its
    outputs are those of the graph, which have to be nodes. Raises what the exporter raises.
    """
    passes = import_module(f"{_EXPORTER}._fx_passes")
    core = import_module(f"{_EXPORTER}._core")
    program = exported_program(graph)
    with quiet():
        passes.insert_type_promotion_nodes(program.graph_module)
        passes.remove_assertion_nodes(program.graph_module)
        # Where a cast was inserted behind an output, that is the output now; the program names the node before it.
        program = exported_program(program.graph_module)
        made = core._exported_program_to_onnx_program(program, registry=registry())
        model = made.model_proto
    for node in model.graph.node:
        # Stack traces and module paths: half of the model, and another in each process.
        node.ClearField("metadata_props")
    return model.SerializeToString()


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
