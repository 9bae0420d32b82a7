// RUN: igniter-opt %s -p exact-divisions | filecheck %s
// RUN: igniter-opt %s -p exact-divisions --remarks --emit=none 2>&1 | filecheck %s --check-prefix=REMARKS
// RUN: igniter-opt %s -p exact-divisions --stop-after=0 | filecheck %s --check-prefix=NONE
// RUN: igniter-opt %s -p 'builtin.module(onnx.graph(exact-divisions))' --check-each --emit=none

// A power of two has an exact inverse; 3 has none.
onnx.graph @main(%x: tensor<4xf32>) attributes {input_names = ["x"], output_names = ["a", "b"]} {
  %quarter = onnx.Constant() {value = #onnx.tensor<f32, [-0.25]>} : () -> tensor<f32>
  %three = onnx.Constant() {value = #onnx.tensor<f32, [3.0]>} : () -> tensor<f32>
  %a = onnx.Div(%x, %quarter) <{node_name = "quarters"}> : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %b = onnx.Div(%x, %three) <{node_name = "thirds"}> : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  onnx.return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// CHECK:      %[[INVERSE:.*]] = onnx.Constant() {value = #onnx.tensor<f32, [-4.0]>}
// CHECK-NEXT: %a = onnx.Mul(%x, %[[INVERSE]])
// CHECK:      %b = onnx.Div(%x, %three)

// REMARKS: remark: exact-divisions: 'thirds' missed: 3.0 is no power of two with an exact inverse

// NONE: %a = onnx.Div(%x, %quarter)
