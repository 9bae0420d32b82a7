"""The IR version that a compiled model is written in: the oldest one that it runs with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper, numpy_helper

import igniter
from igniter.frontend.opsets import oldest_ir_version


def model(ir: int, opset: int, **more: object) -> onnx.ModelProto:
    text = f'<ir_version: {ir}, opset_import: ["" : {opset}]> g (float[n] x) => (float[n] y) {{ y = Relu(x) }}'
    return onnx.parser.parse_model(text)


@pytest.mark.parametrize(
    ("ir", "opset", "expected"), [(10, 17, 8), (8, 17, 8), (10, 21, 10), (13, 9, 4), (3, 7, 3), (7, 17, 7), (11, 19, 9)]
)
def test_it_follows_the_opset_and_is_never_raised(ir: int, opset: int, expected: int) -> None:
    assert oldest_ir_version(model(ir, opset)) == expected


def test_types_and_functions_need_one_too() -> None:
    small = model(12, 13)
    assert oldest_ir_version(small) == 7
    small.graph.node.append(helper.make_node("Cast", ["x"], ["z"], to=onnx.TensorProto.FLOAT8E4M3FN))
    assert oldest_ir_version(small) == 9
    small.graph.value_info.append(helper.make_tensor_value_info("w", onnx.TensorProto.INT4, [2]))
    assert oldest_ir_version(small) == 10
    called = model(12, 13)
    called.functions.append(helper.make_function("f", "F", ["a"], ["b"], [], [helper.make_opsetid("", 13)]))
    assert oldest_ir_version(called) == 8
    called.functions[0].overload = "other"
    assert oldest_ir_version(called) == 10


def test_a_compiled_model_has_it(tmp_path: Path) -> None:
    """As exporters write them: IR version 10 and metadata, for an opset that came with IR version 8."""
    source = model(10, 17)
    source.graph.node[0].metadata_props.add(key="from", value="an exporter")
    source.graph.initializer.append(numpy_helper.from_array(np.ones(3, np.float32), "unused"))
    artifact = igniter.compile(source, tmp_path / "out")
    assert onnx.load(artifact.model_path).ir_version == 8
    assert igniter.load(source).to_onnx().ir_version == 10
