"""A builder for blocks of the `tt` dialect: it broadcasts shapes, and emits integers for expressions over dims.

All blocks of a kernel have the same rank, one dim per launch dim with lanes. A value that depends on only some of them
has dims of size 1 for the others (`[1, 64]`); a value that depends on none is a single element. An op on two values
broadcasts them to a common shape, as late as possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from math import prod
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
from igniter.dialects.sym.expr import Call, Expr
from igniter.dialects.sym.lowering import Lowering
from igniter.dialects.sym.ranges import Ranges
from igniter.transforms.conversion.block_exprs import by_blocks


class BlockBuilder:
    """Appends ops to a block. `ranges` are those of the dims named in expressions."""

    def __init__(self, block: Block, ranges: Ranges, index: IntegerType = i64):
        self.block = block
        self.ranges = ranges
        self.index = index
        """The type of emitted expressions."""
        self.blocks: Mapping[str, int] = {}
        """The lanes of the dims whose quotients are those of the first element of a block (`by_blocks`)."""
        self.is_loop = False
        """True if the block is the body of a loop."""
        self._varying: dict[SSAValue, bool] = {}

    def inside(self, block: Block, *, is_loop: bool = False) -> BlockBuilder:
        """Returns the builder of a block inside of this one."""
        inner = BlockBuilder(block, self.ranges, self.index)
        inner.blocks, inner.is_loop = self.blocks, is_loop
        return inner

    def varies(self, value: SSAValue) -> bool:
        """True if a value may differ between the iterations of the loop whose body is the block."""
        if not self.is_loop:
            return False
        if value not in self._varying:
            owner = value.owner
            if isinstance(owner, Block):
                self._varying[value] = owner is self.block
            else:
                inside = owner.parent is self.block
                self._varying[value] = inside and (
                    isinstance(owner, tt.LoadOp) or any(self.varies(v) for v in owner.operands)
                )
        return self._varying[value]

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
        """Returns the conjunction of all conditions; None without conditions. Those of one shape are combined first,
        and small ones before large ones: few conditions then are of whole blocks."""
        together: dict[tuple[int, ...], SSAValue] = {}
        for condition in conditions:
            shape = tt.shape_of(condition.type)
            known = together.get(shape)
            together[shape] = condition if known is None else self.binary(arith.AndIOp, known, condition)
        found: SSAValue | None = None
        for shape in sorted(together, key=prod):
            found = together[shape] if found is None else self.binary(arith.AndIOp, found, together[shape])
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
        return _BlockExprs(self, env).lower(by_blocks(e, self.blocks))

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


class _BlockExprs(Lowering[SSAValue]):
    """Expressions as ops on integers and blocks of them."""

    def __init__(self, builder: BlockBuilder, env: Mapping[str, SSAValue]):
        self._builder = builder
        self._env = env

    @property
    def ranges(self) -> Ranges:
        return self._builder.ranges

    def lower(self, e: Expr) -> SSAValue:
        if not self._builder.blocks or len(e.terms) < 2:
            return super().lower(e)
        # What is the same in all iterations first, and small blocks before large ones: a compiler moves the sum of
        # the former out of the loop, and adds the rest once.
        terms = [self.term(monomial, c) for monomial, c in e.terms]
        terms.sort(key=lambda v: (self._builder.varies(v), prod(tt.shape_of(v.type))))
        fixed = [v for v in terms if not self._builder.varies(v)]
        parts: Iterable[list[SSAValue]] = (part for part in (fixed, terms[len(fixed) :]) if part)
        return reduce(self.add, [reduce(self.add, part) for part in parts])

    def ordered(self, values: Iterator[SSAValue]) -> list[SSAValue]:
        # Single elements first: values that are the same for all lanes are combined once.
        return sorted(values, key=lambda v: len(tt.shape_of(v.type)))

    def constant(self, value: int) -> SSAValue:
        return self._builder.number(value)

    def symbol(self, name: str) -> SSAValue:
        return self._env[name]

    def add(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._builder.binary(arith.AddiOp, a, b)

    def mul(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._builder.binary(arith.MuliOp, a, b)

    def floordiv(self, a: SSAValue, b: SSAValue, call: Call) -> SSAValue:
        builder = self._builder
        quotient = builder.binary(arith.DivSIOp, a, b)
        if self.is_exact(call):
            return quotient
        # Division truncates; subtract 1 if a negative number leaves a remainder.
        left = builder.binary(arith.SubiOp, a, self.mul(quotient, b))
        low = builder.below(left, builder.number(0))
        return builder.select(low, builder.binary(arith.SubiOp, quotient, builder.number(1)), quotient)

    def mod(self, a: SSAValue, b: SSAValue, call: Call) -> SSAValue:
        builder = self._builder
        left = builder.binary(arith.RemSIOp, a, b)
        if self.is_exact(call):
            return left
        low = builder.below(left, builder.number(0))
        return builder.select(low, builder.binary(arith.AddiOp, left, b), left)

    def minimum(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._builder.binary(arith.MinSIOp, a, b)

    def maximum(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._builder.binary(arith.MaxSIOp, a, b)


def common_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Returns the common broadcast shape."""
    blocks = [s for s in shapes if s]
    return tuple(max(dims) for dims in zip(*blocks, strict=True))
