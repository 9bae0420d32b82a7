// RUN: igniter-opt %s -p 'convert-opset{version=13}' | filecheck %s
// RUN: not igniter-opt %s -p 'convert-opset{version=12}' 2>&1 | filecheck %s --check-prefix=BAD

// A node that is another op in the new version is converted, the other stays.

// CHECK: opset_import = {"" = 13 : i64}
// CHECK: %{{.*}} = onnx.Constant(){{.*}}[1]
// CHECK: %y = onnx.ReduceSum(%h, %{{.*}}) <{{.*}}output_names = ["y"]
// BAD: the model is in opset 12
builtin.module attributes {onnx.model = {ir_version = 7 : i64, opset_import = {"" = 12 : i64}}} {
  onnx.graph @main(%x: tensor<2x4xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %h = onnx.Exp(%x) <{node_name = "exp", output_names = ["h"]}> : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %y = onnx.ReduceSum(%h) <{node_name = "sum", output_names = ["y"]}> {axes = array<i64: 1>, keepdims = 0 : i64} : (tensor<2x4xf32>) -> tensor<2xf32>
    onnx.return %y : tensor<2xf32>
  }
}
