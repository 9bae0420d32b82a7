"""Expressions as values of type `index`, and as vectors of them with a value for each lane.

4*i + v     vector.broadcast %at, arith.addi %splat, dense<[0, 1, 2, 3]>
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from igniter.backends.mlir.expressions import Expressions
from igniter.backends.mlir.kinds import INDEX, broadcast, constant
from igniter.backends.mlir.text import Writer
from igniter.dialects.sym.expr import Call, Expr
from igniter.dialects.sym.lowering import Lowering


class Scalars(Expressions):
    """Expressions over axes, symbols and indirect operands, which may be negative; a divisor is at least 1.

    An expression may be evaluated where its value is not used, with sizes of 0."""

    def is_exact(self, call: Call) -> bool:
        return False

    def floordiv(self, a: str, b: str, call: Call) -> str:
        return super().floordiv(a, self._divisor(b, call), call)

    def mod(self, a: str, b: str, call: Call) -> str:
        return super().mod(a, self._divisor(b, call), call)

    def _divisor(self, b: str, call: Call) -> str:
        return b if call.args[1].constant is not None else self.maximum(b, self.constant(1))


class Lanes(Lowering[str]):
    """Expressions with a value for each of `count` lanes. `vectors` are the names with a value for each lane."""

    def __init__(self, scalars: Scalars, vectors: Mapping[str, str], count: int):
        self._scalars = scalars
        self._writer: Writer = scalars.writer
        self._vectors = vectors
        self._kind = INDEX.with_lanes(count)

    def value(self, e: Expr) -> str:
        """Returns the vector of the values of `e`."""
        return self.lower(e)

    def lower(self, e: Expr) -> str:
        fixed = Expr({m: c for m, c in e.terms if self._vectors.keys().isdisjoint(Expr({m: c}).symbols)})
        varying = e - fixed
        if not varying.terms:
            return self._splat(self._scalars.value(fixed))
        total = super().lower(varying)
        return self.add(total, self._splat(self._scalars.value(fixed))) if fixed.terms else total

    def all_at_least_zero(self, guards: Sequence[Expr]) -> str:
        """Returns a vector of `i1`: true for a lane where every guard is >= 0."""
        zero = constant(self._writer, self._kind, 0)
        tests = [self._let(f"arith.cmpi sge, {self.value(g)}, {zero}") for g in guards]
        while len(tests) > 1:
            kind = self._kind.of("i1")
            tests[:2] = [self._writer.let("in", f"arith.andi {tests[0]}, {tests[1]} : {kind}")]
        return tests[0]

    def _splat(self, value: str) -> str:
        return broadcast(self._writer, value, INDEX, self._kind.lanes)

    def _let(self, text: str) -> str:
        return self._writer.let("at", f"{text} : {self._kind}")

    # -- the operations of `Lowering` ---------------------------------------------------------------------------------

    def ordered(self, values: Iterator[str]) -> list[str]:
        return list(values)

    def constant(self, value: int) -> str:
        return constant(self._writer, self._kind, value)

    def symbol(self, name: str) -> str:
        return self._vectors[name] if name in self._vectors else self._splat(self._scalars.symbol(name))

    def add(self, a: str, b: str) -> str:
        return self._let(f"arith.addi {a}, {b}")

    def mul(self, a: str, b: str) -> str:
        return self._let(f"arith.muli {a}, {b}")

    def floordiv(self, a: str, b: str, call: Call) -> str:
        return self._let(f"arith.floordivsi {a}, {self._divisor(b, call)}")

    def mod(self, a: str, b: str, call: Call) -> str:
        b = self._divisor(b, call)
        multiple = self._let(f"arith.muli {self._let(f'arith.floordivsi {a}, {b}')}, {b}")
        return self._let(f"arith.subi {a}, {multiple}")

    def _divisor(self, b: str, call: Call) -> str:
        return b if call.args[1].constant is not None else self.maximum(b, self.constant(1))

    def minimum(self, a: str, b: str) -> str:
        return self._let(f"arith.minsi {a}, {b}")

    def maximum(self, a: str, b: str) -> str:
        return self._let(f"arith.maxsi {a}, {b}")


def iota(writer: Writer, lanes: int) -> str:
    """Writes the vector of the numbers of the lanes."""
    listed = ", ".join(map(str, range(lanes)))
    return writer.let("lane", f"arith.constant dense<[{listed}]> : {INDEX.with_lanes(lanes)}")
