builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x768xf32, #sym.dims<n, 768>>, %bias: tensor<768xf32>) attributes {graph_name = "written_out", input_names = ["x", "bias"], output_names = ["y"]} {
    %two = onnx.Constant() <{initializer_name = "two"}> {value = #onnx.tensor<f32, [2.0]>} : () -> tensor<f32>
    %sum = onnx.Add(%x, %bias) <{node_name = "add_bias", output_names = ["sum"]}> : (tensor<?x768xf32, #sym.dims<n, 768>>, tensor<768xf32>) -> tensor<*xf32>
    %double = onnx.Mul(%sum, %two) <{node_name = "double", output_names = ["double"]}> : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
    %sigmoid = onnx.Sigmoid(%double) <{node_name = "sigmoid", output_names = ["sigmoid"]}> : (tensor<*xf32>) -> tensor<*xf32>
    %y = onnx.Mul(%sum, %sigmoid) <{node_name = "product", output_names = ["y"]}> : (tensor<*xf32>, tensor<*xf32>) -> tensor<?x768xf32, #sym.dims<n, 768>>
    onnx.return %y : tensor<?x768xf32, #sym.dims<n, 768>>
  }
}
