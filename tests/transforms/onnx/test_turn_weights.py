"""Weights with the depth last: a model computes the same."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from igniter.backends.triton.target import machine_of_target, target_of
from igniter.context import IgniterContext
from igniter.frontend import export_model
from igniter.runtime.session import make_session
from igniter.transforms.onnx.turn_weights import TurnWeights
from tests.backends.triton.programs import model, values
from tests.ops.single_node import module_of


@pytest.mark.parametrize("op", ["MatMul", "Gemm"])
def test_a_model_computes_the_same(op: str) -> None:
    dims = ["n", 96] if op == "Gemm" else ["b", "n", 96]
    weights = {"w": values(np.float32, 96, 80, seed=1)}
    given = model([helper.make_node(op, ["x", "w"], ["y"])], {"x": (TensorProto.FLOAT, dims)}, weights)
    module = module_of(given)
    TurnWeights().apply(IgniterContext().on(machine_of_target(target_of("cuda:sm_90+tf32")), None, {}), module)
    turned = export_model(module)
    assert [tuple(each.dims) for each in turned.graph.initializer] == [(80, 96)]
    x = values(np.float32, *(3 if d == "b" else 17 if d == "n" else d for d in dims))
    (expected,), (found,) = (make_session(m.SerializeToString()).run(None, {"x": x}) for m in (given, turned))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
