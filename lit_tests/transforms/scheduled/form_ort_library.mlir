// RUN: igniter-opt %s -p "form-ort-library" --split-input-file | filecheck %s

// The signature of a kernel is its custom op: ports by position, dims, symbols and the arena.

// CHECK:        loop.func @r0 symbols [n] (%x: memref<?x8xf32, #sym.dims<n, 8>>, %k: memref<i64>, %y: memref<?x8xf32, #sym.dims<n, 8>>) outputs 1 scratch(64*n) {
// CHECK-NEXT:     loop.for i = 0 to n {
// CHECK-NEXT:       %z = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:       loop.store %z, %y[i, 0]
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.func @r1 symbols [] (%y: memref<4xf32>) outputs 1 scratch(0) {
// CHECK-NEXT:     %z = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     loop.store %z, %y[0]
// CHECK-NEXT:   }
// CHECK-NEXT:   ort.library @igniter {
// CHECK-NEXT:     ort.op @igniter_r0 kernel @r0 symbols [n] scratch(64*n)
// CHECK-NEXT:       ins ["in0" : f32 [n, 8], "in1" : i64 []]
// CHECK-NEXT:       outs ["out0" : f32 [n, 8]]
// CHECK-NEXT:     ort.op @igniter_r1 kernel @r1 symbols [] scratch(0)
// CHECK-NEXT:       ins []
// CHECK-NEXT:       outs ["out0" : f32 [4]]
// CHECK-NEXT:   }


builtin.module {
  loop.func @r0 symbols [n] (%x: memref<?x8xf32, #sym.dims<n, 8>>, %k: memref<i64>, %y: memref<?x8xf32, #sym.dims<n, 8>>) outputs 1 scratch(64*n) {
    loop.for i = 0 to n {
      %z = arith.constant 0.000000e+00 : f32
      loop.store %z, %y[i, 0]
    }
  }
  loop.func @r1 symbols [] (%y: memref<4xf32>) outputs 1 scratch(0) {
    %z = arith.constant 0.000000e+00 : f32
    loop.store %z, %y[0]
  }
}

// -----

// No kernels, no library.

// CHECK:     builtin.module {
// CHECK-NEXT: }

builtin.module {
}
