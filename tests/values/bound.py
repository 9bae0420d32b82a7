"""One node whose parameters are inputs of the model, compiled with `bind-values` and compared with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime

import igniter
from tests.ops.single_node import Arrays, model_of

OPTIONS = igniter.CompileOptions(
    onnx_passes="cpu-onnx,bind-values",
    fusion_passes="form-fusion-regions{contractions=all singletons=all},pack-weights",
)


def ints(*values: int) -> np.ndarray[Any, Any]:
    """A list of i64."""
    return np.array(values, np.int64)


def check_bound(
    op_type: str,
    runs: Sequence[Arrays],
    attrs: Mapping[str, Any] | None = None,
    *,
    refused: Sequence[Arrays] = (),
    dynamic: bool = True,
    atol: float = 1e-6,
    **given: Any,
) -> None:
    """Compiles a node, of which nothing may be left to ONNX Runtime, and compares each of `runs`, lists of inputs; of
    `refused` the compiled model and ONNX Runtime refuse each. Sizes up to 4 are never symbols."""
    model = model_of(op_type, runs[0], attrs or {}, dynamic=dynamic, fixed=(0, 1, 2, 3, 4), **given)
    artifact = igniter.load(model).compile(options=OPTIONS, verify=False)
    assert artifact.report["left_to_onnxruntime"] == []
    assert artifact.report["nodes_after"] == artifact.report["regions"]
    session = artifact.session(log_severity_level=4)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    original = onnxruntime.InferenceSession(model.SerializeToString(), options)
    for run in runs:
        feed = {f"x{k}": a for k, a in enumerate(run) if a is not None}
        for expected, got in zip(original.run(None, feed), session.run(None, feed), strict=True):
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=atol)
    for run in refused:
        feed = {f"x{k}": a for k, a in enumerate(run) if a is not None}
        for each in (original, session):
            try:
                each.run(None, feed)
            except Exception as error:
                if each is session:
                    assert "'node'" in str(error), error
            else:
                raise AssertionError(f"{'ONNX Runtime' if each is original else 'the compiled model'} ran {feed}")
