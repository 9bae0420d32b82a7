"""Finds the dims of a model by name, and substitutes them.

A dim is named by its name in the model (`batch`) or by its place: `x:0` is the first dim of the input `x`, which also
works for unnamed dims. Dims inside local functions belong to the functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.analysis.onnx.input_places import place_names
from igniter.dialects.onnx.attributes import TensorAttr, entries_of, pairs_of
from igniter.dialects.onnx.structure import FunctionOp, GraphOp, main_graph
from igniter.dialects.onnx.types import MapType, OptionalType, SequenceType, SparseTensorType
from igniter.dialects.sym import DimsAttr, RequirementAttr, tensor_of
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.tensor_types import declared_dims, ranked
from igniter.errors import IgniterError
from igniter.registry import UnknownName


class ModelDims:
    """The dims of a model's inputs."""

    def __init__(self, module: ModuleOp):
        self.module = module
        self.graph = main_graph(module)
        header = module.attributes.get("onnx.model")
        self.aliases = dict(pairs_of(entries_of(header).get("dim_names")))
        self.inputs: dict[str, list[Expr | None] | None] = {
            name: declared_dims(arg.type)
            for name, arg in zip(self.graph.input_names, self.graph.body.args, strict=True)
        }
        known = [d for dims in self.inputs.values() for d in dims or () if d is not None]
        self.of_inputs = {s: None for d in known for s in sorted(d.symbols)}

    def shown(self, symbol: str) -> str:
        """Returns the model's name for a symbol."""
        return self.aliases.get(symbol, symbol)

    def symbol(self, text: str) -> str:
        """Returns the symbol of an input's dim. Raises `IgniterError` for unknown names and for constants."""
        found = self._by_name(text) or self._by_place(text)
        if isinstance(found, Expr):
            if found.constant is not None:
                raise IgniterError(f"'{text}' is {found.constant}: it can be freed, but is no dim to name or to set")
            if found.symbol is None:
                raise IgniterError(f"'{text}' is {found}: set {' or '.join(sorted(found.symbols))} instead")
            return found.symbol
        if found is not None:
            return found
        if text in self.everywhere():
            raise IgniterError(
                f"'{text}' is no dim of an input: it follows from what the model computes, and cannot be set"
            )
        raise self.unknown(text)

    def any_symbol(self, text: str) -> str:
        """Like `symbol`, but also accepts symbols of outputs or inner values."""
        if self._by_name(text) is None and text in self.everywhere():
            return text
        return self.symbol(text)

    def place(self, text: str) -> tuple[SSAValue, int, Expr | None] | None:
        """Returns the input, the axis and the dim named like `x:0`; `None` for other names."""
        name, colon, axis = text.rpartition(":")
        if not colon or name not in self.inputs or not axis.lstrip("-").isdigit():
            return None
        dims = self.inputs[name]
        if dims is None:
            raise IgniterError(f"'{text}': the model does not say the rank of '{name}'")
        if not -len(dims) <= int(axis) < len(dims):
            raise IgniterError(f"'{text}': the input '{name}' has {len(dims)} dims")
        position = int(axis) % len(dims)
        return self.graph.body.args[list(self.inputs).index(name)], position, dims[position]

    def unknown(self, text: str) -> UnknownName:
        """Returns the error for a text that names no dim."""
        places = [f"{name}:{i}" for name, dims in self.inputs.items() for i in range(len(dims or ()))]
        known = [self.shown(s) for s in self.of_inputs if self.shown(s) == s or self.shown(s).strip()]
        return UnknownName("dim", text, dict.fromkeys([*known, *places]), listed=len(known) + len(places) < 24)

    def _by_name(self, text: str) -> str | None:
        if text in self.of_inputs:
            return text
        found = [s for s in self.of_inputs if self.aliases.get(s) == text]
        if len(found) > 1:
            raise IgniterError(
                f"'{text}' is {len(found)} dims, of which the model says nothing: name one as INPUT:AXIS"
            )
        return found[0] if found else None

    def _by_place(self, text: str) -> Expr | None:
        place = self.place(text)
        if place is None:
            return None
        if place[2] is None:
            raise IgniterError(f"'{text}': the model does not say what this dim is")
        return place[2]

    def everywhere(self) -> set[str]:
        """Returns the symbols of all values of the model, including inner ones."""
        return {
            s for type_ in _types(self.graph) for d in declared_dims(type_) or () if d is not None for s in d.symbols
        }


def _types(graph: GraphOp) -> Iterator[Attribute]:
    for op in graph.walk():
        yield from (r.type for r in op.results)
        yield from (a.type for region in op.regions for block in region.blocks for a in block.args)


# -- substitution -----------------------------------------------------------------------------------------------------


class Substitution:
    """Replaces symbols by expressions, in types and in attributes about them."""

    def __init__(self, values: Mapping[str, Expr]):
        self.values = dict(values)
        self._made: dict[Attribute, Attribute] = {}

    def module(self, module: ModuleOp) -> None:
        """Changes a module in place, except local functions."""
        for op in module.ops:
            if not isinstance(op, FunctionOp):
                for inner in op.walk():
                    self.op(inner)

    def op(self, op: Operation) -> None:
        """Changes the types and attributes of one op."""
        values = [*op.results, *(a for region in op.regions for block in region.blocks for a in block.args)]
        for value in values:
            made = self.attribute(value.type)
            if made is not value.type:
                value._type = made
        for table in (op.attributes, op.properties):
            for key, attr in list(table.items()):
                table[key] = self.attribute(attr)

    def attribute(self, attr: Attribute) -> Attribute:
        """Returns the attribute with the symbols replaced; the same object if it contains none of them."""
        if isinstance(attr, TensorAttr):
            # A lookup would compare it with equal ones, perhaps gigabytes of weights.
            return attr
        if attr not in self._made:
            self._made[attr] = self._replace(attr)
        return self._made[attr]

    def _replace(self, attr: Attribute) -> Attribute:
        tensor = ranked(attr)
        if tensor is not None:
            if not isinstance(tensor.encoding, DimsAttr):
                return tensor
            dims = tensor.encoding.substitute(self.values)
            return tensor if dims == tensor.encoding else tensor_of(tensor.element_type, dims.data)
        if isinstance(attr, (DimsAttr, RequirementAttr)):
            return attr.substitute(self.values)
        if isinstance(attr, SequenceType):
            return SequenceType(self.attribute(attr.element))
        if isinstance(attr, OptionalType):
            return OptionalType(self.attribute(attr.element))
        if isinstance(attr, MapType):
            return MapType(attr.key, self.attribute(attr.value))
        if isinstance(attr, SparseTensorType):
            return SparseTensorType(self.attribute(attr.dense))
        if isinstance(attr, ArrayAttr):
            array = cast("ArrayAttr[Attribute]", attr)
            made = [self.attribute(i) for i in array.data]
            return array if all(a is b for a, b in zip(array.data, made, strict=True)) else ArrayAttr(made)
        if isinstance(attr, DictionaryAttr):
            return DictionaryAttr({k: self.attribute(v) for k, v in attr.data.items()})
        return attr


def name_by_place(module: ModuleOp) -> dict[str, str]:
    """Renames the symbols made up for dims of inputs to the names of their places (`x.0`), in a module that is analysed
    but not written. Returns these names by symbol."""
    places = place_names(module)
    Substitution({symbol: Expr.of(place) for symbol, place in places.items()}).module(module)
    return places
