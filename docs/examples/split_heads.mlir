builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x?x8xf32, #sym.dims<batch, seq, 8>>) attributes {graph_name = "heads", input_names = ["x"], output_names = ["heads", "places"]} {
    %first = onnx.Constant() <{initializer_name = "first"}> {value = #onnx.tensor<1xi64, [0]>} : () -> tensor<1xi64>
    %second = onnx.Constant() <{initializer_name = "second"}> {value = #onnx.tensor<1xi64, [1]>} : () -> tensor<1xi64>
    %two = onnx.Constant() <{initializer_name = "two"}> {value = #onnx.tensor<1xi64, [2]>} : () -> tensor<1xi64>
    %four = onnx.Constant() <{initializer_name = "four"}> {value = #onnx.tensor<1xi64, [4]>} : () -> tensor<1xi64>
    %zero = onnx.Constant() <{initializer_name = "zero"}> {value = #onnx.tensor<i64, [0]>} : () -> tensor<i64>
    %one = onnx.Constant() <{initializer_name = "one"}> {value = #onnx.tensor<i64, [1]>} : () -> tensor<i64>
    %shape = onnx.Shape(%x) <{node_name = "shape_0", output_names = ["shape"]}> : (tensor<?x?x8xf32, #sym.dims<batch, seq, 8>>) -> tensor<*xi64>
    %batch_size = onnx.Gather(%shape, %first) <{node_name = "gather_1", output_names = ["batch_size"]}> {axis = 0 : i64} : (tensor<*xi64>, tensor<1xi64>) -> tensor<*xi64>
    %length = onnx.Gather(%shape, %second) <{node_name = "gather_2", output_names = ["length"]}> {axis = 0 : i64} : (tensor<*xi64>, tensor<1xi64>) -> tensor<*xi64>
    %target = onnx.Concat(%batch_size, %length, %two, %four) <{node_name = "concat_3", output_names = ["target"]}> {axis = 0 : i64} : (tensor<*xi64>, tensor<*xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xi64>
    %split = onnx.Reshape(%x, %target) <{node_name = "reshape_4", output_names = ["split"]}> : (tensor<?x?x8xf32, #sym.dims<batch, seq, 8>>, tensor<*xi64>) -> tensor<*xf32>
    %heads = onnx.Transpose(%split) <{node_name = "transpose_5", output_names = ["heads"]}> {perm = array<i64: 0, 2, 1, 3>} : (tensor<*xf32>) -> tensor<?x2x?x4xf32, #sym.dims<batch, 2, seq, 4>>
    %end = onnx.Squeeze(%length) <{node_name = "squeeze_6", output_names = ["end"]}> : (tensor<*xi64>) -> tensor<*xi64>
    %count = onnx.Range(%zero, %end, %one) <{node_name = "range_7", output_names = ["count"]}> : (tensor<i64>, tensor<*xi64>, tensor<i64>) -> tensor<*xi64>
    %position = onnx.Cast(%count) <{node_name = "cast_8", output_names = ["position"]}> {to = 1 : i64} : (tensor<*xi64>) -> tensor<*xf32>
    %rows = onnx.Concat(%batch_size, %length) <{node_name = "concat_9", output_names = ["rows"]}> {axis = 0 : i64} : (tensor<*xi64>, tensor<*xi64>) -> tensor<*xi64>
    %places = onnx.Expand(%position, %rows) <{node_name = "expand_10", output_names = ["places"]}> : (tensor<*xf32>, tensor<*xi64>) -> tensor<?x?xf32, #sym.dims<batch, seq>>
    onnx.return %heads, %places : tensor<?x2x?x4xf32, #sym.dims<batch, 2, seq, 4>>, tensor<?x?xf32, #sym.dims<batch, seq>>
  }
}
