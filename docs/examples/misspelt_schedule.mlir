builtin.module {
  loop.kernel @k symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %y = loop.nest "relu" [i: parallel n] schedule [i thraeds] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      %zero = arith.constant 0.0 : f32
      %b = arith.maximumf %a, %zero : f32
      loop.yield none %b at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
  }
}
