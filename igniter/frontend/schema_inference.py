"""The shape rules of the `onnx` package for one node, in place of a missing `OpSpec.infer`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import onnx
import onnx.defs
import onnx.shape_inference
from xdsl.dialects.builtin import NoneType
from xdsl.ir import Attribute

from igniter.dialects.onnx.attributes import RefAttr
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.types import UNKNOWN, OptionalType, SequenceType
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym import DimsAttr, tensor_of
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.tensor_types import ranked
from igniter.errors import IgniterError
from igniter.frontend.attributes import export_attribute
from igniter.frontend.tensors import InlineSink, export_tensor
from igniter.frontend.value_types import Symbols, export_type, import_type

_MAX_DATA = 4096
"""The limit in bytes of constants passed to the rules: no rule reads larger ones."""


class _Labels:
    """Short names for dims: equal dims have equal names, for the rules of the onnx package."""

    def __init__(self) -> None:
        self._names: dict[Expr, str] = {}

    def param(self, dim: Expr) -> str:
        return self._names.setdefault(dim, f"d{len(self._names)}")

    def dims(self) -> dict[str, Expr]:
        return {name: dim for dim, name in self._names.items()}


def infer_result_types(
    op: OnnxOp,
    operands: Sequence[Attribute | None],
    constants: Sequence[Weight | None],
    fresh: Callable[[int, int], Expr],
) -> list[Attribute] | None:
    """Returns the types of the results by the schema's own inference, given the operands' types and constant values.

    `fresh(result, dim)` names a dim that the rule leaves open. Returns `None` if there is no schema or its rule gives
    up; the type of a result unknown to the rule is `!onnx.unknown`.
    """
    version = op.opset
    if op.regions or not onnx.defs.has(op.op_type, version, op.domain):
        return None
    if any(isinstance(a, RefAttr) for a in op.attributes.values()):
        return None
    labels = _Labels()
    node = _node(op, operands, labels)
    types: dict[str, onnx.TypeProto] = {}
    data: dict[str, onnx.TensorProto] = {}
    for i, (type_, weight) in enumerate(zip(operands, constants, strict=True)):
        if type_ is None:
            continue
        proto = onnx.TypeProto()
        try:
            export_type(type_, cast(Any, labels), proto)
        except IgniterError:
            return None
        types[f"i{i}"] = proto
        if weight is not None and weight.nbytes <= _MAX_DATA:
            data[f"i{i}"] = export_tensor(weight, f"i{i}", InlineSink())
    schema = onnx.defs.get_schema(op.op_type, version, op.domain)
    opsets = [onnx.helper.make_opsetid(op.domain, version)]
    try:
        found = onnx.shape_inference.infer_node_outputs(schema, node, types, data, opset_imports=opsets)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        return None
    return [
        _imported(found.get(f"o{i}"), labels.dims(), lambda dim, i=i: fresh(i, dim)) for i in range(len(op.results))
    ]


def _node(op: OnnxOp, operands: Sequence[Attribute | None], labels: _Labels) -> onnx.NodeProto:
    node = onnx.NodeProto(op_type=op.op_type, domain=op.domain)
    node.input.extend("" if t is None else f"i{i}" for i, t in enumerate(operands))
    node.output.extend("" if isinstance(r.type, NoneType) else f"o{i}" for i, r in enumerate(op.results))
    for name, attr in op.attributes.items():
        if not name.startswith("igniter."):
            export_attribute(name, attr, node.attribute.add(), InlineSink(), cast(Any, labels))
    return node


def _imported(proto: onnx.TypeProto | None, dims: dict[str, Expr], fresh: Callable[[int], Expr]) -> Attribute:
    if proto is None:
        return UNKNOWN
    symbols = Symbols(prefix="?")
    return _renamed(import_type(proto, symbols), dims, fresh)


def _renamed(type_: Attribute, dims: dict[str, Expr], fresh: Callable[[int], Expr]) -> Attribute:
    if isinstance(type_, SequenceType):
        return SequenceType(_renamed(type_.element, dims, fresh))
    if isinstance(type_, OptionalType):
        return OptionalType(_renamed(type_.element, dims, fresh))
    tensor = ranked(type_)
    if tensor is None or not isinstance(tensor.encoding, DimsAttr):
        return type_
    named = [dims.get(d.symbol, d) if d.symbol is not None else d for d in tensor.encoding.data]
    return tensor_of(
        tensor.element_type,
        [fresh(i) if d.symbol is not None and d.symbol.startswith("?") else d for i, d in enumerate(named)],
    )
