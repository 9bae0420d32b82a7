"""Matching of a nest's body with a micro-kernel: the two are compared as expressions of their two reads.

    %d = arith.subf %x, %y       %q = arith.mulf %d, %d       loop.yield add %q         a nest's
    %e = arith.subf %u, %v       %r = arith.mulf %e, %e       loop.yield add %r         a micro-kernel's

Both are put in a normal form. Equal expressions get one number, so an expression used twice costs no more than one used
once. The operands of commutative ops are sorted. A chain of widenings of one sort is reduced to its first and last
type. `math.fma`, made by `form-fma`, becomes a product and a sum. Equal forms then have the same values, up to the
rounding that a fused operation saves. Different forms may still be equivalent: the comparison is structural only, and
rejects the rest.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from xdsl.ir import Attribute, Operation, SSAValue

from igniter.dialects.loop import NestOp, ReadOp
from igniter.dialects.loop.instructions import MicroKernel, element_name
from igniter.dialects.sym import element_of

WIDENINGS = frozenset(("arith.extf", "arith.extsi", "arith.extui"))

COMMUTATIVE = frozenset(
    f"arith.{op}"
    for op in (
        *("addf", "addi", "mulf", "muli", "andi", "ori", "xori", "maximumf", "minimumf", "maxnumf", "minnumf"),
        *("maxsi", "maxui", "minsi", "minui"),
    )
)

FREEDOMS = frozenset(("fastmath", "overflowFlags"))
"""Attributes that affect the computation of an op, and not its meaning."""


class Forms:
    """Numbers for expressions, the same for equal ones."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def of(self, value: SSAValue, leaves: Mapping[SSAValue, str]) -> int:
        """Returns the number of a value; `leaves` gives the names of its inputs."""
        known: dict[SSAValue, int] = {v: self._number(("read", name)) for v, name in leaves.items()}
        todo = [value]
        while todo:
            owner = todo[-1].owner
            if todo[-1] in known:
                todo.pop()
            elif not isinstance(owner, Operation) or isinstance(owner, ReadOp):
                known[todo.pop()] = self._number(("other", id(owner)))
            elif missing := [v for v in _operands(owner, leaves) if v not in known]:
                todo += missing
            else:
                known[todo.pop()] = self._of_op(owner, [known[v] for v in _operands(owner, leaves)])
        return known[value]

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _of_op(self, op: Operation, operands: list[int]) -> int:
        if op.name == "math.fma":
            kind = op.results[0].type
            product = self._apply("arith.mulf", kind, (), operands[:2])
            return self._apply("arith.addf", kind, (), [product, operands[2]])
        said = tuple(sorted((k, str(v)) for k, v in {**op.properties, **op.attributes}.items() if k not in FREEDOMS))
        return self._apply(op.name, op.results[0].type, said, operands)

    def _apply(self, name: str, kind: Attribute, said: Hashable, operands: list[int]) -> int:
        if name in COMMUTATIVE:
            operands = sorted(operands)
        return self._number((name, str(kind), said, tuple(operands)))


def _operands(op: Operation, leaves: Mapping[SSAValue, str]) -> list[SSAValue]:
    """Returns the operands of an op; for a chain of widenings of one sort, the operand of the first."""
    if op.name not in WIDENINGS:
        return list(op.operands)
    value = op.operands[0]
    while value not in leaves and isinstance(value.owner, Operation) and value.owner.name == op.name:
        value = value.owner.operands[0]
    return [value]


def reads_of(nest: NestOp, kernel: MicroKernel) -> tuple[ReadOp, ReadOp] | str:
    """Returns the two reads that a nest reduces as `kernel` does, unordered; otherwise the reason."""
    clauses = nest.yield_op.clauses
    wanted = kernel.facts.combiner
    if len(clauses) != 1 or clauses[0].combiner != wanted:
        return f"micro-kernel '{kernel.name}' needs a single value combined with '{wanted}'"
    if all(a.kind != "reduction" for a in nest.axes):
        return f"micro-kernel '{kernel.name}' needs a reduction axis"
    found: dict[SSAValue, None] = {}
    todo, seen = [clauses[0].value], set[SSAValue]()
    while todo:
        value = todo.pop()
        if value in seen or not isinstance(value.owner, Operation):
            continue
        seen.add(value)
        if isinstance(value.owner, ReadOp):
            found[value] = None
        else:
            todo += value.owner.operands
    reads = [v.owner for v in found]
    if len(reads) != 2:
        return f"micro-kernel '{kernel.name}' needs two reads, not {len(reads)}"
    one, other = reads
    assert isinstance(one, ReadOp) and isinstance(other, ReadOp)
    if any(r.guards or r.indices for r in (one, other)):
        return "its reads are guarded or indirect"
    return one, other


def difference(nest: NestOp, kernel: MicroKernel, a: ReadOp, b: ReadOp, widened: bool = False) -> str | None:
    """Returns the reason why `nest` does not compute `kernel` of `a` and `b`; `None` if it does. `widened`: the kernel
    takes `a` after the nest's widening."""
    facts = kernel.facts
    result = nest.outputs[0].type
    left: SSAValue = _widened(a) if widened else a.result
    elements = left.type if widened else element_of(a.source.type), element_of(b.source.type), element_of(result)
    if not kernel.takes(*elements):
        wanted, mine = kernel.element_names, [element_name(e) for e in elements]
        return (
            f"micro-kernel '{kernel.name}' takes elements of {wanted[0]} and {wanted[1]} and folds {wanted[2]}, not "
            f"{mine[0]}, {mine[1]} and {mine[2]}"
        )
    forms = Forms()
    means = forms.of(facts.nest.yield_op.clauses[0].value, {facts.a.result: "a", facts.b.result: "b"})
    if forms.of(nest.yield_op.clauses[0].value, {left: "a", b.result: "b"}) != means:
        return f"its body differs from the meaning of micro-kernel '{kernel.name}'"
    return None


def _widened(read: ReadOp) -> SSAValue:
    """Returns the widened value of a read, if all its uses share the widening."""
    value: SSAValue = read.result
    while True:
        users = [use.operation for use in value.uses]
        if len(users) != 1 or users[0].name not in WIDENINGS:
            return value
        value = users[0].results[0]
