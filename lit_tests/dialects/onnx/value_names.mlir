// RUN: igniter-opt %s | igniter-opt | filecheck %s

// Names with numeric suffixes: each value has a name of its own in the printed IR, whatever the others are called.

// CHECK: %p = onnx.Constant() <{initializer_name = "first"}>
// CHECK: %p_1 = onnx.Constant() <{initializer_name = "second"}>
// CHECK: %p_2 = onnx.Constant() <{initializer_name = "third"}>
// CHECK: %p_3 = onnx.Constant() <{initializer_name = "fourth"}>
// CHECK: %y = onnx.Sum(%p, %p_1, %p_2, %p_3)
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main() attributes {input_names = [], output_names = ["y"]} {
    %p_1 = onnx.Constant() <{initializer_name = "first"}> {value = #onnx.tensor<f32, [0.0]>} : () -> tensor<f32>
    %p_1_1 = onnx.Constant() <{initializer_name = "second"}> {value = #onnx.tensor<f32, [1.0]>} : () -> tensor<f32>
    %p = onnx.Constant() <{initializer_name = "third"}> {value = #onnx.tensor<f32, [2.0]>} : () -> tensor<f32>
    %p_1_1_2 = onnx.Constant() <{initializer_name = "fourth"}> {value = #onnx.tensor<f32, [3.0]>} : () -> tensor<f32>
    %y = onnx.Sum(%p_1, %p_1_1, %p, %p_1_1_2) : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
    onnx.return %y : tensor<f32>
  }
}
