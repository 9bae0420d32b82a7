// RUN: igniter-opt %s -p "hoist-zero-points" --split-input-file | filecheck %s
// RUN: igniter-opt %s -p "hoist-zero-points{byte_products=false words=all}" --split-input-file | filecheck %s --check-prefix=WORDS
// RUN: igniter-opt %s -p "hoist-zero-points{byte_products=false words=none}" --split-input-file | filecheck %s --check-prefix=LEFT

// A weight of i8 around 0: one number for each column, times the zero point of the left factor.

onnx.graph @main(%a: tensor<?x4xui8, #sym.dims<n, 4>>, %za: tensor<ui8>) attributes {input_names = ["a", "za"], output_names = ["y"]} {
  %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<4x4xi8, [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4]>} : () -> tensor<4x4xi8>
  %zw = onnx.Constant() {value = #onnx.tensor<i8, [0]>} : () -> tensor<i8>
  %y = onnx.MatMulInteger(%a, %w, %za, %zw) <{output_names = ["y"]}> : (tensor<?x4xui8, #sym.dims<n, 4>>, tensor<4x4xi8>, tensor<ui8>, tensor<i8>) -> tensor<?x4xi32, #sym.dims<n, 4>>
  onnx.return %y : tensor<?x4xi32, #sym.dims<n, 4>>
}
// CHECK:        %[[S:.*]] = onnx.MatMulInteger(%a, %w) :
// CHECK-NEXT:   %[[Z:.*]] = onnx.Cast(%za) {to = 6 : i64} : (tensor<ui8>) -> tensor<i32>
// CHECK-NEXT:   %[[C:.*]] = onnx.Constant() <{initializer_name = "y.columns"}> {value = #onnx.tensor<4xi32, [4, 8, 12, 16]>} : () -> tensor<4xi32>
// CHECK-NEXT:   %[[P:.*]] = onnx.Mul(%[[Z]], %[[C]]) : (tensor<i32>, tensor<4xi32>) -> tensor<4xi32>
// CHECK-NEXT:   %y = onnx.Sub(%[[S]], %[[P]])

// LEFT:         onnx.MatMulInteger(%a, %w, %za, %zw)

// WORDS:        %[[A:.*]] = onnx.Cast(%a) {to = 6 : i64}
// WORDS-NEXT:   %[[Z:.*]] = onnx.Cast(%za) {to = 6 : i64}
// WORDS-NEXT:   %[[D:.*]] = onnx.Sub(%[[A]], %[[Z]])
// WORDS-NEXT:   %[[N:.*]] = onnx.Cast(%[[D]]) {to = 5 : i64}
// WORDS-NEXT:   %[[W:.*]] = onnx.Constant() <{initializer_name = "y.i16"}>
// WORDS-NEXT:   %[[L:.*]] = onnx.Cast(%[[N]]) {to = 6 : i64} : (tensor<?x4xi16, #sym.dims<n, 4>>) -> tensor<?x4xi32, #sym.dims<n, 4>>
// WORDS-NEXT:   %[[R:.*]] = onnx.Cast(%[[W]]) {to = 6 : i64} : (tensor<4x4xi16>) -> tensor<4x4xi32>
// WORDS-NEXT:   %y = onnx.MatMul(%[[L]], %[[R]])

// -----

// A weight of u8 with a zero point that is not 128: the sums of the left factor's rows as well. A left factor of i8
// that is quantised here becomes u8 there.

onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<n, 4>>) attributes {input_names = ["x"], output_names = ["y"]} {
  %s = onnx.Constant() {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
  %za = onnx.Constant() {value = #onnx.tensor<i8, [-3]>} : () -> tensor<i8>
  %a = onnx.QuantizeLinear(%x, %s, %za) : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<f32>, tensor<i8>) -> tensor<?x4xi8, #sym.dims<n, 4>>
  %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<4x4xui8, [129, 130, 131, 132, 129, 130, 131, 132, 129, 130, 131, 132, 129, 130, 131, 132]>} : () -> tensor<4x4xui8>
  %zw = onnx.Constant() {value = #onnx.tensor<ui8, [130]>} : () -> tensor<ui8>
  %y = onnx.MatMulInteger(%a, %w, %za, %zw) <{output_names = ["y"]}> : (tensor<?x4xi8, #sym.dims<n, 4>>, tensor<4x4xui8>, tensor<i8>, tensor<ui8>) -> tensor<?x4xi32, #sym.dims<n, 4>>
  onnx.return %y : tensor<?x4xi32, #sym.dims<n, 4>>
}
// CHECK:        onnx.Constant() <{initializer_name = "y.i8"}>
// CHECK:        %[[Z:.*]] = onnx.Constant() {value = #onnx.tensor<ui8, [125]>} : () -> tensor<ui8>
// CHECK-NEXT:   %[[A:.*]] = onnx.QuantizeLinear(%x, %s, %[[Z]]) {{.*}} -> tensor<?x4xui8, #sym.dims<n, 4>>
// CHECK-NEXT:   %[[S:.*]] = onnx.MatMulInteger(%[[A]], %{{.*}}) :
// CHECK-NEXT:   %[[C:.*]] = onnx.Constant() <{initializer_name = "y.columns"}> {value = #onnx.tensor<4xi32, [-500, 0, 500, 1000]>}
// CHECK-NEXT:   %[[T:.*]] = onnx.Sub(%[[S]], %[[C]])
// CHECK-NEXT:   %[[I:.*]] = onnx.Cast(%[[A]]) {to = 6 : i64}
// CHECK:        %[[R:.*]] = onnx.ReduceSum(%[[I]], %{{.*}})
// CHECK:        %[[P:.*]] = onnx.Mul(%[[R]], %{{.*}})
// CHECK-NEXT:   %y = onnx.Sub(%[[T]], %[[P]])

// -----

// Refused: what is no matrix of weights, and a zero point for each row.

onnx.graph @main(%a: tensor<?x4xui8, #sym.dims<n, 4>>, %b: tensor<4x4xi8>, %za: tensor<?xui8, #sym.dims<n>>) attributes {input_names = ["a", "b", "za"], output_names = ["y", "z"]} {
  %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<4x4xi8, [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4]>} : () -> tensor<4x4xi8>
  %y = onnx.MatMulInteger(%a, %b) : (tensor<?x4xui8, #sym.dims<n, 4>>, tensor<4x4xi8>) -> tensor<?x4xi32, #sym.dims<n, 4>>
  %z = onnx.MatMulInteger(%a, %w, %za) : (tensor<?x4xui8, #sym.dims<n, 4>>, tensor<4x4xi8>, tensor<?xui8, #sym.dims<n>>) -> tensor<?x4xi32, #sym.dims<n, 4>>
  onnx.return %y, %z : tensor<?x4xi32, #sym.dims<n, 4>>, tensor<?x4xi32, #sym.dims<n, 4>>
}
// CHECK:        %y = onnx.MatMulInteger(%a, %b) :
// CHECK-NEXT:   %z = onnx.MatMulInteger(%a, %w, %za) :
// WORDS:        %y = onnx.MatMulInteger(%a, %b) :
// WORDS-NEXT:   %z = onnx.MatMulInteger(%a, %w, %za) :
