loop.kernel @relu symbols [n] (%x: tensor<?x768xf32, #sym.dims<n, 768>>) -> (tensor<?x768xf32, #sym.dims<n, 768>>) {
  %y = loop.nest "relu" [i: parallel n, j: parallel 768] -> tensor<?x768xf32, #sym.dims<n, 768>> {
    %a = loop.read %x[i, j] : f32
    %z = arith.constant 0.0 : f32
    %b = arith.maximumf %a, %z : f32
    loop.yield none %b at [i, j]
  }
  loop.return %y : tensor<?x768xf32, #sym.dims<n, 768>>
}
