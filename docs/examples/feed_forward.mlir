builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}, producer_name = "example"}} {
  onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<rows, 4>>, %ids: tensor<?xi64, #sym.dims<rows>>) attributes {graph_name = "feed_forward", input_names = ["x", "ids"], output_names = ["y"]} {
    %table = onnx.Constant() <{initializer_name = "table"}> {value = #onnx.tensor<3x4xf32, [0.0, 0.1, 0.2, 0.3, 1.0, 1.1, 1.2, 1.3, 2.0, 2.1, 2.2, 2.3]>} : () -> tensor<3x4xf32>
    %up = onnx.Constant() <{initializer_name = "up"}> {value = #onnx.tensor<4x8xf32, [0.06, -0.07, 0.32, 0.05, -0.27, 0.18, 0.65, 0.47, -0.35, -0.63, -0.31, 0.02, -1.16, -0.11, -0.62, -0.37, -0.27, -0.16, 0.21, 0.52, -0.06, 0.68, -0.33, 0.18, 0.45, 0.05, -0.37, -0.46, -0.23, 0.11, -0.5, -0.1]>} : () -> tensor<4x8xf32>
    %down = onnx.Constant() <{initializer_name = "down"}> {value = #onnx.tensor<8x4xf32, [-0.08, 0.27, 0.11, 0.18, -0.33, -0.06, 0.39, 0.75, -0.63, 0.76, 0.67, 0.39, 0.13, -0.16, 0.73, 0.98, 0.9, 0.66, 0.18, -0.6, -0.0, 0.33, -0.64, 0.2, 0.21, 0.35, -0.59, -0.33, -0.22, -0.58, 0.87, -0.25]>} : () -> tensor<8x4xf32>
    %e = onnx.Gather(%table, %ids) <{node_name = "embed", output_names = ["e"]}> : (tensor<3x4xf32>, tensor<?xi64, #sym.dims<rows>>) -> tensor<?x4xf32, #sym.dims<rows, 4>>
    %s = onnx.Add(%x, %e) <{node_name = "add", output_names = ["s"]}> : (tensor<?x4xf32, #sym.dims<rows, 4>>, tensor<?x4xf32, #sym.dims<rows, 4>>) -> tensor<?x4xf32, #sym.dims<rows, 4>>
    %h = onnx.MatMul(%s, %up) <{node_name = "widen", output_names = ["h"]}> : (tensor<?x4xf32, #sym.dims<rows, 4>>, tensor<4x8xf32>) -> tensor<?x8xf32, #sym.dims<rows, 8>>
    %a = onnx.Relu(%h) <{node_name = "act", output_names = ["a"]}> : (tensor<?x8xf32, #sym.dims<rows, 8>>) -> tensor<?x8xf32, #sym.dims<rows, 8>>
    %p = onnx.MatMul(%a, %down) <{node_name = "narrow", output_names = ["p"]}> : (tensor<?x8xf32, #sym.dims<rows, 8>>, tensor<8x4xf32>) -> tensor<?x4xf32, #sym.dims<rows, 4>>
    %y = onnx.Add(%s, %p) <{node_name = "residual", output_names = ["y"]}> : (tensor<?x4xf32, #sym.dims<rows, 4>>, tensor<?x4xf32, #sym.dims<rows, 4>>) -> tensor<?x4xf32, #sym.dims<rows, 4>>
    onnx.return %y : tensor<?x4xf32, #sym.dims<rows, 4>>
  }
}
