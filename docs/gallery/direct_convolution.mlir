// A 3x3 convolution without im2col: channels last, weights in panels of 16 output channels. The image is padded once, so
// that no access of the reduction needs a guard. The register tile is 7 pixels of a row by 2 vectors of channels, and
// bias and ReLU are applied to it before it is stored.
//
// E. Georganas et al.: Anatomy of High-Performance Deep Learning Convolutions on SIMD Architectures. SC 2018.

builtin.module {
  loop.kernel @conv symbols [] (%x: tensor<56x56x64xf32>, %w: tensor<4x3x3x64x16xf32>, %bias: tensor<64xf32>) -> (tensor<56x56x64xf32>) attributes {citation = {name = "direct-convolution", version = "1", source = "Georganas et al., SC 2018"}} {
    %p = loop.nest "pad" [py: parallel 58, px: parallel 58, pc: parallel 64] schedule [py threads, px, pc vector 8] -> tensor<58x58x64xf32> {
      %a = loop.read %x[py - 1, px - 1, pc] if [py - 1, 56 - py, px - 1, 56 - px] : f32
      loop.yield none %a at [py, px, pc]
    }
    %c = loop.nest "conv" [y: parallel 56, x: parallel 56, o: parallel 64, ky: reduction 3, kx: reduction 3, c: reduction 64] schedule [y threads fuse "g", o by 16 tail mask fuse "g", x by 7 tail mask fuse "g", ky, kx, c, x unroll, o vector 8 unroll] -> tensor<56x56x64xf32> {
      %a = loop.read %p[y + ky, x + kx, c] : f32
      %b = loop.read %w[o floordiv 16, ky, kx, c, o mod 16] : f32
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
