// RUN: igniter-opt %s -p inline-functions --split-input-file | filecheck %s
// RUN: igniter-opt %s -p inline-functions --split-input-file --remarks --emit=none 2>&1 | filecheck %s --check-prefix=REMARK

// A function in a function; attributes are bound to what the call gives, or to nothing.

builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64, local = 1 : i64}}} {
  onnx.function @scale(%a: !onnx.unknown) attributes {domain = "local", function_name = "Scale", input_names = ["a"], output_names = ["b"], attribute_names = ["factor", "slope"], opset_import = {"" = 21 : i64}} {
    %k = onnx.Constant() {value_float = #onnx.ref<"factor", 1 : i64>} : () -> !onnx.unknown
    %m = onnx.Mul(%a, %k) <{output_names = ["m"]}> : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
    %b = onnx.LeakyRelu(%m) <{node_name = "leak"}> {alpha = #onnx.ref<"slope", 1 : i64>} : (!onnx.unknown) -> !onnx.unknown
    onnx.return %b : !onnx.unknown
  }
  onnx.function @outer(%a: !onnx.unknown) attributes {domain = "local", function_name = "Outer", input_names = ["a"], output_names = ["b"], opset_import = {"" = 21 : i64, local = 1 : i64}} {
    %b = onnx.custom(%a) <{domain = "local", op_type = "Scale"}> {factor = 2.0 : f32} : (!onnx.unknown) -> !onnx.unknown
    onnx.return %b : !onnx.unknown
  }
  // CHECK-NOT: onnx.function
  // CHECK: onnx.graph @main(%x: tensor<2xf32>)
  onnx.graph @main(%x: tensor<2xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    // CHECK-NEXT: %k = onnx.Constant() {value_float = 2.000000e+00 : f32} : () -> !onnx.unknown
    // CHECK-NEXT: %m = onnx.Mul(%x, %k) <{node_name = "call/Scale_1/Mul_2"}> : (tensor<2xf32>, !onnx.unknown) -> !onnx.unknown
    // CHECK-NEXT: %b = onnx.LeakyRelu(%m) <{node_name = "call/Scale_1/leak", output_names = ["y"]}> : (!onnx.unknown) -> tensor<2xf32>
    %y = onnx.custom(%x) <{node_name = "call", domain = "local", op_type = "Outer", output_names = ["y"]}> : (tensor<2xf32>) -> tensor<2xf32>
    // CHECK-NEXT: onnx.return %b : tensor<2xf32>
    onnx.return %y : tensor<2xf32>
  }
}

// -----

// Softmax means another thing in opset 11, so the call stays.

builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64, local = 1 : i64}}} {
  // CHECK: onnx.function @old
  onnx.function @old(%a: !onnx.unknown) attributes {domain = "local", function_name = "Old", input_names = ["a"], output_names = ["b"], opset_import = {"" = 11 : i64}} {
    %b = onnx.Softmax(%a) : (!onnx.unknown) -> !onnx.unknown
    onnx.return %b : !onnx.unknown
  }
  onnx.graph @main(%x: tensor<2xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    // CHECK: onnx.custom(%x) <{node_name = "call", domain = "local", op_type = "Old"}>
    // REMARK: inline-functions: 'call' missed: Softmax differs between opset 11, which the function local.Old imports, and opset 21 of the model
    %y = onnx.custom(%x) <{node_name = "call", domain = "local", op_type = "Old"}> : (tensor<2xf32>) -> tensor<2xf32>
    onnx.return %y : tensor<2xf32>
  }
}
