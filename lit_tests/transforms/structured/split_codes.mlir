// RUN: igniter-opt %s -p split-codes --target=cuda:sm_90 --split-input-file | filecheck %s
// RUN: igniter-opt %s -p split-codes --target=cuda:sm_90 --check-each --emit=none --split-input-file 2>&1 | filecheck %s --check-prefix=CHECKED
// RUN: igniter-opt %s -p split-codes,choose-schedule --target=cuda:sm_90 --split-input-file | filecheck %s --check-prefix=SCHEDULED

// One row by codes of 4 bits, 32 with one scale: a point reads a byte, and multiplies the sum of its two products by the
// scale. The depth is no multiple of a group: products behind its end are 0.

// CHECK-LABEL: loop.kernel @row
// CHECK:         loop.nest "product" [j: parallel 24, g: reduction 3, h: reduction 16] -> tensor<1x24xf32>
// CHECK-DAG:       %[[X:.*]] = loop.read %x[0, 32*g + 2*h] if [-32*g - 2*h + 69] : f16
// CHECK-DAG:       loop.read %x[0, 32*g + 2*h + 1] if [-32*g - 2*h + 68] : f16
// CHECK-DAG:       %[[B:.*]] = loop.read %w[j, 16*g + h] : i8
// CHECK-DAG:       %[[S:.*]] = loop.read %s[j, g] : f16
// CHECK-DAG:       loop.index -32*g - 2*h + 69 : i64
// CHECK-DAG:       loop.index -32*g - 2*h + 68 : i64
// CHECK:           arith.select
// CHECK-NOT:       arith.truncf
// CHECK:           %[[SUM:.*]] = arith.addf
// CHECK-NEXT:      %[[ALL:.*]] = arith.mulf %[[SUM]], %{{.*}} : f32
// CHECK-NEXT:      loop.yield add %[[ALL]] at [0, j]
// CHECKED: results agree
// SCHEDULED: schedule [j by 32 grid fuse "l0", j vector 32, g vector 4, h vector 16, launch warps 4 stages 1]
loop.kernel @row symbols [] (%x: tensor<1x70xf16>, %w: tensor<24x48xui8>, %s: tensor<24x3xf16>) -> (tensor<1x24xf32>) {
  %y = loop.nest "product" [j: parallel 24, k: reduction 70] -> tensor<1x24xf32> {
    %0 = loop.read %x[0, k] : f16
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
    loop.yield add %15 at [0, j]
  }
  loop.return %y : tensor<1x24xf32>
}

// -----

// 64 rows are a product of blocks.

// CHECK-LABEL: loop.kernel @rows
// CHECK:         loop.nest "product" [i: parallel 64, j: parallel 256, k: reduction 256]
loop.kernel @rows symbols [] (%x: tensor<64x256xf32>, %w: tensor<256x256xui8>, %s: tensor<256x2xf32>) -> (tensor<64x256xf32>) {
  %y = loop.nest "product" [i: parallel 64, j: parallel 256, k: reduction 256] -> tensor<64x256xf32> {
    %0 = loop.read %x[i, k] : f32
    %1 = loop.read %w[j, k] : i8
    %2 = arith.uitofp %1 : i8 to f32
    %3 = loop.read %s[j, k floordiv 128] : f32
    %4 = arith.mulf %2, %3 : f32
    %5 = arith.mulf %0, %4 : f32
    loop.yield add %5 at [i, j]
  }
  loop.return %y : tensor<64x256xf32>
}
