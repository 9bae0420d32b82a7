"""`igniter inspect`: a summary that fits on a screen, and all that is known on request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest
from typer.testing import CliRunner

import igniter
from igniter.toolbox.inspect.summary import MOST_OPS, MOST_VALUES, artifact_lines, model_lines, size
from igniter.tools.main import app

HEADER = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>'


def invoke(*args: object) -> Any:
    return CliRunner().invoke(app, ["inspect", *(str(a) for a in args)])


def lines(*args: object) -> dict[str, list[str]]:
    """The lines of the summary by subject."""
    done = invoke(*args)
    assert done.exit_code == 0, done.output
    found: dict[str, list[str]] = {}
    names = [line[2:] for line in done.stdout.splitlines()[1:]]
    column = min(len(n) - len(n[n.index("  ") :].lstrip()) for n in names if n.strip())
    for line in names:
        name = line[:column].strip() or list(found)[-1]
        found.setdefault(name, []).append(line[column:])
    return found


@pytest.fixture
def compiled(model: Path, tmp_path: Path) -> Path:
    igniter.compile(model, tmp_path / "model.igniter")
    return tmp_path / "model.igniter"


def save(path: Path, text: str) -> Path:
    onnx.save(onnx.parser.parse_model(f"{HEADER} {text}"), path)
    return path


def test_a_model(model: Path) -> None:
    found = lines(model)
    assert found["inputs"] == ["x: f32 [batch, 8]", "w: f32 [8]", "ids: i64 [batch]"]
    assert found["outputs"] == ["y: f32 [batch, 8]", "total: f32 [batch]"]
    assert found["opsets"] == ["onnx 17"]
    (nodes,) = found["nodes"]
    assert nodes.startswith("6: ") and "Relu 1" in nodes
    (weights,) = found["weights"]
    assert weights.endswith(" bytes")


@pytest.mark.slow
def test_a_compiled_model(compiled: Path, model: Path) -> None:
    done = invoke(compiled)
    assert len(done.stdout.splitlines()) < 25
    found = lines(compiled)
    (became,) = found["compiled"]
    assert became.startswith("6 nodes became ")
    assert found["target"][0].startswith("native (")
    assert found["inputs"] == lines(model)["inputs"]
    assert found["verified"][0].startswith("against ONNX Runtime at ")
    assert found["original"] == [str(model)]
    assert any(name.startswith("libigniter_") for name in found["files"])
    assert {"model.onnx", "report.json"} <= {name.partition(" (")[0] for name in found["files"]}
    assert "options" not in found


@pytest.mark.slow
def test_an_original_that_is_gone(compiled: Path, model: Path) -> None:
    model.unlink()
    assert lines(compiled)["original"] == [f"not there, or changed: {model}"]


def test_options_that_are_not_the_default(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "other.igniter"
    igniter.compile(model, folder, target="x86-64-v2,x86-64-v3", sizes={"batch": 4}, verify=False)
    found = lines(folder)
    assert found["target"] == ["x86-64-v2, x86-64-v3"]
    assert len(found["options"]) == 1 and found["options"][0].startswith("sizes=") and "batch" in found["options"][0]
    assert found["verified"] == ["no: it was compiled with --no-verify; `igniter verify` does it now"]


def test_a_library(compiled: Path) -> None:
    (library,) = compiled.glob("*.so")
    found = lines(library)
    assert found["runs in"][0].startswith("CPUExecutionProvider of ONNX Runtime 1.1")
    assert found["ops"][0].startswith("igniter_")
    assert found["domain"][0].startswith("libigniter_")


@pytest.mark.slow
def test_all_and_json_have_everything(compiled: Path, model: Path) -> None:
    everything = invoke(compiled, "--all").stdout
    assert "fma_latency" in everything and "kernel_digest" in everything
    assert len(everything.splitlines()) > 100
    assert "Relu: 1" in invoke(model, "--all").stdout
    for path in (compiled, model):
        described = json.loads(invoke(path, "--json").stdout)
        assert json.loads(invoke(path, "--all", "--json").stdout) == described
    assert described["inputs"]["x"] == "tensor<?x8xf32, #sym.dims<batch, 8>>"


def test_many_values_and_ops_are_cut(tmp_path: Path) -> None:
    inputs = ", ".join(f"float[n] x{i}" for i in range(MOST_VALUES + 3))
    kinds = [
        "Abs",
        "Neg",
        "Exp",
        "Tanh",
        "Relu",
        "Sqrt",
        "Sin",
        "Cos",
        "Floor",
        "Ceil",
        "Erf",
        "Sign",
        "Sigmoid",
        "Softplus",
    ]
    nodes = " ".join(f"y{i} = {kind}(y{i - 1})" if i else f"y0 = {kind}(x0)" for i, kind in enumerate(kinds))
    path = save(tmp_path / "many.onnx", f"many ({inputs}) => (float[n] y{len(kinds) - 1}) {{ {nodes} }}")
    found = lines(path)
    assert found["inputs"][-1] == "and 3 more" and len(found["inputs"]) == MOST_VALUES + 1
    assert found["opsets"] == ["onnx 17, com.microsoft 1"]
    assert found["nodes"][0].endswith(f"and {len(kinds) - MOST_OPS} nodes of {len(kinds) - MOST_OPS} other ops")


def test_values_that_are_no_tensors_and_names_with_markup(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        f"{HEADER} odd (seq(float[n]) s, float[n] x) => (int64 count, float[n] y) {{ "
        "count = SequenceLength(s) y = Abs(x) }"
    )
    for value in (model.graph.input[1], *model.graph.output[1:]):
        value.name = f"[red]{value.name}"
    model.graph.node[1].input[0], model.graph.node[1].output[0] = "[red]x", "[red]y"
    onnx.save(model, tmp_path / "odd.onnx")
    found = lines(tmp_path / "odd.onnx")
    assert found["inputs"][0].startswith("s: ") and "f32" in found["inputs"][0]
    assert found["inputs"][1] == "[red]x: f32 [n]"
    assert found["outputs"] == ["count: i64 []", "[red]y: f32 [n]"]


def test_what_is_left_is_said_with_its_reason(tmp_path: Path) -> None:
    text = "left (float[n] x) => (int64[1, m] places, float[n] y) { places = NonZero(x) t = Tanh(x) y = Add(t, x) }"
    folder = tmp_path / "left.igniter"
    igniter.compile(save(tmp_path / "left.onnx", text), folder, verify=False)
    assert lines(folder)["left to ORT"] == ["NonZero: Igniter has no lowering for NonZero"]


def test_reasons_are_counted_and_cut(tmp_path: Path) -> None:
    module = igniter.load(save(tmp_path / "a.onnx", "a (float[n] x) => (float[n] y) { y = Abs(x) }")).ir
    left = [{"op": f"Op{i % 8}", "reason": "there is none\nat all"} for i in range(20)]
    described: dict[str, Any] = {
        "nodes_before": 20, "nodes_after": 20, "regions": 0, "kernels": 0, "libraries": [], "target": "native",
        "options": {}, "model": {"weight_bytes": 3 << 30}, "left_to_onnxruntime": left, "files": [], "source": None,
        "versions": {"igniter": "0", "llvm": "1"},
        "verification": {"status": "differs"},
    }  # fmt: skip
    said = artifact_lines(described, module, tmp_path, False)
    shown = [text for name, text in said[said.index(("left to ORT", "Op0 (3): there is none")) :]][:6]
    assert shown[-1] == "and 6 nodes more" and len(shown) == 6
    assert dict(said)["weights"] == "3 GiB"
    assert "differ" in dict(said)["verified"]
    assert dict(said)["original"] == "a model in memory"


def test_an_empty_graph_has_a_summary() -> None:
    module = igniter.parse(
        "builtin.module { onnx.graph @main() attributes {input_names = [], output_names = []} { onnx.return } }"
    ).ir
    said = dict(model_lines({"nodes": 0, "ops": {}, "weight_bytes": 0}, module))
    assert (said["inputs"], said["outputs"], said["nodes"], said["weights"]) == ("none", "none", "0", "0 bytes")


def test_sizes() -> None:
    assert [size(n) for n in (0, 1023, 1024, 1 << 20, 5 << 30)] == ["0 bytes", "1023 bytes", "1 KiB", "1 MiB", "5 GiB"]
