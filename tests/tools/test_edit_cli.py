"""`igniter edit`, `extract`, `split` and `run-stages` on the command line: what they print, refuse and leave behind."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner, Result

from igniter.tools.main import app
from tests.transforms.edit import models

CACHE = Path(os.environ.get("IGNITER_BENCHMARK_CACHE", Path(__file__).parents[2] / "benchmark" / ".cache"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(models.branches(), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def igniter(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def told(*arguments: object) -> Any:
    done = igniter(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_edits_compose_in_the_stated_order(model: Path, tmp_path: Path):
    out = tmp_path / "out.onnx"
    # The rename comes last, so that every other option says `x` and `ids`.
    found = told(
        "edit", model, "-o", out, "--rename", "x=image", "--rename", "ids=tokens", "--type", "ids=int32",
        "--rename-dim", "batch=rows", "--expose", "h", "--opset", "19",
    )  # fmt: skip
    order = [e["pass"] for e in found["edits"]]
    assert order == ["convert-opset", "expose-values", "change-types", "rename-dims", "rename-values", "rename-values"]
    assert found["check"]["status"] == "passed" and [o["name"] for o in found["check"]["outputs"]] == ["y", "z", "h"]
    made = onnx.load(out)
    assert [v.name for v in made.graph.input] == ["image", "tokens", "c"]
    assert made.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "rows"
    onnx.checker.check_model(made, full_check=True)


def test_a_fixed_dim_is_checked_at_its_size(model: Path, tmp_path: Path):
    found = told("edit", model, "-o", tmp_path / "o.onnx", "--fix-dim", "x:0=5")
    assert found["check"]["status"] == "passed" and found["check"]["sizes"] == {"batch": 5}


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "nothing is asked for"),
        (["--rename", "x=y2"], "name the model to write with -o"),
        (["-o", "OUT", "--rename", "x"], "--rename takes two things with = between them, and 'x' is not that"),
        (["-o", "OUT", "--fix-dim", "batch=many"], "--bind-dim makes dims equal"),
        (["-o", "OUT", "--only", "w", "--rename", "x=q"], "--save-weights"),
        (["-o", "OUT", "--expose", "hh"], "did you mean 'h'"),
        (["-o", "OUT", "--replace", "r: r = Relu (h)"], "--replace takes two things with => between them"),
        (["-o", "OUT"], "-o is given, and no edit"),
        (["-o", "OUT", "--opset", "400"], "there is no opset 400"),
    ],
)
def test_what_is_refused_says_why(arguments: list[str], why: str, model: Path, tmp_path: Path):
    out = tmp_path / "out.onnx"
    done = igniter("edit", model, *(str(out) if a == "OUT" else a for a in arguments))
    assert done.exit_code == 1 and why in done.stderr and not out.exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx"]


def test_an_edited_model_that_does_not_run_is_not_written(tmp_path: Path):
    """Inference does not look into the function, which has the freed dim beside another: only a run shows it."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17, "local": 1]>
g (float[2,3] x, float[2,1] k) => (float[2,3] y) { y = local.Times (x, k) }
<domain: "local", opset_import: ["": 17]> Times (a, b) => (c) { c = Mul (a, b) }""")
    onnx.save(model, tmp_path / "m.onnx")
    out = tmp_path / "out.onnx"
    done = igniter("edit", tmp_path / "m.onnx", "-o", out, "--free-dim", "x:0=rows")
    assert done.exit_code == 1 and "it does not run at rows=3" in done.stdout and "nothing is written" in done.stdout
    assert not out.exists()


def test_weights_go_out_and_in(model: Path, tmp_path: Path):
    assert told("edit", model, "--save-weights", tmp_path / "w.npz")["weights"]["count"] == 2
    with np.load(tmp_path / "w.npz") as read:
        changed = {k: read[k] * 2 for k in read.files}
    np.savez(tmp_path / "v.npz", **changed)
    found = told("edit", model, "-o", tmp_path / "o.onnx", "--weights", tmp_path / "v.npz")
    assert found["check"]["status"] == "runs" and "weights are replaced" in found["check"]["reason"]
    tensor = onnx.load(tmp_path / "o.onnx").graph.initializer[1]
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(tensor), changed["w"])


def test_a_part_and_all_parts(model: Path, tmp_path: Path):
    found = told("extract", model, "--from", "e", "--to", "z", "-o", tmp_path / "p.onnx")
    assert found["parts"] == [{"name": "inside", "inputs": ["x", "e"], "outputs": ["z"], "nodes": 3}]
    assert found["check"]["status"] == "passed"
    found = told("extract", model, "--from", "h", "--to", "r", "-o", tmp_path / "parts", "--part", "all")
    assert [p["name"] for p in found["parts"]] == ["before", "inside", "after"]
    done = igniter("run-stages", tmp_path / "parts", "--here", "--reference", model, "--items", 2)
    assert done.exit_code == 0 and "the outputs are those of" in done.stdout
    done = igniter("extract", model, "--from", "h", "--to", "r", "-o", tmp_path / "q.onnx", "--part", "sideways")
    assert done.exit_code == 2


@pytest.mark.slow
def test_stages_run_in_processes_and_differ_from_another_model(model: Path, tmp_path: Path):
    found = told("split", model, "--stages", 2, "--sizes", "batch=8", "-o", tmp_path / "s")
    assert found["check"]["status"] == "passed" and len(found["stages"]) == 2 and found["sizes"] == {"batch": 8}
    found = told("run-stages", tmp_path / "s", "--reference", model, "-o", tmp_path / "out.npz")
    assert len({s["process"] for s in found["stages"]}) == 2 and found["differs"] == [] and found["items"] == 4
    with np.load(tmp_path / "out.npz") as read:
        assert sorted(read.files) == ["y", "z"] and read["y"].shape == (8, 4)
    igniter("edit", model, "-o", tmp_path / "other.onnx", "--insert", "h = Neg (h)")
    done = igniter("run-stages", tmp_path / "s", "--here", "--reference", tmp_path / "other.onnx")
    assert done.exit_code == 1 and "differs" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--stages", 2], "name the folder"),
        (["-o", "S"], "say how many --stages"),
        (["-o", "S", "--stages", 2, "--tensor", 2], "say how many --stages"),
        (["-o", "S", "--tensor", 2, "--balance", "bytes"], "--balance and --slack are for --stages"),
        (["-o", "S", "--stages", 9], "the model has 5 nodes, which do not make 9 stages"),
        (["-o", "S", "--tensor", 7], "no product of the model has a weight that 7 ranks can share"),
    ],
)
def test_a_split_that_is_none_says_why(arguments: list[object], why: str, model: Path, tmp_path: Path):
    given = [tmp_path / "s" if a == "S" else a for a in arguments]
    done = igniter("split", model, *given)
    assert done.exit_code == 1 and why in done.stderr, done.stderr
    assert not (tmp_path / "s").exists()


@pytest.mark.full
@pytest.mark.parametrize(
    "name", ["llama-small-dynamo", "gpt2-dynamo", "gpt2-decode-dynamo", "mobilebert-uncased-dynamo"]
)
def test_exported_models_in_stages_and_ranks(name: str, tmp_path: Path):
    path = CACHE / name / "model.onnx"
    if not path.exists():
        pytest.skip(f"{path} is not there: `make bench` exports it")
    for arguments in (["--stages", 4], ["--stages", 3, "--balance", "bytes"], ["--tensor", 2]):
        assert told("split", path, *arguments, "-o", tmp_path / "s")["check"]["status"] == "passed"
