// RUN: igniter-opt %s -p lower-onnx-to-loop --split-input-file | filecheck %s

// Softmax: five nests over the same rows. The exponentials are a tensor, so that they are computed once.

onnx.graph @main(%x: tensor<?x64xf32, #sym.dims<n, 64>>) {
  %y = fusion.region @softmax (%a = %x : tensor<?x64xf32, #sym.dims<n, 64>>) -> (tensor<?x64xf32, #sym.dims<n, 64>>) {
    %0 = onnx.Softmax(%a) : (tensor<?x64xf32, #sym.dims<n, 64>>) -> tensor<?x64xf32, #sym.dims<n, 64>>
    fusion.yield %0 : tensor<?x64xf32, #sym.dims<n, 64>>
  }
  onnx.return %y : tensor<?x64xf32, #sym.dims<n, 64>>
}
// CHECK-LABEL: loop.kernel @softmax symbols [n]
// CHECK-NEXT:  %[[MAX:.*]] = loop.nest "softmax.max" [i0: parallel n, r0: reduction 64] -> tensor<?x1xf32, #sym.dims<n, 1>> {
// CHECK-NEXT:    %[[V:.*]] = loop.read %{{.*}}[i0, r0] : f32
// CHECK-NEXT:    loop.yield max %[[V]] at [i0, 0]
// CHECK:       %[[EXP:.*]] = loop.nest "softmax.exp" [i0: parallel n, i1: parallel 64]
// CHECK-NEXT:    %[[X:.*]] = loop.read %{{.*}}[i0, i1] : f32
// CHECK-NEXT:    %[[M:.*]] = loop.read %[[MAX]][i0, 0] : f32
// CHECK-NEXT:    %[[D:.*]] = arith.subf %[[X]], %[[M]] : f32
// CHECK-NEXT:    %[[E:.*]] = math.exp %[[D]] {nonpositive} : f32
// CHECK-NEXT:    loop.yield none %[[E]] at [i0, i1]
// CHECK:       %[[SUM:.*]] = loop.nest "softmax.sum" [i0: parallel n, r0: reduction 64]
// CHECK-NEXT:    loop.read %[[EXP]][i0, r0] : f32
// CHECK:       %[[INVERSE:.*]] = loop.nest "softmax.inverse" [i0: parallel n] -> tensor<?x1xf32, #sym.dims<n, 1>>
// CHECK:         arith.divf
// CHECK:       loop.nest "softmax" [i0: parallel n, i1: parallel 64]
// CHECK-NEXT:    loop.read %[[EXP]][i0, i1] : f32
// CHECK-NEXT:    loop.read %[[INVERSE]][i0, 0] : f32
// CHECK-NEXT:    arith.mulf

// -----

// Before opset 13 all axes from `axis` on are normalised together: two reduction axes, no reshape.

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 11 : i64}}} {
  onnx.graph @main(%x: tensor<2x3x4xf32>) {
    %y = fusion.region @softmax_11 (%a = %x : tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>) {
      %0 = onnx.Softmax(%a) {axis = 1 : i64} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
      fusion.yield %0 : tensor<2x3x4xf32>
    }
    onnx.return %y : tensor<2x3x4xf32>
  }
}
// CHECK-LABEL: loop.kernel @softmax_11
// CHECK-NEXT:  loop.nest "softmax.max" [i0: parallel 2, r0: reduction 3, r1: reduction 4] -> tensor<2x1x1xf32>

// -----

// LayerNormalization: a mean, the distances from it and their squares, what a row is multiplied by, the result.

onnx.graph @main(%x: tensor<?x64xf32, #sym.dims<n, 64>>, %g: tensor<64xf32>, %h: tensor<64xf32>) {
  %y = fusion.region @layer_norm (%a = %x : tensor<?x64xf32, #sym.dims<n, 64>>, %s = %g : tensor<64xf32>, %b = %h : tensor<64xf32>)
      -> (tensor<?x64xf32, #sym.dims<n, 64>>) {
    %0 = onnx.LayerNormalization(%a, %s, %b) {epsilon = 0.5 : f32} : (tensor<?x64xf32, #sym.dims<n, 64>>, tensor<64xf32>, tensor<64xf32>) -> tensor<?x64xf32, #sym.dims<n, 64>>
    fusion.yield %0 : tensor<?x64xf32, #sym.dims<n, 64>>
  }
  onnx.return %y : tensor<?x64xf32, #sym.dims<n, 64>>
}
// CHECK-LABEL: loop.kernel @layer_norm
// CHECK-NEXT:  %[[SUM:.*]] = loop.nest "layernormalization.sum" [i0: parallel n, r0: reduction 64]
// CHECK:       %[[MEAN:.*]] = loop.nest "layernormalization.mean" [i0: parallel n]
// CHECK-NEXT:    %[[S:.*]] = loop.read %[[SUM]][i0, 0] : f32
// CHECK-NEXT:    %[[N:.*]] = arith.constant 6.400000e+01 : f32
// CHECK-NEXT:    arith.divf %[[S]], %[[N]] : f32
// CHECK:       %[[SQUARES:.*]] = loop.nest "layernormalization.squares" [i0: parallel n, r0: reduction 64]
// CHECK-NEXT:    %[[V:.*]] = loop.read %{{.*}}[i0, r0] : f32
// CHECK-NEXT:    %[[M:.*]] = loop.read %[[MEAN]][i0, 0] : f32
// CHECK-NEXT:    %[[D:.*]] = arith.subf %[[V]], %[[M]] : f32
// CHECK-NEXT:    %[[Q:.*]] = arith.mulf %[[D]], %[[D]] : f32
// CHECK-NEXT:    loop.yield add %[[Q]] at [i0, 0]
// CHECK:       loop.nest "layernormalization.missed" [i0: parallel n, r0: reduction 64]
// CHECK:       loop.nest "layernormalization.variance" [i0: parallel n]
// CHECK:       %[[INVERSE:.*]] = loop.nest "layernormalization.inverse" [i0: parallel n]
// CHECK:         math.sqrt
// CHECK:       %[[SHIFT:.*]] = loop.nest "layernormalization.shift" [i0: parallel n]
// CHECK:       loop.nest "layernormalization" [i0: parallel n, i1: parallel 64]
// CHECK-NEXT:    %[[V2:.*]] = loop.read %{{.*}}[i0, i1] : f32
// CHECK-NEXT:    %[[M2:.*]] = loop.read %[[MEAN]][i0, 0] : f32
// CHECK-NEXT:    %[[D2:.*]] = arith.subf %[[V2]], %[[M2]] : f32
// CHECK-NEXT:    %[[I2:.*]] = loop.read %[[INVERSE]][i0, 0] : f32
// CHECK-NEXT:    %[[P1:.*]] = arith.mulf %[[D2]], %[[I2]] : f32
// CHECK-NEXT:    %[[S2:.*]] = loop.read %[[SHIFT]][i0, 0] : f32
// CHECK-NEXT:    %[[P:.*]] = arith.subf %[[P1]], %[[S2]] : f32
// CHECK-NEXT:    %[[SCALE:.*]] = loop.read %{{.*}}[i1] : f32
// CHECK-NEXT:    %[[T:.*]] = arith.mulf %[[P]], %[[SCALE]] : f32
// CHECK-NEXT:    %[[BIAS:.*]] = loop.read %{{.*}}[i1] : f32
// CHECK-NEXT:    arith.addf %[[T]], %[[BIAS]] : f32
