builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<1x3x224x224xf32>, %m: tensor<1x64x56x56xf32>, %l: tensor<1x512x7x7xf32>) attributes {input_names = ["x", "m", "l"], output_names = ["a", "b", "c"]} {
    %u = onnx.Constant() <{initializer_name = "u"}> {value = #onnx.tensor<64x3x3x3xf32, elided>} : () -> tensor<64x3x3x3xf32>
    %v = onnx.Constant() <{initializer_name = "v"}> {value = #onnx.tensor<64x64x3x3xf32, elided>} : () -> tensor<64x64x3x3xf32>
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<512x512x3x3xf32, elided>} : () -> tensor<512x512x3x3xf32>
    %a = onnx.Conv(%x, %u) <{node_name = "first"}> {pads = array<i64: 1, 1, 1, 1>} : (tensor<1x3x224x224xf32>, tensor<64x3x3x3xf32>) -> tensor<1x64x224x224xf32>
    %b = onnx.Conv(%m, %v) <{node_name = "middle"}> {pads = array<i64: 1, 1, 1, 1>} : (tensor<1x64x56x56xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x56x56xf32>
    %c = onnx.Conv(%l, %w) <{node_name = "last"}> {pads = array<i64: 1, 1, 1, 1>} : (tensor<1x512x7x7xf32>, tensor<512x512x3x3xf32>) -> tensor<1x512x7x7xf32>
    onnx.return %a, %b, %c : tensor<1x64x224x224xf32>, tensor<1x64x56x56xf32>, tensor<1x512x7x7xf32>
  }
}
