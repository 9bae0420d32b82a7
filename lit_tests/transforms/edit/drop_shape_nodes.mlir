// RUN: igniter-opt %s -p infer-shapes,drop-shape-nodes,eliminate-dead-nodes | filecheck %s

// The target of the Reshape is a constant; that of the Expand no constant can say, and one Shape computes it.

// CHECK-LABEL: onnx.graph @main
// CHECK:       %[[BOTH:.*]] = onnx.Shape(%x) {start = 0 : i64, end = 2 : i64}
// CHECK-NOT:   onnx.Gather
// CHECK:       %[[T:.*]] = onnx.Constant() <{initializer_name = "split_1"}> {value = #onnx.tensor<4xi64, [0, 0, 2, 4]>}
// CHECK-NEXT:  %y = onnx.Reshape(%x, %[[T]])
// CHECK-NEXT:  %z = onnx.Expand(%one, %[[BOTH]])
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x?x8xf32, #sym.dims<batch, seq, 8>>) {
    %i0 = onnx.Constant() {value = #onnx.tensor<1xi64, [0]>} : () -> tensor<1xi64>
    %i1 = onnx.Constant() {value = #onnx.tensor<1xi64, [1]>} : () -> tensor<1xi64>
    %heads = onnx.Constant() {value = #onnx.tensor<2xi64, [2, 4]>} : () -> tensor<2xi64>
    %one = onnx.Constant() {value = #onnx.tensor<f32, [1.0]>} : () -> tensor<f32>
    %s = onnx.Shape(%x) : (tensor<?x?x8xf32, #sym.dims<batch, seq, 8>>) -> tensor<3xi64>
    %b = onnx.Gather(%s, %i0) {axis = 0 : i64} : (tensor<3xi64>, tensor<1xi64>) -> tensor<1xi64>
    %n = onnx.Gather(%s, %i1) {axis = 0 : i64} : (tensor<3xi64>, tensor<1xi64>) -> tensor<1xi64>
    %t = onnx.Concat(%b, %n, %heads) {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>, tensor<2xi64>) -> tensor<4xi64>
    %y = onnx.Reshape(%x, %t) <{node_name = "split"}> : (tensor<?x?x8xf32, #sym.dims<batch, seq, 8>>, tensor<4xi64>) -> tensor<*xf32>
    %u = onnx.Concat(%b, %n) {axis = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %z = onnx.Expand(%one, %u) <{node_name = "fill"}> : (tensor<f32>, tensor<2xi64>) -> tensor<*xf32>
    onnx.return %y, %z : tensor<*xf32>, tensor<*xf32>
  }
}
