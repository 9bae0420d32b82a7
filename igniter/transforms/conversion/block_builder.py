"""A builder for blocks of the `tt` dialect: it broadcasts shapes, and emits integers for expressions over dims.

All blocks of a kernel have the same rank, one dim per launch dim with lanes. A value that depends on only some of them
has dims of size 1 for the others (`[1, 64]`); a value that depends on none is a single element. An op on two values
broadcasts them to a common shape, as late as possible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    Float32Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from igniter.dialects import triton as tt
from igniter.dialects.arith import CmpiOp, ExtSIOp, SelectOp, TruncIOp, replace_element
from igniter.dialects.loop.attrs import as_integer
from igniter.dialects.sym.expr import Call, Expr, Sym
from igniter.dialects.sym.ranges import Ranges, is_nonneg


class BlockBuilder:
    """Appends ops to a block. `ranges` are those of the dims named in expressions."""

    def __init__(self, block: Block, ranges: Ranges, index: IntegerType = i64):
        self.block = block
        self.ranges = ranges
        self.index = index
        """The type of emitted expressions."""

    def add(self, op: Operation) -> SSAValue:
        """Appends an op with one result."""
        self.block.add_op(op)
        return op.results[0]

    # -- values -------------------------------------------------------------------------------------------------------

    def const(self, number: float, element: Attribute) -> SSAValue:
        """Returns a constant of one element."""
        integer = as_integer(element)
        if integer is not None:
            return self.add(arith.ConstantOp(IntegerAttr(int(number), integer, truncate_bits=True)))
        return self.add(arith.ConstantOp(FloatAttr(number, cast("AnyFloat", element))))

    def shaped(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """Broadcasts a value to a shape."""
        have = tt.shape_of(value.type)
        if have == tuple(shape):
            return value
        return self.add(tt.BroadcastOp(value, shape) if have else tt.SplatOp(value, shape))

    def together(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        """Broadcasts values to their common shape."""
        shape = common_shape([tt.shape_of(v.type) for v in values])
        return [self.shaped(v, shape) for v in values]

    def binary(self, op: Callable[[SSAValue, SSAValue], Operation], a: SSAValue, b: SSAValue) -> SSAValue:
        """Appends an elementwise op on two values of one element type."""
        return self.add(op(*self.together([a, b])))

    def select(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        """Selects `a` where a condition holds and `b` elsewhere."""
        return self.add(SelectOp(*self.together([condition, a, b])))

    def all_of(self, conditions: Sequence[SSAValue]) -> SSAValue | None:
        """Returns the conjunction of all conditions; None without conditions."""
        found: SSAValue | None = None
        for condition in conditions:
            found = condition if found is None else self.binary(arith.AndIOp, found, condition)
        return found

    def cast(self, op: type[Operation], value: SSAValue, element: Attribute) -> SSAValue:
        """Converts the element type."""
        return self.add(op(value, replace_element(value.type, element)))  # pyright: ignore[reportCallIssue]

    def lanes(self, count: int, place: int, rank: int) -> SSAValue:
        """Returns 0, 1, up to `count`, along one dim of blocks."""
        made = self.add(tt.MakeRangeOp(0, count))
        for k in range(rank):
            if k != place:
                made = self.add(tt.ExpandDimsOp(made, k))
        return made

    # -- integers -----------------------------------------------------------------------------------------------------

    def to_index(self, value: SSAValue) -> SSAValue:
        """Converts an integer to the index type."""
        have, want = tt.width_of(value.type), self.index.width.data
        if have == want:
            return value
        return self.cast(ExtSIOp if have < want else TruncIOp, value, self.index)

    def from_index(self, value: SSAValue, want: Attribute) -> SSAValue:
        """Converts an index to another integer type."""
        have, wide = tt.width_of(value.type), tt.width_of(want)
        if have == wide:
            return value
        return self.cast(ExtSIOp if have < wide else TruncIOp, value, want)

    def number(self, value: int) -> SSAValue:
        """Returns a constant index."""
        return self.const(value, self.index)

    def expr(self, e: Expr, env: Mapping[str, SSAValue]) -> SSAValue:
        """Emits an expression with the symbol values in `env`."""
        total: SSAValue | None = None
        # Single elements first: values that are the same for all lanes are added once.
        products = [self._term(atoms, factor, env) for atoms, factor in e.terms]
        for value in sorted(products, key=lambda v: len(tt.shape_of(v.type))):
            total = value if total is None else self.binary(arith.AddiOp, total, value)
        return self.number(0) if total is None else total

    def _term(self, atoms: Sequence[Sym | Call], factor: int, env: Mapping[str, SSAValue]) -> SSAValue:
        values = [env[a.name] if isinstance(a, Sym) else self._call(a, env) for a in atoms]
        values.sort(key=lambda v: len(tt.shape_of(v.type)))
        if factor != 1 or not values:
            values.insert(0, self.number(factor))
        made = values[0]
        for value in values[1:]:
            made = self.binary(arith.MuliOp, made, value)
        return made

    def _call(self, call: Call, env: Mapping[str, SSAValue]) -> SSAValue:
        args = [self.expr(a, env) for a in call.args]
        if call.fn in ("min", "max"):
            made = args[0]
            for other in args[1:]:
                made = self.binary(arith.MinSIOp if call.fn == "min" else arith.MaxSIOp, made, other)
            return made
        a, b = args
        exact = is_nonneg(call.args[0], self.ranges)
        if call.fn == "floordiv":
            quotient = self.binary(arith.DivSIOp, a, b)
            if exact:
                return quotient
            # Division truncates; subtract 1 if a negative number leaves a remainder.
            left = self.binary(arith.SubiOp, a, self.binary(arith.MuliOp, quotient, b))
            low = self.below(left, self.number(0))
            return self.select(low, self.binary(arith.SubiOp, quotient, self.number(1)), quotient)
        left = self.binary(arith.RemSIOp, a, b)
        if exact:
            return left
        low = self.below(left, self.number(0))
        return self.select(low, self.binary(arith.AddiOp, left, b), left)

    def below(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Emits `a < b` for integers."""
        return self.binary(lambda x, y: CmpiOp(x, y, "slt"), a, b)

    def nonneg(self, e: Expr, env: Mapping[str, SSAValue]) -> SSAValue:
        """Emits a test for `e >= 0`."""
        return self.binary(lambda x, y: CmpiOp(x, y, "sge"), self.expr(e, env), self.number(0))

    # -- floats -------------------------------------------------------------------------------------------------------

    def widened(self, value: SSAValue) -> SSAValue:
        """Widens a 16-bit float to f32; returns other values unchanged."""
        element = tt.element_type(value.type)
        if element.name in ("f16", "bf16"):
            return self.cast(arith.ExtFOp, value, Float32Type())
        return value


def common_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Returns the common broadcast shape."""
    blocks = [s for s in shapes if s]
    return tuple(max(dims) for dims in zip(*blocks, strict=True))
