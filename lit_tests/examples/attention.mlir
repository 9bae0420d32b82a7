// RUN: igniter-opt %s -p lower-to-loops,fuse-loops,promote-buffers,tile-loops,sink-loops,parallelize-loops,vectorize-loops,plan-buffers | filecheck %s

// Attention for one head of 64, with an additive mask, for any number of queries and keys. Eight queries go through
// scores, softmax and the product with V while their scores are in cache: the score matrix is never in memory.

// CHECK:      loop.func @attention
// CHECK-SAME: outputs 1 scratch(
// The keys are transposed once, for all queries.
// CHECK:      %kt = loop.alloc "kt" offset 0 : memref<64x?xf32, #sym.dims<64, t>, "scratch">
// CHECK:      loop.for i = 0 to (s floordiv 8) threads(
// Eight rows of scores are the whole of the score matrix that a task holds.
// CHECK:      loop.alloc "scores" offset {{.*}} : memref<8x?xf32, #sym.dims<8, t>, "scratch">
// CHECK:      memref<8x48xf32, "register">
// CHECK:      memref<8x64xf32, "register">

builtin.module {
  loop.kernel @attention symbols [s, t] (%q: tensor<?x64xf32, #sym.dims<s, 64>>, %k: tensor<?x64xf32, #sym.dims<t, 64>>, %v: tensor<?x64xf32, #sym.dims<t, 64>>, %mask: tensor<?xf32, #sym.dims<t>>) -> (tensor<?x64xf32, #sym.dims<s, 64>>) {
    %kt = loop.nest "kt" [d: parallel 64, j: parallel t] schedule [j threads, d vector 16] -> tensor<64x?xf32, #sym.dims<64, t>> {
      %a = loop.read %k[j, d] : f32
      loop.yield none %a at [d, j]
    }
    %scores = loop.nest "scores" [i: parallel s, j: parallel t, d: reduction 64] schedule [i by 8 tail peel threads fuse "rows", j by 48 tail rest, d, i unroll, j vector 16 unroll] -> tensor<?x?xf32, #sym.dims<s, t>> {
      %a = loop.read %q[i, d] : f32
      %b = loop.read %kt[d, j] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [i, j]
    }
    %max = loop.nest "max" [i: parallel s, j: reduction t] schedule [i fuse "rows", j vector 16 accumulators 4] -> tensor<?xf32, #sym.dims<s>> {
      %a = loop.read %scores[i, j] : f32
      %scale = arith.constant 0.125 : f32
      %m = loop.read %mask[j] : f32
      %b = arith.mulf %a, %scale : f32
      %c = arith.addf %b, %m : f32
      loop.yield max %c at [i]
    }
    %e = loop.nest "exp" [i: parallel s, j: parallel t] schedule [i fuse "rows", j vector 16] -> tensor<?x?xf32, #sym.dims<s, t>> {
      %a = loop.read %scores[i, j] : f32
      %scale = arith.constant 0.125 : f32
      %m = loop.read %mask[j] : f32
      %b = arith.mulf %a, %scale : f32
      %c = arith.addf %b, %m : f32
      %x = loop.read %max[i] : f32
      %f = arith.subf %c, %x : f32
      %g = math.exp %f : f32
      loop.yield none %g at [i, j]
    }
    %sum = loop.nest "sum" [i: parallel s, j: reduction t] schedule [i fuse "rows", j vector 16 accumulators 4] -> tensor<?xf32, #sym.dims<s>> {
      %a = loop.read %e[i, j] : f32
      loop.yield add %a at [i]
    }
    %o = loop.nest "o" [i: parallel s, d: parallel 64, j: reduction t] schedule [i fuse "rows", d by 64 tail mask fuse "out", j, d vector 16 unroll] -> tensor<?x64xf32, #sym.dims<s, 64>> {
      %a = loop.read %e[i, j] : f32
      %b = loop.read %v[j, d] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [i, d]
    }
    %y = loop.nest "scale" [i: parallel s, d: parallel 64] schedule [i fuse "rows", d fuse "out"] -> tensor<?x64xf32, #sym.dims<s, 64>> {
      %a = loop.read %o[i, d] : f32
      %b = loop.read %sum[i] : f32
      %c = arith.divf %a, %b : f32
      loop.yield none %c at [i, d]
    }
    loop.return %y : tensor<?x64xf32, #sym.dims<s, 64>>
  }
}
