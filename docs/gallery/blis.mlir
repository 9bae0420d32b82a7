// BLIS: five loops around a micro-kernel. The blocks of columns (j by 768) hold panels of B for the last-level cache, the
// blocks of depth (k by 256) panels for the second level, and the blocks of rows (i by 96) are shared out to threads.
// B is packed into panels once per block of columns and depth, right before the blocks of rows use it.
//
// F. G. Van Zee, R. A. van de Geijn: BLIS: A Framework for Rapidly Instantiating BLAS Functionality. ACM TOMS 41(3), 2015.

builtin.module {
  loop.kernel @gemm symbols [m] (%a: tensor<?x768xf32, #sym.dims<m, 768>>, %b: tensor<768x3072xf32>) -> (tensor<?x3072xf32, #sym.dims<m, 3072>>) attributes {citation = {name = "blis", version = "1", source = "Van Zee and van de Geijn, ACM TOMS 41(3), 2015"}} {
    %panels = loop.nest "panels" [p: parallel 192, k: parallel 768, l: parallel 16] schedule [p by 48 fuse "columns", k by 256 fuse "depth", p threads, k, l vector 8] -> tensor<192x768x16xf32> {
      %x = loop.read %b[k, 16*p + l] : f32
      loop.yield none %x at [p, k, l]
    }
    %c = loop.nest "matmul" [i: parallel m, j: parallel 3072, k: reduction 768] schedule [j by 768 fuse "columns", k by 256 fuse "depth" into result, i by 96 threads, j by 16, i by 6, product(i, j, k) tile [6, 1], i, j vector 8 unroll] -> tensor<?x3072xf32, #sym.dims<m, 3072>> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %panels[j floordiv 16, k, j mod 16] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x3072xf32, #sym.dims<m, 3072>>
  }
}
