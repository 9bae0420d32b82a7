"""--check-each: names the pass that changed a result, at every level."""

from __future__ import annotations

from pathlib import Path

from tools_kit import opt

REGION = """
builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<N, 4>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %y = fusion.region @r0 (%a = %x : tensor<?x4xf32, #sym.dims<N, 4>>) -> (tensor<?x4xf32, #sym.dims<N, 4>>) {
      %0 = onnx.Relu(%a) : (tensor<?x4xf32, #sym.dims<N, 4>>) -> tensor<?x4xf32, #sym.dims<N, 4>>
      %1 = onnx.Exp(%0) : (tensor<?x4xf32, #sym.dims<N, 4>>) -> tensor<?x4xf32, #sym.dims<N, 4>>
      fusion.yield %1 : tensor<?x4xf32, #sym.dims<N, 4>>
    }
    onnx.return %y : tensor<?x4xf32, #sym.dims<N, 4>>
  }
}
"""


def test_right_passes_agree_on_every_level(model: Path) -> None:
    found = opt(str(model), "-p", "cpu", "--check-each", "--emit=none")
    assert found.status == 0, found.err
    lines = found.err.splitlines()
    assert any("lower-onnx-to-loop: " in line for line in lines)
    assert all("results agree" in line for line in lines)
    assert not any(" 0 results agree" in line for line in lines)


def test_a_wrong_pass_is_named(model: Path, bad_passes: None) -> None:
    found = opt(str(model), "-p", "infer-shapes,break-relu,canonicalize-onnx", "--check-each", "--emit=none")
    assert found.status == 1
    assert "pass 'break-relu' changed graph @main" in found.err
    assert "canonicalize-onnx" not in found.err


def test_a_wrong_pass_in_a_region_is_named(bad_passes: None) -> None:
    found = opt("-p", "break-relu", "--check-each", text=REGION)
    assert found.status == 1
    assert "pass 'break-relu' changed" in found.err


def test_a_kernel_is_compared_with_its_region() -> None:
    found = opt("-p", "lower-onnx-to-loop,lower-to-loops", "--check-each", "--emit=none", text=REGION)
    assert found.status == 0, found.err
    assert "lower-to-loops: 2 results agree" in found.err


def test_another_seed_gives_other_inputs(model: Path) -> None:
    assert opt(str(model), "-p", "infer-shapes", "--check-each", "--check-seed=5", "--emit=none").status == 0
