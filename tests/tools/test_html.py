"""Objects of the API in a notebook."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import onnx
from onnx import helper

import igniter
from igniter.toolbox.html import MOST_NODES


def parsed(html: str) -> ElementTree.Element:
    assert "<script" not in html
    return ElementTree.fromstring(f"<div>{html}</div>")


def test_a_module_draws_its_graph_with_regions(model: Path) -> None:
    module = igniter.load(model)
    assert repr(module) == f"<igniter.Module of {model}: 6 nodes>"
    page = parsed(module._repr_html_())
    assert len(re.findall("<rect", module._repr_html_())) == 6
    module.run_passes("cpu-onnx,cpu-fusion")
    html = module._repr_html_()
    assert "@r0" in html and "1 x Relu" in html and page is not None
    assert len(html) < 5000
    module.run_passes("cpu-loop")
    assert "loop.kernel" in "".join(parsed(module._repr_html_()).itertext())


def test_names_are_escaped_and_big_graphs_are_summarised(tmp_path: Path) -> None:
    count = 3 * MOST_NODES
    nodes = [helper.make_node("Relu", [f"v{k}"], [f"v{k + 1}"], name=f"<b>{k}") for k in range(count)]
    ends = [helper.make_tensor_value_info(name, 1, [4]) for name in ("v0", f"v{count}")]
    small = helper.make_graph(nodes[:1], "g", ends[:1], [helper.make_tensor_value_info("v1", 1, [4])])
    assert "&lt;b&gt;0" in parsed_text(small, tmp_path)
    html = parsed_text(helper.make_graph(nodes, "g", ends[:1], ends[1:]), tmp_path)
    assert "<svg" not in html and f"{count} nodes, 0 of them regions" in html and len(html) < 2000


def parsed_text(graph: onnx.GraphProto, folder: Path) -> str:
    path = folder / "g.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    html = igniter.load(path)._repr_html_()
    assert len(list(parsed(html))) >= 1
    return html


def test_an_artifact_shows_its_summary(model: Path) -> None:
    artifact = igniter.compile(model, verify=False, load=False)
    text = "|".join(parsed(artifact._repr_html_()).itertext())
    assert "nodes|6 before" in text and str(artifact.folder) in text
    assert len(repr(artifact)) < 200
