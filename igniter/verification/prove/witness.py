"""Sizes at which a proof fails, run: a refutation is a difference of two runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product

from igniter.dialects.loop import FuncOp, KernelOp
from igniter.verification.check_inputs import sizes_without_empties
from igniter.verification.prove.integers import MAX_OPERATIONS, Limits, Points, Sizes, isl
from igniter.verification.prove.runs import compare
from igniter.verification.prove.values import Problem

MOST_SECONDS = 5.0
"""No further sizes are run after this processor time."""
MOST_SIZES = 9
"""The limit of sizes that are run."""
BOUNDS = (4, 20, 70, 140, 520, 1100, 4200)
"""Sizes are looked for below these bounds."""
COMMON: tuple[int, ...] = (1, 2, 3, 0, 5, 8, 17, 33, 64, 65, 127, 301, 1025, 4099)
"""Sizes to try if isl names none."""
EXACT = frozenset(("bounds", "coverage", "writes"))
"""Checks of one kernel alone: without conditions by data, isl's failing sizes fail in every run."""


@dataclass(frozen=True)
class Witness:
    """Sizes with a difference, or sizes of a failing check that could not be run."""

    sizes: dict[str, int]
    difference: str = ""
    limit: str = ""
    """Why they were not run."""
    certain: bool = True
    """True if the kernels differ at these sizes."""


def find_witness(
    before: KernelOp | FuncOp, after: KernelOp | FuncOp, sizes: Sizes, problems: Sequence[Problem]
) -> Witness | None:
    """Runs two kernels at failing sizes of `problems`, and returns the first that differ.

    If none differ, returns the smallest sizes of a problem of which none could be run; None if there is no such one.
    """
    tried: list[dict[str, int]] = []
    unrun: list[Witness] = []
    end = time.process_time() + MOST_SECONDS
    for problem in [*(p for p in problems if p.sizes is not None), None]:
        too_large: list[Witness] = []
        has_run = False
        for values in _candidates(before, sizes, problem):
            if values in tried:
                has_run = True
                continue
            if len(tried) == MOST_SIZES or (tried and time.process_time() > end):
                continue
            found = compare(before, after, values)
            if found.difference:
                return Witness(values, found.difference)
            if found.limit and problem is not None:
                certain = problem.what in EXACT and not _depends_on_data(after)
                too_large.append(Witness(values, limit=found.limit, certain=certain))
            else:
                has_run = True
                tried.append(values)
        unrun += [] if has_run else too_large[:1]
    return min(unrun, key=lambda w: not w.certain, default=None)


def _depends_on_data(kernel: KernelOp | FuncOp) -> bool:
    """True if subscripts or conditions are data."""
    return any(getattr(op, "indices", ()) for op in kernel.walk())


def _candidates(before: KernelOp | FuncOp, sizes: Sizes, problem: Problem | None) -> Iterator[dict[str, int]]:
    """Yields failing sizes of a problem, the smallest first; for None, sizes to run in any case."""
    names = list(before.symbol_names)
    if problem is not None:
        points: Points = problem.sizes
        within = points.intersect_params(sizes.context())
        yield from _smallest(within, names, sizes)
        yield from _sampled(within, names, sizes)
        yield from islice(_listed(points, names, sizes), 1)
        return
    arguments = [a.type for a in before.block.args]
    for known in ({}, {n: 70 + 3 * k for k, n in enumerate(names)}):
        yield sizes_without_empties(arguments, list(before.walk()), before.requires, known)


def _smallest(points: Points, names: Sequence[str], sizes: Sizes) -> Iterator[dict[str, int]]:
    """Yields the sizes of the least sum, above 0 if there are such: one size beyond a limit, and 1 for the others."""
    used = [n for n in names if n in sizes.symbols]
    total = " + ".join(f"{sizes.divisors.get(n, 1)}*{sizes.symbols[n]}" for n in used) or "0"
    shown = ", ".join(["s", *(f"x{k}" for k in range(len(used)))])
    for least in (1, 0):
        values = [f"x{k} = {sizes.symbols[n]} and x{k} >= {least}" for k, n in enumerate(used)]
        body = f"{{ [{shown}] : {' and '.join([f's = {total}', *values])} }}"
        try:
            with Limits(MAX_OPERATIONS // 4):
                box = isl().Set(sizes.parameters(body) + body).intersect_params(points.params())
                found = box.project_out(isl().dim_type.param, 0, box.dim(isl().dim_type.param))
                if found.is_empty():
                    continue
                point = found.lexmin().sample_point()
        except isl().Error:
            return
        at = {n: int(str(point.get_coordinate_val(isl().dim_type.set, k + 1))) for k, n in enumerate(used)}
        chosen = {n: at.get(n, 1) * sizes.divisors.get(n, 1) for n in names}
        if _is_consistent(points, chosen, sizes):
            yield chosen
            return


def _sampled(points: Points, names: Sequence[str], sizes: Sizes) -> Iterator[dict[str, int]]:
    for bound in BOUNDS:
        limits = " and ".join(f"{p} <= {bound}" for p in sizes.symbols.values())
        body = f"{{ : {limits} }}" if limits else "{ : }"
        near = points.intersect_params(isl().Set(sizes.parameters(body) + body))
        if near.is_empty():
            continue
        point = near.sample_point()
        space, kind = near.get_space(), isl().dim_type.param
        found = {space.get_dim_name(kind, k): k for k in range(space.dim(kind))}
        values = {
            name: int(str(point.get_coordinate_val(kind, found[p]))) if (p := sizes.symbols.get(name)) in found else 1
            for name in names
        }
        values = {name: value * sizes.divisors.get(name, 1) for name, value in values.items()}
        if _is_consistent(points, values, sizes):
            yield values
            return


def _listed(points: Points, names: Sequence[str], sizes: Sizes) -> Iterator[dict[str, int]]:
    """Yields common sizes within `points`, with their opaque functions."""
    for each in islice(product(COMMON, repeat=len(names)), 3000):
        values: dict[str, int] = dict(zip(names, each, strict=True))
        if _is_consistent(points, values, sizes):
            yield values


def _is_consistent(points: Points, values: Mapping[str, int], sizes: Sizes) -> bool:
    """True if `points` contains the sizes, with every opaque parameter at its value."""
    kind = isl().dim_type.param
    space = points.get_space()
    if any(value % sizes.divisors.get(name, 1) for name, value in values.items()):
        return False
    values = {name: value // sizes.divisors.get(name, 1) for name, value in values.items()}
    for k in range(space.dim(kind)):
        try:
            value = sizes.exprs[space.get_dim_name(kind, k)].evaluate(values)
        except (KeyError, ZeroDivisionError):
            return False
        points = points.fix_val(kind, k, isl().Val(value))
    return not points.is_empty()
