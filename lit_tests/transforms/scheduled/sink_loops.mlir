// RUN: igniter-opt %s -p "sink-loops" --split-input-file | filecheck %s

// The loop is distributed, its buffer gets a place for every iteration, and it ends up inside the reduction.

// CHECK:        loop.func @rows symbols [n] (%x: memref<8x?xf32, #sym.dims<8, n>>, %y: memref<8xf32>) outputs 1 {
// CHECK-NEXT:     %acc = loop.alloc "acc" : memref<8xf32, "register">
// CHECK-NEXT:     %zero = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     loop.for i1 = 0 to 8 schedule [unroll] {
// CHECK-NEXT:       loop.store %zero, %acc[i1]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for k = 0 to n reduction {
// CHECK-NEXT:       loop.for i2 = 0 to 8 schedule [unroll] {
// CHECK-NEXT:         %a = loop.load %x[i2, k] : f32
// CHECK-NEXT:         loop.accumulate add %a, %acc[i2]
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for i3 = 0 to 8 schedule [unroll] {
// CHECK-NEXT:       %s = loop.load %acc[i3] : f32
// CHECK-NEXT:       loop.store %s, %y[i3]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @rows symbols [n] (%x: memref<8x?xf32, #sym.dims<8, n>>, %y: memref<8xf32>) outputs 1 {
    loop.for i = 0 to 8 schedule [unroll sink reductions] {
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
// CHECK-NEXT:       loop.for k = 0 to n reduction schedule [vector 16] {
// CHECK-NEXT:         %a = loop.load %x[i, k] : f32
// CHECK-NEXT:         loop.accumulate add %a, %acc[]
// CHECK-NEXT:       }
// CHECK-NEXT:       %s = loop.load %acc[] : f32
// CHECK-NEXT:       loop.store %s, %y[i]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @vector symbols [n] (%x: memref<8x?xf32, #sym.dims<8, n>>, %y: memref<8xf32>) outputs 1 {
    loop.for i = 0 to 8 schedule [sink reductions] {
      %acc = loop.alloc "acc" : memref<f32, "register">
      loop.for k = 0 to n reduction schedule [vector 16] {
        %a = loop.load %x[i, k] : f32
        loop.accumulate add %a, %acc[]
      }
      %s = loop.load %acc[] : f32
      loop.store %s, %y[i]
    }
  }
}

// -----

// A column of vectors goes below all loops of the rows. Buffers of the column get the lanes last, and a value that is
// computed before a loop and used after it gets a buffer.

// CHECK:        loop.func @column symbols [n] (%x: memref<?x8xf32, #sym.dims<n, 8>>, %y: memref<?x8xf32, #sym.dims<n, 8>>) outputs 1 {
// CHECK-NEXT:     %0 = loop.alloc "s" : memref<8xf32, "register">
// CHECK-NEXT:     %1 = loop.alloc "top" : memref<8xf32, "register">
// CHECK-NEXT:     %acc = loop.alloc "acc" : memref<8xf32, "register">
// CHECK-NEXT:     %zero = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     loop.for i1 = 0 to 8 schedule [vector 4 unroll] {
// CHECK-NEXT:       loop.store %zero, %acc[i1]
// CHECK-NEXT:       %top = loop.load %x[0, i1] : f32
// CHECK-NEXT:       loop.store %top, %1[i1]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for k = 0 to n reduction {
// CHECK-NEXT:       loop.for i2 = 0 to 8 schedule [vector 4 unroll] {
// CHECK-NEXT:         %a = loop.load %x[k, i2] : f32
// CHECK-NEXT:         loop.accumulate add %a, %acc[i2]
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for i3 = 0 to 8 schedule [vector 4 unroll] {
// CHECK-NEXT:       %s = loop.load %acc[i3] : f32
// CHECK-NEXT:       loop.store %s, %0[i3]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for j = 0 to n {
// CHECK-NEXT:       loop.for i4 = 0 to 8 schedule [vector 4 unroll] {
// CHECK-NEXT:         %2 = loop.load %1[i4] : f32
// CHECK-NEXT:         %3 = loop.load %0[i4] : f32
// CHECK-NEXT:         %b = arith.addf %3, %2 : f32
// CHECK-NEXT:         loop.store %b, %y[j, i4]
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @column symbols [n] (%x: memref<?x8xf32, #sym.dims<n, 8>>, %y: memref<?x8xf32, #sym.dims<n, 8>>) outputs 1 {
    loop.for i = 0 to 8 schedule [vector 4 unroll sink loops] {
      %acc = loop.alloc "acc" : memref<f32, "register">
      %zero = arith.constant 0.0 : f32
      loop.store %zero, %acc[]
      %top = loop.load %x[0, i] : f32
      loop.for k = 0 to n reduction {
        %a = loop.load %x[k, i] : f32
        loop.accumulate add %a, %acc[]
      }
      %s = loop.load %acc[] : f32
      loop.for j = 0 to n {
        %b = arith.addf %s, %top : f32
        loop.store %b, %y[j, i]
      }
    }
  }
}

// -----

// A loop that is not unrolled cannot count through registers: what it kept there becomes memory. A reduction that is
// unrolled stays inside.

// CHECK:        loop.func @stream symbols [n] (%x: memref<?x64xf32, #sym.dims<8*n, 64>>, %y: memref<64xf32>) outputs 1 {
// CHECK-NEXT:     %acc = loop.alloc "acc" : memref<64xf32, "local">
// CHECK-NEXT:     %zero = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     loop.for j1 = 0 to 64 schedule [vector 16] {
// CHECK-NEXT:       loop.store %zero, %acc[j1]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for k = 0 to n reduction {
// CHECK-NEXT:       loop.for j2 = 0 to 64 schedule [vector 16] {
// CHECK-NEXT:         loop.for k_in = 0 to 8 reduction schedule [unroll] {
// CHECK-NEXT:           %a = loop.load %x[8*k + k_in, j2] : f32
// CHECK-NEXT:           loop.accumulate add %a, %acc[j2]
// CHECK-NEXT:         }
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for j3 = 0 to 64 schedule [vector 16] {
// CHECK-NEXT:       %s = loop.load %acc[j3] : f32
// CHECK-NEXT:       loop.store %s, %y[j3]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @stream symbols [n] (%x: memref<?x64xf32, #sym.dims<8*n, 64>>, %y: memref<64xf32>) outputs 1 {
    loop.for j = 0 to 64 schedule [vector 16 sink loops] {
      %acc = loop.alloc "acc" : memref<f32, "register">
      %zero = arith.constant 0.0 : f32
      loop.store %zero, %acc[]
      loop.for k = 0 to n reduction {
        loop.for k_in = 0 to 8 reduction schedule [unroll] {
          %a = loop.load %x[8*k + k_in, j] : f32
          loop.accumulate add %a, %acc[]
        }
      }
      %s = loop.load %acc[] : f32
      loop.store %s, %y[j]
    }
  }
}
