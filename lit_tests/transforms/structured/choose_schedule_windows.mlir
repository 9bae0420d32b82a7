// RUN: igniter-opt %s -p "choose-schedule{vector-bytes=32 registers=16}" | filecheck %s
// RUN: sed -e 's/24/32/g' %s | igniter-opt -p "choose-schedule{vector-bytes=32 registers=16}" | filecheck %s --check-prefix=FULL
// RUN: igniter-opt %s -p "choose-schedule" | filecheck %s --check-prefix=WIDE

// Groups of 24 columns, which fill one panel and a half: with vectors of half a panel their sums are three vectors for
// each of 7 places, in registers during the whole window. Its channels, contiguous in the image, are the innermost loop
// that is not unrolled. Columns that fill panels, and vectors as wide as a panel, keep the micro-kernel.

// CHECK: "conv" {{.*}} schedule [i0 threads fuse "g0", i1 by 8 fuse "g0", i2 fuse "g0", i3 by 7 tail peel fuse "g0", r1, r0, r2 unroll, i3 unroll, i1 vector 8]
// CHECK: "conv.bias" {{.*}} schedule [i0 threads fuse "g0", i1 by 8 fuse "g0", i2 fuse "g0", i3 by 7 tail peel fuse "g0", i3 unroll, i1 vector 8]
// FULL: "conv" {{.*}} product(i3, i1, r0)
// WIDE: "conv" {{.*}} product(i3, i1, r0)
loop.kernel @grouped symbols [] (%0: tensor<1x16x16x384xf32>, %1: tensor<16x2x3x3x24x16xf32>, %2: tensor<384xf32>) -> (tensor<1x14x14x16x24xf32>) {
  %3 = loop.nest "conv" [i0: parallel 16, i1: parallel 24, i2: parallel 14, i3: parallel 14, r0: reduction 24, r1: reduction 3, r2: reduction 3] -> tensor<1x16x14x14x24xf32> {
    %4 = loop.read %1[i0, (i1 floordiv 16), r1, r2, r0, (i1 mod 16)] : f32
    %5 = loop.read %0[0, i2 + r1, i3 + r2, 24*i0 + r0] : f32
    %6 = arith.mulf %4, %5 : f32
    loop.yield add %6 at [0, i0, i2, i3, i1]
  }
  %7 = loop.nest "conv.bias" [i0: parallel 16, i1: parallel 24, i2: parallel 14, i3: parallel 14] -> tensor<1x14x14x16x24xf32> {
    %8 = loop.read %3[0, i0, i2, i3, i1] : f32
    %9 = loop.read %2[24*i0 + i1] : f32
    %10 = arith.addf %8, %9 : f32
    loop.yield none %10 at [0, i2, i3, i0, i1]
  }
  loop.return %7 : tensor<1x14x14x16x24xf32>
}

// Few steps of a window are summed without a micro-kernel too, for two vectors of columns; many are not.

// CHECK: "few" {{.*}} schedule [i1 threads fuse "g0", i0 by 16 fuse "g0", i2 by 4 tail peel fuse "g0", r1, d unroll, i2 unroll, i0 vector 8 unroll]
// WIDE: "few" {{.*}} product(i2, i0, d)
loop.kernel @few symbols [] (%0: tensor<1x225x225x3xf32>, %1: tensor<2x3x9x16xf32>) -> (tensor<112x112x32xf32>) {
  %p = loop.view %0 : tensor<1x225x225x3xf32> to tensor<225x675xf32>
  %3 = loop.nest "few" [i0: parallel 32, i1: parallel 112, i2: parallel 112, d: reduction 9, r1: reduction 3] -> tensor<112x112x32xf32> {
    %4 = loop.read %1[(i0 floordiv 16), r1, d, (i0 mod 16)] : f32
    %5 = loop.read %p[2*i1 + r1, 6*i2 + d] : f32
    %6 = arith.mulf %4, %5 : f32
    loop.yield add %6 at [i1, i2, i0]
  }
  loop.return %3 : tensor<112x112x32xf32>
}

// CHECK: "many" {{.*}} product(i2, i0, d)
loop.kernel @many symbols [] (%0: tensor<1x225x225x7xf32>, %1: tensor<2x3x21x16xf32>) -> (tensor<112x112x32xf32>) {
  %p = loop.view %0 : tensor<1x225x225x7xf32> to tensor<225x1575xf32>
  %3 = loop.nest "many" [i0: parallel 32, i1: parallel 112, i2: parallel 112, d: reduction 21, r1: reduction 3] -> tensor<112x112x32xf32> {
    %4 = loop.read %1[(i0 floordiv 16), r1, d, (i0 mod 16)] : f32
    %5 = loop.read %p[2*i1 + r1, 14*i2 + d] : f32
    %6 = arith.mulf %4, %5 : f32
    loop.yield add %6 at [i1, i2, i0]
  }
  loop.return %3 : tensor<112x112x32xf32>
}
