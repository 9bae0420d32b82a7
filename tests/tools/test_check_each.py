"""--check-each: names the pass that changed a result, at every level."""

from __future__ import annotations

from pathlib import Path

import pytest
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


@pytest.mark.slow
def test_right_passes_agree_on_every_level(model: Path) -> None:
    found = opt(str(model), "-p", "cpu", "--check-each", "--emit=none")
    assert found.status == 0, found.err
    lines = found.err.splitlines()
    assert any("lower-onnx-to-loop: " in line for line in lines)
    assert lines[0].startswith("check: sizes are batch=") and all("results agree" in line for line in lines[1:])
    assert not any(" 0 results agree" in line for line in lines)


def test_a_wrong_pass_is_named(model: Path, bad_passes: None) -> None:
    found = opt(str(model), "-p", "infer-shapes,break-relu,canonicalize-onnx", "--check-each", "--emit=none")
    assert found.status == 3
    assert "pass 'break-relu' changed graph @main" in found.err
    assert "canonicalize-onnx" not in found.err


def test_a_wrong_pass_in_a_region_is_named(bad_passes: None) -> None:
    found = opt("-p", "break-relu", "--check-each", text=REGION)
    assert found.status == 3
    assert "pass 'break-relu' changed" in found.err


def test_a_kernel_is_compared_with_its_region() -> None:
    found = opt("-p", "lower-onnx-to-loop,lower-to-loops", "--check-each", "--emit=none", text=REGION)
    assert found.status == 0, found.err
    assert "lower-to-loops: 2 results agree" in found.err


def test_another_seed_gives_other_inputs(model: Path) -> None:
    assert opt(str(model), "-p", "infer-shapes", "--check-each", "--check-seed=5", "--emit=none").status == 0


def test_sizes_can_be_given(model: Path) -> None:
    found = opt(str(model), "-p", "infer-shapes", "--check-each", "--check-sizes=batch=11", "--emit=none")
    assert found.status == 0 and "check: sizes are batch=11" in found.err


def test_nothing_is_empty_at_the_sizes_that_are_chosen() -> None:
    from xdsl.dialects.builtin import f32

    from igniter.dialects.sym import tensor_of
    from igniter.dialects.sym.expr import Expr
    from igniter.dialects.sym.requirements import equal
    from igniter.verification.check_inputs import sizes_without_empties

    n = Expr.of("n")
    inner = tensor_of(f32, [n // Expr.of(16) - Expr.of(1)])
    assert sizes_without_empties([tensor_of(f32, ["n", "m"]), inner], [], [], {})["n"] >= 32
    divides = equal(n % Expr.of(8), 0, "8 divides it")
    assert sizes_without_empties([tensor_of(f32, ["n"])], [], [divides], {})["n"] % 8 == 0
    assert sizes_without_empties([inner], [], [], {"n": 5})["n"] == 5


def test_a_random_node_is_not_compared(tmp_path: Path) -> None:
    import onnx.parser

    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[n, 4] x) => (float[n, 4] y, float[n, 4] z) {
      r = RandomNormalLike (x)  y = Add (x, r)  z = Relu (x) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "random.onnx")
    found = opt(str(tmp_path / "random.onnx"), "-p", "cpu", "--check-each", "--emit=none")
    assert found.status == 0, found.err


@pytest.mark.slow
def test_a_big_kernel_is_compared_once_it_can_be_compiled(tmp_path: Path) -> None:
    import numpy as np
    import onnx.parser
    from onnx import numpy_helper

    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[n, 256] x) => (float[n, 300] y) {
      a = MatMul (x, w)  y = Relu (a) }"""
    proto = onnx.parser.parse_model(text)
    proto.graph.initializer.append(numpy_helper.from_array(np.ones((256, 300), np.float32), "w"))
    onnx.save(proto, tmp_path / "big.onnx")
    found = opt(str(tmp_path / "big.onnx"), "-p", "cpu", "--check-each", "--emit=none")
    assert found.status == 0, found.err
    assert "too large for the interpreter" in found.err
    assert "plan-buffers: 2 results agree" in found.err
