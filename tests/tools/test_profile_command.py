"""`igniter profile`: its tables, JSON, CSV, and what it refuses."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from typer.testing import CliRunner

import igniter
from igniter.tools.main import app
from tests.analysis.model.networks import bert, decoder

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
SQUEEZENET = LIGHT / "light_squeezenet.onnx"


def invoke(*args: object) -> Any:
    return CliRunner().invoke(app, ["profile", *(str(a) for a in args)])


def printed(*args: object) -> str:
    done = invoke(*args)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(*args: object) -> str:
    done = invoke(*args)
    assert done.exit_code == 1, done.output
    return done.stderr


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    onnx.save(bert(1, 64, 4, 128), tmp_path / "bert.onnx")
    return tmp_path / "bert.onnx"


@pytest.fixture
def generator(tmp_path: Path) -> Path:
    onnx.save(decoder(), tmp_path / "decoder.onnx")
    return tmp_path / "decoder.onnx"


def test_the_table_by_node() -> None:
    text = printed(SQUEEZENET)
    assert "Conv" in text and "1x3x224x224" in text and "349,151,936" in text
    assert "66 nodes, 349 MMACs, 704 MFLOPs, 1.24 M parameters in 4.94 MB" in text
    assert "39 that depend on no input" in text


@pytest.mark.parametrize("by", ["node", "type", "module", "total"])
def test_json_has_what_python_has(encoder: Path, by: str) -> None:
    found = json.loads(printed(encoder, "--by", by, "--sizes", "batch=2,seq=16", "--json"))
    profile = igniter.load(encoder).profile({"batch": 2, "seq": 16})
    rows = {"node": profile.by_node(), "type": profile.by_type(), "module": profile.by_module(), "total": []}[by]
    assert found["rows"] == json.loads(json.dumps([r.to_dict() for r in rows]))
    assert found["total"] == json.loads(json.dumps(profile.total.to_dict()))
    assert found["sizes"] == {"batch": 2, "seq": 16}


def test_amounts_are_expressions_without_sizes(encoder: Path) -> None:
    found = json.loads(printed(encoder, "--by", "total", "--json"))
    assert found["total"]["macs"] == str(igniter.load(encoder).profile().total.cost.macs)
    assert found["symbols"] == {"batch": "dim 0 of input x", "seq": "dim 1 of input x"}
    assert "batch: dim 0 of input x" in printed(encoder, "--by", "total")


def test_depth_cuts_modules(encoder: Path) -> None:
    names = [r["name"] for r in json.loads(printed(encoder, "--by", "module", "--depth", "2", "--json"))["rows"]]
    assert names == ["encoder", "encoder/layer.0"]


def test_csv_has_the_rows_and_the_total(encoder: Path, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    printed(encoder, "--by", "type", "--sizes", "batch=1,seq=8", "--csv", path, "--device", "h100", "--sparsity")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    profile = igniter.load(encoder).profile({"batch": 1, "seq": 8}, sparsity=True)
    assert [r["name"] for r in rows] == [*(r.name for r in profile.by_type()), "Total"]
    assert int(rows[-1]["macs"]) == profile.total.cost.macs.constant
    assert float(rows[-1]["seconds"]) == pytest.approx(sum(float(r["seconds"]) for r in rows[:-1]), rel=1e-4)
    # The weights are all zero.
    assert rows[-1]["sparse_ratio"] == "1.0"


@pytest.mark.parametrize("by", ["node", "type", "module", "total"])
def test_times_on_a_device(encoder: Path, by: str) -> None:
    found = json.loads(printed(encoder, "--by", by, "--sizes", "batch=1,seq=8", "--device", "epyc-9654", "--json"))
    assert found["estimate"]["seconds"] > 0
    assert "no decoder" in found["decoder"]
    if by in ("node", "type"):
        assert sum(r["seconds"] for r in found["rows"]) == pytest.approx(found["estimate"]["seconds"])
    assert "GB/s (AMD EPYC 9004 data sheet" in printed(
        encoder, "--by", by, "--sizes", "batch=1,seq=8", "--device", "epyc-9654"
    )


def test_prefill_and_decode_of_a_decoder(generator: Path) -> None:
    args = (generator, "--by", "total", "--device", "a100", "--context", "16,32")
    found = json.loads(printed(*args, "--json"))
    assert [g["context"] for g in found["generation"]] == [16] * 4 + [32] * 4
    assert all(g["decode_tokens_per_second"] > 0 and g["prefill_tokens_per_second"] > 0 for g in found["generation"])
    text = printed(*args)
    assert "prefill" in text and "int4" in text


def test_this_machine_is_measured(encoder: Path) -> None:
    found = json.loads(printed(encoder, "--sizes", "batch=1,seq=8", "--device", "native", "--json"))
    assert found["device"]["peaks"]["float"] > 1e8
    assert found["device"]["bandwidth"] > 1e8
    assert found["device"]["source"].startswith("measured")


@pytest.mark.slow
def test_a_compiled_model_has_the_profile_of_its_original(encoder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bert.igniter"
    igniter.load(encoder).compile(folder, verify=False)
    assert (
        json.loads(printed(folder, "--by", "total", "--json"))["total"]
        == json.loads(printed(encoder, "--by", "total", "--json"))["total"]
    )


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--sizes", "sec=3"), "did you mean 'seq'?"),
        (("--sizes", "seq"), "is not a choice of sizes"),
        (("--depth", "2"), "--depth is of modules"),
        (("--context", "5"), "give --device too"),
        (("--device", "h10"), "did you mean 'h100'?"),
        (("--device", "h100"), "a time needs sizes of all symbols"),
        (("--device", "h100", "--context", "5"), "--context is of decoders"),
        (("--device", "h100", "--context", "5,x"), "no list of context lengths"),
    ],
)
def test_what_cannot_be_done_is_refused(encoder: Path, args: tuple[str, ...], said: str) -> None:
    assert said in refused(encoder, *args)


def test_no_model_is_an_error(tmp_path: Path) -> None:
    assert "missing.onnx" in refused(tmp_path / "missing.onnx")


def test_the_table_has_the_largest_nodes(tmp_path: Path) -> None:
    nodes = [onnx.helper.make_node("Relu" if k else "MatMul", ["x", "x"][: 2 - (k > 0)], [f"y{k}"]) for k in range(40)]
    outputs = [onnx.helper.make_tensor_value_info(f"y{k}", 1, [8, 8]) for k in range(40)]
    graph = onnx.helper.make_graph(nodes, "g", [onnx.helper.make_tensor_value_info("x", 1, [8, 8])], outputs)
    path = tmp_path / "m.onnx"
    onnx.save(onnx.helper.make_model(graph), path)
    runner = CliRunner()
    lines = runner.invoke(app, ["profile", str(path)]).output.splitlines()
    assert 20 < len(lines) <= 40 and sum("MatMul" in line for line in lines) == 1
    assert any(line.startswith("the 15 largest of 40; --all lists all") for line in lines)
    assert len(runner.invoke(app, ["profile", str(path), "--all"]).output.splitlines()) == len(lines) + 24
    assert len(json.loads(runner.invoke(app, ["profile", str(path), "--json"]).output)["rows"]) == 40
