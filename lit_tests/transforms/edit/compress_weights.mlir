// RUN: igniter-opt %s -p "compress-weights{weights=int8 granularity=channel min-elements=4}" --split-input-file | filecheck %s
// RUN: igniter-opt %s -p "compress-weights{weights=int4 granularity=\"block:16\" symmetric=true min-elements=4}" --split-input-file | filecheck %s --check-prefix=INT4
// RUN: igniter-opt %s -p "compress-weights{weights=bf16 min-elements=4}" --split-input-file | filecheck %s --check-prefix=BF16
// RUN: not igniter-opt %s -p "compress-weights{weights=int3}" --split-input-file 2>&1 | filecheck %s --check-prefix=BAD
// RUN: not igniter-opt %s -p "compress-weights{only=\"x\"}" --split-input-file 2>&1 | filecheck %s --check-prefix=NONE

// BAD: weights are stored as f16, bf16, int8, int4, not as 'int3'
// NONE: 'x' names no weight

// A product: one scale for each column; MatMulNBits for 4 bits. The opset is raised.
// CHECK: opset_import = {"" = 13 : i64}
// CHECK: %[[Q:.*]] = onnx.Constant() <{initializer_name = "w.codes"}> {value = #onnx.tensor<4x2xui8
// CHECK: %[[S:.*]] = onnx.Constant() <{initializer_name = "w.scales"}> {value = #onnx.tensor<2xf32
// CHECK: %[[Z:.*]] = onnx.Constant() <{initializer_name = "w.zeros"}> {value = #onnx.tensor<2xui8
// CHECK: %[[W:.*]] = onnx.DequantizeLinear(%[[Q]], %[[S]], %[[Z]]) {axis = 1 : i64}
// CHECK: onnx.MatMul(%x, %[[W]])
// INT4: %[[Q:.*]] = onnx.Constant() <{initializer_name = "w.codes"}> {value = #onnx.tensor<2x1x64xui8
// INT4: onnx.custom(%x, %[[Q]], %{{.*}}) <{domain = "com.microsoft", op_type = "MatMulNBits", output_names = ["y"]}> {K = 4 : i64, N = 2 : i64, bits = 4 : i64, block_size = 128 : i64}
// BF16: %[[R:.*]] = onnx.Constant() {{.*}}value = #onnx.tensor<4x2xbf16
// BF16: %[[W:.*]] = onnx.Cast(%[[R]]) {to = 1 : i64}
// BF16: onnx.MatMul(%x, %[[W]])
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 12 : i64}}} {
  onnx.graph @main(%x: tensor<3x4xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<4x2xf32, [0.5, 1.0, 1.5, 2.0, -0.5, -1.0, 0.25, 0.75]>} : () -> tensor<4x2xf32>
    %y = onnx.MatMul(%x, %w) <{output_names = ["y"]}> : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
    onnx.return %y : tensor<3x2xf32>
  }
}
