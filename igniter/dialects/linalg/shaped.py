"""The ops of `linalg` with a syntax of their own: map, reduce, transpose, broadcast, softmax, contract, elementwise.

linalg.map { math.exp } ins(%x : type) outs(%y : type)
linalg.map ins(%x : type) outs(%y : type) (%in: f32) { op* linalg.yield %v : f32 }
linalg.reduce { arith.addf } ins(%x : type) outs(%y : type) dimensions = [1]
linalg.reduce ins(%x : type) outs(%y : type) dimensions = [1] (%in: f32, %out: f32) { op* linalg.yield }
linalg.transpose ins(%x : type) outs(%y : type) permutation = [1, 0]
linalg.broadcast ins(%x : type) outs(%y : type) dimensions = [0]
linalg.softmax dimension(1) ins(%x : type) outs(%y : type) -> type
linalg.contract indexing_maps = [map, map, map] ins(%a, %b : types) outs(%c : type) -> type
linalg.elementwise kind=#linalg.elementwise_kind<add> (indexing_maps = [map, ...])? ins(...) outs(...) -> type
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import AffineMapAttr, DenseArrayBase, IntegerAttr, TensorType, i64
from xdsl.dialects.linalg.ops import YieldOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def, region_def, var_region_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.linalg import bodies
from igniter.dialects.linalg.enums import ElementwiseKindAttr, word_of
from igniter.dialects.linalg.structure import (
    Map,
    Structure,
    StructuredOp,
    axis_name,
    element_type_of,
    map_of,
    maps_in,
    rank_of,
)
from igniter.dialects.linalg.text import (
    parse_body,
    parse_group,
    parse_integers,
    parse_maps,
    parse_results,
    print_body,
    print_dict,
    print_group,
    print_integers,
    print_results,
)
from igniter.dialects.sym.expr import Expr


def _axes(numbers: Sequence[int]) -> Map:
    return tuple(Expr.of(axis_name(k)) for k in numbers)


def _tensors(values: Sequence[SSAValue]) -> list[Attribute]:
    """Returns the types of the results that the op has on tensors."""
    return [v.type for v in values if isinstance(v.type, TensorType)]


def _short_body(parser: Parser) -> tuple[str, dict[str, Attribute]] | None:
    """Parses `{ dialect.op attr-dict? }`, the short form of a body of one op."""
    if parser.parse_optional_punctuation("{") is None:
        return None
    name = parser.parse_identifier("the name of an op")
    given = parser.parse_optional_attr_dict()
    parser.parse_punctuation("}")
    return name, given


def _body_of(parser: Parser, short: tuple[str, dict[str, Attribute]], types: Sequence[Attribute], fold: bool) -> Region:
    """Returns the body `op(%in, ...)` of the short form, or `op(%out, %in)` for a fold."""
    name, attributes = short
    op_class = parser.ctx.get_optional_op(name)
    if op_class is None:
        parser.raise_error(f"'{name}' is no op with a short form here; write the body")
    block = Block(arg_types=types)
    half = len(types) // 2
    args = [*block.args[half:], *block.args[:half]] if fold else block.args[: len(types) - 1]
    known = op_class.get_irdl_definition() if hasattr(op_class, "get_irdl_definition") else None  # pyright: ignore
    properties: dict[str, Attribute] = {}
    for key, definition in known.properties.items() if known is not None else ():  # pyright: ignore
        if definition.default_value is not None:  # pyright: ignore
            properties[key] = definition.default_value  # pyright: ignore
    made: Operation = op_class.create(operands=list(args), result_types=[types[-1]], properties=properties)
    made.attributes |= attributes
    block.add_ops([made, YieldOp(made.results[0])])
    return Region(block)


@irdl_op_definition
class MapOp(StructuredOp):
    """A function of the elements of tensors of equal dims."""

    name = "linalg.map"
    body = region_def("single_block")

    def structure(self) -> Structure:
        rank = rank_of(self.outputs[0])
        maps = tuple(_axes(range(rank)) for _ in (*self.inputs, *self.outputs))
        return Structure(("parallel",) * rank, maps, self._whole())

    def _whole(self) -> Block:
        """Returns the body with an argument for the output, which older versions of MLIR omit."""
        block = self.body.block
        if len(block.args) == len(self.inputs) + len(self.outputs):
            return block
        copy = self.body.clone().block
        for value in self.outputs:
            copy.insert_arg(element_type_of(value), len(copy.args))
        return copy

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        short = _short_body(parser)
        inputs, outputs = parse_group(parser, "ins"), parse_group(parser, "outs")
        given = parser.parse_optional_attr_dict()
        types = [element_type_of(v) for v in (*inputs, *outputs)]
        body = parse_body(parser) if short is None else _body_of(parser, short, types, fold=False)
        return cls.build(operands=[inputs, outputs], result_types=[_tensors(outputs)], attributes=given, regions=[body])

    def print(self, printer: Printer) -> None:
        print_group(printer, "ins", self.inputs)
        print_group(printer, "outs", self.outputs)
        print_dict(printer, self.attributes)
        print_body(printer, self.body.block)


@irdl_op_definition
class ReduceOp(StructuredOp):
    """A fold along dims, with an explicit body."""

    name = "linalg.reduce"
    dimensions = prop_def(DenseArrayBase.constr(i64))
    body = region_def("single_block")

    def structure(self) -> Structure:
        folded = self.dimensions.get_values()
        rank = rank_of(self.inputs[0])
        kept = [k for k in range(rank) if k not in folded]
        maps = [_axes(range(rank)) for _ in self.inputs] + [_axes(kept) for _ in self.outputs]
        kinds = tuple("reduction" if k in folded else "parallel" for k in range(rank))
        return Structure(kinds, tuple(maps), self.body.block)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        short = _short_body(parser)
        inputs, outputs = parse_group(parser, "ins"), parse_group(parser, "outs")
        dims = parse_integers(parser, "dimensions")
        given = parser.parse_optional_attr_dict()
        types = [element_type_of(v) for v in (*inputs, *outputs)]
        body = parse_body(parser) if short is None else _body_of(parser, short, types, fold=True)
        return cls.build(
            operands=[inputs, outputs],
            result_types=[_tensors(outputs)],
            properties={"dimensions": DenseArrayBase.from_list(i64, dims)},
            attributes=given,
            regions=[body],
        )

    def print(self, printer: Printer) -> None:
        print_group(printer, "ins", self.inputs)
        print_group(printer, "outs", self.outputs)
        print_integers(printer, "dimensions", self.dimensions.get_values())
        print_dict(printer, self.attributes)
        print_body(printer, self.body.block)


class _Movement(StructuredOp):
    """The base of ops that copy elements."""

    shapes = var_region_def()
    KEY: ClassVar[str] = ""

    def numbers(self) -> tuple[int, ...]:
        """Returns the op's list of dims."""
        attr = self.properties.get(self.KEY)
        if not isinstance(attr, DenseArrayBase):
            raise VerifyException(f"'{self.name}' needs {self.KEY}")
        return tuple(int(k) for k in attr.get_values())

    def input_map(self, rank: int) -> Map:
        """Returns the subscripts of the input, for an output of this rank."""
        raise NotImplementedError

    def structure(self) -> Structure:
        rank = rank_of(self.outputs[0])
        body = bodies.copied([element_type_of(v) for v in (*self.inputs, *self.outputs)], False)
        return Structure(("parallel",) * rank, (self.input_map(rank), _axes(range(rank))), body)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        inputs, outputs = parse_group(parser, "ins"), parse_group(parser, "outs")
        numbers = parse_integers(parser, cls.KEY)
        given = parser.parse_optional_attr_dict()
        return cls.build(
            operands=[inputs, outputs],
            result_types=[_tensors(outputs)],
            properties={cls.KEY: DenseArrayBase.from_list(i64, numbers)},
            attributes=given,
            regions=[[]],
        )

    def print(self, printer: Printer) -> None:
        print_group(printer, "ins", self.inputs)
        print_group(printer, "outs", self.outputs)
        print_integers(printer, self.KEY, self.numbers())
        print_dict(printer, self.attributes)


@irdl_op_definition
class TransposeOp(_Movement):
    """Output dim k is input dim `permutation[k]`."""

    name = "linalg.transpose"
    KEY: ClassVar[str] = "permutation"
    permutation = prop_def(DenseArrayBase.constr(i64))

    def input_map(self, rank: int) -> Map:
        numbers = self.numbers()
        if sorted(numbers) != list(range(rank)):
            raise VerifyException(f"'{self.name}': {list(numbers)} is no permutation of {rank} dims")
        return _axes([numbers.index(k) for k in range(rank)])


@irdl_op_definition
class BroadcastOp(_Movement):
    """The input repeated along the added output dims `dimensions`."""

    name = "linalg.broadcast"
    KEY: ClassVar[str] = "dimensions"
    dimensions = prop_def(DenseArrayBase.constr(i64))

    def input_map(self, rank: int) -> Map:
        added = self.numbers()
        if any(not 0 <= k < rank for k in added):
            raise VerifyException(f"'{self.name}': dimensions {list(added)} are not all below the rank {rank}")
        return _axes([k for k in range(rank) if k not in added])


@irdl_op_definition
class SoftmaxOp(StructuredOp):
    """exp(x - max) / sum(exp(x - max)) along a dim. It is several nests, and has no structure."""

    name = "linalg.softmax"
    dimension = prop_def(IntegerAttr)

    def structure(self) -> Structure:
        raise VerifyException(f"'{self.name}' has no single structure")

    def verify_(self) -> None:
        rank = rank_of(self.inputs[0]) if len(self.inputs) == 1 else -1
        if len(self.outputs) != 1 or not 0 <= self.dimension.value.data < rank or rank != rank_of(self.outputs[0]):
            raise VerifyException(f"'{self.name}' takes one input and one output of a rank above its dimension")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        given = parser.parse_optional_attr_dict()
        parser.parse_keyword("dimension")
        with parser.in_parens():
            dimension = parser.parse_integer()
        inputs, outputs = parse_group(parser, "ins"), parse_group(parser, "outs")
        return cls.build(
            operands=[inputs, outputs],
            result_types=[parse_results(parser)],
            properties={"dimension": IntegerAttr(dimension, i64)},
            attributes=given,
        )

    def print(self, printer: Printer) -> None:
        print_dict(printer, self.attributes)
        printer.print_string(f" dimension({self.dimension.value.data})")
        print_group(printer, "ins", self.inputs)
        print_group(printer, "outs", self.outputs)
        print_results(printer, [r.type for r in self.res])


class _WithMaps(StructuredOp):
    """The base of ops with maps and without a body in the text."""

    maps_attr = opt_prop_def(Attribute, prop_name="indexing_maps")
    cast_fn = opt_prop_def(Attribute, prop_name="cast")
    shapes = var_region_def()

    def given_maps(self) -> list[AffineMapAttr] | None:
        """Returns the maps in the text; None if there are none."""
        if self.maps_attr is None:
            return None
        found = maps_in(self.maps_attr)
        if found is None:
            raise VerifyException(f"'{self.name}': indexing_maps is not a list of affine maps")
        return found

    def body_of(self, types: Sequence[Attribute]) -> Block:
        """Returns the body for elements of these types."""
        raise NotImplementedError

    def structure(self) -> Structure:
        operands = [*self.inputs, *self.outputs]
        body = self.body_of([element_type_of(v) for v in operands])
        given = self.given_maps()
        if given is None:
            rank = rank_of(self.outputs[0])
            return Structure(("parallel",) * rank, tuple(_axes(range(rank)) for _ in operands), body)
        written = {e.symbol for e in map_of(given[-1])}
        axes = [axis_name(k) for k in range(given[0].data.num_dims)]
        kinds = tuple("parallel" if a in written else "reduction" for a in axes)
        return Structure(kinds, tuple(map(map_of, given)), body)

    @classmethod
    def parse_kind(cls, parser: Parser) -> dict[str, Attribute]:
        """Parses the words before the maps."""
        return {}

    def print_kind(self, printer: Printer) -> None:
        """Prints the inverse of `parse_kind`."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties = cls.parse_kind(parser)
        maps = parse_maps(parser)
        given = parser.parse_optional_attr_dict()
        inputs, outputs = parse_group(parser, "ins"), parse_group(parser, "outs")
        given |= parser.parse_optional_attr_dict()
        properties |= {"cast": given.pop("cast")} if "cast" in given else {}
        properties |= {} if maps is None else {"indexing_maps": maps}
        return cls.build(
            operands=[inputs, outputs],
            result_types=[parse_results(parser)],
            properties=properties,
            attributes=given,
            regions=[[]],
        )

    def print(self, printer: Printer) -> None:
        self.print_kind(printer)
        if self.maps_attr is not None:
            printer.print_string(" indexing_maps = ")
            printer.print_attribute(self.maps_attr)
        print_dict(printer, {**({} if self.cast_fn is None else {"cast": self.cast_fn}), **self.attributes})
        print_group(printer, "ins", self.inputs)
        print_group(printer, "outs", self.outputs)
        print_results(printer, [r.type for r in self.res])


@irdl_op_definition
class ContractOp(_WithMaps):
    """A sum of products over the axes that are not in the output."""

    name = "linalg.contract"

    def body_of(self, types: Sequence[Attribute]) -> Block:
        return bodies.product_sum(types, word_of(self.cast_fn) == "cast_unsigned")


@irdl_op_definition
class ElementwiseOp(_WithMaps):
    """A function of elements, named by `kind`."""

    name = "linalg.elementwise"
    kind = prop_def(ElementwiseKindAttr)

    def body_of(self, types: Sequence[Attribute]) -> Block:
        word = self.kind.data
        if len(types) == 2:
            return bodies.unary_of(word)(types, False)
        return bodies.selected(types, False) if word == "select" else bodies.binary_of(word)(types, False)

    @classmethod
    def parse_kind(cls, parser: Parser) -> dict[str, Attribute]:
        parser.parse_keyword("kind")
        parser.parse_punctuation("=")
        return {"kind": parser.parse_attribute()}

    def print_kind(self, printer: Printer) -> None:
        printer.print_string(" kind=")
        printer.print_attribute(self.kind)
