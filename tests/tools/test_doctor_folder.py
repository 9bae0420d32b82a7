"""`igniter doctor FOLDER`: each fault of a folder is named, with what to do, and nothing broken is executed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import igniter
from igniter.backends.cpu.target import target_of
from igniter.backends.ort.api import API_VERSION
from igniter.frontend.stored_model import read_stored
from igniter.targets import backend_for
from igniter.toolbox.doctor import Finding, folder_libraries, folder_session, worst
from igniter.toolbox.doctor.building import installed_providers
from igniter.toolbox.doctor.folder import examine_folder
from tests.tools.test_doctor import run

RNG = np.random.default_rng(3)


def model(factor: float = 1.0) -> onnx.ModelProto:
    weight = numpy_helper.from_array(RNG.standard_normal((64, 96), dtype=np.float32), "w")
    scale = numpy_helper.from_array(np.array(factor, np.float32), "s")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Mul", ["h", "s"], ["m"]),
        helper.make_node("Tanh", ["m"], ["y"]),
    ]
    values = [helper.make_tensor_value_info(n, 1, ["rows", w]) for n, w in (("x", 64), ("y", 96))]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], [weight, scale])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("doctor") / "model.igniter"
    igniter.compile(model(), folder, verify=False)
    return folder


INSTALLED = installed_providers()


@pytest.fixture(autouse=True)
def asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX Runtime is asked for its version once, not by a process for each folder."""
    monkeypatch.setattr(folder_session, "installed_providers", lambda: INSTALLED)


@pytest.fixture
def folder(compiled: Path, tmp_path: Path) -> Iterator[Path]:
    copy = tmp_path / "model.igniter"
    shutil.copytree(compiled, copy)
    yield copy


def library(folder: Path) -> Path:
    (found,) = folder.glob("libigniter_*.so")
    return found


def weights(folder: Path) -> Path:
    (found,) = folder.glob("*.data")
    return found


def problem(folder: Path) -> Finding:
    """The first problem; the folder must not be executed."""
    found = examine_folder(folder)
    problems = [f for f in found if f.status == "problem"]
    assert problems and all(f.do for f in problems), found
    assert problems[0].group == "session" or found[-1].status == "optional", found
    return problems[0]


def test_a_good_folder(folder: Path) -> None:
    found = examine_folder(folder)
    assert {f.status for f in found} == {"ok"}, found
    assert [f.group for f in found] == ["folder", "model", "weights", "library", "onnxruntime", "session"]
    assert found[-1].says.endswith("inputs x: tensor(float)['rows', 64]")


def truncate(path: Path, size: int) -> None:
    with open(path, "r+b") as file:
        file.truncate(size)


def edit(folder: Path) -> None:
    proto = onnx.load(folder / "model.onnx", load_external_data=False)
    proto.producer_name = "somebody"
    onnx.save(proto, folder / "model.onnx")


def rename(folder: Path) -> None:
    library(folder).rename(folder / "kernels.so")


def damage(folder: Path) -> None:
    path = library(folder)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


FAULTS: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "no library": (lambda f: library(f).unlink(), "is missing: the ops of libigniter_", "copy the whole folder"),
    "renamed": (rename, "kernels.so is this library under another name", "mv "),
    "changed library": (damage, "it was changed, or is truncated: its SHA-256", "do not load it"),
    "truncated library": (lambda f: truncate(library(f), 5_000), "its SHA-256", "do not load it"),
    "no model": (lambda f: (f / "model.onnx").unlink(), "model.onnx is missing", "copy the whole folder"),
    "edited model": (edit, "changed after it was compiled", "edit the original model"),
    "truncated model": (lambda f: truncate(f / "model.onnx", 100), "it cannot be read (100 bytes)", "copy the"),
    "empty model": (lambda f: truncate(f / "model.onnx", 0), "it has no node (0 bytes)", "copy the whole folder"),
    "no weights": (lambda f: weights(f).unlink(), "model.onnx has its weights there", "copy the whole folder"),
    "truncated weights": (lambda f: truncate(weights(f), 1000), "1,000 bytes, and model.onnx needs 24,576", "copy"),
}


def test_faults_of_files(compiled: Path, tmp_path: Path) -> None:
    for name, (fault, says, do) in FAULTS.items():
        folder = tmp_path / name / "model.igniter"
        shutil.copytree(compiled, folder)
        fault(folder)
        found = problem(folder)
        assert says in found.says, f"{name}: {found}"
        assert do in found.do, f"{name}: {found}"


def test_a_model_of_another_library(folder: Path, tmp_path: Path) -> None:
    igniter.compile(model(2.0), tmp_path / "other.igniter", verify=False)
    other = tmp_path / "other.igniter"
    expected = library(other).stem
    shutil.copy(other / "model.onnx", folder)
    shutil.copy(weights(other), folder)
    found = {f.name: f for f in examine_folder(folder) if f.status == "problem"}
    assert "changed after it was compiled" in found["model.onnx"].says
    says = f"model.onnx calls ops of {expected}, and the folder has another library: {library(folder).name}"
    assert found["another library"].says == says


def test_a_folder_without_a_report(folder: Path) -> None:
    (folder / "report.json").unlink()
    found = examine_folder(folder)
    assert worst(found) == "warning" and "report.json is missing" in found[0].says
    (folder / "report.json").write_text("[]")
    assert "is not the report of a compiled model" in examine_folder(folder)[0].says
    library(folder).unlink()
    assert "the folder has another library: none" in problem(folder).says


def test_what_is_no_folder(tmp_path: Path) -> None:
    assert problem_of(tmp_path / "nothing").says == f"there is no folder {tmp_path / 'nothing'}"
    (tmp_path / "file").touch()
    assert problem_of(tmp_path / "file").says == f"{tmp_path / 'file'} is a file"
    found = {f.name: f for f in examine_folder(tmp_path)}
    assert found["report.json"].status == found["model.onnx"].status == "problem"


def problem_of(path: Path) -> Finding:
    (found,) = examine_folder(path)
    assert found.status == "problem" and "igniter compile MODEL -o FOLDER" in found.do
    return found


def test_another_architecture(tmp_path: Path) -> None:
    igniter.compile(model(), tmp_path / "arm.igniter", target="aarch64", verify=False)
    found = problem(tmp_path / "arm.igniter")
    if os.uname().machine == "x86_64":
        assert "is for aarch64-unknown-linux-gnu, and this machine is x86_64" in found.says
        assert "--target=native" in found.do


def test_a_cpu_without_a_feature(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_libraries, "this_cpu", lambda: (1, frozenset({"sse2"})))
    found = problem(folder)
    assert "its code needs " in found.says and "this CPU does not have it" in found.says
    assert "--target=x86-64-v2,x86-64-v3,x86-64-v4" in found.do


@pytest.mark.slow
def test_a_cpu_of_a_lower_level(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "levels.igniter"
    igniter.compile(model(), place, target="x86-64-v2,x86-64-v3", verify=False, load=False)
    second = frozenset(backend_for("x86-64-v2").instructions(target_of("x86-64-v2").identity))
    monkeypatch.setattr(folder_libraries, "this_cpu", lambda: (2, second))
    assert worst(examine_folder(place)) == "ok"
    # Without a feature of the table, the level tells them apart.
    monkeypatch.setattr(folder_libraries, "this_cpu", lambda: (1, second))
    assert "its code needs x86-64-v2, and this CPU does not have it" in problem(place).says
    monkeypatch.setattr(folder_libraries, "this_cpu", lambda: (1, second - {"popcnt", "ssse3"}))
    assert "its code needs popcnt, ssse3, and this CPU does not have it" in problem(place).says


def test_a_named_cpu_of_the_same_level(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library has the name of its CPU and no list of features: LLVM knows them."""
    place = tmp_path / "zen.igniter"
    igniter.compile(model(), place, target="znver4", verify=False, load=False)
    fourth = frozenset(backend_for("x86-64-v4").instructions(target_of("x86-64-v4").identity))
    monkeypatch.setattr(folder_libraries, "this_cpu", lambda: (4, fourth))
    assert "its code needs avx512bf16, avx512bitalg, avx512ifma, " in problem(place).says


def test_a_disk_without_execution(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=os.ST_NOEXEC))
    found = problem(folder)
    assert "mounted 'noexec'" in found.says and "another disk" in found.do


def test_an_old_onnxruntime_and_a_missing_provider(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_session, "installed_providers", lambda: ["1.16.3", "CPUExecutionProvider"])
    found = problem(folder)
    assert found.says == f"1.16.3 is too old: {library(folder).name} needs 1.{API_VERSION} or newer"
    monkeypatch.setattr(folder_session, "installed_providers", lambda: ["2.0.0", "QNNExecutionProvider"])
    found = problem(folder)
    assert "is for CPUExecutionProvider, and 2.0.0 here has only QNNExecutionProvider" in found.says
    monkeypatch.setattr(folder_session, "installed_providers", lambda: "No module named 'onnxruntime'")
    assert "it does not load: No module named 'onnxruntime'" in problem(folder).says


def test_a_session_that_onnxruntime_refuses(folder: Path) -> None:
    """The model calls an op that no library has; the report has the digest of this model."""
    proto = onnx.load(folder / "model.onnx", load_external_data=False)
    proto.graph.node[0].op_type = "igniter_gone"
    onnx.save(proto, folder / "model.onnx")
    report = json.loads((folder / "report.json").read_text())
    report.pop("digests", None)
    (folder / "report.json").write_text(json.dumps(report))
    found = problem(folder)
    assert found.group == "session"
    assert "ONNX Runtime does not create one: " in found.says and "igniter_gone" in found.says


@pytest.mark.slow
def test_the_command(folder: Path) -> None:
    done = run(str(folder))
    assert done.returncode == 0 and done.stdout.rstrip().endswith("everything works"), done.stdout
    weights(folder).unlink()
    done = run(str(folder), "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 1 and found["status"] == "problem" and found["counts"]["problem"] == 1
    (named,) = [f for f in found["findings"] if f["status"] == "problem"]
    assert named["group"] == "weights" and named["do"]


def test_stored_models_are_read_with_subgraphs_and_functions(tmp_path: Path) -> None:
    outside = onnx.TensorProto(name="w", data_type=1, dims=[2], data_location=onnx.TensorProto.EXTERNAL)
    outside.external_data.add(key="location", value="w.data")
    outside.external_data.add(key="offset", value="8")
    inner = helper.make_graph(
        [helper.make_node("A", [], ["a"], domain="in.subgraph")], "g", [], [helper.make_tensor_value_info("a", 1, [])]
    )
    nodes = [
        helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner),
        helper.make_node("Constant", [], ["k"], value=outside),
    ]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("c", 9, [])], [], [])
    function = helper.make_function(
        "my", "F", [], ["y"], [helper.make_node("B", [], ["y"], domain="in.function")], [helper.make_opsetid("", 17)]
    )
    onnx.save(helper.make_model(graph, functions=[function]), tmp_path / "m.onnx")
    stored = read_stored(str(tmp_path / "m.onnx"))
    assert stored.domains == {"", "in.subgraph", "in.function"}
    (tensor,) = stored.tensors
    assert (tensor.file, tensor.offset, tensor.bytes) == ("w.data", 8, None)
