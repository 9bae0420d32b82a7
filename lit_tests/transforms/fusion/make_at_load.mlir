// RUN: igniter-opt %s -p "winograd{tile=2 force=true},form-fusion-regions,pack-weights,make-at-load" --split-input-file | filecheck %s
// RUN: igniter-opt %s -p "winograd{tile=2 force=true},form-fusion-regions,pack-weights,make-at-load" --split-input-file --emit=none --remarks 2>&1 | filecheck %s --check-prefix=REMARKS
// RUN: igniter-opt %s -p "winograd{tile=2 force=true},form-fusion-regions,pack-weights,make-at-load,fold-packs,inline-regions" --split-input-file --check-each --emit=none 2>&1 | filecheck %s --check-prefix=CHECKED

// A kernel computes the weight in tiles from the plain one, which the region reads too. Both convolutions share it.

// CHECK:      %[[W:.*]] = onnx.Constant() <{initializer_name = "w"}>
// CHECK:      %[[P:.*]] = fusion.pack %[[W]] [2, 3, 1, 0] : tensor<2x2x3x3xf32> to tensor<3x3x2x2xf32>
// CHECK:      %[[T:.*]] = onnx.Constant() <{initializer_name = "first.winograd"}> {{.*}} -> tensor<16x1x2x16xf32>
// CHECK:      %[[M:.*]] = fusion.make @tile_weights_2_f32_part(%[[P]]) or %[[T]] : tensor<3x3x2x2xf32> to tensor<16x1x2x16xf32>
// CHECK-NEXT: %[[N:.*]] = fusion.make @tile_weights_2_f32_part(%[[P]]) or
// CHECK-NEXT: fusion.region {{.*}} = %[[P]] : {{.*}} = %[[M]] : {{.*}} = %[[N]] : tensor<16x1x2x16xf32>
// CHECK:      loop.kernel @tile_weights_2_f32_part symbols [c, o]
// CHECK:      loop.procedure "tile_weights" [i0: parallel ((o + 15) floordiv 16), i1: parallel c]
// CHECK:      loop.load %{{.*}}[0, 0, i1, 16*i0 + j0] if [-16*i0 - j0 + o - 1] : f32
// CHECK:      arith.extf
// CHECK-NOT:  loop.kernel

// REMARKS:    make-at-load: 'first.winograd' applied: @tile_weights_2_f32_part computes it when a session is created
// REMARKS:    make-at-load: note: 2 of 2 constants are computed when a session is created, 0.0 MB

// CHECKED:    check: make-at-load: {{.*}} agree
// CHECKED:    check: inline-regions: {{.*}} agree

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<1x2x5x5xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<2x2x3x3xf32, [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 0, 0, 0, 1, 0, 0, 0, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, -1, -2, -3, -4, -5, -6, -7, -8, -9]>} : () -> tensor<2x2x3x3xf32>
    %a = onnx.Conv(%x, %w) <{node_name = "first"}> {pads = array<i64: 1, 1, 1, 1>} : (tensor<1x2x5x5xf32>, tensor<2x2x3x3xf32>) -> tensor<1x2x5x5xf32>
    %y = onnx.Conv(%a, %w) <{node_name = "second"}> {pads = array<i64: 1, 1, 1, 1>} : (tensor<1x2x5x5xf32>, tensor<2x2x3x3xf32>) -> tensor<1x2x5x5xf32>
    onnx.return %y : tensor<1x2x5x5xf32>
  }
}

// -----

// ONNX Runtime does not show the ops of a branch the constants of the graph around it: they are stored.

// CHECK-NOT:  fusion.make
// CHECK-NOT:  loop.kernel
// REMARKS:    make-at-load: 'inner.winograd' missed: it is stored: ONNX Runtime does not show an op the constants of a graph around its own

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<1x2x5x5xf32>, %c: tensor<i1>) attributes {input_names = ["x", "c"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<2x2x3x3xf32, [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 0, 0, 0, 1, 0, 0, 0, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, -1, -2, -3, -4, -5, -6, -7, -8, -9]>} : () -> tensor<2x2x3x3xf32>
    %y = onnx.If(%c) ({
      %a = onnx.Conv(%x, %w) <{node_name = "inner"}> {pads = array<i64: 1, 1, 1, 1>} : (tensor<1x2x5x5xf32>, tensor<2x2x3x3xf32>) -> tensor<1x2x5x5xf32>
      onnx.return %a : tensor<1x2x5x5xf32>
    }, {
      %b = onnx.Relu(%x) <{node_name = "other"}> : (tensor<1x2x5x5xf32>) -> tensor<1x2x5x5xf32>
      onnx.return %b : tensor<1x2x5x5xf32>
    }) : (tensor<i1>) -> tensor<1x2x5x5xf32>
    onnx.return %y : tensor<1x2x5x5xf32>
  }
}
