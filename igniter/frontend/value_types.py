"""`TypeProto` to IR types and back, and the names of symbolic dims.

A `dim_param` becomes a symbol of the same name, or an expression over the names of other dims of the inputs (`past +
1`, which exporters write for sums). An undeclared dim becomes a fresh symbol, `unk__0` and so on, with an unused
prefix; exporting turns it back to unknown. The same holds for a `dim_param` that denotes an unknown dim (`?`, `None`,
`-1`, `unk__7`): two of them are two dims, and exporting restores the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

import onnx
from xdsl.dialects.builtin import DictionaryAttr, NoneType, StringAttr, TensorType, UnrankedTensorType
from xdsl.ir import Attribute

from igniter.dialects.onnx.attributes import pairs_attr, pairs_of, text_attr, text_of, texts_attr, texts_of
from igniter.dialects.onnx.types import (
    BY_ATTR,
    BY_CODE,
    NONE,
    UNKNOWN,
    MapType,
    OpaqueType,
    OptionalType,
    SequenceType,
    SparseTensorType,
)
from igniter.dialects.sym import DYNAMIC, DimsAttr, tensor_of
from igniter.dialects.sym.dim_words import is_anonymous
from igniter.dialects.sym.expr import MAX_TEXT, Expr
from igniter.dialects.sym.tensor_types import unranked
from igniter.errors import IgniterError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_SAFE = re.compile(r"[ !#-\[\]-~]+")
"""The characters in the text form of a symbol: printable ASCII without quotes and backslashes."""


PLAIN = frozenset(
    getattr(onnx.AttributeProto, name) for name in ("FLOAT", "INT", "STRING", "FLOATS", "INTS", "STRINGS")
)
"""The kinds of attributes without tensors, graphs, or types (whose dims may be new)."""


@dataclass
class Symbols:
    """The names of dims of one model. `aliases` maps a symbol to a `dim_param` that is no valid symbol, or no name."""

    prefix: str = "unk__"
    aliases: dict[str, str] = field(default_factory=dict[str, str])
    expressions: dict[str, Expr] = field(default_factory=dict[str, Expr])
    """The `dim_param`s with arithmetic on others."""
    _count: int = 0
    _types: dict[bytes, tuple[Attribute, Attribute | None]] = field(
        default_factory=dict[bytes, tuple[Attribute, Attribute | None]]
    )
    _by_param: dict[str, str] = field(default_factory=dict[str, str])
    _tensors: dict[tuple[int, tuple[int | str | Expr, ...]], Attribute] = field(
        default_factory=dict[tuple[int, tuple[int | str | Expr, ...]], Attribute]
    )

    @staticmethod
    def for_names(names: Iterable[str], known: Iterable[str] = ()) -> Symbols:
        """Creates a prefix for fresh symbols, unused in all `dim_param`s; `known` are the names of inputs' dims."""
        taken = tuple(n for n in names if not is_anonymous(n))
        bound = frozenset(known)
        prefix, count = "unk__", 0
        while any(n.startswith(prefix) for n in taken):
            count += 1
            prefix = f"unk{count}__"
        found = {n: e for n in taken if (e := _expression(n, bound)) is not None}
        return Symbols(prefix, expressions=found)

    def fresh(self) -> str:
        """Returns a new symbol for an unknown dim."""
        self._count += 1
        return f"{self.prefix}{self._count - 1}"

    def of_param(self, param: str) -> str | Expr:
        """Returns the symbol or the expression of a `dim_param`."""
        if param in self.expressions:
            return self.expressions[param]
        if is_anonymous(param):
            symbol = f"{self.prefix}any_{len(self.aliases)}"
            self.aliases[symbol] = param
            return symbol
        if _SAFE.fullmatch(param):
            return param
        if param not in self._by_param:
            symbol = f"{self.prefix}name_{len(self.aliases)}"
            self._by_param[param] = symbol
            self.aliases[symbol] = param
        return self._by_param[param]

    def read(self, proto: onnx.TypeProto) -> tuple[Attribute, Attribute | None]:
        """Returns the IR type and the denotations. A model has few distinct ones; types with fresh dims are read each
        time."""
        data = proto.SerializeToString()
        found = self._types.get(data)
        if found is None:
            before = self._count, len(self.aliases)
            found = import_type(proto, self), _denotations(proto)
            if before == (self._count, len(self.aliases)):
                self._types[data] = found
        return found

    def tensor(self, code: int, element: Attribute, dims: tuple[int | str | Expr, ...]) -> Attribute:
        """Returns a tensor type; a model has few distinct ones, and construction is slow."""
        found = self._tensors.get((code, dims))
        if found is None:
            found = self._tensors[code, dims] = tensor_of(element, dims)
        return found


def _expression(param: str, known: frozenset[str]) -> Expr | None:
    """Returns the expression of a `dim_param` over `known` names, if its printed form is the same text."""
    if _NAME.fullmatch(param) or len(param) > MAX_TEXT or not _SAFE.fullmatch(param):
        return None
    try:
        found = Expr.parse(param)
    except ValueError:
        return None
    same = found.is_small and str(found) == param and found.constant is None
    return found if same and all(_NAME.fullmatch(n) for n in found.symbols) and found.symbols <= known else None


@dataclass(frozen=True)
class DimNames:
    """The `dim_param`s of symbols: the inverse of `Symbols`."""

    prefix: str
    aliases: Mapping[str, str]

    @staticmethod
    def of(header: Mapping[str, Attribute]) -> DimNames:
        """Returns the names of an imported model, from the header of its module."""
        prefix = text_of(header.get("unknown_dims"), Symbols().prefix)
        return DimNames(prefix, dict(pairs_of(header.get("dim_names"))))

    def param(self, dim: Expr) -> str | None:
        """Returns the `dim_param` of a symbolic dim; `None` for an unknown one."""
        text = dim.symbol if dim.symbol is not None else str(dim)
        if text in self.aliases:
            return self.aliases[text]
        return None if text.startswith(self.prefix) and text[len(self.prefix) :].isdigit() else text


# -- import -----------------------------------------------------------------------------------------------------------


def import_type(proto: onnx.TypeProto, symbols: Symbols) -> Attribute:
    """Returns the IR type."""
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        return _tensor(proto.tensor_type, symbols)
    if kind == "sequence_type":
        return SequenceType(import_type(proto.sequence_type.elem_type, symbols))
    if kind == "optional_type":
        return OptionalType(import_type(proto.optional_type.elem_type, symbols))
    if kind == "map_type":
        return MapType(_element(proto.map_type.key_type), import_type(proto.map_type.value_type, symbols))
    if kind == "sparse_tensor_type":
        return SparseTensorType(_tensor(proto.sparse_tensor_type, symbols))
    if kind == "opaque_type":
        return OpaqueType(StringAttr(proto.opaque_type.domain), StringAttr(proto.opaque_type.name))
    return UNKNOWN


def _element(code: int) -> Attribute:
    if code == 0:
        return UNKNOWN
    row = BY_CODE.get(code)
    if row is None:
        raise IgniterError(f"a value has the element type {code}, which ONNX does not define")
    return row.attr


def _tensor(proto: onnx.TypeProto.Tensor | onnx.TypeProto.SparseTensor, symbols: Symbols) -> Attribute:
    element = _element(proto.elem_type)
    if not proto.HasField("shape"):
        return unranked(element)
    dims: list[int | str | Expr] = []
    for dim in proto.shape.dim:
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            dims.append(dim.dim_value)
        else:
            dims.append(symbols.of_param(dim.dim_param) if dim.dim_param else symbols.fresh())
    return symbols.tensor(proto.elem_type, element, tuple(dims))


def input_params(model: onnx.ModelProto) -> set[str]:
    """Returns the `dim_param`s of the inputs."""
    shapes = [v.type.tensor_type.shape for v in model.graph.input if v.type.HasField("tensor_type")]
    return {d.dim_param for shape in shapes for d in shape.dim if d.dim_param}


def dim_params(model: onnx.ModelProto) -> set[str]:
    """Returns every `dim_param` of the model's graph and its subgraphs' inputs and values."""
    found: set[str] = set()
    seen: set[bytes] = set()

    def of_values(values: Iterable[onnx.ValueInfoProto]) -> None:
        for value in values:
            data = value.type.SerializeToString()
            if data not in seen:
                seen.add(data)
                of_type(value.type)

    def of_type(proto: onnx.TypeProto) -> None:
        kind = proto.WhichOneof("value")
        if kind in ("tensor_type", "sparse_tensor_type"):
            found.update(d.dim_param for d in getattr(proto, kind).shape.dim if d.dim_param)
        elif kind in ("sequence_type", "optional_type"):
            of_type(getattr(proto, kind).elem_type)
        elif kind == "map_type":
            of_type(proto.map_type.value_type)

    def of_nodes(nodes: Iterable[onnx.NodeProto]) -> None:
        for node in nodes:
            for attribute in node.attribute:
                if attribute.type in PLAIN:
                    continue
                if attribute.HasField("g"):
                    of_graph(attribute.g)
                for graph in attribute.graphs:
                    of_graph(graph)
                if attribute.HasField("tp"):
                    of_type(attribute.tp)
                for type_proto in attribute.type_protos:
                    of_type(type_proto)

    def of_graph(graph: onnx.GraphProto) -> None:
        for values in (graph.input, graph.output, graph.value_info):
            of_values(values)
        of_nodes(graph.node)

    of_graph(model.graph)
    for function in model.functions:
        of_values(function.value_info)
        of_nodes(function.node)
    return found


def value_info(proto: onnx.ValueInfoProto, denotations: Attribute | None) -> DictionaryAttr | None:
    """Returns the content of a ValueInfo besides the type, with the type's denotations; `None` if it is empty."""
    entries: dict[str, Attribute] = {}
    if proto.doc_string:
        entries["doc_string"] = text_attr(proto.doc_string)
    if len(proto.metadata_props):
        entries["metadata"] = pairs_attr([(p.key, p.value) for p in proto.metadata_props])
    if denotations is not None:
        entries["denotations"] = denotations
    return DictionaryAttr(entries) if entries else None


def _denotations(proto: onnx.TypeProto) -> Attribute | None:
    dims = [d.denotation for d in proto.tensor_type.shape.dim] if proto.HasField("tensor_type") else []
    return texts_attr([proto.denotation, *dims]) if proto.denotation or any(dims) else None


# -- export -----------------------------------------------------------------------------------------------------------


def export_type(type_: Attribute, names: DimNames, proto: onnx.TypeProto) -> None:
    """Writes a type to `proto`; an unknown type leaves it empty."""
    if isinstance(type_, (TensorType, UnrankedTensorType)):
        _export_tensor(cast(Attribute, type_), names, proto.tensor_type)
    elif isinstance(type_, SequenceType):
        proto.sequence_type.SetInParent()
        export_type(type_.element, names, proto.sequence_type.elem_type)
    elif isinstance(type_, OptionalType):
        proto.optional_type.SetInParent()
        export_type(type_.element, names, proto.optional_type.elem_type)
    elif isinstance(type_, MapType):
        proto.map_type.key_type = BY_ATTR[type_.key].code
        export_type(type_.value, names, proto.map_type.value_type)
    elif isinstance(type_, SparseTensorType):
        _export_tensor(type_.dense, names, proto.sparse_tensor_type)
    elif isinstance(type_, OpaqueType):
        proto.opaque_type.domain = type_.domain.data
        proto.opaque_type.name = type_.type_name.data
    elif type_ not in (UNKNOWN, NONE):
        raise IgniterError(f"a value of the type {type_} cannot be written to an ONNX model")


def _export_tensor(
    type_: Attribute, names: DimNames, proto: onnx.TypeProto.Tensor | onnx.TypeProto.SparseTensor
) -> None:
    if not isinstance(type_, (TensorType, UnrankedTensorType)):
        raise IgniterError(f"{type_} is not a tensor type")
    row = BY_ATTR.get(cast("TensorType[Attribute]", type_).element_type)
    proto.elem_type = row.code if row is not None else 0
    if isinstance(type_, UnrankedTensorType):
        return
    proto.shape.SetInParent()
    encoding = type_.encoding
    for index, size in enumerate(type_.get_shape()):
        dim = proto.shape.dim.add()
        if size != DYNAMIC:
            dim.dim_value = size
        elif isinstance(encoding, DimsAttr):
            param = names.param(encoding.data[index])
            if param is not None:
                dim.dim_param = param


def worth_writing(type_: Attribute) -> bool:
    """True if a ValueInfo for an inner value adds information to the ops around it."""
    return isinstance(type_, (TensorType, SequenceType, OptionalType, MapType, SparseTensorType, OpaqueType))


def apply_value_info(info: Attribute | None, proto: onnx.ValueInfoProto) -> None:
    """Adds the content found by `value_info`."""
    if not isinstance(info, DictionaryAttr):
        return
    if "doc_string" in info.data:
        proto.doc_string = text_of(info.data["doc_string"])
    metadata = info.data.get("metadata")
    if metadata is not None:
        for key, value in pairs_of(metadata):
            proto.metadata_props.add(key=key, value=value)
    denotations = texts_of(info.data.get("denotations"))
    if denotations:
        if denotations[0]:
            proto.type.denotation = denotations[0]
        for dim, text in zip(proto.type.tensor_type.shape.dim, denotations[1:], strict=False):
            if text:
                dim.denotation = text


def is_omitted(type_: Attribute) -> bool:
    """True if the type marks an omitted value."""
    return isinstance(type_, NoneType)
