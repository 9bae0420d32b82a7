"""What nodes have in common, made once.

Models are of layers that are alike: the 1,698 nodes of MobileBERT have 14 different attributes, its 2,825 values 44
different types. What a message says is a function of its bytes, and these are looked up sooner than what they say is
made; so are the element types of results, which follow from an op, its attributes and the types of its operands.
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
"""Attributes of more bytes are not looked for: few are the same."""


@dataclass(frozen=True)
class NamedAttribute:
    """An attribute, and what else its message says: `extra`."""

    name: str
    value: Attribute
    extra: DictionaryAttr | None


class AttributeTable:
    """The attributes of the nodes of one graph or function."""

    def __init__(self, source: Source, symbols: Symbols, in_function: bool):
        self.source = source
        self.symbols = symbols
        self.in_function = in_function
        # The tensors that are left in a message of our own are small.
        self._kept = PLAIN | {Kind.TENSOR} if source.is_own else PLAIN
        self._found: dict[bytes, NamedAttribute] = {}

    def of(self, proto: onnx.AttributeProto) -> NamedAttribute:
        """The attribute of a message that holds no graph."""
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
                f"attribute {proto.name!r} refers to {proto.ref_attr_name!r} of a function; this is none"
            )
        value = import_attribute(proto, self.source, self.symbols)
        return NamedAttribute(proto.name, value, attribute_extra(proto, attribute_type(proto)))


def holds_graph(proto: onnx.AttributeProto) -> bool:
    """Whether an attribute is a graph or a list of graphs, and not a reference to one."""
    if proto.type in PLAIN or not (proto.HasField("g") or len(proto.graphs) or proto.type in GRAPHS):
        return False
    return attribute_type(proto) in GRAPHS and not proto.ref_attr_name


class OpTable:
    """The classes of the ops that nodes are, in a model that imports `opsets` and has these functions."""

    def __init__(self, opsets: dict[str, int], functions: set[tuple[str, str]]):
        self.opsets = opsets
        self.functions = functions
        self._found: dict[tuple[str, str], type[OnnxOp]] = {}

    def of(self, domain: str, op_type: str) -> type[OnnxOp]:
        """The class; `CustomOp` for a call of a function, and where the opset has no such op."""
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
        """The version of a domain that the model imports."""
        version = self.opsets.get(domain)
        return self.opsets.get("ai.onnx") if version is None and domain == "" else version
