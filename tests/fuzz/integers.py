"""Random graphs of integers, run on values at and near the limits of their types, against exact integers.

    python -m tests.fuzz.integers --seed 0 --count 100

The reference is ONNX Runtime with exact nodes in the place of those that it computes in f64. Feeds have a dim of
several sizes, 0 and 1 included.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.frontend.exact_integers import exact_bytes

Array = np.ndarray[Any, Any]
CODES = {np.dtype(np.int32): TensorProto.INT32, np.dtype(np.int64): TensorProto.INT64}
COLUMNS = 5
SIZES = (3, 1, 0, 37)
REDUCTIONS = ("ReduceL1", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare")


class _Graph:
    """A graph of tensors [n, 5] that grows node by node; reductions and products are outputs only."""

    def __init__(self, rng: np.random.Generator):
        self.rng = rng
        self.dtype = np.dtype(rng.choice(["int32", "int64"]))
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.values = ["x", "y"]
        self.ends: list[str] = []

    def weight(self, values: Any, dtype: Any = None) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values, dtype or self.dtype), name))
        return name

    def add(self, op: str, inputs: list[str], end: bool = False, **attrs: Any) -> None:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"{op}_{name}", **attrs))
        (self.ends if end else self.values).append(name)

    def pick(self) -> str:
        return str(self.rng.choice(self.values))

    def grow(self) -> None:
        """One node more."""
        rng, kind = self.rng, int(self.rng.integers(0, 9))
        if kind <= 1:
            self.add(str(rng.choice(["Add", "Sub", "Mul"])), [self.pick(), self.pick()])
        elif kind == 2:
            self.add(str(rng.choice(["Neg", "Abs", "Sign"])), [self.pick()])
        elif kind == 3:
            exponent = self.weight(rng.integers(0, 70, COLUMNS) if rng.integers(0, 2) else int(rng.integers(0, 9)))
            self.add("Pow", [self.pick(), exponent])
        elif kind == 4:
            axis = self.weight(int(rng.integers(-2, 2)), np.int64)
            self.add("CumSum", [self.pick(), axis], reverse=int(rng.integers(0, 2)))
        elif kind == 5:
            self.add("Mod", [self.pick(), self.weight(int(rng.integers(2, 2000)))])
        elif kind == 6:
            limits = np.iinfo(self.dtype)
            factors = rng.integers(limits.min, limits.max, (COLUMNS, COLUMNS), dtype=self.dtype, endpoint=True)
            self.add("MatMul", [self.pick(), self.weight(factors)])
        elif kind == 7:
            self.add("Einsum", [self.pick(), self.pick()], end=True, equation=str(rng.choice(["ij,ij->i", "ij,kj->j"])))
        else:
            axes = self.weight([[0], [1], [0, 1]][int(rng.integers(0, 3))], np.int64)
            op = str(rng.choice(REDUCTIONS))
            self.add(op, [self.pick(), axes], end=True, keepdims=int(rng.integers(0, 2)))

    def model(self) -> onnx.ModelProto:
        code = CODES[self.dtype]
        inputs = [helper.make_tensor_value_info(n, code, ["n", COLUMNS]) for n in ("x", "y")]
        names = [*self.ends, *(v for v in self.values[2:] if not any(v in node.input for node in self.nodes))]
        outputs = [helper.make_tensor_value_info(n, code, None) for n in names]
        graph = helper.make_graph(self.nodes, "g", inputs, outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def feed_of(rng: np.random.Generator, dtype: Any, n: int) -> dict[str, Array]:
    """Limits, numbers near them, powers of two, small numbers, and numbers of the whole range."""
    info = np.iinfo(dtype)
    few = [info.min, info.min + 1, info.max, info.max - 1, 1 << (info.bits // 2), (1 << 24) + 1, 0, 1, -1, 7]

    def values() -> Array:
        picked = rng.choice(np.array(few, dtype), (n, COLUMNS))
        anything = rng.integers(info.min, info.max, (n, COLUMNS), dtype=dtype, endpoint=True)
        return np.where(rng.integers(0, 3, (n, COLUMNS)) > 0, picked, anything)

    return {"x": values(), "y": values()}


def run_seed(seed: int) -> str:
    """The first difference of a graph, or nothing."""
    rng = np.random.default_rng(seed)
    graph = _Graph(rng)
    for _ in range(int(rng.integers(2, 9))):
        graph.grow()
    model = graph.model()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    exact: Any = onnxruntime.InferenceSession(exact_bytes(model), options)
    session: Any = igniter.compile(model, verify=False, cache=False).session(log_severity_level=4)
    for n in SIZES:
        feed = feed_of(rng, graph.dtype, n)
        try:
            expected = exact.run(None, feed)
        except Exception:  # an extreme of nothing, say
            continue
        for value, e, a in zip(exact.get_outputs(), expected, session.run(None, feed), strict=True):
            if e.shape != a.shape or e.dtype != a.dtype or not np.array_equal(e, a):
                return f"seed {seed}, n = {n}: output {value.name} of {[f'{x.op_type}' for x in model.graph.node]}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    asked = parser.parse_args()
    found = [text for seed in range(asked.seed, asked.seed + asked.count) if (text := run_seed(seed))]
    print("\n".join(found) or f"{asked.count} graphs of integers: all exact")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
