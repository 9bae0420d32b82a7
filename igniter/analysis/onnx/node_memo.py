"""Inference results shared by equal nodes: the layers of a model are the same nodes on the same types.

The result of a shape rule is a function of its inputs: the op, its attributes, the facts about its operands
(`InferContext`), and the equalities of dims so far. All of these but the equalities are in the key of a node, by
identity: types and attributes are shared and stay alive with their nodes, and facts about tensors are interned here, so
that equal facts are one object. Every new equality clears the memo.

A node is not looked up, or its result is not kept, if more than the key decides it:

    graphs inside it; an op without a schema, or with rules of other packages
    operands that are no tensors, or whose rank varies
    a rule that read a constant other than of a few integers (these are in the key)
    a rule that made a symbol, found an equality, settled the name of a dim, or failed

`tests/analysis/onnx/test_node_memo.py` infers every model of the tests with and without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import NoneType

from igniter.analysis.onnx.symbolic_values import as_elements
from igniter.dialects.onnx.base import CustomOp, OnnxOp
from igniter.dialects.onnx.ops import is_builtin
from igniter.dialects.onnx.registry import Dims, TensorInfo
from igniter.dialects.sym.expr import Expr

if TYPE_CHECKING:
    import numpy as np

    from igniter.analysis.onnx.node_context import NodeContext
    from igniter.analysis.onnx.shape_inference import ShapeInference
    from igniter.dialects.onnx.weights import Weight

    Array = np.ndarray[Any, Any]
    Key = tuple[object, ...]
    Found = tuple[tuple[TensorInfo | None, Array | None], ...]


class Interned:
    """Facts about tensors; equal ones are one object."""

    def __init__(self) -> None:
        self._infos: dict[tuple[int, Dims | None], TensorInfo] = {}
        self._elements: dict[tuple[tuple[int, ...], tuple[Expr | None, ...]], Array] = {}
        self._weights: dict[tuple[int, tuple[int, ...], bytes], Array] = {}

    def info(self, info: TensorInfo) -> TensorInfo:
        """Interns the facts about a tensor's type. Element types stay alive in the facts, and are compared by
        identity."""
        if info.values is not None:
            return info
        return self._infos.setdefault((id(info.element), info.dims), info)

    def elements(self, values: Sequence[Expr | None], dims: tuple[int, ...]) -> Array:
        """Interns elements of shape arithmetic, as a constant array."""
        key = (dims, tuple(values))
        found = self._elements.get(key)
        if found is None:
            found = self._elements[key] = as_elements(values, dims)
        return found

    def weight(self, weight: Weight) -> Array:
        """Interns the elements of a small weight of integers or booleans."""
        key = (weight.element.code, weight.shape, bytes(weight.raw()))
        found = self._weights.get(key)
        if found is None:
            values = [Expr.of(int(v)) for v in weight.array().reshape(-1).tolist()]
            found = self._weights[key] = self.elements(values, weight.shape)
        return found


class NodeMemo:
    """The results of one graph's inference, by the keys of its nodes."""

    def __init__(self, engine: ShapeInference):
        self.engine = engine
        self._found: dict[Key, Found] = {}
        self._alive: list[object] = []
        """The objects in keys by identity. They must stay alive: a second pass over a body has other facts, and a new
        object could get the address of an old one."""
        self._at = (0, 0)
        self._plain: dict[type[OnnxOp], bool] = {}

    def key(self, op: OnnxOp) -> Key | None:
        """Returns the inputs of a node's inference as a key; `None` if the result depends on more."""
        engine = self.engine
        plain = self._plain.get(type(op))
        if plain is None:
            plain = self._plain[type(op)] = _is_plain(op)
        if not plain or op.regions or engine.varying:
            return None
        equalities = engine.equalities
        if self._at != (equalities.version, equalities.scopes):
            self._found, self._alive, self._at = {}, [], (equalities.version, equalities.scopes)
        attributes = op.attributes
        key: list[object] = [type(op), *attributes, *map(id, attributes.values())] if attributes else [type(op)]
        infos, elements, version = engine.infos, engine.elements, equalities.version
        for value in op.operands:
            type_ = value.type
            info = infos.get(value)
            if info is not None:
                key += (id(type_), id(engine.resolved(info) if version else info), id(elements.get(value)))
            elif type(type_) is NoneType:
                key.append(None)
            else:
                return None
        key += [id(result.type) for result in op.results]
        return tuple(key)

    def take(self, key: Key, op: OnnxOp) -> bool:
        """Sets the results of a node to those of an equal one; returns True if there was one."""
        found = self._found.get(key)
        if found is None:
            return False
        infos, elements = self.engine.infos, self.engine.elements
        for result, (info, array) in zip(op.results, found, strict=True):
            if info is not None:
                infos[result] = info
            if array is not None:
                elements[result] = array
        return True

    def state(self) -> tuple[int, ...]:
        """Returns the state changed by rules with more effects than result types."""
        engine = self.engine
        return (
            engine.equalities.version,
            engine.noted,
            len(engine._owners),
            len(engine._unfinished),
        )

    def keep(self, key: Key, ctx: NodeContext, before: tuple[int, ...], arrays: Sequence[Array | None]) -> None:
        """Records the result of a node, unless its rules changed or read more than the key covers."""
        if ctx.read_constant or self.state() != before:
            return
        infos, elements, results = self.engine.infos, self.engine.elements, ctx.op.results
        if all(r in infos or type(r.type) is NoneType for r in results):
            self._found[key] = tuple([(infos.get(r), a) for r, a in zip(results, arrays, strict=True)])
            self._alive += (*ctx.op.attributes.values(), *(r.type for r in results))
            for value in ctx.op.operands:
                self._alive += (value.type, infos.get(value), elements.get(value))


def _is_plain(op: OnnxOp) -> bool:
    # All ops without a schema share one class.
    return type(op) is not CustomOp and is_builtin(op.qualified_name)
