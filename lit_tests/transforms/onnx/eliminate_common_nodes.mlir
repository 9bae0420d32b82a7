// RUN: igniter-opt %s --split-input-file -p eliminate-common-nodes | filecheck %s

// Equal nodes and constants are one, names aside. Random nodes, and unknown ones, are not.

// CHECK-LABEL: @nodes
// CHECK-NEXT: %[[C:.*]] = onnx.Constant
// CHECK-NEXT: %[[A:.*]] = onnx.Add(%x, %[[C]])
// CHECK-NEXT: %[[R:.*]] = onnx.RandomNormalLike
// CHECK-NEXT: %[[S:.*]] = onnx.RandomNormalLike
// CHECK-NEXT: onnx.return %[[A]], %[[A]], %[[R]], %[[S]]
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @nodes(%x: tensor<2xf32>) {
    %c = onnx.Constant() <{initializer_name = "c"}> {value = #onnx.tensor<2xf32, [1.0, 2.0]>} : () -> tensor<2xf32>
    %d = onnx.Constant() <{initializer_name = "d"}> {value = #onnx.tensor<2xf32, [1.0, 2.0]>} : () -> tensor<2xf32>
    %a = onnx.Add(%x, %c) <{node_name = "first"}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %b = onnx.Add(%x, %d) <{node_name = "second"}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %r = onnx.RandomNormalLike(%x) : (tensor<2xf32>) -> tensor<2xf32>
    %s = onnx.RandomNormalLike(%x) : (tensor<2xf32>) -> tensor<2xf32>
    onnx.return %a, %b, %r, %s : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  }
}

// -----

// A different attribute, or a zero of another sign, is another value.

// CHECK-LABEL: @different
// CHECK: onnx.return %a, %b, %p, %n
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @different(%x: tensor<2x2xf32>) {
    %a = onnx.Softmax(%x) {axis = 0 : i64} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %b = onnx.Softmax(%x) {axis = 1 : i64} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %p = onnx.Constant() {value = #onnx.tensor<f32, "0x00000000">} : () -> tensor<f32>
    %n = onnx.Constant() {value = #onnx.tensor<f32, "0x00000080">} : () -> tensor<f32>
    onnx.return %a, %b, %p, %n : tensor<2x2xf32>, tensor<2x2xf32>, tensor<f32>, tensor<f32>
  }
}

// -----

// Operands with the same known elements are the same, and then what reads them is, under one name of its open dim.

// CHECK-LABEL: @noted
// CHECK: onnx.Slice(%w, %s,
// CHECK-NOT: onnx.Slice
// CHECK: onnx.Relu
// CHECK-SAME: tensor<?xf32, #sym.dims<d0>>
// CHECK-NOT: d1
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @noted(%w: tensor<9xf32>, %s: tensor<1xi64>, %t: tensor<1xi64>, %e: tensor<1xi64>) {
    %a = onnx.Slice(%w, %s, %e) {igniter.values = {"1" = #sym.dims<4 - n>}} : (tensor<9xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32, #sym.dims<d0>>
    %b = onnx.Slice(%w, %t, %e) {igniter.values = {"1" = #sym.dims<4 - n>}} : (tensor<9xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32, #sym.dims<d1>>
    %c = onnx.Relu(%b) : (tensor<?xf32, #sym.dims<d1>>) -> tensor<?xf32, #sym.dims<d1>>
    onnx.return %a, %c : tensor<?xf32, #sym.dims<d0>>, tensor<?xf32, #sym.dims<d1>>
  }
}
