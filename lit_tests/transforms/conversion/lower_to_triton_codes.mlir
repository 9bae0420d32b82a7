// RUN: igniter-opt %s -p lower-to-triton --target=cuda | filecheck %s

// Weights of 4 bits, 32 with one scale, in steps of 64 along the depth: two groups of 16 bytes. A byte is loaded once, for
// all columns, and a scale once for its group; the two numbers of a byte are shifted by 0 and by 4, and joined.

// CHECK-LABEL: tt.func @codes.0(
// CHECK:         scf.for
// CHECK:           tt.load %{{.*}} : tensor<16x64x!tt.ptr<f16>>
// CHECK:           %[[BYTES:.*]] = tt.load %{{.*}} : tensor<2x16x32x!tt.ptr<i8>>
// CHECK:           %[[LOW:.*]] = arith.extui %[[BYTES]] : tensor<2x16x32xi8> to tensor<2x16x32xi32>
// CHECK:           arith.andi %[[LOW]], %{{.*}} : tensor<2x16x32xi32>
// CHECK:           tt.load %{{.*}} : tensor<2x1x32x!tt.ptr<f16>>
// CHECK:           %[[FIRST:.*]] = arith.truncf %{{.*}} : tensor<2x16x32xf32> to tensor<2x16x32xf16>
// CHECK-NOT:       tt.load
// CHECK:           arith.shrui %{{.*}}, %{{.*}} : tensor<2x16x32xi32>
// CHECK:           %[[SECOND:.*]] = arith.truncf %{{.*}} : tensor<2x16x32xf32> to tensor<2x16x32xf16>
// CHECK-NEXT:      %[[BOTH:.*]] = tt.join %[[FIRST]], %[[SECOND]] : tensor<2x16x32xf16> -> tensor<2x16x32x2xf16>
// CHECK-NEXT:      %[[TURNED:.*]] = tt.trans %[[BOTH]] {order = array<i32: 0, 1, 3, 2>} : tensor<2x16x32x2xf16> -> tensor<2x16x2x32xf16>
// CHECK-NEXT:      %[[W:.*]] = tt.reshape %[[TURNED]] : tensor<2x16x2x32xf16> -> tensor<64x32xf16>
// CHECK-NEXT:      tt.dot %{{.*}}, %[[W]], %{{.*}} : tensor<16x64xf16> * tensor<64x32xf16> -> tensor<16x32xf32>
loop.kernel @codes symbols [m] (%x: tensor<?x256xf16, #sym.dims<m, 256>>, %w: tensor<64x128xui8>, %s: tensor<64x8xf16>) -> (tensor<?x64xf32, #sym.dims<m, 64>>) {
  %y = loop.nest "product" [i: parallel m, j: parallel 64, k: reduction 256] schedule [i by 16 grid fuse "l0", j by 32 grid fuse "l0", k by 64, i vector 16, j vector 32, k vector 64, launch warps 2 stages 3] -> tensor<?x64xf32, #sym.dims<m, 64>> {
    %0 = loop.read %x[i, k] : f16
    %1 = arith.extf %0 : f16 to f32
    %2 = loop.read %w[j, k floordiv 2] : i8
    %3 = arith.extui %2 : i8 to i32
    %4 = loop.index 4*(k mod 2) : i64
    %5 = arith.trunci %4 : i64 to i32
    %6 = arith.shrui %3, %5 : i32
    %7 = arith.constant 15 : i32
    %8 = arith.andi %6, %7 : i32
    %9 = arith.sitofp %8 : i32 to f32
    %10 = loop.read %s[j, k floordiv 32] : f16
    %11 = arith.extf %10 : f16 to f32
    %12 = arith.mulf %9, %11 : f32
    %13 = arith.truncf %12 : f32 to f16
    %14 = arith.extf %13 : f16 to f32
    %15 = arith.mulf %1, %14 : f32
    loop.yield add %15 at [i, j]
  }
  loop.return %y : tensor<?x64xf32, #sym.dims<m, 64>>
}
