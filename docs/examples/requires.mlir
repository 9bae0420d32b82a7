// A reflection of four rows, and a Reshape with the assumption that 64 divides 16 times n.
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x16xf32, #sym.dims<n, 16>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %shape = onnx.Constant() {value = #onnx.tensor<2xi64, [64, -1]>} : () -> tensor<2xi64>
    %pads = onnx.Constant() {value = #onnx.tensor<4xi64, [0, 0, 0, 4]>} : () -> tensor<4xi64>
    %a = onnx.Exp(%x) : (tensor<?x16xf32, #sym.dims<n, 16>>) -> tensor<*xf32>
    %b = onnx.Reshape(%a, %shape) <{node_name = "columns"}> : (tensor<*xf32>, tensor<2xi64>) -> tensor<*xf32>
    %y = onnx.Pad(%b, %pads) <{node_name = "mirror"}> {mode = "reflect"} : (tensor<*xf32>, tensor<4xi64>) -> tensor<*xf32>
    onnx.return %y : tensor<*xf32>
  }
}
