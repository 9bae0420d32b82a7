// RUN: igniter-opt %s -p 'change-types{values="x","y" types="double","float16"}' | filecheck %s
// RUN: not igniter-opt %s -p 'change-types{values="x" types="float"}' 2>&1 | filecheck %s --check-prefix=BAD

// An input is cast to what nodes have, an output from it.

// CHECK: %x: tensor<?x4xf64
// CHECK: %x_float = onnx.Cast(%x) <{output_names = ["x_float"]}> {to = 1 : i64}
// CHECK: onnx.Exp(%x_float)
// CHECK: onnx.Relu{{.*}}output_names = ["y_float"]
// CHECK: %y = onnx.Cast{{.*}}output_names = ["y"]{{.*}}{to = 10 : i64}
// BAD: is to be float, which it is
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<batch, 4>>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<4xf32, [1.0, 2.0, 3.0, 4.0]>} : () -> tensor<4xf32>
    %h = onnx.Exp(%x) <{node_name = "exp", output_names = ["h"]}> : (tensor<?x4xf32, #sym.dims<batch, 4>>) -> tensor<?x4xf32, #sym.dims<batch, 4>>
    %s = onnx.Add(%h, %w) <{node_name = "add", output_names = ["s"]}> : (tensor<?x4xf32, #sym.dims<batch, 4>>, tensor<4xf32>) -> tensor<?x4xf32, #sym.dims<batch, 4>>
    %y = onnx.Relu(%s) <{node_name = "act", output_names = ["y"]}> : (tensor<?x4xf32, #sym.dims<batch, 4>>) -> tensor<?x4xf32, #sym.dims<batch, 4>>
    onnx.return %y : tensor<?x4xf32, #sym.dims<batch, 4>>
  }
}
