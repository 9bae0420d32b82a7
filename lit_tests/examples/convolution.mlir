// RUN: igniter-opt %s -p lower-to-loops,fuse-loops,promote-buffers,tile-loops,sink-loops,parallelize-loops,vectorize-loops,unroll-loops,plan-buffers | filecheck %s

// A direct 3x3 convolution, stride 1, padding 1, with ReLU: channels last, weights packed in panels of 32 output
// channels. The image is padded once, so that no access of the reduction needs a guard; the register tile is 7 pixels
// of a row by 2 vectors of channels.

// CHECK:      loop.func @conv
// CHECK:      loop.alloc "pad" offset 0 : memref<58x58x64xf32, "scratch">
// CHECK:      loop.alloc "conv" : memref<7x32xf32, "register">
// CHECK:      loop.for c = 0 to 64 reduction {
// CHECK-COUNT-14: loop.accumulate add
// CHECK-NOT:      loop.accumulate
// CHECK:      arith.maximumf

builtin.module {
  loop.kernel @conv symbols [] (%x: tensor<56x56x64xf32>, %w: tensor<2x3x3x64x32xf32>, %bias: tensor<64xf32>) -> (tensor<56x56x64xf32>) {
    %p = loop.nest "pad" [py: parallel 58, px: parallel 58, pc: parallel 64] schedule [py threads, px, pc vector 16] -> tensor<58x58x64xf32> {
      %a = loop.read %x[py - 1, px - 1, pc] if [py - 1, 56 - py, px - 1, 56 - px] : f32
      loop.yield none %a at [py, px, pc]
    }
    %c = loop.nest "conv" [y: parallel 56, x: parallel 56, o: parallel 64, ky: reduction 3, kx: reduction 3, c: reduction 64] schedule [y threads fuse "g", o by 32 tail mask fuse "g", x by 7 tail mask fuse "g", ky, kx, c, x unroll, o vector 16 unroll] -> tensor<56x56x64xf32> {
      %a = loop.read %p[y + ky, x + kx, c] : f32
      %b = loop.read %w[o floordiv 32, ky, kx, c, o mod 32] : f32
      %m = arith.mulf %a, %b : f32
      loop.yield add %m at [y, x, o]
    }
    %r = loop.nest "relu" [y: parallel 56, x: parallel 56, o: parallel 64] schedule [y fuse "g", o fuse "g", x fuse "g"] -> tensor<56x56x64xf32> {
      %a = loop.read %c[y, x, o] : f32
      %b = loop.read %bias[o] : f32
      %s = arith.addf %a, %b : f32
      %z = arith.constant 0.0 : f32
      %m = arith.maximumf %s, %z : f32
      loop.yield none %m at [y, x, o]
    }
    loop.return %r : tensor<56x56x64xf32>
  }
}
