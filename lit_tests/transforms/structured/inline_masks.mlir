// RUN: igniter-opt %s -p inline-masks --split-input-file | filecheck %s

// A mask of positions becomes a comparison in the attention; a mask that is data, or that something else than attention
// reads, stays.

// CHECK-LABEL: loop.kernel @head
// CHECK-NOT:     loop.nest "causal"
// CHECK:         loop.nest "data"
// CHECK:         loop.nest "mask" [i: parallel s, j: parallel t]
// CHECK:           loop.index
// CHECK:           arith.cmpi sgt
// CHECK:           arith.select
// CHECK:         loop.nest "alone"
loop.kernel @head symbols [s, t] (%q: tensor<?x16xf32, #sym.dims<s, 16>>, %k: tensor<?x16xf32, #sym.dims<t, 16>>, %v: tensor<?x16xf32, #sym.dims<t, 16>>, %pad: tensor<?xi1, #sym.dims<t>>) -> (tensor<?x16xf32, #sym.dims<s, 16>>, tensor<?x?xf32, #sym.dims<s, t>>) {
  %scores = loop.nest "scores" [i: parallel s, j: parallel t, d: reduction 16] -> tensor<?x?xf32, #sym.dims<s, t>> {
    %a = loop.read %q[i, d] : f32
    %b = loop.read %k[j, d] : f32
    %p = arith.mulf %a, %b : f32
    loop.yield add %p at [i, j]
  }
  %causal = loop.nest "causal" [i: parallel s, j: parallel t] -> tensor<?x?xi1, #sym.dims<s, t>> {
    %a = loop.index j - i : i64
    %z = arith.constant 0 : i64
    %c = arith.cmpi sgt, %a, %z : i64
    loop.yield none %c at [i, j]
  }
  %data = loop.nest "data" [i: parallel s, j: parallel t] -> tensor<?x?xi1, #sym.dims<s, t>> {
    %a = loop.read %pad[j] : i1
    %n = arith.constant true
    %c = arith.xori %a, %n : i1
    loop.yield none %c at [i, j]
  }
  %masked = loop.nest "mask" [i: parallel s, j: parallel t] -> tensor<?x?xf32, #sym.dims<s, t>> {
    %x = loop.read %scores[i, j] : f32
    %c = loop.read %causal[i, j] : i1
    %e = loop.read %data[i, j] : i1
    %n = arith.constant 0xFF800000 : f32
    %y = arith.select %c, %n, %x : f32
    %w = arith.select %e, %n, %y : f32
    loop.yield none %w at [i, j]
  }
  %max = loop.nest "max" [i: parallel s, j: reduction t] -> tensor<?x1xf32, #sym.dims<s, 1>> {
    %x = loop.read %masked[i, j] : f32
    loop.yield max %x at [i, 0]
  }
  %e = loop.nest "exp" [i: parallel s, j: parallel t] -> tensor<?x?xf32, #sym.dims<s, t>> {
    %x = loop.read %masked[i, j] : f32
    %m = loop.read %max[i, 0] : f32
    %z = arith.subf %x, %m : f32
    %y = math.exp %z : f32
    loop.yield none %y at [i, j]
  }
  %sum = loop.nest "sum" [i: parallel s, j: reduction t] -> tensor<?x1xf32, #sym.dims<s, 1>> {
    %x = loop.read %e[i, j] : f32
    loop.yield add %x at [i, 0]
  }
  %w = loop.nest "softmax" [i: parallel s, j: parallel t] -> tensor<?x?xf32, #sym.dims<s, t>> {
    %x = loop.read %e[i, j] : f32
    %l = loop.read %sum[i, 0] : f32
    %y = arith.divf %x, %l : f32
    loop.yield none %y at [i, j]
  }
  %o = loop.nest "values" [i: parallel s, f: parallel 16, j: reduction t] -> tensor<?x16xf32, #sym.dims<s, 16>> {
    %x = loop.read %w[i, j] : f32
    %y = loop.read %v[j, f] : f32
    %p = arith.mulf %x, %y : f32
    loop.yield add %p at [i, f]
  }
  %alone = loop.nest "alone" [i: parallel s, j: parallel t] -> tensor<?x?xf32, #sym.dims<s, t>> {
    %a = loop.index j - i : i64
    %f = arith.sitofp %a : i64 to f32
    loop.yield none %f at [i, j]
  }
  loop.return %o, %alone : tensor<?x16xf32, #sym.dims<s, 16>>, tensor<?x?xf32, #sym.dims<s, t>>
}
