"""A model under construction: values with symbolic dims, nodes, weights."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from igniter.dialects.sym.expr import Expr

Dims = tuple[Expr, ...]
Array = np.ndarray[Any, Any]

TYPES = {
    "f32": TensorProto.FLOAT,
    "f64": TensorProto.DOUBLE,
    "i32": TensorProto.INT32,
    "i64": TensorProto.INT64,
    "u8": TensorProto.UINT8,
    "i8": TensorProto.INT8,
    "b": TensorProto.BOOL,
}
DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "f64": np.float64,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "i8": np.int8,
    "b": np.bool_,
}
FLOATS = ("f32", "f64")
SYMBOLS = ("n", "m")
TYPICAL = {"n": 3, "m": 5}
"""The sizes by which a generator keeps tensors small."""


@dataclass(frozen=True)
class Value:
    """A tensor of the graph."""

    name: str
    type: str
    dims: Dims
    exact: bool
    """True if any correct implementation gives the same bits: what rounding, comparisons and casts are applied to."""
    bound: float = 8.0
    """About the largest magnitude; keeps exponentials and products from overflowing in one implementation only."""

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def size(self) -> int:
        """The number of elements at typical sizes."""
        count = 1
        for d in self.dims:
            count *= d.evaluate(TYPICAL)
        return count

    def static(self, axis: int) -> int | None:
        return self.dims[axis].constant


@dataclass
class GraphBuilder:
    """Collects the parts of a model."""

    rng: random.Random
    opset: int
    values: list[Value] = field(default_factory=list[Value])
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    inputs: list[Value] = field(default_factory=list[Value])
    weights: dict[str, Array] = field(default_factory=dict[str, Array])
    special: bool = False
    """True if inputs hold NaN, infinities and signed zeros."""

    def __post_init__(self) -> None:
        self._numbers = 0
        self.data = np.random.default_rng(self.rng.getrandbits(64))

    def fresh(self, prefix: str) -> str:
        self._numbers += 1
        return f"{prefix}{self._numbers}"

    def input(self, type_: str, dims: Sequence[Expr], exact: bool) -> Value:
        """A graph input; `exact` ones are given small integers."""
        value = Value(self.fresh("x"), type_, tuple(dims), exact or type_ not in FLOATS, 8.0)
        self.inputs.append(value)
        self.values.append(value)
        return value

    def weight(self, array: Array, type_: str) -> Value:
        """An initializer."""
        name = self.fresh("w")
        self.weights[name] = np.asarray(array, DTYPES[type_])
        exact = type_ not in FLOATS or bool(np.all(array == np.round(array)))
        bound = float(np.max(np.abs(array.astype(np.float64)), initial=0.0))
        return Value(name, type_, tuple(Expr.of(d) for d in array.shape), exact, bound)

    def ints(self, values: Sequence[int]) -> str:
        """The name of an i64 initializer: axes, shapes, starts."""
        return self.weight(np.array(values, np.int64).reshape(len(values)), "i64").name

    def scalar(self, value: float, type_: str) -> str:
        return self.weight(np.array(value), type_).name

    def node(
        self,
        op: str,
        inputs: Sequence[str],
        results: Sequence[tuple[str, Sequence[Expr], bool, float]],
        domain: str = "",
        **attrs: Any,
    ) -> list[Value]:
        """Appends a node; each result is given by type, dims, exactness and bound."""
        made = [Value(self.fresh("v"), t, tuple(d), e, b) for t, d, e, b in results]
        name = f"{op}_{self._numbers}"
        self.nodes.append(helper.make_node(op, list(inputs), [v.name for v in made], name=name, domain=domain, **attrs))
        self.values.extend(made)
        return made


@dataclass(frozen=True)
class Case:
    """A model and the inputs to run it on."""

    seed: int
    model: onnx.ModelProto
    feeds: tuple[dict[str, Array], ...]
    shapes: tuple[dict[str, int], ...]
    fusion: str
    """The passes that form regions."""
    threads: int = 1
    gpu: bool = False
    """True if it is compiled for a GPU, and run by the stand-in for its driver."""


def make_model(b: GraphBuilder, outputs: Sequence[Value]) -> onnx.ModelProto:
    """The finished model, with what the given outputs do not need left out."""
    needed = {v.name for v in outputs}
    kept: list[onnx.NodeProto] = []
    for node in reversed(b.nodes):
        if needed & set(node.output):
            kept.append(node)
            needed.update(node.input)
    graph = helper.make_graph(
        kept[::-1],
        "fuzz",
        [_info(v, v.dims) for v in b.inputs if v.name in needed],
        # Output dims are left to inference: what the model says of them must not help.
        [helper.make_tensor_value_info(v.name, TYPES[v.type], [None] * v.rank) for v in outputs],
        [numpy_helper.from_array(a, n) for n, a in b.weights.items() if n in needed],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", b.opset)], ir_version=10)


def _info(value: Value, dims: Dims) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(
        value.name, TYPES[value.type], [d.constant if d.constant is not None else str(d) for d in dims]
    )


def make_feed(b: GraphBuilder, model: onnx.ModelProto, sizes: Mapping[str, int]) -> dict[str, Array]:
    """Random values for the inputs of a model."""
    used = {i.name for i in model.graph.input}
    return {v.name: random_array(b, v, sizes) for v in b.inputs if v.name in used}


def random_array(b: GraphBuilder, value: Value, sizes: Mapping[str, int]) -> Array:
    """The values of an input at given sizes."""
    shape = [d.evaluate(sizes) for d in value.dims]
    if value.type == "b":
        return np.asarray(b.data.random(shape) < 0.5)
    low = 0 if value.type == "u8" else -8
    if value.type not in FLOATS or value.exact:
        array = np.asarray(b.data.integers(low, 9, shape), DTYPES[value.type])
    else:
        array = np.asarray(np.clip(b.data.standard_normal(shape) * 2, -8, 8), DTYPES[value.type])
    if b.special and value.type in FLOATS and array.size:
        flat = array.reshape(-1)
        places = b.data.random(flat.shape) < 0.1
        flat[places] = b.data.choice([np.nan, np.inf, -np.inf, -0.0, 0.0], int(places.sum()))
    return array
