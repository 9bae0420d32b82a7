// RUN: igniter-opt %s -p eliminate-dead-nodes | filecheck %s

// Dead chains go, an optional result that nothing uses is omitted, and a function that nothing calls goes too.

// CHECK-NOT: @unused
// CHECK: onnx.function @used
// CHECK-LABEL: onnx.graph @main
// CHECK-NEXT: %y, %{{.*}} = onnx.Dropout(%x) : (tensor<4xf32>) -> (tensor<4xf32>, none)
// CHECK-NEXT: onnx.custom
// CHECK-NEXT: onnx.return
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64, "local" = 1 : i64}}} {
  onnx.function @unused(%a: !onnx.unknown) attributes {domain = "local", function_name = "Unused", input_names = ["a"], output_names = ["b"], opset_import = {"" = 17 : i64}} {
    %b = onnx.Relu(%a) : (!onnx.unknown) -> !onnx.unknown
    onnx.return %b : !onnx.unknown
  }
  onnx.function @used(%a: !onnx.unknown) attributes {domain = "local", function_name = "Used", input_names = ["a"], output_names = ["b"], opset_import = {"" = 17 : i64}} {
    %b = onnx.Relu(%a) : (!onnx.unknown) -> !onnx.unknown
    onnx.return %b : !onnx.unknown
  }
  onnx.graph @main(%x: tensor<4xf32>) {
    %a = onnx.Exp(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %b = onnx.Log(%a) : (tensor<4xf32>) -> tensor<4xf32>
    %y, %mask = onnx.Dropout(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi1>)
    %z = onnx.custom(%y) <{domain = "local", op_type = "Used"}> : (tensor<4xf32>) -> tensor<4xf32>
    onnx.return %z : tensor<4xf32>
  }
}
