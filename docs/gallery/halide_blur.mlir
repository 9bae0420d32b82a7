// Halide's blur: the mean of 3 columns, then of 3 rows. Strips of 512 columns are shared out to threads. A strip computes
// a row of the first stage when the second stage first needs it, and keeps it for the two rows below (a sliding window).
// So the intermediate image is never in memory, and nothing is computed twice.
//
// J. Ragan-Kelley et al.: Halide: A Language and Compiler for Optimizing Parallelism, Locality, and Recomputation in Image
// Processing Pipelines. PLDI 2013.

builtin.module {
  loop.kernel @blur symbols [h, w] (%image: tensor<?x?xf32, #sym.dims<h + 2, w + 2>>) -> (tensor<?x?xf32, #sym.dims<h, w>>) attributes {citation = {name = "halide-blur", version = "1", source = "Ragan-Kelley et al., PLDI 2013"}} {
    %bx = loop.nest "blur_x" [y: parallel h + 2, x: parallel w] schedule [x by 512 threads fuse "strips", y slide "rows", x vector 8] -> tensor<?x?xf32, #sym.dims<h + 2, w>> {
      %a = loop.read %image[y, x] : f32
      %b = loop.read %image[y, x + 1] : f32
      %c = loop.read %image[y, x + 2] : f32
      %d = arith.addf %a, %b : f32
      %e = arith.addf %d, %c : f32
      %third = arith.constant 0.333333343 : f32
      %f = arith.mulf %e, %third : f32
      loop.yield none %f at [y, x]
    }
    %by = loop.nest "blur_y" [y: parallel h, x: parallel w] schedule [x by 512 threads fuse "strips", y slide "rows", x vector 8] -> tensor<?x?xf32, #sym.dims<h, w>> {
      %a = loop.read %bx[y, x] : f32
      %b = loop.read %bx[y + 1, x] : f32
      %c = loop.read %bx[y + 2, x] : f32
      %d = arith.addf %a, %b : f32
      %e = arith.addf %d, %c : f32
      %third = arith.constant 0.333333343 : f32
      %f = arith.mulf %e, %third : f32
      loop.yield none %f at [y, x]
    }
    loop.return %by : tensor<?x?xf32, #sym.dims<h, w>>
  }
}
