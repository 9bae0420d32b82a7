// RUN: igniter-opt %s -p lower-onnx-to-loop --split-input-file | filecheck %s

// One nest a node. A bias is read by the axes it has; what a nest computes again is for later passes to say.

onnx.graph @main(%x: tensor<?x8xf32, #sym.dims<n, 8>>, %w: tensor<8xf32>) {
  %y = fusion.region @bias_relu (%a = %x : tensor<?x8xf32, #sym.dims<n, 8>>, %b = %w : tensor<8xf32>) -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
    %0 = onnx.Add(%a, %b) : (tensor<?x8xf32, #sym.dims<n, 8>>, tensor<8xf32>) -> tensor<?x8xf32, #sym.dims<n, 8>>
    %1 = onnx.Relu(%0) : (tensor<?x8xf32, #sym.dims<n, 8>>) -> tensor<?x8xf32, #sym.dims<n, 8>>
    fusion.yield %1 : tensor<?x8xf32, #sym.dims<n, 8>>
  }
  onnx.return %y : tensor<?x8xf32, #sym.dims<n, 8>>
}
// CHECK: fusion.region @bias_relu ({{.*}}) kernel @bias_relu ->
// CHECK: loop.kernel @bias_relu symbols [n] (%[[A:.*]]: tensor<?x8xf32, #sym.dims<n, 8>>, %[[B:.*]]: tensor<8xf32>) -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
// CHECK-NEXT:   %[[ADD:.*]] = loop.nest "add" [i0: parallel n, i1: parallel 8] -> tensor<?x8xf32, #sym.dims<n, 8>> {
// CHECK-NEXT:     %[[L:.*]] = loop.read %[[A]][i0, i1] : f32
// CHECK-NEXT:     %[[R:.*]] = loop.read %[[B]][i1] : f32
// CHECK-NEXT:     %[[S:.*]] = arith.addf %[[L]], %[[R]] : f32
// CHECK-NEXT:     loop.yield none %[[S]] at [i0, i1]
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[RELU:.*]] = loop.nest "relu" [i0: parallel n, i1: parallel 8]
// CHECK-NEXT:     %[[V:.*]] = loop.read %[[ADD]][i0, i1] : f32
// CHECK-NEXT:     %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %[[NEG:.*]] = arith.cmpf olt, %[[V]], %[[ZERO]] : f32
// CHECK-NEXT:     %[[M:.*]] = arith.select %[[NEG]], %[[ZERO]], %[[V]] : f32
// CHECK-NEXT:     loop.yield none %[[M]] at [i0, i1]
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.return %[[RELU]] :

// -----

// Dims of 1 have no axis: they are read at 0, broadcast or not.

onnx.graph @main(%x: tensor<4x1x3xf32>, %w: tensor<1x5x1xf32>) {
  %y = fusion.region @broadcast (%a = %x : tensor<4x1x3xf32>, %b = %w : tensor<1x5x1xf32>) -> (tensor<4x5x3xf32>) {
    %0 = onnx.Mul(%a, %b) : (tensor<4x1x3xf32>, tensor<1x5x1xf32>) -> tensor<4x5x3xf32>
    fusion.yield %0 : tensor<4x5x3xf32>
  }
  onnx.return %y : tensor<4x5x3xf32>
}
// CHECK-LABEL: loop.kernel @broadcast
// CHECK-NEXT: loop.nest "mul" [i0: parallel 4, i1: parallel 5, i2: parallel 3]
// CHECK-NEXT:   loop.read %{{.*}}[i0, 0, i2] : f32
// CHECK-NEXT:   loop.read %{{.*}}[0, i1, 0] : f32

// -----

// A symbol called like an axis: the axis takes another name.

onnx.graph @main(%x: tensor<?x?xi32, #sym.dims<i0, i1_>>) {
  %y = fusion.region @names (%a = %x : tensor<?x?xi32, #sym.dims<i0, i1_>>) -> (tensor<?x?xi32, #sym.dims<i0, i1_>>) {
    %0 = onnx.Neg(%a) : (tensor<?x?xi32, #sym.dims<i0, i1_>>) -> tensor<?x?xi32, #sym.dims<i0, i1_>>
    fusion.yield %0 : tensor<?x?xi32, #sym.dims<i0, i1_>>
  }
  onnx.return %y : tensor<?x?xi32, #sym.dims<i0, i1_>>
}
// CHECK-LABEL: loop.kernel @names symbols [i0, i1_]
// CHECK-NEXT: loop.nest "neg" [i0_: parallel i0, i1: parallel i1_]
// CHECK-NEXT:   loop.read %{{.*}}[i0_, i1] : i32

// -----

// Unsigned elements are signless in bodies; the ops say how they are meant. Division by a constant needs no guard.

onnx.graph @main(%x: tensor<4xui8>, %w: tensor<4xui8>) {
  %y, %z = fusion.region @unsigned (%a = %x : tensor<4xui8>, %b = %w : tensor<4xui8>) -> (tensor<4xui8>, tensor<4xui8>) {
    %three = onnx.Constant() {value = #onnx.tensor<ui8, [3]>} : () -> tensor<ui8>
    %0 = onnx.Max(%a, %b) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
    %1 = onnx.Div(%a, %three) : (tensor<4xui8>, tensor<ui8>) -> tensor<4xui8>
    fusion.yield %0, %1 : tensor<4xui8>, tensor<4xui8>
  }
  onnx.return %y, %z : tensor<4xui8>, tensor<4xui8>
}
// CHECK-LABEL: loop.kernel @unsigned
// CHECK:      loop.nest "max" [i0: parallel 4] -> tensor<4xui8>
// CHECK:        arith.maxui %{{.*}}, %{{.*}} : i8
// CHECK:      loop.nest "div" [i0: parallel 4] -> tensor<4xui8>
// CHECK-NEXT:   %[[V:.*]] = loop.read %{{.*}}[i0] : i8
// CHECK-NEXT:   %[[C:.*]] = arith.constant 3 : i8
// CHECK-NEXT:   %[[Q:.*]] = arith.divui %[[V]], %[[C]] : i8
// CHECK-NEXT:   loop.yield none %[[Q]] at [i0]

// -----

// Division of integers never traps: neither by zero, which is a check besides, nor of the least integer by -1.

onnx.graph @main(%x: tensor<4xi32>, %w: tensor<4xi32>) {
  %y = fusion.region @division (%a = %x : tensor<4xi32>, %b = %w : tensor<4xi32>) -> (tensor<4xi32>) {
    %0 = onnx.Div(%a, %b) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    fusion.yield %0 : tensor<4xi32>
  }
  onnx.return %y : tensor<4xi32>
}
// CHECK-LABEL: loop.kernel @division
// CHECK-SAME: checks
// CHECK: loop.nest "div"
// CHECK:   %[[ZERO:.*]] = arith.cmpi eq, %[[B:.*]], %{{.*}} : i32
// CHECK:   %[[MINUS:.*]] = arith.cmpi eq, %[[B]], %{{.*}} : i32
// CHECK:   %[[EITHER:.*]] = arith.ori %[[ZERO]], %[[MINUS]] : i1
// CHECK:   %[[SAFE:.*]] = arith.select %[[EITHER]], %{{.*}}, %[[B]] : i32
// CHECK:   arith.divsi %{{.*}}, %[[SAFE]] : i32

// -----

// What is handed through is copied, and so is what is handed out twice: no two outputs share their storage.

onnx.graph @main(%x: tensor<2x3xf32>) {
  %y, %z, %t = fusion.region @through (%a = %x : tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
    %0 = onnx.Identity(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %1 = onnx.Abs(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    fusion.yield %0, %1, %1 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
  }
  onnx.return %y, %z, %t : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}
// CHECK-LABEL: loop.kernel @through
// CHECK:       %[[ABS:.*]] = loop.nest "abs"
// CHECK:       %[[COPY:.*]] = loop.nest "copy"
// CHECK-NEXT:    loop.read %{{.*}}[i0, i1] : f32
// CHECK:       %[[AGAIN:.*]] = loop.nest "copy_1"
// CHECK-NEXT:    loop.read %[[ABS]][i0, i1] : f32
// CHECK:       loop.return %[[COPY]], %[[ABS]], %[[AGAIN]] :
