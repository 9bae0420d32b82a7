builtin.module {
  loop.kernel @distances symbols [n] (%points: tensor<?x40xf32, #sym.dims<n, 40>>, %centres: tensor<40x64xf32>) -> (tensor<?x64xf32, #sym.dims<n, 64>>) {
    %s = loop.nest "distance" [i: parallel n, j: parallel 64, k: reduction 40] schedule [i by 6 threads, j by 32, product(i, j, k) tile [6, 2] by "f32", i, j vector 16] -> tensor<?x64xf32, #sym.dims<n, 64>> {
      %x = loop.read %points[i, k] : f32
      %y = loop.read %centres[k, j] : f32
      %d = arith.subf %x, %y : f32
      %q = arith.mulf %d, %d : f32
      loop.yield add %q at [i, j]
    }
    loop.return %s : tensor<?x64xf32, #sym.dims<n, 64>>
  }
}
