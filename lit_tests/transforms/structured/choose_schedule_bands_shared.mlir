// RUN: igniter-opt %s -p "choose-schedule" --target x86-64-v4 | filecheck %s
// RUN: igniter-opt %s -p "choose-schedule" --target x86-64-v4 --sizes n=8 | filecheck %s --check-prefix=MANY

// An image is one band, and their number is symbolic: a batch of one would be a single task. Each stage has its own tasks
// instead, unless there are typically more images.

// CHECK:      loop.procedure "input" [i: parallel n] schedule [i threads, c vector 16]
// CHECK:      loop.nest "points" {{.*}} schedule [i threads, p, o by 32, t by 4, product(t, o, c)
// CHECK:      loop.procedure "output" [i: parallel n, t: parallel 4] schedule [i threads fuse "b0", t fuse "b0", o vector 16]
// MANY:       loop.procedure "input" [i: parallel n] schedule [i threads fuse "b0", c vector 16]
// MANY:       loop.nest "points" {{.*}} schedule [i threads fuse "b0", p, o by 32, t by 4, product(t, o, c)
builtin.module {
  loop.kernel @bands symbols [n] (%x: tensor<?x4x64xf32, #sym.dims<n, 4, 64>>, %w: tensor<2x2x64x16xf32>) -> (tensor<?x16x32xf32, #sym.dims<n, 16, 32>>) {
    %v = loop.procedure "input" [i: parallel n] (%s = %x) -> (%made : tensor<?x2x4x64xf32, #sym.dims<n, 2, 4, 64>>) {
      loop.for k = 0 to 4 {
        loop.for c = 0 to 64 {
          %a = loop.load %s[i, k, c] : f32
          %b = arith.addf %a, %a : f32
          loop.store %a, %made[i, 0, k, c]
          loop.store %b, %made[i, 1, k, c]
        }
      }
    }
    %m = loop.nest "points" [i: parallel n, p: parallel 2, t: parallel 4, o: parallel 32, c: reduction 64] -> tensor<?x2x4x32xf32, #sym.dims<n, 2, 4, 32>> {
      %a = loop.read %v[i, p, t, c] : f32
      %b = loop.read %w[p, o floordiv 16, c, o mod 16] : f32
      %e = arith.mulf %a, %b : f32
      loop.yield add %e at [i, p, t, o]
    }
    %r = loop.procedure "output" [i: parallel n, t: parallel 4] (%s = %m) -> (%made : tensor<?x4x4x32xf32, #sym.dims<n, 4, 4, 32>>) {
      loop.for o = 0 to 32 {
        %a = loop.load %s[i, 0, t, o] : f32
        %b = loop.load %s[i, 1, t, o] : f32
        %c = arith.addf %a, %b : f32
        %d = arith.subf %a, %b : f32
        loop.store %a, %made[i, t, 0, o]
        loop.store %b, %made[i, t, 1, o]
        loop.store %c, %made[i, t, 2, o]
        loop.store %d, %made[i, t, 3, o]
      }
    }
    %y = loop.nest "image" [n1: parallel n, h: parallel 16, o: parallel 32] -> tensor<?x16x32xf32, #sym.dims<n, 16, 32>> {
      %a = loop.read %r[n1, h floordiv 4, h mod 4, o] : f32
      %b = math.tanh %a : f32
      loop.yield none %b at [n1, h, o]
    }
    loop.return %y : tensor<?x16x32xf32, #sym.dims<n, 16, 32>>
  }
}
