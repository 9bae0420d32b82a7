// RUN: igniter-opt %s -p lower-programs --split-input-file --verify-diagnostics | filecheck %s
// RUN: igniter-opt %s -p lower-programs --machine=%S/Inputs/small_teams.json --split-input-file --verify-diagnostics | filecheck %s --check-prefix=TEAM
// RUN: igniter-opt %s -p lower-programs,plan-buffers,form-ort-library --split-input-file --verify-diagnostics | filecheck %s --check-prefix=PLAN
// RUN: igniter-opt %s -p "lower-programs{profile=true},plan-buffers,form-ort-library" --split-input-file --verify-diagnostics | filecheck %s --check-prefix=PROFILE

// A program is a sequence of calls. What passes between them is a buffer, a view is another name for one, and a
// result is written by the kernel that computes it, also where it is a view. A kernel's symbols get their values from
// the dims of its inputs, and its memory lives during its call.

// CHECK:      loop.func @p0 symbols [n] (%a: memref<?x8xf32, #sym.dims<n, 8>>, %e: memref<?xf32, #sym.dims<8*n>>) outputs 1 {
// CHECK-NEXT:   %0 = loop.view %e : memref<?xf32, #sym.dims<8*n>> to memref<4x?xf32, #sym.dims<4, 2*n>>
// CHECK-NEXT:   %f = loop.view %a : memref<?x8xf32, #sym.dims<n, 8>> to memref<?xf32, #sym.dims<8*n>>
// CHECK-NEXT:   %b = loop.alloc "r0" : memref<?xf32, #sym.dims<8*n>, "scratch">
// CHECK-NEXT:   %1 = loop.alloc "k.scratch" : memref<?xi8, #sym.dims<64*((32*n + 63) floordiv 64)>, "scratch">
// CHECK-NEXT:   loop.call @k symbols [8*n] (%f) -> (%b) scratch %1
// CHECK-NEXT:   %h = loop.view %b : memref<?xf32, #sym.dims<8*n>, "scratch"> to memref<4x?xf32, #sym.dims<4, 2*n>>
// CHECK-NEXT:   loop.call @l symbols [4, n - 1] (%h) -> (%0)
// CHECK-NEXT: }

// Kernels that only a program calls are no ops of their own.

// PLAN:      loop.func @p0 {{.*}} scratch(128*((32*n + 63) floordiv 64)) {
// PLAN:      ort.library @igniter {
// PLAN-NEXT:   ort.op @igniter_p0 kernel @p0 symbols [n] scratch(128*((32*n + 63) floordiv 64))
// PLAN-NEXT:     ins ["in0" : f32 [n, 8]]
// PLAN-NEXT:     outs ["out0" : f32 [8*n]]
// PLAN-NEXT: }

// For a profile the time stamp counter is read before the first call and after each.

// PROFILE:      loop.func @p0 symbols [n] (%a: memref<?x8xf32, #sym.dims<n, 8>>, %e: memref<?xf32, #sym.dims<8*n>>, %0: memref<3xi64>) outputs 2
// PROFILE:        %2 = loop.clock : i64
// PROFILE-NEXT:   loop.store %2, %0[0]
// PROFILE:        loop.call @k
// PROFILE-NEXT:   %4 = loop.clock : i64
// PROFILE-NEXT:   loop.store %4, %0[1]
// PROFILE:        loop.call @l
// PROFILE-NEXT:   %5 = loop.clock : i64
// PROFILE-NEXT:   loop.store %5, %0[2]
// PROFILE:          outs ["out0" : f32 [8*n], "out1" : i64 [3]]
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  loop.func @k symbols [d0] (%x: memref<?xf32, #sym.dims<d0>>, %y: memref<?xf32, #sym.dims<d0>>) outputs 1 scratch(64*((4*d0 + 63) floordiv 64)) {
    %t = loop.alloc "t" offset 0 : memref<?xf32, #sym.dims<d0>, "scratch">
    loop.for i = 0 to d0 {
      %a = loop.load %x[i] : f32
      loop.store %a, %t[i]
      loop.store %a, %y[i]
    }
  }
  loop.func @l symbols [d0, d1] (%x: memref<?x?xf32, #sym.dims<d0, 2*d1 + 2>>, %y: memref<?x?xf32, #sym.dims<d0, 2*d1 + 2>>) outputs 1 scratch(0) {
    loop.for i = 0 to d0 {
      loop.for j = 0 to 2*d1 + 2 {
        %a = loop.load %x[i, j] : f32
        loop.store %a, %y[i, j]
      }
    }
  }
  onnx.graph @main(%x: tensor<?x8xf32, #sym.dims<n, 8>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %y = fusion.program @p0 (%a = %x : tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<8*n>>) {
      %s = fusion.dims [8*n] : tensor<1xi64>
      %f = onnx.Reshape(%a, %s) : (tensor<?x8xf32, #sym.dims<n, 8>>, tensor<1xi64>) -> tensor<?xf32, #sym.dims<8*n>>
      %b = fusion.region @r0 (%c = %f : tensor<?xf32, #sym.dims<8*n>>) kernel @k -> (tensor<?xf32, #sym.dims<8*n>>) {
        %d = onnx.Identity(%c) : (tensor<?xf32, #sym.dims<8*n>>) -> tensor<?xf32, #sym.dims<8*n>>
        fusion.yield %d : tensor<?xf32, #sym.dims<8*n>>
      }
      %g = fusion.dims [4, 2*n] : tensor<2xi64>
      %h = onnx.Reshape(%b, %g) : (tensor<?xf32, #sym.dims<8*n>>, tensor<2xi64>) -> tensor<4x?xf32, #sym.dims<4, 2*n>>
      %i = fusion.region @r1 (%c = %h : tensor<4x?xf32, #sym.dims<4, 2*n>>) kernel @l -> (tensor<4x?xf32, #sym.dims<4, 2*n>>) {
        %d = onnx.Identity(%c) : (tensor<4x?xf32, #sym.dims<4, 2*n>>) -> tensor<4x?xf32, #sym.dims<4, 2*n>>
        fusion.yield %d : tensor<4x?xf32, #sym.dims<4, 2*n>>
      }
      %e = onnx.Reshape(%i, %s) : (tensor<4x?xf32, #sym.dims<4, 2*n>>, tensor<1xi64>) -> tensor<?xf32, #sym.dims<8*n>>
      fusion.yield %e : tensor<?xf32, #sym.dims<8*n>>
    }
    onnx.return %y : tensor<?xf32, #sym.dims<8*n>>
  }
}

// -----

// A result that another one shares its memory with is copied, and so is a view of an input; `form-programs` leaves such
// views outside.

// CHECK:      loop.func @p0 symbols [n] (%a: memref<?x8xf32, #sym.dims<n, 8>>, %b: memref<?x8xf32, #sym.dims<n, 8>>, %f: memref<?xf32, #sym.dims<8*n>>, %g: memref<?xf32, #sym.dims<8*n>>) outputs 3 {
// CHECK:        loop.call @k symbols [n] (%a) -> (%b)
// CHECK-NEXT:   [[F:%[a-z0-9_]+]] = loop.view %b
// CHECK-NEXT:   [[G:%[a-z0-9_]+]] = loop.view %a
// CHECK-NEXT:   loop.for c1 = 0 to 8*n {
// CHECK-NEXT:     %0 = loop.load [[F]][c1] : f32
// CHECK-NEXT:     loop.store %0, %f[c1]
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.for c2 = 0 to 8*n {
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  loop.func @k symbols [d0] (%x: memref<?x8xf32, #sym.dims<d0, 8>>, %y: memref<?x8xf32, #sym.dims<d0, 8>>) outputs 1 scratch(0) {
  }
  onnx.graph @main(%x: tensor<?x8xf32, #sym.dims<n, 8>>) attributes {input_names = ["x"], output_names = ["y", "z", "w"]} {
    %y, %z, %w = fusion.program @p0 (%a = %x : tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?x8xf32, #sym.dims<n, 8>>, tensor<?xf32, #sym.dims<8*n>>, tensor<?xf32, #sym.dims<8*n>>) {
      %b = fusion.region @r0 (%c = %a : tensor<?x8xf32, #sym.dims<n, 8>>) kernel @k -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
        %d = onnx.Exp(%c) : (tensor<?x8xf32, #sym.dims<n, 8>>) -> tensor<?x8xf32, #sym.dims<n, 8>>
        fusion.yield %d : tensor<?x8xf32, #sym.dims<n, 8>>
      }
      %s = fusion.dims [8*n] : tensor<1xi64>
      %f = onnx.Reshape(%b, %s) : (tensor<?x8xf32, #sym.dims<n, 8>>, tensor<1xi64>) -> tensor<?xf32, #sym.dims<8*n>>
      %g = onnx.Reshape(%a, %s) : (tensor<?x8xf32, #sym.dims<n, 8>>, tensor<1xi64>) -> tensor<?xf32, #sym.dims<8*n>>
      fusion.yield %b, %f, %g : tensor<?x8xf32, #sym.dims<n, 8>>, tensor<?xf32, #sym.dims<8*n>>, tensor<?xf32, #sym.dims<8*n>>
    }
    onnx.return %y, %z, %w : tensor<?x8xf32, #sym.dims<n, 8>>, tensor<?xf32, #sym.dims<8*n>>, tensor<?xf32, #sym.dims<8*n>>
  }
}

// -----

// expected-error {{pass 'lower-programs': the kernel of region @r0 in program @p0 is not scheduled; run cpu-loop and cpu-schedule first}}
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<4xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    %y = fusion.program @p0 (%a = %x : tensor<4xf32>) -> (tensor<4xf32>) {
      %b = fusion.region @r0 (%c = %a : tensor<4xf32>) kernel @k -> (tensor<4xf32>) {
        %d = onnx.Exp(%c) : (tensor<4xf32>) -> tensor<4xf32>
        fusion.yield %d : tensor<4xf32>
      }
      fusion.yield %b : tensor<4xf32>
    }
    onnx.return %y : tensor<4xf32>
  }
}

// -----

// A Scan is a sequential loop around the calls of its body. A state is two buffers in turn. What is stacked along the
// first axis is written where it belongs, from the end where it is put in front; along another axis it is copied, and
// so is a slice of an input. A Scan of nothing is refused, as ONNX Runtime does.

// CHECK-LABEL: loop.func @p0 symbols [t] (%a: memref<4xf32>, %b: memref<?x4xf32, #sym.dims<t, 4>>, %c: memref<4x?xf32, #sym.dims<4, t>>, %0: memref<4xf32>, %1: memref<?x4xf32, #sym.dims<t, 4>>, %2: memref<4x?xf32, #sym.dims<4, t>>) outputs 3
// CHECK-SAME:    requires [
// CHECK-NEXT:    1 <= t "its scanned input is empty" node "steps"]
// CHECK-NEXT:    [[S:%[0-9]+]] = loop.alloc "steps" : memref<2x4xf32, "scratch">
// CHECK-NEXT:    [[F:%[0-9]+]] = loop.slice [[S]][0] : memref<2x4xf32, "scratch"> to memref<4xf32>
// CHECK-NEXT:    loop.for c1 = 0 to 4 {
// CHECK-NEXT:      {{.*}} = loop.load %a[c1] : f32
// CHECK-NEXT:      loop.store {{.*}}, [[F]][c1]
// CHECK-NEXT:    }
// CHECK-NEXT:    loop.for t2 = 0 to t sequential {
// CHECK-NEXT:      [[H:%[0-9]+]] = loop.slice [[S]][(t2 mod 2)]
// CHECK-NEXT:      [[X:%[0-9]+]] = loop.slice %b[t2]
// CHECK-NEXT:      [[Z:%[0-9]+]] = loop.alloc "steps" : memref<4xf32, "scratch">
// CHECK-NEXT:      loop.for c3 = 0 to 4 {
// CHECK-NEXT:        {{.*}} = loop.load %c[c3, t - t2 - 1] : f32
// CHECK-NEXT:        loop.store {{.*}}, [[Z]][c3]
// CHECK-NEXT:      }
// CHECK-NEXT:      [[N:%[0-9]+]] = loop.slice [[S]][((t2 + 1) mod 2)]
// CHECK-NEXT:      [[Y:%[0-9]+]] = loop.slice %1[t - t2 - 1]
// CHECK-NEXT:      [[W:%[a-z0-9_]+]] = loop.alloc "r0" : memref<4xf32, "scratch">
// CHECK-NEXT:      loop.call @k symbols [] ([[H]], [[X]], [[Z]]) -> ([[N]], [[Y]], [[W]])
// CHECK-NEXT:      loop.for c4 = 0 to 4 {
// CHECK-NEXT:        {{.*}} = loop.load [[W]][c4] : f32
// CHECK-NEXT:        loop.store {{.*}}, %2[c4, t2]
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:    [[L:%[0-9]+]] = loop.slice [[S]][(t mod 2)]
// CHECK-NEXT:    loop.for c5 = 0 to 4 {
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  loop.func @k symbols [] (%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>, %a: memref<4xf32>, %b: memref<4xf32>, %c: memref<4xf32>) outputs 3 scratch(0) {
  }
  onnx.graph @main(%h0: tensor<4xf32>, %xs: tensor<?x4xf32, #sym.dims<t, 4>>, %zs: tensor<4x?xf32, #sym.dims<4, t>>) attributes {input_names = ["h0", "xs", "zs"], output_names = ["h", "ys", "ws"]} {
    %h, %ys, %ws = fusion.program @p0 (%a = %h0 : tensor<4xf32>, %b = %xs : tensor<?x4xf32, #sym.dims<t, 4>>, %c = %zs : tensor<4x?xf32, #sym.dims<4, t>>) -> (tensor<4xf32>, tensor<?x4xf32, #sym.dims<t, 4>>, tensor<4x?xf32, #sym.dims<4, t>>) {
      %0, %1, %2 = onnx.Scan(%a, %b, %c) <{node_name = "steps"}> ({
      ^bb0(%s: tensor<4xf32>, %x: tensor<4xf32>, %z: tensor<4xf32>):
        %n, %y, %w = fusion.region @r0 (%d = %s : tensor<4xf32>, %e = %x : tensor<4xf32>, %f = %z : tensor<4xf32>) kernel @k -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
          %3 = onnx.Exp(%d) : (tensor<4xf32>) -> tensor<4xf32>
          %4 = onnx.Exp(%e) : (tensor<4xf32>) -> tensor<4xf32>
          %5 = onnx.Exp(%f) : (tensor<4xf32>) -> tensor<4xf32>
          fusion.yield %3, %4, %5 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
        }
        onnx.return %n, %y, %w : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
      }) {num_scan_inputs = 2 : i64, scan_input_axes = [0, 1], scan_input_directions = [0, 1], scan_output_axes = [0, 1], scan_output_directions = [1, 0]} : (tensor<4xf32>, tensor<?x4xf32, #sym.dims<t, 4>>, tensor<4x?xf32, #sym.dims<4, t>>) -> (tensor<4xf32>, tensor<?x4xf32, #sym.dims<t, 4>>, tensor<4x?xf32, #sym.dims<4, t>>)
      fusion.yield %0, %1, %2 : tensor<4xf32>, tensor<?x4xf32, #sym.dims<t, 4>>, tensor<4x?xf32, #sym.dims<4, t>>
    }
    onnx.return %h, %ys, %ws : tensor<4xf32>, tensor<?x4xf32, #sym.dims<t, 4>>, tensor<4x?xf32, #sym.dims<4, t>>
  }
}

// -----

// How often a Loop runs may be in a tensor, and what its body computes may end it. The iterations are counted then: the
// last state is in the buffer that their number leaves it in. A state that is handed on as it is, is no buffer.

// CHECK-LABEL: loop.func @p0 symbols [] (%m: memref<i64>, %go: memref<i1>, %a: memref<4xf32>, %w: memref<4xf32>, %0: memref<4xf32>, %1: memref<4xf32>) outputs 2 {
// CHECK:         [[S:%[0-9]+]] = loop.alloc "again" : memref<2x4xf32, "scratch">
// CHECK:         [[G:%[0-9]+]] = loop.alloc "condition" : memref<i1, "scratch">
// CHECK-NEXT:    [[R:%[0-9]+]] = loop.load %go[] : i1
// CHECK-NEXT:    loop.store [[R]], [[G]][]
// CHECK-NEXT:    [[D:%[0-9]+]] = loop.alloc "iterations" : memref<i64, "scratch">
// CHECK:         [[M:%[0-9]+]] = loop.load %m[] : i64
// CHECK-NEXT:    loop.for [[T:t[0-9]+]] = 0 to _0 sequential with [[M]] while [[G]] {
// CHECK-NEXT:      [[H:%[0-9]+]] = loop.slice [[S]][([[T]] mod 2)]
// CHECK-NEXT:      [[I:%[0-9]+]] = loop.alloc "iteration" : memref<i64, "scratch">
// CHECK-NEXT:      [[V:%[0-9]+]] = loop.index [[T]] : i64
// CHECK-NEXT:      loop.store [[V]], [[I]][]
// CHECK-NEXT:      [[N:%[0-9]+]] = loop.slice [[S]][(([[T]] + 1) mod 2)]
// CHECK-NEXT:      loop.call @k symbols [] ([[I]], [[H]], %w) -> ([[G]], [[N]])
// CHECK-NEXT:      [[C:%[0-9]+]] = loop.index [[T]] + 1 : i64
// CHECK-NEXT:      loop.store [[C]], [[D]][]
// CHECK-NEXT:    }
// CHECK:         [[P:%[0-9]+]] = arith.andi
// CHECK-NEXT:    loop.for [[J:c[0-9]+]] = 0 to 4 {
// CHECK-NEXT:      {{.*}} = loop.load [[S]][_0, [[J]]] with [[P]] if [_0, -_0 + 1] : f32
// CHECK:         loop.for [[K:c[0-9]+]] = 0 to 4 {
// CHECK-NEXT:      {{.*}} = loop.load %w[[[K]]] : f32
// Its inputs, whose sizes are known, have bytes enough on this machine for threads to stay together; the first program,
// whose only input has a symbol, has none.

// TEAM:      loop.func @p0 symbols [n] {{.*}} outputs 1 {
// TEAM:      loop.func @p0 symbols [] {{.*}} outputs 2 team(runs 8, looks 100) {
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  loop.func @k symbols [] (%i: memref<i64>, %x: memref<4xf32>, %w: memref<4xf32>, %g: memref<i1>, %y: memref<4xf32>) outputs 2 scratch(0) {
  }
  onnx.graph @main(%m0: tensor<i64>, %g0: tensor<i1>, %h0: tensor<4xf32>, %w0: tensor<4xf32>) attributes {input_names = ["m", "g", "h", "w"], output_names = ["y", "z"]} {
    %y, %z = fusion.program @p0 (%m = %m0 : tensor<i64>, %go = %g0 : tensor<i1>, %a = %h0 : tensor<4xf32>, %w = %w0 : tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %0, %1 = onnx.Loop(%m, %go, %a, %w) <{node_name = "again"}> ({
      ^bb0(%i: tensor<i64>, %before: tensor<i1>, %h: tensor<4xf32>, %k: tensor<4xf32>):
        %more, %n = fusion.region @r0 (%b = %i : tensor<i64>, %c = %h : tensor<4xf32>, %d = %k : tensor<4xf32>) kernel @k -> (tensor<i1>, tensor<4xf32>) {
          %2 = onnx.Add(%c, %d) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
          %3 = onnx.Less(%b, %b) : (tensor<i64>, tensor<i64>) -> tensor<i1>
          fusion.yield %3, %2 : tensor<i1>, tensor<4xf32>
        }
        onnx.return %more, %n, %k : tensor<i1>, tensor<4xf32>, tensor<4xf32>
      }) : (tensor<i64>, tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
      fusion.yield %0, %1 : tensor<4xf32>, tensor<4xf32>
    }
    onnx.return %y, %z : tensor<4xf32>, tensor<4xf32>
  }
}
