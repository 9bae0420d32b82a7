"""The `fusion` dialect: groups of ONNX nodes that become one kernel-library entry each.

    region ::= %r... = fusion.region @name (%arg = %operand : type, ...) (kernel @kernel)? -> (type, ...)
               (attributes {...})? { op* fusion.yield %v... : type... }

    program ::= %r... = fusion.program @name (%arg = %operand : type, ...) -> (type, ...)
               (attributes {...})? { (region | loop | view | dims | constant)* fusion.yield %v... : type... }

    dims   ::= %s = fusion.dims [expr, ...] : tensor<nxi64>
    pack   ::= %p = fusion.pack %w layout : type to type
    unpack ::= %w = fusion.unpack %p layout : type to type
    layout: see `igniter.dialects.layouts`

A region is isolated from above: its nodes use only its operands and cloned small constants. Its body is ordinary `onnx`
IR, so a region can be run, printed and unfused. The symbols of its types denote the same dims inside and outside;
`form-fusion-regions` ensures that their operands' dims bind them all. `kernel` names the `loop.kernel` of the region,
made by `lower-onnx-to-loop`.

`fusion.dims` replaces an integer operand that is a function of the symbols, such as the shape of a Reshape. The region
then does not need the nodes behind it.

`fusion.pack` is a weight in another layout; the last block of a dim is padded with zeros. It is computed at compile
time. `fusion.unpack`, in a region, is its inverse and moves no data: it describes where readers of the weight find its
elements.

`fusion.make` (`igniter.dialects.made`) is a constant that a kernel computes from another one when a session is created.

A program is a sequence of regions that ONNX Runtime enters once: it calls their kernels in order, on buffers in one
arena. Between them it holds only views (`cost.VIEWS`, ONNX nodes without data movement), the sources of their shapes,
and Loop and Scan nodes. The bodies of these nodes hold the same ops and may read values from around them.
`form-programs` makes programs; `lower-programs` lowers them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    DenseArrayBase,
    FlatSymbolRefAttrConstr,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.layouts import Layout, Part
from igniter.dialects.loop.attrs import number_attr
from igniter.dialects.made import MakeOp
from igniter.dialects.onnx.names import VIEWS, is_loop, op_name
from igniter.dialects.sym import DimsAttr, dims_of, element_of, parse_exprs
from igniter.dialects.sym.expr import Expr, ExprLike

BYTE = IntegerType(8, Signedness.UNSIGNED)

BATCHED = "igniter.batched"
"""The attribute of a region that treats batch elements independently: the inputs whose first dim is the batch."""


@irdl_op_definition
class YieldOp(IRDLOperation):
    """The results of a region or a program."""

    name = "fusion.yield"
    values = var_operand_def()
    assembly_format = "($values^ `:` type($values))? attr-dict"
    traits = traits_def(IsTerminator())

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(operands=[values])

    def verify_(self) -> None:
        if not isinstance(self.parent_op(), GroupOp):
            raise VerifyException("fusion.yield must be in a fusion.region or a fusion.program")


@irdl_op_definition
class DimsOp(IRDLOperation):
    """An integer tensor of rank 0 or 1 whose elements are expressions over the symbols of the region."""

    name = "fusion.dims"
    dims_attr = prop_def(DimsAttr, prop_name="dims")
    result = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(self, dims: Iterable[ExprLike], result_type: Attribute):
        super().__init__(properties={"dims": DimsAttr(dims)}, result_types=[result_type])

    @property
    def dims(self) -> tuple[Expr, ...]:
        """The elements."""
        return self.dims_attr.data

    def verify_(self) -> None:
        shape = dims_of(self.result.type)
        if element_of(self.result.type) not in (i32, i64) or len(shape) > 1:
            raise VerifyException(
                f"the result of fusion.dims must be an i32 or i64 tensor of rank 0 or 1, not {self.result.type}"
            )
        if (shape[0] if shape else 1) != len(self.dims):
            raise VerifyException(f"{len(self.dims)} expressions for {self.result.type}")

    @classmethod
    def parse(cls, parser: Parser) -> DimsOp:
        dims = parse_exprs(parser)
        parser.parse_characters(":")
        return cls(dims, parser.parse_type())

    def print(self, printer: Printer) -> None:
        printer.print_string(f" [{', '.join(map(str, self.dims))}] : ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class TablesOp(IRDLOperation):
    """Constant tensors, by name, for the lowering of the next node: the contents of its attributes.

    The node itself is unchanged; ONNX Runtime can run it if the region is unfused.
    """

    name = "fusion.tables"
    names_attr = prop_def(ArrayAttr[StringAttr], prop_name="names")
    tables = var_operand_def(TensorType)
    assembly_format = "$names $tables `:` type($tables) attr-dict"

    def __init__(self, tables: Mapping[str, SSAValue]):
        super().__init__(
            operands=[list(tables.values())], properties={"names": ArrayAttr([StringAttr(n) for n in tables])}
        )

    @property
    def by_name(self) -> dict[str, SSAValue]:
        """The tensors by their names."""
        return dict(zip((n.data for n in self.names_attr), self.tables, strict=True))

    def verify_(self) -> None:
        if len(self.names_attr) != len(self.tables):
            raise VerifyException(f"{len(self.names_attr)} names for {len(self.tables)} tables")


class _LayoutOp(IRDLOperation):
    """The base of packing and its inverse."""

    source = operand_def(TensorType)
    layout_attr = prop_def(ArrayAttr[ArrayAttr[IntegerAttr[I64]]], prop_name="layout")
    words = opt_prop_def(UnitAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(self, source: SSAValue, layout: Layout, result_type: Attribute):
        numbers = ((p.dim, p.size, int(p.inside), *([p.of] if p.of else [])) for p in layout.parts)
        parts = [ArrayAttr([number_attr(n) for n in part]) for part in numbers]
        properties = {"layout": ArrayAttr(parts), "words": UnitAttr() if layout.words else None}
        super().__init__(operands=[source], properties=properties, result_types=[result_type])

    @property
    def layout(self) -> Layout:
        numbers = ([n.value.data for n in part] for part in self.layout_attr)
        parts = tuple(Part(dim, size, bool(inside), *of) for dim, size, inside, *of in numbers)
        return Layout(parts, self.words is not None)

    def verify_types(self, plain: Attribute, packed: Attribute) -> None:
        layout, dims = self.layout, dims_of(plain)
        reason = layout.reason(len(dims))
        if reason is not None:
            raise VerifyException(reason)
        wanted, element = layout.stored_dims(dims), element_of(plain)
        if dims_of(packed) != wanted:
            raise VerifyException(f"{plain} packed has dims [{', '.join(map(str, wanted))}], not {packed}")
        if layout.words and element != BYTE:
            raise VerifyException(f"a layout in words needs elements of {BYTE}, not {plain}")
        if element_of(packed) != layout.stored_element(element):
            raise VerifyException(f"{plain} packed has elements {layout.stored_element(element)}, not {packed}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        source = parser.parse_unresolved_operand()
        layout = Layout.parse(parser)
        parser.parse_characters(":")
        operand = parser.resolve_operand(source, parser.parse_type())
        parser.parse_keyword("to")
        return cls(operand, layout, parser.parse_type())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_string(f" {self.layout} : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" to ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class PackOp(_LayoutOp):
    """A weight in another layout."""

    name = "fusion.pack"

    def verify_(self) -> None:
        self.verify_types(self.source.type, self.result.type)


@irdl_op_definition
class UnpackOp(_LayoutOp):
    """The packed weight, as seen by the nodes of a region."""

    name = "fusion.unpack"

    def verify_(self) -> None:
        self.verify_types(self.result.type, self.source.type)
        if not isinstance(self.parent_op(), RegionOp):
            raise VerifyException("fusion.unpack must be in a fusion.region")


class GroupOp(IRDLOperation):
    """The base of regions and programs: a name, tensor inputs and outputs, and a body isolated from above."""

    sym_name = prop_def(StringAttr)
    inputs = var_operand_def()
    outputs = var_result_def()
    body = region_def("single_block")

    @property
    def what(self) -> str:
        """The name of the kind of op in messages: `region` or `program`."""
        return self.name.partition(".")[2]

    @property
    def label(self) -> str:
        """The name of the group, used by remarks and reports."""
        return self.sym_name.data

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def yield_op(self) -> YieldOp:
        last = self.block.last_op
        assert isinstance(last, YieldOp)
        return last

    @property
    def yielded(self) -> tuple[SSAValue, ...]:
        """The inside values of the results, in order."""
        return tuple(self.yield_op.values)

    def verify_group(self) -> None:
        """Checks the types of operands and results; rejects an empty body."""
        here = f"{self.what} @{self.label}"
        terminator = self.block.last_op
        if not isinstance(terminator, YieldOp):
            raise VerifyException(f"{here} does not end with fusion.yield")
        _verify_types(here, "operand", self.operand_types, "argument", self.block.arg_types)
        _verify_types(here, "result", self.result_types, "yielded value", terminator.operand_types)
        if terminator.prev_op is None:
            raise VerifyException(f"{here} holds no node")
        if not self.results:
            raise VerifyException(f"{here} has no result")

    def print_head(self, printer: Printer) -> None:
        """Prints `@name (%arg = %operand : type, ...)`."""
        printer.print_string(" ")
        printer.print_symbol_name(self.label)
        printer.print_string(" (")
        printer.print_list(zip(self.block.args, self.inputs, strict=True), lambda pair: _print_binding(printer, *pair))
        printer.print_string(")")

    def print_tail(self, printer: Printer) -> None:
        """Prints `-> (type, ...) attributes {...} { ... }`."""
        printer.print_string(" -> (")
        printer.print_list(self.result_types, printer.print_attribute)
        printer.print_string(")")
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


@irdl_op_definition
class RegionOp(GroupOp):
    """A convex group of nodes compiled to one kernel."""

    name = "fusion.region"
    kernel = opt_prop_def(FlatSymbolRefAttrConstr)
    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove(), Pure())

    def __init__(
        self,
        sym_name: str,
        inputs: Sequence[SSAValue],
        result_types: Sequence[Attribute],
        body: Region,
        kernel: str | None = None,
        attributes: Mapping[str, Attribute] | None = None,
    ):
        super().__init__(
            operands=[inputs],
            result_types=[result_types],
            properties={
                "sym_name": StringAttr(sym_name),
                "kernel": None if kernel is None else SymbolRefAttr(kernel),
            },
            regions=[body],
            attributes=dict(attributes or {}),
        )

    @property
    def kernel_name(self) -> str | None:
        """The `loop.kernel` of the region; `None` before lowering."""
        return None if self.kernel is None else self.kernel.root_reference.data

    @kernel_name.setter
    def kernel_name(self, name: str) -> None:
        self.kernel = SymbolRefAttr(name)

    @property
    def batched(self) -> tuple[int, ...]:
        """The inputs whose first dim is a batch with independently treated elements; all results have this dim too.
        Empty without a batch."""
        found = self.attributes.get(BATCHED)
        return tuple(map(int, found.get_values())) if isinstance(found, DenseArrayBase) else ()

    def verify_(self) -> None:
        self.verify_group()
        for op in self.block.ops:
            if isinstance(op, GroupOp):
                raise VerifyException(f"region @{self.label} holds {op.what} @{op.label}; regions do not nest")
            if op is not self.yield_op and op.has_trait(IsTerminator):
                raise VerifyException(f"region @{self.label} holds the terminator '{op.name}'")
            for inner in op.regions:
                if inner.blocks:
                    raise VerifyException(f"region @{self.label} holds '{op.name}', which has a subgraph")

    @classmethod
    def parse(cls, parser: Parser) -> RegionOp:
        name, operands, arguments = _parse_head(parser)
        kernel = parser.parse_symbol_name().data if parser.parse_optional_keyword("kernel") is not None else None
        types, attributes, body = _parse_tail(parser, arguments)
        return cls(name, operands, types, body, kernel, attributes)

    def print(self, printer: Printer) -> None:
        self.print_head(printer)
        if self.kernel is not None:
            printer.print_string(" kernel ")
            printer.print_symbol_name(self.kernel.root_reference.data)
        self.print_tail(printer)


@irdl_op_definition
class ProgramOp(GroupOp):
    """Regions, with views between them; one custom op calls their kernels in order."""

    name = "fusion.program"
    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove(), Pure())

    def __init__(
        self,
        sym_name: str,
        inputs: Sequence[SSAValue],
        result_types: Sequence[Attribute],
        body: Region,
        attributes: Mapping[str, Attribute] | None = None,
    ):
        super().__init__(
            operands=[inputs],
            result_types=[result_types],
            properties={"sym_name": StringAttr(sym_name)},
            regions=[body],
            attributes=dict(attributes or {}),
        )

    @property
    def calls(self) -> tuple[RegionOp, ...]:
        """The regions, including those in loops, in call order."""
        return tuple(op for op in self.walk() if isinstance(op, RegionOp))

    @property
    def steps(self) -> tuple[Operation, ...]:
        """The top-level regions and loops of the program, in order."""
        return tuple(op for op in self.block.ops if is_step(op))

    def verify_(self) -> None:
        self.verify_group()
        if not self.steps:
            raise VerifyException(f"program @{self.label} holds no region")
        self._verify_steps(self.block)

    def _verify_steps(self, block: Block) -> None:
        """Checks a block: it may hold only regions, views, and loops over such blocks."""
        for op in block.ops:
            if (
                isinstance(op, (RegionOp, DimsOp))
                or op is block.last_op
                or op.name in ("onnx.Constant", "onnx.NoValue")
            ):
                continue
            if is_step(op):
                for region in op.regions:
                    self._verify_steps(region.block)
            elif op_name(op) not in VIEWS:
                raise VerifyException(
                    f"program @{self.label} holds '{op.name}'; it may hold regions, views, and loops of these"
                )

    @classmethod
    def parse(cls, parser: Parser) -> ProgramOp:
        name, operands, arguments = _parse_head(parser)
        types, attributes, body = _parse_tail(parser, arguments)
        return cls(name, operands, types, body, attributes)

    def print(self, printer: Printer) -> None:
        self.print_head(printer)
        self.print_tail(printer)


def is_step(op: Operation) -> bool:
    """True if an op of a program computes something: a region, or a loop over regions."""
    return isinstance(op, RegionOp) or is_loop(op)


def program_around(op: Operation) -> ProgramOp | None:
    """Returns the program around an op, directly or through the bodies of loops; None outside a program."""
    around = op.parent_op()
    while around is not None and not isinstance(around, ProgramOp):
        around = around.parent_op()
    return around


def _parse_head(parser: Parser) -> tuple[str, list[SSAValue], list[Parser.Argument]]:
    """Parses `@name (%arg = %operand : type, ...)`."""
    name = parser.parse_symbol_name().data
    bindings = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_binding(parser))
    operands = [parser.resolve_operand(operand, argument.type) for argument, operand in bindings]
    return name, operands, [argument for argument, _ in bindings]


def _parse_tail(
    parser: Parser, arguments: Sequence[Parser.Argument]
) -> tuple[list[Attribute], Mapping[str, Attribute], Region]:
    """Parses `-> (type, ...) attributes {...} { ... }`."""
    parser.parse_characters("->")
    types: list[Attribute] = list(parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type))
    attributes = parser.parse_optional_attr_dict_with_keyword()
    body = parser.parse_region(arguments)
    return types, dict(attributes.data) if attributes else {}, body


def _parse_binding(parser: Parser) -> tuple[Parser.Argument, UnresolvedOperand]:
    """Parses `%arg = %operand : type`."""
    argument = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    operand = parser.parse_unresolved_operand()
    parser.parse_punctuation(":")
    return argument.resolve(parser.parse_type()), operand


def _print_binding(printer: Printer, argument: SSAValue, operand: SSAValue) -> None:
    printer.print_ssa_value(argument)
    printer.print_string(" = ")
    printer.print_ssa_value(operand)
    printer.print_string(" : ")
    printer.print_attribute(argument.type)


def _verify_types(here: str, outside: str, outer: Sequence[Attribute], inside: str, inner: Sequence[Attribute]) -> None:
    if len(outer) != len(inner):
        raise VerifyException(f"{here} has {len(outer)} {outside}s, but {len(inner)} {inside}s")
    for index, (out, inn) in enumerate(zip(outer, inner, strict=True)):
        if out != inn:
            raise VerifyException(f"{here}: {outside} {index} has type {out}, but its {inside} has type {inn}")


Fusion = Dialect("fusion", [RegionOp, ProgramOp, DimsOp, PackOp, UnpackOp, MakeOp, TablesOp, YieldOp], [])
