// RUN: igniter-opt %s --split-input-file -p recompose | filecheck %s
// RUN: igniter-opt %s --split-input-file -p recompose{raise_opset=false} | filecheck %s --check-prefix=KEEP

// LayerNormalization with scale and bias.

// CHECK-LABEL: @layer_norm
// CHECK: %[[Y:.*]] = onnx.LayerNormalization(%x, %w, %b) {axis = -1 : i64, epsilon = {{9.99.*e-06|1.0+e-05}} : f32}
// CHECK-NEXT: onnx.return %[[Y]]
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @layer_norm(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) {
    %two = onnx.Constant() {value = #onnx.tensor<f32, [2.0]>} : () -> tensor<f32>
    %eps = onnx.Constant() {value = #onnx.tensor<f32, [0.00001]>} : () -> tensor<f32>
    %m = onnx.ReduceMean(%x) {axes = array<i64: -1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %d = onnx.Sub(%x, %m) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
    %sq = onnx.Pow(%d, %two) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %v = onnx.ReduceMean(%sq) {axes = array<i64: -1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %ve = onnx.Add(%v, %eps) : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
    %sd = onnx.Sqrt(%ve) : (tensor<4x1xf32>) -> tensor<4x1xf32>
    %n = onnx.Div(%d, %sd) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
    %s = onnx.Mul(%n, %w) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %y = onnx.Add(%s, %b) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    onnx.return %y : tensor<4x8xf32>
  }
}

// -----

// By a product with the reciprocal, the square as a product, and without a bias.

// CHECK-LABEL: @reciprocal
// CHECK: %[[Y:.*]] = onnx.LayerNormalization(%x, %w)
// CHECK-NEXT: onnx.return %[[Y]]
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @reciprocal(%x: tensor<4x8xf32>, %w: tensor<8xf32>) {
    %two = onnx.Constant() {value = #onnx.tensor<f32, [2.0]>} : () -> tensor<f32>
    %eps = onnx.Constant() {value = #onnx.tensor<f32, [0.00001]>} : () -> tensor<f32>
    %m = onnx.ReduceMean(%x) {axes = array<i64: -1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %d = onnx.Sub(%x, %m) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
    %sq = onnx.Mul(%d, %d) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %v = onnx.ReduceMean(%sq) {axes = array<i64: -1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %ve = onnx.Add(%v, %eps) : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
    %sd = onnx.Sqrt(%ve) : (tensor<4x1xf32>) -> tensor<4x1xf32>
    %r = onnx.Reciprocal(%sd) : (tensor<4x1xf32>) -> tensor<4x1xf32>
    %n = onnx.Mul(%r, %d) : (tensor<4x1xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %y = onnx.Mul(%w, %n) : (tensor<8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    onnx.return %y : tensor<4x8xf32>
  }
}

// -----

// The mean over another axis than the last is another op; so is a scale that varies along the batch.

// CHECK-LABEL: @axis
// CHECK-NOT: onnx.LayerNormalization
// CHECK: onnx.Sqrt
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @axis(%x: tensor<8x8xf32>) {
    %two = onnx.Constant() {value = #onnx.tensor<f32, [2.0]>} : () -> tensor<f32>
    %eps = onnx.Constant() {value = #onnx.tensor<f32, [0.00001]>} : () -> tensor<f32>
    %m = onnx.ReduceMean(%x) {axes = array<i64: 0>} : (tensor<8x8xf32>) -> tensor<1x8xf32>
    %d = onnx.Sub(%x, %m) : (tensor<8x8xf32>, tensor<1x8xf32>) -> tensor<8x8xf32>
    %sq = onnx.Pow(%d, %two) : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
    %v = onnx.ReduceMean(%sq) {axes = array<i64: 0>} : (tensor<8x8xf32>) -> tensor<1x8xf32>
    %ve = onnx.Add(%v, %eps) : (tensor<1x8xf32>, tensor<f32>) -> tensor<1x8xf32>
    %sd = onnx.Sqrt(%ve) : (tensor<1x8xf32>) -> tensor<1x8xf32>
    %y = onnx.Div(%d, %sd) : (tensor<8x8xf32>, tensor<1x8xf32>) -> tensor<8x8xf32>
    onnx.return %y : tensor<8x8xf32>
  }
}

// -----

// CHECK-LABEL: @batch_scale
// CHECK: %[[N:.*]] = onnx.LayerNormalization(%x, %{{.*}})
// CHECK-NEXT: onnx.Mul(%[[N]], %w)
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @batch_scale(%x: tensor<4x8xf32>, %w: tensor<4x8xf32>) {
    %two = onnx.Constant() {value = #onnx.tensor<f32, [2.0]>} : () -> tensor<f32>
    %eps = onnx.Constant() {value = #onnx.tensor<f32, [0.00001]>} : () -> tensor<f32>
    %m = onnx.ReduceMean(%x) {axes = array<i64: -1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %d = onnx.Sub(%x, %m) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
    %sq = onnx.Pow(%d, %two) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %v = onnx.ReduceMean(%sq) {axes = array<i64: -1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %ve = onnx.Add(%v, %eps) : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
    %sd = onnx.Sqrt(%ve) : (tensor<4x1xf32>) -> tensor<4x1xf32>
    %n = onnx.Div(%d, %sd) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
    %y = onnx.Mul(%n, %w) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    onnx.return %y : tensor<4x8xf32>
  }
}

// -----

// The standard deviation is an output of the model: nothing is made.

// CHECK-LABEL: @used
// CHECK-NOT: onnx.LayerNormalization
// CHECK: onnx.Sqrt
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @used(%x: tensor<4x8xf32>) {
    %two = onnx.Constant() {value = #onnx.tensor<f32, [2.0]>} : () -> tensor<f32>
    %eps = onnx.Constant() {value = #onnx.tensor<f32, [0.00001]>} : () -> tensor<f32>
    %m = onnx.ReduceMean(%x) {axes = array<i64: -1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %d = onnx.Sub(%x, %m) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
    %sq = onnx.Pow(%d, %two) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %v = onnx.ReduceMean(%sq) {axes = array<i64: -1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %ve = onnx.Add(%v, %eps) : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
    %sd = onnx.Sqrt(%ve) : (tensor<4x1xf32>) -> tensor<4x1xf32>
    %y = onnx.Div(%d, %sd) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
    onnx.return %y, %sd : tensor<4x8xf32>, tensor<4x1xf32>
  }
}

// -----

// Opset 13 has no LayerNormalization; opset 17 has, and means the same by all these nodes.

// CHECK: opset_import = {"" = 17 : i64}
// CHECK-LABEL: @raised
// CHECK: onnx.LayerNormalization
// KEEP-LABEL: @raised
// KEEP: onnx.Sqrt
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 13 : i64}}} {
  onnx.graph @raised(%x: tensor<4x8xf32>) {
    %two = onnx.Constant() {value = #onnx.tensor<f32, [2.0]>} : () -> tensor<f32>
    %eps = onnx.Constant() {value = #onnx.tensor<f32, [0.00001]>} : () -> tensor<f32>
    %m = onnx.ReduceMean(%x) {axes = array<i64: -1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %d = onnx.Sub(%x, %m) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
    %sq = onnx.Pow(%d, %two) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %v = onnx.ReduceMean(%sq) {axes = array<i64: -1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %ve = onnx.Add(%v, %eps) : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
    %sd = onnx.Sqrt(%ve) : (tensor<4x1xf32>) -> tensor<4x1xf32>
    %y = onnx.Div(%d, %sd) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
    onnx.return %y : tensor<4x8xf32>
  }
}

// -----

// RMSNormalization, by opset 23. A reduction by opset 17 has its axes elsewhere, so such a model is not raised.

// CHECK: opset_import = {"" = 23 : i64}
// CHECK-LABEL: @rms_norm
// CHECK: %[[Y:.*]] = onnx.RMSNormalization(%x, %w) {axis = -1 : i64, epsilon = {{.*}} : f32}
// CHECK-NEXT: onnx.return %[[Y]]
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 18 : i64}}} {
  onnx.graph @rms_norm(%x: tensor<4x8xf32>, %w: tensor<8xf32>) {
    %a = onnx.Constant() {value = #onnx.tensor<1xi64, [-1]>} : () -> tensor<1xi64>
    %eps = onnx.Constant() {value = #onnx.tensor<f32, [0.000001]>} : () -> tensor<f32>
    %one = onnx.Constant() {value = #onnx.tensor<f32, [1.0]>} : () -> tensor<f32>
    %sq = onnx.Mul(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %v = onnx.ReduceMean(%sq, %a) : (tensor<4x8xf32>, tensor<1xi64>) -> tensor<4x1xf32>
    %ve = onnx.Add(%v, %eps) : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
    %sd = onnx.Sqrt(%ve) : (tensor<4x1xf32>) -> tensor<4x1xf32>
    %r = onnx.Div(%one, %sd) : (tensor<f32>, tensor<4x1xf32>) -> tensor<4x1xf32>
    %n = onnx.Mul(%x, %r) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
    %y = onnx.Mul(%w, %n) : (tensor<8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    onnx.return %y : tensor<4x8xf32>
  }
}

// -----

// CHECK-LABEL: @rms_norm_17
// CHECK: onnx.Sqrt
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @rms_norm_17(%x: tensor<4x8xf32>, %z: tensor<4x8xf32>) {
    %eps = onnx.Constant() {value = #onnx.tensor<f32, [0.000001]>} : () -> tensor<f32>
    %sq = onnx.Mul(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %v = onnx.ReduceMean(%sq) {axes = array<i64: -1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %ve = onnx.Add(%v, %eps) : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
    %sd = onnx.Sqrt(%ve) : (tensor<4x1xf32>) -> tensor<4x1xf32>
    %y = onnx.Div(%x, %sd) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
    %m = onnx.ReduceMax(%z) {axes = array<i64: -1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    onnx.return %y, %m : tensor<4x8xf32>, tensor<4x1xf32>
  }
}
