"""The common parts of nodes, made once.

The layers of a model are alike: the 1,698 nodes of MobileBERT have 14 different attributes, its 2,825 values 44
different types. The content of a message is a function of its bytes, and a lookup is faster than parsing; the element
types of results are shared too, since they follow from an op, its attributes and the types of its operands.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx
from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Attribute

from igniter.dialects.onnx.base import CustomOp, OnnxOp, op_class
from igniter.dialects.onnx.schemas import find_schema
from igniter.errors import IgniterError
from igniter.frontend.attributes import Kind, attribute_type, import_attribute
from igniter.frontend.extras import attribute_extra
from igniter.frontend.tensors import Source
from igniter.frontend.value_types import PLAIN, Symbols

GRAPHS = (Kind.GRAPH, Kind.GRAPHS)

KEPT_BYTES = 1024
"""The limit in bytes of attributes in the table: few larger ones are equal."""


@dataclass(frozen=True)
class NamedAttribute:
    """An attribute, and the rest of its message: `extra`."""

    name: str
    value: Attribute
    extra: DictionaryAttr | None


class AttributeTable:
    """The attributes of the nodes of one graph or function."""

    def __init__(self, source: Source, symbols: Symbols, in_function: bool):
        self.source = source
        self.symbols = symbols
        self.in_function = in_function
        # The tensors left in a message of our own are small.
        self._kept = PLAIN | {Kind.TENSOR} if source.is_own else PLAIN
        self._found: dict[bytes, NamedAttribute] = {}

    def of(self, proto: onnx.AttributeProto) -> NamedAttribute:
        """Returns the attribute of a message without a graph."""
        if proto.type not in self._kept:
            return self._read(proto)
        data = proto.SerializeToString()
        found = self._found.get(data)
        if found is None:
            found = self._read(proto)
            if len(data) <= KEPT_BYTES:
                self._found[data] = found
        return found

    def _read(self, proto: onnx.AttributeProto) -> NamedAttribute:
        if proto.ref_attr_name and not self.in_function:
            raise IgniterError(
                f"attribute {proto.name!r} refers to {proto.ref_attr_name!r} of a function, but is not in one"
            )
        value = import_attribute(proto, self.source, self.symbols)
        return NamedAttribute(proto.name, value, attribute_extra(proto, attribute_type(proto)))


def holds_graph(proto: onnx.AttributeProto) -> bool:
    """True if an attribute is a graph or a list of graphs, and not a reference to one."""
    if proto.type in PLAIN or not (proto.HasField("g") or len(proto.graphs) or proto.type in GRAPHS):
        return False
    return attribute_type(proto) in GRAPHS and not proto.ref_attr_name


class OpTable:
    """The op classes of nodes, in a model that imports `opsets` and has these functions."""

    def __init__(self, opsets: dict[str, int], functions: set[tuple[str, str]]):
        self.opsets = opsets
        self.functions = functions
        self._found: dict[tuple[str, str], type[OnnxOp]] = {}

    def of(self, domain: str, op_type: str) -> type[OnnxOp]:
        """Returns the class; `CustomOp` for a call of a function, and for an op unknown to the opset."""
        found = self._found.get((domain, op_type))
        if found is None:
            found = self._found[domain, op_type] = self._find(domain, op_type)
        return found

    def _find(self, domain: str, op_type: str) -> type[OnnxOp]:
        plain = "" if domain == "ai.onnx" else domain
        cls = op_class(plain, op_type)
        if (domain, op_type) in self.functions or find_schema(plain, op_type, self.opset(plain)) is None:
            return CustomOp
        return cls

    def opset(self, domain: str) -> int | None:
        """Returns the version of a domain that the model imports."""
        version = self.opsets.get(domain)
        return self.opsets.get("ai.onnx") if version is None and domain == "" else version
