// RUN: igniter-opt %s -p "fold-constants,form-half-products{min-elements=16}" --split-input-file | filecheck %s
// RUN: igniter-opt %s -p "fold-constants{max-bytes=16},form-half-products{min-elements=16}" --split-input-file | filecheck %s
// RUN: igniter-opt %s -p "fold-constants,form-half-products{min-elements=16 half-loads=false}" --split-input-file | filecheck %s --check-prefix=SOFT
// RUN: igniter-opt %s -p "fold-constants,form-half-products" --split-input-file | filecheck %s --check-prefix=SMALL

// Two products read one weight: what is stored is one constant, and each has a Cast of its own. A transposed weight is
// stored transposed. bf16 needs no instruction of the target's; without one for f16, that is f32, as small weights are.

// CHECK:      %[[H:.*]] = onnx.Constant() <{initializer_name = "w.f16"}> {value = #onnx.tensor<4x4xf16, [0.0, 1.0, 2.0,
// CHECK-NEXT: %[[G:.*]] = onnx.Constant() <{initializer_name = "v.bf16"}>
// CHECK-NEXT: %[[A:.*]] = onnx.Cast(%[[H]]) {to = 1 : i64} : (tensor<4x4xf16>) -> tensor<4x4xf32>
// CHECK-NEXT: {{.*}}onnx.MatMul(%x, %[[A]])
// CHECK-NEXT: %[[B:.*]] = onnx.Cast(%[[H]])
// CHECK-NEXT: {{.*}}onnx.MatMul(%y, %[[B]])
// CHECK-NEXT: %[[T:.*]] = onnx.Constant() <{initializer_name = "t.f16"}> {value = #onnx.tensor<4x4xf16, [0.0, 4.0, 8.0,
// CHECK-NEXT: %[[C:.*]] = onnx.Cast(%[[T]])
// CHECK-NEXT: {{.*}}onnx.MatMul(%z, %[[C]])
// CHECK-NEXT: %[[D:.*]] = onnx.Cast(%[[G]])
// CHECK-NEXT: {{.*}}onnx.Gemm(%z, %[[D]]) {transB = 1 : i64}
// CHECK-NOT:  onnx.Constant

// SOFT:       onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<4x4xf32
// SOFT:       onnx.Constant() <{initializer_name = "v.bf16"}>

// SMALL-NOT:  onnx.Cast

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<1x4xf32>, %y: tensor<2x4xf32>, %z: tensor<3x4xf32>) attributes {input_names = ["x", "y", "z"], output_names = ["a", "b", "c", "d"]} {
    %h = onnx.Constant() <{initializer_name = "h"}> {value = #onnx.tensor<4x4xf16, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0]>} : () -> tensor<4x4xf16>
    %g = onnx.Constant() <{initializer_name = "g"}> {value = #onnx.tensor<4x4xbf16, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0]>} : () -> tensor<4x4xbf16>
    %w = onnx.Cast(%h) <{output_names = ["w"]}> {to = 1 : i64} : (tensor<4x4xf16>) -> tensor<4x4xf32>
    %v = onnx.Cast(%g) <{output_names = ["v"]}> {to = 1 : i64} : (tensor<4x4xbf16>) -> tensor<4x4xf32>
    %a = onnx.MatMul(%x, %w) : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
    %b = onnx.MatMul(%y, %w) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %t = onnx.Transpose(%w) <{output_names = ["t"]}> {perm = [1, 0]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %c = onnx.MatMul(%z, %t) : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %d = onnx.Gemm(%z, %v) {transB = 1 : i64} : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    onnx.return %a, %b, %c, %d : tensor<1x4xf32>, tensor<2x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>
  }
}

// -----

// The filters of a convolution are read so too, but those of tiles, which are transformed; filters of one channel are
// small.

// CHECK-LABEL: input_names = ["image"]
// CHECK:      %[[W:.*]] = onnx.Constant() <{initializer_name = "w.f16"}> {value = #onnx.tensor<4x4x1x1xf16
// CHECK:      %[[C:.*]] = onnx.Cast(%[[W]])
// CHECK-NEXT: {{.*}}onnx.Conv(%image, %[[C]])
// CHECK-NEXT: {{.*}}onnx.Conv(%{{.*}}, %w) {igniter.winograd
// CHECK-NEXT: {{.*}}onnx.Conv(%{{.*}}, %v) {group = 4 : i64}

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%image: tensor<1x4x8x8xf32>) attributes {input_names = ["image"], output_names = ["c"]} {
    %h = onnx.Constant() <{initializer_name = "h"}> {value = #onnx.tensor<4x4x1x1xf16, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0]>} : () -> tensor<4x4x1x1xf16>
    %g = onnx.Constant() <{initializer_name = "g"}> {value = #onnx.tensor<4x1x2x2xf16, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0]>} : () -> tensor<4x1x2x2xf16>
    %w = onnx.Cast(%h) <{output_names = ["w"]}> {to = 1 : i64} : (tensor<4x4x1x1xf16>) -> tensor<4x4x1x1xf32>
    %v = onnx.Cast(%g) <{output_names = ["v"]}> {to = 1 : i64} : (tensor<4x1x2x2xf16>) -> tensor<4x1x2x2xf32>
    %a = onnx.Conv(%image, %w) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x8x8xf32>
    %b = onnx.Conv(%a, %w) {igniter.winograd = [2, 2, 1, 1]} : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x8x8xf32>
    %c = onnx.Conv(%b, %v) {group = 4 : i64} : (tensor<1x4x8x8xf32>, tensor<4x1x2x2xf32>) -> tensor<1x4x7x7xf32>
    onnx.return %c : tensor<1x4x7x7xf32>
  }
}
