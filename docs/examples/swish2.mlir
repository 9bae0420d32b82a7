builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64, my = 1 : i64}}} {
  onnx.graph @main(%x: tensor<?x768xf32, #sym.dims<n, 768>>, %bias: tensor<768xf32>) attributes {graph_name = "swish2", input_names = ["x", "bias"], output_names = ["y"]} {
    %sum = onnx.Add(%x, %bias) <{node_name = "add_bias", output_names = ["sum"]}> : (tensor<?x768xf32, #sym.dims<n, 768>>, tensor<768xf32>) -> tensor<*xf32>
    %y = onnx.custom(%sum) <{domain = "my", op_type = "Swish2", node_name = "swish2", output_names = ["y"]}> : (tensor<*xf32>) -> tensor<?x768xf32, #sym.dims<n, 768>>
    onnx.return %y : tensor<?x768xf32, #sym.dims<n, 768>>
  }
}
