"""A report as one page: it makes no requests, and no text of a model becomes markup or script.

Text passes through `html.escape` here and through `textContent` in the page's script; the script gets its data as JSON
without any `<`. The page's policy (`Content-Security-Policy`) forbids it to load anything. Cytoscape.js draws the graph
and dagre lays it out; both are in `assets/` with their licences, and in the page.
"""

from __future__ import annotations

import json
from importlib.resources import files

from igniter._version import __version__
from igniter.toolbox.report.gather import ReportData
from igniter.toolbox.report.markup import text
from igniter.toolbox.report.overview import overview
from igniter.toolbox.report.sections import (
    left_section,
    memory_section,
    threads_section,
    time_section,
    verification_section,
)

SCRIPTS = ("cytoscape.min.js", "cytoscape-dagre.min.js", "page.js")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def page(data: ReportData) -> str:
    """Returns the report as HTML."""
    sections = [
        ("overview", "Overview", overview(data)),
        ("graph", "Graph", GRAPH),
        ("time", "Time", time_section(data)),
        ("threads", "Threads", threads_section(data)),
        ("memory", "Memory", memory_section(data)),
        ("left", "Left to ONNX Runtime", left_section(data)),
        ("verification", "Verification", verification_section(data)),
    ]
    links = "".join(f'<a href="#{name}">{title}</a>' for name, title, _ in sections)
    body = "".join(
        f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{title}</h2>{content}</section>'
        for name, title, content in sections
    )
    scripts = "".join(f"<script>{_asset(name)}</script>" for name in SCRIPTS)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" '
        f'content="light dark"><title>{text(data.title)}: report</title>\n<!--\n{_asset("LICENSES.txt")}\n-->\n'
        f"<style>{_asset('page.css')}</style></head><body>"
        '<a class="skip" href="#main">Skip to the report</a>'
        f'<header><h1>{text(data.title)}</h1><nav aria-label="Sections">{links}</nav></header>'
        f'<main id="main" tabindex="-1">{body}</main><footer>{_footer(data)}</footer>'
        f'<script type="application/json" id="data">{_json(data.graph.to_dict())}</script>{scripts}</body></html>\n'
    )


GRAPH = """
<div class="tools" role="group" aria-label="Graph controls">
<label>Group by <select id="mode"><option value="regions">programs and kernels</option>
<option value="modules">modules of the model</option></select></label>
<label>Color by <select id="color"><option value="group">kernel</option>
<option value="time">time</option></select></label>
<button id="expand-all">Expand all</button><button id="collapse-all">Collapse all</button>
<button id="zoom-in">Zoom in</button><button id="zoom-out">Zoom out</button>
<button id="fit">Fit to window</button><button id="home">Beginning</button>
<span class="search"><input id="search" type="search" placeholder="Search nodes, ops, values, kernels"
aria-label="Search nodes, ops, values and kernels" autocomplete="off" role="combobox" aria-expanded="false"
aria-autocomplete="list" aria-controls="found"><ul id="found" role="listbox" aria-label="Search results" hidden></ul>
</span><span id="count" role="status"></span>
</div>
<p class="hint" id="keys">Click a node for its inputs, attributes and cost; double-click a group to open or close it.
By keyboard: arrow keys walk along edges and between neighbours, Home goes to the first node, Enter opens or closes a
group, + and - zoom, 0 fits the graph to the window, Tab leaves the graph.</p>
<div class="canvas"><div id="cy" tabindex="0" role="application" aria-label="Graph of the compiled model"
aria-describedby="keys"></div><div id="details" tabindex="0" role="region" aria-label="Details of the selected node">
<p class="hint">Nothing is selected.</p></div></div>
<p id="said" class="unseen" role="status"></p>
<p class="legend"><span class="key kernel"></span>in a kernel <span class="key left"></span>run by ONNX Runtime
<span class="key port"></span>input or output of the model <span class="key group"></span>a closed group</p>
<div id="shared" class="legend" hidden><p>Values with many readers: their edges are drawn while they or a reader are
selected, and each reader has the mark of the value.</p><ul></ul></div>
"""


def _asset(name: str) -> str:
    return files("igniter.toolbox.report").joinpath("assets", name).read_text(encoding="utf-8")


def _json(value: object) -> str:
    """Returns JSON for a script element: it cannot end the element, or begin a comment."""
    found = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return found.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _footer(data: ReportData) -> str:
    options = data.report.get("options", {})
    target = text(data.report.get("target", options.get("target", "")))
    return (
        f"Made by igniter {text(__version__)} for {target}. The graph is drawn by Cytoscape.js with dagre; their "
        "licences are in this page's source."
    )
