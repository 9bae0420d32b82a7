"""Reductions in a body: how an output is folded, with which combiner, over which terms.

    ^bb0(%a: f32, %b: f32, %out: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %out, %p : f32                 %out folded by add over %p
      linalg.yield %s : f32

A nest folds from the identity in any order, as `arith.addf` with `reassoc` does; Igniter allows this for sums. The
initial value of the output is combined afterwards, unless it is the identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType, Signedness
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from igniter.dialects.loop.attrs import Combiner, is_float
from igniter.dialects.loop.combiners import identity
from igniter.dialects.onnx.lowering.scalar import Number, compute_type, int_bits

COMBINERS: dict[str, Combiner] = {
    "arith.addf": "add",
    "arith.addi": "add",
    "arith.subf": "add",
    "arith.subi": "add",
    "arith.mulf": "mul",
    "arith.muli": "mul",
    "arith.maximumf": "max",
    "arith.maxnumf": "max",
    "arith.maxsi": "max",
    "arith.maxui": "max",
    "arith.minimumf": "min",
    "arith.minnumf": "min",
    "arith.minsi": "min",
    "arith.minui": "min",
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
}
"""The combiner of an op between an output and a term."""


@dataclass(frozen=True)
class Fold:
    """An output folded by an op over terms that do not depend on it."""

    op: Operation
    terms: tuple[SSAValue, ...]

    @property
    def combiner(self) -> Combiner:
        return COMBINERS[self.op.name]

    @property
    def subtracts(self) -> bool:
        return self.op.name in ("arith.subf", "arith.subi")

    @property
    def skips_nan(self) -> bool:
        """True for the maximum and minimum of the numbers among the terms."""
        return self.op.name in ("arith.maxnumf", "arith.minnumf")

    def accumulator(self, element: Attribute) -> Attribute:
        """Returns the element type of the fold: f32 for 16-bit floats, unsigned for unsigned extremes."""
        if self.op.name in ("arith.maxui", "arith.minui") and int_bits(element) > 1:
            return IntegerType(int_bits(element), Signedness.UNSIGNED)
        if self.op.name in ("arith.maxsi", "arith.minsi") and int_bits(element) == 1:
            # The signed values of i1 are 0 and -1.
            return element
        return compute_type(element)


def fold_of(block: Block, output: BlockArgument, yielded: SSAValue, outputs: Sequence[BlockArgument]) -> Fold | None:
    """Returns how a body folds an output; None for another recurrence."""
    reads = _Reads(frozenset(outputs))
    owner = yielded.owner
    if not isinstance(owner, Operation) or owner.name not in COMBINERS or _is_bit_extreme(owner):
        return None
    terms: list[SSAValue] = []
    value, first = yielded, owner
    while value is not output:
        op = value.owner
        if not isinstance(op, Operation) or op.name != first.name:
            return None
        inner, other = op.operands
        if reads.depends(other) and not reads.depends(inner) and not op.name.startswith("arith.sub"):
            inner, other = other, inner
        if reads.depends(other):
            return None
        terms.append(other)
        value = inner
    return Fold(first, tuple(terms))


def _is_bit_extreme(op: Operation) -> bool:
    return op.name in ("arith.maxsi", "arith.minsi") and int_bits(op.results[0].type) == 1


class _Reads:
    """The dependence of values on outputs."""

    def __init__(self, outputs: frozenset[SSAValue]):
        self.outputs = outputs
        self.depends = cache(self._depends)

    def _depends(self, value: SSAValue) -> bool:
        if value in self.outputs:
            return True
        op = value.owner
        return isinstance(op, Operation) and any(self.depends(v) for inner in op.walk() for v in inner.operands)


def depends_on(value: SSAValue, outputs: Sequence[BlockArgument]) -> bool:
    """True if a value of a body depends on one of its outputs."""
    return _Reads(frozenset(outputs)).depends(value)


def is_identity(number: Number | None, combiner: Combiner, element: Attribute) -> bool:
    """True if combining with the number changes nothing."""
    if number is None:
        return False
    value = identity(combiner, element).value
    if isinstance(value, FloatAttr):
        return float(number) == value.value.data
    assert isinstance(value, IntegerAttr)
    bits = (1 << int_bits(element)) - 1
    return int(number) & bits == value.value.data & bits


def products_in_sums(block: Block, terms: Sequence[SSAValue]) -> set[SSAValue]:
    """Returns the terms that are products of 16-bit floats read by nothing else."""
    found: set[SSAValue] = set()
    for term in terms:
        owner = term.owner
        narrow = isinstance(term.type, AnyFloat) and is_float(term.type) and compute_type(term.type) != term.type
        if narrow and isinstance(owner, arith.MulfOp) and len(list(term.uses)) == 1:
            found.add(term)
    return found
