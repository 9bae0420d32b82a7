// RUN: igniter-opt %s --split-input-file -p recompose | filecheck %s

// Gemm between views is MatMul on the dims as they are.

// CHECK-LABEL: @linear
// CHECK: %[[M:.*]] = onnx.MatMul(%x, %w)
// CHECK-NEXT: %[[Y:.*]] = onnx.Add(%[[M]], %c)
// CHECK-NEXT: onnx.return %[[Y]]
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @linear(%x: tensor<?x?x8xf32, #sym.dims<b, s, 8>>, %c: tensor<3xf32>, %shape: tensor<3xi64>) {
    %t = onnx.Constant() {value = #onnx.tensor<2xi64, [-1, 8]>} : () -> tensor<2xi64>
    %w = onnx.Constant() {value = #onnx.tensor<8x3xf32, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]>} : () -> tensor<8x3xf32>
    %a = onnx.Reshape(%x, %t) : (tensor<?x?x8xf32, #sym.dims<b, s, 8>>, tensor<2xi64>) -> tensor<?x8xf32, #sym.dims<b*s, 8>>
    %g = onnx.Gemm(%a, %w, %c) : (tensor<?x8xf32, #sym.dims<b*s, 8>>, tensor<8x3xf32>, tensor<3xf32>) -> tensor<?x3xf32, #sym.dims<b*s, 3>>
    %y = onnx.Reshape(%g, %shape) {igniter.values = {"1" = #sym.dims<b, s, 3>}} : (tensor<?x3xf32, #sym.dims<b*s, 3>>, tensor<3xi64>) -> tensor<?x?x3xf32, #sym.dims<b, s, 3>>
    onnx.return %y : tensor<?x?x3xf32, #sym.dims<b, s, 3>>
  }
}

// -----

// A transposed weight is transposed once, which folds.

// CHECK-LABEL: @transposed
// CHECK: %[[W:.*]] = onnx.Transpose(%w) {perm = array<i64: 1, 0>}
// CHECK-NEXT: onnx.MatMul(%x, %[[W]])
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @transposed(%x: tensor<?x?x8xf32, #sym.dims<b, s, 8>>, %c: tensor<3xf32>, %shape: tensor<3xi64>) {
    %t = onnx.Constant() {value = #onnx.tensor<2xi64, [-1, 8]>} : () -> tensor<2xi64>
    %w = onnx.Constant() {value = #onnx.tensor<3x8xf32, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]>} : () -> tensor<3x8xf32>
    %a = onnx.Reshape(%x, %t) : (tensor<?x?x8xf32, #sym.dims<b, s, 8>>, tensor<2xi64>) -> tensor<?x8xf32, #sym.dims<b*s, 8>>
    %g = onnx.Gemm(%a, %w, %c) {transB = 1 : i64} : (tensor<?x8xf32, #sym.dims<b*s, 8>>, tensor<3x8xf32>, tensor<3xf32>) -> tensor<?x3xf32, #sym.dims<b*s, 3>>
    %y = onnx.Reshape(%g, %shape) {igniter.values = {"1" = #sym.dims<b, s, 3>}} : (tensor<?x3xf32, #sym.dims<b*s, 3>>, tensor<3xi64>) -> tensor<?x?x3xf32, #sym.dims<b, s, 3>>
    onnx.return %y : tensor<?x?x3xf32, #sym.dims<b, s, 3>>
  }
}

// -----

// A scale would be one more rounding.

// CHECK-LABEL: @scaled
// CHECK: onnx.Gemm
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @scaled(%x: tensor<?x?x8xf32, #sym.dims<b, s, 8>>, %c: tensor<3xf32>, %shape: tensor<3xi64>) {
    %t = onnx.Constant() {value = #onnx.tensor<2xi64, [-1, 8]>} : () -> tensor<2xi64>
    %w = onnx.Constant() {value = #onnx.tensor<8x3xf32, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]>} : () -> tensor<8x3xf32>
    %a = onnx.Reshape(%x, %t) : (tensor<?x?x8xf32, #sym.dims<b, s, 8>>, tensor<2xi64>) -> tensor<?x8xf32, #sym.dims<b*s, 8>>
    %g = onnx.Gemm(%a, %w, %c) {alpha = 0.5 : f32} : (tensor<?x8xf32, #sym.dims<b*s, 8>>, tensor<8x3xf32>, tensor<3xf32>) -> tensor<?x3xf32, #sym.dims<b*s, 3>>
    %y = onnx.Reshape(%g, %shape) {igniter.values = {"1" = #sym.dims<b, s, 3>}} : (tensor<?x3xf32, #sym.dims<b*s, 3>>, tensor<3xi64>) -> tensor<?x?x3xf32, #sym.dims<b, s, 3>>
    onnx.return %y : tensor<?x?x3xf32, #sym.dims<b, s, 3>>
  }
}

// -----

// A bias for each row has no place under the other dims.

// CHECK-LABEL: @rows
// CHECK: onnx.Gemm
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @rows(%x: tensor<?x?x8xf32, #sym.dims<b, s, 8>>, %c: tensor<?x3xf32, #sym.dims<b*s, 3>>, %shape: tensor<3xi64>) {
    %t = onnx.Constant() {value = #onnx.tensor<2xi64, [-1, 8]>} : () -> tensor<2xi64>
    %w = onnx.Constant() {value = #onnx.tensor<8x3xf32, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]>} : () -> tensor<8x3xf32>
    %a = onnx.Reshape(%x, %t) : (tensor<?x?x8xf32, #sym.dims<b, s, 8>>, tensor<2xi64>) -> tensor<?x8xf32, #sym.dims<b*s, 8>>
    %g = onnx.Gemm(%a, %w, %c) : (tensor<?x8xf32, #sym.dims<b*s, 8>>, tensor<8x3xf32>, tensor<?x3xf32, #sym.dims<b*s, 3>>) -> tensor<?x3xf32, #sym.dims<b*s, 3>>
    %y = onnx.Reshape(%g, %shape) {igniter.values = {"1" = #sym.dims<b, s, 3>}} : (tensor<?x3xf32, #sym.dims<b*s, 3>>, tensor<3xi64>) -> tensor<?x?x3xf32, #sym.dims<b, s, 3>>
    onnx.return %y : tensor<?x?x3xf32, #sym.dims<b, s, 3>>
  }
}
