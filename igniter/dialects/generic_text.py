"""The generic form of the IR's text, also readable by `mlir-opt --allow-unregistered-dialect`.

MLIR's own parser knows none of Igniter's attributes, and refuses two things that xDSL takes. The generic form has
others in their place, which `IrParser` turns back:

    memref<?xf32, #sym.dims<n>, "local">     memref<?xf32, {dims = #sym.dims<n>, space = "local"}>
    opset_import = {"" = 17 : i64}           opset_import = {ai.onnx = 17 : i64}

An attribute of an unknown dialect is no layout for MLIR, but a dictionary is a memory space; and the key of an entry
cannot be empty. `ai.onnx` is the other name of ONNX's own domain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from xdsl.dialects.builtin import DictionaryAttr, MemRefType, ModuleOp, NoneAttr, UnrankedMemRefType
from xdsl.ir import Attribute, Operation
from xdsl.printer import Printer

from igniter.dialects.sym import DimsAttr
from igniter.ir_parser import ReportingParser

OWN_DOMAIN = "ai.onnx"
DIMS, SPACE = "dims", "space"


class GenericPrinter(Printer):
    """A printer of the generic form."""

    def print_attribute(self, attribute: Attribute) -> None:
        super().print_attribute(_without_layout(attribute))

    def print_attr_dict(self, attr_dict: Mapping[str, Attribute]) -> None:
        if "" in attr_dict:
            others = {k: v for k, v in attr_dict.items() if k not in ("", OWN_DOMAIN)}
            attr_dict = {OWN_DOMAIN: attr_dict[""], **others}
        super().print_attr_dict(attr_dict)


def _without_layout(attribute: Attribute) -> Attribute:
    """Returns the type of a memref with its dims in the memory space; any other attribute unchanged."""
    if not isinstance(attribute, MemRefType):
        return attribute
    memref = cast("MemRefType[Attribute]", attribute)
    if not isinstance(memref.layout, DimsAttr):
        return memref
    parts: dict[str, Attribute] = {DIMS: memref.layout}
    if not isinstance(memref.memory_space, NoneAttr):
        parts[SPACE] = memref.memory_space
    return MemRefType(memref.element_type, memref.get_shape(), memory_space=DictionaryAttr(parts))


class IrParser(ReportingParser):
    """A parser of Igniter's IR, in its own and in the generic form."""

    def _parse_memref_attrs(self) -> MemRefType[Attribute] | UnrankedMemRefType[Attribute]:
        found = super()._parse_memref_attrs()
        if not isinstance(found, MemRefType) or not isinstance(found.memory_space, DictionaryAttr):
            return found
        parts = found.memory_space.data
        layout = parts.get(DIMS)
        if not isinstance(layout, DimsAttr):
            return found
        return MemRefType(found.element_type, found.get_shape(), layout, parts.get(SPACE, NoneAttr()))

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        module = super().parse_module(allow_implicit_module)
        _restore_domain(module, "onnx.model")
        for op in module.ops:
            if op.name == "onnx.function":
                _restore_domain(op, None)
        return module


def _restore_domain(op: Operation, header: str | None) -> None:
    """Gives ONNX's own domain its empty name in the imports of a model, or of a function."""
    holder = op.attributes if header is None else _entries(op.attributes.get(header))
    imports = _entries(holder.get("opset_import"))
    if "" in imports or OWN_DOMAIN not in imports:
        return
    renamed = DictionaryAttr({"" if k == OWN_DOMAIN else k: v for k, v in imports.items()})
    if header is None:
        op.attributes["opset_import"] = renamed
    else:
        op.attributes[header] = DictionaryAttr({**holder, "opset_import": renamed})


def _entries(attribute: Attribute | None) -> Mapping[str, Attribute]:
    return attribute.data if isinstance(attribute, DictionaryAttr) else {}
