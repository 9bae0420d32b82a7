// RUN: igniter-opt %s -p "infer-shapes,quantize-model{ranges=\"%S/quantize_model.json\"}" | filecheck %s
// RUN: not igniter-opt %s -p "quantize-model{ranges=\"none.json\"}" 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not igniter-opt %s -p "quantize-model{ranges=\"%S/quantize_model.json\" leave=\"relu\"}" 2>&1 | filecheck %s --check-prefix=LEAVE

// NONE: there are no ranges in 'none.json'
// LEAVE: 'relu' names no node or op that can be quantised

// The factor is quantised, the weight is codes with a scale for each column, and the result stays in float.
// CHECK: %[[Q:.*]] = onnx.QuantizeLinear(%x, %x.scale, %x.zero)
// CHECK: %[[D:.*]] = onnx.DequantizeLinear(%[[Q]], %x.scale, %x.zero)
// CHECK: onnx.Constant() <{initializer_name = "w.codes"}> {value = #onnx.tensor<4x2xi8
// CHECK: %[[W:.*]] = onnx.DequantizeLinear(%w.codes, %w.scales, %w.zeros) {axis = 1 : i64}
// CHECK: onnx.MatMul(%[[D]], %[[W]]) <{node_name = "product"
// CHECK-NOT: onnx.QuantizeLinear
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<3x4xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<4x2xf32, [0.5, 1.0, 1.5, 2.0, -0.5, -1.0, 0.25, 0.75]>} : () -> tensor<4x2xf32>
    %p = onnx.MatMul(%x, %w) <{node_name = "product", output_names = ["p"]}> : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
    %y = onnx.Relu(%p) <{node_name = "relu", output_names = ["y"]}> : (tensor<3x2xf32>) -> tensor<3x2xf32>
    onnx.return %y : tensor<3x2xf32>
  }
}
