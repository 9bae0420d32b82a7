// RUN: igniter-opt %s -p "collapse-axes,choose-schedule" | filecheck %s
// RUN: igniter-opt %s -p "collapse-axes,choose-schedule,lower-to-loops,fuse-loops,promote-buffers" | filecheck %s --check-prefix=LOOPS
// RUN: sed 's/42/48/g' %s | igniter-opt -p "collapse-axes,choose-schedule,lower-to-loops,fuse-loops,promote-buffers" | filecheck %s --check-prefix=FULL
// RUN: igniter-opt %s -p "collapse-axes,choose-schedule" --emit=none --remarks 2>&1 | filecheck %s --check-prefix=REMARKS

// REMARKS:     remark: collapse-axes: 'points' missed: i and j stay apart: 'input', whose loops 'points' may share, has both i and j
// REMARKS:     remark: choose-schedule: 'input' applied: scheduled with 'points', 'output', 'image': tiles are formed, multiplied and split up band by band

// A procedure, a contraction with a weight for each of two points, and a procedure share the loops over bands. What reads
// the results of tiles goes over blocks of them: 16 rows are a band, 4 of those a tile. `collapse-axes` keeps the axes of
// bands apart that both procedures have.

// CHECK:      loop.procedure "input" [i: parallel 3, j: parallel 2] schedule [i threads fuse "b0", j fuse "b0", c vector 16]
// CHECK:      loop.nest "points" [i: parallel 3, j: parallel 2, p: parallel 2, t: parallel 4, o: parallel 32, c: reduction 64] schedule [i threads fuse "b0", j fuse "b0", p, o by 32, t by 4, product(t, o, c) tile [4, 2], t, o vector 16 unroll]
// CHECK:      loop.procedure "output" [i: parallel 3, j: parallel 2, t: parallel 4] schedule [i threads fuse "b0", j fuse "b0", t fuse "b0", o vector 16]
// CHECK:      loop.nest "image" [h: parallel 42, w: parallel 2, o: parallel 32] schedule [h by 16 threads fuse "b0", w fuse "b0", h by 4 fuse "b0", h, o vector 16]

// The tiles and the products of a band are as large as a band. So are the results of its tiles here: the last band has
// tiles outside of the image, which nobody writes, and fewer rounds of a loop than there are tiles do not fuse.

// LOOPS:      loop.for i = 0 to 3 schedule [threads] {
// LOOPS-NEXT:   loop.for j = 0 to 2 {
// LOOPS-NEXT:     %{{.*}} = loop.alloc "output" : memref<4x4x32xf32, "local">
// LOOPS-NEXT:     %{{.*}} = loop.alloc "points" : memref<2x4x32xf32, "local">
// LOOPS-NEXT:     %{{.*}} = loop.alloc "input" : memref<2x4x64xf32, "local">
// LOOPS:          loop.for p = 0 to 2 {
// LOOPS:            loop.tile_product %{{.*}} = %{{.*}}[p, r + 4*t, k1] * %w[p, 2*o + p1, k1, l]
// LOOPS:          loop.for t2 = 0 to 4 {
// LOOPS:          loop.for h1 = 0 to min(-4*i + 11, 4) {
// LOOPS-NEXT:       loop.for h2 = 0 to min(-4*h1 - 16*i + 42, 4) {
// LOOPS-NOT:  schedule [threads]

// An image that is full of tiles has the results of one tile at a time.

// FULL:      loop.for t2 = 0 to 4 {
// FULL-NEXT:   %{{.*}} = loop.alloc "output" : memref<4x32xf32, "local">
// FULL:        loop.for h
// FULL-NOT:  loop.for t
builtin.module {
  loop.kernel @bands symbols [] (%x: tensor<12x2x64xf32>, %w: tensor<2x2x64x16xf32>) -> (tensor<42x2x32xf32>) {
    %v = loop.procedure "input" [i: parallel 3, j: parallel 2] (%s = %x) -> (%made : tensor<3x2x2x4x64xf32>) {
      loop.for k = 0 to 4 {
        loop.for c = 0 to 64 {
          %a = loop.load %s[4*i + k, j, c] : f32
          %b = arith.addf %a, %a : f32
          loop.store %a, %made[i, j, 0, k, c]
          loop.store %b, %made[i, j, 1, k, c]
        }
      }
    }
    %m = loop.nest "points" [i: parallel 3, j: parallel 2, p: parallel 2, t: parallel 4, o: parallel 32, c: reduction 64] -> tensor<3x2x2x4x32xf32> {
      %a = loop.read %v[i, j, p, t, c] : f32
      %b = loop.read %w[p, o floordiv 16, c, o mod 16] : f32
      %e = arith.mulf %a, %b : f32
      loop.yield add %e at [i, j, p, t, o]
    }
    %r = loop.procedure "output" [i: parallel 3, j: parallel 2, t: parallel 4] (%s = %m) -> (%made : tensor<3x2x4x4x32xf32>) {
      loop.for o = 0 to 32 {
        %a = loop.load %s[i, j, 0, t, o] : f32
        %b = loop.load %s[i, j, 1, t, o] : f32
        %c = arith.addf %a, %b : f32
        %d = arith.subf %a, %b : f32
        loop.store %a, %made[i, j, t, 0, o]
        loop.store %b, %made[i, j, t, 1, o]
        loop.store %c, %made[i, j, t, 2, o]
        loop.store %d, %made[i, j, t, 3, o]
      }
    }
    %y = loop.nest "image" [h: parallel 42, w: parallel 2, o: parallel 32] -> tensor<42x2x32xf32> {
      %a = loop.read %r[h floordiv 16, w, (h floordiv 4) mod 4, h mod 4, o] : f32
      %b = math.tanh %a : f32
      loop.yield none %b at [h, w, o]
    }
    loop.return %y : tensor<42x2x32xf32>
  }
}
