// RUN: igniter-opt %s -p "recompose" --split-input-file | filecheck %s

// A batch normalisation behind a convolution is in its weight and its bias.

// CHECK-LABEL: onnx.graph @folded
// CHECK:         %[[W:.*]] = onnx.Constant() <{{.*}}> {value = #onnx.tensor<2x1x1x1xf32, [4.0, 3.0]>}
// CHECK:         %[[B:.*]] = onnx.Constant() {value = #onnx.tensor<2xf32, [4.0, -1.5]>}
// CHECK:         onnx.Conv(%x, %[[W]], %[[B]]) {strides = array<i64: 2>}
// CHECK-NOT:     BatchNormalization
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @folded(%x: tensor<1x1x8x1xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() {value = #onnx.tensor<2x1x1x1xf32, [2.0, 3.0]>} : () -> tensor<2x1x1x1xf32>
    %b = onnx.Constant() {value = #onnx.tensor<2xf32, [1.0, 0.0]>} : () -> tensor<2xf32>
    %s = onnx.Constant() {value = #onnx.tensor<2xf32, [1.0, 2.0]>} : () -> tensor<2xf32>
    %o = onnx.Constant() {value = #onnx.tensor<2xf32, [3.0, 0.5]>} : () -> tensor<2xf32>
    %m = onnx.Constant() {value = #onnx.tensor<2xf32, [0.5, 2.0]>} : () -> tensor<2xf32>
    %v = onnx.Constant() {value = #onnx.tensor<2xf32, [0.25, 4.0]>} : () -> tensor<2xf32>
    %c = onnx.Conv(%x, %w, %b) {strides = array<i64: 2>} : (tensor<1x1x8x1xf32>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<1x2x8x1xf32>
    %y = onnx.BatchNormalization(%c, %s, %o, %m, %v) {epsilon = 0.0 : f32} : (tensor<1x2x8x1xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x8x1xf32>
    onnx.return %y : tensor<1x2x8x1xf32>
  }
}

// -----

// Refused: another reader of the convolution, a variance that makes no number, a mean that is computed.

// CHECK-LABEL: onnx.graph @kept
// CHECK-COUNT-3: onnx.BatchNormalization
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @kept(%x: tensor<1x1x8x1xf32>, %z: tensor<2xf32>) attributes {graph_name = "g", input_names = ["x", "z"], output_names = ["c", "y", "u", "t"]} {
    %w = onnx.Constant() {value = #onnx.tensor<2x1x1x1xf32, [2.0, 3.0]>} : () -> tensor<2x1x1x1xf32>
    %s = onnx.Constant() {value = #onnx.tensor<2xf32, [1.0, 2.0]>} : () -> tensor<2xf32>
    %n = onnx.Constant() {value = #onnx.tensor<2xf32, [1.0, -2.0]>} : () -> tensor<2xf32>
    %c = onnx.Conv(%x, %w) : (tensor<1x1x8x1xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x8x1xf32>
    %y = onnx.BatchNormalization(%c, %s, %s, %s, %s) {epsilon = 0.0 : f32} : (tensor<1x2x8x1xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x8x1xf32>
    %d = onnx.Conv(%x, %w) {pads = array<i64: 0, 0, 0, 0>} : (tensor<1x1x8x1xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x8x1xf32>
    %u = onnx.BatchNormalization(%d, %s, %s, %s, %n) {epsilon = 0.0 : f32} : (tensor<1x2x8x1xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x8x1xf32>
    %e = onnx.Conv(%x, %w) {group = 1 : i64} : (tensor<1x1x8x1xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x8x1xf32>
    %t = onnx.BatchNormalization(%e, %s, %s, %z, %s) {epsilon = 0.0 : f32} : (tensor<1x2x8x1xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x8x1xf32>
    onnx.return %c, %y, %u, %t : tensor<1x2x8x1xf32>, tensor<1x2x8x1xf32>, tensor<1x2x8x1xf32>, tensor<1x2x8x1xf32>
  }
}

// -----

// A transposed convolution has the channels of its result second, for each group: those of group 0 are multiplied by 2,
// those of group 1 by 1.

// CHECK-LABEL: onnx.graph @transposed
// CHECK:         %[[W:.*]] = onnx.Constant() <{{.*}}> {value = #onnx.tensor<4x1x1x1xf32, [2.0, 4.0, 3.0, 4.0]>}
// CHECK:         %[[B:.*]] = onnx.Constant() {value = #onnx.tensor<2xf32, [2.0, -1.5]>}
// CHECK:         onnx.ConvTranspose(%x, %[[W]], %[[B]]) {group = 2 : i64, strides = array<i64: 2>}
// CHECK-NOT:     BatchNormalization
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @transposed(%x: tensor<1x4x8x1xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() {value = #onnx.tensor<4x1x1x1xf32, [1.0, 2.0, 3.0, 4.0]>} : () -> tensor<4x1x1x1xf32>
    %s = onnx.Constant() {value = #onnx.tensor<2xf32, [1.0, 2.0]>} : () -> tensor<2xf32>
    %o = onnx.Constant() {value = #onnx.tensor<2xf32, [3.0, 0.5]>} : () -> tensor<2xf32>
    %m = onnx.Constant() {value = #onnx.tensor<2xf32, [0.5, 2.0]>} : () -> tensor<2xf32>
    %v = onnx.Constant() {value = #onnx.tensor<2xf32, [0.25, 4.0]>} : () -> tensor<2xf32>
    %c = onnx.ConvTranspose(%x, %w) {group = 2 : i64, strides = array<i64: 2>} : (tensor<1x4x8x1xf32>, tensor<4x1x1x1xf32>) -> tensor<1x2x15x1xf32>
    %y = onnx.BatchNormalization(%c, %s, %o, %m, %v) {epsilon = 0.0 : f32} : (tensor<1x2x15x1xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x15x1xf32>
    onnx.return %y : tensor<1x2x15x1xf32>
  }
}
