"""What inference has found of nodes that are alike: the layers of a model are the same nodes on the same types.

What a shape rule finds is a function of what it can ask for: the op, its attributes, what is known of its operands
(`InferContext`), and the equalities of dims so far. All of that but the equalities is in the key of a node, by
identity: types and attributes are shared and stay alive with their nodes, and what is known of tensors is interned
here, so that equal facts are one object. What is kept is forgotten with every new equality.

A node is not looked up, or what was found of it is not kept, where more than the key decides:

    graphs inside it; an op without a schema, or with rules of other packages
    operands that are no tensors, or whose rank varies
    a rule that read a constant other than of a few integers (these are in the key)
    a rule that made a symbol, found an equality, settled the name of a dim, or broke off

`tests/analysis/onnx/test_node_memo.py` infers every model of the tests with and without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import NoneType

from igniter.analysis.onnx.symbolic_values import as_elements
from igniter.dialects.onnx.base import CustomOp, OnnxOp
from igniter.dialects.onnx.registry import Dims, TensorInfo
from igniter.dialects.sym.expr import Expr

if TYPE_CHECKING:
    import numpy as np

    from igniter.analysis.onnx.node_context import NodeContext
    from igniter.analysis.onnx.shape_inference import ShapeEngine
    from igniter.dialects.onnx.weights import Weight

    Array = np.ndarray[Any, Any]
    Key = tuple[object, ...]
    Found = tuple[tuple[TensorInfo | None, Array | None], ...]


class Interned:
    """Facts of tensors, of which equal ones are one object."""

    def __init__(self) -> None:
        self._infos: dict[tuple[int, Dims | None], TensorInfo] = {}
        self._elements: dict[tuple[tuple[int, ...], tuple[Expr | None, ...]], Array] = {}
        self._weights: dict[tuple[int, tuple[int, ...], bytes], Array] = {}

    def info(self, info: TensorInfo) -> TensorInfo:
        """What is known of a tensor's type. Element types are alive in what is kept, and told apart by identity."""
        if info.values is not None:
            return info
        return self._infos.setdefault((id(info.element), info.dims), info)

    def elements(self, values: Sequence[Expr | None], dims: tuple[int, ...]) -> Array:
        """Elements of shape arithmetic, as an array that nobody changes."""
        key = (dims, tuple(values))
        found = self._elements.get(key)
        if found is None:
            found = self._elements[key] = as_elements(values, dims)
        return found

    def weight(self, weight: Weight) -> Array:
        """The elements of a small weight of integers or booleans."""
        key = (weight.element.code, weight.shape, bytes(weight.raw()))
        found = self._weights.get(key)
        if found is None:
            values = [Expr.of(int(v)) for v in weight.array().reshape(-1).tolist()]
            found = self._weights[key] = self.elements(values, weight.shape)
        return found


class NodeMemo:
    """What the engine of one graph has found of its nodes, by what they are."""

    def __init__(self, engine: ShapeEngine):
        self.engine = engine
        self._found: dict[Key, Found] = {}
        self._alive: list[object] = []
        """What keys name by identity: a body that is gone over again has other facts, in whose place an old one's may
        be made."""
        self._at = (0, 0)
        self._plain: dict[type[OnnxOp], bool] = {}

    def key(self, op: OnnxOp) -> Key | None:
        """What the types of a node's results follow from; `None` where that is more than can be said here."""
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
        """Gives the results of a node what was found of one like it; whether there was one."""
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
        """What a rule changes that does more than say the types of results."""
        engine = self.engine
        return (
            engine.equalities.version,
            engine.noted,
            len(engine._owners),
            len(engine._unfinished),
        )

    def keep(self, key: Key, ctx: NodeContext, before: tuple[int, ...], arrays: Sequence[Array | None]) -> None:
        """Remembers what was found of a node, unless its rules did or read more than the key says."""
        if ctx.read_constant or self.state() != before:
            return
        infos, elements, results = self.engine.infos, self.engine.elements, ctx.op.results
        if all(r in infos or type(r.type) is NoneType for r in results):
            self._found[key] = tuple([(infos.get(r), a) for r, a in zip(results, arrays, strict=True)])
            self._alive += (*ctx.op.attributes.values(), *(r.type for r in results))
            for value in ctx.op.operands:
                self._alive += (value.type, infos.get(value), elements.get(value))


def _is_plain(op: OnnxOp) -> bool:
    from igniter.dialects.onnx.ops import is_builtin

    # One class stands for all ops without a schema.
    return type(op) is not CustomOp and is_builtin(op.qualified_name)
