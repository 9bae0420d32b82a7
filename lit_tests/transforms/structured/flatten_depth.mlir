// RUN: igniter-opt %s -p flatten-depth --split-input-file | filecheck %s

// The window and the channels are one axis, in the order of the weight, which becomes a matrix.

// CHECK:      loop.kernel @conv
// CHECK:        %[[W:[0-9]+]] = loop.view %w : tensor<3x3x32x64xf32> to tensor<288x64xf32>
// CHECK-NEXT:   loop.nest "conv" [m: parallel 196, o: parallel 64, i_j_d: reduction 288]
// CHECK-NEXT:     loop.read %[[W]][i_j_d, o] : f32
// CHECK-NEXT:     loop.read %x[(i_j_d floordiv 96) + (m floordiv 14) - 1, (((i_j_d floordiv 32)) mod 3) + (m mod 14) - 1, (i_j_d mod 32)] if [
// CHECK:          loop.yield add %{{.*}} at [m, o]
loop.kernel @conv symbols [] (%x: tensor<14x14x32xf32>, %w: tensor<3x3x32x64xf32>) -> (tensor<196x64xf32>) {
  %0 = loop.nest "conv" [m: parallel 196, o: parallel 64, d: reduction 32, i: reduction 3, j: reduction 3] -> tensor<196x64xf32> {
    %1 = loop.read %w[i, j, d, o] : f32
    %2 = loop.read %x[m floordiv 14 + i - 1, m mod 14 + j - 1, d] if [m floordiv 14 + i - 1, 14 - m floordiv 14 - i, m mod 14 + j - 1, 14 - m mod 14 - j] : f32
    %3 = arith.mulf %1, %2 : f32
    loop.yield add %3 at [m, o]
  }
  loop.return %0 : tensor<196x64xf32>
}

// -----

// Channels of a dim that is only partly read are no matrix with the window; a depthwise convolution is no product of
// blocks.

// CHECK:      loop.kernel @others
// CHECK:        loop.nest "part" [m: parallel 196, o: parallel 64, d: reduction 16, i: reduction 3]
// CHECK:        loop.nest "depthwise" [c: parallel 64, y: parallel 12, i: reduction 3, j: reduction 3]
loop.kernel @others symbols [] (%x: tensor<198x32xf32>, %w: tensor<3x32x64xf32>, %v: tensor<3x3x64xf32>, %z: tensor<14x3x64xf32>) -> (tensor<196x64xf32>, tensor<64x12xf32>) {
  %0 = loop.nest "part" [m: parallel 196, o: parallel 64, d: reduction 16, i: reduction 3] -> tensor<196x64xf32> {
    %1 = loop.read %w[i, d, o] : f32
    %2 = loop.read %x[m + i, d] : f32
    %3 = arith.mulf %1, %2 : f32
    loop.yield add %3 at [m, o]
  }
  %4 = loop.nest "depthwise" [c: parallel 64, y: parallel 12, i: reduction 3, j: reduction 3] -> tensor<64x12xf32> {
    %5 = loop.read %v[i, j, c] : f32
    %6 = loop.read %z[y + i, j, c] : f32
    %7 = arith.mulf %5, %6 : f32
    loop.yield add %7 at [c, y]
  }
  loop.return %0, %4 : tensor<196x64xf32>, tensor<64x12xf32>
}
