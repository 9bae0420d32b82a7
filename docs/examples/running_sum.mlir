loop.kernel @cumsum symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
  %y = loop.procedure "cumsum" [i: parallel n] (%a = %x) -> (%o : tensor<?x8xf32, #sym.dims<n, 8>>) {
    %sum = loop.alloc "sum" : memref<f32, "register">
    %zero = arith.constant 0.0 : f32
    loop.store %zero, %sum[]
    loop.for k = 0 to 8 sequential {
      %v = loop.load %a[i, k] : f32
      loop.accumulate add %v, %sum[]
      %s = loop.load %sum[] : f32
      loop.store %s, %o[i, k]
    }
  }
  loop.return %y : tensor<?x8xf32, #sym.dims<n, 8>>
}
