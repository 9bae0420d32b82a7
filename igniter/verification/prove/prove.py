"""The proof of one pass and one kernel, for all sizes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from xdsl.dialects.builtin import TensorType

from igniter.dialects.loop import FuncOp, KernelOp
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import Expr
from igniter.verification.prove import scheduled, structured
from igniter.verification.prove.checks import check_accesses
from igniter.verification.prove.cuts import Cuts
from igniter.verification.prove.divisors import divided, divisors
from igniter.verification.prove.equality import Equality
from igniter.verification.prove.integers import OUT_OF_OPERATIONS, Limits, NotDecided, Points, Sizes, isl
from igniter.verification.prove.joined_loops import split_joined_loops
from igniter.verification.prove.recurrences import sums_as_accumulations
from igniter.verification.prove.scheduled import ScheduledValues
from igniter.verification.prove.structured import StructuredValues
from igniter.verification.prove.values import Output, Problem, Program
from igniter.verification.prove.witness import find_witness

Status = Literal["proven", "refuted", "not decided", "unchanged"]


@dataclass(frozen=True)
class Verdict:
    """The result of a proof."""

    status: Status
    reason: str = ""
    """Why it is refuted or not decided."""
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    """The sizes of a refutation, or of a counterexample that was not run."""
    seconds: float = 0.0
    unrun: Literal["", "possible", "certain"] = ""
    """Whether a counterexample was too large to run: it is certain if isl shows the error of the kernel itself."""


DISTRIBUTING = frozenset(("postpone-scales", "schedule-kernels"))
"""The passes with the rewrite of `sum(x*s)` as `sum(x)*s`, or that run such a pass."""


def prove(
    before: KernelOp | FuncOp, after: KernelOp | FuncOp, limits: Limits | None = None, pass_name: str = ""
) -> Verdict:
    """Returns whether two kernels of one interface compute equal results for all sizes, with safe accesses.

    `pass_name` admits the rewrites of a pass. `before` is taken as it is; of `after` also the bounds, the single write
    of every element of a result, and the independence of the iterations of loops with threads are proven.
    """
    start = time.perf_counter()
    sizes = Sizes()
    problems: list[Problem] = []
    try:
        with limits or Limits() as bounded:
            problems = _problems(before, after, sizes, bounded, pass_name in DISTRIBUTING)
            if not problems:
                return Verdict("proven", seconds=time.perf_counter() - start)
    except NotDecided as reason:
        problems = [Problem("values", str(reason))]
    except isl().Error as error:
        exceeded = OUT_OF_OPERATIONS in str(error)
        problems = [Problem("values", "too many operations of isl" if exceeded else f"isl fails: {error}")]
    witness = find_witness(before, after, sizes, problems)
    seconds = time.perf_counter() - start
    reason = "; ".join(dict.fromkeys(p.reason for p in problems[:3]))
    if witness is None:
        return Verdict("not decided", reason, {}, seconds)
    if witness.difference:
        return Verdict("refuted", f"{reason}: {witness.difference}", witness.sizes, seconds)
    unrun = "certain" if witness.certain else "possible"
    text = f"{reason}; the {'' if witness.certain else 'possible '}counterexample was not run: {witness.limit}"
    return Verdict("not decided", text, witness.sizes, seconds, unrun)


def _problems(
    before: KernelOp | FuncOp, after: KernelOp | FuncOp, sizes: Sizes, limits: Limits, distributes: bool
) -> list[Problem]:
    sizes.divisors.update(divisors(before))
    before, after = (divided(k.clone(), sizes.divisors) for k in (before, after))
    for kernel in (before, after):
        sums_as_accumulations(kernel)
    for kernel in (before, after):
        sizes.discover(kernel, kernel.symbol_names)
        sizes.require(kernel.requires)
    problems: list[Problem] = []
    if isinstance(before, KernelOp) and isinstance(after, KernelOp):
        values = [v for k in (before, after) for v in (*k.block.args, *(r for op in k.walk() for r in op.results))]
        sizes.shapes += dict.fromkeys(tuple(dims_of(v.type)) for v in values if v.type.name == TensorType.name)
    for version in _versions(after):
        found = None if distributes else _with_cuts(before, version, sizes, limits)
        if found is None:
            found, _ = _compared(before, version, sizes, limits, distributes=distributes, with_cuts=False)
        problems += found
    return problems


def _with_cuts(
    before: KernelOp | FuncOp, after: KernelOp | FuncOp, sizes: Sizes, limits: Limits
) -> list[Problem] | None:
    """Returns the facts without a proof; None if cuts may be the reason."""
    try:
        problems, cuts = _compared(before, after, sizes, limits, distributes=False, with_cuts=True)
    except NotDecided:
        limits.check()
        return None
    return None if problems and cuts else problems


def _compared(
    before: KernelOp | FuncOp,
    after: KernelOp | FuncOp,
    sizes: Sizes,
    limits: Limits,
    *,
    distributes: bool,
    with_cuts: bool,
) -> tuple[list[Problem], int]:
    """Returns the facts without a proof, and the number of cuts."""
    left, right = _values(before, sizes, "a"), _values(after, sizes, "b")
    equality = Equality(limits, sizes, distributes)
    cuts = _cut(before, left, after, right, equality, sizes) if with_cuts else 0
    program = _program(right, after, None)
    problems = list(program.problems)
    if isinstance(right, ScheduledValues) and right.func is not None:
        problems += check_accesses(right, right.func)
    shapes = [o.dims for o in program.outputs] if isinstance(right, ScheduledValues) else None
    reference = _program(left, before, shapes)
    problems += _differences(reference.outputs, program.outputs, equality, sizes)
    return problems, cuts


def _cut(
    before: KernelOp | FuncOp,
    left: StructuredValues | ScheduledValues,
    after: KernelOp | FuncOp,
    right: StructuredValues | ScheduledValues,
    equality: Equality,
    sizes: Sizes,
) -> int:
    """Cuts equal arrays, and returns their number."""
    if not isinstance(before, KernelOp) or not isinstance(left, StructuredValues):
        return 0
    cuts = Cuts(left, equality, sizes)
    if isinstance(right, ScheduledValues):
        cuts.of_schedule(before, right)
    else:
        cuts.of_kernel(before, right, _kernel(after))
    return cuts.count


def _versions(after: KernelOp | FuncOp) -> Sequence[KernelOp | FuncOp]:
    """Returns the kernel and its variants: each computes the same for all sizes."""
    return [after, *after.variants] if isinstance(after, KernelOp) else [after]


def _kernel(op: KernelOp | FuncOp) -> KernelOp:
    assert isinstance(op, KernelOp)
    return op


def _values(kernel: KernelOp | FuncOp, sizes: Sizes, prefix: str) -> StructuredValues | ScheduledValues:
    if isinstance(kernel, KernelOp):
        return StructuredValues(kernel, sizes, prefix)
    copy = kernel.clone()
    split_joined_loops(copy)
    return scheduled.values_of(copy, sizes, prefix)


def _program(
    values: StructuredValues | ScheduledValues, kernel: KernelOp | FuncOp, shapes: Sequence[tuple[Expr, ...]] | None
) -> Program:
    if isinstance(values, ScheduledValues):
        return scheduled.program_of(values)
    return structured.program_of(values, _kernel(kernel), shapes)


def _differences(
    expected: Sequence[Output], actual: Sequence[Output], equality: Equality, sizes: Sizes
) -> list[Problem]:
    if len(expected) != len(actual):
        return [Problem("values", f"{len(actual)} results instead of {len(expected)}")]
    found: list[Problem] = []
    for k, (one, other) in enumerate(zip(expected, actual, strict=True)):
        if one.dims != other.dims:
            found.append(Problem("values", f"result {k} has another shape"))
            continue
        failure = equality.failures(one.value, other.value, _elements(one, sizes))
        if failure is not None:
            found.append(Problem("values", f"result {k}: {failure.reason}", failure.sizes))
    return found


def _elements(output: Output, sizes: Sizes) -> Points:
    return output.value.space.domain.intersect_params(sizes.context()).identity()
