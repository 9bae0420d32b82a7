// RUN: igniter-opt %s -p inline-regions | filecheck %s
// RUN: igniter-opt %s -p inline-regions --check-each --emit=none 2>&1 | filecheck %s --check-prefix=CHECKED

// Nodes take the place of their region, in order, wired to what the region read and to what reads it.

// CHECK:      onnx.graph @main(%x: tensor<4xf32>, %z: tensor<4xf32>)
// CHECK-NEXT:   %[[E:.*]] = onnx.Exp(%x)
// CHECK-NEXT:   %[[A:.*]] = onnx.Add(%[[E]], %z)
// CHECK-NEXT:   %[[N:.*]] = onnx.Neg(%[[A]])
// CHECK-NEXT:   onnx.return %[[N]], %[[E]]
// CHECKED: inline-regions: 1 results agree

builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<4xf32>, %z: tensor<4xf32>) attributes {input_names = ["x", "z"], output_names = ["y", "e"]} {
    %r, %s = fusion.region @r0 (%a = %x : tensor<4xf32>, %b = %z : tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = onnx.Exp(%a) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = onnx.Add(%0, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      fusion.yield %1, %0 : tensor<4xf32>, tensor<4xf32>
    }
    %y = onnx.Neg(%r) : (tensor<4xf32>) -> tensor<4xf32>
    onnx.return %y, %s : tensor<4xf32>, tensor<4xf32>
  }
}
