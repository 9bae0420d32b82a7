// RUN: igniter-opt %s -p "split-reductions{nest=matmul axis=k parts=16},choose-schedule" | filecheck %s

// Split-K: 8 rows by 64 columns are 4 tiles, too few for threads, and 16,384 steps of depth. Sixteen parts of it are
// sixteen times as many tiles, and each part is still a contraction that micro-kernels compute.

// CHECK: loop.nest "matmul.parts" [part: parallel 16, i: parallel 8, j: parallel 64, k: reduction 1024] schedule [part threads fuse "g0", j by {{.*}}, i by {{.*}}, product(i, j, k)
// CHECK: loop.nest "matmul" [i: parallel 8, j: parallel 64, part: reduction 16]

builtin.module {
  loop.kernel @gemm symbols [] (%a: tensor<8x16384xf32>, %b: tensor<4x16384x16xf32>) -> (tensor<8x64xf32>) {
    %c = loop.nest "matmul" [i: parallel 8, j: parallel 64, k: reduction 16384] -> tensor<8x64xf32> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %b[j floordiv 16, k, j mod 16] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<8x64xf32>
  }
}
