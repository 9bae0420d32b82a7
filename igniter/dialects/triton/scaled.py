"""Products of blocks whose factors have scales of their own (microscaling formats); the package's docstring defines the
op."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, f32, i8, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import AttrSizedOperandSegments, irdl_op_definition, operand_def, opt_operand_def, prop_def, result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from igniter.dialects.triton.blocks import BlockOp
from igniter.dialects.triton.types import block_of, element_type, shape_of

FORMATS = {"e4m3": 0, "e5m2": 1, "e2m1": 4}
"""The formats of factors, and Triton's numbers for them: floats of 8 bits, and of 4 bits, two in a byte."""

GROUP = 32
"""The elements along the depth that share a scale."""


def elements_of_byte(format: str) -> int:
    """Returns the elements of a format in a byte, from the low bits on."""
    return 2 if format == "e2m1" else 1


@irdl_op_definition
class DotScaledOp(BlockOp):
    """A product `(a * a_scale) @ (b * b_scale) + c`: bytes of small floats, with a power of two for 32 along the depth.

    A scale is a byte e with the value 2^(e - 127). The scales are [rows, depth / 32] and [columns, depth / 32].
    """

    name = "tt.dot_scaled"
    a = operand_def()
    b = operand_def()
    c = operand_def()
    a_scale = opt_operand_def()
    b_scale = opt_operand_def()
    a_elem_type = prop_def(IntegerAttr)
    b_elem_type = prop_def(IntegerAttr)
    fast_math = prop_def(BoolAttr, prop_name="fastMath")
    lhs_k_pack = prop_def(BoolAttr)
    rhs_k_pack = prop_def(BoolAttr)
    result = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(self, a: SSAValue, a_scale: SSAValue, b: SSAValue, b_scale: SSAValue, c: SSAValue, formats: str):
        left, _, right = formats.partition("*")
        super().__init__(
            operands=[a, b, c, a_scale, b_scale],
            properties={
                "a_elem_type": IntegerAttr(FORMATS[left], i32),
                "b_elem_type": IntegerAttr(FORMATS[right], i32),
                "fastMath": BoolAttr.from_bool(False),
                "lhs_k_pack": BoolAttr.from_bool(True),
                "rhs_k_pack": BoolAttr.from_bool(True),
            },
            result_types=[c.type],
        )

    @property
    def formats(self) -> tuple[str, str]:
        """The formats of both factors."""
        names = {number: name for name, number in FORMATS.items()}
        numbers = (self.a_elem_type.value.data, self.b_elem_type.value.data)
        return names.get(numbers[0], "?"), names.get(numbers[1], "?")

    @classmethod
    def parse(cls, parser: Parser) -> DotScaledOp:
        names = [parser.parse_unresolved_operand()]
        for _ in range(4):
            parser.parse_punctuation(",")
            names.append(parser.parse_unresolved_operand())
        parser.parse_punctuation(",")
        found: list[str] = []
        for key in ("lhs", "rhs"):
            parser.parse_keyword(key)
            parser.parse_punctuation("=")
            place = parser.pos
            found.append(parser.parse_identifier())
            if found[-1] not in FORMATS:
                parser.raise_error(f"unknown format of tt.dot_scaled; known: {', '.join(FORMATS)}", place)
        parser.parse_punctuation(":")
        types: list[Attribute] = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        a, a_scale, b, b_scale, c = parser.resolve_operands(names, types, parser.pos)
        return cls(a, a_scale, b, b_scale, c, "*".join(found))

    def print(self, printer: Printer) -> None:
        given = [v for v in (self.a, self.a_scale, self.b, self.b_scale, self.c) if v is not None]
        printer.print_string(" ")
        printer.print_list(given, printer.print_ssa_value)
        printer.print_string(", lhs = {} rhs = {} : ".format(*self.formats))
        printer.print_list([v.type for v in given], printer.print_attribute)

    def verify_shapes(self) -> None:
        left, right = self.formats
        if "?" in (left, right) or self.a_scale is None or self.b_scale is None:
            raise VerifyException(f"tt.dot_scaled needs two scales, and factors of {', '.join(FORMATS)}")
        if any(element_type(v.type) != i8 for v in (self.a, self.b, self.a_scale, self.b_scale)):
            raise VerifyException("the factors and the scales of tt.dot_scaled must be bytes")
        a, b = shape_of(self.a.type), shape_of(self.b.type)
        if len(a) != 2 or len(b) != 2 or a[1] * elements_of_byte(left) != b[0] * elements_of_byte(right):
            raise VerifyException(f"tt.dot_scaled of {self.a.type} and {self.b.type}: the depths differ")
        depth = a[1] * elements_of_byte(left)
        scales = [(a[0], depth // GROUP), (b[1], depth // GROUP)]
        if [shape_of(self.a_scale.type), shape_of(self.b_scale.type)] != scales:
            raise VerifyException(
                f"tt.dot_scaled needs scales of {scales[0]} and of {scales[1]}: one for {GROUP} depths"
            )
        if self.c.type != block_of(f32, (a[0], b[1])) or self.result.type != self.c.type:
            raise VerifyException(f"tt.dot_scaled of {self.a.type} and {self.b.type} does not give {self.c.type}")
