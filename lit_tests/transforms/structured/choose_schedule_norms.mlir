// RUN: igniter-opt %s -p "choose-schedule" | filecheck %s

// The sums of a normalisation per image and channel run along the image, and share both outer loops with the results:
// vectors of channels would gather elements that are an image apart.

// CHECK: "sum" {{.*}} schedule [i0 threads fuse "g0", i1 fuse "g0", r0 vector 16 accumulators 4]
// CHECK: "centred" {{.*}} schedule [i0 threads fuse "g0", i1 fuse "g0", i2 vector 16]
loop.kernel @norm symbols [n, p] (%0: tensor<?x64x?xf32, #sym.dims<n, 64, p>>) -> (tensor<?x64x?xf32, #sym.dims<n, 64, p>>) {
  %1 = loop.nest "sum" [i0: parallel n, i1: parallel 64, r0: reduction p] -> tensor<?x64xf32, #sym.dims<n, 64>> {
    %2 = loop.read %0[i0, i1, r0] : f32
    loop.yield add %2 at [i0, i1]
  }
  %3 = loop.nest "centred" [i0: parallel n, i1: parallel 64, i2: parallel p] -> tensor<?x64x?xf32, #sym.dims<n, 64, p>> {
    %4 = loop.read %0[i0, i1, i2] : f32
    %5 = loop.read %1[i0, i1] : f32
    %6 = arith.subf %4, %5 : f32
    loop.yield none %6 at [i0, i1, i2]
  }
  loop.return %3 : tensor<?x64x?xf32, #sym.dims<n, 64, p>>
}
