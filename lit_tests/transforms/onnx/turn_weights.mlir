// RUN: igniter-opt %s -p "turn-weights{min-elements=4}" --target=cuda:sm_90+tf32 | filecheck %s
// RUN: igniter-opt %s -p "turn-weights{min-elements=4}" --target=cuda:sm_90 | filecheck %s --check-prefix=PLAIN
// RUN: igniter-opt %s -p "turn-weights{min-elements=4}" --target=cuda+tf32 | filecheck %s --check-prefix=PLAIN
// RUN: igniter-opt %s -p "turn-weights" --target=cuda:sm_90+tf32 | filecheck %s --check-prefix=PLAIN

// Two products read one weight: it is stored once, with the depth last. One that has the depth last already stays, as
// do weights of halves. Without tensor cores for f32, without asynchronous ones, or if they are small, all stay.

// CHECK:      %[[T:.*]] = onnx.Constant() <{initializer_name = "w.t"}> {value = #onnx.tensor<3x2xf32, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]>}
// CHECK:      %[[A:.*]] = onnx.Transpose(%[[T]]) {{{.*}}} : (tensor<3x2xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: onnx.MatMul(%x, %[[A]])
// CHECK:      %[[B:.*]] = onnx.Transpose(%[[T]])
// CHECK-NEXT: onnx.Gemm(%y, %[[B]])
// CHECK-NEXT: onnx.Gemm(%x, %{{.*}}) {transB = 1 : i64}
// CHECK-NEXT: onnx.MatMul(%z, %{{.*}}) : (tensor<1x2xf16>

// PLAIN-NOT:  onnx.Transpose

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<1x2xf32>, %y: tensor<4x2xf32>, %z: tensor<1x2xf16>) attributes {input_names = ["x", "y", "z"], output_names = ["a", "b", "c", "d"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<2x3xf32, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]>} : () -> tensor<2x3xf32>
    %v = onnx.Constant() <{initializer_name = "v"}> {value = #onnx.tensor<3x2xf32, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]>} : () -> tensor<3x2xf32>
    %h = onnx.Constant() <{initializer_name = "h"}> {value = #onnx.tensor<2x3xf16, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]>} : () -> tensor<2x3xf16>
    %a = onnx.MatMul(%x, %w) : (tensor<1x2xf32>, tensor<2x3xf32>) -> tensor<1x3xf32>
    %b = onnx.Gemm(%y, %w) : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
    %c = onnx.Gemm(%x, %v) {transB = 1 : i64} : (tensor<1x2xf32>, tensor<3x2xf32>) -> tensor<1x3xf32>
    %d = onnx.MatMul(%z, %h) : (tensor<1x2xf16>, tensor<2x3xf16>) -> tensor<1x3xf16>
    onnx.return %a, %b, %c, %d : tensor<1x3xf32>, tensor<4x3xf32>, tensor<1x3xf32>, tensor<1x3xf16>
  }
}
