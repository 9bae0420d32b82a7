builtin.module {
  loop.kernel @linear symbols [n] (%a: tensor<?x64xf32, #sym.dims<n, 64>>, %b: tensor<64x96xf32>, %c: tensor<96xf32>) -> (tensor<?x96xf32, #sym.dims<n, 96>>) {
    %p = loop.nest "matmul" [i: parallel n, j: parallel 96, k: reduction 64] schedule [j by 48 threads fuse "g", i by 6, i by 4 fuse "g", k, i, j vector 16] -> tensor<?x96xf32, #sym.dims<n, 96>> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %b[k, j] : f32
      %m = arith.mulf %x, %y : f32
      loop.yield add %m at [i, j]
    }
    %r = loop.nest "relu" [i: parallel n, j: parallel 96] schedule [j by 48 fuse "g", i by 4 fuse "g", i, j vector 16] -> tensor<?x96xf32, #sym.dims<n, 96>> {
      %x = loop.read %p[i, j] : f32
      %y = loop.read %c[j] : f32
      %s = arith.addf %x, %y : f32
      %zero = arith.constant 0.0 : f32
      %z = arith.maximumf %s, %zero : f32
      loop.yield none %z at [i, j]
    }
    loop.return %r : tensor<?x96xf32, #sym.dims<n, 96>>
  }
}
