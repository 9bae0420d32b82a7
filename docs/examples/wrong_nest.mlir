loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield none %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}
