"""Whether every access stays inside of its tensor or buffer, and every element is written once: proofs, or reasons.

    unproven_accesses(kernel) -> [Unproven("matmul", "read of k + 1 in a dim of k: ...")]

A subscript is in bounds when `subscript >= 0` and `dim - 1 - subscript >= 0` are proven from the ranges of the axes and
the guards of the access (a guard is a fact where the access happens). Sound and incomplete: what is not proven may
still be right, and what is proven cannot be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from igniter.analysis.expr import ONE, ZERO, Atom, Call, Expr, Ranges, floordiv, is_nonneg
from igniter.analysis.expr import call as rebuild
from igniter.analysis.reindexing import solve
from igniter.dialects.loop import ForOp, FuncOp, IfOp, KernelOp, MemoryOp, NestOp
from igniter.dialects.sym import dims_of

INDIRECT = re.compile(r"_\d+")
MAX_FACTS = 2
"""How many guards one proof may combine."""
MAX_CALLS = 6
"""How many divisions and extrema of one expression are looked into."""


@dataclass(frozen=True)
class Unproven:
    """An access that is not proven to be in bounds, or a result that may be written twice."""

    where: str
    """The label of the nest, or the name of the function."""
    reason: str


# -- proofs -----------------------------------------------------------------------------------------------------------


def proven(e: Expr, ranges: Ranges, facts: Sequence[Expr] = ()) -> bool:
    """Whether `e >= 0` follows from the ranges of the axes and from every one of `facts` being >= 0."""
    if _follows(e, _with_indirect(ranges, facts), facts, MAX_FACTS):
        return True
    # `n - n mod 8` is a multiple of 8 that the quotient shows and the remainder hides.
    axes = {name: (without_mod(first), without_mod(end)) for name, (first, end) in ranges.axes.items()}
    facts = [without_mod(f) for f in facts]
    return _follows(without_mod(e), _with_indirect(Ranges(axes), facts), facts, MAX_FACTS)


def without_mod(e: Expr) -> Expr:
    """`e` with `a mod b` written as `a - b*(a floordiv b)`."""

    def expand(atom: Atom) -> Expr:
        if not isinstance(atom, Call):
            return Expr({(atom,): 1})
        args = [without_mod(a) for a in atom.args]
        return args[0] - args[1] * floordiv(args[0], args[1]) if atom.fn == "mod" else rebuild(atom.fn, args)

    return e.map_atoms(expand) if any(isinstance(a, Call) for m, _ in e.terms for a in m) else e


def _follows(e: Expr, ranges: Ranges, facts: Sequence[Expr], depth: int) -> bool:
    """`e >= 0` is proven when `e - k*fact >= 0` is, for a factor `k >= 0`."""
    if _holds(e, ranges, MAX_CALLS):
        return True
    if depth == 0:
        return False
    for number, fact in enumerate(facts):
        others = facts[number + 1 :]
        if any(_follows(e - k * fact, ranges, others, depth - 1) for k in _factors(e, fact, ranges)):
            return True
    return False


def _factors(e: Expr, fact: Expr, ranges: Ranges) -> list[Expr]:
    """Factors under which a fact takes a name out of `e`, and 1."""
    found = [ONE] if fact.symbols & e.symbols else []
    for name in sorted(fact.symbols & e.symbols):
        inner, outer = fact.coefficient(name), e.coefficient(name)
        if inner is not None and outer is not None and inner.constant in (1, -1):
            factor = outer * inner
            if factor not in found and is_nonneg(factor, ranges):
                found.append(factor)
    return found


def _with_indirect(ranges: Ranges, facts: Sequence[Expr]) -> Ranges:
    """`ranges` with those that guards give to indirect operands: `_0 >= 0` and `9 - _0 >= 0` make 0 to 10."""
    names = {n for f in facts for n in f.symbols if INDIRECT.fullmatch(n)}
    axes = dict(ranges.axes)
    for name in sorted(names):
        lows = [-f.without(name) for f in facts if f.coefficient(name) == ONE]
        ends = [f.without(name) + 1 for f in facts if f.coefficient(name) == -1]
        if lows and ends:
            axes[name] = lows[0], ends[0]
    return Ranges(axes)


def _holds(e: Expr, ranges: Ranges, depth: int) -> bool:
    if is_nonneg(e, ranges):
        return True
    if depth == 0:
        return False
    found = _first_call(e)
    if found is None:
        return _holds_at_end(e, ranges, depth)
    call, coefficient = found
    if call.fn in ("min", "max"):
        # The least argument bounds from above whatever subtracts the minimum: one that suffices is enough.
        choices = (_holds(_replaced(e, call, a), ranges, depth - 1) for a in call.args)
        return all(choices) if (coefficient > 0) == (call.fn == "min") else any(choices)
    if any(_holds(_without_quotient(e, call, c), ranges, depth - 1) for c in _multiples(e, call)):
        return True
    inner = _range_of(call, ranges, depth)
    if inner is None:
        return False
    name = f"%{len(ranges.axes)}"
    wider = Ranges({**ranges.axes, name: inner})
    return _holds(_replaced(e, call, Expr.of(name)), wider, depth - 1)


def _holds_at_end(e: Expr, ranges: Ranges, depth: int) -> bool:
    """`_holds` with the innermost axis that ends at a call (a tile at the edge) at the end where `e` is smallest."""
    for name, (first, end) in list(ranges.axes.items())[::-1]:
        coefficient = e.coefficient(name)
        if name not in e.symbols or coefficient is None or (_first_call(end) is None and _first_call(first) is None):
            continue
        inner = Ranges({k: v for k, v in ranges.axes.items() if k != name})
        for sign, bound in ((1, first), (-1, end - 1)):
            if is_nonneg(coefficient * sign, ranges):
                return _holds(e.without(name) + coefficient * bound, inner, depth - 1)
    return False


def _first_call(e: Expr) -> tuple[Call, int] | None:
    """A call that is a term of its own, with its coefficient; extrema only where their sign is that of a number."""
    for monomial, c in e.terms:
        for atom in monomial:
            if isinstance(atom, Call) and (atom.fn in ("floordiv", "mod") or len(monomial) == 1):
                return atom, c
    return None


def _multiples(e: Expr, call: Call) -> list[int]:
    """The coefficient of a quotient that is a term of its own, where the (constant) divisor divides it."""
    divisor = call.args[1].constant
    if call.fn != "floordiv" or not divisor:
        return []
    return [c for monomial, c in e.terms if monomial == (call,) and c % divisor == 0]


def _without_quotient(e: Expr, call: Call, c: int) -> Expr:
    """At most `e`, since `b*(a floordiv b)` is at most `a` and at least `a - b + 1`."""
    a, b = call.args
    divisor = b.constant or 1
    return e - Expr({(call,): c}) + (a if c < 0 else a - b + 1) * (c // divisor)


def _replaced(e: Expr, call: Call, by: Expr) -> Expr:
    def swap(atom: Atom) -> Expr:
        return by if atom == call else Expr({(atom,): 1})

    return e.map_atoms(swap)


def _range_of(call: Call, ranges: Ranges, depth: int) -> tuple[Expr, Expr] | None:
    """What a quotient or a remainder can be, as `(first, end)`."""
    a, b = call.args
    if call.fn == "mod":
        return ZERO, b
    if not _holds(a, ranges, depth - 1):
        return None
    greatest = upper_bound(a, ranges)
    if greatest is None:
        return None
    whole = floordiv(greatest + 1, b)
    # Below a whole multiple of the divisor, whatever the divisor is.
    return ZERO, whole if whole * b == greatest + 1 else floordiv(greatest, b) + 1


def upper_bound(e: Expr, ranges: Ranges) -> Expr | None:
    """An expression without axes that `e` does not exceed; None where the sign of a coefficient is not known."""
    for name in sorted(e.symbols & ranges.axes.keys()):
        coefficient = e.coefficient(name)
        if coefficient is None:
            return None
        first, end = ranges.axes[name]
        if is_nonneg(coefficient, ranges):
            e = e.without(name) + coefficient * (end - 1)
        elif is_nonneg(-coefficient, ranges):
            e = e.without(name) + coefficient * first
        else:
            return None
    return e


# -- accesses ---------------------------------------------------------------------------------------------------------


def out_of_bounds(
    subscripts: Sequence[Expr], dims: Sequence[Expr], facts: Sequence[Expr], ranges: Ranges
) -> Iterator[str]:
    """For each subscript, why it may leave its dim."""
    for subscript, dim in zip(subscripts, dims, strict=True):
        if not proven(subscript, ranges, facts):
            yield f"{subscript} may be negative"
        elif not proven(dim - 1 - subscript, ranges, facts):
            yield f"{subscript} may reach {dim}, the size of its dim"


def nest_reasons(nest: NestOp) -> Iterator[Unproven]:
    """What is not proven of the reads and clauses of a nest."""
    ranges = nest.axes_attr.ranges
    for read in nest.reads:
        for reason in out_of_bounds(read.subscripts, dims_of(read.source.type), read.guards, ranges):
            yield Unproven(nest.label, f"a read of {read.source.type}: {reason}")
    extents = {a.name: a.extent for a in nest.axes if a.kind == "parallel"}
    for clause, result in zip(nest.yield_op.clauses, nest.outputs, strict=True):
        for reason in out_of_bounds(clause.subscripts, dims_of(result.type), (), ranges):
            yield Unproven(nest.label, f"a write of {result.type}: {reason}")
        if clause.combiner == "none" and not tells_apart(clause.subscripts, extents):
            where = ", ".join(map(str, clause.subscripts))
            yield Unproven(nest.label, f"two points may write one element at [{where}]")


def tells_apart(subscripts: Iterable[Expr], extents: Mapping[str, Expr]) -> bool:
    """Whether different points of the axes give different subscripts: each axis can be computed back."""
    found: set[str] = {name for name, extent in extents.items() if extent == ONE}
    for subscript in subscripts:
        used = subscript.symbols & extents.keys()
        if len(used) == 1:
            (name,) = used
            coefficient = subscript.coefficient(name)
            if coefficient is not None and coefficient.constant:
                found.add(name)
        elif used:
            fixed = subscript - Expr({m: c for m, c in subscript.terms if not Expr({m: c}).symbols & extents.keys()})
            found |= (solve(fixed, Expr.of("at"), extents) or {}).keys()
    return extents.keys() <= found


def function_reasons(func: FuncOp) -> Iterator[Unproven]:
    """What is not proven of the accesses of a scheduled kernel."""
    from igniter.analysis.loop_accesses import enclosing_loops, vector_width

    for op in func.walk():
        if not isinstance(op, MemoryOp):
            continue
        axes = {loop.axis: _reached(loop) for loop in enclosing_loops(op)}
        if op.lane is not None:
            axes[op.lane] = ZERO, Expr.of(vector_width(op))
        facts, dims = [*op.guards, *_enclosing_guards(op)], dims_of(op.accessed.type)
        for reason in out_of_bounds(op.subscripts, dims, facts, Ranges(axes)):
            yield Unproven(func.sym_name.data, f"'{op.name}' of {op.accessed.type}: {reason}")


def _reached(loop: ForOp) -> tuple[Expr, Expr]:
    """The values that an axis takes, as `(first, end)`; the last one may be more than 1 below the loop's end."""
    first, end, step = without_mod(loop.first), without_mod(loop.end), loop.step
    distance = end - first
    steps = (distance - 1).constant
    if steps is not None and steps >= 0:
        return first, first + steps // step * step + 1
    return first, end - step + 1 if distance // step * step == distance else end


def _enclosing_guards(op: Operation) -> list[Expr]:
    found: list[Expr] = []
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, IfOp):
            found += parent.guards
        parent = parent.parent_op()
    return found


def unproven_accesses(op: Operation) -> list[Unproven]:
    """What is not proven of a `loop.kernel` or a `loop.func`."""
    if isinstance(op, KernelOp):
        return [reason for nest in op.nests for reason in nest_reasons(nest)]
    if isinstance(op, FuncOp):
        return list(function_reasons(op))
    raise ValueError(f"'{op.name}' is neither a loop.kernel nor a loop.func")
