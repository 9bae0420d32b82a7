// Split-K: eight rows by 64 columns are four tiles, too few for many threads, and 16,384 steps of depth. The depth is an
// axis of 16 parts, each a contraction of its own on a thread; a second nest adds the 16 partial results.
//
// The decomposition is in CUTLASS ("split-K") and, for any grid, in M. Osama et al.: Stream-K. PPoPP 2023.

builtin.module {
  loop.kernel @gemm symbols [] (%a: tensor<8x16384xf32>, %b: tensor<4x16384x16xf32>) -> (tensor<8x64xf32>) attributes {citation = {name = "split-k", version = "1", source = "CUTLASS; Osama et al., PPoPP 2023"}} {
    %parts = loop.nest "parts" [part: parallel 16, i: parallel 8, j: parallel 64, k: reduction 1024] schedule [part threads, j by 16, i by 4, product(i, j, k) tile [4, 1], i, j vector 8 unroll] -> tensor<16x8x64xf32> {
      %x = loop.read %a[i, k + 1024*part] : f32
      %y = loop.read %b[j floordiv 16, k + 1024*part, j mod 16] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [part, i, j]
    }
    %c = loop.nest "sum" [i: parallel 8, j: parallel 64, part: reduction 16] schedule [i, j by 64, part, j vector 8 unroll] -> tensor<8x64xf32> {
      %x = loop.read %parts[part, i, j] : f32
      loop.yield add %x at [i, j]
    }
    loop.return %c : tensor<8x64xf32>
  }
}
