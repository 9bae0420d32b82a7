builtin.module {
  loop.kernel @relu symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
    %y = loop.nest "relu" [i: parallel n, j: parallel 8] -> tensor<?x8xf32, #sym.dims<n, 8>> {
      %a = loop.read %x[i, j] : f32
      %z = arith.constant 0.0 : f32
      %b = arith.maximumf %a, %z : f32
      loop.yield none %b at [i, j]
    }
    loop.return %y : tensor<?x8xf32, #sym.dims<n, 8>>
  }
}
