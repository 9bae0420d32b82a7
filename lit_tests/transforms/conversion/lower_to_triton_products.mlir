// RUN: igniter-opt %s -p lower-to-triton --split-input-file --target=cuda | filecheck %s
// RUN: igniter-opt %s --split-input-file | filecheck %s --check-prefix=SAME

// Programs in groups: of 32 blocks of rows by 64 of columns, the first 8 programs are 8 blocks of rows by one of columns.
// The bias is loaded before the loop over the depth, the residual after it, in a branch: its block is as large as the sums.

// CHECK-LABEL: tt.func @product.0(
// CHECK:         %[[MOST:.*]] = arith.minsi %{{.*}}, %{{.*}} : i32
// CHECK:         %[[WIDE:.*]] = arith.muli %[[MOST]], %{{.*}} : i32
// CHECK-NEXT:    %[[P:.*]] = tt.get_program_id x : i32
// CHECK-NEXT:    %[[G:.*]] = arith.divsi %[[P]], %[[WIDE]] : i32
// CHECK-NEXT:    %[[FIRST:.*]] = arith.muli %[[G]], %[[MOST]] : i32
// CHECK-NEXT:    %[[LEFT:.*]] = arith.subi %{{.*}}, %[[FIRST]] : i32
// CHECK-NEXT:    %[[HELD:.*]] = arith.minsi %[[LEFT]], %[[MOST]] : i32
// CHECK-NEXT:    %[[IN:.*]] = arith.remsi %[[P]], %[[WIDE]] : i32
// CHECK-NEXT:    %[[R:.*]] = arith.remsi %[[IN]], %[[HELD]] : i32
// CHECK-NEXT:    arith.addi %[[FIRST]], %[[R]] : i32
// CHECK-NEXT:    arith.divsi %[[IN]], %[[HELD]] : i32
// CHECK:         tt.load %{{.*}} : tensor<1x16x!tt.ptr<f32>>
// CHECK-NOT:     tt.load
// CHECK:         scf.for
// CHECK:           tt.dot
// CHECK:         }
// CHECK:         %[[TAKEN:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:    scf.if %[[TAKEN]] {
// CHECK:         tt.load %{{.*}} : tensor<16x16x!tt.ptr<f32>>
// CHECK-NOT:     tt.load
// SAME: loop.nest "matmul" [i: parallel 512, j: parallel 1024, k: reduction 64] schedule [i by 16 grid fuse "l0", j by 16 grid fuse "l0", k by 16, i vector 16, j vector 16, k vector 16, launch warps 1 stages 2 group 8]
// SAME: schedule [i by 16 grid fuse "l0", j by 16 grid fuse "l0", i vector 16, j vector 16, launch warps 1 stages 2 group 8]
loop.kernel @product symbols [] (%x: tensor<512x64xf32>, %w: tensor<64x1024xf32>, %b: tensor<1024xf32>, %r: tensor<512x1024xf32>) -> (tensor<512x1024xf32>) {
  %h = loop.nest "matmul" [i: parallel 512, j: parallel 1024, k: reduction 64] schedule [i by 16 grid fuse "l0", j by 16 grid fuse "l0", k by 16, i vector 16, j vector 16, k vector 16, launch warps 1 stages 2 group 8] -> tensor<512x1024xf32> {
    %u = loop.read %x[i, k] : f32
    %v = loop.read %w[k, j] : f32
    %p = arith.mulf %u, %v : f32
    loop.yield add %p at [i, j]
  }
  %y = loop.nest "add" [i: parallel 512, j: parallel 1024] schedule [i by 16 grid fuse "l0", j by 16 grid fuse "l0", i vector 16, j vector 16, launch warps 1 stages 2 group 8] -> tensor<512x1024xf32> {
    %s = loop.read %h[i, j] : f32
    %c = loop.read %b[j] : f32
    %d = loop.read %r[i, j] : f32
    %e = arith.addf %s, %c : f32
    %f = arith.addf %e, %d : f32
    loop.yield none %f at [i, j]
  }
  loop.return %y : tensor<512x1024xf32>
}

// -----

// At most 13 programs, each with every 13th block of the grid.

// CHECK-LABEL: tt.func @persistent.0(
// CHECK:         %[[COUNT:.*]] = arith.constant 32 : i32
// CHECK-NEXT:    %[[PID:.*]] = tt.get_program_id x : i32
// CHECK-NEXT:    %[[ALL:.*]] = tt.get_num_programs x : i32
// CHECK-NEXT:    scf.for %[[N:.*]] = %[[PID]] to %[[COUNT]] step %[[ALL]] : i32 {
// CHECK:           arith.remsi %[[N]], %{{.*}} : i32
// CHECK:           scf.for
// CHECK:             tt.dot
// CHECK:           tt.store
// CHECK:       loop.launch @persistent.0 grid [13] warps 1 stages 2
// SAME: launch warps 1 stages 2 persistent 13]
loop.kernel @persistent symbols [] (%x: tensor<64x64xf32>, %w: tensor<64x128xf32>) -> (tensor<64x128xf32>) {
  %h = loop.nest "matmul" [i: parallel 64, j: parallel 128, k: reduction 64] schedule [i by 16 grid fuse "l0", j by 16 grid fuse "l0", k by 16, i vector 16, j vector 16, k vector 16, launch warps 1 stages 2 persistent 13] -> tensor<64x128xf32> {
    %u = loop.read %x[i, k] : f32
    %v = loop.read %w[k, j] : f32
    %p = arith.mulf %u, %v : f32
    loop.yield add %p at [i, j]
  }
  loop.return %h : tensor<64x128xf32>
}
