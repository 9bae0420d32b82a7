// RUN: igniter-opt %s -p 'shard-products{ranks=2 rank=1}' | filecheck %s
// RUN: not igniter-opt %s -p 'shard-products{ranks=2 rank=2}' 2>&1 | filecheck %s --check-prefix=BAD

// The columns of the first weight and the rows of the second that are the second rank's, and a sum over all ranks.

// CHECK: #onnx.tensor<2x2xf32, [3.0, 4.0, 7.0, 8.0]>
// CHECK: #onnx.tensor<2x2xf32, [5.0, 6.0, 7.0, 8.0]>
// CHECK: %p = onnx.MatMul
// CHECK: onnx.Relu(%p)
// CHECK: onnx.custom{{.*}}op_type = "AllReduce"{{.*}}ranks = 2 : i64
// BAD: rank 2 of 2
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<3x2xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %u = onnx.Constant() <{initializer_name = "u"}> {value = #onnx.tensor<2x4xf32, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]>} : () -> tensor<2x4xf32>
    %v = onnx.Constant() <{initializer_name = "v"}> {value = #onnx.tensor<4x2xf32, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]>} : () -> tensor<4x2xf32>
    %p = onnx.MatMul(%x, %u) <{node_name = "up", output_names = ["p"]}> : (tensor<3x2xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
    %r = onnx.Relu(%p) <{node_name = "act", output_names = ["r"]}> : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %y = onnx.MatMul(%r, %v) <{node_name = "down", output_names = ["y"]}> : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
    onnx.return %y : tensor<3x2xf32>
  }
}
