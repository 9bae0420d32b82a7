"""Objects of the API in a notebook."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import onnx
from onnx import helper

import igniter
from igniter.toolbox.html import MOST_NODES
from igniter.toolbox.object_html import MOST_ROWS
from tests.docs.transcripts import ROOT


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


LINEAR = ROOT / "docs" / "examples" / "linear_by_hand.mlir"


def test_a_schedule_is_a_tree_of_loops() -> None:
    schedule = igniter.Schedule(LINEAR, target="x86-64-v3")
    assert repr(schedule) == "<igniter.Schedule of @linear: 2 nests, for x86-64-v3>"
    html = schedule._repr_html_()
    tree = parsed(html)
    # The nests share the loops over blocks: these are drawn once, and the nests are below them.
    assert html.count("j by 48") == html.count("i by 4") == 1
    assert {name.text: depth for name, depth in leaves(tree)} == {"matmul": 6, "relu": 5}
    schedule.vectorize("relu", "j", 8)
    assert "j vector 8" in schedule._repr_html_()


def leaves(tree: ElementTree.Element, depth: int = 0) -> Iterator[tuple[ElementTree.Element, int]]:
    """Yields the names of nests with the number of lists around them. Lists hold items, and items lists."""
    for child in tree:
        assert tree.tag != "ul" or child.tag == "li"
        if child.tag == "b" and depth:
            yield child, depth
        yield from leaves(child, depth + (child.tag == "ul"))


def test_a_nest_with_a_strange_name_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "k.mlir"
    path.write_text(LINEAR.read_text().replace('"relu"', '"<b>&relu"'))
    html = igniter.Schedule(path)._repr_html_()
    assert "&lt;b&gt;&amp;relu" in html and parsed(html) is not None


def test_a_profile_and_shapes_are_tables(tmp_path: Path, model: Path) -> None:
    module = igniter.load(model)
    profile, shapes = module.profile(), module.shapes()
    assert repr(profile) == f"<Profile: 6 nodes, {profile.total.cost.macs} MACs, 32 parameters, in batch>"
    assert repr(shapes) == f"<ModelShapes: {len(shapes.values)} values, 3 inputs, in batch>"
    table = "|".join(parsed(profile._repr_html_()).itertext())
    assert "Relu|1|0|" in table and "Total|6|" in table and "symbol|meaning|batch|" in table
    rows = list(parsed(shapes._repr_html_()).iter("tr"))
    assert ["".join(cell.itertext()) for cell in rows[1]] == ["x", "float32", "[batch, 8]", "", ""]


def test_tables_escape_names_and_are_cut(tmp_path: Path) -> None:
    count = MOST_ROWS + 5
    nodes = [helper.make_node("Relu", [f"<v>{k}"], [f"<v>{k + 1}"], name=f"<b>{k}") for k in range(count)]
    ends = [helper.make_tensor_value_info(name, 1, [4]) for name in ("<v>0", f"<v>{count}")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    path = tmp_path / "g.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    module = igniter.load(path)
    html = module.shapes()._repr_html_()
    assert "&lt;v&gt;3" in html and "<v>" not in html
    assert len(list(parsed(html).iter("tr"))) == MOST_ROWS + 2 and f"{count + 1 - MOST_ROWS} more" in html
    assert len(repr(module.profile())) < 200 and len(repr(module.shapes())) < 200
