// RUN: igniter-opt %s -p lower-to-loops,fuse-loops,promote-buffers,tile-loops,sink-loops,parallelize-loops,vectorize-loops,unroll-loops,plan-buffers | filecheck %s

// A GEMM with a constant operand packed in panels of 48 columns, bias and Gelu in the epilogue. The register tile is
// 8 rows by 3 vectors: 24 accumulators, 3 vectors of the panel and one broadcast are 28 of AVX-512's 32 registers.

// CHECK:      loop.func @gemm
// CHECK-SAME: outputs 1 scratch(0)
// CHECK:      loop.for ji = 0 to 1024 threads(
// CHECK-NEXT:   loop.alloc "matmul" : memref<8x48xf32, "register">
// CHECK:        loop.for k = 0 to 768 reduction {
// CHECK-COUNT-24: loop.accumulate add
// CHECK-NOT:      loop.accumulate
// CHECK:        }
// CHECK:        math.erf {{.*}} : vector<16xf32>

builtin.module {
  loop.kernel @gemm symbols [] (%a: tensor<128x768xf32>, %b: tensor<64x768x48xf32>, %bias: tensor<3072xf32>) -> (tensor<128x3072xf32>) {
    %c = loop.nest "matmul" [i: parallel 128, j: parallel 3072, k: reduction 768] schedule [j by 48 tail mask threads fuse "g", i by 8 tail mask fuse "g", k, i unroll, j vector 16 unroll] -> tensor<128x3072xf32> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %b[j floordiv 48, k, j mod 48] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [i, j]
    }
    %o = loop.nest "gelu" [i: parallel 128, j: parallel 3072] schedule [j fuse "g", i fuse "g"] -> tensor<128x3072xf32> {
      %x = loop.read %c[i, j] : f32
      %y = loop.read %bias[j] : f32
      %s = arith.addf %x, %y : f32
      %half = arith.constant 0.5 : f32
      %one = arith.constant 1.0 : f32
      %r = arith.constant 0.70710678 : f32
      %t = arith.mulf %s, %r : f32
      %e = math.erf %t : f32
      %f = arith.addf %e, %one : f32
      %g = arith.mulf %s, %f : f32
      %h = arith.mulf %g, %half : f32
      loop.yield none %h at [i, j]
    }
    loop.return %o : tensor<128x3072xf32>
  }
}
