// RUN: igniter-opt %s --split-input-file -p fold-constants | filecheck %s
// RUN: igniter-opt %s --split-input-file -p fold-constants{max_bytes=8} --remarks 2>&1 | filecheck %s --check-prefix=CAP

// A chain of nodes on constants is one constant.

// CHECK-LABEL: @chain
// CHECK-NEXT: %{{.*}} = onnx.Constant() <{initializer_name = "y"}> {value = #onnx.tensor<2x2xf32, [1.0, 9.0, 4.0, 16.0]>}
// CHECK-NEXT: onnx.return
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @chain() {
    %w = onnx.Constant() {value = #onnx.tensor<2x2xf32, [1.0, 2.0, 3.0, 4.0]>} : () -> tensor<2x2xf32>
    %a = onnx.Mul(%w, %w) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %y = onnx.Transpose(%a) <{output_names = ["y"]}> {perm = array<i64: 1, 0>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    onnx.return %y : tensor<2x2xf32>
  }
}

// -----

// The shape of a tensor with known dims, and one of the dims.

// CHECK-LABEL: @shape
// CHECK: #onnx.tensor<1xi64, [4]>
// CHECK-NOT: onnx.Shape
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @shape(%x: tensor<?x4xf32, #sym.dims<n, 4>>) {
    %y = onnx.Shape(%x) {start = 1 : i64} : (tensor<?x4xf32, #sym.dims<n, 4>>) -> tensor<1xi64>
    onnx.return %y : tensor<1xi64>
  }
}

// -----

// What infer-shapes noted becomes a constant where it is integers, and stays where it is not.

// CHECK-LABEL: @noted
// CHECK: %[[T:.*]] = onnx.Constant() {value = #onnx.tensor<2xi64, [6, 2]>}
// CHECK: onnx.Reshape(%x, %[[T]]) : (tensor<3x4xf32>
// CHECK: onnx.Expand(%x, %s) {igniter.values = {"1" = #sym.dims<n, 3, 4>}}
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @noted(%x: tensor<3x4xf32>, %t: tensor<2xi64>, %s: tensor<3xi64>) {
    %y = onnx.Reshape(%x, %t) {igniter.values = {"1" = #sym.dims<6, 2>}} : (tensor<3x4xf32>, tensor<2xi64>) -> tensor<6x2xf32>
    %z = onnx.Expand(%x, %s) {igniter.values = {"1" = #sym.dims<n, 3, 4>}} : (tensor<3x4xf32>, tensor<3xi64>) -> tensor<?x3x4xf32, #sym.dims<n, 3, 4>>
    onnx.return %y, %z : tensor<6x2xf32>, tensor<?x3x4xf32, #sym.dims<n, 3, 4>>
  }
}

// -----

// Random nodes stay, and so does what would fill the file with copies of one number.

// CHECK-LABEL: @stays
// CHECK: onnx.RandomNormalLike
// CHECK: onnx.ConstantOfShape
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @stays() {
    %w = onnx.Constant() {value = #onnx.tensor<2xf32, [1.0, 2.0]>} : () -> tensor<2xf32>
    %s = onnx.Constant() {value = #onnx.tensor<2xi64, [1000, 1000]>} : () -> tensor<2xi64>
    %r = onnx.RandomNormalLike(%w) : (tensor<2xf32>) -> tensor<2xf32>
    %z = onnx.ConstantOfShape(%s) : (tensor<2xi64>) -> tensor<1000x1000xf32>
    onnx.return %r, %z : tensor<2xf32>, tensor<1000x1000xf32>
  }
}

// -----

// Past max_bytes a node is folded only if it makes no more than it reads.

// CHECK-LABEL: @capped
// CHECK-NOT: onnx.Concat
// CAP: remark: fold-constants: missed: Concat is not folded: 32 bytes of results are more than max_bytes
// CAP-LABEL: @capped
// CAP-NOT: onnx.Transpose
// CAP: onnx.Concat
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @capped() {
    %w = onnx.Constant() {value = #onnx.tensor<2x2xf32, [1.0, 2.0, 3.0, 4.0]>} : () -> tensor<2x2xf32>
    %t = onnx.Transpose(%w) {perm = array<i64: 1, 0>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %c = onnx.Concat(%w, %w) {axis = 0 : i64} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
    onnx.return %t, %c : tensor<2x2xf32>, tensor<4x2xf32>
  }
}
