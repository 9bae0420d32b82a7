"""A compile ends with a session, or with an error that names the node: no folder that ONNX Runtime refuses."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

import igniter
from igniter.compiler.loading import NotLoaded
from igniter.dialects.onnx import ops
from igniter.dialects.onnx.registry import InferContext, OpSpec, TensorInfo
from igniter.transforms.fusion import form_fusion_regions

CUBE = helper.make_node("Cube", ["x"], ["z"], name="cube", domain="mine")
AFTER = helper.make_node("Abs", ["z"], ["y"], name="after")


def model_of(nodes: list[onnx.NodeProto], type_: int = TensorProto.FLOAT) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(n, type_, ["n", 8]) for n in "xy")
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)]
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=imports, ir_version=10)


@pytest.fixture
def crashing() -> Iterator[None]:
    """`mine.Cube`, whose lowering divides by zero."""

    def infer(ctx: InferContext) -> list[TensorInfo]:
        x = ctx.input(0)
        assert x is not None
        return [TensorInfo(x.element, x.dims)]

    def lower(ctx: Any) -> list[Any]:
        return [ctx.map(lambda v: v * (1 // 0))]

    ops.register(OpSpec("mine.Cube", infer=infer, lower=lower, kind="elementwise"))
    yield
    ops._registered.pop("mine.Cube", None)


@pytest.mark.parametrize("verify", [True, False])
def test_a_crash_in_the_lowering_of_a_plug_in_is_an_error_with_its_node(
    crashing: None, verify: bool, tmp_path: Path
) -> None:
    with pytest.raises(NotLoaded) as found:
        igniter.load(model_of([CUBE, AFTER])).compile(tmp_path / "out", verify=verify, cache=False)
    assert "'cube' (mine.Cube)" in found.value.message
    assert "ZeroDivisionError" in found.value.message
    assert "--no-load" in found.value.message
    assert not list(tmp_path.iterdir())


def test_an_op_that_nobody_knows_is_an_error_with_its_node(tmp_path: Path) -> None:
    with pytest.raises(NotLoaded, match=r"'cube' \(mine\.Cube\): Igniter has no lowering for mine\.Cube"):
        igniter.load(model_of([CUBE, AFTER])).compile(tmp_path / "out", verify=False, cache=False)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_there_stays_as_it_was(tmp_path: Path) -> None:
    igniter.load(model_of([AFTER, helper.make_node("Neg", ["x"], ["z"])][::-1])).compile(tmp_path / "out", verify=False)
    before = {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()}
    with pytest.raises(NotLoaded):
        igniter.load(model_of([CUBE, AFTER])).compile(tmp_path / "out", verify=False, cache=False)
    assert {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()} == before


@pytest.mark.parametrize("verify", [True, False])
def test_without_loading_the_folder_is_written(verify: bool, tmp_path: Path) -> None:
    artifact = igniter.load(model_of([CUBE, AFTER])).compile(tmp_path / "out", verify=verify, load=False, cache=False)
    assert (tmp_path / "out" / "model.onnx").is_file()
    assert "loads" not in artifact.report
    if verify:
        found = artifact.report["verification"]
        assert found["status"] == "not verified"
        assert found["reasons"] == ["the compiled model does not load: mine:Cube(-1) is not a registered function/op"]


@pytest.mark.parametrize("verify", [True, False])
def test_a_node_that_this_onnxruntime_has_no_kernel_for_is_compiled_after_all(
    verify: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table may say more than an installation has."""
    monkeypatch.setattr(form_fusion_regions, "has_kernel", lambda op, provider: True)
    nodes = [helper.make_node("Neg", ["x"], ["y"], name="neg")]
    artifact = igniter.load(model_of(nodes, TensorProto.BFLOAT16)).compile(verify=verify, cache=False)
    assert not artifact.report["left_to_onnxruntime"]
    assert artifact.report["loads"] == {"tried": True, "reason": ""}
    said = [r["message"] for r in artifact.report["remarks"] if r["pass"] == "load"]
    assert said == ["ONNX Runtime does not load Neg, and kernels need it"]
    artifact.session()


def test_a_result_that_was_never_loaded_is_loaded_when_it_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model_of([CUBE, AFTER]), path)
    igniter.compile(path, tmp_path / "one", verify=False, load=False)
    with pytest.raises(NotLoaded):
        igniter.compile(path, tmp_path / "two", verify=False)
    assert not (tmp_path / "two").exists()


@pytest.mark.parametrize("verify", [True, False])
def test_a_library_for_another_machine_is_not_loaded_and_says_so(verify: bool) -> None:
    nodes = [helper.make_node("Neg", ["x"], ["z"]), AFTER]
    artifact = igniter.load(model_of(nodes)).compile(target="aarch64", verify=verify)
    found = artifact.report["loads"]
    assert not found["tried"]
    assert " is for aarch64-unknown-linux-gnu, and this machine is " in found["reason"]
    if verify:
        assert artifact.report["verification"]["status"] == "not verified"
