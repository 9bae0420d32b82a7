// RUN: igniter-opt %s -p "prefetch-loops" --split-input-file | filecheck %s

// What a tile of sums is added to and written to is fetched before the sums: a line at a time, once where it is both
// read and written. What is local, or the same for all rows, is not.

// CHECK:        loop.func @rows symbols [n] (%x: memref<?x64xf32, #sym.dims<n, 64>>, %b: memref<32xf32>, %y: memref<?x32xf32, #sym.dims<n, 32>>, %z: memref<?x32xf32, #sym.dims<n, 32>>) outputs 2 {
// CHECK-NEXT:     loop.for t = 0 to (n floordiv 4) {
// CHECK-NEXT:       %s = loop.alloc "s" : memref<4x32xf32, "local">
// CHECK-NEXT:       loop.for i1 = 0 to 4 {
// CHECK-NEXT:         loop.for j1 = 0 to 32 step 16 schedule [unroll] {
// CHECK-NEXT:           loop.prefetch %y[i1 + 4*t, j1] write
// CHECK-NEXT:           loop.prefetch %z[i1 + 4*t, j1] write
// CHECK-NEXT:         }
// CHECK-NEXT:       }
// CHECK-NEXT:       loop.for k = 0 to 4 {
// CHECK-NEXT:         loop.for l = 0 to 32 {
// CHECK-NEXT:           %a = loop.load %x[k + 4*t, l] : f32
// CHECK-NEXT:           loop.store %a, %s[k, l]
// CHECK-NEXT:         }
// CHECK-NEXT:       }
// CHECK-NEXT:       loop.for i = 0 to 4 {
// CHECK-NEXT:         loop.for j = 0 to 32 schedule [vector 16] {

builtin.module {
  loop.func @rows symbols [n] (%x: memref<?x64xf32, #sym.dims<n, 64>>, %b: memref<32xf32>, %y: memref<?x32xf32, #sym.dims<n, 32>>, %z: memref<?x32xf32, #sym.dims<n, 32>>) outputs 2 {
    loop.for t = 0 to n floordiv 4 {
      %s = loop.alloc "s" : memref<4x32xf32, "local">
      loop.for k = 0 to 4 {
        loop.for l = 0 to 32 {
          %a = loop.load %x[4*t + k, l] : f32
          loop.store %a, %s[k, l]
        }
      }
      loop.for i = 0 to 4 schedule [prefetch] {
        loop.for j = 0 to 32 schedule [vector 16] {
          %p = loop.load %s[i, j] : f32
          %q = loop.load %b[j] : f32
          %r = loop.load %y[4*t + i, j] : f32
          %u = arith.addf %p, %q : f32
          %v = arith.addf %u, %r : f32
          loop.store %v, %y[4*t + i, j]
          loop.store %u, %z[4*t + i, j]
        }
      }
    }
  }
}

// -----

// Along a column every element has a line of its own; an element that is found by a value is not known in time.

// CHECK:            loop.for i1 = 0 to 4 schedule [unroll] {
// CHECK-NEXT:         loop.prefetch %x[i1, t]
// CHECK-NEXT:       }
// CHECK-NEXT:       loop.store %c, %y[0, t]

builtin.module {
  loop.func @columns symbols [] (%x: memref<4x8xf32>, %w: memref<4xi64>, %y: memref<4x8xf32>) outputs 1 {
    loop.for t = 0 to 8 {
      %c = arith.constant 1.0 : f32
      loop.store %c, %y[0, t]
      loop.for i = 0 to 4 schedule [prefetch] {
        %k = loop.load %w[0] : i64
        %p = loop.load %x[i, t] : f32
        loop.store %p, %y[_0, t] with %k if [_0, 3 - _0]
      }
    }
  }
}

// -----

// What the body reads two iterations later, line by line; not a vector that is the same for all rows.

// CHECK:            loop.for k = 0 to 4 reduction {
// CHECK-NEXT:         loop.prefetch %s[p, k + 2]
// CHECK-NEXT:         loop.prefetch %w[p, k + 2, 0, 0]
// CHECK-NEXT:         loop.prefetch %w[p, k + 2, 1, 0]
// CHECK-NEXT:         %c = loop.load %s[p, k] : f32
// CHECK-NEXT:         %f = loop.load %x[k] : f32
// CHECK-NEXT:         %g = arith.mulf %c, %f : f32

builtin.module {
  loop.func @ahead symbols [n] (%w: memref<8x4x2x16xi32>, %s: memref<8x4xf32>, %x: memref<4xf32>, %t: memref<4xi64>, %y: memref<8x16xf32>) outputs 1 {
    loop.for p = 0 to 8 {
      loop.for k = 0 to 4 reduction schedule [ahead 2] {
        %c = loop.load %s[p, k] : f32
        %f = loop.load %x[k] : f32
        %g = arith.mulf %c, %f : f32
        loop.for l = 0 to 16 schedule [vector 8] {
          %a = loop.load %w[p, k, 0, l] : i32
          %b = loop.load %w[p, k, 1, l] : i32
          %d = arith.addi %a, %b : i32
          %e = arith.sitofp %d : i32 to f32
          %h = arith.mulf %e, %g : f32
          loop.accumulate add %h, %y[p, l]
        }
      }
    }
  }
}
