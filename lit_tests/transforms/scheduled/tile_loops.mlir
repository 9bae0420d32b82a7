// RUN: igniter-opt %s -p "tile-loops" --split-input-file | filecheck %s

// A multiple of the tile needs no tail. The inner loop takes the words in `inside`.

// CHECK:        loop.func @full symbols [] (%x: memref<64xf32>, %y: memref<64xf32>) outputs 1 {
// CHECK-NEXT:     loop.for i = 0 to 8 schedule [threads] {
// CHECK-NEXT:       loop.for i_in = 0 to 8 schedule [unroll] {
// CHECK-NEXT:         %a = loop.load %x[8*i + i_in] : f32
// CHECK-NEXT:         loop.store %a, %y[8*i + i_in]
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @full symbols [] (%x: memref<64xf32>, %y: memref<64xf32>) outputs 1 {
    loop.for i = 0 to 64 schedule [by 8 threads inside [unroll]] {
      %a = loop.load %x[i] : f32
      loop.store %a, %y[i]
    }
  }
}

// -----

// Tail "mask", the default: the last tile is shorter.

// CHECK:        loop.func @mask symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
// CHECK-NEXT:     loop.for i = 0 to ((n + 7) floordiv 8) {
// CHECK-NEXT:       loop.for i_in = 0 to min(-8*i + n, 8) {
// CHECK-NEXT:         %a = loop.load %x[8*i + i_in] : f32
// CHECK-NEXT:         loop.store %a, %y[8*i + i_in]
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @mask symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
    loop.for i = 0 to n schedule [by 8] {
      %a = loop.load %x[i] : f32
      loop.store %a, %y[i]
    }
  }
}

// -----

// Tail "peel": what remains is tiled by half as much, and so on, so that every inner loop has a constant extent.

// CHECK:        loop.func @peel symbols [] (%x: memref<13xf32>, %y: memref<13xf32>) outputs 1 {
// CHECK-NEXT:     loop.for i = 0 to 1 {
// CHECK-NEXT:       loop.for i_in = 0 to 8 schedule [unroll] {
// CHECK-NEXT:         %a = loop.load %x[8*i + i_in] : f32
// CHECK-NEXT:         loop.store %a, %y[8*i + i_in]
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for i1 = 0 to 1 {
// CHECK-NEXT:       loop.for i1_in = 0 to 5 schedule [unroll] {
// CHECK-NEXT:         %a_1 = loop.load %x[5*i1 + i1_in + 8] : f32
// CHECK-NEXT:         loop.store %a_1, %y[5*i1 + i1_in + 8]
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @peel symbols [] (%x: memref<13xf32>, %y: memref<13xf32>) outputs 1 {
    loop.for i = 0 to 13 schedule [by 8 tail peel inside [unroll]] {
      %a = loop.load %x[i] : f32
      loop.store %a, %y[i]
    }
  }
}

// -----

// Tail "rest": what remains is a plain loop, vectorised as the inner one is.

// CHECK:        loop.func @rest symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
// CHECK-NEXT:     loop.for i = 0 to (n floordiv 64) {
// CHECK-NEXT:       loop.for i_in = 0 to 64 schedule [vector 16 unroll] {
// CHECK-NEXT:         %a = loop.load %x[64*i + i_in] : f32
// CHECK-NEXT:         loop.store %a, %y[64*i + i_in]
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for i1 = n - (n mod 64) to n schedule [vector 16] {
// CHECK-NEXT:       %a_1 = loop.load %x[i1] : f32
// CHECK-NEXT:       loop.store %a_1, %y[i1]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @rest symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
    loop.for i = 0 to n schedule [by 64 tail rest inside [vector 16 unroll]] {
      %a = loop.load %x[i] : f32
      loop.store %a, %y[i]
    }
  }
}

// -----

// Where the loop is all that a loop for threads runs, the rest gets such a loop of its own.

// CHECK:        loop.func @batch symbols [b, n] (%x: memref<?x?xf32, #sym.dims<b, n>>, %y: memref<?x?xf32, #sym.dims<b, n>>) outputs 1 {
// CHECK-NEXT:     loop.for i = 0 to b schedule [threads] {
// CHECK-NEXT:       loop.for j = 0 to (n floordiv 8) {
// CHECK-NEXT:         loop.for j_in = 0 to 8 schedule [vector 8] {
// CHECK-NEXT:           %a = loop.load %x[i, 8*j + j_in] : f32
// CHECK-NEXT:           loop.store %a, %y[i, 8*j + j_in]
// CHECK-NEXT:         }
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for i1 = 0 to b schedule [threads] {
// CHECK-NEXT:       loop.for j1 = n - (n mod 8) to n schedule [vector 8] {
// CHECK-NEXT:         %a_1 = loop.load %x[i1, j1] : f32
// CHECK-NEXT:         loop.store %a_1, %y[i1, j1]
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @batch symbols [b, n] (%x: memref<?x?xf32, #sym.dims<b, n>>, %y: memref<?x?xf32, #sym.dims<b, n>>) outputs 1 {
    loop.for i = 0 to b schedule [threads] {
      loop.for j = 0 to n schedule [by 8 tail rest inside [vector 8]] {
        %a = loop.load %x[i, j] : f32
        loop.store %a, %y[i, j]
      }
    }
  }
}
