// RUN: igniter-opt %s -p lower-onnx-to-loop --split-input-file | filecheck %s

// A column sum: parallel axes come first, the subscripts stay where the tensor has them.

onnx.graph @main(%x: tensor<?x8xf32, #sym.dims<n, 8>>) {
  %y = fusion.region @columns (%a = %x : tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<1x8xf32>) {
    %axes = onnx.Constant() {value = #onnx.tensor<1xi64, [0]>} : () -> tensor<1xi64>
    %0 = onnx.ReduceSum(%a, %axes) : (tensor<?x8xf32, #sym.dims<n, 8>>, tensor<1xi64>) -> tensor<1x8xf32>
    fusion.yield %0 : tensor<1x8xf32>
  }
  onnx.return %y : tensor<1x8xf32>
}
// CHECK-LABEL: loop.kernel @columns symbols [n]
// CHECK-NEXT: loop.nest "reducesum" [i0: parallel 8, r0: reduction n] -> tensor<1x8xf32> {
// CHECK-NEXT:   %[[V:.*]] = loop.read %{{.*}}[r0, i0] : f32
// CHECK-NEXT:   loop.yield add %[[V]] at [0, i0]

// -----

// A mean over a dim that may be 0 divides by at least 1.

onnx.graph @main(%x: tensor<4x?xf32, #sym.dims<4, n>>) {
  %y = fusion.region @mean (%a = %x : tensor<4x?xf32, #sym.dims<4, n>>) -> (tensor<4xf32>) {
    %axes = onnx.Constant() {value = #onnx.tensor<1xi64, [-1]>} : () -> tensor<1xi64>
    %0 = onnx.ReduceMean(%a, %axes) {keepdims = 0 : i64} : (tensor<4x?xf32, #sym.dims<4, n>>, tensor<1xi64>) -> tensor<4xf32>
    fusion.yield %0 : tensor<4xf32>
  }
  onnx.return %y : tensor<4xf32>
}
// CHECK-LABEL: loop.kernel @mean symbols [n]
// CHECK-NEXT: %[[SUM:.*]] = loop.nest "reducemean.sum" [i0: parallel 4, r0: reduction n] -> tensor<4xf32>
// CHECK:      loop.nest "reducemean" [i0: parallel 4] -> tensor<4xf32> {
// CHECK-NEXT:   %[[S:.*]] = loop.read %[[SUM]][i0] : f32
// CHECK-NEXT:   %[[N:.*]] = loop.index max(1, n) : i64
// CHECK-NEXT:   %[[F:.*]] = arith.sitofp %[[N]] : i64 to f32
// CHECK-NEXT:   arith.divf %[[S]], %[[F]] : f32

// -----

// The maximum of bools is whether there is a true one.

onnx.graph @main(%x: tensor<2x3xi1>) {
  %y = fusion.region @any (%a = %x : tensor<2x3xi1>) -> (tensor<1x1xi1>) {
    %0 = onnx.ReduceMax(%a) : (tensor<2x3xi1>) -> tensor<1x1xi1>
    fusion.yield %0 : tensor<1x1xi1>
  }
  onnx.return %y : tensor<1x1xi1>
}
// CHECK-LABEL: loop.kernel @any
// CHECK-NEXT: loop.nest "reducemax" [r0: reduction 2, r1: reduction 3] -> tensor<1x1xi1> {
// CHECK-NEXT:   %[[V:.*]] = loop.read %{{.*}}[r0, r1] : i1
// CHECK-NEXT:   loop.yield or %[[V]] at [0, 0]

// -----

// A position is the least one that holds the maximum.

onnx.graph @main(%x: tensor<2x3xi32>) {
  %y = fusion.region @argmax (%a = %x : tensor<2x3xi32>) -> (tensor<2xi64>) {
    %0 = onnx.ArgMax(%a) {axis = 1 : i64, keepdims = 0 : i64} : (tensor<2x3xi32>) -> tensor<2xi64>
    fusion.yield %0 : tensor<2xi64>
  }
  onnx.return %y : tensor<2xi64>
}
// CHECK-LABEL: loop.kernel @argmax
// CHECK-NEXT: %[[BEST:.*]] = loop.nest "argmax.max" [i0: parallel 2, r0: reduction 3] -> tensor<2x1xi32>
// CHECK:      loop.nest "argmax.find" [i0: parallel 2, r0: reduction 3] -> tensor<2xi64> {
// CHECK-NEXT:   %[[V:.*]] = loop.read %{{.*}}[i0, r0] : i32
// CHECK-NEXT:   %[[B:.*]] = loop.read %[[BEST]][i0, 0] : i32
// CHECK-NEXT:   %[[E:.*]] = arith.cmpi eq, %[[V]], %[[B]] : i32
// CHECK-NEXT:   %[[R:.*]] = loop.index r0 : i64
// CHECK-NEXT:   %[[LAST:.*]] = arith.constant 2 : i64
// CHECK-NEXT:   %[[P:.*]] = arith.select %[[E]], %[[R]], %[[LAST]] : i64
// CHECK-NEXT:   loop.yield min %[[P]] at [i0]

// -----

// A running sum: one element after the other, the sum so far in a register.

onnx.graph @main(%x: tensor<?xf32, #sym.dims<n>>) {
  %y = fusion.region @cumsum (%a = %x : tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %axis = onnx.Constant() {value = #onnx.tensor<i64, [0]>} : () -> tensor<i64>
    %0 = onnx.CumSum(%a, %axis) {exclusive = 1 : i64} : (tensor<?xf32, #sym.dims<n>>, tensor<i64>) -> tensor<?xf32, #sym.dims<n>>
    fusion.yield %0 : tensor<?xf32, #sym.dims<n>>
  }
  onnx.return %y : tensor<?xf32, #sym.dims<n>>
}
// CHECK-LABEL: loop.kernel @cumsum
// CHECK: loop.procedure "cumsum" [] computes #loop.prefix<add, exclusive> (%[[A:.*]] = %{{.*}}) -> (%[[O:.*]] : tensor<1x?x1xf32, #sym.dims<1, n, 1>>) {
// CHECK: loop.for k0 = 0 to n sequential {
// CHECK-NEXT:   %[[B:.*]] = loop.load %[[T:.*]][] : f32
// CHECK-NEXT:   %[[V:.*]] = loop.load %[[A]][0, k0, 0] : f32
// CHECK-NEXT:   %[[S:.*]] = arith.addf %[[B]], %[[V]] : f32
// CHECK-NEXT:   loop.store %[[S]], %[[T]][]
// CHECK-NEXT:   loop.store %[[B]], %[[O]][0, k0, 0]
