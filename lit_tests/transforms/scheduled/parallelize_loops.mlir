// RUN: igniter-opt %s -p "parallelize-loops" --split-input-file | filecheck %s

// A loop takes in the loop that is all of its body: a batch of one still has rows to share out.

// CHECK:        loop.func @rows symbols [b, s] (%x: memref<?x?x64xf32, #sym.dims<b, s, 64>>, %y: memref<?x?x64xf32, #sym.dims<b, s, 64>>) outputs 1 {
// CHECK-NEXT:     loop.for ij = 0 to b*s threads(max(((b*s + 63) floordiv 64), 228)) {
// CHECK-NEXT:       loop.for k = 0 to 64 schedule [vector 16] {
// CHECK-NEXT:         %a = loop.load %x[(ij floordiv s), (ij mod s), k] : f32
// CHECK-NEXT:         loop.store %a, %y[(ij floordiv s), (ij mod s), k]
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @rows symbols [b, s] (%x: memref<?x?x64xf32, #sym.dims<b, s, 64>>, %y: memref<?x?x64xf32, #sym.dims<b, s, 64>>) outputs 1 {
    loop.for i = 0 to b schedule [threads] {
      loop.for j = 0 to s {
        loop.for k = 0 to 64 schedule [vector 16] {
          %a = loop.load %x[i, j, k] : f32
          loop.store %a, %y[i, j, k]
        }
      }
    }
  }
}

// -----

// A grain given by hand is kept; loops inside a task stay with their thread.

// CHECK:        loop.func @grain symbols [] (%x: memref<64x64xf32>, %y: memref<64x64xf32>) outputs 1 {
// CHECK-NEXT:     loop.for i = 0 to 64 threads(4) {
// CHECK-NEXT:       %z = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:       loop.for j = 0 to 64 {
// CHECK-NEXT:         loop.store %z, %y[i, j]
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @grain symbols [] (%x: memref<64x64xf32>, %y: memref<64x64xf32>) outputs 1 {
    loop.for i = 0 to 64 schedule [threads 4] {
      %z = arith.constant 0.0 : f32
      loop.for j = 0 to 64 schedule [threads] {
        loop.store %z, %y[i, j]
      }
    }
  }
}

// -----

// Iterations that may meet in an element get no threads.

// CHECK:        loop.func @meet symbols [] (%x: memref<64x64xf32>, %y: memref<128xf32>) outputs 1 {
// CHECK-NEXT:     loop.for i = 0 to 64 {
// CHECK-NEXT:       loop.for j = 0 to 64 {

builtin.module {
  loop.func @meet symbols [] (%x: memref<64x64xf32>, %y: memref<128xf32>) outputs 1 {
    loop.for i = 0 to 64 schedule [threads] {
      loop.for j = 0 to 64 {
        %a = loop.load %x[i, j] : f32
        loop.accumulate add %a, %y[i + j]
      }
    }
  }
}

// -----

// A loop that is less work than a task is not taken in: its iterations would be found by divisions for nothing.

// CHECK:        loop.func @panels symbols [n] (%x: memref<?x64x16xf32, #sym.dims<n, 64, 16>>, %y: memref<?x64x16xf32, #sym.dims<n, 64, 16>>) outputs 1 {
// CHECK-NEXT:       loop.for i = 0 to n threads(max(((n + 63) floordiv 64), 11)) {
// CHECK-NEXT:         loop.for j = 0 to 64 {
// CHECK-NEXT:           loop.for k = 0 to 16 schedule [vector 16] {
// CHECK-NEXT:             %a = loop.load %x[i, j, k] : f32
// CHECK-NEXT:             loop.store %a, %y[i, j, k]
// CHECK-NEXT:           }
// CHECK-NEXT:         }
// CHECK-NEXT:       }
// CHECK-NEXT:     }


builtin.module {
  loop.func @panels symbols [n] (%x: memref<?x64x16xf32, #sym.dims<n, 64, 16>>, %y: memref<?x64x16xf32, #sym.dims<n, 64, 16>>) outputs 1 {
    loop.for i = 0 to n schedule [threads] {
      loop.for j = 0 to 64 {
        loop.for k = 0 to 16 schedule [vector 16] {
          %a = loop.load %x[i, j, k] : f32
          loop.store %a, %y[i, j, k]
        }
      }
    }
  }
}

// -----

// Blocks of blocks, both of which say that threads share them, are shared out once.

// CHECK:        loop.func @blocks symbols [] (%x: memref<49x65536xf32>, %y: memref<49x65536xf32>) outputs 1 {
// CHECK-NEXT:       loop.for ij = 0 to 49 threads(1) {
// CHECK-NEXT:         loop.for k = 0 to 65536 schedule [vector 16] {
// CHECK-NEXT:           %a = loop.load %x[7*(ij floordiv 7) + (ij mod 7), k] : f32

builtin.module {
  loop.func @blocks symbols [] (%x: memref<49x65536xf32>, %y: memref<49x65536xf32>) outputs 1 {
    loop.for i = 0 to 7 schedule [threads] {
      loop.for j = 0 to 7 schedule [threads] {
        loop.for k = 0 to 65536 schedule [vector 16] {
          %a = loop.load %x[7*i + j, k] : f32
          loop.store %a, %y[7*i + j, k]
        }
      }
    }
  }
}
