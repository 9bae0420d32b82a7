// RUN: igniter-opt %s -p "choose-schedule" | filecheck %s

// A nest that transposes the results of a product does not join its loops, where it would store element by element:
// alone it moves squares of 16 x 16.

// CHECK-LABEL: loop.kernel @turned
// CHECK: loop.nest "conv" {{.*}} fuse "g0"
// CHECK: loop.nest "bias" {{.*}} fuse "g0"
// CHECK: loop.nest "move" {{.*}} schedule [o by 16 tail rest threads, y, x by 16 tail rest, o unroll, x vector 16]
builtin.module {
  loop.kernel @turned symbols [] (%x: tensor<32x32x8xf32>, %w: tensor<2x8x16xf32>, %b: tensor<32xf32>) -> (tensor<32x32x32xf32>, tensor<32x32x32xf32>) {
    %c = loop.nest "conv" [o: parallel 32, y: parallel 32, x: parallel 32, k: reduction 8] -> tensor<32x32x32xf32> {
      %a = loop.read %x[y, x, k] : f32
      %b1 = loop.read %w[(o floordiv 16), k, (o mod 16)] : f32
      %p = arith.mulf %a, %b1 : f32
      loop.yield add %p at [y, x, o]
    }
    %d = loop.nest "bias" [o: parallel 32, y: parallel 32, x: parallel 32] -> tensor<32x32x32xf32> {
      %a = loop.read %c[y, x, o] : f32
      %b2 = loop.read %b[o] : f32
      %s = arith.addf %a, %b2 : f32
      loop.yield none %s at [y, x, o]
    }
    %m = loop.nest "move" [o: parallel 32, y: parallel 32, x: parallel 32] -> tensor<32x32x32xf32> {
      %a = loop.read %d[y, x, o] : f32
      loop.yield none %a at [o, y, x]
    }
    loop.return %d, %m : tensor<32x32x32xf32>, tensor<32x32x32xf32>
  }
}
