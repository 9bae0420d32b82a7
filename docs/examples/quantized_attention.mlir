builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}, producer_name = "example"}} {
  onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<rows, 4>>) attributes {graph_name = "attention", input_names = ["x"], output_names = ["y"]} {
    %epsilon = onnx.Constant() <{initializer_name = "epsilon"}> {value = #onnx.tensor<f32, [1.0e-05]>} : () -> tensor<f32>
    %scale = onnx.Constant() <{initializer_name = "scale"}> {value = #onnx.tensor<f32, [0.03125]>} : () -> tensor<f32>
    %zero = onnx.Constant() <{initializer_name = "zero"}> {value = #onnx.tensor<ui8, [128]>} : () -> tensor<ui8>
    %query_zero = onnx.Constant() <{initializer_name = "query_zero"}> {value = #onnx.tensor<ui8, [128]>} : () -> tensor<ui8>
    %query_weight = onnx.Constant() <{initializer_name = "query_weight"}> {value = #onnx.tensor<4x4xi8, [6, -8, -6, -5, -6, 6, 7, 2, -9, -8, -3, -1, 2, 0, -4, -6]>} : () -> tensor<4x4xi8>
    %query_scale = onnx.Constant() <{initializer_name = "query_scale"}> {value = #onnx.tensor<f32, [0.004]>} : () -> tensor<f32>
    %key_zero = onnx.Constant() <{initializer_name = "key_zero"}> {value = #onnx.tensor<ui8, [128]>} : () -> tensor<ui8>
    %key_weight = onnx.Constant() <{initializer_name = "key_weight"}> {value = #onnx.tensor<4x4xi8, [4, 4, -9, -7, -1, -2, 7, 0, -2, -1, 3, 2, -6, 5, 5, 9]>} : () -> tensor<4x4xi8>
    %key_scale = onnx.Constant() <{initializer_name = "key_scale"}> {value = #onnx.tensor<f32, [0.004]>} : () -> tensor<f32>
    %value_zero = onnx.Constant() <{initializer_name = "value_zero"}> {value = #onnx.tensor<ui8, [121]>} : () -> tensor<ui8>
    %value_weight = onnx.Constant() <{initializer_name = "value_weight"}> {value = #onnx.tensor<4x4xi8, [5, -4, -3, 3, 3, 4, 7, -4, 8, -9, -8, 9, 8, -4, -7, -4]>} : () -> tensor<4x4xi8>
    %value_scale = onnx.Constant() <{initializer_name = "value_scale"}> {value = #onnx.tensor<f32, [0.004]>} : () -> tensor<f32>
    %factor = onnx.Constant() <{initializer_name = "factor"}> {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
    %mean = onnx.ReduceMean(%x) <{node_name = "mean", output_names = ["mean"]}> {axes = array<i64: -1>, keepdims = 1 : i64} : (tensor<?x4xf32, #sym.dims<rows, 4>>) -> tensor<*xf32>
    %centred = onnx.Sub(%x, %mean) <{node_name = "centred", output_names = ["centred"]}> : (tensor<?x4xf32, #sym.dims<rows, 4>>, tensor<*xf32>) -> tensor<*xf32>
    %squares = onnx.Mul(%centred, %centred) <{node_name = "squares", output_names = ["squares"]}> : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
    %variance = onnx.ReduceMean(%squares) <{node_name = "variance", output_names = ["variance"]}> {axes = array<i64: -1>, keepdims = 1 : i64} : (tensor<*xf32>) -> tensor<*xf32>
    %spread = onnx.Add(%variance, %epsilon) <{node_name = "spread", output_names = ["spread"]}> : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
    %deviation = onnx.Sqrt(%spread) <{node_name = "deviation", output_names = ["deviation"]}> : (tensor<*xf32>) -> tensor<*xf32>
    %normed = onnx.Div(%centred, %deviation) <{node_name = "normed", output_names = ["normed"]}> : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
    %levels = onnx.QuantizeLinear(%normed, %scale, %zero) <{node_name = "levels", output_names = ["levels"]}> : (tensor<*xf32>, tensor<f32>, tensor<ui8>) -> tensor<*xui8>
    %query_sums = onnx.MatMulInteger(%levels, %query_weight, %query_zero) <{node_name = "query_sums", output_names = ["query_sums"]}> : (tensor<*xui8>, tensor<4x4xi8>, tensor<ui8>) -> tensor<*xi32>
    %query_floats = onnx.Cast(%query_sums) <{node_name = "query_floats", output_names = ["query_floats"]}> {to = 1 : i64} : (tensor<*xi32>) -> tensor<*xf32>
    %query = onnx.Mul(%query_floats, %query_scale) <{node_name = "query", output_names = ["query"]}> : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
    %key_sums = onnx.MatMulInteger(%levels, %key_weight, %key_zero) <{node_name = "key_sums", output_names = ["key_sums"]}> : (tensor<*xui8>, tensor<4x4xi8>, tensor<ui8>) -> tensor<*xi32>
    %key_floats = onnx.Cast(%key_sums) <{node_name = "key_floats", output_names = ["key_floats"]}> {to = 1 : i64} : (tensor<*xi32>) -> tensor<*xf32>
    %key = onnx.Mul(%key_floats, %key_scale) <{node_name = "key", output_names = ["key"]}> : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
    %value_sums = onnx.MatMulInteger(%levels, %value_weight, %value_zero) <{node_name = "value_sums", output_names = ["value_sums"]}> : (tensor<*xui8>, tensor<4x4xi8>, tensor<ui8>) -> tensor<*xi32>
    %value_floats = onnx.Cast(%value_sums) <{node_name = "value_floats", output_names = ["value_floats"]}> {to = 1 : i64} : (tensor<*xi32>) -> tensor<*xf32>
    %value = onnx.Mul(%value_floats, %value_scale) <{node_name = "value", output_names = ["value"]}> : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
    %key_turned = onnx.Transpose(%key) <{node_name = "key_turned", output_names = ["key_turned"]}> {perm = array<i64: 1, 0>} : (tensor<*xf32>) -> tensor<*xf32>
    %scores = onnx.MatMul(%query, %key_turned) <{node_name = "scores", output_names = ["scores"]}> : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
    %scaled = onnx.Mul(%scores, %factor) <{node_name = "scaled", output_names = ["scaled"]}> : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
    %weights = onnx.Softmax(%scaled) <{node_name = "weights", output_names = ["weights"]}> {axis = -1 : i64} : (tensor<*xf32>) -> tensor<*xf32>
    %mixed = onnx.MatMul(%weights, %value) <{node_name = "mixed", output_names = ["mixed"]}> : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
    %y = onnx.Add(%mixed, %x) <{node_name = "y", output_names = ["y"]}> : (tensor<*xf32>, tensor<?x4xf32, #sym.dims<rows, 4>>) -> tensor<?x4xf32, #sym.dims<rows, 4>>
    onnx.return %y : tensor<?x4xf32, #sym.dims<rows, 4>>
  }
}
