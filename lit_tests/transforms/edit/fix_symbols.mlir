// RUN: igniter-opt %s -p 'infer-shapes,fix-symbols{sizes="n=3,m=5"}' | filecheck %s

// CHECK-LABEL: onnx.graph @main(%x: tensor<3x4xf32>, %z: tensor<5x4xf32>)
// CHECK:       onnx.Concat({{.*}} -> tensor<8x4xf32>
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<n, 4>>, %z: tensor<?x4xf32, #sym.dims<m, 4>>) attributes {input_names = ["x", "z"], output_names = ["y"]} {
    %y = onnx.Concat(%x, %z) {axis = 0 : i64} : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<?x4xf32, #sym.dims<m, 4>>) -> tensor<*xf32>
    onnx.return %y : tensor<*xf32>
  }
}
