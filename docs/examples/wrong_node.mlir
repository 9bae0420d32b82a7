builtin.module attributes {onnx.model = {opset_import = {"" = 12 : i64}}} {
  %x = "test.op"() : () -> tensor<2xf32>
  %y = onnx.HardSwish(%x) <{node_name = "act"}> : (tensor<2xf32>) -> tensor<2xf32>
}
