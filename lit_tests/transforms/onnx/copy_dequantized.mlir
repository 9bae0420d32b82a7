// RUN: igniter-opt %s -p copy-dequantized | filecheck %s

// Each reader has a node of its own, one of them the one that was there.

onnx.graph @main(%q: tensor<4xui8>, %y: tensor<4xf32>) attributes {input_names = ["q", "y"], output_names = ["b", "c"]} {
  %s = onnx.Constant() {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
  %z = onnx.Constant() {value = #onnx.tensor<ui8, [3]>} : () -> tensor<ui8>
  %a = onnx.DequantizeLinear(%q, %s, %z) <{node_name = "numbers"}> : (tensor<4xui8>, tensor<f32>, tensor<ui8>) -> tensor<4xf32>
  %b = onnx.Relu(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %c = onnx.Add(%a, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  onnx.return %b, %c : tensor<4xf32>, tensor<4xf32>
}
// CHECK:      %[[A:.*]] = onnx.DequantizeLinear(%q, %s, %z)
// CHECK-NEXT: %b = onnx.Relu(%[[A]])
// CHECK-NEXT: %[[C:.*]] = onnx.DequantizeLinear(%q, %s, %z)
// CHECK-NEXT: %c = onnx.Add(%[[C]], %y)
