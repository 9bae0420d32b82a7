// RUN: igniter-opt %s -p guard-assumptions --split-input-file | filecheck %s

// No kernel knows n: one that computes nothing checks what is assumed of it.

// CHECK-LABEL: onnx.graph @main
// CHECK-NEXT:    %{{.*}} = fusion.region @guard0 (%{{.*}} = %x : tensor<6x?xf32, #sym.dims<6, n>>) -> (tensor<0xi64>) {
// CHECK-NEXT:      %{{.*}} = onnx.Shape(%{{.*}}) {start = 0 : i64, end = 0 : i64}
// CHECK-NEXT:      fusion.yield
// CHECK:         onnx.Reshape(%x
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<6x?xf32, #sym.dims<6, n>>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"], igniter.assumptions = [#sym.requirement<1 <= n "the input cannot be reshaped to the requested shape" node "y">]} {
    %t = onnx.Constant() {value = #onnx.tensor<2xi64, [-1, 6]>} : () -> tensor<2xi64>
    %y = onnx.Reshape(%x, %t) : (tensor<6x?xf32, #sym.dims<6, n>>, tensor<2xi64>) -> tensor<?x6xf32, #sym.dims<n, 6>>
    onnx.return %y : tensor<?x6xf32, #sym.dims<n, 6>>
  }
}

// -----

// A kernel that knows n checks it, and what no input tells nobody can check.

// CHECK-LABEL: onnx.graph @main
// CHECK-NOT:     @guard0
// CHECK:         onnx.return
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<6x?xf32, #sym.dims<6, n>>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"], igniter.assumptions = [#sym.requirement<1 <= n "its dims are inconsistent">, #sym.requirement<1 <= m "its dims are inconsistent">]} {
    %y = fusion.region @r0 (%a = %x : tensor<6x?xf32, #sym.dims<6, n>>) -> (tensor<6x?xf32, #sym.dims<6, n>>) {
      %e = onnx.Exp(%a) : (tensor<6x?xf32, #sym.dims<6, n>>) -> tensor<6x?xf32, #sym.dims<6, n>>
      fusion.yield %e : tensor<6x?xf32, #sym.dims<6, n>>
    }
    onnx.return %y : tensor<6x?xf32, #sym.dims<6, n>>
  }
}
