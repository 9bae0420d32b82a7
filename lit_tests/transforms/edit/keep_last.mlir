// RUN: igniter-opt %s -p 'keep-last{outputs="y:1"}' | filecheck %s
// RUN: not igniter-opt %s -p 'keep-last{outputs="h:1"}' 2>&1 | filecheck %s --check-prefix=SHARED
// RUN: not igniter-opt %s -p 'keep-last{outputs="z:1"}' 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not igniter-opt %s -p 'keep-last{outputs="y:2"}' 2>&1 | filecheck %s --check-prefix=COLUMNS

// The Gather moves up to the last value that something else reads.

// CHECK:      %h = onnx.Exp(%x)
// CHECK:      [[ROWS:%.*]] = onnx.Gather(%h,
// CHECK:      %s = onnx.Sigmoid([[ROWS]]) {{.*}} -> tensor<?x1x4xf32
// CHECK:      %p = onnx.Mul([[ROWS]], %s) {{.*}} -> tensor<?x1x4xf32
// CHECK:      %y = onnx.MatMul(%p, %w) {{.*}} -> tensor<?x1x2xf32
// SHARED:     'h:1': Exp 'exp' does not compute rows one by one for this output alone
// UNKNOWN:    'z:1' is no OUTPUT:AXIS; outputs are y, h
// COLUMNS:    'y:2': MatMul 'head' does not compute rows one by one for this output alone
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x?x4xf32, #sym.dims<b, n, 4>>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y", "h"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<4x2xf32, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]>} : () -> tensor<4x2xf32>
    %h = onnx.Exp(%x) <{node_name = "exp", output_names = ["h"]}> : (tensor<?x?x4xf32, #sym.dims<b, n, 4>>) -> tensor<?x?x4xf32, #sym.dims<b, n, 4>>
    %s = onnx.Sigmoid(%h) <{node_name = "gate", output_names = ["s"]}> : (tensor<?x?x4xf32, #sym.dims<b, n, 4>>) -> tensor<?x?x4xf32, #sym.dims<b, n, 4>>
    %p = onnx.Mul(%h, %s) <{node_name = "silu", output_names = ["p"]}> : (tensor<?x?x4xf32, #sym.dims<b, n, 4>>, tensor<?x?x4xf32, #sym.dims<b, n, 4>>) -> tensor<?x?x4xf32, #sym.dims<b, n, 4>>
    %y = onnx.MatMul(%p, %w) <{node_name = "head", output_names = ["y"]}> : (tensor<?x?x4xf32, #sym.dims<b, n, 4>>, tensor<4x2xf32>) -> tensor<?x?x2xf32, #sym.dims<b, n, 2>>
    onnx.return %y, %h : tensor<?x?x2xf32, #sym.dims<b, n, 2>>, tensor<?x?x4xf32, #sym.dims<b, n, 4>>
  }
}
