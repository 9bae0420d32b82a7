// RUN: igniter-opt %s --run-reproducer | filecheck %s
// RUN: igniter-opt %s | filecheck %s --check-prefix=PLAIN
// RUN: not igniter-opt %s --run-reproducer -p cse 2>&1 | filecheck %s --check-prefix=BOTH
// RUN: not igniter-opt %S/stop_after.mlir --run-reproducer 2>&1 | filecheck %s --check-prefix=NONE

// The pipeline comes from the section at the end: the two equal sums become one. An elided weight stays elided.

// CHECK: onnx.Constant() {value = #onnx.tensor<100xf32, elided>}
// CHECK: onnx.Add
// CHECK-NOT: onnx.Add

// PLAIN: onnx.Add
// PLAIN: onnx.Add

// BOTH: --passes is given by the file of --run-reproducer: leave one of them out
// NONE: stop_after.mlir is no reproducer: it has no section 'igniter_reproducer' at its end

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<100xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() {value = #onnx.tensor<100xf32, elided>} : () -> tensor<100xf32>
    %a = onnx.Add(%x, %w) : (tensor<100xf32>, tensor<100xf32>) -> tensor<100xf32>
    %b = onnx.Add(%x, %w) : (tensor<100xf32>, tensor<100xf32>) -> tensor<100xf32>
    %y = onnx.Mul(%a, %b) : (tensor<100xf32>, tensor<100xf32>) -> tensor<100xf32>
    onnx.return %y : tensor<100xf32>
  }
}

{-#
  external_resources: {
    igniter_reproducer: {
      pipeline: "eliminate-common-nodes",
      verify_each: "true"
    }
  }
#-}
