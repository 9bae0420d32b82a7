builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}, producer_name = "example"}} {
  onnx.graph @main(%scores: tensor<?x?xf32, #sym.dims<rows, seq>>, %mask: tensor<?xf32, #sym.dims<seq>>) attributes {graph_name = "mask_softmax", input_names = ["scores", "mask"], output_names = ["weights"]} {
    %scale = onnx.Constant() <{initializer_name = "scale"}> {value = #onnx.tensor<f32, [0.125]>} : () -> tensor<f32>
    %scaled = onnx.Mul(%scores, %scale) <{node_name = "scale_scores", output_names = ["scaled"]}> : (tensor<?x?xf32, #sym.dims<rows, seq>>, tensor<f32>) -> tensor<*xf32>
    %masked = onnx.Add(%scaled, %mask) <{node_name = "add_mask", output_names = ["masked"]}> : (tensor<*xf32>, tensor<?xf32, #sym.dims<seq>>) -> tensor<*xf32>
    %weights = onnx.Softmax(%masked) <{node_name = "softmax", output_names = ["weights"]}> {axis = -1 : i64} : (tensor<*xf32>) -> tensor<?x?xf32, #sym.dims<rows, seq>>
    onnx.return %weights : tensor<?x?xf32, #sym.dims<rows, seq>>
  }
}
