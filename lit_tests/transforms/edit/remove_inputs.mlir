// RUN: igniter-opt %s -p 'remove-inputs{inputs="unused"}' | filecheck %s
// RUN: not igniter-opt %s -p 'remove-inputs{inputs="x"}' 2>&1 | filecheck %s --check-prefix=BAD

// An input that nothing reads.

// CHECK: onnx.graph @main(%x: {{.*}}) attributes {{.*}}input_names = ["x"]
// BAD: the input 'x' is read by Exp 'exp'
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<batch, 4>>, %unused: tensor<3xi64>) attributes {graph_name = "g", input_names = ["x", "unused"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<4xf32, [1.0, 2.0, 3.0, 4.0]>} : () -> tensor<4xf32>
    %h = onnx.Exp(%x) <{node_name = "exp", output_names = ["h"]}> : (tensor<?x4xf32, #sym.dims<batch, 4>>) -> tensor<?x4xf32, #sym.dims<batch, 4>>
    %s = onnx.Add(%h, %w) <{node_name = "add", output_names = ["s"]}> : (tensor<?x4xf32, #sym.dims<batch, 4>>, tensor<4xf32>) -> tensor<?x4xf32, #sym.dims<batch, 4>>
    %y = onnx.Relu(%s) <{node_name = "act", output_names = ["y"]}> : (tensor<?x4xf32, #sym.dims<batch, 4>>) -> tensor<?x4xf32, #sym.dims<batch, 4>>
    onnx.return %y : tensor<?x4xf32, #sym.dims<batch, 4>>
  }
}
