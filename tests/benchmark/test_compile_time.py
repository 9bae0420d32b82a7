"""The time and the memory of compiles: a row of a small model, cold and again, and the errors."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from benchmark.compile_time import COLUMNS, measure, path_of, run, weights_of


def small(folder: Path) -> Path:
    weight = numpy_helper.from_array(np.ones((8, 8), np.float32), "w")
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 8]) for n in ("x", "y")]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", ends[:1], ends[1:], [weight])
    path = folder / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.mark.slow
def test_a_row(tmp_path: Path) -> None:
    path = small(tmp_path)
    row, stages = measure(str(path), 1)
    assert len(row) == len(COLUMNS)
    kernels, cold, cpu, memory, resident, again, again_cpu, again_memory, again_resident = map(float, row[2:])
    assert kernels >= 1
    assert cold > again > 0
    assert cpu > again_cpu > 0
    assert memory > again_memory > 10
    assert resident > again_resident > 10
    assert {"onnx", "llvm", "library", "verify"} <= stages.keys()


def test_a_command_that_fails_says_what_it_said() -> None:
    with pytest.raises(RuntimeError, match="no luck"):
        run([sys.executable, "-c", "raise SystemExit('no luck')"], {})


def test_memory_is_counted_with_and_without_files(tmp_path: Path) -> None:
    """A program that maps a file of 40 MB, and whose child has 30 MB."""
    path = tmp_path / "file"
    path.write_bytes(bytes(40 << 20))
    code = (
        "import mmap, os, sys, time; file = open(sys.argv[1], 'rb')\n"
        "sum(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))[::4096])\n"
        "child = os.posix_spawn(sys.executable, [sys.executable, '-c', sys.argv[2]], os.environ); os.waitpid(child, 0)"
    )
    inner = "import time; kept = b'x' * (30 << 20); time.sleep(0.5)"
    cost = run([sys.executable, "-c", code, str(path), inner], dict(os.environ))
    assert 30 << 20 < cost.anonymous < 60 << 20
    assert cost.resident > 40 << 20


def test_models(tmp_path: Path) -> None:
    path = small(tmp_path)
    assert weights_of(path) == path.stat().st_size
    (tmp_path / "small.onnx.data").write_bytes(bytes(100))
    assert weights_of(path) == path.stat().st_size + 100
    with pytest.raises(ValueError, match="no model called 'nothing'"):
        path_of("nothing", tmp_path)
