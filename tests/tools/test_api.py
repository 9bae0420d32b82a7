"""The Python API: load, run passes, compile, verify."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from tools_kit import tiny_model

import igniter
from igniter.compiler.compilation import CompileOptions
from igniter.runtime.session import make_session
from igniter.targets import given_machine


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["path", "text", "bytes", "proto"])
def test_loads_whatever_a_model_comes_as(model: Path, kind: str) -> None:
    given = {"path": model, "text": str(model), "bytes": model.read_bytes(), "proto": onnx.load(model)}[kind]
    artifact = igniter.compile(given)
    assert artifact.report["regions"] > 0
    assert artifact.report["verification"]["ok"]
    assert artifact.verify().ok


def test_passes_change_the_module_and_clones_do_not(model: Path) -> None:
    module = igniter.load(model)
    copy = module.clone()
    before = str(module)
    assert module.run_passes("infer-shapes,canonicalize-onnx") is module
    assert str(module) != before
    assert str(copy) == before


def test_the_text_of_a_module_is_a_module(model: Path) -> None:
    module = igniter.load(model).run_passes("infer-shapes")
    assert str(igniter.parse(str(module))) == str(module)


@pytest.mark.slow
def test_results_have_a_short_repr(model: Path) -> None:
    module = igniter.load(model)
    assert re.fullmatch(r"<MemoryPlan: \d+ steps, \d+ activations in \d+ buffers, .* bytes>", repr(module.plan()))
    passed = r"<Verification: passed, \d+ cases? against ONNX Runtime, largest relative error [0-9.e+-]+>"
    assert re.fullmatch(passed, repr(module.compile().verify()))
    s = igniter.Schedule(Path(__file__).parents[2] / "docs" / "examples" / "linear.mlir", author=True)
    assert re.fullmatch(r"<Study at n=8: schedule 0 [0-9.e-]+ ms \(1.00x\), noise .*%>", repr(s.time(n=8, rounds=2)))


def test_compile_leaves_the_module_alone(model: Path, tmp_path: Path) -> None:
    module = igniter.load(model)
    before = str(module)
    module.compile(tmp_path / "out", verify=False)
    assert str(module) == before


def test_a_module_with_regions_exports_its_nodes(model: Path, tmp_path: Path) -> None:
    module = igniter.load(model).run_passes("cpu-onnx,cpu-fusion")
    assert "fusion.region" in str(module)
    onnx.checker.check_model(module.to_onnx())
    module.save(tmp_path / "saved.onnx")
    inputs = {"x": np.ones((2, 8), np.float32), "w": np.ones(8, np.float32), "ids": np.array([1, 3])}
    for a, b in zip(
        make_session(tmp_path / "saved.onnx").run(None, inputs), make_session(model).run(None, inputs), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.slow
def test_a_module_on_a_lower_level_is_compiled_from_there(model: Path) -> None:
    module = igniter.load(model).run_passes("cpu-onnx,form-fusion-regions{siblings=false}")
    artifact = module.compile()
    assert artifact.report["verification"]["ok"]
    assert set(artifact.report["seconds"]) >= {"loop", "llvm", "library"}
    assert "fusion" not in artifact.report["seconds"]


def test_the_folder_of_a_nameless_artifact_goes_with_it(model: Path) -> None:
    artifact = igniter.compile(model, verify=False)
    folder = artifact.folder
    assert folder.is_dir()
    del artifact
    assert not folder.exists()


def test_wrong_code_is_found_out(model: Path, tmp_path: Path, bad_passes: None) -> None:
    options = igniter.CompileOptions(fusion_passes="break-relu,cpu-fusion")
    with pytest.raises(igniter.VerificationFailed, match="does not compute what the original computes") as caught:
        igniter.compile(model, tmp_path / "out", options=options)
    assert not caught.value.verification.ok
    assert caught.value.verification.failures
    assert not (tmp_path / "out").exists() and caught.value.folder == tmp_path / "out.failed"
    report = json.loads((tmp_path / "out.failed" / "report.json").read_text())
    assert report["verification"]["status"] == "differs"
    assert not igniter.Artifact.load(tmp_path / "out.failed").verify().ok


@pytest.mark.slow
def test_a_failing_compile_leaves_what_was_there(model: Path, tmp_path: Path, bad_passes: None) -> None:
    good = igniter.compile(model, tmp_path / "out")
    (tmp_path / "out" / "tokenizer.json").write_text("mine")
    options = igniter.CompileOptions(fusion_passes="break-relu,cpu-fusion")
    for _ in range(2):
        with pytest.raises(igniter.VerificationFailed, match=r"kept in .*out\.failed; .*out is as it was"):
            igniter.compile(model, tmp_path / "out", options=options)
    assert sorted(p.name for p in tmp_path.iterdir() if "out" in p.name) == ["out", "out.failed"]
    assert igniter.Artifact.load(tmp_path / "out").report["seconds"] == good.report["seconds"] and good.verify()
    igniter.compile(model, tmp_path / "out", verify=False)
    assert (tmp_path / "out" / "tokenizer.json").read_text() == "mine"


def test_remarks_say_where_nodes_went(model: Path) -> None:
    artifact = igniter.compile(model, verify=False)
    said = {r["node"]: r["message"] for r in artifact.report["remarks"] if r["pass"] == "form-fusion-regions"}
    assert "region @" in said["Relu_3"]
    (summary,) = artifact.report["fusion"]
    assert summary["text"]


@pytest.mark.slow
def test_sizes_to_verify_at(model: Path) -> None:
    artifact = igniter.compile(model, shapes=[{"batch": 1}, {"batch": 9}])
    cases = artifact.report["verification"]["cases"]
    assert [c["shapes"] for c in cases if c["kind"] == "given"] == [{"batch": 1}, {"batch": 9}]
    assert all(c["shapes"] in ({"batch": 1}, {"batch": 9}) for c in cases)


@pytest.mark.parametrize(
    ("named", "options"),
    [
        ({"target": "x86-64-v3"}, CompileOptions(target="aarch64")),
        ({"winograd": 2}, CompileOptions(winograd=4)),
        ({"precision": "bf16"}, CompileOptions(precision="int8-dynamic")),
        ({"machine": {"l2_bytes": 1 << 19}}, CompileOptions(machine=given_machine({"l2_bytes": 1 << 20}))),
    ],
)
def test_what_is_named_besides_other_options_is_an_error(
    model: Path, named: dict[str, Any], options: CompileOptions
) -> None:
    with pytest.raises(igniter.IgniterError, match=f"{next(iter(named))} is given twice"):
        igniter.compile(model, options=options, **named)


@pytest.mark.slow
def test_what_is_named_besides_options_is_not_dropped(model: Path) -> None:
    options = CompileOptions(profile=True)
    artifact = igniter.compile(model, options=options, target="x86-64-v3", winograd=2, verify=False)
    said = artifact.report["options"]
    assert (said["profile"], said["target"], said["winograd"]) == (True, "x86-64-v3", 2)
    assert igniter.compile(model, options=replace(options, winograd=2), winograd=2, target="x86-64-v3", verify=False)


def test_names_are_listed_and_unknown_ones_refused() -> None:
    assert "compile" in dir(igniter)
    assert all(getattr(igniter, name) is not None for name in igniter.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = igniter.nothing  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.slow
def test_a_model_in_memory(tmp_path: Path) -> None:
    artifact = igniter.compile(tiny_model(), tmp_path / "out")
    assert artifact.report["verification"]["ok"]


@pytest.mark.slow
def test_models_of_one_architecture_share_session_options(model: Path, tmp_path: Path) -> None:
    """Weights are no part of a library, so models that differ in theirs have equal ones, with one domain."""
    other = onnx.load(model)
    table = next(t for t in other.graph.initializer if t.name == "table")
    table.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(table) + 1, "table"))
    onnx.save(other, tmp_path / "other.onnx")
    sources = (model, tmp_path / "other.onnx", model)
    made = [igniter.compile(m, tmp_path / f"{k}.igniter", verify=False) for k, m in enumerate(sources)]
    assert len({library.read_bytes() for a in made for library in a.libraries}) == 1
    options = onnxruntime.SessionOptions()
    for artifact in made:
        for library in artifact.libraries:
            options.register_custom_ops_library(str(library))
    inputs = {"x": np.ones((2, 8), np.float32), "w": np.ones(8, np.float32), "ids": np.array([1, 3])}
    for artifact, source in zip(made, sources, strict=True):
        session = onnxruntime.InferenceSession(artifact.model_path, options, providers=["CPUExecutionProvider"])
        for a, b in zip(session.run(None, inputs), make_session(source).run(None, inputs), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_errors_at_run_time_name_the_values_of_the_model(model: Path) -> None:
    session = igniter.compile(model, verify=False).session(log_severity_level=4)
    feed = {"x": np.ones((2, 8), np.float32), "w": np.ones(8, np.float32), "ids": np.ones(3, np.int64)}
    with pytest.raises(Exception, match=r"input 2 \('x'\) has dim 0 = 2, expected d0 = 3"):
        session.run(None, feed)
