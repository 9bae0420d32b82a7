// RUN: igniter-opt %s -p "expand-quantized" --split-input-file | filecheck %s

// The plain op between DequantizeLinear and QuantizeLinear.

builtin.module attributes {onnx.model = {ir_version = 9 : i64, opset_import = {"" = 17 : i64, "com.microsoft" = 1 : i64}}} {
  onnx.graph @main(%a: tensor<4xui8>, %b: tensor<4xui8>, %s: tensor<f32>, %z: tensor<ui8>) attributes {input_names = ["a", "b", "s", "z"], output_names = ["y"]} {
    %y = onnx.custom(%a, %s, %z, %b, %s, %z, %s, %z) <{domain = "com.microsoft", op_type = "QLinearAdd"}> : (tensor<4xui8>, tensor<f32>, tensor<ui8>, tensor<4xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<4xui8>
    onnx.return %y : tensor<4xui8>
  }
}
// CHECK:        %[[A:.*]] = onnx.DequantizeLinear(%a, %s, %z) : {{.*}} -> tensor<*xf32>
// CHECK-NEXT:   %[[B:.*]] = onnx.DequantizeLinear(%b, %s, %z) : {{.*}} -> tensor<*xf32>
// CHECK-NEXT:   %[[C:.*]] = onnx.Add(%[[A]], %[[B]]) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
// CHECK-NEXT:   %y = onnx.QuantizeLinear(%[[C]], %s, %z) : {{.*}} -> tensor<4xui8>

// -----

// The integer product of MatMulIntegerToFloat, and what follows it.

builtin.module attributes {onnx.model = {ir_version = 9 : i64, opset_import = {"" = 17 : i64, "com.microsoft" = 1 : i64}}} {
  onnx.graph @main(%a: tensor<2x4xui8>, %b: tensor<4x3xi8>, %s: tensor<f32>, %t: tensor<3xf32>, %z: tensor<ui8>, %w: tensor<i8>, %c: tensor<3xf32>) attributes {input_names = ["a", "b", "s", "t", "z", "w", "c"], output_names = ["y"]} {
    %y = onnx.custom(%a, %b, %s, %t, %z, %w, %c) <{domain = "com.microsoft", op_type = "MatMulIntegerToFloat"}> : (tensor<2x4xui8>, tensor<4x3xi8>, tensor<f32>, tensor<3xf32>, tensor<ui8>, tensor<i8>, tensor<3xf32>) -> tensor<2x3xf32>
    onnx.return %y : tensor<2x3xf32>
  }
}
// CHECK:        %[[S:.*]] = onnx.MatMulInteger(%a, %b, %z, %w) : {{.*}} -> tensor<*xi32>
// CHECK-NEXT:   %[[W:.*]] = onnx.Cast(%[[S]]) {to = 1 : i64}
// CHECK-NEXT:   %[[T:.*]] = onnx.Mul(%s, %t)
// CHECK-NEXT:   %[[P:.*]] = onnx.Mul(%[[W]], %[[T]])
// CHECK-NEXT:   %y = onnx.Add(%[[P]], %c)

// -----

// Refused: channels last, and opsets before 10.

builtin.module attributes {onnx.model = {ir_version = 9 : i64, opset_import = {"" = 17 : i64, "com.microsoft" = 1 : i64}}} {
  onnx.graph @main(%a: tensor<1x4x4x3xui8>, %s: tensor<f32>, %z: tensor<ui8>) attributes {input_names = ["a", "s", "z"], output_names = ["y"]} {
    %y = onnx.custom(%a, %s, %z, %s, %z) <{domain = "com.microsoft", op_type = "QLinearGlobalAveragePool"}> {channels_last = 1 : i64} : (tensor<1x4x4x3xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<1x1x1x3xui8>
    onnx.return %y : tensor<1x1x1x3xui8>
  }
}
// CHECK:        QLinearGlobalAveragePool
// CHECK-NOT:    onnx.DequantizeLinear

// -----

builtin.module attributes {onnx.model = {ir_version = 9 : i64, opset_import = {"" = 9 : i64, "com.microsoft" = 1 : i64}}} {
  onnx.graph @main(%a: tensor<4xui8>, %s: tensor<f32>, %z: tensor<ui8>) attributes {input_names = ["a", "s", "z"], output_names = ["y"]} {
    %y = onnx.custom(%a, %s, %z, %s, %z) <{domain = "com.microsoft", op_type = "QLinearSigmoid"}> : (tensor<4xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<4xui8>
    onnx.return %y : tensor<4xui8>
  }
}
// CHECK:        QLinearSigmoid
// CHECK-NOT:    onnx.DequantizeLinear
