"""Equal regions have one signature, and nothing that changes what a region computes is left out of it."""

from __future__ import annotations

import pytest
from xdsl.parser import Parser

from igniter.analysis.fusion.region_signature import region_signature
from igniter.context import IgniterContext
from igniter.dialects.fusion import RegionOp

TEXT = """
builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<2x3xf32>, %z: tensor<2x3xf32>) {
    %y = fusion.region @r0 (%a = %x : tensor<2x3xf32>, %b = %z : tensor<2x3xf32>) -> (tensor<2x3xf32>) {
      %0 = onnx.Softmax(%a) <{node_name = "first"}> {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
      %1 = onnx.Constant() {value = #onnx.tensor<f32, [2.0]>} : () -> tensor<f32>
      %2 = onnx.Sub(%0, %b) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
      %3 = onnx.Mul(%2, %1) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
      fusion.yield %3 : tensor<2x3xf32>
    }
    onnx.return %y : tensor<2x3xf32>
  }
}
"""


def signature(text: str) -> object:
    module = Parser(IgniterContext(), text).parse_module()
    (region,) = (op for op in module.walk() if isinstance(op, RegionOp))
    return region_signature(region)


def test_names_do_not_count() -> None:
    other = TEXT.replace("@r0", "@r7").replace('"first"', '"second"').replace("%a", "%p").replace("%2", "%other")
    assert signature(other) == signature(TEXT)
    assert hash(signature(other)) == hash(signature(TEXT))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("axis = 1", "axis = 0"),
        ("[2.0]", "[3.0]"),
        ("onnx.Sub(%0, %b)", "onnx.Sub(%b, %0)"),
        ("onnx.Sub", "onnx.Add"),
        ("2x3xf32", "2x4xf32"),
        ("2x3xf32", "2x3xf64"),
        ("fusion.yield %3", "fusion.yield %2"),
    ],
)
def test_what_is_computed_counts(old: str, new: str) -> None:
    assert old in TEXT
    assert signature(TEXT.replace(old, new)) != signature(TEXT)
