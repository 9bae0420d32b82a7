// RUN: igniter-opt %s --split-input-file -p recompose | filecheck %s

// Gelu as torch writes it: x * 0.5 * (1 + erf(x / sqrt(2))). Before opset 20 it comes from com.microsoft.

// CHECK: opset_import = {"" = 17 : i64, com.microsoft = 1 : i64}
// CHECK-LABEL: @gelu
// CHECK: %[[G:.*]] = onnx.custom(%x) <{domain = "com.microsoft", op_type = "Gelu"}>
// CHECK-NEXT: onnx.return %[[G]]
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @gelu(%x: tensor<4x8xf32>) {
    %root = onnx.Constant() {value = #onnx.tensor<f32, [1.41421354]>} : () -> tensor<f32>
    %one = onnx.Constant() {value = #onnx.tensor<f32, [1.0]>} : () -> tensor<f32>
    %half = onnx.Constant() {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
    %a = onnx.Div(%x, %root) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %e = onnx.Erf(%a) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %s = onnx.Add(%e, %one) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %h = onnx.Mul(%x, %half) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %y = onnx.Mul(%h, %s) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    onnx.return %y : tensor<4x8xf32>
  }
}

// -----

// The same in another order, from opset 20 on.

// CHECK-LABEL: @other_order
// CHECK: %[[G:.*]] = onnx.Gelu(%x)
// CHECK-NEXT: onnx.return %[[G]]
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 20 : i64}}} {
  onnx.graph @other_order(%x: tensor<4x8xf32>) {
    %r = onnx.Constant() {value = #onnx.tensor<f32, [0.707106769]>} : () -> tensor<f32>
    %one = onnx.Constant() {value = #onnx.tensor<f32, [1.0]>} : () -> tensor<f32>
    %half = onnx.Constant() {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
    %a = onnx.Mul(%x, %r) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %e = onnx.Erf(%a) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %s = onnx.Add(%one, %e) : (tensor<f32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %p = onnx.Mul(%x, %s) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %y = onnx.Mul(%half, %p) : (tensor<f32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    onnx.return %y : tensor<4x8xf32>
  }
}

// -----

// By tanh, with the cube as a power.

// CHECK-LABEL: @fast_gelu
// CHECK: %[[G:.*]] = onnx.Gelu(%x) {approximate = "tanh"}
// CHECK-NEXT: onnx.return %[[G]]
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 20 : i64}}} {
  onnx.graph @fast_gelu(%x: tensor<4x8xf32>) {
    %three = onnx.Constant() {value = #onnx.tensor<f32, [3.0]>} : () -> tensor<f32>
    %k = onnx.Constant() {value = #onnx.tensor<f32, [0.044715]>} : () -> tensor<f32>
    %c = onnx.Constant() {value = #onnx.tensor<f32, [0.797884583]>} : () -> tensor<f32>
    %one = onnx.Constant() {value = #onnx.tensor<f32, [1.0]>} : () -> tensor<f32>
    %half = onnx.Constant() {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
    %x3 = onnx.Pow(%x, %three) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %kx = onnx.Mul(%x3, %k) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %i = onnx.Add(%x, %kx) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %a = onnx.Mul(%i, %c) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %t = onnx.Tanh(%a) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %s = onnx.Add(%t, %one) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %h = onnx.Mul(%x, %half) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %y = onnx.Mul(%h, %s) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    onnx.return %y : tensor<4x8xf32>
  }
}

// -----

// By tanh, factored the other way: tanh(x * c * (1 + k*x*x)).

// CHECK-LABEL: @factored
// CHECK: op_type = "FastGelu"
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @factored(%x: tensor<4x8xf32>) {
    %k = onnx.Constant() {value = #onnx.tensor<f32, [0.044715]>} : () -> tensor<f32>
    %c = onnx.Constant() {value = #onnx.tensor<f32, [0.797884583]>} : () -> tensor<f32>
    %one = onnx.Constant() {value = #onnx.tensor<f32, [1.0]>} : () -> tensor<f32>
    %half = onnx.Constant() {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
    %xx = onnx.Mul(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %kxx = onnx.Mul(%xx, %k) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %i = onnx.Add(%kxx, %one) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %cx = onnx.Mul(%x, %c) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %a = onnx.Mul(%cx, %i) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %t = onnx.Tanh(%a) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %s = onnx.Add(%t, %one) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %p = onnx.Mul(%s, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %y = onnx.Mul(%p, %half) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    onnx.return %y : tensor<4x8xf32>
  }
}

// -----

// A constant that is off in the sixth digit is another function.

// CHECK-LABEL: @off
// CHECK: onnx.Erf
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @off(%x: tensor<4x8xf32>) {
    %root = onnx.Constant() {value = #onnx.tensor<f32, [1.41422]>} : () -> tensor<f32>
    %one = onnx.Constant() {value = #onnx.tensor<f32, [1.0]>} : () -> tensor<f32>
    %half = onnx.Constant() {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
    %a = onnx.Div(%x, %root) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %e = onnx.Erf(%a) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %s = onnx.Add(%e, %one) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %h = onnx.Mul(%x, %half) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %y = onnx.Mul(%h, %s) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    onnx.return %y : tensor<4x8xf32>
  }
}

// -----

// A value in between that something else uses has to stay.

// CHECK-LABEL: @used
// CHECK: onnx.Erf
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @used(%x: tensor<4x8xf32>) {
    %root = onnx.Constant() {value = #onnx.tensor<f32, [1.41421354]>} : () -> tensor<f32>
    %one = onnx.Constant() {value = #onnx.tensor<f32, [1.0]>} : () -> tensor<f32>
    %half = onnx.Constant() {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
    %a = onnx.Div(%x, %root) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %e = onnx.Erf(%a) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %s = onnx.Add(%e, %one) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %h = onnx.Mul(%x, %half) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %y = onnx.Mul(%h, %s) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    onnx.return %y, %e : tensor<4x8xf32>, tensor<4x8xf32>
  }
}

// -----

// x * sigmoid(a*x): Swish from opset 24, QuickGelu of com.microsoft before.

// CHECK-LABEL: @swish
// CHECK: op_type = "QuickGelu"}> {alpha = 1.000000e+00 : f32}
// CHECK: op_type = "QuickGelu"}> {alpha = 1.702{{.*}} : f32}
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @swish(%x: tensor<4x8xf32>) {
    %k = onnx.Constant() {value = #onnx.tensor<f32, [1.702]>} : () -> tensor<f32>
    %s = onnx.Sigmoid(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %y = onnx.Mul(%s, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %kx = onnx.Mul(%x, %k) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %t = onnx.Sigmoid(%kx) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %z = onnx.Mul(%x, %t) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    onnx.return %y, %z : tensor<4x8xf32>, tensor<4x8xf32>
  }
}

// -----

// CHECK-LABEL: @swish_24
// CHECK: onnx.Swish(%x) {alpha = 1.000000e+00 : f32}
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 24 : i64}}} {
  onnx.graph @swish_24(%x: tensor<4x8xf32>) {
    %s = onnx.Sigmoid(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %y = onnx.Mul(%s, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    onnx.return %y : tensor<4x8xf32>
  }
}

// -----

// Another value times a sigmoid is a gate, not an activation.

// CHECK-LABEL: @gate
// CHECK: onnx.Sigmoid
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @gate(%x: tensor<4x8xf32>, %g: tensor<4x8xf32>) {
    %s = onnx.Sigmoid(%g) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %y = onnx.Mul(%s, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    onnx.return %y : tensor<4x8xf32>
  }
}

// -----

// HardSwish, by Clip and by HardSigmoid, and Mish.

// CHECK-LABEL: @hard
// CHECK: %[[A:.*]] = onnx.HardSwish(%x)
// CHECK: %[[B:.*]] = onnx.HardSwish(%x)
// CHECK: %[[C:.*]] = onnx.Mish(%x)
// CHECK-NEXT: onnx.return %[[A]], %[[B]], %[[C]]
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 18 : i64}}} {
  onnx.graph @hard(%x: tensor<4x8xf32>) {
    %three = onnx.Constant() {value = #onnx.tensor<f32, [3.0]>} : () -> tensor<f32>
    %zero = onnx.Constant() {value = #onnx.tensor<f32, [0.0]>} : () -> tensor<f32>
    %six = onnx.Constant() {value = #onnx.tensor<f32, [6.0]>} : () -> tensor<f32>
    %p = onnx.Add(%x, %three) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %q = onnx.Clip(%p, %zero, %six) : (tensor<4x8xf32>, tensor<f32>, tensor<f32>) -> tensor<4x8xf32>
    %r = onnx.Mul(%x, %q) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %y = onnx.Div(%r, %six) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %h = onnx.HardSigmoid(%x) {alpha = 0.166666672 : f32} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %z = onnx.Mul(%x, %h) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %sp = onnx.Softplus(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %t = onnx.Tanh(%sp) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %w = onnx.Mul(%x, %t) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    onnx.return %y, %z, %w : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
  }
}
