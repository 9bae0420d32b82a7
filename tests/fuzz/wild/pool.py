"""Values with what they hold: a node is tried on them in ONNX Runtime, and stays when it runs."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

from igniter.frontend.exact_integers import exact_bytes
from igniter.frontend.ort_values import run

# ONNX Runtime otherwise refuses the newest opset as unreleased.
os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"

Array = np.ndarray[Any, Any]
LARGEST = 20_000
"""No tensor gets more elements than this at the sizes that the graph was made at."""
HUGE = 1e6
"""Floats beyond this are not computed with: what overflows in one order of operations need not in another."""

BF16: Any = ml_dtypes.bfloat16
FLOATS = (np.float32, np.float64, np.float16, BF16)
INTEGERS = (np.int32, np.int64, np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64)
IR_VERSION = 10
DOMAINS = {"com.microsoft": 1, "ai.onnx.ml": 5}
"""The versions of the domains besides ONNX's own."""


def is_float(dtype: Any) -> bool:
    """True if elements are floats, numpy's own or those of `ml_dtypes`."""
    return np.dtype(dtype).kind == "f" or "float" in np.dtype(dtype).name


def limit(dtype: Any) -> float:
    """The largest magnitude of floats of a type that is computed with."""
    return {"float16": 500.0, "bfloat16": 1e4}.get(np.dtype(dtype).name, HUGE)


@dataclass
class Pool:
    """The graph so far. `values` are arrays by name."""

    rng: random.Random
    opset: int
    values: dict[str, Array] = field(default_factory=dict[str, Array])
    inputs: list[str] = field(default_factory=list[str])
    weights: dict[str, Array] = field(default_factory=dict[str, Array])
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    special: bool = False

    def __post_init__(self) -> None:
        self.data = np.random.default_rng(self.rng.getrandbits(64))
        self._numbers = 0

    def fresh(self, prefix: str) -> str:
        self._numbers += 1
        return f"{prefix}{self._numbers}"

    def array(self, dtype: Any, shape: Sequence[int]) -> Array:
        """Random elements; `special` pools have NaN, infinities and signed zeros among their floats."""
        kind = np.dtype(dtype).kind
        if kind == "b":
            return np.asarray(self.data.random(shape) < 0.5)
        if kind in "iu":
            return np.asarray(self.data.integers(0 if kind == "u" else -6, 7, shape), dtype)
        if not is_float(dtype):
            # Integers of four bits and fewer.
            return np.asarray(self.data.integers(0 if "uint" in np.dtype(dtype).name else -2, 2, shape)).astype(dtype)
        made = np.asarray(np.clip(self.data.standard_normal(shape) * 2, -8, 8)).astype(dtype)
        if self.special and made.size:
            made.reshape(-1)[self.data.random(made.size) < 0.08] = self.data.choice([np.nan, np.inf, -np.inf, -0.0])
        return made

    def input(self, dtype: Any, shape: Sequence[int]) -> str:
        name = self.fresh("x")
        self.values[name] = self.array(dtype, shape)
        self.inputs.append(name)
        return name

    def weight(self, value: Any, dtype: Any = None) -> str:
        name = self.fresh("w")
        self.weights[name] = self.values[name] = np.asarray(value, dtype)
        return name

    def ints(self, *values: int) -> str:
        return self.weight(np.array(values, np.int64))

    def pick(self, dtypes: Sequence[Any] | None = None, ranks: Sequence[int] | None = None) -> str | None:
        """A value of the graph that fits; recent ones more often."""
        found = [
            n
            for n, v in self.values.items()
            if n not in self.weights and (dtypes is None or v.dtype in dtypes) and (ranks is None or v.ndim in ranks)
        ]
        if not found:
            return None
        return self.rng.choice(found[-5:] if self.rng.random() < 0.6 else found)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.values[name].shape

    def axis(self, name: str) -> int:
        """An axis, counted from the front or from the back."""
        rank = self.values[name].ndim
        return self.rng.randrange(-rank, rank) if rank else 0

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def try_node(
        self, op: str, inputs: Sequence[str], outputs: int = 1, *, captures: Sequence[str] = (), **attrs: Any
    ) -> bool:
        """Appends the node if ONNX Runtime runs it on the values at hand. An op of another domain has it before its
        name; `captures` are the values that graphs among the attributes take from outside."""
        names = [self.fresh("v") for _ in range(outputs)]
        domain, _, short = op.rpartition(".")
        label = f"{short}_{self._numbers}"
        node = helper.make_node(short, list(inputs), names, name=label, domain=domain, **attrs)
        return self.try_made(node, captures)

    def try_made(self, node: onnx.NodeProto, captures: Sequence[str] = ()) -> bool:
        """Appends the node if ONNX Runtime runs it on the values at hand."""
        arrays = {n: self.values[n] for n in (*node.input, *captures) if n}
        fixed = {n: a for n, a in arrays.items() if n in self.weights}
        try:
            found = run_alone(node, arrays, fixed, self.opset)
        except Exception:  # ONNX Runtime has no such node: the generator tries another
            return False
        if any(not _usable(a, arrays.values()) for a in found):
            return False
        self.nodes.append(node)
        self.values.update(zip([n for n in node.output if n], found, strict=True))
        return True

    def last(self, back: int = 1) -> str:
        """The value that was made last, or `back` values before."""
        return list(self.values)[-back]


def _usable(made: Any, operands: Any) -> bool:
    if not isinstance(made, np.ndarray) or made.dtype.kind not in "fiubV" or made.size > LARGEST or made.ndim > 6:
        return False
    if not is_float(made.dtype):
        return True
    wide = made.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    if finite.size and np.abs(finite).max() > limit(made.dtype):
        return False
    given = [a.astype(np.float64) for a in operands if is_float(a.dtype)]
    return bool(np.isfinite(wide).all()) or not all(np.isfinite(a).all() for a in given)


def run_alone(node: onnx.NodeProto, arrays: dict[str, Array], fixed: dict[str, Array], opset: int) -> list[Any]:
    """The results of ONNX Runtime for one node; raises the errors of ONNX Runtime."""
    graph = helper.make_graph(
        [node],
        "alone",
        [value_info(n, a.dtype, a.shape) for n, a in arrays.items() if n not in fixed],
        [onnx.ValueInfoProto(name=n) for n in node.output if n],
        [numpy_helper.from_array(a, n) for n, a in fixed.items()],
    )
    session = make_session(make_model(graph, opset))
    return run(session, {n: a for n, a in arrays.items() if n not in fixed})


def reads(node: onnx.NodeProto) -> set[str]:
    """The values that a node and the graphs in it name."""
    inner = [n for attr in node.attribute if attr.HasField("g") for n in attr.g.node]
    return {*node.input}.union(*map(reads, inner))


def make_model(graph: onnx.GraphProto, opset: int) -> onnx.ModelProto:
    """The model of a graph, with the domains that its nodes are of."""
    domains = {node.domain for node in graph.node if node.domain}
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, DOMAINS[d]) for d in sorted(domains))]
    return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)


def make_session(model: onnx.ModelProto) -> ort.InferenceSession:
    """ONNX Runtime without its own rewriting of the graph, on one thread, silent, and with exact integers."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(exact_bytes(model), options, providers=["CPUExecutionProvider"])


def value_info(name: str, dtype: Any, shape: Sequence[Any] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
