"""Batch normalisations behind convolutions, folded into their weights, beside ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import igniter
from igniter.runtime.session import make_session


@pytest.mark.parametrize("group", [1, 4])
@pytest.mark.parametrize("bias", [True, False])
def test_a_normalisation_is_in_the_weight(group: int, bias: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {
        "w": rng.standard_normal((24, 8 // group, 3, 3)),
        **({"b": rng.standard_normal(24)} if bias else {}),
        "scale": rng.uniform(0.1, 3, 24),
        "offset": rng.standard_normal(24),
        "mean": rng.standard_normal(24),
        "variance": np.concatenate([rng.uniform(0.01, 4, 23), [0.0]]),
    }
    kind = onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("Conv", ["x", "w", *(["b"] if bias else [])], ["c"], pads=[1, 1, 1, 1], group=group),
        helper.make_node("BatchNormalization", ["c", "scale", "offset", "mean", "variance"], ["y"], epsilon=1e-3),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, ["n", 8, "h", "w_"])],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(a.astype(np.float32), n) for n, a in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    module = igniter.load(model)
    artifact = module.compile(tmp_path / "out", verify=False)
    left = [n.op_type for n in onnx.load(artifact.model_path, load_external_data=False).graph.node]
    assert "BatchNormalization" not in left
    for shape in ((2, 8, 7, 5), (1, 8, 1, 1)):
        x = rng.standard_normal(shape).astype(np.float32)
        (want,) = make_session(model.SerializeToString()).run(None, {"x": x})
        (got,) = artifact.session().run(None, {"x": x})
        assert np.abs(got - want).max() <= 1e-5 * np.abs(want).max()
