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
from igniter.verification.prove.equality import Equality
from igniter.verification.prove.integers import OUT_OF_OPERATIONS, Limits, NotDecided, Points, Sizes, isl
from igniter.verification.prove.joined_loops import split_joined_loops
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
    """The sizes of a refutation."""
    seconds: float = 0.0


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
    witness = find_witness(before, after, sizes, [p.sizes for p in problems if p.sizes is not None])
    seconds = time.perf_counter() - start
    reason = "; ".join(dict.fromkeys(p.reason for p in problems[:3]))
    if witness is not None:
        return Verdict("refuted", f"{reason}: {witness.difference}", witness.sizes, seconds)
    return Verdict("not decided", reason, {}, seconds)


def _problems(
    before: KernelOp | FuncOp, after: KernelOp | FuncOp, sizes: Sizes, limits: Limits, distributes: bool
) -> list[Problem]:
    for kernel in (before, after):
        sizes.discover(kernel, kernel.symbol_names)
        sizes.require(kernel.requires)
    problems: list[Problem] = []
    if isinstance(before, KernelOp) and isinstance(after, KernelOp):
        values = [v for k in (before, after) for v in (*k.block.args, *(r for op in k.walk() for r in op.results))]
        sizes.shapes += dict.fromkeys(tuple(dims_of(v.type)) for v in values if v.type.name == TensorType.name)
    for version in _versions(after):
        found = _scheduled(version, sizes, problems) if isinstance(version, FuncOp) else None
        shapes = None if found is None else [o.dims for o in found.outputs]
        reference = _program(before, sizes, "a", shapes)
        program = found or structured.program_of(_kernel(version), sizes, "b")
        problems += program.problems
        problems += _differences(
            reference.outputs, program.outputs, Equality(limits, sizes.context(), distributes), sizes
        )
    return problems


def _versions(after: KernelOp | FuncOp) -> Sequence[KernelOp | FuncOp]:
    """Returns the kernel and its variants: each computes the same for all sizes."""
    return [after, *after.variants] if isinstance(after, KernelOp) else [after]


def _kernel(op: KernelOp | FuncOp) -> KernelOp:
    assert isinstance(op, KernelOp)
    return op


def _scheduled(func: FuncOp, sizes: Sizes, problems: list[Problem]) -> Program:
    copy = func.clone()
    split_joined_loops(copy)
    return scheduled.program_of(copy, sizes, "b", lambda values: problems.extend(check_accesses(values, copy)))


def _program(
    before: KernelOp | FuncOp, sizes: Sizes, prefix: str, shapes: Sequence[tuple[Expr, ...]] | None
) -> Program:
    if isinstance(before, KernelOp):
        return structured.program_of(before, sizes, prefix, shapes)
    copy = before.clone()
    split_joined_loops(copy)
    return scheduled.program_of(copy, sizes, prefix)


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
