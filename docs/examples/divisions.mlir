builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%scores: tensor<?x64xf32, #sym.dims<rows, 64>>) attributes {input_names = ["scores"], output_names = ["weights", "thirds"]} {
    %eight = onnx.Constant() <{initializer_name = "eight"}> {value = #onnx.tensor<f32, [8.0]>} : () -> tensor<f32>
    %three = onnx.Constant() <{initializer_name = "three"}> {value = #onnx.tensor<f32, [3.0]>} : () -> tensor<f32>
    %0 = onnx.Div(%scores, %eight) <{node_name = "scale"}> : (tensor<?x64xf32, #sym.dims<rows, 64>>, tensor<f32>) -> tensor<?x64xf32, #sym.dims<rows, 64>>
    %1 = onnx.Softmax(%0) <{node_name = "softmax"}> {axis = -1 : i64} : (tensor<?x64xf32, #sym.dims<rows, 64>>) -> tensor<?x64xf32, #sym.dims<rows, 64>>
    %2 = onnx.Div(%scores, %three) <{node_name = "third"}> : (tensor<?x64xf32, #sym.dims<rows, 64>>, tensor<f32>) -> tensor<?x64xf32, #sym.dims<rows, 64>>
    onnx.return %1, %2 : tensor<?x64xf32, #sym.dims<rows, 64>>, tensor<?x64xf32, #sym.dims<rows, 64>>
  }
}
