builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x64xf32, #sym.dims<n, 64>>, %g: tensor<?x1xf32, #sym.dims<n, 1>>, %w: tensor<64x64xf32>) attributes {input_names = ["x", "g", "w"], output_names = ["y"]} {
    %0 = onnx.MatMul(%x, %w) <{node_name = "matmul"}> : (tensor<?x64xf32, #sym.dims<n, 64>>, tensor<64x64xf32>) -> tensor<*xf32>
    %1 = onnx.Relu(%0) <{node_name = "relu"}> : (tensor<*xf32>) -> tensor<*xf32>
    %2 = onnx.Sigmoid(%g) <{node_name = "gate"}> : (tensor<?x1xf32, #sym.dims<n, 1>>) -> tensor<*xf32>
    %3 = onnx.Mul(%2, %1) <{node_name = "gated"}> : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
    %4 = onnx.Add(%3, %x) <{node_name = "residual"}> : (tensor<*xf32>, tensor<?x64xf32, #sym.dims<n, 64>>) -> tensor<*xf32>
    %5 = onnx.Softmax(%4) <{node_name = "softmax"}> {axis = -1 : i64} : (tensor<*xf32>) -> tensor<*xf32>
    onnx.return %5 : tensor<*xf32>
  }
}
