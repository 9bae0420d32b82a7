// RUN: igniter-opt %s | igniter-opt | filecheck %s
// RUN: igniter-opt %s --emit=generic | igniter-opt | filecheck %s

// A module as the importer makes it, with everything a node can carry.

// CHECK: builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64, com.microsoft = 1 : i64}}} {
builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64, com.microsoft = 1 : i64}}} {
  // CHECK: onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<batch, 4>>, %s: tensor<*x!onnx.string>) attributes {graph_name = "g", input_names = ["x", "s"], output_names = ["y", "z"]} {
  onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<batch, 4>>, %s: tensor<*x!onnx.string>) attributes {graph_name = "g", input_names = ["x", "s"], output_names = ["y", "z"]} {
    // CHECK-NEXT: %none = onnx.NoValue : none
    %none = onnx.NoValue : none
    // CHECK-NEXT: %w = onnx.Constant() <{initializer_name = "layer.w"}> {value = #onnx.tensor<4xf32, [1.0, -0.5, 1.0e-08, 0.1]>} : () -> tensor<4xf32>
    %w = onnx.Constant() <{initializer_name = "layer.w"}> {value = #onnx.tensor<4xf32, [1.0, -0.5, 1.0e-08, 0.1]>} : () -> tensor<4xf32>
    // CHECK-NEXT: %a = onnx.Add(%x, %w) <{node_name = "/add", output_names = ["a"]}> : (tensor<?x4xf32, #sym.dims<batch, 4>>, tensor<4xf32>) -> tensor<?x4xf32, #sym.dims<batch, 4>>
    %a = onnx.Add(%x, %w) <{node_name = "/add", output_names = ["a"]}> : (tensor<?x4xf32, #sym.dims<batch, 4>>, tensor<4xf32>) -> tensor<?x4xf32, #sym.dims<batch, 4>>
    // CHECK-NEXT: %c = onnx.Clip(%a, %none, %a)
    %c = onnx.Clip(%a, %none, %a) : (tensor<?x4xf32, #sym.dims<batch, 4>>, none, tensor<?x4xf32, #sym.dims<batch, 4>>) -> tensor<?x4xf32, #sym.dims<batch, 4>>
    // CHECK-NEXT: %y, %{{.*}} = onnx.custom(%c, %w) <{domain = "com.microsoft", op_type = "SkipSimplifiedLayerNormalization", output_names = ["y", ""]}> {epsilon = 1.000000e-05 : f32}
    %y, %skipped = onnx.custom(%c, %w) <{domain = "com.microsoft", op_type = "SkipSimplifiedLayerNormalization", output_names = ["y", ""]}> {epsilon = 1.0e-5 : f32} : (tensor<?x4xf32, #sym.dims<batch, 4>>, tensor<4xf32>) -> (tensor<?x4xf32, #sym.dims<batch, 4>>, none)
    // CHECK-NEXT: %z = onnx.StringNormalizer(%s) {case_change_action = "LOWER", stopwords = ["a", "\C3\A9"]}
    %z = onnx.StringNormalizer(%s) {case_change_action = "LOWER", stopwords = ["a", "é"]} : (tensor<*x!onnx.string>) -> tensor<*x!onnx.string>
    // CHECK-NEXT: onnx.return %y, %z : tensor<?x4xf32, #sym.dims<batch, 4>>, tensor<*x!onnx.string>
    onnx.return %y, %z : tensor<?x4xf32, #sym.dims<batch, 4>>, tensor<*x!onnx.string>
  }
}
