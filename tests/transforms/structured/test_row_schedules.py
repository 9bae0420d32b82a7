"""A pool behind a convolution: row by row where its windows are one element high, and right wherever it is done."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.runtime.session import make_session

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """An image of 3 channels, two convolutions, the second with rows two apart, and a pool."""

    dims: tuple[int | str, int | str, int | str] = (1, 260, 96)
    channels: int = 40
    pool: str = "MaxPool"
    kernel: tuple[int, int] = (1, 4)
    strides: tuple[int, int] = (1, 4)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)

    def model(self) -> bytes:
        rng = np.random.default_rng(0)
        weights = {
            "w0": rng.standard_normal((8, 3, 1, 1)),
            "w1": rng.standard_normal((self.channels, 8, 3, 3)) / 8,
            "b1": rng.standard_normal(self.channels),
        }
        window = {"kernel_shape": self.kernel, "strides": self.strides, "pads": self.pads}
        nodes = [
            helper.make_node("Conv", ["x", "w0"], ["a"], "first"),
            helper.make_node("Relu", ["a"], ["r"]),
            helper.make_node("Conv", ["r", "w1", "b1"], ["c"], "second", pads=[2, 1, 2, 1], dilations=[2, 1]),
            helper.make_node("Relu", ["c"], ["d"]),
            helper.make_node(self.pool, ["d"], ["y"], "pool", **window),
        ]
        batch, height, width = self.dims
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, height, width])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()],
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return made.SerializeToString()


CASES = {
    "a pool of rows": (Case(), True),
    "a batch": (Case((3, 70, 130), 33), True),
    "any size": (Case(("n", "h", 128)), True),
    "an average": (Case(pool="AveragePool", kernel=(1, 3), strides=(1, 2), pads=(0, 1, 0, 1)), True),
    "overlapping": (Case(kernel=(1, 5), strides=(1, 1), pads=(0, 2, 0, 2)), True),
    "rows that are left out": (Case(kernel=(1, 4), strides=(2, 4)), False),
    "windows of several rows": (Case(kernel=(2, 2), strides=(2, 2)), False),
    "what a cache holds": (Case((1, 20, 40)), False),
    "a few long rows": (Case((1, 4, 4000)), False),
}


@pytest.mark.parametrize("name", CASES)
def test_rows(name: str, tmp_path: Path) -> None:
    case, by_rows = CASES[name]
    source = case.model()
    artifact = igniter.compile(source, tmp_path / "out", verify=False, strict=True)
    said = [r["message"] for r in artifact.report["remarks"] if r["pass"] == "choose-schedule"]
    assert any("as it is finished" in m for m in said) == by_rows, said
    original = make_session(source)
    known = [d if isinstance(d, int) else 0 for d in case.dims]
    for batch, height in ((known[0] or 1, known[1] or 9), (known[0] or 2, known[1] or 301)):
        x = np.random.default_rng(1).standard_normal((batch, 3, height, known[2])).astype(np.float32)
        (expected,) = original.run(None, {"x": x})
        for threads in (1, 2):
            (y,) = artifact.session(intra_op_num_threads=threads).run(None, {"x": x})
            np.testing.assert_allclose(y, expected, rtol=0, atol=1e-4)


@pytest.mark.slow
def test_rows_are_as_large_as_a_row(tmp_path: Path) -> None:
    """What stands between the two is no tensor any more."""
    model = tmp_path / "model.onnx"
    onnx.save(onnx.load_from_string(Case((1, 1000, 256), 64).model()), model)
    artifact = igniter.compile(model, tmp_path / "out", strict=True)
    assert artifact.report["verification"]["ok"]
    module = igniter.load(model)
    module.run_passes("cpu-onnx,cpu-fusion,cpu-loop,cpu-kernels")
    assert 'loop.alloc "conv" offset 65536*(i1 floordiv 16) : memref<256x64xf32, "scratch">' in str(module)
