"""`igniter explain`: measures two compilations in turns, and prints what explains their difference."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from igniter.errors import IgniterError
from igniter.runtime.session import silence
from igniter.toolbox.bench.inputs import inputs_for
from igniter.toolbox.bench.show_profile import original_of
from igniter.toolbox.bench.time_profile import symbol_sizes
from igniter.toolbox.explain.experiment import case_of
from igniter.toolbox.explain.explanation import explain
from igniter.toolbox.explain.measurement import measure
from igniter.toolbox.explain.sides import side_of
from igniter.toolbox.output import console, parse_shapes, print_json, progress

if TYPE_CHECKING:
    from igniter.toolbox.explain.explanation import Explanation, PartDifference
    from igniter.toolbox.explain.measurement import Difference
    from igniter.toolbox.explain.request import ExplainRequest

REASONS = 6
"""The limit of printed reasons of a part."""

SMALL_SHARE = 0.1
"""With kernels of less than this share of the time, sizes that the user did not choose say little about them."""


def run(request: ExplainRequest) -> None:
    """Explains and prints."""
    with progress("compiling", request.json) as step:
        found = explanation_of(request, step)
    if request.json:
        print_json(found.to_dict())
    else:
        given = request.given
        _print(found, request.count, chosen=bool(given.shapes or given.inputs or request.experiment))


def explanation_of(request: ExplainRequest, step: Callable[[str], None] = lambda _: None) -> Explanation:
    """Compiles both sides so that they record times, measures them in turns, and explains."""
    given, paths = request.given, (request.a, request.b)
    if request.experiment:
        case = case_of(request.experiment, request.case, request.a, request.b)
        original: str | bytes = case.model
        given, paths = replace(given, inputs=given.inputs or ("" if given.shapes else case.inputs)), case.folders
    else:
        if request.case:
            raise IgniterError("--case names a comparison of an experiment; give --experiment too")
        original = original_of(request.a, request.reference)
    silence()
    shapes = parse_shapes(given.shapes) or []
    if len(shapes) > 1:
        raise IgniterError("an explanation is of one choice of sizes: give --shape once")
    with tempfile.TemporaryDirectory(prefix="igniter-explain-") as folder:
        sides = [side_of(p, original, Path(folder) / f"{k}.igniter", step) for k, p in enumerate(paths)]
        named = [replace(side, name=name) for side, name in zip(sides, (request.a, request.b), strict=True)]
        _, inputs = inputs_for(original, shapes[0] if shapes else {}, given)
        a, b = named
        times = measure(a, b, inputs, rounds=request.rounds, threads=request.threads, seed=given.seed, progress=step)
        return explain(a, b, times, symbol_sizes(a.artifact, inputs))


def _print(found: Explanation, count: int, *, chosen: bool) -> None:
    out = console()
    sizes = ", ".join(f"{n}={s}" for n, s in found.sizes.items()) or "the model's sizes"
    out.print(escape(f"A is {found.a}, B is {found.b}, at {sizes}"))
    for note in found.notes:
        out.print(escape(note))
    total, control = found.total, found.control
    out.print(f"A {found.a_ms:.4g} ms, B {found.b_ms:.4g} ms: medians of all rounds")
    out.print(f"B - A is {_range(total)}; A from itself {_range(control)}: medians of the differences within a round")
    if not chosen and found.sizes and found.kernel_share < SMALL_SHARE:
        out.print(
            f"kernels take {found.kernel_share:.0%} of the time at these sizes, ONNX Runtime the rest: "
            f"give larger sizes with --shape {','.join(f'{name}=N' for name in found.sizes)}"
        )
    if found.same_code:
        out.print("the kernels of A and B are the same, to the byte")
    if not found.is_clear:
        out.print("the difference is within the noise: shares are not given")
    table = Table("part", "A ms", "B ms", "B - A", "explains", "what differs")
    shown = found.parts[:count]
    for part in shown:
        table.add_row(*map(escape, _row(part)), end_section=True)
    if others := found.parts[count:]:
        table.add_row(f"{len(others)} more parts", *_sums(others), "")
    out.print(table)


def _range(found: Difference) -> str:
    return f"{found.ms:+.4g} ms ({found.low:+.4g} to {found.high:+.4g})"


def _row(part: PartDifference) -> tuple[str, ...]:
    change = part.difference
    clear = "" if change.is_clear else " (noise)"
    share = "" if part.share is None else f"{part.share:.0%}"
    figures = (f"{part.a_ms:.4f}", f"{part.b_ms:.4f}", f"{change.ms:+.4f}{clear}", share)
    reasons = list(part.reasons[:REASONS])
    if more := part.reasons[REASONS:]:
        reasons.append(f"and {len(more)} more: --json has all")
    return (part.what, *figures, "\n".join(reasons))


def _sums(parts: Sequence[PartDifference]) -> tuple[str, ...]:
    known = [p.share for p in parts if p.share is not None]
    share = f"{sum(known):.0%}" if known else ""
    a, b = sum(p.a_ms for p in parts), sum(p.b_ms for p in parts)
    return f"{a:.4f}", f"{b:.4f}", f"{sum(p.difference.ms for p in parts):+.4f}", share
