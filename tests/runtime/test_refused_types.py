"""Element types that neither ONNX Runtime nor kernels have: refused in the words of `docs/reference/types.md`."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.compiler.loading import NotLoaded

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "types.md"
WORDS = {
    ("Identity", TensorProto.COMPLEX64): "MLDataType for: tensor(complex64) is not currently registered or supported",
    ("Identity", TensorProto.COMPLEX128): "MLDataType for: tensor(complex128) is not currently registered or supported",
    ("Trilu", TensorProto.STRING): "Trilu: kernels do not support !onnx.string",
}


def model_of(op_type: str, type_: int) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(n, type_, [3, 3]) for n in "xy")
    graph = helper.make_graph([helper.make_node(op_type, ["x"], ["y"], name="node")], "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize(("op_type", "type_"), WORDS)
def test_a_type_that_nothing_has_is_refused(op_type: str, type_: int) -> None:
    with pytest.raises(NotLoaded) as found:
        igniter.load(model_of(op_type, type_)).compile(verify=False)
    words = WORDS[op_type, type_]
    assert words in found.value.message
    assert words in PAGE.read_text(encoding="utf-8")


def test_strings_stay_with_onnxruntime() -> None:
    artifact = igniter.load(model_of("Identity", TensorProto.STRING)).compile()
    assert artifact.report["loads"]["tried"]


def test_a_sparse_weight_is_a_weight() -> None:
    values = numpy_helper.from_array(np.array([2.0], np.float32), "w")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([4]), "i"), [3, 3])
    model = model_of("Add", TensorProto.FLOAT)
    model.graph.node[0].input.append("w")
    model.graph.sparse_initializer.append(sparse)
    assert igniter.load(model).compile().report["verification"]["status"] == "passed"
