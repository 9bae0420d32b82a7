// RUN: igniter-opt %s -p "choose-schedule" | filecheck %s
// RUN: igniter-opt %s -p "choose-schedule" | igniter-opt | filecheck %s
// RUN: igniter-opt %s -p "choose-schedule,lower-to-loops,fuse-loops,promote-buffers" | filecheck %s --check-prefix=LOOPS
// RUN: sed 's/900/20/g' %s | igniter-opt -p "choose-schedule" | filecheck %s --check-prefix=SMALL
// RUN: igniter-opt %s -p "choose-schedule" --emit=none --remarks 2>&1 | filecheck %s --check-prefix=REMARKS

// REMARKS: remark: choose-schedule: 'conv' applied: scheduled with 'pool': 'pool' reads each row of 'conv' as soon as it is finished

// Windows of a pool go along the rows of a convolution: both share the loop over rows.

// CHECK:      loop.nest "conv" {{.*}} schedule [y threads fuse "w0",
// CHECK:      loop.nest "pool" {{.*}} schedule [y threads fuse "w0",

// What stands between them is a row.

// LOOPS:      loop.for y = 0 to 900
// LOOPS-NEXT:   loop.alloc "conv" : memref<256x32xf32
// LOOPS:        loop.tile_product
// LOOPS:        loop.accumulate max

// What a cache holds is left alone.

// SMALL-NOT:  fuse "w0"
loop.kernel @k symbols [] (%x: tensor<900x256x8xf32>, %w: tensor<2x8x16xf32>) -> (tensor<900x64x32xf32>) {
  %c = loop.nest "conv" [y: parallel 900, x: parallel 256, o: parallel 32, k: reduction 8] -> tensor<900x256x32xf32> {
    %a = loop.read %x[y, x, k] : f32
    %b = loop.read %w[(o floordiv 16), k, (o mod 16)] : f32
    %p = arith.mulf %a, %b : f32
    loop.yield add %p at [y, x, o]
  }
  %y = loop.nest "pool" [y: parallel 900, x: parallel 64, o: parallel 32, k: reduction 4] -> tensor<900x64x32xf32> {
    %v = loop.read %c[y, 4*x + k, o] : f32
    loop.yield max %v at [y, x, o]
  }
  loop.return %y : tensor<900x64x32xf32>
}
