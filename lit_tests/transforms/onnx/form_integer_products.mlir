// RUN: igniter-opt %s -p "form-integer-products" --split-input-file | filecheck %s
// RUN: igniter-opt %s -p "form-integer-products{unsigned=true}" --split-input-file | filecheck %s --check-prefix=UNSIGNED

// A Gemm that transposes its weight, with a scale for each column and a bias.

onnx.graph @main(%q: tensor<?x4xui8, #sym.dims<n, 4>>, %c: tensor<4xf32>) attributes {input_names = ["q", "c"], output_names = ["y"]} {
  %s = onnx.Constant() {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
  %z = onnx.Constant() {value = #onnx.tensor<ui8, [3]>} : () -> tensor<ui8>
  %w = onnx.Constant() {value = #onnx.tensor<4x4xi8, [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8]>} : () -> tensor<4x4xi8>
  %t = onnx.Constant() {value = #onnx.tensor<4xf32, [1.0, 2.0, 4.0, 8.0]>} : () -> tensor<4xf32>
  %a = onnx.DequantizeLinear(%q, %s, %z) : (tensor<?x4xui8, #sym.dims<n, 4>>, tensor<f32>, tensor<ui8>) -> tensor<?x4xf32, #sym.dims<n, 4>>
  %b = onnx.DequantizeLinear(%w, %t) {axis = 0 : i64} : (tensor<4x4xi8>, tensor<4xf32>) -> tensor<4x4xf32>
  %y = onnx.Gemm(%a, %b, %c) <{output_names = ["y"]}> {transB = 1 : i64} : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<?x4xf32, #sym.dims<n, 4>>
  onnx.return %y : tensor<?x4xf32, #sym.dims<n, 4>>
}
// CHECK:        %[[W:.*]] = onnx.Constant() <{initializer_name = "y.turned"}>
// CHECK-NEXT:   %[[S:.*]] = onnx.MatMulInteger(%q, %[[W]], %z) : {{.*}} -> tensor<?x4xi32, #sym.dims<n, 4>>
// CHECK-NEXT:   %[[F:.*]] = onnx.Cast(%[[S]]) {to = 1 : i64}
// CHECK-NEXT:   %[[T:.*]] = onnx.Constant() <{initializer_name = "y.scale"}> {value = #onnx.tensor<4xf32, [0.5, 1.0, 2.0, 4.0]>}
// CHECK-NEXT:   %[[P:.*]] = onnx.Mul(%[[F]], %[[T]])
// CHECK-NEXT:   %y = onnx.Add(%[[P]], %c)

// -----

// Refused: scales along the depth do not leave the sum.

onnx.graph @main(%q: tensor<?x4xui8, #sym.dims<n, 4>>) attributes {input_names = ["q"], output_names = ["y"]} {
  %s = onnx.Constant() {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
  %w = onnx.Constant() {value = #onnx.tensor<4x4xi8, [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8]>} : () -> tensor<4x4xi8>
  %t = onnx.Constant() {value = #onnx.tensor<4xf32, [1.0, 2.0, 4.0, 8.0]>} : () -> tensor<4xf32>
  %a = onnx.DequantizeLinear(%q, %s) : (tensor<?x4xui8, #sym.dims<n, 4>>, tensor<f32>) -> tensor<?x4xf32, #sym.dims<n, 4>>
  %b = onnx.DequantizeLinear(%w, %t) {axis = 0 : i64} : (tensor<4x4xi8>, tensor<4xf32>) -> tensor<4x4xf32>
  %y = onnx.MatMul(%a, %b) : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<4x4xf32>) -> tensor<?x4xf32, #sym.dims<n, 4>>
  onnx.return %y : tensor<?x4xf32, #sym.dims<n, 4>>
}
// CHECK-NOT:    MatMulInteger
// CHECK:        onnx.MatMul(%a, %b)

// -----

// i8 that is only dequantised again is u8, 128 more; what leaves the graph stays i8.

onnx.graph @main(%x: tensor<4xf32>) attributes {input_names = ["x"], output_names = ["y", "r"]} {
  %s = onnx.Constant() {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
  %z = onnx.Constant() {value = #onnx.tensor<i8, [-3]>} : () -> tensor<i8>
  %q = onnx.QuantizeLinear(%x, %s, %z) : (tensor<4xf32>, tensor<f32>, tensor<i8>) -> tensor<4xi8>
  %y = onnx.DequantizeLinear(%q, %s, %z) : (tensor<4xi8>, tensor<f32>, tensor<i8>) -> tensor<4xf32>
  %r = onnx.QuantizeLinear(%y, %s, %z) : (tensor<4xf32>, tensor<f32>, tensor<i8>) -> tensor<4xi8>
  onnx.return %y, %r : tensor<4xf32>, tensor<4xi8>
}
// UNSIGNED:     %[[Z:.*]] = onnx.Constant() {value = #onnx.tensor<ui8, [125]>}
// UNSIGNED:     %[[Q:.*]] = onnx.QuantizeLinear(%x, %s, %{{.*}}) : {{.*}} -> tensor<4xui8>
// UNSIGNED:     %y = onnx.DequantizeLinear(%[[Q]], %s, %{{.*}}) : (tensor<4xui8>, tensor<f32>, tensor<ui8>) -> tensor<4xf32>
// UNSIGNED:     %r = onnx.QuantizeLinear(%y, %s, %z) : {{.*}} -> tensor<4xi8>

// -----

// The step of the result goes into the factor of the sums.

onnx.graph @main(%q: tensor<2x4xui8>) attributes {input_names = ["q"], output_names = ["y"]} {
  %s = onnx.Constant() {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
  %z = onnx.Constant() {value = #onnx.tensor<ui8, [3]>} : () -> tensor<ui8>
  %w = onnx.Constant() {value = #onnx.tensor<4x4xi8, [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8]>} : () -> tensor<4x4xi8>
  %t = onnx.Constant() {value = #onnx.tensor<4xf32, [1.0, 2.0, 4.0, 8.0]>} : () -> tensor<4xf32>
  %u = onnx.Constant() {value = #onnx.tensor<f32, [0.25]>} : () -> tensor<f32>
  %a = onnx.DequantizeLinear(%q, %s, %z) : (tensor<2x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x4xf32>
  %b = onnx.DequantizeLinear(%w, %t) {axis = 1 : i64} : (tensor<4x4xi8>, tensor<4xf32>) -> tensor<4x4xf32>
  %p = onnx.MatMul(%a, %b) : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %y = onnx.QuantizeLinear(%p, %u, %z) : (tensor<2x4xf32>, tensor<f32>, tensor<ui8>) -> tensor<2x4xui8>
  onnx.return %y : tensor<2x4xui8>
}
// CHECK:        %[[F:.*]] = onnx.Cast(%{{.*}}) {to = 1 : i64} : (tensor<2x4xi32>)
// CHECK:        %[[T:.*]] = onnx.Constant() {value = #onnx.tensor<4xf32, [2.0, 4.0, 8.0, 16.0]>}
// CHECK:        %[[P:.*]] = onnx.Mul(%[[F]], %[[T]])
// CHECK:        %[[ONE:.*]] = onnx.Constant() {value = #onnx.tensor<f32, [1.0]>}
// CHECK:        %y = onnx.QuantizeLinear(%[[P]], %[[ONE]], %z)

// -----

// A convolution: the bias is added to the sums, the weight becomes i8 without a zero point, channels come in fours, and
// the Relu is what the limits of the codes are.

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%q: tensor<?x3x?x?xui8, #sym.dims<n, 3, h, w>>) attributes {input_names = ["q"], output_names = ["y"]} {
    %s = onnx.Constant() {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
    %z = onnx.Constant() {value = #onnx.tensor<ui8, [7]>} : () -> tensor<ui8>
    %w = onnx.Constant() {value = #onnx.tensor<4x3x1x1xui8, [128, 129, 130, 131, 132, 133, 134, 135, 136, 137, 138, 139]>} : () -> tensor<4x3x1x1xui8>
    %ws = onnx.Constant() {value = #onnx.tensor<4xf32, [1.0, 2.0, 3.0, 4.0]>} : () -> tensor<4xf32>
    %wz = onnx.Constant() {value = #onnx.tensor<4xui8, [128, 128, 128, 128]>} : () -> tensor<4xui8>
    %b = onnx.Constant() {value = #onnx.tensor<4xi32, [1, 2, 3, 4]>} : () -> tensor<4xi32>
    %bs = onnx.Constant() {value = #onnx.tensor<4xf32, [0.5, 1.0, 1.5, 2.0]>} : () -> tensor<4xf32>
    %ys = onnx.Constant() {value = #onnx.tensor<f32, [0.25]>} : () -> tensor<f32>
    %yz = onnx.Constant() {value = #onnx.tensor<ui8, [0]>} : () -> tensor<ui8>
    %0 = onnx.DequantizeLinear(%q, %s, %z) : (tensor<?x3x?x?xui8, #sym.dims<n, 3, h, w>>, tensor<f32>, tensor<ui8>) -> tensor<?x3x?x?xf32, #sym.dims<n, 3, h, w>>
    %1 = onnx.DequantizeLinear(%w, %ws, %wz) {axis = 0 : i64} : (tensor<4x3x1x1xui8>, tensor<4xf32>, tensor<4xui8>) -> tensor<4x3x1x1xf32>
    %2 = onnx.DequantizeLinear(%b, %bs) {axis = 0 : i64} : (tensor<4xi32>, tensor<4xf32>) -> tensor<4xf32>
    %3 = onnx.Conv(%0, %1, %2) : (tensor<?x3x?x?xf32, #sym.dims<n, 3, h, w>>, tensor<4x3x1x1xf32>, tensor<4xf32>) -> tensor<?x4x?x?xf32, #sym.dims<n, 4, h, w>>
    %4 = onnx.Relu(%3) : (tensor<?x4x?x?xf32, #sym.dims<n, 4, h, w>>) -> tensor<?x4x?x?xf32, #sym.dims<n, 4, h, w>>
    %y = onnx.QuantizeLinear(%4, %ys, %yz) : (tensor<?x4x?x?xf32, #sym.dims<n, 4, h, w>>, tensor<f32>, tensor<ui8>) -> tensor<?x4x?x?xui8, #sym.dims<n, 4, h, w>>
    onnx.return %y : tensor<?x4x?x?xui8, #sym.dims<n, 4, h, w>>
  }
}
// CHECK:        %[[P:.*]] = onnx.Constant() {value = #onnx.tensor<8xi64, [0, 0, 0, 0, 0, 1, 0, 0]>}
// CHECK-NEXT:   %[[X:.*]] = onnx.Pad(%q, %[[P]], %z) : {{.*}} -> tensor<?x4x?x?xui8, #sym.dims<n, 4, h, w>>
// CHECK:        %[[S:.*]] = onnx.ConvInteger(%[[X]], %[[W:.*]], %z) : {{.*}} -> tensor<?x4x?x?xi32, #sym.dims<n, 4, h, w>>
// CHECK:        %[[B:.*]] = onnx.Constant() {value = #onnx.tensor<4x1x1xi32, [1, 2, 3, 4]>}
// CHECK-NEXT:   %[[A:.*]] = onnx.Add(%[[S]], %[[B]])
// CHECK-NEXT:   %[[F:.*]] = onnx.Cast(%[[A]]) {to = 1 : i64}
// CHECK-NEXT:   %[[T:.*]] = onnx.Constant() {value = #onnx.tensor<4x1x1xf32, [2.0, 4.0, 6.0, 8.0]>}
// CHECK-NEXT:   %[[M:.*]] = onnx.Mul(%[[F]], %[[T]])
// CHECK:        %y = onnx.QuantizeLinear(%[[M]], %{{.*}}, %yz)

// -----

// A sum between codes stays in the order of its nodes, and what only moves numbers moves their codes.

onnx.graph @main(%p: tensor<2x4x4x4xui8>, %q: tensor<2x4x4x4xui8>) attributes {input_names = ["p", "q"], output_names = ["y", "m"]} {
  %s = onnx.Constant() {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
  %u = onnx.Constant() {value = #onnx.tensor<f32, [0.25]>} : () -> tensor<f32>
  %z = onnx.Constant() {value = #onnx.tensor<ui8, [3]>} : () -> tensor<ui8>
  %a = onnx.DequantizeLinear(%p, %s, %z) : (tensor<2x4x4x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x4x4x4xf32>
  %b = onnx.DequantizeLinear(%q, %u, %z) : (tensor<2x4x4x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x4x4x4xf32>
  %c = onnx.Add(%a, %b) : (tensor<2x4x4x4xf32>, tensor<2x4x4x4xf32>) -> tensor<2x4x4x4xf32>
  %y = onnx.QuantizeLinear(%c, %u, %z) : (tensor<2x4x4x4xf32>, tensor<f32>, tensor<ui8>) -> tensor<2x4x4x4xui8>
  %d = onnx.MaxPool(%a) {kernel_shape = array<i64: 2, 2>} : (tensor<2x4x4x4xf32>) -> tensor<2x4x3x3xf32>
  %m = onnx.QuantizeLinear(%d, %s, %z) : (tensor<2x4x3x3xf32>, tensor<f32>, tensor<ui8>) -> tensor<2x4x3x3xui8>
  onnx.return %y, %m : tensor<2x4x4x4xui8>, tensor<2x4x3x3xui8>
}
// CHECK:        %a = onnx.DequantizeLinear(%p, %s, %z)
// CHECK-NEXT:   %b = onnx.DequantizeLinear(%q, %u, %z)
// CHECK-NEXT:   %c = onnx.Add(%a, %b)
// CHECK-NEXT:   %y = onnx.QuantizeLinear(%c, %u, %z)
// CHECK-NEXT:   %m = onnx.MaxPool(%p) {kernel_shape = array<i64: 2, 2>} : (tensor<2x4x4x4xui8>) -> tensor<2x4x3x3xui8>
