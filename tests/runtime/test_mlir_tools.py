"""Stock MLIR tools: found with their versions, refused with reasons, and their code called on arrays."""

from __future__ import annotations

import os
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from igniter.runtime import mlir_tools
from igniter.runtime.mlir_library import MlirLibrary, call_isolated, compile_mlir
from igniter.runtime.mlir_tools import (
    SCF_PASSES,
    VARIABLE,
    MlirError,
    MlirMissing,
    find_tools,
    missing_tools,
    run_main,
    run_opt,
    to_llvm_ir,
)

needs_tools = pytest.mark.skipif(missing_tools() is not None, reason=missing_tools() or "")

ADD = """
#m = affine_map<(i, j) -> (i, j)>
func.func @add(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> (tensor<?x?xf32>, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %a, %c0 : tensor<?x?xf32>
  %m = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %r = linalg.generic {indexing_maps = [#m, #m, #m], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<?x?xf32>
  return %r, %m : tensor<?x?xf32>, index
}
func.func @same(%a: tensor<?x?xf32>) -> tensor<?x?xf32> {
  return %a : tensor<?x?xf32>
}
func.func @half(%n: index) -> index {
  %c2 = arith.constant 2 : index
  %0 = arith.remui %n, %c2 : index
  %c0 = arith.constant 0 : index
  %even = arith.cmpi eq, %0, %c0 : index
  cf.assert %even, "n must be even"
  %h = arith.divui %n, %c2 : index
  return %h : index
}
"""

TRANSPOSE = """
func.func @turn(%a: memref<?x?xf32, strided<[?, ?], offset: ?>>, %b: memref<?x?xf32, strided<[?, ?], offset: ?>>) {
  memref.copy %a, %b : memref<?x?xf32, strided<[?, ?], offset: ?>> to memref<?x?xf32, strided<[?, ?], offset: ?>>
  return
}
"""


@needs_tools
def test_a_function_on_tensors_runs_on_arrays() -> None:
    library = compile_mlir(ADD)
    for shape in ((3, 5), (1, 1), (0, 4), (7, 0)):
        a, b = np.random.default_rng(0).random((2, *shape), np.float32)
        total, width = library.call("add", [a, b], [(np.float32, 2), (np.int64, None)])
        np.testing.assert_array_equal(total, a + b)
        assert width == shape[1]
    a = np.ones((2, 2), np.float32)
    (same,) = library.call("same", [a], [(np.float32, 2)])
    assert not np.shares_memory(a, same)
    np.testing.assert_array_equal(same, a)


@needs_tools
def test_memrefs_are_written_in_place_and_keep_their_strides() -> None:
    library = compile_mlir(TRANSPOSE, SCF_PASSES)
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    b = np.zeros((3, 4), np.float32)
    library.call("turn", [a.T, b.T], strided=True)
    np.testing.assert_array_equal(a, b)
    c = np.zeros((3, 4), np.float32)[::-1]
    library.call("turn", [a, c], strided=True)
    np.testing.assert_array_equal(a, c)
    with pytest.raises(MlirError, match="argument 0 of @turn must be C-contiguous"):
        library.call("turn", [a.T, b])
    with pytest.raises(MlirError, match="no function @away"):
        library.call("away", [a])
    with pytest.raises(MlirError, match="argument 1 of @turn is a str"):
        library.call("turn", [a, "b"])


NARROW = """
func.func @narrow(%a: memref<?xf64>, %b: memref<?xf16>, %c: memref<?xbf16>, %d: memref<?xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?xf64>
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %a[%i] : memref<?xf64>
    %h = arith.truncf %x : f64 to f16
    memref.store %h, %b[%i] : memref<?xf16>
    %w = arith.truncf %x : f64 to bf16
    memref.store %w, %c[%i] : memref<?xbf16>
    %old = memref.load %d[%i] : memref<?xbf16>
    %sum = arith.addf %old, %w : bf16
    memref.store %sum, %d[%i] : memref<?xbf16>
  }
  return
}
"""


@needs_tools
def test_16_bit_floats_need_no_library_and_round_once() -> None:
    """1 + 2^-11 + 2^-40 is above the middle of two f16, which f32 does not see."""
    x = np.array([1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11, 1 + 2.0**-8 + 2.0**-40, 1e300, -np.inf, np.nan, 6e-8, 0.1])
    half, bf16 = np.zeros(8, np.float16), np.zeros(8, ml_dtypes.bfloat16)
    total = np.arange(8).astype(ml_dtypes.bfloat16)
    with np.errstate(over="ignore"):
        rounded = x.astype(ml_dtypes.bfloat16)
        expected = total + rounded
    compile_mlir(NARROW, SCF_PASSES).call("narrow", [x, half, bf16, total])
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(half, x.astype(np.float16))
    np.testing.assert_array_equal(half[:2], np.array([1 + 2.0**-10, 1], np.float16))
    assert bf16[2] == 1 + 2.0**-7
    np.testing.assert_array_equal(bf16[3:].astype(np.float32), rounded[3:].astype(np.float32))
    np.testing.assert_array_equal(total[4:].astype(np.float32), expected[4:].astype(np.float32))


@needs_tools
def test_a_failed_assertion_is_an_error_of_its_process() -> None:
    ir = to_llvm_ir(ADD)
    (half,) = call_isolated(ir, "half", [8], [(np.int64, None)])
    assert half == 4
    with pytest.raises(MlirError, match=r"(?s)@half ended with signal 6.*n must be even"):
        call_isolated(ir, "half", [7], [(np.int64, None)])


@needs_tools
def test_the_runner_runs_a_main() -> None:
    if find_tools().runner is None:
        pytest.skip("this MLIR has no runner")
    printed = run_main("func.func @main() { %c = arith.constant 42 : i64 vector.print %c : i64 return }", SCF_PASSES)
    assert printed == "42\n"


@needs_tools
def test_what_a_tool_refuses_is_an_error_with_its_message() -> None:
    with pytest.raises(MlirError, match=r"(?s)mlir-opt.* failed with status 1:.*use of undeclared SSA value"):
        run_opt("func.func @f() { return %x : i64 }")
    with pytest.raises(MlirError, match="--no-such-pass"):
        run_opt(ADD, ["--no-such-pass"])
    with pytest.raises(MlirError, match="cannot read the LLVM IR"):
        MlirLibrary("define nonsense")


def _fake(folder: Path, name: str, version: str) -> None:
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\necho 'LLVM version {version}'\n")
    program.chmod(0o755)


def test_the_tools_are_found_by_version_and_by_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlir_tools, "NEWEST", 0)  # Without Debian's folders, which this machine may have.
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}/a:/bin")
    with pytest.raises(MlirMissing, match=r"mlir-19-tools.*IGNITER_MLIR"):
        find_tools()
    _fake(tmp_path / "b", "mlir-opt", "18.1.3")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "b"))
    assert "is of version 18.1.3" in (missing_tools() or "")
    _fake(tmp_path / "c", "mlir-opt", "21.0.0git")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "c"))
    assert "has no mlir-translate beside it" in (missing_tools() or "")
    _fake(tmp_path / "c", "mlir-translate", "21.0.0git")
    _fake(tmp_path / "c", "mlir-runner", "21.0.0git")
    mlir_tools._find.cache_clear()
    tools = find_tools()
    assert tools.version == (21, 0, 0)
    assert tools.runner == os.fspath(tmp_path / "c" / "mlir-runner")
    monkeypatch.setattr(mlir_tools, "NEWEST", 22)
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("PATH", f"{tmp_path}/b:{tmp_path}/d:/bin")
    for name in ("mlir-opt-20", "mlir-translate-20", "mlir-opt-22", "mlir-translate-22"):
        _fake(tmp_path / "d", name, f"{name[-2:]}.1.0")
    assert find_tools().major == 22
