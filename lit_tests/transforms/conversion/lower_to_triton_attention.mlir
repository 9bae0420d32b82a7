// RUN: igniter-opt %s -p lower-to-triton --split-input-file --target=cuda | filecheck %s
// RUN: igniter-opt %s -p lower-to-triton --split-input-file --target=cuda | igniter-opt --split-input-file | filecheck %s
// RUN: igniter-opt %s -p choose-schedule --split-input-file --target=cuda | filecheck %s --check-prefix=SAME

// An attention is a launch: the queries are loaded once, and a loop over full blocks of keys keeps the maximum, the sum
// of exponentials and what they weigh. What was summed is scaled where the maximum grows. A second loop is for a partial
// block: what lies behind the last key is -inf. The exponentials are powers of two, and their scores are scaled by log2(e). The factors of rows are for the end.

// CHECK-LABEL: tt.func @head.0
// CHECK:         %[[Q:.*]] = tt.load %{{.*}} : tensor<16x16x!tt.ptr<f32>>
// CHECK:         %[[M:.*]], %[[L:.*]], %[[O:.*]] = scf.for {{.*}} iter_args(%[[M0:.*]] = %{{.*}}, %[[L0:.*]] = %{{.*}}, %[[O0:.*]] = %{{.*}}) -> (tensor<16x1xf32>, tensor<16x1xf32>, tensor<16x16xf32>)
// CHECK:           %[[S:.*]] = tt.dot %[[Q]], %{{.*}} : tensor<16x16xf32> * tensor<16x32xf32> -> tensor<16x32xf32>
// CHECK-NEXT:      "tt.reduce"(%[[S]]) <{axis = 1 : i32}>
// CHECK:             arith.maximumf
// CHECK:           %[[M1:.*]] = arith.maximumf %[[M0]], %{{.*}} : tensor<16x1xf32>
// CHECK:           %[[FALL:.*]] = arith.subf %{{.*}}, %{{.*}} : tensor<16x1xf32>
// CHECK:           %[[FALL2:.*]] = arith.mulf %[[FALL]], %{{.*}} : tensor<16x1xf32>
// CHECK-NEXT:      %[[SCALE:.*]] = math.exp2 %[[FALL2]] : tensor<16x1xf32>
// CHECK:           %[[P:.*]] = math.exp2 %{{.*}} : tensor<16x32xf32>
// CHECK-NEXT:      "tt.reduce"(%[[P]]) <{axis = 1 : i32}>
// CHECK:           %[[OLD:.*]] = arith.mulf %[[L0]], %[[SCALE]]
// CHECK-NEXT:      %[[L1:.*]] = arith.addf %[[OLD]]
// CHECK:           %[[WIDE:.*]] = tt.broadcast %[[SCALE]] : tensor<16x1xf32> -> tensor<16x16xf32>
// CHECK-NEXT:      %[[LESS:.*]] = arith.mulf %[[O0]], %[[WIDE]]
// CHECK:           %[[O1:.*]] = tt.dot %[[P]], %{{.*}}, %[[LESS]]
// CHECK-NEXT:      scf.yield %[[M1]], %[[L1]], %[[O1]]
// CHECK:         scf.for {{.*}} iter_args(%{{.*}} = %[[M]], %{{.*}} = %[[L]], %{{.*}} = %[[O]])
// CHECK:           %[[T:.*]] = tt.dot %[[Q]], %{{.*}} : tensor<16x16xf32> * tensor<16x32xf32> -> tensor<16x32xf32>
// CHECK:           %[[SEEN:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<16x32xf32>
// CHECK-NEXT:      "tt.reduce"(%[[SEEN]]) <{axis = 1 : i32}>
// CHECK:         arith.divf
// CHECK:         tt.store
// CHECK-NOT:     tt.store
// CHECK:         loop.launch @head.0 grid [((s + 15) floordiv 16)] warps 4 stages 2

// The author writes the same schedules.

// SAME-LABEL: loop.kernel @head
// SAME:         loop.nest "values" [i: parallel s, f: parallel 16, j: reduction t] schedule [i by 16 grid fuse "l0", j by 32, i vector 16, f vector 16, j vector 32, launch warps 4 stages 2]
loop.kernel @head symbols [s, t] (%q: tensor<?x16xf32, #sym.dims<s, 16>>, %k: tensor<?x16xf32, #sym.dims<t, 16>>, %v: tensor<?x16xf32, #sym.dims<t, 16>>) -> (tensor<?x16xf32, #sym.dims<s, 16>>) {
  %scores = loop.nest "scores" [i: parallel s, j: parallel t, d: reduction 16] schedule [i by 16 grid fuse "l0", j by 32, i vector 16, j vector 32, d vector 16, launch warps 4 stages 2] -> tensor<?x?xf32, #sym.dims<s, t>> {
    %a = loop.read %q[i, d] : f32
    %b = loop.read %k[j, d] : f32
    %p = arith.mulf %a, %b : f32
    loop.yield add %p at [i, j]
  }
  %max = loop.nest "max" [i: parallel s, j: reduction t] schedule [i by 16 grid fuse "l0", j by 32, i vector 16, j vector 32, launch warps 4 stages 2] -> tensor<?x1xf32, #sym.dims<s, 1>> {
    %x = loop.read %scores[i, j] : f32
    loop.yield max %x at [i, 0]
  }
  %e = loop.nest "exp" [i: parallel s, j: parallel t] schedule [i by 16 grid fuse "l0", j by 32, i vector 16, j vector 32, launch warps 4 stages 2] -> tensor<?x?xf32, #sym.dims<s, t>> {
    %x = loop.read %scores[i, j] : f32
    %m = loop.read %max[i, 0] : f32
    %z = arith.subf %x, %m : f32
    %y = math.exp %z : f32
    loop.yield none %y at [i, j]
  }
  %sum = loop.nest "sum" [i: parallel s, j: reduction t] schedule [i by 16 grid fuse "l0", j by 32, i vector 16, j vector 32, launch warps 4 stages 2] -> tensor<?x1xf32, #sym.dims<s, 1>> {
    %x = loop.read %e[i, j] : f32
    loop.yield add %x at [i, 0]
  }
  %w = loop.nest "softmax" [i: parallel s, j: parallel t] schedule [i by 16 grid fuse "l0", j by 32, i vector 16, j vector 32, launch warps 4 stages 2] -> tensor<?x?xf32, #sym.dims<s, t>> {
    %x = loop.read %e[i, j] : f32
    %l = loop.read %sum[i, 0] : f32
    %y = arith.divf %x, %l : f32
    loop.yield none %y at [i, j]
  }
  %o = loop.nest "values" [i: parallel s, f: parallel 16, j: reduction t] schedule [i by 16 grid fuse "l0", j by 32, i vector 16, f vector 16, j vector 32, launch warps 4 stages 2] -> tensor<?x16xf32, #sym.dims<s, 16>> {
    %x = loop.read %w[i, j] : f32
    %y = loop.read %v[j, f] : f32
    %p = arith.mulf %x, %y : f32
    loop.yield add %p at [i, f]
  }
  loop.return %o : tensor<?x16xf32, #sym.dims<s, 16>>
}

// -----

// A causal mask, j <= i + 3, bounds the keys of a program: blocks that all rows see whole are a loop without the mask,
// those at the diagonal a loop with it, and the others are left out. The rows go from the last to the first.

// CHECK-LABEL: tt.func @causal.0
// CHECK:         %[[PROGRAM:.*]] = tt.get_program_id x
// CHECK:         arith.subi %{{.*}}, %{{.*}} : i64
// CHECK:         arith.divsi
// CHECK:         arith.minsi
// CHECK:         scf.for
// CHECK:           %[[S:.*]] = tt.dot
// CHECK-NEXT:      "tt.reduce"(%[[S]]) <{axis = 1 : i32}>
// CHECK:         scf.for
// CHECK:           tt.dot
// CHECK:           arith.cmpi sle
// CHECK:           arith.select
// CHECK:           "tt.reduce"
// CHECK-NOT:     scf.for
// CHECK:         tt.store
loop.kernel @causal symbols [s, t] (%q: tensor<?x16xf32, #sym.dims<s, 16>>, %k: tensor<?x16xf32, #sym.dims<t, 16>>, %v: tensor<?x16xf32, #sym.dims<t, 16>>) -> (tensor<?x16xf32, #sym.dims<s, 16>>) {
  %scores = loop.nest "scores" [i: parallel s, j: parallel t, d: reduction 16] schedule [i by 16 grid fuse "l0", j by 32, i vector 16, j vector 32, d vector 16, launch warps 4 stages 2] -> tensor<?x?xf32, #sym.dims<s, t>> {
    %a = loop.read %q[i, d] : f32
    %b = loop.read %k[j, d] : f32
    %p = arith.mulf %a, %b : f32
    loop.yield add %p at [i, j]
  }
  %masked = loop.nest "mask" [i: parallel s, j: parallel t] schedule [i by 16 grid fuse "l0", j by 32, i vector 16, j vector 32, launch warps 4 stages 2] -> tensor<?x?xf32, #sym.dims<s, t>> {
    %x = loop.read %scores[i, j] : f32
    %a = loop.index -i + j : i64
    %z = arith.constant 3 : i64
    %c = arith.cmpi sle, %a, %z : i64
    %n = arith.constant 0xFF800000 : f32
    %y = arith.select %c, %x, %n : f32
    loop.yield none %y at [i, j]
  }
  %max = loop.nest "max" [i: parallel s, j: reduction t] schedule [i by 16 grid fuse "l0", j by 32, i vector 16, j vector 32, launch warps 4 stages 2] -> tensor<?x1xf32, #sym.dims<s, 1>> {
    %x = loop.read %masked[i, j] : f32
    loop.yield max %x at [i, 0]
  }
  %e = loop.nest "exp" [i: parallel s, j: parallel t] schedule [i by 16 grid fuse "l0", j by 32, i vector 16, j vector 32, launch warps 4 stages 2] -> tensor<?x?xf32, #sym.dims<s, t>> {
    %x = loop.read %masked[i, j] : f32
    %m = loop.read %max[i, 0] : f32
    %z = arith.subf %x, %m : f32
    %y = math.exp %z : f32
    loop.yield none %y at [i, j]
  }
  %sum = loop.nest "sum" [i: parallel s, j: reduction t] schedule [i by 16 grid fuse "l0", j by 32, i vector 16, j vector 32, launch warps 4 stages 2] -> tensor<?x1xf32, #sym.dims<s, 1>> {
    %x = loop.read %e[i, j] : f32
    loop.yield add %x at [i, 0]
  }
  %w = loop.nest "softmax" [i: parallel s, j: parallel t] schedule [i by 16 grid fuse "l0", j by 32, i vector 16, j vector 32, launch warps 4 stages 2] -> tensor<?x?xf32, #sym.dims<s, t>> {
    %x = loop.read %e[i, j] : f32
    %l = loop.read %sum[i, 0] : f32
    %y = arith.divf %x, %l : f32
    loop.yield none %y at [i, j]
  }
  %o = loop.nest "values" [i: parallel s, f: parallel 16, j: reduction t] schedule [i by 16 grid fuse "l0", j by 32, i vector 16, f vector 16, j vector 32, launch warps 4 stages 2] -> tensor<?x16xf32, #sym.dims<s, 16>> {
    %x = loop.read %w[i, j] : f32
    %y = loop.read %v[j, f] : f32
    %p = arith.mulf %x, %y : f32
    loop.yield add %p at [i, f]
  }
  loop.return %o : tensor<?x16xf32, #sym.dims<s, 16>>
}

// -----

// Without rows, in a step of decoding, blocks are of keys by features. Programs have 64 keys each, and a second kernel
// joins what they leave in memory.

// CHECK-LABEL: tt.func @step.0
// CHECK:         scf.for {{.*}} -> (tensor<1x1xf32>, tensor<1x1xf32>, tensor<1x16xf32>)
// CHECK-NOT:       tt.dot
// CHECK:         tt.store %{{.*}}, %{{.*}} : tensor<1x1x!tt.ptr<f32>>
// CHECK:         tt.store %{{.*}}, %{{.*}} : tensor<1x1x!tt.ptr<f32>>
// CHECK:         tt.store %{{.*}}, %{{.*}} : tensor<1x16x!tt.ptr<f32>>
// CHECK-LABEL: tt.func @step.0.join
// CHECK:         scf.for
// CHECK:           tt.load %{{.*}} : tensor<16x1x!tt.ptr<f32>>
// CHECK:           tt.load %{{.*}} : tensor<16x1x!tt.ptr<f32>>
// CHECK:           tt.load %{{.*}} : tensor<16x16x!tt.ptr<f32>>
// CHECK:         arith.divf
// CHECK-LABEL: loop.func @step
// CHECK:         %[[TOPS:.*]] = loop.alloc "max.parts" : memref<8x?xf32, #sym.dims<8, ((t + 63) floordiv 64)>, "scratch">
// CHECK-NEXT:    %[[SUMS:.*]] = loop.alloc "sum.parts"
// CHECK-NEXT:    %[[VALUES:.*]] = loop.alloc "values.parts" : memref<8x?x16xf32
// CHECK-NEXT:    loop.launch @step.0 grid [8*((t + 63) floordiv 64)] warps 4 stages 2 symbols [t] (%q, %k, %v, %[[TOPS]], %[[SUMS]], %[[VALUES]])
// CHECK-NEXT:    loop.launch @step.0.join grid [8] warps 4 stages 1 symbols [t] (%[[TOPS]], %[[SUMS]], %[[VALUES]], %o)
loop.kernel @step symbols [t] (%q: tensor<8x16xf32>, %k: tensor<8x?x16xf32, #sym.dims<8, t, 16>>, %v: tensor<8x?x16xf32, #sym.dims<8, t, 16>>) -> (tensor<8x16xf32>) {
  %scores = loop.nest "scores" [i: parallel 8, j: parallel t, d: reduction 16] schedule [i grid fuse "l0", j by 64 grid fuse "l0", j by 32, j vector 32, d vector 16, launch warps 4 stages 2] -> tensor<8x?xf32, #sym.dims<8, t>> {
    %a = loop.read %q[i, d] : f32
    %b = loop.read %k[i, j, d] : f32
    %p = arith.mulf %a, %b : f32
    loop.yield add %p at [i, j]
  }
  %max = loop.nest "max" [i: parallel 8, j: reduction t] schedule [i grid fuse "l0", j by 64 grid fuse "l0", j by 32, j vector 32, launch warps 4 stages 2] -> tensor<8x1xf32> {
    %x = loop.read %scores[i, j] : f32
    loop.yield max %x at [i, 0]
  }
  %e = loop.nest "exp" [i: parallel 8, j: parallel t] schedule [i grid fuse "l0", j by 64 grid fuse "l0", j by 32, j vector 32, launch warps 4 stages 2] -> tensor<8x?xf32, #sym.dims<8, t>> {
    %x = loop.read %scores[i, j] : f32
    %m = loop.read %max[i, 0] : f32
    %z = arith.subf %x, %m : f32
    %y = math.exp %z : f32
    loop.yield none %y at [i, j]
  }
  %sum = loop.nest "sum" [i: parallel 8, j: reduction t] schedule [i grid fuse "l0", j by 64 grid fuse "l0", j by 32, j vector 32, launch warps 4 stages 2] -> tensor<8x1xf32> {
    %x = loop.read %e[i, j] : f32
    loop.yield add %x at [i, 0]
  }
  %w = loop.nest "softmax" [i: parallel 8, j: parallel t] schedule [i grid fuse "l0", j by 64 grid fuse "l0", j by 32, j vector 32, launch warps 4 stages 2] -> tensor<8x?xf32, #sym.dims<8, t>> {
    %x = loop.read %e[i, j] : f32
    %l = loop.read %sum[i, 0] : f32
    %y = arith.divf %x, %l : f32
    loop.yield none %y at [i, j]
  }
  %o = loop.nest "values" [i: parallel 8, f: parallel 16, j: reduction t] schedule [i grid fuse "l0", j by 64 grid fuse "l0", j by 32, f vector 16, j vector 32, launch warps 4 stages 2] -> tensor<8x16xf32> {
    %x = loop.read %w[i, j] : f32
    %y = loop.read %v[i, j, f] : f32
    %p = arith.mulf %x, %y : f32
    loop.yield add %p at [i, f]
  }
  loop.return %o : tensor<8x16xf32>
}
