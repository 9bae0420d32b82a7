"""`igniter plan` prints, draws and writes plans, and says what it cannot plan."""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import onnx
import pytest
from onnx import helper
from typer.testing import CliRunner

import igniter
from igniter.toolbox.plan.chart import Chart, bytes_text
from igniter.tools.main import app
from tests.analysis.model.models import LIGHT, diamond, model_of

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def output(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["plan", *arguments])
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "diamond.onnx"
    path.write_bytes(diamond())
    return str(path)


def test_json_is_the_whole_plan_and_nothing_else(model: str) -> None:
    found = json.loads(output(model, "--sizes", "rows=5", "--json"))
    assert [s["name"] for s in found["steps"]] == ["n_a", "n_c", "n_b", "n_d", "n_y"]
    assert found["native"] == 300 and found["at_bound"] and found["order"] == "ort"
    assert {a["name"]: a["shares"] for a in found["activations"]}["d"] == "in place of b"
    free = json.loads(output(model, "--json", "--align", "1"))
    assert free["native"] == "60*rows" and free["typical"] == {"rows": 128}


def test_csv_has_a_row_for_each_activation(model: str, tmp_path: Path) -> None:
    out = tmp_path / "a.csv"
    output(model, "--csv", str(out), "--sizes", "rows=5")
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [r["name"] for r in rows] == ["a", "c", "b", "d", "y"]
    assert rows[0]["dims"] == "5, 3" and rows[0]["bytes"] == "60" and rows[0]["size"] == "64"


def test_the_terminal_names_the_peak_and_what_is_there(model: str) -> None:
    text = output(model, "--sizes", "rows=5")
    assert "5 steps, 5 activations in 4 buffers, at rows=5" in text
    assert "in use in step 2, n_b" in text and "█" in text
    assert "n_y" in output(model, "--all")


def test_a_chart_has_a_box_for_each_buffer_and_no_markup_of_the_model(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>&\"'"
    nodes = [helper.make_node("Softmax", ["x"], [name], name), helper.make_node("Softmax", [name], ["y"], "n")]
    path = tmp_path / "odd.onnx"
    path.write_bytes(model_of(nodes, {"x": [64, 64]}, ["y"]))
    for suffix in ("svg", "html"):
        out = tmp_path / f"c.{suffix}"
        output(str(path), "--chart", str(out))
        text = out.read_text()
        assert "<script" not in text
        svg = ElementTree.fromstring(text[text.index("<svg") : text.index("</svg>") + 6])
        whole, *titles = [t.text or "" for t in svg.iter("{http://www.w3.org/2000/svg}title")]
        assert whole.startswith("odd.onnx: activations: 2 buffers")
        assert len(titles) == 2 and titles[0].startswith(name)


@pytest.mark.slow
def test_a_compiled_model_has_programs_and_arenas(tmp_path: Path) -> None:
    out = tmp_path / "c.html"
    found = json.loads(output(str(LIGHT / "light_bvlc_alexnet.onnx"), "--compiled", "--json", "--chart", str(out)))
    (arena,) = found["programs"]
    assert len(found["graph"]["steps"]) < 10
    assert int(arena["total"]) <= int(arena["lower_bound"])
    assert {a["kind"] for a in found["graph"]["activations"]} >= {"arena", "output"}
    calls = len(arena["calls"])
    assert calls > 1 and all(0 <= b["first"] <= b["last"] < calls for b in arena["buffers"])
    assert out.read_text().count("<svg") == 2


def test_a_folder_is_planned_as_compiled(tmp_path: Path, model: str) -> None:
    folder = tmp_path / "diamond.igniter"
    igniter.compile(model, folder, verify=False)
    found = json.loads(output(str(folder), "--json"))
    assert [s["op"] for s in found["graph"]["steps"]] == ["program"]
    assert found == json.loads(output(model, "--compiled", "--json", "--target", found["target"]))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--sizes", "row=5"), "the model has no dim row; its dims are rows"),
        (("--chart", "a.png"), "a.png is neither .svg nor .html"),
        (("--compiled", "--order", "model"), "--order, --count-inputs"),
    ],
)
def test_what_cannot_be_planned_is_said(model: str, arguments: tuple[str, ...], reason: str) -> None:
    assert reason in output(model, *arguments, code=1)


def test_kernels_have_no_graph_to_plan() -> None:
    assert "no graph" in output(str(EXAMPLES / "relu_kernel.mlir"), code=1)


def test_external_weights_are_not_read(tmp_path: Path) -> None:
    """A plan of a model whose weights are not even there."""
    path = tmp_path / "m.onnx"
    made = onnx.load_from_string(
        model_of([helper.make_node("MatMul", ["x", "w"], ["y"], "n_y")], {"x": ["n", 4]}, ["y"])
    )
    weight = made.graph.initializer.add(name="w", data_type=1, dims=[4, 1 << 20], data_location=1)
    weight.external_data.add(key="location", value="w.bin")
    (tmp_path / "w.bin").write_bytes(b"")
    with (tmp_path / "w.bin").open("r+b") as file:
        file.truncate(4 * 4 << 20)
    path.write_bytes(made.SerializeToString())
    assert json.loads(output(str(path), "--json"))["native"] == "4194304*n"


def test_bytes_in_words() -> None:
    assert [bytes_text(n) for n in (0, 1023, 1024, 3 << 20, 5 << 30)] == [
        "0 B",
        "1023 B",
        "1.00 KiB",
        "3.00 MiB",
        "5.00 GiB",
    ]


def test_a_chart_of_nothing_is_a_chart() -> None:
    chart = Chart("empty", (), (), (), 0)
    assert chart.text() == [] and ElementTree.fromstring(chart.svg()).tag.endswith("svg")
