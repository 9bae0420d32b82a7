// RUN: igniter-opt %s -p 'free-dims{dims="x:0" symbols="rows"}' | filecheck %s
// RUN: not igniter-opt %s -p 'free-dims{dims="x:1" symbols="wide"}' 2>&1 | filecheck %s --check-prefix=BAD

// A number becomes a symbol where nothing asks for the number.

// CHECK: %x: tensor<?x4xf32, #sym.dims<rows, 4>>
// CHECK: onnx.return %y : tensor<?x4xf32, #sym.dims<rows, 4>>
// BAD: 'wide' (now 4) cannot be free: Add 'add' has it beside 4, so it has to be 4 or 1
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<2x4xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<4xf32, [1.0, 2.0, 3.0, 4.0]>} : () -> tensor<4xf32>
    %h = onnx.Exp(%x) <{node_name = "exp", output_names = ["h"]}> : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %s = onnx.Add(%h, %w) <{node_name = "add", output_names = ["s"]}> : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %y = onnx.Relu(%s) <{node_name = "act", output_names = ["y"]}> : (tensor<2x4xf32>) -> tensor<2x4xf32>
    onnx.return %y : tensor<2x4xf32>
  }
}
