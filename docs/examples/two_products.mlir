builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x8xf32, #sym.dims<n, 8>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %u = onnx.Constant() <{initializer_name = "first"}> {value = #onnx.tensor<8x4xf32, [0.11, -0.52, 0.33, 0.74, -0.95, 0.16, 0.27, -0.38, 0.49, 0.60, -0.71, 0.82, 0.93, -0.14, 0.25, 0.36, -0.47, 0.58, 0.69, -0.70, 0.81, 0.92, -0.13, 0.24, 0.35, -0.46, 0.57, 0.68, 0.79, -0.80, 0.91, 0.12]>} : () -> tensor<8x4xf32>
    %v = onnx.Constant() <{initializer_name = "second"}> {value = #onnx.tensor<4x2xf32, [0.5, 1.0, 1.5, 2.0, -0.5, -1.0, 0.25, 0.75]>} : () -> tensor<4x2xf32>
    %h = onnx.MatMul(%x, %u) <{node_name = "up", output_names = ["h"]}> : (tensor<?x8xf32, #sym.dims<n, 8>>, tensor<8x4xf32>) -> tensor<*xf32>
    %r = onnx.Relu(%h) <{node_name = "relu", output_names = ["r"]}> : (tensor<*xf32>) -> tensor<*xf32>
    %y = onnx.MatMul(%r, %v) <{node_name = "down", output_names = ["y"]}> : (tensor<*xf32>, tensor<4x2xf32>) -> tensor<?x2xf32, #sym.dims<n, 2>>
    onnx.return %y : tensor<?x2xf32, #sym.dims<n, 2>>
  }
}
