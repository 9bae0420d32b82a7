// RUN: igniter-opt %s -p lower-programs --split-input-file --verify-diagnostics | filecheck %s
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

// expected-error {{lower-programs: the kernel of region @r0 in program @p0 is not scheduled; run cpu-loop and cpu-schedule first}}
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
