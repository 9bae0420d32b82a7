// Winograd's F(2x2, 3x3): tiles of 2 x 2 results take 16 multiplications a channel instead of 36. A row of tiles goes
// through the transform of its input, 16 products over the channels, and the transform of the sums while it is in cache.
// The image of 14 x 14 is padded, channels last; the weights are transformed beforehand and packed in panels of 16 output channels.
//
// S. Winograd: Arithmetic Complexity of Computations. SIAM, 1980. A. Lavin, S. Gray: Fast Algorithms for Convolutional
// Neural Networks. CVPR 2016.

builtin.module {
  loop.kernel @conv symbols [] (%x: tensor<16x16x64xf32>, %u: tensor<16x4x64x16xf32>) -> (tensor<7x2x7x2x64xf32>) attributes {citation = {name = "winograd", version = "1", source = "Winograd, 1980; Lavin and Gray, CVPR 2016"}} {
    %v = loop.procedure "input" [i: parallel 7] schedule [i threads fuse "rows", c vector 8] (%image = %x) -> (%tiles : tensor<7x16x7x64xf32>) {
      loop.for t = 0 to 7 {
        loop.for c = 0 to 64 {
          %d00 = loop.load %image[2*i, 2*t, c] : f32
          %d01 = loop.load %image[2*i, 2*t + 1, c] : f32
          %d02 = loop.load %image[2*i, 2*t + 2, c] : f32
          %d03 = loop.load %image[2*i, 2*t + 3, c] : f32
          %d10 = loop.load %image[2*i + 1, 2*t, c] : f32
          %d11 = loop.load %image[2*i + 1, 2*t + 1, c] : f32
          %d12 = loop.load %image[2*i + 1, 2*t + 2, c] : f32
          %d13 = loop.load %image[2*i + 1, 2*t + 3, c] : f32
          %d20 = loop.load %image[2*i + 2, 2*t, c] : f32
          %d21 = loop.load %image[2*i + 2, 2*t + 1, c] : f32
          %d22 = loop.load %image[2*i + 2, 2*t + 2, c] : f32
          %d23 = loop.load %image[2*i + 2, 2*t + 3, c] : f32
          %d30 = loop.load %image[2*i + 3, 2*t, c] : f32
          %d31 = loop.load %image[2*i + 3, 2*t + 1, c] : f32
          %d32 = loop.load %image[2*i + 3, 2*t + 2, c] : f32
          %d33 = loop.load %image[2*i + 3, 2*t + 3, c] : f32
          %e00 = arith.subf %d00, %d20 : f32
          %e01 = arith.subf %d01, %d21 : f32
          %e02 = arith.subf %d02, %d22 : f32
          %e03 = arith.subf %d03, %d23 : f32
          %e10 = arith.addf %d10, %d20 : f32
          %e11 = arith.addf %d11, %d21 : f32
          %e12 = arith.addf %d12, %d22 : f32
          %e13 = arith.addf %d13, %d23 : f32
          %e20 = arith.subf %d20, %d10 : f32
          %e21 = arith.subf %d21, %d11 : f32
          %e22 = arith.subf %d22, %d12 : f32
          %e23 = arith.subf %d23, %d13 : f32
          %e30 = arith.subf %d10, %d30 : f32
          %e31 = arith.subf %d11, %d31 : f32
          %e32 = arith.subf %d12, %d32 : f32
          %e33 = arith.subf %d13, %d33 : f32
          %f00 = arith.subf %e00, %e02 : f32
          loop.store %f00, %tiles[i, 0, t, c]
          %f01 = arith.addf %e01, %e02 : f32
          loop.store %f01, %tiles[i, 1, t, c]
          %f02 = arith.subf %e02, %e01 : f32
          loop.store %f02, %tiles[i, 2, t, c]
          %f03 = arith.subf %e01, %e03 : f32
          loop.store %f03, %tiles[i, 3, t, c]
          %f10 = arith.subf %e10, %e12 : f32
          loop.store %f10, %tiles[i, 4, t, c]
          %f11 = arith.addf %e11, %e12 : f32
          loop.store %f11, %tiles[i, 5, t, c]
          %f12 = arith.subf %e12, %e11 : f32
          loop.store %f12, %tiles[i, 6, t, c]
          %f13 = arith.subf %e11, %e13 : f32
          loop.store %f13, %tiles[i, 7, t, c]
          %f20 = arith.subf %e20, %e22 : f32
          loop.store %f20, %tiles[i, 8, t, c]
          %f21 = arith.addf %e21, %e22 : f32
          loop.store %f21, %tiles[i, 9, t, c]
          %f22 = arith.subf %e22, %e21 : f32
          loop.store %f22, %tiles[i, 10, t, c]
          %f23 = arith.subf %e21, %e23 : f32
          loop.store %f23, %tiles[i, 11, t, c]
          %f30 = arith.subf %e30, %e32 : f32
          loop.store %f30, %tiles[i, 12, t, c]
          %f31 = arith.addf %e31, %e32 : f32
          loop.store %f31, %tiles[i, 13, t, c]
          %f32 = arith.subf %e32, %e31 : f32
          loop.store %f32, %tiles[i, 14, t, c]
          %f33 = arith.subf %e31, %e33 : f32
          loop.store %f33, %tiles[i, 15, t, c]
        }
      }
    }
    %m = loop.nest "products" [i: parallel 7, e: parallel 16, t: parallel 7, o: parallel 64, c: reduction 64] schedule [i threads fuse "rows", e, o by 16, t by 6, product(t, o, c) tile [6, 1], t, o vector 8 unroll] -> tensor<7x16x7x64xf32> {
      %a = loop.read %v[i, e, t, c] : f32
      %b = loop.read %u[e, (o floordiv 16), c, (o mod 16)] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [i, e, t, o]
    }
    %y = loop.procedure "output" [i: parallel 7] schedule [i threads fuse "rows", o vector 8] (%sums = %m) -> (%result : tensor<7x2x7x2x64xf32>) {
      loop.for t = 0 to 7 {
        loop.for o = 0 to 64 {
          %s00 = loop.load %sums[i, 0, t, o] : f32
          %s01 = loop.load %sums[i, 1, t, o] : f32
          %s02 = loop.load %sums[i, 2, t, o] : f32
          %s03 = loop.load %sums[i, 3, t, o] : f32
          %s10 = loop.load %sums[i, 4, t, o] : f32
          %s11 = loop.load %sums[i, 5, t, o] : f32
          %s12 = loop.load %sums[i, 6, t, o] : f32
          %s13 = loop.load %sums[i, 7, t, o] : f32
          %s20 = loop.load %sums[i, 8, t, o] : f32
          %s21 = loop.load %sums[i, 9, t, o] : f32
          %s22 = loop.load %sums[i, 10, t, o] : f32
          %s23 = loop.load %sums[i, 11, t, o] : f32
          %s30 = loop.load %sums[i, 12, t, o] : f32
          %s31 = loop.load %sums[i, 13, t, o] : f32
          %s32 = loop.load %sums[i, 14, t, o] : f32
          %s33 = loop.load %sums[i, 15, t, o] : f32
          %g0 = arith.addf %s00, %s10 : f32
          %h00 = arith.addf %g0, %s20 : f32
          %k0 = arith.subf %s10, %s20 : f32
          %h10 = arith.subf %k0, %s30 : f32
          %g1 = arith.addf %s01, %s11 : f32
          %h01 = arith.addf %g1, %s21 : f32
          %k1 = arith.subf %s11, %s21 : f32
          %h11 = arith.subf %k1, %s31 : f32
          %g2 = arith.addf %s02, %s12 : f32
          %h02 = arith.addf %g2, %s22 : f32
          %k2 = arith.subf %s12, %s22 : f32
          %h12 = arith.subf %k2, %s32 : f32
          %g3 = arith.addf %s03, %s13 : f32
          %h03 = arith.addf %g3, %s23 : f32
          %k3 = arith.subf %s13, %s23 : f32
          %h13 = arith.subf %k3, %s33 : f32
          %p0 = arith.addf %h00, %h01 : f32
          %r00 = arith.addf %p0, %h02 : f32
          %q0 = arith.subf %h01, %h02 : f32
          %r01 = arith.subf %q0, %h03 : f32
          loop.store %r00, %result[i, 0, t, 0, o]
          loop.store %r01, %result[i, 0, t, 1, o]
          %p1 = arith.addf %h10, %h11 : f32
          %r10 = arith.addf %p1, %h12 : f32
          %q1 = arith.subf %h11, %h12 : f32
          %r11 = arith.subf %q1, %h13 : f32
          loop.store %r10, %result[i, 1, t, 0, o]
          loop.store %r11, %result[i, 1, t, 1, o]
        }
      }
    }
    loop.return %y : tensor<7x2x7x2x64xf32>
  }
}
