// GotoBLAS for a small cache: a block of B, 64 steps of depth by 192 columns (48 KiB), stays in a cache of 64 KiB while
// all rows of A pass by it. The sums of a block of depth are added to the result, so the depth is the outer loop of the
// rows. B arrives packed in panels of 16 columns.
//
// K. Goto, R. A. van de Geijn: Anatomy of High-Performance Matrix Multiplication. ACM TOMS 34(3), 2008.

builtin.module {
  loop.kernel @gemm symbols [m] (%a: tensor<?x512xf32, #sym.dims<m, 512>>, %b: tensor<48x512x16xf32>) -> (tensor<?x768xf32, #sym.dims<m, 768>>) attributes {citation = {name = "gotoblas-small-cache", version = "1", source = "Goto and van de Geijn, ACM TOMS 34(3), 2008"}} {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 768, k: reduction 512] schedule [j by 192 threads, k by 64 into result, i by 6, j by 16, product(i, j, k) tile [6, 1], i, j vector 8 unroll] -> tensor<?x768xf32, #sym.dims<m, 768>> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %b[j floordiv 16, k, j mod 16] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x768xf32, #sym.dims<m, 768>>
  }
}
