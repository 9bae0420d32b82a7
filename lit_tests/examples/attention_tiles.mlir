// RUN: igniter-opt %s -p cpu-schedule | filecheck %s

// Attention as it is lowered, without a schedule: two heads of 64, a mask, any number of queries and keys. The pipeline
// packs the keys into panels, and gives every task blocks of eight queries: their scores, the softmax of these and the
// product with the values. The scores are eight rows of an arena that a task has; the matrix of all of them is nowhere.

// CHECK:      loop.func @attention symbols [s, t]
// CHECK:        loop.alloc "scores.pack" offset 0 : memref<2x?x64x16xf32, #sym.dims<2, ((t + 15) floordiv 16), 64, 16>, "scratch">
// CHECK:        loop.for h1i = 0 to 2*((s + 7) floordiv 8) threads(
// CHECK:          memref<8x?xf32, #sym.dims<8, t>, "scratch">
// CHECK:          loop.tile_product {{.*}} tile [8, 3]
// CHECK:          loop.reduce_lanes max
// CHECK:          math.exp {{.*}} : vector<16xf32>
// CHECK:          loop.tile_product {{.*}} k{{[0-9_]*}} = t tile [8, 2]
// CHECK-NOT:      loop.tile_product

builtin.module {
  loop.kernel @attention symbols [s, t] (%q: tensor<2x?x64xf32, #sym.dims<2, s, 64>>, %k: tensor<2x?x64xf32, #sym.dims<2, t, 64>>, %v: tensor<2x?x64xf32, #sym.dims<2, t, 64>>, %mask: tensor<?xf32, #sym.dims<t>>) -> (tensor<2x?x64xf32, #sym.dims<2, s, 64>>) {
    %scores = loop.nest "scores" [h: parallel 2, i: parallel s, j: parallel t, d: reduction 64] -> tensor<2x?x?xf32, #sym.dims<2, s, t>> {
      %a = loop.read %q[h, i, d] : f32
      %b = loop.read %k[h, j, d] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [h, i, j]
    }
    %masked = loop.nest "mask" [h: parallel 2, i: parallel s, j: parallel t] -> tensor<2x?x?xf32, #sym.dims<2, s, t>> {
      %a = loop.read %scores[h, i, j] : f32
      %scale = arith.constant 0.125 : f32
      %m = loop.read %mask[j] : f32
      %b = arith.mulf %a, %scale : f32
      %c = arith.addf %b, %m : f32
      loop.yield none %c at [h, i, j]
    }
    %max = loop.nest "max" [h: parallel 2, i: parallel s, j: reduction t] -> tensor<2x?xf32, #sym.dims<2, s>> {
      %a = loop.read %masked[h, i, j] : f32
      loop.yield max %a at [h, i]
    }
    %e = loop.nest "exp" [h: parallel 2, i: parallel s, j: parallel t] -> tensor<2x?x?xf32, #sym.dims<2, s, t>> {
      %a = loop.read %masked[h, i, j] : f32
      %x = loop.read %max[h, i] : f32
      %f = arith.subf %a, %x : f32
      %g = math.exp %f : f32
      loop.yield none %g at [h, i, j]
    }
    %sum = loop.nest "sum" [h: parallel 2, i: parallel s, j: reduction t] -> tensor<2x?xf32, #sym.dims<2, s>> {
      %a = loop.read %e[h, i, j] : f32
      loop.yield add %a at [h, i]
    }
    %w = loop.nest "weights" [h: parallel 2, i: parallel s, j: parallel t] -> tensor<2x?x?xf32, #sym.dims<2, s, t>> {
      %a = loop.read %e[h, i, j] : f32
      %b = loop.read %sum[h, i] : f32
      %c = arith.divf %a, %b : f32
      loop.yield none %c at [h, i, j]
    }
    %o = loop.nest "values" [h: parallel 2, i: parallel s, d: parallel 64, j: reduction t] -> tensor<2x?x64xf32, #sym.dims<2, s, 64>> {
      %a = loop.read %w[h, i, j] : f32
      %b = loop.read %v[h, j, d] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [h, i, d]
    }
    loop.return %o : tensor<2x?x64xf32, #sym.dims<2, s, 64>>
  }
}
