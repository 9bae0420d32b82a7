// RUN: igniter-opt %s -p "winograd{tile=2 force=true rows=2 columns=3},form-fusion-regions,lower-onnx-to-loop" | filecheck %s
// RUN: igniter-opt %s -p "winograd{tile=2 force=true rows=2 columns=3},form-fusion-regions,inline-regions" | filecheck %s --check-prefix=PLAIN

// What runs of a marked convolution, in bands of 2 x 3 tiles: the padded image, its tiles at 16 points, the products with
// the table, the results of the tiles, and these as an image with the bias. The activation behind it is in its region.

// CHECK:      %{{.*}} = onnx.Constant() <{initializer_name = "conv.winograd"}> {{.*}} -> tensor<16x1x1x16xf32>
// CHECK:      fusion.tables ["winograd"]
// CHECK-NEXT: onnx.Conv{{.*}}igniter.winograd = array<i64: 2, 2, 3>
// CHECK-NEXT: onnx.Relu

// CHECK:      loop.nest "conv.padded" [i0: parallel n, i1: parallel 4*((h + 3) floordiv 4) + 2, i2: parallel 6*((w + 5) floordiv 6) + 2]
// CHECK:      loop.procedure "conv.input" [i0: parallel n, i1: parallel ((h + 3) floordiv 4), i2: parallel ((w + 5) floordiv 6)]
// CHECK:      loop.for j0 = 0 to 2
// CHECK-NEXT: loop.for j1 = 0 to 3
// CHECK-COUNT-16: loop.load
// CHECK-COUNT-32: arith.{{addf|subf}}
// CHECK-NOT:  arith.mulf
// CHECK:      loop.nest "conv.points" [i0: parallel n, i1: parallel ((h + 3) floordiv 4), i2: parallel ((w + 5) floordiv 6), i3: parallel 16, i4: parallel 6, i5: parallel 2]
// CHECK:      loop.procedure "conv.output" {{.*}} i3: parallel 2, i4: parallel 3]
// CHECK-COUNT-16: loop.load
// CHECK-COUNT-24: arith.{{addf|subf}}
// CHECK-NOT:  arith.mulf
// CHECK-COUNT-4: loop.store
// A tile with a result that is not finite is computed again, from the image and the plain weight.
// CHECK:      %[[ALL:.*]] = loop.alloc "all_zeros"
// CHECK:      loop.accumulate add %{{.*}}, %[[ALL]][]
// CHECK:      arith.cmpf une
// CHECK:      loop.if [_0 - 1] with
// CHECK:      loop.for k{{.*}} sequential
// CHECK-COUNT-2: arith.mulf
// CHECK:      loop.store %{{.*}}[i0, i1, i2, i3, i4, j2, 0, j3]
// CHECK-NEXT: loop.load
// CHECK-NEXT: loop.store %{{.*}}[i0, i1, i2, i3, i4, j2, 1, j3]
// CHECK:      loop.nest "conv.image" [i0: parallel n, i1: parallel 2, i2: parallel h, i3: parallel w]
// CHECK-NEXT: loop.read %{{.*}}[i0, (i2 floordiv 4), (i3 floordiv 6), (((i2 floordiv 2)) mod 2), (((i3 floordiv 2)) mod 3), (i2 mod 2), (i3 mod 2), i1]
// CHECK:      loop.nest "relu"

// Taken apart, it is the convolution that it was, and nothing is left of the table.

// PLAIN-NOT:  conv.winograd
// PLAIN:      onnx.Conv(%x, %w, %b)
// PLAIN-NEXT: onnx.Relu
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x1x?x?xf32, #sym.dims<n, 1, h, w>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<2x1x3x3xf32, [1.0, 2.0, 1.0, 0.0, 0.0, 0.0, -1.0, -2.0, -1.0, 1.0, 0.0, -1.0, 2.0, 0.0, -2.0, 1.0, 0.0, -1.0]>} : () -> tensor<2x1x3x3xf32>
    %b = onnx.Constant() <{initializer_name = "b"}> {value = #onnx.tensor<2xf32, [0.5, -0.5]>} : () -> tensor<2xf32>
    %c = onnx.Conv(%x, %w, %b) <{node_name = "conv"}> {pads = array<i64: 1, 1, 1, 1>} : (tensor<?x1x?x?xf32, #sym.dims<n, 1, h, w>>, tensor<2x1x3x3xf32>, tensor<2xf32>) -> tensor<?x2x?x?xf32, #sym.dims<n, 2, h, w>>
    %y = onnx.Relu(%c) <{node_name = "relu"}> : (tensor<?x2x?x?xf32, #sym.dims<n, 2, h, w>>) -> tensor<?x2x?x?xf32, #sym.dims<n, 2, h, w>>
    onnx.return %y : tensor<?x2x?x?xf32, #sym.dims<n, 2, h, w>>
  }
}
