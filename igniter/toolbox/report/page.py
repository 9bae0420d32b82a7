"""A report as one page: it makes no requests, and no text of a model becomes markup or script.

Text passes through `html.escape` here and through `textContent` in the page's script; the script gets its data as JSON
without any `<`. The page's policy (`Content-Security-Policy`) forbids it to load anything. Cytoscape.js draws the graph
and dagre lays it out; both are in `assets/` with their licences, and in the page.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any

from igniter._version import __version__
from igniter.toolbox.plan.chart import Chart, bytes_text
from igniter.toolbox.plan.threads import THREADS
from igniter.toolbox.report.charts import KernelTime, Roof, by_kernel, roofline
from igniter.toolbox.report.gather import ReportData
from igniter.toolbox.report.shares import Share, by_module, by_op
from igniter.toolbox.roofs import roof_text

SCRIPTS = ("cytoscape.min.js", "cytoscape-dagre.min.js", "page.js")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def page(data: ReportData) -> str:
    """Returns the report as HTML."""
    sections = [
        ("overview", "Overview", _overview(data)),
        ("graph", "Graph", GRAPH),
        ("time", "Time", _time(data)),
        ("threads", "Threads", _sharing(data)),
        ("memory", "Memory", _memory(data)),
        ("left", "Left to ONNX Runtime", _left(data)),
        ("verification", "Verification", _verification(data)),
    ]
    links = "".join(f'<a href="#{name}">{title}</a>' for name, title, _ in sections)
    body = "".join(f'<section id="{name}"><h2>{title}</h2>{text}</section>' for name, title, text in sections)
    scripts = "".join(f"<script>{_asset(name)}</script>" for name in SCRIPTS)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(data.title)}: report</title>\n<!--\n{_asset('LICENSES.txt')}\n-->\n"
        f"<style>{_asset('page.css')}</style></head><body>"
        f"<header><h1>{_text(data.title)}</h1><nav>{links}</nav></header><main>{body}</main>"
        f"<footer>{_footer(data)}</footer>"
        f'<script type="application/json" id="data">{_json(data.graph.to_dict())}</script>{scripts}</body></html>\n'
    )


GRAPH = """
<div class="tools">
<label>Group by <select id="mode"><option value="regions">programs and kernels</option>
<option value="modules">modules of the model</option></select></label>
<label>Color by <select id="color"><option value="group">kernel</option>
<option value="time">time</option></select></label>
<button id="expand-all">Expand all</button><button id="collapse-all">Collapse all</button>
<button id="zoom-in" title="Zoom in">+</button><button id="zoom-out" title="Zoom out">&minus;</button>
<button id="fit">Fit</button>
<span class="search"><input id="search" type="search" placeholder="Search nodes, ops, values, kernels"
aria-label="Search" autocomplete="off"><ul id="found" hidden></ul></span>
<span id="count"></span>
</div>
<div class="canvas"><div id="cy"></div><aside id="details"><p class="hint">Click a node to see what it reads,
computes and costs. Double-click a group to open or close it.</p></aside></div>
<p class="legend"><span class="key kernel"></span>in a kernel <span class="key left"></span>run by ONNX Runtime
<span class="key port"></span>input or output of the model <span class="key group"></span>a closed group</p>
"""


# -- pieces -----------------------------------------------------------------------------------------------------------


def _asset(name: str) -> str:
    return files("igniter.toolbox.report").joinpath("assets", name).read_text(encoding="utf-8")


def _json(value: object) -> str:
    """Returns JSON for a script element: it cannot end the element, or begin a comment."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _text(value: object) -> str:
    return html.escape(str(value))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """Returns a table of cells with markup; columns with a leading dot are numbers."""
    titles = "".join(f'<th class="{"number" if h.startswith(".") else ""}">{h.lstrip(".")}</th>' for h in head)
    lines = "".join(
        "<tr>"
        + "".join(
            f'<td class="{"number" if h.startswith(".") else ""}">{cell}</td>'
            for h, cell in zip(head, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    body = f"<thead><tr>{titles}</tr></thead><tbody>{lines}</tbody>"
    return f'<div class="scroll"><table class="{kind}">{body}</table></div>'


def _tile(figure: str, what: str, more: str = "", mood: str = "") -> str:
    small = f"<small>{_text(more)}</small>" if more else ""
    return f'<div class="tile {mood}"><strong>{_text(figure)}</strong><span>{_text(what)}</span>{small}</div>'


def _sizes(sizes: dict[str, int]) -> str:
    return ", ".join(f"{k}={v}" for k, v in sizes.items()) or "the sizes in the model"


def _threads(data: ReportData) -> str:
    return f"{data.threads} thread{'s' * (data.threads != 1)}"


def _figure(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}g}"


def _count(value: int | None) -> str:
    """Returns a number of operations or bytes in thousands."""
    if value is None:
        return ""
    size, unit = float(value), ""
    for larger in ("k", "M", "G", "T"):
        if size < 1000:
            break
        size, unit = size / 1000, f" {larger}"
    return f"{size:.3g}{unit}"


# -- sections ---------------------------------------------------------------------------------------------------------


def _overview(data: ReportData) -> str:
    report, tiles = data.report, list[str]()
    if data.profile is not None:
        run = f"{_threads(data)}, {_sizes(data.sizes)}"
        tiles.append(_tile(f"{data.profile.run_ms:.3g} ms", "a run without interruptions", run))
    regions, kernels = report.get("regions", 0), report.get("kernels", 0)
    nodes = f"{report['nodes_before']} → {report['nodes_after']}"
    tiles.append(_tile(nodes, "nodes before and after", f"{regions} of them custom ops, {kernels} kernels"))
    plan, arena = data.plan, data.compiled.graph
    less = f"{bytes_text(plan.value(plan.total))} node by node, {bytes_text(plan.value(plan.native))} without sharing"
    tiles.append(_tile(bytes_text(arena.value(arena.total)), "memory of activations", less))
    subnormal: dict[str, Any] = report.get("subnormal_weights") or {}
    if subnormal.get("flushed") or subnormal.get("kept"):
        count = int(subnormal["flushed"]) + int(subnormal["kept"])
        tiles.append(_tile(f"{count:,}", "subnormal weights", str(subnormal["text"])))
    tiled: dict[str, Any] = report.get("tile_weights") or {}
    if tiled:
        place = {"load": "made at load", "file": "in the file"}[str(tiled["at"])]
        tiles.append(_tile(place, "weights of convolutions in tiles", str(tiled["text"])))
    left = report.get("left_to_onnxruntime", [])
    kept = sum(not node.get("choice") for node in left)
    tiles.append(_tile(str(len(left)), "nodes left to ONNX Runtime", f"{kept} of them for want of a kernel"))
    status, told, mood = _verdict(data)
    tiles.append(_tile(status, "verification", told, mood))
    return f'<div class="tiles">{"".join(tiles)}</div>'


def _verdict(data: ReportData) -> tuple[str, str, str]:
    found = data.verification
    if found is None:
        return "not run", "", ""
    if found["status"] == "passed":
        worst = max((float(e) for e in found["max_errors"].values()), default=0.0)
        return "passed", f"largest relative error {worst:.1e}", "good"
    reasons: list[Any] = found.get("failures") or found.get("reasons") or []
    return str(found["status"]), "; ".join(map(str, reasons))[:160], "bad" if found["status"] == "differs" else ""


def _time(data: ReportData) -> str:
    profile = data.profile
    if profile is None:
        return _untimed(data) + _where(data)
    kernels = by_kernel(profile.steps, profile.run_ms)
    rest = profile.rest_ms / profile.run_ms if profile.run_ms else 0.0
    parts = [
        f"<p>Of a run of {profile.run_ms:.4g} ms, {1 - rest:.1%} is in {len(profile.steps)} calls of {len(kernels)} "
        f"kernels; {rest:.1%} is ONNX Runtime's, its nodes and the call. Medians of {profile.runs} runs on "
        f"{_threads(data)} at {_text(_sizes(data.sizes))}.</p>"
    ]
    if data.roof is not None:
        source = "measured on this machine" if data.measured else "figures of the machine that kernels are made for"
        parts.append(
            f"<figure>{roofline(kernels, data.roof)}<figcaption>Each circle is a kernel, its area its time; the line "
            f"is what {_threads(data)} can do at the most ({source}). Above it are "
            "kernels that read from caches, look up rows of a table that counts whole, or run on a machine that is "
            "faster than its figures.</figcaption></figure>"
        )
    parts.append(_kernels(kernels, data.roof, profile.rest_ms, profile.run_ms))
    return "".join([*parts, _where(data)])


def _untimed(data: ReportData) -> str:
    if not data.report.get("programs") and not data.report.get("kernels"):
        return "<p>Nothing of the model is compiled, so there is no kernel to time.</p>"
    target = _text(data.report["options"]["target"])
    return f"<p>Kernels for {target} note no time, so nothing was measured.</p>"


def _where(data: ReportData) -> str:
    """Returns tables of the shares of modules and ops."""
    nodes = data.graph.nodes
    run = data.profile.run_ms if data.profile is not None else 0.0
    note = (
        "<p>A kernel&#x27;s time is shared out among its nodes by their operations. Bytes are what nodes read from "
        "outside their kernel, and write for those outside it.</p>"
    )
    tables = [("By module", by_module(nodes)), ("By op", by_op(nodes))]
    return note + "".join(f"<h3>{title}</h3>{_shares(shares, run)}" for title, shares in tables if shares)


def _shares(shares: Sequence[Share], run: float) -> str:
    """Returns times and bars if kernels were timed, otherwise bars of operations."""
    weights = [s.ms or 0.0 for s in shares] if run else [float(s.flops) for s in shares]
    widest, rows = max(weights, default=0.0) or 1.0, list[tuple[str, ...]]()
    whole = run or sum(weights) or 1.0
    for s, weight in zip(shares, weights, strict=True):
        name = f'<span class="clip" title="{_text(s.name)}">{_text(s.name)}</span>'
        bar = f'<span class="bar" style="width:{100 * weight / widest:.1f}%"></span>'
        ms = "" if s.ms is None else f"{s.ms:.4f}"
        rows.append((name, str(s.nodes), ms, f"{weight / whole:.1%}", bar, _count(s.flops), _count(s.bytes)))
    return _table(("", ".nodes", ".about ms", ".share", "", ".operations", ".bytes"), rows, "shares")


def _kernels(kernels: Sequence[KernelTime], roof: Roof | None, rest: float, run: float) -> str:
    widest = max([k.share for k in kernels] + [rest / run if run else 0.0], default=1.0) or 1.0

    def bar(share: float) -> str:
        return f'<span class="bar" style="width:{100 * share / widest:.1f}%"></span>'

    rows: list[tuple[str, ...]] = []
    for k in kernels:
        link = f'<button class="link" data-kernel="{_text(k.kernel)}">{_text(k.kernel)}</button>'
        part = k.of_roof(roof) if roof is not None else None
        name = f'<span class="clip" title="{_text(k.what)}">{_text(k.what)}</span>'
        cost = (str(k.calls), f"{k.ms:.4f}", f"{k.share:.1%}", bar(k.share), _count(k.flops), _count(k.bytes))
        rows.append((link, name, *cost, _figure(k.gflops), _figure(k.gbytes), roof_text(part)))
    share = rest / run if run else 0.0
    rows.append(("", "ONNX Runtime", "", f"{rest:.4f}", f"{share:.1%}", bar(share), "", "", "", "", ""))
    head = (
        "kernel",
        "what",
        ".calls",
        ".ms",
        ".share",
        "",
        ".operations",
        ".bytes",
        ".GFLOP/s",
        ".GB/s",
        ".of the roof",
    )
    return _table(head, rows, "kernels")


MOST_KERNELS = 20
"""The most kernels in the table of threads."""


def _sharing(data: ReportData) -> str:
    """Returns how far threads can share the work, and the kernels that limit it."""
    plan = data.threads_plan
    if plan is None:
        return "<p>There is no kernel whose tasks threads of a CPU share.</p>"
    note = (
        f"<p>On paper: the longest chain of tasks has {plan.chain:.1%} of the work of all kernels at "
        f"{_text(_sizes(data.sizes))}, so no number of threads gains more than {1 / plan.chain:.3g} times. Work is an "
        "estimate in cycles. The hand-over of tasks, the caches and the memory that threads share, and the nodes of "
        "ONNX Runtime are not counted.</p>"
    )
    whole = [("all kernels", "100.0%", f"{plan.chain:.1%}", *(f"{plan.gain(n):.3g}" for n in THREADS))]
    work = sum(k.total for k in plan.kernels) or 1
    worst = sorted(plan.kernels, key=lambda k: k.total / THREADS[-1] - k.on(THREADS[-1]))[:MOST_KERNELS]
    rows = [
        (
            f'<button class="link" data-kernel="{_text(k.kernel)}">{_text(k.kernel)}</button>',
            f"{k.total / work:.1%}",
            f"{k.chain / max(1, k.total):.1%}",
            *(f"{k.gain(n):.3g}" for n in THREADS),
        )
        for k in worst
    ]
    head = ("kernel", ".work", ".longest chain", *(f".{n} threads" for n in THREADS))
    return note + _table(head, [*whole, *rows], "threads")


def _memory(data: ReportData) -> str:
    plan, compiled = data.plan, data.compiled
    peak = ""
    if plan.peak is not None:
        step = plan.steps[plan.peak]
        peak = f" The most is in use in step {plan.peak}, <code>{_text(step.name)}</code> ({_text(step.op)})."
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
    pictures = "".join(f"<figure>{chart.svg()}</figure>" for chart in charts)
    note = (
        f"<p>Bytes of activations over steps, each box a buffer: what is above another is in use beside it.{peak} "
        "Weights are not counted.</p>"
    )
    return note + _table(("", ".every value its own", ".plan", ".lower bound"), rows) + pictures


def _plan_row(what: str, native: Any, total: Any, bound: Any, plan: Any) -> tuple[str, ...]:
    return (
        _text(what),
        *(f'<span title="{plan.value(e):,} bytes">{bytes_text(plan.value(e))}</span>' for e in (native, total, bound)),
    )


def _left(data: ReportData) -> str:
    left: list[dict[str, Any]] = data.report.get("left_to_onnxruntime", [])
    if not left:
        return "<p>Nothing: every node is in a kernel.</p>"
    rows = [
        (
            f'<button class="link" data-node="{_text(n["node"])}">{_text(n["node"])}</button>',
            _text(n["op"]),
            "by choice" if n.get("choice") else "for want of a kernel",
            _text(n["reason"]),
        )
        for n in left
    ]
    return _table(("node", "op", "left", "why"), rows)


def _verification(data: ReportData) -> str:
    found = data.verification
    if found is None:
        return "<p>The compiled model was not compared with the original.</p>"
    status, told, mood = _verdict(data)
    parts = [f'<p class="verdict {mood}">{_text(status)}{": " * bool(told)}{_text(told)}</p>']
    rows: list[tuple[str, ...]] = []
    for case in found.get("cases", []):
        sizes = _text(_sizes(case["shapes"]) + (f" ({case['kind']})" if case.get("kind") else ""))
        for output in case.get("outputs", []):
            noise = output.get("noise")
            shape = _text("x".join(map(str, output["shape"])) or "scalar")
            verdict = "ok" if output["ok"] else _text(output["reason"])
            figures = (f"{float(output['max_error']):.2e}", "" if noise is None else f"{float(noise):.1e}")
            rows.append((sizes, _text(output["name"]), f"{_text(output['dtype'])} {shape}", *figures, verdict))
        if not case.get("outputs"):
            rows.append((sizes, "", "", "", "", _text(f"{case['status']}: {case['reason']}")))
    head = ("sizes", "output", "type", ".largest error", ".the original's noise", "")
    return "".join([*parts, _table(head, rows) if rows else ""])


def _footer(data: ReportData) -> str:
    options = data.report.get("options", {})
    target = _text(data.report.get("target", options.get("target", "")))
    return (
        f"Made by igniter {_text(__version__)} for {target}. The graph is drawn by Cytoscape.js with dagre; their "
        "licences are in this page's source."
    )
