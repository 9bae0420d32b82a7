builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<n, 4>>) attributes {graph_name = "gelus", input_names = ["x"], output_names = ["y", "z"]} {
    %root = onnx.Constant() <{initializer_name = "root"}> {value = #onnx.tensor<f32, [1.41421354]>} : () -> tensor<f32>
    %one = onnx.Constant() <{initializer_name = "one"}> {value = #onnx.tensor<f32, [1.0]>} : () -> tensor<f32>
    %half = onnx.Constant() <{initializer_name = "half"}> {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
    %d = onnx.Div(%x, %root) <{node_name = "a/div"}> : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<f32>) -> tensor<*xf32>
    %e = onnx.Erf(%d) <{node_name = "a/erf"}> : (tensor<*xf32>) -> tensor<*xf32>
    %a = onnx.Add(%e, %one) <{node_name = "a/add"}> : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
    %p = onnx.Mul(%x, %a) <{node_name = "a/mul"}> : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<*xf32>) -> tensor<*xf32>
    %y = onnx.Mul(%half, %p) <{node_name = "a/half"}> : (tensor<f32>, tensor<*xf32>) -> tensor<?x4xf32, #sym.dims<n, 4>>
    %d2 = onnx.Div(%y, %root) <{node_name = "b/div"}> : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<f32>) -> tensor<*xf32>
    %e2 = onnx.Erf(%d2) <{node_name = "b/erf"}> : (tensor<*xf32>) -> tensor<*xf32>
    %a2 = onnx.Add(%e2, %one) <{node_name = "b/add"}> : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
    %p2 = onnx.Mul(%x, %a2) <{node_name = "b/mul"}> : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<*xf32>) -> tensor<*xf32>
    %z = onnx.Mul(%p2, %half) <{node_name = "b/half"}> : (tensor<*xf32>, tensor<f32>) -> tensor<?x4xf32, #sym.dims<n, 4>>
    onnx.return %y, %z : tensor<?x4xf32, #sym.dims<n, 4>>, tensor<?x4xf32, #sym.dims<n, 4>>
  }
}
