// A weight-stationary tile, as in a systolic array: a tile of the weights, 4 steps of depth by 16 columns, stays in
// registers while all rows of A stream through it, and partial sums leave to memory after every tile. The other schedules
// of products here keep the sums in registers and stream the weights.
//
// H. T. Kung, C. E. Leiserson: Systolic Arrays (for VLSI). 1979. N. P. Jouppi et al.: In-Datacenter Performance Analysis
// of a Tensor Processing Unit. ISCA 2017.

builtin.module {
  loop.kernel @gemm symbols [m] (%a: tensor<?x64xf32, #sym.dims<m, 64>>, %b: tensor<64x64xf32>) -> (tensor<?x64xf32, #sym.dims<m, 64>>) attributes {citation = {name = "systolic-tile", version = "1", source = "Kung and Leiserson, 1979; Jouppi et al., ISCA 2017"}} {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 64, k: reduction 64] schedule [j by 16 threads, k by 4 into result, i, j vector 8, k unroll] -> tensor<?x64xf32, #sym.dims<m, 64>> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %b[k, j] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x64xf32, #sym.dims<m, 64>>
  }
}
