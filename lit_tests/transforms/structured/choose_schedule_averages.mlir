// RUN: igniter-opt %s -p "choose-schedule" | filecheck %s
// RUN: sed 's/28/3/g' %s | igniter-opt -p "choose-schedule{vector-bytes=32}" | filecheck %s --check-prefix=SHORT
// RUN: sed 's/28/7/g' %s | igniter-opt -p "choose-schedule{vector-bytes=32}" | filecheck %s --check-prefix=HALF
// RUN: sed 's/28/7/g' %s | igniter-opt -p "choose-schedule" | filecheck %s --check-prefix=MASKED

// The sums of short windows and their division share all axes but the last, and both have vectors of results. Rows that
// fill less than half of a vector are shared too, or less than a quarter where the machine has registers for masks.

// CHECK: "averagepool.sum" {{.*}} schedule [i0 threads fuse "g0", i1 fuse "g0", i2 vector 16 interior, r0 unroll, r1 unroll]
// CHECK: "averagepool" {{.*}} schedule [i0 threads fuse "g0", i1 fuse "g0", i2 vector 16]
// SHORT: "averagepool.sum" {{.*}} schedule [i0 threads fuse "g0", i1 fuse "g0", i2 fuse "g0", r0, r1 vector 8 accumulators 1]
// SHORT: "averagepool" {{.*}} schedule [i0 threads fuse "g0", i1 fuse "g0", i2 fuse "g0"]
// HALF: "averagepool.sum" {{.*}} schedule [i0 threads fuse "g0", i1 fuse "g0", i2 vector 8
// HALF: "averagepool" {{.*}} schedule [i0 threads fuse "g0", i1 fuse "g0", i2 vector 8]
// MASKED: "averagepool.sum" {{.*}} schedule [i0 threads fuse "g0", i1 fuse "g0", i2 vector 16
// MASKED: "averagepool" {{.*}} schedule [i0 threads fuse "g0", i1 fuse "g0", i2 vector 16]
loop.kernel @average symbols [] (%0: tensor<1x8x56x56xf32>) -> (tensor<1x8x28x28xf32>) {
  %1 = loop.nest "averagepool.sum" [i0: parallel 8, i1: parallel 28, i2: parallel 28, r0: reduction 2, r1: reduction 2] -> tensor<1x8x28x28xf32> {
    %2 = loop.read %0[0, i0, 2*i1 + r0, 2*i2 + r1] : f32
    loop.yield add %2 at [0, i0, i1, i2]
  }
  %3 = loop.nest "averagepool" [i0: parallel 8, i1: parallel 28, i2: parallel 28] -> tensor<1x8x28x28xf32> {
    %4 = loop.read %1[0, i0, i1, i2] : f32
    %5 = arith.constant 4.000000e+00 : f32
    %6 = arith.divf %4, %5 : f32
    loop.yield none %6 at [0, i0, i1, i2]
  }
  loop.return %3 : tensor<1x8x28x28xf32>
}
