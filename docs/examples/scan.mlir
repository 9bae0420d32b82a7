builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%h0: tensor<?x64xf32, #sym.dims<n, 64>>, %x: tensor<?x?x64xf32, #sym.dims<t, n, 64>>, %w: tensor<64x64xf32>, %r: tensor<64x64xf32>) attributes {input_names = ["h0", "x", "w", "r"], output_names = ["h", "y"]} {
    %0, %1 = onnx.Scan(%h0, %x) <{node_name = "steps"}> ({
    ^bb0(%h: tensor<*xf32>, %e: tensor<*xf32>):
      %2 = onnx.MatMul(%e, %w) : (tensor<*xf32>, tensor<64x64xf32>) -> tensor<*xf32>
      %3 = onnx.MatMul(%h, %r) : (tensor<*xf32>, tensor<64x64xf32>) -> tensor<*xf32>
      %4 = onnx.Add(%2, %3) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
      %5 = onnx.Tanh(%4) : (tensor<*xf32>) -> tensor<*xf32>
      onnx.return %5, %5 : tensor<*xf32>, tensor<*xf32>
    }) {num_scan_inputs = 1 : i64} : (tensor<?x64xf32, #sym.dims<n, 64>>, tensor<?x?x64xf32, #sym.dims<t, n, 64>>) -> (tensor<*xf32>, tensor<*xf32>)
    onnx.return %0, %1 : tensor<*xf32>, tensor<*xf32>
  }
}
