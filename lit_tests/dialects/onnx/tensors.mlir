// RUN: igniter-opt %s | igniter-opt | filecheck %s

// Constants: values written out where they read back the same, else bytes; and every other form of a constant.

// CHECK: {value = #onnx.tensor<i64, [-9223372036854775808]>} : () -> tensor<i64>
%0 = onnx.Constant() {value = #onnx.tensor<i64, [-9223372036854775808]>} : () -> tensor<i64>
// CHECK: {value = #onnx.tensor<2xui64, [18446744073709551615, 1]>} : () -> tensor<2xui64>
%1 = onnx.Constant() {value = #onnx.tensor<2xui64, [18446744073709551615, 1]>} : () -> tensor<2xui64>
// CHECK: {value = #onnx.tensor<2x0xf32, []>} : () -> tensor<2x0xf32>
%2 = onnx.Constant() {value = #onnx.tensor<2x0xf32, []>} : () -> tensor<2x0xf32>
// CHECK: {value = #onnx.tensor<3xi1, [true, false, true]>} : () -> tensor<3xi1>
%3 = onnx.Constant() {value = #onnx.tensor<3xi1, [true, false, 1]>} : () -> tensor<3xi1>
// CHECK: {value = #onnx.tensor<3xbf16, [1.0, -0.0, 3.4375]>} : () -> tensor<3xbf16>
%4 = onnx.Constant() {value = #onnx.tensor<3xbf16, [1.0, -0.0, 3.4375]>} : () -> tensor<3xbf16>
// CHECK: {value = #onnx.tensor<3xi4, [-8, 7, 0]>} : () -> tensor<3xi4>
%5 = onnx.Constant() {value = #onnx.tensor<3xi4, "0x7800">} : () -> tensor<3xi4>
// CHECK: {value = #onnx.tensor<2xui2, [3, 1]>} : () -> tensor<2xui2>
%6 = onnx.Constant() {value = #onnx.tensor<2xui2, [3, 1]>} : () -> tensor<2xui2>
// Infinities and NaN have no decimal form.
// CHECK: {value = #onnx.tensor<2xf32, "0x0000807F0000C07F">} : () -> tensor<2xf32>
%7 = onnx.Constant() {value = #onnx.tensor<2xf32, "0x0000807f0000c07f">} : () -> tensor<2xf32>
// CHECK: {value = #onnx.tensor<4xf8E4M3FN, "0x387E00B8">} : () -> tensor<4xf8E4M3FN>
%8 = onnx.Constant() {value = #onnx.tensor<4xf8E4M3FN, "0x387E00B8">} : () -> tensor<4xf8E4M3FN>
// CHECK: {value = #onnx.tensor<2x!onnx.string, ["a\0Ab", "\FF"]>} : () -> tensor<2x!onnx.string>
%9 = onnx.Constant() {value = #onnx.tensor<2x!onnx.string, ["a\nb", "\ff"]>} : () -> tensor<2x!onnx.string>
// CHECK: {value = #onnx.tensor<768x768xf32, elided>} : () -> tensor<768x768xf32>
%10 = onnx.Constant() {value = #onnx.tensor<768x768xf32, elided>} : () -> tensor<768x768xf32>
// CHECK: {sparse_value = #onnx.sparse_tensor<#onnx.tensor<2xf32, [1.0, 2.0]>, #onnx.tensor<2xi64, [1, 3]>, array<i64: 5>>} : () -> tensor<5xf32>
%11 = onnx.Constant() {sparse_value = #onnx.sparse_tensor<#onnx.tensor<2xf32, [1.0, 2.0]>, #onnx.tensor<2xi64, [1, 3]>, array<i64: 5>>} : () -> tensor<5xf32>
// CHECK: {value_floats = array<f32: 1.500000e+00, -0.000000e+00>} : () -> tensor<2xf32>
%12 = onnx.Constant() {value_floats = array<f32: 1.5, -0.0>} : () -> tensor<2xf32>
// CHECK: {value_ints = #onnx.empty<7 : i64>} : () -> tensor<0xi64>
%13 = onnx.Constant() {value_ints = #onnx.empty<7 : i64>} : () -> tensor<0xi64>
