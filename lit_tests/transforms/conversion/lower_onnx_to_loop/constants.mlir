// RUN: igniter-opt %s -p lower-onnx-to-loop --split-input-file | filecheck %s

// A constant whose elements are all the same is an arith.constant wherever it is read, whatever its shape.

onnx.graph @main(%x: tensor<2x3xf32>) {
  %y = fusion.region @splat (%a = %x : tensor<2x3xf32>) -> (tensor<2x3xf32>) {
    %half = onnx.Constant() {value = #onnx.tensor<1x3xf32, [0.5, 0.5, 0.5]>} : () -> tensor<1x3xf32>
    %0 = onnx.Mul(%a, %half) : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
    fusion.yield %0 : tensor<2x3xf32>
  }
  onnx.return %y : tensor<2x3xf32>
}
// CHECK-LABEL: loop.kernel @splat
// CHECK-NEXT: loop.nest "mul"
// CHECK-NEXT:   %[[V:.*]] = loop.read
// CHECK-NEXT:   %[[H:.*]] = arith.constant 5.000000e-01 : f32
// CHECK-NEXT:   arith.mulf %[[V]], %[[H]] : f32

// -----

// A few different elements are chosen by position; a run of equal ones takes one comparison.

onnx.graph @main(%x: tensor<2x4xi64>) {
  %y = fusion.region @table (%a = %x : tensor<2x4xi64>) -> (tensor<2x4xi64>) {
    %c = onnx.Constant() {value = #onnx.tensor<4xi64, [7, 7, 9, 2]>} : () -> tensor<4xi64>
    %0 = onnx.Add(%a, %c) : (tensor<2x4xi64>, tensor<4xi64>) -> tensor<2x4xi64>
    fusion.yield %0 : tensor<2x4xi64>
  }
  onnx.return %y : tensor<2x4xi64>
}
// CHECK-LABEL: loop.kernel @table
// CHECK-NEXT: loop.nest "constant" [i0: parallel 4] -> tensor<4xi64>
// CHECK-NEXT:   %[[I:.*]] = loop.index i0 : i64
// CHECK-NEXT:   %[[SEVEN:.*]] = arith.constant 7 : i64
// CHECK-NEXT:   %[[TWO:.*]] = arith.constant 2 : i64
// CHECK-NEXT:   %[[PAST2:.*]] = arith.cmpi sge, %[[I]], %[[TWO]] : i64
// CHECK-NEXT:   %[[NINE:.*]] = arith.constant 9 : i64
// CHECK-NEXT:   %[[S:.*]] = arith.select %[[PAST2]], %[[NINE]], %[[SEVEN]] : i64
// CHECK-NEXT:   %[[THREE:.*]] = arith.constant 3 : i64
// CHECK-NEXT:   %[[PAST3:.*]] = arith.cmpi sge, %[[I]], %[[THREE]] : i64
// CHECK-NEXT:   arith.select %[[PAST3]], %[[TWO]], %[[S]] : i64

// -----

// An exponent that is known is multiplied out, and leaves no constant behind.

onnx.graph @main(%x: tensor<4xf32>) {
  %y = fusion.region @square (%a = %x : tensor<4xf32>) -> (tensor<4xf32>) {
    %two = onnx.Constant() {value = #onnx.tensor<f32, [2.0]>} : () -> tensor<f32>
    %0 = onnx.Pow(%a, %two) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    fusion.yield %0 : tensor<4xf32>
  }
  onnx.return %y : tensor<4xf32>
}
// CHECK-LABEL: loop.kernel @square
// CHECK-NEXT: loop.nest "pow"
// CHECK-NEXT:   %[[V:.*]] = loop.read
// CHECK-NEXT:   %[[S:.*]] = arith.mulf %[[V]], %[[V]] : f32
// CHECK-NEXT:   loop.yield none %[[S]] at [i0]
