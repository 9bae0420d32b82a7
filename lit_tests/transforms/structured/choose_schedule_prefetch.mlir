// RUN: igniter-opt %s --target=znver3 -p "choose-schedule" | filecheck %s
// RUN: sed -e 's/16000/800/g' -e 's/1000/50/g' -e 's/15999/799/g' %s | igniter-opt --target=znver3 -p "choose-schedule" | filecheck %s --check-prefix=SHORT

// Results that may exceed the caches are prefetched before a tile of sums is done, but not where tiles follow one
// another along rows of a page or more.

// CHECK: "bias" {{.*}} i1, i2 vector 8
// SHORT: "bias" {{.*}} i1 prefetch, i2 vector 8
loop.kernel @line symbols [n] (%x: tensor<?x16000xf32, #sym.dims<n, 16000>>, %1: tensor<16x7xf32>, %2: tensor<16xf32>) -> (tensor<?x16x16000xf32, #sym.dims<n, 16, 16000>>) {
  %0 = loop.nest "pack" [i0: parallel n, p: parallel 1000, r0: parallel 7, l: parallel 16] -> tensor<?x1000x7x16xf32, #sym.dims<n, 1000, 7, 16>> {
    %v = loop.read %x[i0, l + 16*p + r0] if [15999 - l - 16*p - r0] : f32
    loop.yield none %v at [i0, p, r0, l]
  }
  %3 = loop.nest "conv" [i0: parallel n, i1: parallel 16, i2: parallel 16000, r0: reduction 7] -> tensor<?x16x16000xf32, #sym.dims<n, 16, 16000>> {
    %4 = loop.read %1[i1, r0] : f32
    %5 = loop.read %0[i0, (i2 floordiv 16), r0, (i2 mod 16)] : f32
    %6 = arith.mulf %4, %5 : f32
    loop.yield add %6 at [i0, i1, i2]
  }
  %7 = loop.nest "bias" [i0: parallel n, i1: parallel 16, i2: parallel 16000] -> tensor<?x16x16000xf32, #sym.dims<n, 16, 16000>> {
    %8 = loop.read %3[i0, i1, i2] : f32
    %9 = loop.read %2[i1] : f32
    %10 = arith.addf %8, %9 : f32
    loop.yield none %10 at [i0, i1, i2]
  }
  loop.return %7 : tensor<?x16x16000xf32, #sym.dims<n, 16, 16000>>
}
