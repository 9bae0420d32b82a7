"""The ops that hold nodes: the main graph, model-local functions, and the terminator of graphs.

    builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
      onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<N, 4>>) attributes {input_names = ["x"], output_names = ["y"]} {
        %y = onnx.Relu(%x) : ...
        onnx.return %y : tensor<?x4xf32, #sym.dims<N, 4>>
      }
    }

Attributes of `onnx.graph` and `onnx.function`, besides those shown (all optional):

    graph_name, doc_string, metadata
    input_info, output_info    per value, what its ValueInfo says besides the type
    input_defaults             initializers that the caller may override, by the input's name
    quantization_annotations   [[tensor, [[parameter, tensor], ...]], ...]

and of a function alone: `domain`, `function_name`, `overload`, `opset_import`, `attribute_names` (required ones) and
`attribute_defaults`. The graph of an If, Loop or Scan is a region of its op; its attributes (`graph_name`,
`input_names`, ...) are on its terminator `onnx.return`, so they move with the region.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self, cast

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, OpTraits, Region, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.onnx.attributes import text_attr, text_of, texts_attr, texts_of


class ReturnOp(Operation):
    """The terminator of a graph or function; its operands are the outputs."""

    name = "onnx.return"
    traits = OpTraits(lambda: (IsTerminator(), Pure()))

    @classmethod
    def make(cls, values: Sequence[SSAValue], attributes: Mapping[str, Attribute] | None = None) -> ReturnOp:
        """Creates one."""
        return cls.create(operands=values, attributes=attributes or {})

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        if self.operands:
            printer.print_string(" ")
            printer.print_list(self.operands, printer.print_ssa_value)
            printer.print_string(" : ")
            printer.print_list(self.operand_types, printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> ReturnOp:
        attributes = parser.parse_optional_attr_dict()
        position = parser.pos
        names = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        if not names:
            return cls.make([], attributes)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return cls.make(parser.resolve_operands(names, types, position), attributes)


class _GraphLike(Operation):
    """A named, isolated list of nodes."""

    @property
    def sym_name(self) -> str:
        return text_of(self.attributes.get("sym_name"))

    @property
    def body(self) -> Block:
        return self.regions[0].block

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs in the model."""
        return texts_of(self.attributes.get("input_names"))

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs in the model."""
        return texts_of(self.attributes.get("output_names"))

    @property
    def terminator(self) -> ReturnOp:
        """The `onnx.return`, whose operands are the outputs."""
        return cast(ReturnOp, self.body.last_op)

    @classmethod
    def make(cls, sym_name: str, region: Region, attributes: Mapping[str, Attribute]) -> Self:
        """Creates one around `region`."""
        return cls.create(regions=[region], attributes={"sym_name": StringAttr(sym_name), **attributes})

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name)
        with printer.in_parens():
            printer.print_list(self.body.args, printer.print_block_argument)
        printer.print_op_attributes(self.attributes, reserved_attr_names=("sym_name",), print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.regions[0], print_entry_block_args=False, print_empty_block=False)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        given = parser.parse_optional_attr_dict_with_keyword(("sym_name",))
        attributes: dict[str, Attribute] = {"sym_name": name}
        if given is not None:
            attributes.update(given.data)
        return cls.create(regions=[parser.parse_region(arguments)], attributes=attributes)

    def verify_(self) -> None:
        if len(self.regions) != 1 or len(self.regions[0].blocks) != 1:
            raise VerifyException(f"{self.name} must have one region of one block")
        last = self.body.last_op
        if not isinstance(last, ReturnOp):
            raise VerifyException(f"{self.name} must end with onnx.return")
        for what, names, count in (
            ("input", "input_names", len(self.body.args)),
            ("output", "output_names", len(last.operands)),
        ):
            attr = self.attributes.get(names)
            if attr is not None and len(texts_of(attr)) != count:
                raise VerifyException(f"{names} names {len(texts_of(attr))} {what}s, but there are {count}")


class GraphOp(_GraphLike):
    """The model's main graph."""

    name = "onnx.graph"
    traits = OpTraits(lambda: (IsolatedFromAbove(), SymbolOpInterface()))


class FunctionOp(_GraphLike):
    """A model-local function, called by nodes with its domain, name and overload."""

    name = "onnx.function"
    traits = OpTraits(lambda: (IsolatedFromAbove(), SymbolOpInterface()))

    @property
    def key(self) -> tuple[str, str, str]:
        """The domain, name and overload: the key of calls."""
        return (
            text_of(self.attributes.get("domain")),
            text_of(self.attributes.get("function_name"), self.sym_name),
            text_of(self.attributes.get("overload")),
        )


def main_graph(module: ModuleOp) -> GraphOp:
    """Returns the module's `onnx.graph`; raises `ValueError` if it has none."""
    for op in module.ops:
        if isinstance(op, GraphOp):
            return op
    raise ValueError("the module does not contain an onnx.graph")


def functions(module: ModuleOp) -> dict[tuple[str, str, str], FunctionOp]:
    """Returns the model-local functions by domain, name and overload."""
    return {op.key: op for op in module.ops if isinstance(op, FunctionOp)}


def graph_module(
    region: Region,
    input_names: Sequence[str],
    output_names: Sequence[str],
    opsets: Mapping[str, int],
    ir_version: int = 10,
) -> ModuleOp:
    """Returns a module with one main graph, for models built in code."""
    from igniter.dialects.onnx.attributes import to_attr

    graph = GraphOp.make(
        "main",
        region,
        {
            "graph_name": text_attr("main"),
            "input_names": texts_attr(input_names),
            "output_names": texts_attr(output_names),
        },
    )
    imports = DictionaryAttr({domain: to_attr(version) for domain, version in opsets.items()})
    model = DictionaryAttr({"ir_version": to_attr(ir_version), "opset_import": imports})
    return ModuleOp([graph], {"onnx.model": model})
