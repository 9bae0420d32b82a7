builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x64xf32, #sym.dims<n, 64>>, %b: tensor<64xf32>, %w: tensor<64x64xf32>) attributes {input_names = ["x", "b", "w"], output_names = ["y"]} {
    %0 = onnx.Add(%x, %b) <{node_name = "add"}> : (tensor<?x64xf32, #sym.dims<n, 64>>, tensor<64xf32>) -> tensor<*xf32>
    %1 = onnx.Relu(%0) <{node_name = "relu"}> : (tensor<*xf32>) -> tensor<*xf32>
    %2 = onnx.MatMul(%1, %w) <{node_name = "matmul"}> : (tensor<*xf32>, tensor<64x64xf32>) -> tensor<*xf32>
    %3 = onnx.Add(%2, %x) <{node_name = "residual"}> : (tensor<*xf32>, tensor<?x64xf32, #sym.dims<n, 64>>) -> tensor<*xf32>
    %4 = onnx.Tanh(%3) <{node_name = "tanh"}> : (tensor<*xf32>) -> tensor<*xf32>
    onnx.return %4 : tensor<*xf32>
  }
}
