// RUN: igniter-opt %s -p inline-failed-regions --split-input-file | filecheck %s
// RUN: igniter-opt %s -p inline-failed-regions --split-input-file --remarks --emit=none 2>&1 | filecheck %s --check-prefix=SAID
// RUN: igniter-opt %s -p inline-failed-regions --split-input-file --check-each --emit=none 2>&1 | filecheck %s --check-prefix=CHECKED

// The region that failed is taken apart, the other one stays.

// SAID: remark: driver: 'r0' missed: left to ONNX Runtime: no lowering
// SAID-NOT: r1
// CHECK:      onnx.graph @main
// CHECK-NEXT:   %[[E:.*]] = onnx.Exp(%x)
// CHECK-NEXT:   fusion.region @r1 (%{{.*}} = %[[E]] : tensor<4xf32>)
// CHECKED: check: inline-failed-regions: {{.*}} agree

builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<4xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    %r = fusion.region @r0 (%a = %x : tensor<4xf32>) -> (tensor<4xf32>) attributes {igniter.failed = "no lowering"} {
      %0 = onnx.Exp(%a) : (tensor<4xf32>) -> tensor<4xf32>
      fusion.yield %0 : tensor<4xf32>
    }
    %y = fusion.region @r1 (%b = %r : tensor<4xf32>) -> (tensor<4xf32>) {
      %1 = onnx.Neg(%b) : (tensor<4xf32>) -> tensor<4xf32>
      fusion.yield %1 : tensor<4xf32>
    }
    onnx.return %y : tensor<4xf32>
  }
}

// -----

// A region that failed takes the program that it is in with it; the regions beside it stay.

// SAID: remark: driver: 'r0' missed: left to ONNX Runtime: unknown op
// CHECK:      onnx.graph @main
// CHECK-NEXT:   %[[E:.*]] = onnx.Exp(%x)
// CHECK-NEXT:   %[[Y:.*]] = fusion.region @r1 (%{{.*}} = %[[E]] : tensor<4xf32>)
// CHECK:        onnx.return %[[Y]]
// CHECKED: check: inline-failed-regions: {{.*}} agree

builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<4xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    %y = fusion.program @p0 (%c = %x : tensor<4xf32>) -> (tensor<4xf32>) {
      %r = fusion.region @r0 (%a = %c : tensor<4xf32>) -> (tensor<4xf32>) attributes {igniter.failed = "unknown op"} {
        %0 = onnx.Exp(%a) : (tensor<4xf32>) -> tensor<4xf32>
        fusion.yield %0 : tensor<4xf32>
      }
      %s = fusion.region @r1 (%b = %r : tensor<4xf32>) -> (tensor<4xf32>) {
        %1 = onnx.Neg(%b) : (tensor<4xf32>) -> tensor<4xf32>
        fusion.yield %1 : tensor<4xf32>
      }
      fusion.yield %s : tensor<4xf32>
    }
    onnx.return %y : tensor<4xf32>
  }
}

// -----

// A program that failed leaves its regions.

// SAID: remark: driver: 'p0' missed: its regions remain separate ops: no arena
// CHECK:      onnx.graph @main
// CHECK-NEXT:   fusion.region @r0
// CHECK-NOT:  fusion.program
// CHECKED: check: inline-failed-regions: {{.*}} agree

builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<4xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    %y = fusion.program @p0 (%c = %x : tensor<4xf32>) -> (tensor<4xf32>) attributes {igniter.failed = "no arena"} {
      %r = fusion.region @r0 (%a = %c : tensor<4xf32>) -> (tensor<4xf32>) {
        %0 = onnx.Exp(%a) : (tensor<4xf32>) -> tensor<4xf32>
        fusion.yield %0 : tensor<4xf32>
      }
      fusion.yield %r : tensor<4xf32>
    }
    onnx.return %y : tensor<4xf32>
  }
}
