// RUN: igniter-opt %s -p "sink-loops" --split-input-file | filecheck %s

// The loop is distributed, its buffer gets a place for every iteration, and it ends up inside the reduction.

// CHECK:        loop.func @rows symbols [n] (%x: memref<8x?xf32, #sym.dims<8, n>>, %y: memref<8xf32>) outputs 1 {
// CHECK-NEXT:     %acc = loop.alloc "acc" : memref<8xf32, "register">
// CHECK-NEXT:     %zero = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     loop.for i1 = 0 to 8 hints {unroll} {
// CHECK-NEXT:       loop.store %zero, %acc[i1]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for k = 0 to n reduction {
// CHECK-NEXT:       loop.for i2 = 0 to 8 hints {unroll} {
// CHECK-NEXT:         %a = loop.load %x[i2, k] : f32
// CHECK-NEXT:         loop.accumulate add %a, %acc[i2]
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for i3 = 0 to 8 hints {unroll} {
// CHECK-NEXT:       %s = loop.load %acc[i3] : f32
// CHECK-NEXT:       loop.store %s, %y[i3]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @rows symbols [n] (%x: memref<8x?xf32, #sym.dims<8, n>>, %y: memref<8xf32>) outputs 1 {
    loop.for i = 0 to 8 hints {sink, unroll} {
      %acc = loop.alloc "acc" : memref<f32, "register">
      %zero = arith.constant 0.0 : f32
      loop.store %zero, %acc[]
      loop.for k = 0 to n reduction {
        %a = loop.load %x[i, k] : f32
        loop.accumulate add %a, %acc[]
      }
      %s = loop.load %acc[] : f32
      loop.store %s, %y[i]
    }
  }
}

// -----

// A reduction that is vectorised runs along one row: the loop over rows stays outside.

// CHECK:        loop.func @vector symbols [n] (%x: memref<8x?xf32, #sym.dims<8, n>>, %y: memref<8xf32>) outputs 1 {
// CHECK-NEXT:     loop.for i = 0 to 8 {
// CHECK-NEXT:       %acc = loop.alloc "acc" : memref<f32, "register">
// CHECK-NEXT:       loop.for k = 0 to n reduction hints {vector = 16 : i64} {
// CHECK-NEXT:         %a = loop.load %x[i, k] : f32
// CHECK-NEXT:         loop.accumulate add %a, %acc[]
// CHECK-NEXT:       }
// CHECK-NEXT:       %s = loop.load %acc[] : f32
// CHECK-NEXT:       loop.store %s, %y[i]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @vector symbols [n] (%x: memref<8x?xf32, #sym.dims<8, n>>, %y: memref<8xf32>) outputs 1 {
    loop.for i = 0 to 8 hints {sink} {
      %acc = loop.alloc "acc" : memref<f32, "register">
      loop.for k = 0 to n reduction hints {vector = 16 : i64} {
        %a = loop.load %x[i, k] : f32
        loop.accumulate add %a, %acc[]
      }
      %s = loop.load %acc[] : f32
      loop.store %s, %y[i]
    }
  }
}
