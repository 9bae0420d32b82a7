"""ONNX's own cases of single nodes, with all dims made symbolic: the engine tells the shapes that they expect."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import igniter
from igniter.errors import IgniterError
from tests.conformance.node_cases import node_cases

PARTS = 8


def dynamic(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model with a symbol for every dim of its inputs, and nothing said of its outputs' shapes."""
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    for k, value in enumerate(made.graph.input):
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"d{k}_{axis}"
    for value in made.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    del made.graph.value_info[:]
    return made


def differences(name: str, case: Any) -> list[str]:
    """The differences between the engine and the case."""
    engine = igniter.shape_engine(dynamic(case.model))
    found: list[str] = []
    names = [v.name for v in case.model.graph.input]
    for inputs, outputs in case.data_sets:
        shapes = {n: np.shape(v) for n, v in zip(names, inputs, strict=False) if isinstance(v, np.ndarray)}
        tensors = {i.name for i in engine.shapes.inputs if i.dims is not None}
        try:
            told = engine.at(input_shapes={n: s for n, s in shapes.items() if n in tensors})
        except IgniterError as error:
            if "there is no size for" in error.message:
                # An input that is left out, or no tensor, whose dims nothing tells.
                continue
            found.append(f"{name}: {error.message}")
            continue
        for output, value in zip(case.model.graph.output, outputs, strict=False):
            want = told[output.name]
            if want is None or not isinstance(value, np.ndarray):
                continue
            fits = len(want) == value.ndim and all(w in (None, g) for w, g in zip(want, value.shape, strict=True))
            if not fits:
                found.append(f"{name}: {output.name} is told to be {want} and is {value.shape}")
    return found


@pytest.mark.parametrize("part", [0, *(pytest.param(k, marks=pytest.mark.full) for k in range(1, PARTS))])
def test_shapes_of_node_cases(part: int) -> None:
    cases = list(node_cases().items())[part::PARTS]
    assert not [d for name, case in cases for d in differences(name, case)]
