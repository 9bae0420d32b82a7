builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%ids: tensor<?x?xi64, #sym.dims<batch, sequence>>) attributes {input_names = ["input_ids"], output_names = ["logits"]} {
    %table = onnx.Constant() <{initializer_name = "table"}> {value = #onnx.tensor<6x6xf32, [0.0, 2.0, 1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 3.0, 1.0, 0.5, 0.0, 0.5, 0.0, 0.0, 2.0, 1.5, 0.0, 0.0, 1.0, 0.0, 0.0, 2.5, 0.5, 1.0, 2.0, 0.0, 0.5, 0.0, 0.5, 2.0, 0.0, 0.0, 1.0, 0.0, 0.0]>} : () -> tensor<6x6xf32>
    %logits = onnx.Gather(%table, %ids) <{node_name = "bigrams", output_names = ["logits"]}> {axis = 0 : i64} : (tensor<6x6xf32>, tensor<?x?xi64, #sym.dims<batch, sequence>>) -> tensor<?x?x6xf32, #sym.dims<batch, sequence, 6>>
    onnx.return %logits : tensor<?x?x6xf32, #sym.dims<batch, sequence, 6>>
  }
}
