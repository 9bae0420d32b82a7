"""Random chains before a selection of rows: operands that broadcast in every way, and nodes that mix rows."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from igniter.frontend import export_model
from tests.transforms.onnx.onnx_cases import run, run_passes

PASSES = ("infer-shapes", "hoist-selections", "infer-shapes", "eliminate-dead-nodes")
UNARY = ("Relu", "Sigmoid", "Neg", "Abs", "Tanh", "Identity", "Softplus", "Gelu")
BINARY = ("Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu")
WIDTH = 8


class Chain:
    """A model of one chain of nodes, with its inputs, made by a seed."""

    def __init__(self, seed: int):
        self.choose, self.numbers = random.Random(seed), np.random.default_rng(seed)
        rank = self.choose.choice((2, 3, 4))
        self.sizes = [*(self.choose.choice((1, 2, 4, 5)) for _ in range(rank - 1)), WIDTH]
        known = self.choose.random() < 0.4
        self.dims: list[Any] = self.sizes if known else [*"bst"[: rank - 1], WIDTH]
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, np.ndarray[Any, Any]] = {}
        self.infos: list[onnx.ValueInfoProto] = []
        self.given: dict[str, np.ndarray[Any, Any]] = {}
        self.values = [self.input(self.sizes, self.dims)]
        for _ in range(self.choose.randint(2, 7)):
            self.values.append(self.node())
        self.selection()

    def floats(self, shape: list[int]) -> np.ndarray[Any, Any]:
        return self.numbers.standard_normal(shape).astype(np.float32)

    def input(self, shape: list[int], dims: list[Any]) -> str:
        name = f"x{len(self.infos)}"
        self.infos.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dims))
        self.given[name] = self.floats(shape)
        return name

    def weight(self, array: np.ndarray[Any, Any]) -> str:
        self.weights[name := f"w{len(self.weights)}"] = array
        return name

    def add(self, op: str, *operands: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, operands, [name], **attributes))
        return name

    def operand(self) -> str:
        """An operand of the same or a lower rank, with some dims of one."""
        first = self.choose.randint(0, len(self.sizes))
        kept = [self.choose.random() < 0.6 for _ in self.sizes[first:]]
        shape = [size if keep else 1 for size, keep in zip(self.sizes[first:], kept, strict=True)]
        if self.choose.random() < 0.5:
            return self.weight(self.floats(shape))
        return self.input(shape, [dim if keep else 1 for dim, keep in zip(self.dims[first:], kept, strict=True)])

    def node(self) -> str:
        last, axis = self.values[-1], self.choose.randint(-len(self.sizes), len(self.sizes) - 1)
        match self.choose.choice(("product", "norm", "unary", "binary", "binary", "earlier", "softmax", "sums")):
            case "product":
                return self.add("MatMul", last, self.weight(self.floats([WIDTH, WIDTH]) / 3))
            case "norm":
                return self.add("LayerNormalization", last, self.weight(self.floats([WIDTH])), axis=-1)
            case "unary":
                return self.add(self.choose.choice(UNARY), last)
            case "binary":
                return self.add(self.choose.choice(BINARY), last, self.operand())
            case "earlier":
                return self.add("Add", last, self.choose.choice(self.values))
            case "softmax":
                return self.add("Softmax", last, axis=axis)
            case _:
                return self.add("CumSum", last, self.weight(np.array(axis)))

    def selection(self) -> None:
        axis = self.choose.randint(-len(self.sizes), len(self.sizes) - 1)
        size = self.sizes[axis]
        if self.choose.random() < 0.5:
            rows = [self.choose.randint(-size, size - 1) for _ in range(self.choose.choice((1, 1, 2)))]
            index = np.array(rows if self.choose.random() < 0.7 else rows[0])
            self.values.append(self.add("Gather", self.values[-1], self.weight(index), axis=axis))
            return
        bounds = (self.choose.randint(-size - 1, size), self.choose.choice((-(2**62), -2, 1, size, 2**62)))
        given = [np.array([n]) for n in (*bounds, axis, self.choose.choice((1, 1, 2, -1, -2)))]
        self.values.append(self.add("Slice", self.values[-1], *(self.weight(each) for each in given)))

    def model(self) -> onnx.ModelProto:
        results = {self.values[-1]: None, **({self.values[2]: None} if self.choose.random() < 0.2 else {})}
        outputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in results]
        weights = [numpy_helper.from_array(array, name) for name, array in self.weights.items()]
        graph = helper.make_graph(self.nodes, "chain", self.infos, outputs, weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("part", range(12))
def test_results_stay(part: int) -> None:
    moved = 0
    for seed in range(100 * part, 100 * part + 100):
        chain = Chain(seed)
        model = chain.model()
        exported = export_model(run_passes(model, PASSES))
        for wanted, found in zip(run(model, chain.given), run(exported, chain.given), strict=True):
            assert wanted.shape == found.shape, seed
            np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-4, err_msg=f"seed {seed}")
        order = [node.op_type for node in exported.graph.node if node.op_type != "Constant"]
        moved += order[-1] not in ("Gather", "Slice")
    assert moved > 10
