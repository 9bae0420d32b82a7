"""`linalg.generic`: a body over an iteration space, with an affine access map for every operand.

%r:2 = linalg.generic {indexing_maps = [#m, #n, #n], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<4x8xf32>) outs(%v, %i : tensor<4xf32>, tensor<4xi64>) {
^bb0(%in: f32, %value: f32, %index: i64):
  ...
  linalg.yield %a, %b : f32, i64
} -> (tensor<4xf32>, tensor<4xi64>)
"""

from __future__ import annotations

from typing import Self, cast

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, IndexType, IntegerAttr, StringAttr, i64
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.ir import Attribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.linalg.structure import Structure, StructuredOp, map_of
from igniter.dialects.linalg.text import parse_group, parse_results, print_dict, print_group, print_results


@irdl_op_definition
class GenericOp(StructuredOp):
    """An op given by its maps, the kinds of its axes, and its body."""

    name = "linalg.generic"
    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])
    iterator_types = prop_def(ArrayAttr[IteratorTypeAttr])
    doc = opt_prop_def(StringAttr)
    library_call = opt_prop_def(StringAttr)
    body = region_def("single_block")

    def structure(self) -> Structure:
        kinds = tuple(str(t.data.value) for t in self.iterator_types)
        return Structure(kinds, tuple(map_of(m) for m in self.indexing_maps), self.body.block)

    def verify_structure(self, found: Structure) -> None:
        for number, attr in enumerate(self.indexing_maps):
            if attr.data.num_symbols:
                raise VerifyException(f"'{self.name}': unexpected symbols in indexing_map #{number}")
            if attr.data.num_dims != len(found.kinds):
                raise VerifyException(
                    f"'{self.name}': indexing_map #{number} has {attr.data.num_dims} dims, for {len(found.kinds)} axes"
                )
        super().verify_structure(found)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        position = parser.pos
        given = parser.parse_optional_attr_dict()
        maps, kinds = given.pop("indexing_maps", None), given.pop("iterator_types", None)
        if not isinstance(maps, ArrayAttr) or not isinstance(kinds, ArrayAttr):
            parser.raise_error("linalg.generic needs indexing_maps and iterator_types", position)
        properties: dict[str, Attribute] = {"indexing_maps": maps}
        properties["iterator_types"] = ArrayAttr(
            [_kind(parser, k, position) for k in cast("ArrayAttr[Attribute]", kinds)]
        )
        properties |= {key: given.pop(key) for key in ("doc", "library_call") if key in given}
        inputs, outputs = parse_group(parser, "ins"), parse_group(parser, "outs")
        if parser.parse_optional_keyword("attrs") is not None:
            parser.parse_punctuation("=")
            given |= parser.parse_optional_attr_dict()
        body = parser.parse_region()
        return cls.build(
            operands=[inputs, outputs],
            result_types=[parse_results(parser)],
            properties=properties,
            attributes=given,
            regions=[body],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" {indexing_maps = ")
        printer.print_attribute(self.indexing_maps)
        kinds = ", ".join(f'"{t.data.value}"' for t in self.iterator_types)
        printer.print_string(f", iterator_types = [{kinds}]")
        for key, attr in (("doc", self.doc), ("library_call", self.library_call)):
            if attr is not None:
                printer.print_string(f", {key} = ")
                printer.print_attribute(attr)
        printer.print_string("}")
        print_group(printer, "ins", self.inputs)
        print_group(printer, "outs", self.outputs)
        if self.attributes:
            printer.print_string(" attrs =")
            print_dict(printer, self.attributes)
        printer.print_string(" ")
        printer.print_region(self.body)
        print_results(printer, [r.type for r in self.res])


@irdl_op_definition
class IndexOp(IRDLOperation):
    """The index of a point along an axis, in the body of an op with a structure."""

    name = "linalg.index"
    dim = prop_def(IntegerAttr)
    result = result_def(IndexType)
    traits = traits_def(Pure())

    @property
    def axis(self) -> int:
        """The number of the axis."""
        return self.dim.value.data

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        dim = IntegerAttr(parser.parse_integer(), i64)
        parser.parse_punctuation(":")
        return cls.build(result_types=[parser.parse_type()], properties={"dim": dim})

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.axis} : ")
        printer.print_attribute(self.result.type)


def _kind(parser: Parser, attr: object, position: int) -> IteratorTypeAttr:
    if isinstance(attr, IteratorTypeAttr):
        return attr
    words = [str(k.value) for k in IteratorType]
    if not isinstance(attr, StringAttr) or attr.data not in words:
        parser.raise_error(f"an iterator type is one of {', '.join(words)}, not {attr}", position)
    return IteratorTypeAttr(IteratorType(attr.data))
