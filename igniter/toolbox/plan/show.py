"""`igniter plan`: the lifetimes and places of a model's activations, and the peak memory."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from igniter.api import load
from igniter.compiler.artifact import Artifact
from igniter.errors import IgniterError
from igniter.runtime.files import write_whole
from igniter.toolbox.output import console, parse_sizes, print_json, progress
from igniter.toolbox.plan.chart import PAGE, Chart, bytes_text
from igniter.toolbox.tables import csv_text

if TYPE_CHECKING:
    from rich.console import Console

    from igniter.api import Module
    from igniter.dialects.sym.expr import Expr
    from igniter.toolbox.plan.compiled import CompiledPlan
    from igniter.toolbox.plan.plan import Activation, MemoryPlan
    from igniter.toolbox.plan.request import PlanRequest

MOST = 10
"""The number of listed activations and steps, the largest."""

SHOWN = 100
"""The limit of a printed expression, in characters; JSON has all."""

CHARTS = (".svg", ".html")

CSV_COLUMNS = ("name", "kind", "dtype", "dims", "bytes", "first", "last", "buffer", "offset", "size", "shares")


def run(asked: PlanRequest) -> None:
    """Plans, writes the requested files, and prints."""
    if asked.chart and Path(asked.chart).suffix not in CHARTS:
        raise IgniterError(f"{asked.chart} is neither {' nor '.join(CHARTS)}: the suffix says what is drawn")
    if asked.compiled or Path(asked.model).is_dir():
        compiled = _plan_compiled(asked)
        plan, described = compiled.graph, compiled.to_dict()
    else:
        compiled = None
        plan = _load(asked.model).plan(
            parse_sizes(asked.sizes),
            order=asked.order,
            inputs=asked.inputs,
            fold=asked.fold,
            views=asked.views,
            in_place=asked.in_place,
            align=asked.align,
        )
        described = plan.to_dict()
    if asked.csv:
        write_whole(asked.csv, csv_text(CSV_COLUMNS, _rows(plan)))
    if asked.chart:
        charts = _charts(plan, compiled, asked.model)
        write_whole(asked.chart, charts[-1].svg() if asked.chart.endswith(".svg") else _page(charts, asked.model))
    if asked.json:
        print_json(described)
        return
    out = console()
    _print(out, plan, asked.every)
    if compiled is not None:
        _print_arenas(out, compiled, asked.every)
    for written in filter(None, (asked.csv, asked.chart)):
        out.print(written, highlight=False, markup=False)


def _load(path: str) -> Module:
    return load(path)


def _plan_compiled(asked: PlanRequest) -> CompiledPlan:
    """Returns the plan of the compiled model; raises `IgniterError` for options of uncompiled models."""
    given = (asked.order, asked.inputs, asked.fold, asked.views, asked.in_place, asked.align)
    if given != ("ort", False, True, True, True, 64):
        raise IgniterError(
            "--order, --count-inputs, --no-fold, --no-views, --no-in-place and --align are of a model as it is: leave "
            "them out, or --compiled"
        )
    model, target = asked.model, asked.target
    if Path(model).is_dir():
        artifact = Artifact.load(model)
        if artifact.source is None or isinstance(artifact.source, bytes):
            raise IgniterError(f"the original model of {model} is not known or has changed: give that, and --compiled")
        said = str(artifact.report["options"].get("target", target))
        if target not in ("native", said):
            raise IgniterError(f"{model} is compiled for {said}, and --target is {target}: leave that out")
        model, target = str(artifact.source), said
    with progress("compiling", asked.json):
        return _load(model).plan_compiled(parse_sizes(asked.sizes), target=target)


# -- files ------------------------------------------------------------------------------------------------------------


def _rows(plan: MemoryPlan) -> Iterator[dict[str, object]]:
    """Yields every activation with its place."""
    for a in plan.activations:
        buffer = plan.buffers[a.buffer]
        dims = ", ".join(map(str, a.dims))
        places = (a.first, a.last, a.buffer, buffer.offset, buffer.size, a.shares)
        yield dict(zip(CSV_COLUMNS, (a.name, a.kind, a.dtype, dims, a.bytes, *places), strict=True))


def _charts(plan: MemoryPlan, compiled: CompiledPlan | None, model: str) -> list[Any]:
    """Returns the chart of the graph, and those of the arenas, the largest last."""
    name = Path(model).name
    charts = [Chart.of(plan, f"{name}: activations")]
    for arena in compiled.arenas if compiled is not None else ():
        charts.append(Chart.of_arena(arena, f"{name}: arena of @{arena.program}", plan.value))
    return [charts[0], *sorted(charts[1:], key=lambda c: c.total)]


def _page(charts: Sequence[Any], model: str) -> str:
    return PAGE.format(title=html.escape(model), body="\n".join(chart.svg() for chart in charts))


# -- the terminal -----------------------------------------------------------------------------------------------------


def _print(out: Console, plan: MemoryPlan, every: bool) -> None:
    out.print(_heading(plan), highlight=False, markup=False)
    out.print(_totals(plan, (("native", plan.native), ("plan", plan.total), ("lower bound", plan.lower_bound))))
    for line in Chart.of(plan, "").text():
        out.print(line, highlight=False, markup=False)
    if plan.steps and every:
        out.print(_steps(plan, range(len(plan.steps)), "every step"))
    elif plan.steps:
        order = sorted(range(len(plan.steps)), key=lambda k: (-plan.value(plan.steps[k].live), k))
        out.print(_steps(plan, order[:MOST], "the steps with the most in use"))
    if plan.peak is not None:
        shown = [a for a in plan.activations if every or a.first <= plan.peak <= a.last]
        title = "every activation" if every else f"in use in step {plan.peak}, {plan.steps[plan.peak].name}"
        shown = shown if every else sorted(shown, key=lambda a: -plan.value(a.bytes))[: 2 * MOST]
        out.print(_activations(plan, shown, title))
    for name, reason in plan.uncounted[: None if every else MOST]:
        out.print(f"not counted: '{name}': {reason}", highlight=False, markup=False)
    if len(plan.uncounted) > MOST and not every:
        out.print(f"and {len(plan.uncounted) - MOST} more are not counted; --all lists them")


def _heading(plan: MemoryPlan) -> str:
    said = ", ".join(f"{k}={v}" for k, v in plan.sizes.items())
    folded = f" ({plan.folded} more are folded)" if plan.folded else ""
    counts = f"{len(plan.activations)} activations in {len(plan.buffers)} buffers"
    return f"{len(plan.steps)} steps{folded}, {counts}{said and f', at {said}'}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _totals(plan: MemoryPlan, totals: Sequence[tuple[str, Expr]]) -> Any:
    taken = ", ".join(f"{k}={v}" for k, v in plan.typical.items())
    table = Table("", f"bytes at {taken}" if taken else "bytes", "")
    for name, size in totals:
        table.add_row(name, *_size(plan, size))
    return table


def _size(plan: MemoryPlan, size: Expr) -> tuple[str, str]:
    """Returns a number of bytes, and its readable form or its expression in symbols."""
    value, text = plan.value(size), str(size)
    if size.constant is not None:
        return f"{value:,}", bytes_text(value)
    return f"{value:,}", text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _steps(plan: MemoryPlan, numbers: Sequence[int], title: str) -> Any:
    table = Table("step", "node", "op", "in use", "", title=title)
    for k in numbers:
        step = plan.steps[k]
        name = f"{step.graph}: {step.name}" if step.graph else step.name
        table.add_row(str(k), escape(name), escape(step.op), *_size(plan, step.live))
    return table


def _activations(plan: MemoryPlan, shown: Sequence[Activation], title: str) -> Any:
    table = Table("activation", "kind", "type", "steps", "offset", "bytes", "", title=escape(title))
    for a in shown:
        dims = ", ".join(map(str, a.dims))
        offset = f"{plan.value(plan.buffers[a.buffer].offset):,}"
        kind = f"{a.kind}, {a.shares}" if a.shares else a.kind
        row = (escape(a.name), escape(kind), escape(f"{a.dtype}[{dims}]"), f"{a.first} to {a.last}", offset)
        table.add_row(*row, *_size(plan, a.bytes))
    return table


def _print_arenas(out: Console, compiled: CompiledPlan, every: bool) -> None:
    plan = compiled.graph
    for arena in compiled.arenas:
        kernels = len({call.kernel for call in arena.calls})
        what = f"@{arena.program}: {_counted(len(arena.calls), 'call')} of {_counted(kernels, 'kernel')}"
        if not arena.buffers:
            out.print(f"{what}, and no arena", highlight=False, markup=False)
            continue
        out.print(f"{what}, with {_counted(len(arena.buffers), 'buffer')} in an arena", highlight=False, markup=False)
        totals = (("native", arena.native), ("plan", arena.total), ("lower bound", arena.lower_bound))
        out.print(_totals(plan, totals))
        for line in Chart.of_arena(arena, "", plan.value).text():
            out.print(line, highlight=False, markup=False)
        if every:
            calls = Table("call", "kernel", "in use", "", "nodes")
            for k, (call, live) in enumerate(zip(arena.calls, arena.live(), strict=True)):
                calls.add_row(str(k), call.kernel, *_size(plan, live), escape(", ".join(call.nodes)))
            out.print(calls)
