"""Models on a GPU, in ONNX Runtime's CUDA provider: `make test-gpu`. Without either every test here is skipped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import igniter
from benchmark.models import half, vision
from tests.backends.triton.programs import model, values
from tests.backends.triton.test_library import feed, of_ort, rows
from tests.gpu.concurrency import differing, settings_of

ort: Any = onnxruntime
PROVIDER = "CUDAExecutionProvider"

pytestmark = pytest.mark.skipif(
    PROVIDER not in ort.get_available_providers(),
    reason="there is no CUDAExecutionProvider: it comes with the package onnxruntime-gpu, on a machine with a GPU",
)


def compiled(given: onnx.ModelProto, **options: Any) -> igniter.Artifact:
    return igniter.load(given).compile(target="cuda", cache=False, **options)


@pytest.mark.parametrize("n", [0, 1, 3, 64, 4097])
def test_rows_of_any_number(n: int) -> None:
    session: Any = compiled(rows(), verify=False).session()
    np.testing.assert_allclose(session.run(None, feed(n))[0], of_ort(rows(), feed(n)), rtol=1e-4, atol=1e-4)


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "bert": lambda: half.bert(2, 128, 2, 512, 100),
    "bert of halves": lambda: half.to_half(half.bert(2, 128, 2, 512, 100)),
    "resnet50": vision.resnet50,
    "mobilenet_v2": vision.mobilenet_v2,
}


@pytest.mark.parametrize("name", ["bert", "mobilenet_v2"])
def test_concurrent_runs_give_the_same_bits(name: str, tmp_path: Path) -> None:
    """One session and several, 1 to 8 threads, with IO binding and with CUDA graphs."""
    igniter.load(MODELS[name]()).compile(tmp_path / name, target="cuda", cache=False, verify=False)
    found = {label: differing(works, 50) for label, works in settings_of([tmp_path / name], (1, 2, 8))}
    assert not any(found.values()), found


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_whole_models_are_verified(make: Any) -> None:
    found = compiled(make()).report["verification"]
    assert found["status"] == "passed", found


def test_a_graph_that_is_captured_gives_the_same() -> None:
    """ONNX Runtime's option for CUDA graphs: launches are recorded once, and replayed."""
    given = model(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Softmax", ["h"], ["y"], axis=-1)],
        {"x": (TensorProto.FLOAT, [64, 32]), "w": (TensorProto.FLOAT, [32, 48])},
    )
    session: Any = compiled(given, verify=False).session(
        providers=[(PROVIDER, {"enable_cuda_graph": "1"}), "CPUExecutionProvider"]
    )
    x, w = values(np.float32, 64, 32), values(np.float32, 32, 48, seed=1)
    binding = session.io_binding()
    held = {k: ort.OrtValue.ortvalue_from_numpy(v, "cuda", 0) for k, v in (("x", x), ("w", w))}
    result = ort.OrtValue.ortvalue_from_numpy(np.zeros((64, 48), np.float32), "cuda", 0)
    for name, value in held.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_ortvalue_output("y", result)
    for seed in (0, 2):
        x = values(np.float32, 64, 32, seed=seed)
        held["x"].update_inplace(x)
        session.run_with_iobinding(binding)
        np.testing.assert_allclose(result.numpy(), of_ort(given, {"x": x, "w": w}), rtol=1e-4, atol=1e-5)
