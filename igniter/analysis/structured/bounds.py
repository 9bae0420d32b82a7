"""Proofs of in-bounds accesses and of single writes of every element; or reasons.

    unproven_accesses(kernel) -> [Unproven("matmul", "read of k + 1 in a dim of k: ...")]

A subscript is in bounds if `subscript >= 0` and `dim - 1 - subscript >= 0` follow from the ranges of the axes and the
guards of the access (a guard is a fact at the access). The analysis is sound and incomplete: an unproven access may
still be in bounds, but a proven one is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from igniter.analysis.scheduled.loop_accesses import enclosing_loops, loop_range, vector_width
from igniter.dialects.loop import AccessOp, ForOp, FuncOp, IfOp, KernelOp, MemoryOp, NestOp, ProcedureOp
from igniter.dialects.loop.attrs import INDIRECT_PREFIX
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import ZERO, Expr
from igniter.dialects.sym.proofs import proven, without_mod
from igniter.dialects.sym.ranges import Ranges
from igniter.dialects.sym.reindexing import is_injective
from igniter.dialects.sym.requirements import Requirement


@dataclass(frozen=True)
class Unproven:
    """An access without proven bounds, or an element possibly written twice."""

    where: str
    """The label of the nest, or the name of the function."""
    reason: str


# -- accesses ---------------------------------------------------------------------------------------------------------


def _unproven(
    subscripts: Sequence[Expr], dims: Sequence[Expr], facts: Sequence[Expr], ranges: Ranges
) -> Iterator[tuple[Expr, str]]:
    """Yields, for each subscript, the expressions not proven to be >= 0, each with its meaning in words."""
    for subscript, dim in zip(subscripts, dims, strict=True):
        if not proven(subscript, ranges, facts):
            yield subscript, f"{subscript} may be negative"
        if not proven(dim - 1 - subscript, ranges, facts):
            yield dim - 1 - subscript, f"{subscript} may reach {dim}, the size of its dim"


def facts_of(requires: Iterable[Requirement]) -> list[Expr]:
    """Returns the requirements of a kernel as expressions, >= 0 wherever it runs."""
    found: list[Expr] = []
    for requirement in requires:
        found.append(requirement.right - requirement.left)
        if requirement.relation == "==":
            found.append(requirement.left - requirement.right)
    return found


@dataclass(frozen=True)
class KnownAccess:
    """An access with the facts at its place."""

    where: str
    op: AccessOp
    facts: tuple[Expr, ...]
    """Expressions known to be >= 0 there."""
    ranges: Ranges

    def unproven(self) -> Iterator[tuple[Expr, str]]:
        """Yields the expressions not proven to be >= 0, with their meaning."""
        return _unproven(self.op.subscripts, dims_of(self.op.accessed.type), self.facts, self.ranges)


def missing_guards(access: KnownAccess) -> list[Expr]:
    """Returns the guards of an access for its unproven bounds."""
    return list(dict.fromkeys(e for e, _ in access.unproven()))


def known_accesses(op: KernelOp | FuncOp) -> Iterator[KnownAccess]:
    """Yields every read, load, store and accumulation of a kernel, without the writes of nests and without
    micro-kernels."""
    facts = facts_of(op.requires)
    if isinstance(op, FuncOp):
        yield from _statements(op, op.sym_name.data, {}, facts)
        return
    for each in op.computations:
        if isinstance(each, ProcedureOp):
            yield from _statements(each, each.label, each.axes_attr.ranges.axes, facts)
        elif isinstance(each, NestOp):
            for read in each.reads:
                yield KnownAccess(each.label, read, (*read.guards, *facts), each.axes_attr.ranges)


def _statements(
    root: FuncOp | ProcedureOp, where: str, around: Mapping[str, tuple[Expr, Expr]], facts: Sequence[Expr]
) -> Iterator[KnownAccess]:
    """Yields the accesses below `root`, with the ranges of the axes `around` it."""
    for op in root.walk():
        if not isinstance(op, MemoryOp):
            continue
        axes = {**around} | {loop.axis: _reached(loop) for loop in enclosing_loops(op)}
        if op.lane is not None:
            axes[op.lane] = ZERO, Expr.of(vector_width(op))
        yield KnownAccess(where, op, (*op.guards, *enclosing_guards(op), *facts), Ranges(axes))


def unproven_writes(op: KernelOp | FuncOp) -> Iterator[Unproven]:
    """Yields the unproven properties of nests' clauses: bounds, and a single write of each element."""
    if isinstance(op, FuncOp):
        return
    facts = facts_of(op.requires)
    for nest in op.nests:
        extents = {a.name: a.extent for a in nest.axes if a.kind == "parallel"}
        for clause, result in zip(nest.yield_op.clauses, nest.outputs, strict=True):
            for _, reason in _unproven(clause.subscripts, dims_of(result.type), facts, nest.axes_attr.ranges):
                yield Unproven(nest.label, f"a write of {result.type}: {reason}")
            if clause.combiner == "none" and not is_injective(clause.subscripts, extents):
                where = ", ".join(map(str, clause.subscripts))
                yield Unproven(nest.label, f"two iterations may write the same element at [{where}]")


def _reached(loop: ForOp) -> tuple[Expr, Expr]:
    """Returns the values of an axis as `(first, end)`; the last value may be more than 1 below the loop's end."""
    (first, end), step = map(without_mod, loop_range(loop)), loop.step
    distance = end - first
    steps = (distance - 1).constant
    if steps is not None and steps >= 0:
        return first, first + steps // step * step + 1
    return first, end - step + 1 if distance // step * step == distance else end


def enclosing_guards(op: MemoryOp) -> list[Expr]:
    """Returns the guards of the conditions around an access. Values used by both have the access's names."""
    found: list[Expr] = []
    own = {value: Expr.of(f"{INDIRECT_PREFIX}{k}") for k, value in enumerate(op.indices)}
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, IfOp):
            names = {
                f"{INDIRECT_PREFIX}{k}": own.setdefault(value, Expr.of(f"{INDIRECT_PREFIX}{len(own)}"))
                for k, value in enumerate(parent.indices)
            }
            found += [g.substitute(names) for g in parent.guards]
        parent = parent.parent_op()
    return found


def unproven_accesses(op: Operation) -> list[Unproven]:
    """Returns the unproven accesses and writes of a `loop.kernel` or a `loop.func`."""
    if not isinstance(op, (KernelOp, FuncOp)):
        raise ValueError(f"'{op.name}' is not a loop.kernel or loop.func")
    found = [
        Unproven(access.where, f"{_what(access.op)} {access.op.accessed.type}: {reason}")
        for access in known_accesses(op)
        for _, reason in access.unproven()
    ]
    return [*found, *unproven_writes(op)]


def _what(op: AccessOp) -> str:
    return f"'{op.name}' of" if isinstance(op, MemoryOp) else "a read of"
