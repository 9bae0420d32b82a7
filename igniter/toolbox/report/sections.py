"""The sections of a report below its graph: time, threads, memory, nodes left to ONNX Runtime, verification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from igniter.toolbox.plan.chart import Chart, bytes_text
from igniter.toolbox.plan.threads import THREADS
from igniter.toolbox.report.charts import KernelTime, Roof, by_kernel, roofline
from igniter.toolbox.report.markup import (
    bar,
    clipped,
    count_text,
    figure_text,
    link,
    sizes_text,
    table,
    text,
    threads_text,
)
from igniter.toolbox.report.overview import verdict
from igniter.toolbox.report.shares import Share, by_module, by_op

if TYPE_CHECKING:
    from igniter.toolbox.report.gather import ReportData

MOST_KERNELS = 20
"""The most kernels in the table of threads."""
MOST_BUFFERS = 60
"""The most buffers in the table below a chart of memory."""


# -- time -------------------------------------------------------------------------------------------------------------


def time_section(data: ReportData) -> str:
    """Returns the times of kernels, modules and ops."""
    profile = data.profile
    if profile is None:
        return _untimed(data) + _where(data)
    kernels = by_kernel(profile.steps, profile.run_ms)
    rest = profile.rest_ms / profile.run_ms if profile.run_ms else 0.0
    parts = [
        f"<p>Of a run of {profile.run_ms:.4g} ms, {1 - rest:.1%} is in {len(profile.steps)} calls of {len(kernels)} "
        f"kernels; {rest:.1%} is ONNX Runtime's, its nodes and the call. Medians of {profile.runs} runs without "
        f"interruptions on {threads_text(data.threads)} at {text(sizes_text(data.sizes))}.</p>"
    ]
    if data.roof is not None:
        parts.append(_roofline(kernels, data.roof, data.threads))
    parts.append(_kernels(kernels, data.roof, profile.rest_ms, profile.run_ms))
    return "".join([*parts, _where(data)])


def _roofline(kernels: Sequence[KernelTime], roof: Roof, threads: int) -> str:
    source = "measured on this machine" if roof.measured else "figures of the machine that kernels are made for"
    return (
        f"<figure>{roofline(kernels, roof)}<figcaption>Each circle is a kernel, its area its time; the line "
        f"is the limit of {threads_text(threads)} ({source}). Kernels above the line read from caches, look up rows of "
        "a table that counts whole, or run on a machine that is faster than its figures. The table below has the "
        "same figures.</figcaption></figure>"
    )


def _untimed(data: ReportData) -> str:
    if not data.report.get("programs") and not data.report.get("kernels"):
        return "<p>Nothing of the model is compiled, so there is no kernel to time.</p>"
    target = text(data.report["options"]["target"])
    return f"<p>Kernels for {target} note no time, so nothing was measured.</p>"


def _where(data: ReportData) -> str:
    """Returns tables of the shares of modules and ops."""
    nodes = data.graph.nodes
    run = data.profile.run_ms if data.profile is not None else 0.0
    note = (
        "<p>A kernel&#x27;s time is shared out among its nodes by their operations. Bytes are what nodes read from "
        "outside their kernel, and write for those outside it.</p>"
    )
    tables = [("module", by_module(nodes)), ("op", by_op(nodes))]
    return note + "".join(f"<h3>By {name}</h3>{_shares(name, shares, run)}" for name, shares in tables if shares)


def _shares(name: str, shares: Sequence[Share], run: float) -> str:
    """Returns times and bars if kernels were timed, otherwise bars of operations."""
    weights = [s.ms or 0.0 for s in shares] if run else [float(s.flops) for s in shares]
    whole = run or sum(weights) or 1.0
    widest, rows = max(weights, default=0.0) / whole, list[tuple[str, ...]]()
    for s, weight in zip(shares, weights, strict=True):
        ms = "" if s.ms is None else f"{s.ms:.4f}"
        share = bar(weight / whole, widest)
        rows.append((clipped(s.name), str(s.nodes), ms, share, count_text(s.flops), count_text(s.bytes)))
    of = "time" if run else "operations"
    head = (name, ".nodes", ".about ms", "share", ".operations", ".bytes")
    return table(head, rows, f"Shares of {of} by {name}", "shares")


def _kernels(kernels: Sequence[KernelTime], roof: Roof | None, rest: float, run: float) -> str:
    share = rest / run if run else 0.0
    widest = max([k.share for k in kernels] + [share], default=1.0)
    rows: list[tuple[str, ...]] = []
    for k in kernels:
        cost = (str(k.calls), f"{k.ms:.4f}", bar(k.share, widest), count_text(k.flops), count_text(k.bytes))
        part = k.roof_text(roof) if roof is not None else ""
        rates = (figure_text(k.gflops), figure_text(k.gbytes), part)
        rows.append((link(k.kernel, "kernel"), clipped(k.what), *cost, *rates))
    rows.append(("ONNX Runtime", "its nodes and the call", "", f"{rest:.4f}", bar(share, widest), *[""] * 5))
    head = ("kernel", "what", ".calls", ".ms", "share", ".operations", ".bytes", ".GFLOP/s", ".GB/s", ".of the roof")
    return table(head, rows, "Times of kernels", "kernels")


# -- threads ----------------------------------------------------------------------------------------------------------


def threads_section(data: ReportData) -> str:
    """Returns how far threads can share the work, and the kernels that limit it."""
    plan = data.threads_plan
    if plan is None:
        return "<p>There is no kernel whose tasks threads of a CPU share.</p>"
    note = (
        f"<p>On paper: the longest chain of tasks has {plan.chain:.1%} of the work of all kernels at "
        f"{text(sizes_text(data.sizes))}, so no number of threads gains more than {1 / plan.chain:.3g} times. Work is "
        "an estimate in cycles. The hand-over of tasks, the caches and the memory that threads share, and the nodes of "
        "ONNX Runtime are not counted.</p>"
    )
    whole = [("all kernels", "100.0%", f"{plan.chain:.1%}", *(f"{plan.gain(n):.3g}" for n in THREADS))]
    work = sum(k.total for k in plan.kernels) or 1
    worst = sorted(plan.kernels, key=lambda k: k.total / THREADS[-1] - k.on(THREADS[-1]))[:MOST_KERNELS]
    rows = [
        (
            link(k.kernel, "kernel"),
            f"{k.total / work:.1%}",
            f"{k.chain / max(1, k.total):.1%}",
            *(f"{k.gain(n):.3g}" for n in THREADS),
        )
        for k in worst
    ]
    head = ("kernel", ".work", ".longest chain", *(f".{n} threads" for n in THREADS))
    return note + table(head, [*whole, *rows], "Gain of threads by kernel", "threads")


# -- memory -----------------------------------------------------------------------------------------------------------


def memory_section(data: ReportData) -> str:
    """Returns the plans of buffers as tables and charts."""
    plan, compiled = data.plan, data.compiled
    peak = ""
    if plan.peak is not None:
        step = plan.steps[plan.peak]
        peak = f" The most is in use in step {plan.peak}, <code>{text(step.name)}</code> ({text(step.op)})."
    rows = [
        _plan_row("node by node, as ONNX Runtime runs the original", plan.native, plan.total, plan.lower_bound, plan)
    ]
    graph = compiled.graph
    rows.append(_plan_row("compiled: between programs", graph.native, graph.total, graph.lower_bound, graph))
    rows += [
        _plan_row(f"compiled: arena of @{a.program}", a.native, a.total, a.lower_bound, graph)
        for a in compiled.arenas
        if a.buffers
    ]
    charts = [Chart.of(plan, "node by node")]
    charts += [Chart.of_arena(a, f"arena of @{a.program}", graph.value) for a in compiled.arenas if a.buffers]
    pictures = "".join(f"<figure>{chart.svg()}</figure>{_buffers(chart)}" for chart in charts)
    note = (
        f"<p>Bytes of activations over steps, each box a buffer: what is above another is in use beside it.{peak} "
        "Weights are not counted.</p>"
    )
    return note + table(("values", ".every value its own", ".plan", ".lower bound"), rows, "Memory plans") + pictures


def _buffers(chart: Chart) -> str:
    """Returns the largest buffers of a chart as a table that opens."""
    largest = sorted((box for box in chart.boxes if box.size), key=lambda box: -box.size)[:MOST_BUFFERS]
    rows = [(clipped(b.name), b.kind, f"{b.size:,}", f"{b.offset:,}", str(b.first), str(b.last)) for b in largest]
    head = ("buffer", "kind", ".bytes", ".at", f".first {chart.unit}", f".last {chart.unit}")
    title = f"Largest buffers: {chart.title}"
    return f"<details><summary>{text(title)}</summary>{table(head, rows, title, 'buffers')}</details>" if rows else ""


def _plan_row(what: str, native: Any, total: Any, bound: Any, plan: Any) -> tuple[str, ...]:
    return (
        text(what),
        *(f'<span title="{plan.value(e):,} bytes">{bytes_text(plan.value(e))}</span>' for e in (native, total, bound)),
    )


# -- results ----------------------------------------------------------------------------------------------------------


def left_section(data: ReportData) -> str:
    """Returns the nodes outside all kernels, with the reasons."""
    left: list[dict[str, Any]] = data.report.get("left_to_onnxruntime", [])
    if not left:
        return "<p>Nothing: every node is in a kernel.</p>"
    rows = [
        (
            link(n["node"], "node"),
            text(n["op"]),
            "by choice" if n.get("choice") else "for want of a kernel",
            text(n["reason"]),
        )
        for n in left
    ]
    return table(("node", "op", "left", "why"), rows, "Nodes that ONNX Runtime runs")


def verification_section(data: ReportData) -> str:
    """Returns the errors of all outputs at all sizes."""
    found = data.verification
    if found is None:
        return "<p>The compiled model was not compared with the original.</p>"
    status, told, mood = verdict(data)
    parts = [f'<p class="verdict {mood}">{text(status)}{": " * bool(told)}{text(told)}</p>']
    rows: list[tuple[str, ...]] = []
    for case in found.get("cases", []):
        sizes = text(sizes_text(case["shapes"]) + (f" ({case['kind']})" if case.get("kind") else ""))
        for output in case.get("outputs", []):
            noise = output.get("noise")
            shape = text("x".join(map(str, output["shape"])) or "scalar")
            result = "ok" if output["ok"] else text(output["reason"])
            figures = (f"{float(output['max_error']):.2e}", "" if noise is None else f"{float(noise):.1e}")
            rows.append((sizes, text(output["name"]), f"{text(output['dtype'])} {shape}", *figures, result))
        if not case.get("outputs"):
            rows.append((sizes, "", "", "", "", text(f"{case['status']}: {case['reason']}")))
    head = ("sizes", "output", "type", ".largest error", ".the original's noise", "result")
    return "".join([*parts, table(head, rows, "Errors of outputs") if rows else ""])
