// RUN: igniter-opt %s -p lower-to-loops,fuse-loops,promote-buffers,tile-loops,sink-loops,parallelize-loops,vectorize-loops,unroll-loops,plan-buffers | filecheck %s

// The loops of GotoBLAS and BLIS around a micro-kernel: columns in blocks for the third-level cache, the depth in blocks
// whose panels stay in the second, rows in blocks, and tiles of 8 rows by 3 panels. What a block of the depth sums is
// added to the result; the first one writes it.

// CHECK:      loop.func @gemm
// CHECK:      loop.for j = 0 to 3 {
// CHECK-NEXT:   loop.for k = 0 to 16 reduction {
// CHECK-NEXT:     loop.for ij1 = 0 to 11*min(-32*j + 86, 32) threads(max(((11*min(-32*j + 86, 32) + 63) floordiv 64), 1)) {
// CHECK:            loop.tile_product
// CHECK:            loop.if [-256*k] {
// CHECK-NEXT:         loop.store
// CHECK:            loop.if [256*k - 1] {
// CHECK-NEXT:         loop.accumulate add

builtin.module {
  loop.kernel @gemm symbols [] (%a: tensor<1000x4096xf32>, %b: tensor<256x4096x16xf32>) -> (tensor<1000x4096xf32>) {
    %c = loop.nest "matmul" [i: parallel 1000, j: parallel 4096, k: reduction 4096] schedule [j by 1536, k by 256 into result, i by 96 threads, j by 48, i by 8, product(i, j, k) tile [8, 3], i, j vector 16] -> tensor<1000x4096xf32> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %b[j floordiv 16, k, j mod 16] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<1000x4096xf32>
  }
}
