// RUN: igniter-opt %s -p elide-weights | filecheck %s
// RUN: igniter-opt %s -p "elide-weights{limit=2}" | igniter-opt | filecheck %s --check-prefix=TWO

// CHECK: #onnx.tensor<3xi64, [1, 2, 3]>
// TWO: #onnx.tensor<3xi64, elided>
%0 = onnx.Constant() {value = #onnx.tensor<3xi64, [1, 2, 3]>} : () -> tensor<3xi64>
// CHECK: #onnx.tensor<17xi8, elided>
// TWO: #onnx.tensor<17xi8, elided>
%1 = onnx.Constant() {value = #onnx.tensor<17xi8, "0x0000000000000000000000000000000000">} : () -> tensor<17xi8>
// CHECK: #onnx.sparse_tensor<#onnx.tensor<2xf32, [1.0, 2.0]>, #onnx.tensor<2x2xi64, [1, 3, 0, 0]>, array<i64: 5, 5>>
// TWO: #onnx.sparse_tensor<#onnx.tensor<2xf32, [1.0, 2.0]>, #onnx.tensor<2x2xi64, elided>, array<i64: 5, 5>>
%2 = onnx.Constant() {sparse_value = #onnx.sparse_tensor<#onnx.tensor<2xf32, [1.0, 2.0]>, #onnx.tensor<2x2xi64, [1, 3, 0, 0]>, array<i64: 5, 5>>} : () -> tensor<5x5xf32>
// CHECK: #onnx.tensor<3x!onnx.string, ["a", "b", "c"]>
// TWO: #onnx.tensor<3x!onnx.string, elided>
%3 = onnx.Constant() {value = #onnx.tensor<3x!onnx.string, ["a", "b", "c"]>} : () -> tensor<3x!onnx.string>
// The tensors in a list are elided one by one.
// TWO: many = [#onnx.tensor<i64, [1]>, #onnx.tensor<3xi64, elided>]
%4 = onnx.custom() <{op_type = "Foo"}> {many = [#onnx.tensor<i64, [1]>, #onnx.tensor<3xi64, [1, 2, 3]>]} : () -> !onnx.unknown
