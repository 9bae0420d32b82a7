"""Small changes of a model, of the kinds that a broken compiler makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

REPLACED = {
    "Add": "Sub", "Sub": "Add", "Mul": "Add", "Max": "Min", "Min": "Max", "ReduceMax": "ReduceMin", "Tanh": "Sigmoid",
    "Sigmoid": "Tanh", "Relu": "Abs", "Erf": "Tanh", "Floor": "Ceil", "ArgMax": "ArgMin", "Less": "Greater",
    "Greater": "Less", "Exp": "Abs", "MaxPool": "AveragePool", "HardSwish": "Relu", "Sqrt": "Abs",
}  # fmt: skip
SWAPPED = frozenset(("Sub", "Div", "MatMul", "Pow", "Less", "Greater"))


@dataclass(frozen=True)
class Mutant:
    """A changed model, the kind of the change, and where it is. `bit` is that of a flipped weight, 31 the sign."""

    kind: str
    where: str
    proto: onnx.ModelProto
    bit: int | None = None


def copied(proto: onnx.ModelProto) -> onnx.ModelProto:
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    return made


def mutants(proto: onnx.ModelProto, rng: np.random.Generator, bits: int) -> Iterator[Mutant]:
    """Of every node what can be changed in it, and `bits` flipped bits of weights."""
    for i, node in enumerate(proto.graph.node):
        yield from _of_node(proto, i, node)
    yield from _slices(proto)
    for _ in range(bits):
        flipped = flip_bit(proto, rng)
        if flipped is not None:
            yield flipped


def _of_node(proto: onnx.ModelProto, i: int, node: onnx.NodeProto) -> Iterator[Mutant]:
    where = f"{node.op_type} {node.name or node.output[0]}"
    if node.op_type in SWAPPED and len(node.input) == 2:
        made = copied(proto)
        made.graph.node[i].input[:] = node.input[::-1]
        yield Mutant("swapped operands", where, made)
    if node.op_type in REPLACED:
        made = copied(proto)
        changed = made.graph.node[i]
        changed.op_type = REPLACED[node.op_type]
        yield Mutant("another op", where, made)
    if node.op_type == "Add":
        made = copied(proto)
        changed = made.graph.node[i]
        changed.op_type = "Identity"
        del changed.input[1:]
        yield Mutant("dropped add", where, made)
    for k, attribute in enumerate(node.attribute):
        for value in _others(attribute):
            made = copied(proto)
            made.graph.node[i].attribute[k].CopyFrom(value)
            yield Mutant("changed attribute", f"{where}.{attribute.name}", made)


def _others(attribute: onnx.AttributeProto) -> Iterator[onnx.AttributeProto]:
    name, make = attribute.name, onnx.helper.make_attribute
    if attribute.type == onnx.AttributeProto.INT and name in ("axis", "keepdims", "transA", "transB", "group"):
        yield make(name, attribute.i + 1 if name == "axis" else 1 - attribute.i)
    elif attribute.type == onnx.AttributeProto.FLOAT and name in ("alpha", "beta", "epsilon", "gamma"):
        yield make(name, attribute.f * (100.0 if name == "epsilon" else 1.5))
    elif attribute.type == onnx.AttributeProto.INTS and name in ("perm", "pads", "strides", "axes", "dilations"):
        values = list(attribute.ints)
        if name == "perm" and len(values) > 1:
            yield make(name, [*values[:-2], values[-1], values[-2]])
        elif name == "pads" and sum(values):
            # The same amount on the other side.
            half = len(values) // 2
            yield make(name, [values[0] - 1, *values[1:half], values[half] + 1, *values[half + 1 :]])
        elif name in ("strides", "dilations"):
            yield make(name, [v + 1 for v in values])
        elif name == "axes":
            yield make(name, [v - 1 for v in values])


def _slices(proto: onnx.ModelProto) -> Iterator[Mutant]:
    """Starts and ends of slices, amounts of padding and picked indices, one more or less."""
    arrays = {t.name: i for i, t in enumerate(proto.graph.initializer)}
    for node in proto.graph.node:
        if node.op_type not in ("Slice", "Pad", "Gather"):
            continue
        for name in node.input[1:3]:
            if name not in arrays or proto.graph.initializer[arrays[name]].data_type != onnx.TensorProto.INT64:
                continue
            array = numpy_helper.to_array(proto.graph.initializer[arrays[name]])
            for step in (1, -1):
                made = copied(proto)
                moved = array.copy()
                moved.reshape(-1)[: 1 if node.op_type != "Slice" else None] += step
                if node.op_type == "Pad":
                    moved = np.roll(array, 1)
                made.graph.initializer[arrays[name]].CopyFrom(numpy_helper.from_array(moved, name))
                yield Mutant("off by one", f"{node.op_type} {node.output[0]}: {name}", made)


def flip_bit(proto: onnx.ModelProto, rng: np.random.Generator, bit: int | None = None) -> Mutant | None:
    """One bit of one weight; `None` for a model without float weights."""
    weights = [i for i, t in enumerate(proto.graph.initializer) if t.data_type == onnx.TensorProto.FLOAT]
    weights = [i for i in weights if np.prod(proto.graph.initializer[i].dims) > 1]
    if not weights:
        return None
    made = copied(proto)
    tensor = made.graph.initializer[int(rng.choice(weights))]
    array = numpy_helper.to_array(tensor).copy()
    at = int(rng.integers(array.size))
    chosen = int(rng.integers(8, 32)) if bit is None else bit
    array.reshape(-1).view(np.uint32)[at] ^= np.uint32(1 << chosen)
    name = tensor.name
    tensor.CopyFrom(numpy_helper.from_array(array, name))
    return Mutant("flipped bit", f"{name}[{at}]", made, chosen)
