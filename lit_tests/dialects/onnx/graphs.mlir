// RUN: igniter-opt %s | igniter-opt | filecheck %s

// Subgraphs are regions that read the values around them; functions are isolated.

builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64, local = 1 : i64}}} {
  // CHECK: onnx.function @scale(%a: !onnx.unknown) attributes {domain = "local", function_name = "Scale", input_names = ["a"], output_names = ["b"], attribute_names = ["factor"], opset_import = {"" = 21 : i64}} {
  onnx.function @scale(%a: !onnx.unknown) attributes {domain = "local", function_name = "Scale", input_names = ["a"], output_names = ["b"], attribute_names = ["factor"], opset_import = {"" = 21 : i64}} {
    // CHECK-NEXT: %k = onnx.Constant() {value_float = #onnx.ref<"factor", 1 : i64>} : () -> !onnx.unknown
    %k = onnx.Constant() {value_float = #onnx.ref<"factor", 1 : i64>} : () -> !onnx.unknown
    // CHECK-NEXT: %b = onnx.Mul(%a, %k) : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
    %b = onnx.Mul(%a, %k) : (!onnx.unknown, !onnx.unknown) -> !onnx.unknown
    // CHECK-NEXT: onnx.return %b : !onnx.unknown
    onnx.return %b : !onnx.unknown
  }

  // CHECK: onnx.graph @main(
  onnx.graph @main(%x: tensor<2xf32>, %n: tensor<i64>, %c: tensor<i1>, %s: !onnx.seq<tensor<*xf32>>) attributes {input_names = ["x", "n", "c", "s"], output_names = ["y", "t"]} {
    // CHECK: onnx.Loop(%n, %c, %x) ({
    // CHECK-NEXT: ^bb0(%i: tensor<i64>, %go: tensor<i1>, %carried: tensor<2xf32>):
    // CHECK-NEXT: onnx.Add(%carried, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    // CHECK-NEXT: onnx.return {graph_name = "body"} %go, %sum, %sum : tensor<i1>, tensor<2xf32>, tensor<2xf32>
    // CHECK-NEXT: }) : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> (tensor<2xf32>, tensor<?x2xf32, #sym.dims<n, 2>>)
    %last, %all = onnx.Loop(%n, %c, %x) ({
    ^bb0(%i: tensor<i64>, %go: tensor<i1>, %carried: tensor<2xf32>):
      %sum = onnx.Add(%carried, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      onnx.return {graph_name = "body"} %go, %sum, %sum : tensor<i1>, tensor<2xf32>, tensor<2xf32>
    }) : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> (tensor<2xf32>, tensor<?x2xf32, #sym.dims<n, 2>>)
    // Without the property `graphs` the regions of If are then and else.
    // CHECK: %y = onnx.If(%c) ({
    %y = onnx.If(%c) ({
      onnx.return %last : tensor<2xf32>
    }, {
      %scaled = onnx.custom(%last) <{domain = "local", op_type = "Scale"}> {factor = 2.0 : f32} : (tensor<2xf32>) -> tensor<2xf32>
      onnx.return %scaled : tensor<2xf32>
    }) : (tensor<i1>) -> tensor<2xf32>
    // CHECK: %t = onnx.SequenceInsert(%s, %x) : (!onnx.seq<tensor<*xf32>>, tensor<2xf32>) -> !onnx.seq<tensor<*xf32>>
    %t = onnx.SequenceInsert(%s, %x) : (!onnx.seq<tensor<*xf32>>, tensor<2xf32>) -> !onnx.seq<tensor<*xf32>>
    onnx.return %y, %t : tensor<2xf32>, !onnx.seq<tensor<*xf32>>
  }
}
