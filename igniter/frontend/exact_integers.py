"""A model with exact sums, products and powers of integers in ONNX Runtime, in place of its f64 ones.

It is the reference of compiled models, and folds constants: integers are exact and wrap (docs/explanation/numerics.md).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
import onnx.inliner

from igniter.frontend.element_codes import Codes, add_codes, add_results
from igniter.frontend.exact_nodes import (
    I32,
    I64,
    PREFIX,
    U32,
    U64,
    Builder,
    add_einsum,
    add_mean,
    add_power,
    add_product,
    add_sum,
)

SUMS = frozenset(("ReduceL1", "ReduceSum", "ReduceSumSquare"))
INEXACT = SUMS | {"Einsum", "Pow", "ReduceMean", "ReduceProd"}
"""The ops of ai.onnx computed in f64 for integers by ONNX Runtime."""
EINSUM_OPERANDS = 2
"""The limit of operands: with more, the products of digits are too large."""


@dataclass(frozen=True)
class ExactModel:
    """`proto` with exact nodes in place of `replaced`; the nodes `left` have no exact form here."""

    proto: onnx.ModelProto
    replaced: tuple[str, ...]
    left: tuple[str, ...]


def exact_bytes(proto: onnx.ModelProto) -> bytes:
    """Returns the bytes of a model with exact integers."""
    made = with_exact_integers(proto)
    return (proto if made is None else made.proto).SerializeToString()


def with_exact_integers(proto: onnx.ModelProto, *, of_shapes: bool = True, unsigned: bool = False) -> ExactModel | None:
    """Returns a copy with exact integers; `None` if ONNX Runtime computes all of them exactly.

    Without `of_shapes`, sums and products of a tensor's dims stay: f64 holds them. With `unsigned`, u32 and u64 are
    replaced too, for ops whose mean wraps in ONNX's reference evaluator, or whose sum of squares has another type
    there; ONNX Runtime has no kernel for them.
    """
    within = any(_may_be_inexact(node) for function in proto.functions for node in _nodes(function.node))
    if not within and not any(_may_be_inexact(node) for node in _nodes(proto.graph.node)):
        return None
    made = onnx.ModelProto()
    made.CopyFrom(onnx.inliner.inline_local_functions(proto) if within else proto)
    rewriting = _Rewriting(made, of_shapes, unsigned)
    rewriting.graph(made.graph, {})
    if not rewriting.replaced and not rewriting.left:
        return None
    return ExactModel(made, tuple(rewriting.replaced), tuple(rewriting.left))


def _may_be_inexact(node: onnx.NodeProto) -> bool:
    return node.op_type in INEXACT and node.domain in ("", "ai.onnx") and not node.name.startswith(PREFIX)


def _nodes(nodes: Any) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _nodes(graph.node)


class _Rewriting:
    """A rewrite that replaces nodes in a model, including its subgraphs."""

    def __init__(self, proto: onnx.ModelProto, of_shapes: bool, unsigned: bool):
        self.of_shapes = of_shapes
        self.unsigned = unsigned
        self.opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in proto.opset_import}
        self.replaced: list[str] = []
        self.left: list[str] = []
        self._taken = {name for node in _nodes(proto.graph.node) for name in (*node.input, *node.output)}
        self._taken.update(v.name for v in (*proto.graph.input, *proto.graph.initializer))
        self._count = 0

    def fresh(self, part: str) -> str:
        """Returns an unused name."""
        while True:
            name = f"{PREFIX}.{part}.{self._count}"
            self._count += 1
            if name not in self._taken:
                return name

    def graph(self, graph: onnx.GraphProto, outer: Mapping[str, int]) -> None:
        """Replaces the nodes of a graph; `outer` are the types of the graph around it."""
        codes: Codes = dict(outer)
        add_codes(graph, codes)
        constants = {t.name: t for t in graph.initializer}
        sizes: set[str] = set()
        nodes: list[onnx.NodeProto] = []
        for node in graph.node:
            for attribute in node.attribute:
                for inner in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                    self.graph(inner, codes)
            add_results(node, self.opsets, codes)
            if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
                constants[node.output[0]] = node.attribute[0].t
            if _is_of_shapes(node, sizes):
                sizes.update(node.output)
            small = not self.of_shapes and bool(node.input) and node.input[0] in sizes
            nodes += [node] if small else self._exact(node, codes, constants)
        del graph.node[:]
        graph.node.extend(nodes)

    def _exact(
        self, node: onnx.NodeProto, codes: Mapping[str, int], constants: Mapping[str, onnx.TensorProto]
    ) -> Sequence[onnx.NodeProto]:
        code = codes.get(node.input[0], 0) if node.input else 0
        unsigned = self.unsigned and code in (U32, U64) and node.op_type in ("ReduceMean", "ReduceSumSquare")
        if not _may_be_inexact(node) or not (code in (I32, I64) or unsigned):
            return [node]
        b = Builder(self.fresh, self.opsets.get("", 1))
        add = _rule(node, code, codes, constants)
        if add is None:
            return [node]
        label = f"{node.op_type} '{node.name}'" if node.name else f"{node.op_type} of '{node.output[0]}'"
        try:
            add(b)
        except _Unknown:
            self.left.append(label)
            return [node]
        self.replaced.append(label)
        return b.nodes


_MOVES = frozenset(("Cast", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Unsqueeze"))


def _is_of_shapes(node: onnx.NodeProto, sizes: Collection[str]) -> bool:
    """True if the results are dims of tensors; `sizes` are the earlier values with this property."""
    if node.op_type in ("Shape", "Size"):
        return True
    return (node.op_type in _MOVES and node.input[0] in sizes) or (
        node.op_type == "Concat" and all(name in sizes for name in node.input)
    )


class _Unknown(Exception):
    """Raised for a node whose properties are insufficiently known."""


def _rule(
    node: onnx.NodeProto, code: int, codes: Mapping[str, int], constants: Mapping[str, onnx.TensorProto]
) -> Callable[[Builder], None] | None:
    """Returns the function that appends the exact nodes; `None` if ONNX Runtime is exact."""
    if node.op_type in SUMS:
        return lambda b: add_sum(b, node, code)
    if node.op_type == "ReduceMean":
        return lambda b: add_mean(b, node, code)
    if node.op_type == "ReduceProd":
        return lambda b: _product(b, node, code, constants)
    if node.op_type == "Einsum":
        return lambda b: _einsum(b, node, code)
    exponent = codes.get(node.input[1], 0)
    return (lambda b: add_power(b, node, code, exponent)) if exponent in (I32, I64) else None


def _einsum(b: Builder, node: onnx.NodeProto, code: int) -> None:
    if len(node.input) > EINSUM_OPERANDS:
        raise _Unknown
    add_einsum(b, node, code)


def _product(b: Builder, node: onnx.NodeProto, code: int, constants: Mapping[str, onnx.TensorProto]) -> None:
    attributes = {a.name: a for a in node.attribute}
    noop = "noop_with_empty_axes" in attributes and attributes["noop_with_empty_axes"].i != 0
    axes: Sequence[int] = list(attributes["axes"].ints) if "axes" in attributes else []
    if len(node.input) > 1 and node.input[1]:
        known = constants.get(node.input[1])
        if known is None or known.data_location == onnx.TensorProto.EXTERNAL:
            raise _Unknown
        axes = [int(n) for n in onnx.numpy_helper.to_array(known).ravel()]
    if not axes and noop:
        b.op("Identity", [node.input[0]], node.output[0])
        return
    add_product(b, node, code, axes or None, "keepdims" not in attributes or attributes["keepdims"].i != 0)
