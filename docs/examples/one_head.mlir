builtin.module {
  loop.kernel @attention symbols [s, t] (%q: tensor<?x64xf32, #sym.dims<s, 64>>, %k: tensor<?x64xf32, #sym.dims<t, 64>>, %v: tensor<?x64xf32, #sym.dims<t, 64>>) -> (tensor<?x64xf32, #sym.dims<s, 64>>) {
    %scores = loop.nest "scores" [i: parallel s, j: parallel t, d: reduction 64] -> tensor<?x?xf32, #sym.dims<s, t>> {
      %a = loop.read %q[i, d] : f32
      %b = loop.read %k[j, d] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [i, j]
    }
    %scaled = loop.nest "scaled" [i: parallel s, j: parallel t] -> tensor<?x?xf32, #sym.dims<s, t>> {
      %a = loop.read %scores[i, j] : f32
      %scale = arith.constant 0.125 : f32
      %b = arith.mulf %a, %scale : f32
      loop.yield none %b at [i, j]
    }
    %max = loop.nest "max" [i: parallel s, j: reduction t] -> tensor<?xf32, #sym.dims<s>> {
      %a = loop.read %scaled[i, j] : f32
      loop.yield max %a at [i]
    }
    %e = loop.nest "exp" [i: parallel s, j: parallel t] -> tensor<?x?xf32, #sym.dims<s, t>> {
      %a = loop.read %scaled[i, j] : f32
      %x = loop.read %max[i] : f32
      %f = arith.subf %a, %x : f32
      %g = math.exp %f : f32
      loop.yield none %g at [i, j]
    }
    %sum = loop.nest "sum" [i: parallel s, j: reduction t] -> tensor<?xf32, #sym.dims<s>> {
      %a = loop.read %e[i, j] : f32
      loop.yield add %a at [i]
    }
    %o = loop.nest "values" [i: parallel s, d: parallel 64, j: reduction t] -> tensor<?x64xf32, #sym.dims<s, 64>> {
      %a = loop.read %e[i, j] : f32
      %b = loop.read %v[j, d] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [i, d]
    }
    %y = loop.nest "scale" [i: parallel s, d: parallel 64] -> tensor<?x64xf32, #sym.dims<s, 64>> {
      %a = loop.read %o[i, d] : f32
      %b = loop.read %sum[i] : f32
      %c = arith.divf %a, %b : f32
      loop.yield none %c at [i, d]
    }
    loop.return %y : tensor<?x64xf32, #sym.dims<s, 64>>
  }
}
