"""A model with more outputs, or with values cut: they become inputs, and their producers are removed.

For verification of values inside a model. Only the main graph is cut; its values keep their names.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import onnx

from igniter.errors import IgniterError

if TYPE_CHECKING:
    import numpy as np

RANDOM = frozenset(
    ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial")
)
_TRAINING_INPUT = {"Dropout": 2}


def read_proto(model: str | bytes) -> tuple[onnx.ModelProto, str]:
    """Returns the message without its external data, and the folder of the data ("" for bytes)."""
    try:
        if isinstance(model, bytes):
            return onnx.ModelProto.FromString(model), ""
        return onnx.load(model, load_external_data=False), os.path.dirname(os.path.abspath(model))
    except Exception as error:  # protobuf's errors, and the system's
        raise IgniterError(
            f"cannot read the model {'in memory' if isinstance(model, bytes) else model}: {error}"
        ) from error


def random_values(proto: onnx.ModelProto) -> list[str] | None:
    """Returns the used results of random nodes in the main graph, under each name given by an Identity; `None` if a
    random node is inside another node or a function, where values cannot be cut."""
    found: list[str] = []
    read = {name for node in _nodes_of(proto.graph.node) for name in node.input} | {v.name for v in proto.graph.output}
    functions = {(f.domain, f.name) for f in proto.functions if any(_is_random(n) for n in _nodes_of(f.node))}
    for node in proto.graph.node:
        if _is_random(node):
            found += [name for name in node.output if name in read]
        elif node.op_type == "Identity" and node.input[0] in found:
            found += node.output
        elif (node.domain, node.op_type) in functions or any(_is_random(n) for n in _inner(node)):
            return None
    return found


THREAD_DEPENDENT = frozenset([("com.microsoft", "DynamicQuantizeLSTM")])
"""The ops whose results depend on the number of threads: ONNX Runtime splits the batch between threads, and the states
of each part have a scale of their own."""


def thread_dependent(proto: onnx.ModelProto) -> int:
    """Returns the number of nodes of such ops, also inside other nodes and functions."""
    bodies = [proto.graph.node, *(function.node for function in proto.functions)]
    return sum((node.domain, node.op_type) in THREAD_DEPENDENT for body in bodies for node in _nodes_of(body))


def _is_random(node: onnx.NodeProto) -> bool:
    if node.domain not in ("", "ai.onnx"):
        return False
    at = _TRAINING_INPUT.get(node.op_type)
    return node.op_type in RANDOM or (at is not None and len(node.input) > at and node.input[at] != "")


def _nodes_of(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        yield node
        yield from _inner(node)


def _inner(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            yield from _nodes_of(graph.node)


# -- values out and in ------------------------------------------------------------------------------------------------


def with_outputs(proto: onnx.ModelProto, names: Iterable[str]) -> onnx.ModelProto:
    """Returns a copy whose values `names` are outputs too; their types are left to the runtime."""
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    there = {v.name for v in made.graph.output}
    for name in dict.fromkeys(names):
        if name not in there:
            made.graph.output.add(name=name)
    return made


def with_inputs(proto: onnx.ModelProto, values: Mapping[str, np.ndarray[Any, Any]]) -> onnx.ModelProto:
    """Returns a copy with the named values as inputs, of the types of the given arrays, and without unneeded nodes."""
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    graph = made.graph
    nodes = list(graph.node)
    for name, array in values.items():
        if any(v.name == name for v in graph.input):
            continue
        code = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        graph.input.append(onnx.helper.make_tensor_value_info(name, code, [None] * array.ndim))
    kept = [_renamed(node, values) for node in nodes]
    del graph.node[:]
    graph.node.extend(_needed(kept, [v.name for v in graph.output]))
    return made


COMPUTED = ".computed"
"""The suffix of the output for a cut value."""


def with_cuts(proto: onnx.ModelProto, values: Mapping[str, np.ndarray[Any, Any]]) -> onnx.ModelProto:
    """Returns a copy in which the named values, of the types of the given arrays, are inputs to their readers; the
    results of their producers become the outputs (`name.computed`). So each value depends on the nearest cut values
    above it."""
    made = with_inputs(with_outputs(proto, ()), values)
    del made.graph.node[:]
    del made.graph.output[:]
    nodes = [_renamed(node, values, COMPUTED) for node in proto.graph.node]
    computed = {name for node in proto.graph.node for name in node.output}
    made.graph.output.extend(onnx.ValueInfoProto(name=f"{name}{COMPUTED}") for name in values if name in computed)
    made.graph.node.extend(_needed(nodes, [v.name for v in made.graph.output]))
    return made


def _renamed(node: onnx.NodeProto, cut: Collection[str], ending: str = ".cut") -> onnx.NodeProto:
    """Returns the node with unused names for its cut outputs."""
    if not any(name in cut for name in node.output):
        return node
    made = onnx.NodeProto()
    made.CopyFrom(node)
    for i, name in enumerate(node.output):
        if name in cut:
            made.output[i] = f"{name}{ending}"
    return made


def _needed(nodes: list[onnx.NodeProto], outputs: Iterable[str]) -> list[onnx.NodeProto]:
    """Returns the nodes needed for the outputs, in order."""
    wanted = set(outputs)
    kept: list[onnx.NodeProto] = []
    for node in reversed(nodes):
        if any(name in wanted for name in node.output):
            kept.append(node)
            wanted.update(node.input)
            for inner in _inner(node):
                wanted.update(inner.input)
            for attribute in node.attribute:
                for graph in (attribute.g, *attribute.graphs):
                    wanted.update(v.name for v in graph.output)
    return kept[::-1]


# -- rounding ---------------------------------------------------------------------------------------------------------

# fmt: off
ROUNDS = frozenset((
    "Add", "AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "Cos", "Div", "Einsum", "Elu", "Erf", "Exp",
    "GRU", "Gelu", "Gemm", "GlobalAveragePool", "GlobalLpPool", "GroupNormalization", "HardSigmoid", "HardSwish",
    "InstanceNormalization", "LSTM", "LayerNormalization", "Log", "LogSoftmax", "LpNormalization", "LRN", "MatMul",
    "Mean", "MeanVarianceNormalization", "Mish", "Mul", "Pow", "RMSNormalization", "RNN", "Reciprocal", "ReduceL1",
    "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceProd", "ReduceSum", "ReduceSumSquare",
    "Resize", "STFT", "DFT", "Selu", "Sigmoid", "Sin", "Softmax", "Softplus", "Softsign", "Sqrt", "Sub", "Sum",
    "Swish", "Tan", "Tanh",
))
# fmt: on
"""The ops of ai.onnx with rounded floating-point results."""

# fmt: off
ROUNDS_IN_ORT = frozenset((
    "Attention", "BiasGelu", "FastGelu", "FusedMatMul", "Gelu", "GroupQueryAttention", "MatMulNBits",
    "MultiHeadAttention", "QuickGelu", "RotaryEmbedding", "SimplifiedLayerNormalization", "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization",
))
# fmt: on
"""The same of ONNX Runtime's ops."""

# fmt: off
SUMS = frozenset((
    "Conv", "ConvTranspose", "Einsum", "FusedMatMul", "Gemm", "MatMul", "MatMulNBits", "ReduceMean", "ReduceSum",
    "ReduceSumSquare", "SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization",
))
# fmt: on
STEP_SHARE = 2.0**-14
"""The relative change of an operand that a node rounds to 8 bits."""
SUM_ULPS = 4
"""The error of a sum in another order, in units in the last place: more than one for many terms."""

_EPSILON: dict[int, float] = {onnx.TensorProto.FLOAT: 2.0**-23, onnx.TensorProto.DOUBLE: 2.0**-52}


_IN_ONNX_DOMAIN = frozenset(("SimplifiedLayerNormalization",))
"""Ops of ONNX Runtime in ONNX's domain."""

RANDOM_OPSET = 21
"""The newest opset whose random ops ONNX Runtime has."""


def at_opset(proto: onnx.ModelProto, newest: int) -> onnx.ModelProto:
    """Returns a copy that imports ONNX's ops at `newest` if it imports a newer version. The nodes are not converted, so
    the copy is a valid model only if their definitions are the same."""
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    for entry in made.opset_import:
        if entry.domain in ("", "ai.onnx"):
            entry.version = min(entry.version, newest)
    return made


def with_nudged_values(proto: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """Returns a copy in which every rounded result is changed at random by up to a unit in the last place, and a sum by
    up to `SUM_ULPS`.

    Whole numbers stay: they are rarely rounded, and often indices or sizes later. This is Monte Carlo arithmetic
    (Parker, 1997) at the level of nodes.
    """
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    types = _element_types(proto)
    nodes = list(made.graph.node)
    del made.graph.node[:]
    for node in nodes:
        if _rounds_operand(node):
            made.graph.node.extend(_nudge_operand(node, types, seed + len(made.graph.node)))
        made.graph.node.append(node)
        if node.op_type not in (ROUNDS if node.domain in ("", "ai.onnx") else ROUNDS_IN_ORT) | _IN_ONNX_DOMAIN:
            continue
        added = made.graph.node[-1]
        for i, name in enumerate(node.output):
            epsilon = _EPSILON.get(types.get(name, 0))
            if name and epsilon is not None:
                added.output[i] = f"{name}.exact"
                size = epsilon * (SUM_ULPS if node.op_type in SUMS else 1)
                made.graph.node.extend(_nudge(name, types[name], size, seed + len(made.graph.node)))
    return made


def _rounds_operand(node: onnx.NodeProto) -> bool:
    """True for a product that rounds its first operand to 8 bits, inside of the node."""
    level = next((a.i for a in node.attribute if a.name == "accuracy_level"), 0)
    return node.op_type == "MatMulNBits" and level == 4


def _nudge_operand(node: onnx.NodeProto, types: Mapping[str, int], seed: int) -> list[onnx.NodeProto]:
    """Returns nodes that nudge the operand of such a product, which reads their result: by less than a hundredth of a
    step of 8 bits, but enough that some elements are rounded to the other side."""
    name, near = node.input[0], f"{node.output[0]}.near"
    code = types.get(name, onnx.TensorProto.FLOAT)
    if code not in _EPSILON:
        return []
    node.input[0] = near
    copy = onnx.helper.make_node("Identity", [name], [f"{near}.exact"])
    return [copy, *_nudge(near, code, STEP_SHARE, seed)]


def _nudge(name: str, code: int, epsilon: float, seed: int) -> list[onnx.NodeProto]:
    """Returns nodes from `name.exact` to `name`."""
    make = onnx.helper.make_node

    def constant(part: str, value: float) -> onnx.NodeProto:
        return make("Constant", [], [f"{name}.{part}"], value=onnx.helper.make_tensor("", code, [], [value]))

    exact = f"{name}.exact"
    return [
        constant("eps", epsilon),
        constant("one", 1.0),
        make("RandomUniformLike", [exact], [f"{name}.u"], low=-1.0, high=1.0, seed=float(seed)),
        make("Mul", [f"{name}.u", f"{name}.eps"], [f"{name}.small"]),
        make("Add", [f"{name}.small", f"{name}.one"], [f"{name}.factor"]),
        make("Mul", [exact, f"{name}.factor"], [f"{name}.moved"]),
        make("Floor", [exact], [f"{name}.whole"]),
        make("Equal", [exact, f"{name}.whole"], [f"{name}.is_whole"]),
        make("Where", [f"{name}.is_whole", exact, f"{name}.moved"], [name]),
    ]


def _element_types(proto: onnx.ModelProto) -> dict[str, int]:
    """Returns the element types of the main graph's values, as far as ONNX's inference finds them."""
    try:
        graph = onnx.shape_inference.infer_shapes(proto).graph
    except Exception:
        # Too big for inference, or with unknown ops: use the types in the file.
        graph = proto.graph
    return {v.name: v.type.tensor_type.elem_type for v in (*graph.value_info, *graph.output)}


# -- the graph --------------------------------------------------------------------------------------------------------


def producers(proto: onnx.ModelProto) -> dict[str, onnx.NodeProto]:
    """Returns the producer of each value of the main graph."""
    return {name: node for node in proto.graph.node for name in node.output if name}


def one_node(proto: onnx.ModelProto, node: onnx.NodeProto, inputs: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    """Returns a model of one node of `proto`; its inputs are of the types of the arrays."""
    graph = onnx.helper.make_graph(
        [node],
        "node",
        [
            onnx.helper.make_tensor_value_info(
                name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), [None] * array.ndim
            )
            for name, array in inputs.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in node.output if name],
    )
    made = onnx.helper.make_model(graph, opset_imports=list(proto.opset_import), ir_version=proto.ir_version)
    return made.SerializeToString()
