// RUN: igniter-opt %s -p "collapse-axes,choose-schedule" | filecheck %s
// RUN: igniter-opt %s -p "collapse-axes,choose-schedule,lower-to-loops,fuse-loops" --check-each --emit=none

// What reads the tiles of two convolutions could go with the bands of either: it goes with the last, whose tiles are made
// when the others are whole.

// CHECK:      loop.procedure "output" {{.*}} schedule [i threads fuse "b0", j fuse "b0", t fuse "b0", o vector 16]
// CHECK:      loop.procedure "output2" {{.*}} schedule [i threads fuse "b1", j fuse "b1", t fuse "b1", o vector 16]
// CHECK:      loop.nest "image" [h: parallel 42, w: parallel 2, o: parallel 32] schedule [h by 16 threads fuse "b1", w fuse "b1", h by 4 fuse "b1", h, o vector 16]
builtin.module {
  loop.kernel @joined symbols [] (%x: tensor<12x2x64xf32>, %z: tensor<12x2x64xf32>, %w: tensor<2x2x64x16xf32>) -> (tensor<42x2x32xf32>) {
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
    %v2 = loop.procedure "input2" [i: parallel 3, j: parallel 2] (%s = %z) -> (%made : tensor<3x2x2x4x64xf32>) {
      loop.for k = 0 to 4 {
        loop.for c = 0 to 64 {
          %a = loop.load %s[4*i + k, j, c] : f32
          %b = arith.addf %a, %a : f32
          loop.store %a, %made[i, j, 0, k, c]
          loop.store %b, %made[i, j, 1, k, c]
        }
      }
    }
    %m2 = loop.nest "points2" [i: parallel 3, j: parallel 2, p: parallel 2, t: parallel 4, o: parallel 32, c: reduction 64] -> tensor<3x2x2x4x32xf32> {
      %a = loop.read %v2[i, j, p, t, c] : f32
      %b = loop.read %w[p, o floordiv 16, c, o mod 16] : f32
      %e = arith.mulf %a, %b : f32
      loop.yield add %e at [i, j, p, t, o]
    }
    %r2 = loop.procedure "output2" [i: parallel 3, j: parallel 2, t: parallel 4] (%s = %m2) -> (%made : tensor<3x2x4x4x32xf32>) {
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
      %b = loop.read %r2[h floordiv 16, w, (h floordiv 4) mod 4, h mod 4, o] : f32
      %c = arith.addf %a, %b : f32
      loop.yield none %c at [h, w, o]
    }
    loop.return %y : tensor<42x2x32xf32>
  }
}
