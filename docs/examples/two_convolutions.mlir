// Two convolutions in a row, the second with a padding.
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x1x?x?xf32, #sym.dims<n, 1, h, w>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %u = onnx.Constant() <{initializer_name = "u"}> {value = #onnx.tensor<1x1x3x3xf32, [0.5, -0.25, 0.125, 0.5, -0.25, 0.125, 0.5, -0.25, 0.125]>} : () -> tensor<1x1x3x3xf32>
    %v = onnx.Constant() <{initializer_name = "v"}> {value = #onnx.tensor<1x1x3x3xf32, [0.5, -0.25, 0.125, 0.5, -0.25, 0.125, 0.5, -0.25, 0.125]>} : () -> tensor<1x1x3x3xf32>
    %a = onnx.Conv(%x, %u) <{node_name = "first"}> {pads = array<i64: 1, 1, 1, 1>} : (tensor<?x1x?x?xf32, #sym.dims<n, 1, h, w>>, tensor<1x1x3x3xf32>) -> tensor<*xf32>
    %b = onnx.Relu(%a) : (tensor<*xf32>) -> tensor<*xf32>
    %c = onnx.Conv(%b, %v) <{node_name = "second"}> {pads = array<i64: 1, 1, 1, 1>} : (tensor<*xf32>, tensor<1x1x3x3xf32>) -> tensor<*xf32>
    %y = onnx.Tanh(%c) : (tensor<*xf32>) -> tensor<*xf32>
    onnx.return %y : tensor<*xf32>
  }
}
