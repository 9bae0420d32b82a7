"""A report as a file: complete, without requests, and without anything of the model as markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from typer.testing import CliRunner

import igniter
from igniter.toolbox.bench.time_profile import StepTime
from igniter.toolbox.report.attributes import MOST_LETTERS, value_text
from igniter.toolbox.report.charts import KernelTime, Roof, by_kernel, roofline
from igniter.toolbox.report.graph import module_path
from igniter.toolbox.report.shares import MOST_MODULES, Share, by_module, by_op, share_times
from igniter.tools.main import app
from tests.analysis.model.models import diamond, model_of

from .models import EVIL


class Parsed(HTMLParser):
    """The view of a browser: elements with attributes, and the text of each section."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.sections: dict[str, str] = {}
        self.section = self.tag = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.tag = tag
        if tag == "section":
            self.section = dict(attrs)["id"] or ""
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.tag == "script":
            self.scripts[-1] += data
        else:
            self.sections[self.section] = self.sections.get(self.section, "") + data + "\n"

    def handle_endtag(self, tag: str) -> None:
        self.tag = ""


@pytest.fixture(scope="module")
def parsed(page: Path) -> Parsed:
    return Parsed(page.read_text())


def test_nothing_of_a_model_is_markup(parsed: Parsed) -> None:
    tags = [tag for tag, _ in parsed.elements]
    assert tags.count("script") == 4 and "img" not in tags and "b" not in tags
    assert not any(name.startswith("on") for _, attrs in parsed.elements for name in attrs)
    assert EVIL + "log" in "".join(parsed.sections.values())


def test_the_page_asks_for_nothing(parsed: Parsed) -> None:
    for _tag, attrs in parsed.elements:
        assert not {"src", "data", "action", "background"} & attrs.keys()
        assert (attrs.get("href") or "#").startswith("#")
    policy = next(a["content"] for tag, a in parsed.elements if tag == "meta" and "http-equiv" in a)
    assert policy is not None and policy.startswith("default-src 'none'")


def test_the_licences_of_what_is_inside_are_inside(page: Path) -> None:
    text = page.read_text()
    head = text[: text.index("<style>")]
    for name in ("Cytoscape.js", "cytoscape-dagre", "dagre (inside", "Permission is hereby granted"):
        assert name in head
    assert len(text) < 1_000_000


def test_the_graph_has_groups_edges_and_reasons(parsed: Parsed) -> None:
    data = json.loads(parsed.scripts[0])
    nodes = {n["name"]: n for n in data["nodes"]}
    assert nodes["/text/Normalize"]["kind"] == "left" and "no lowering" in nodes["/text/Normalize"]["reason"]
    assert nodes["/block.2/Softmax"]["kind"] == "node" and nodes["/block.2/Softmax"]["module"] == ["block.2"]
    assert nodes["x"]["kind"] == "input" and nodes["x"]["type"] == "f32[n, 16]"
    groups = {g["id"]: g for g in data["groups"]}
    kinds = {g["kind"] for g in groups.values()}
    assert kinds == {"program", "region", "graph"}
    branch = groups[groups[nodes["then_exp"]["group"]]["parent"]]
    assert branch["label"] == "/block.1/choice/If.then_branch"
    ids = {n["id"]: n["name"] for n in data["nodes"]}
    edges = {(ids[a], ids[b]) for a, b, _ in data["edges"]}
    assert ("then_soft", "/block.1/choice/If") in edges and ("/block.1/choice/If", "/block.2/Softmax") in edges
    assert ("/block.0/Cast", "/block.1/choice/If") in edges
    timed = [g for g in groups.values() if g["kind"] == "region" and "ms" in g]
    assert timed and all(g["ms"] > 0 and g["flops"] > 0 for g in timed)


def test_sections_say_what_is_left_and_how_exact_it_is(parsed: Parsed) -> None:
    assert "StringNormalizer" in parsed.sections["left"] and "no lowering" in parsed.sections["left"]
    assert "passed" in parsed.sections["verification"] and "n=4" in parsed.sections["verification"]
    assert "of a run of" in parsed.sections["time"].lower() and "n=4" in parsed.sections["time"]
    assert "longest chain of tasks" in parsed.sections["threads"] and "all kernels" in parsed.sections["threads"]
    assert "node by node" in parsed.sections["memory"] and "step 3" in parsed.sections["memory"]


@pytest.mark.slow
def test_a_folder_is_reported_with_the_verification_that_it_has(tmp_path: Path) -> None:
    model, out = tmp_path / "d.onnx", tmp_path / "d.html"
    model.write_bytes(diamond())
    igniter.compile(model, tmp_path / "d.igniter", shapes=[{"rows": 7}])
    done = CliRunner().invoke(app, ["report", str(tmp_path / "d.igniter"), "-o", str(out), "--shape", "rows=3"])
    assert done.exit_code == 0, done.output
    assert "rows=7" in Parsed(out.read_text()).sections["verification"]
    done = CliRunner().invoke(app, ["report", str(model), "-o", str(out), "--no-verify"])
    assert done.exit_code == 0 and "was not compared" in Parsed(out.read_text()).sections["verification"]


@pytest.mark.slow
def test_a_module_writes_its_report(tmp_path: Path) -> None:
    out = tmp_path / "d.html"
    igniter.load(diamond()).report(out, {"rows": 9})
    text = Parsed(out.read_text())
    assert "rows=9" in text.sections["verification"] and "rows=9" in text.sections["time"]
    assert "a model in memory" in out.read_text()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("-o", "page.pdf"), "page.pdf is no .html"),
        (("--shape", "rows=1", "--shape", "rows=2"), "a report is of one choice of sizes"),
        (("--shape", "row=1"), "row"),
    ],
)
def test_what_cannot_be_reported_is_said(tmp_path: Path, arguments: tuple[str, ...], reason: str) -> None:
    model = tmp_path / "d.onnx"
    model.write_bytes(diamond())
    done = CliRunner().invoke(app, ["report", str(model), *arguments])
    assert done.exit_code == 1 and reason in done.output
    assert [p.name for p in tmp_path.iterdir()] == ["d.onnx"]


def test_ir_is_not_reported(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(tmp_path / "a.mlir")])
    assert done.exit_code == 1 and "give the ONNX model" in done.output


def test_a_model_of_which_nothing_is_compiled_is_reported(tmp_path: Path) -> None:
    node = helper.make_node("StringNormalizer", ["t"], ["y"], "n")
    model, out = tmp_path / "s.onnx", tmp_path / "s.html"
    model.write_bytes(model_of([node], {"t": [2]}, ["y"], t=TensorProto.STRING, y=TensorProto.STRING))
    done = CliRunner().invoke(app, ["report", str(model), "-o", str(out)])
    assert done.exit_code == 0, done.output
    found = Parsed(out.read_text()).sections
    assert "Nothing of the model is compiled" in found["time"] and "StringNormalizer" in found["left"]


@pytest.mark.slow
def test_a_model_for_gpus_is_reported_without_times(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    model, out = tmp_path / "d.onnx", tmp_path / "d.html"
    model.write_bytes(diamond())
    for target in ("cuda", "native,cuda"):
        done = CliRunner().invoke(app, ["report", str(model), "-o", str(out), "--target", target, "--no-verify"])
        assert done.exit_code == 0, done.output
        found = Parsed(out.read_text()).sections
        assert f"Kernels for {target} note no time" in found["time"] and "By op" in found["time"]


def test_times_are_shared_by_operations() -> None:
    nodes: list[dict[str, Any]] = [
        {"group": "g1", "kind": "node", "op": "MatMul", "module": ["a", "b"], "flops": 30, "bytes": 5},
        {"group": "g1", "kind": "node", "op": "Add", "module": ["a", "c"], "flops": 10},
        {"group": "g2", "kind": "node", "op": "Add", "module": ["d"], "flops": None, "bytes": 7},
        {"group": "", "kind": "left", "op": "Pad", "module": [], "flops": 2},
        {"group": "", "kind": "input", "op": "input", "module": []},
    ]
    share_times(nodes, [{"id": "g1", "kind": "region", "ms": 4.0}, {"id": "g2", "kind": "region", "ms": 2.0}])
    assert [n.get("ms") for n in nodes] == [3.0, 1.0, 2.0, None, None]
    assert by_op(nodes) == [Share("MatMul", 1, 3.0, 30, 5), Share("Add", 2, 3.0, 10, 7), Share("Pad", 1, None, 2, 0)]
    assert [(s.name, s.ms) for s in by_module(nodes)] == [
        ("a.b", 3.0),
        ("a.c", 1.0),
        ("d", 2.0),
        ("in no module", None),
    ]
    many = [{**nodes[0], "module": ["a", str(k)]} for k in range(MOST_MODULES + 1)]
    assert [s.name for s in by_module(many)] == ["a"]
    assert by_module([nodes[3]]) == []


def test_bytes_are_those_that_leave_a_kernel(parsed: Parsed) -> None:
    nodes = {n["name"]: n for n in json.loads(parsed.scripts[0])["nodes"] if n["kind"] in ("node", "left")}
    product = next(n for n in nodes.values() if n["op"] == "MatMul")
    assert product["bytes"] >= 4 * (4 * 16 + 16 * 16)  # x and w come from outside
    assert "By module" in parsed.sections["time"] and "block.0" in parsed.sections["time"]


def test_the_roof_is_the_lower_of_arithmetic_and_memory() -> None:
    roof = Roof(gflops=100.0, gbytes=10.0)
    assert roof.ridge == 10 and roof.at(1.0) == 10 and roof.at(100.0) == 100
    step = StepTime("p0", "r0", "k", "MatMul (m)", 0.0, 2.0, 0.5, 10**8, 10**7)
    (kernel,) = by_kernel([step, step], 8.0)
    assert (kernel.calls, kernel.ms, kernel.share, kernel.flops) == (2, 4.0, 0.5, 2 * 10**8)
    assert kernel.gflops == 50 and kernel.gbytes == 5 and kernel.of_roof(roof) == 0.5
    unknown = KernelTime("k", "m", 1, 1.0, 0.1, None, None)
    assert unknown.gflops is None and unknown.of_roof(roof) is None
    assert "<circle" in roofline([kernel], roof) and "<circle" not in roofline([unknown], roof)


@pytest.mark.parametrize(
    ("ms", "ops", "measured", "told"),
    [
        (2.0, ("MatMul",), False, "50%"),
        (0.5, ("MatMul",), False, "10% of arithmetic; data in caches"),
        (0.5, ("Gather", "Add"), False, "10% of arithmetic; reads a part of a table"),
        (0.04, ("MatMul",), False, "above the machine's figures (see --measure)"),
        (0.04, ("MatMul",), True, "the machine was disturbed"),
    ],
)
def test_no_share_of_the_roof_is_above_100_percent(ms: float, ops: tuple[str, ...], measured: bool, told: str) -> None:
    roof = Roof(gflops=100.0, gbytes=10.0, cache_bytes=10**7, measured=measured)
    kernel = KernelTime("k", "m", 1, ms, 0.1, 5 * 10**6, 10**7, ops)
    assert kernel.roof_text(roof) == told
    streamed = replace(kernel, ms=0.5, bytes=2 * 10**7, ops=("Add",)).roof_text(roof)
    assert streamed == ("the machine was disturbed" if measured else "above the machine's figures (see --measure)")


def test_the_first_card_has_the_time_of_onnxruntime(parsed: Parsed) -> None:
    first = parsed.sections["overview"].split("\n")[1:4]
    assert re.fullmatch(r"\d+\.\d\dx the speed", first[0])
    assert re.fullmatch(r"ONNX Runtime \S+ ms, compiled \S+ ms", first[1]) and "noise" in first[2]


def test_attributes_of_nodes_are_shown(parsed: Parsed) -> None:
    nodes = {n["name"]: n for n in json.loads(parsed.scripts[0])["nodes"]}
    assert ["axis", "-1 (default)"] in nodes["/block.2/Softmax"]["attributes"]
    assert ["keepdims", "0"] in next(n for n in nodes.values() if n["op"] == "ReduceSum")["attributes"]
    assert "attributes" not in nodes["x"] and all(len(a) == 2 for n in nodes.values() for a in n.get("attributes", ()))


def test_attributes_are_short() -> None:
    texts = [value_text(v) for v in (1, 1e-5, "same", [1, 2], np.zeros((2, 2)), np.zeros((9, 9), np.float32), b"ab")]
    assert texts[:4] == ["1", "1e-05", "same", "[1, 2]"]
    assert texts[4:] == ["float64[2, 2] [[0.0, 0.0], [0.0, 0.0]]", "float32[9, 9]", "2 bytes"]
    assert len(value_text(list(range(1000)))) == MOST_LETTERS


def test_modules_of_nodes() -> None:
    from xdsl.dialects.builtin import DictionaryAttr

    from igniter.dialects.onnx.attributes import text_attr
    from igniter.dialects.onnx.base import make_op

    def path(name: str, scopes: str = "") -> tuple[str, ...]:
        op = make_op("Relu", [], [], node_name=name)
        if scopes:
            op.properties["metadata"] = DictionaryAttr({"pkg.torch.onnx.name_scopes": text_attr(scopes)})
        return module_path(op)

    assert (
        path("/a/b.0/Relu") == ("a", "b.0")
        and path("Relu_3") == ()
        and path("encoder.layer.Relu") == ("encoder", "layer")
    )
    assert path("n", "['', 'model', 'model.h.0', 'model.h.0.attn', 'view']") == ("model", "h.0", "attn")
    assert path("n", "not a list") == ()
