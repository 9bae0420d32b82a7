// RUN: igniter-opt %s --split-input-file -p recompose | filecheck %s

// CHECK-LABEL: @softmax
// CHECK: %[[Y:.*]] = onnx.Softmax(%x) {axis = 1 : i64}
// CHECK-NEXT: onnx.return %[[Y]]
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @softmax(%x: tensor<4x8xf32>) {
    %a = onnx.Constant() {value = #onnx.tensor<1xi64, [-1]>} : () -> tensor<1xi64>
    %m = onnx.ReduceMax(%x) {axes = array<i64: -1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %d = onnx.Sub(%x, %m) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
    %e = onnx.Exp(%d) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %s = onnx.ReduceSum(%e, %a) : (tensor<4x8xf32>, tensor<1xi64>) -> tensor<4x1xf32>
    %y = onnx.Div(%e, %s) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
    onnx.return %y : tensor<4x8xf32>
  }
}

// -----

// CHECK-LABEL: @log_softmax
// CHECK: %[[Y:.*]] = onnx.LogSoftmax(%x) {axis = 1 : i64}
// CHECK-NEXT: onnx.return %[[Y]]
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @log_softmax(%x: tensor<4x8xf32>) {
    %a = onnx.Constant() {value = #onnx.tensor<1xi64, [-1]>} : () -> tensor<1xi64>
    %m = onnx.ReduceMax(%x) {axes = array<i64: -1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %d = onnx.Sub(%x, %m) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
    %e = onnx.Exp(%d) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %s = onnx.ReduceSum(%e, %a) : (tensor<4x8xf32>, tensor<1xi64>) -> tensor<4x1xf32>
    %l = onnx.Log(%s) : (tensor<4x1xf32>) -> tensor<4x1xf32>
    %y = onnx.Sub(%d, %l) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
    onnx.return %y : tensor<4x8xf32>
  }
}

// -----

// Without the maximum the exponentials overflow earlier.

// CHECK-LABEL: @no_maximum
// CHECK: onnx.Exp
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @no_maximum(%x: tensor<4x8xf32>) {
    %a = onnx.Constant() {value = #onnx.tensor<1xi64, [-1]>} : () -> tensor<1xi64>
    %e = onnx.Exp(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %s = onnx.ReduceSum(%e, %a) : (tensor<4x8xf32>, tensor<1xi64>) -> tensor<4x1xf32>
    %y = onnx.Div(%e, %s) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
    onnx.return %y : tensor<4x8xf32>
  }
}

// -----

// A maximum over other axes, as TensorFlow's global one, is no Softmax that ONNX has.

// CHECK-LABEL: @other_axes
// CHECK: onnx.Exp
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @other_axes(%x: tensor<4x8xf32>) {
    %a = onnx.Constant() {value = #onnx.tensor<1xi64, [-1]>} : () -> tensor<1xi64>
    %m = onnx.ReduceMax(%x) {axes = array<i64: 0, 1>} : (tensor<4x8xf32>) -> tensor<1x1xf32>
    %d = onnx.Sub(%x, %m) : (tensor<4x8xf32>, tensor<1x1xf32>) -> tensor<4x8xf32>
    %e = onnx.Exp(%d) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %s = onnx.ReduceSum(%e, %a) : (tensor<4x8xf32>, tensor<1xi64>) -> tensor<4x1xf32>
    %y = onnx.Div(%e, %s) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
    onnx.return %y : tensor<4x8xf32>
  }
}
