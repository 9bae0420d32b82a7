// RUN: igniter-opt %s -p exact-divisions | filecheck %s

// A power of two has an exact inverse; 3 and 0 have none.
onnx.graph @main(%x: tensor<4xf32>) attributes {input_names = ["x"], output_names = ["a", "b", "c"]} {
  %quarter = onnx.Constant() {value = #onnx.tensor<f32, [-0.25]>} : () -> tensor<f32>
  %three = onnx.Constant() {value = #onnx.tensor<f32, [3.0]>} : () -> tensor<f32>
  %zero = onnx.Constant() {value = #onnx.tensor<f32, [0.0]>} : () -> tensor<f32>
  %a = onnx.Div(%x, %quarter) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %b = onnx.Div(%x, %three) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %c = onnx.Div(%x, %zero) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  onnx.return %a, %b, %c : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
// CHECK:      %[[INVERSE:.*]] = onnx.Constant() {value = #onnx.tensor<f32, [-4.0]>}
// CHECK-NEXT: %a = onnx.Mul(%x, %[[INVERSE]])
// CHECK:      %b = onnx.Div(%x, %three)
// CHECK:      %c = onnx.Div(%x, %zero)
