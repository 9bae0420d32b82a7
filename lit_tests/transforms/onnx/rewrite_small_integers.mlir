// RUN: igniter-opt %s -p "rewrite-small-integers" --split-input-file | filecheck %s

// What is quantised to 4 bits and only dequantised again lies in bytes, cut to what 4 bits hold.

builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<4x6xf32>, %s: tensor<f32>) attributes {input_names = ["x", "s"], output_names = ["y"]} {
    %z = onnx.Constant() <{initializer_name = "z"}> {value = #onnx.tensor<i4, [3]>} : () -> tensor<i4>
    %q = onnx.QuantizeLinear(%x, %s, %z) : (tensor<4x6xf32>, tensor<f32>, tensor<i4>) -> tensor<4x6xi4>
    %y = onnx.DequantizeLinear(%q, %s, %z) : (tensor<4x6xi4>, tensor<f32>, tensor<i4>) -> tensor<4x6xf32>
    onnx.return %y : tensor<4x6xf32>
  }
}
// CHECK:        %[[Q:.*]] = onnx.QuantizeLinear(%x, %s, %[[Z:.*]]) {{.*}}output_dtype = 3 : i64{{.*}} -> tensor<4x6xi8>
// CHECK:        onnx.tensor<i8, [-8]>
// CHECK:        onnx.tensor<i8, [7]>
// CHECK-NEXT:   %q = onnx.Clip(%[[Q]], {{.*}} -> tensor<4x6xi8>
// CHECK-NEXT:   %y = onnx.DequantizeLinear(%q, %s, %{{.*}}) : (tensor<4x6xi8>, tensor<f32>, tensor<i8>)

// -----

// Refused: what else reads it sees 4 bits.

builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<4x6xf32>, %s: tensor<f32>, %z: tensor<i4>) attributes {input_names = ["x", "s", "z"], output_names = ["q"]} {
    %q = onnx.QuantizeLinear(%x, %s, %z) : (tensor<4x6xf32>, tensor<f32>, tensor<i4>) -> tensor<4x6xi4>
    onnx.return %q : tensor<4x6xi4>
  }
}
// CHECK:        onnx.QuantizeLinear(%x, %s, %z) : {{.*}} -> tensor<4x6xi4>
