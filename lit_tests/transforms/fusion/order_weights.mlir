// RUN: igniter-opt %s -p order-weights --target=cuda | filecheck %s
// RUN: igniter-opt %s -p order-weights --target=cuda:sm_90+tf32 | filecheck %s --check-prefix=LAST
// RUN: igniter-opt %s -p order-weights,lower-onnx-to-loop --target=cuda --check-each --emit=none 2>&1 | filecheck %s --check-prefix=CHECKED

// CHECKED: check: lower-onnx-to-loop: 3 results agree

// The depth of a product, the window with its channels, comes first; for asynchronous products by TF32 it comes last,
// but not in groups. A weight that has the order already stays.

// CHECK:      fusion.pack %w [2, 3, 1, 0] : tensor<4x3x2x1xf32> to tensor<2x1x3x4xf32>
// CHECK:      fusion.pack %g [2, 3, 1, 0] : tensor<4x2x2x1xf32> to tensor<2x1x2x4xf32>
// CHECK:      fusion.unpack %{{.*}} [2, 3, 1, 0] : tensor<2x1x3x4xf32> to tensor<4x3x2x1xf32>
// CHECK:      fusion.unpack %{{.*}} [2, 3, 1, 0] : tensor<2x1x2x4xf32> to tensor<4x2x2x1xf32>

// LAST:       fusion.pack %w [0, 2, 3, 1] : tensor<4x3x2x1xf32> to tensor<4x2x1x3xf32>
// LAST:       fusion.pack %g [2, 3, 1, 0]

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<1x3x4x4xf32>) attributes {input_names = ["x"], output_names = ["y", "z"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<4x3x2x1xf32, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3]>} : () -> tensor<4x3x2x1xf32>
    %g = onnx.Constant() <{initializer_name = "g"}> {value = #onnx.tensor<4x2x2x1xf32, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5]>} : () -> tensor<4x2x2x1xf32>
    %y = fusion.region @r0 (%a = %x : tensor<1x3x4x4xf32>, %b = %w : tensor<4x3x2x1xf32>) -> (tensor<1x4x3x4xf32>) {
      %0 = onnx.Conv(%a, %b) : (tensor<1x3x4x4xf32>, tensor<4x3x2x1xf32>) -> tensor<1x4x3x4xf32>
      fusion.yield %0 : tensor<1x4x3x4xf32>
    }
    %z = fusion.region @r1 (%a = %y : tensor<1x4x3x4xf32>, %b = %g : tensor<4x2x2x1xf32>) -> (tensor<1x4x2x4xf32>) {
      %0 = onnx.Conv(%a, %b) {group = 2 : i64} : (tensor<1x4x3x4xf32>, tensor<4x2x2x1xf32>) -> tensor<1x4x2x4xf32>
      fusion.yield %0 : tensor<1x4x2x4xf32>
    }
    onnx.return %y, %z : tensor<1x4x3x4xf32>, tensor<1x4x2x4xf32>
  }
}
