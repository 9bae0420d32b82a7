// RUN: igniter-opt %s -p "tile-loops" --split-input-file | filecheck %s

// A multiple of the tile needs no tail. The inner loop takes the hints after `inner`.

// CHECK:        loop.func @full symbols [] (%x: memref<64xf32>, %y: memref<64xf32>) outputs 1 {
// CHECK-NEXT:     loop.for i = 0 to 8 hints {threads} {
// CHECK-NEXT:       loop.for i_in = 0 to 8 hints {unroll} {
// CHECK-NEXT:         %a = loop.load %x[8*i + i_in] : f32
// CHECK-NEXT:         loop.store %a, %y[8*i + i_in]
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @full symbols [] (%x: memref<64xf32>, %y: memref<64xf32>) outputs 1 {
    loop.for i = 0 to 64 hints {tile = 8 : i64, inner = {unroll}, threads} {
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
    loop.for i = 0 to n hints {tile = 8 : i64} {
      %a = loop.load %x[i] : f32
      loop.store %a, %y[i]
    }
  }
}

// -----

// Tail "peel": what remains is tiled by half as much, and so on, so that every inner loop has a constant extent.

// CHECK:        loop.func @peel symbols [] (%x: memref<13xf32>, %y: memref<13xf32>) outputs 1 {
// CHECK-NEXT:     loop.for i = 0 to 1 {
// CHECK-NEXT:       loop.for i_in = 0 to 8 hints {unroll} {
// CHECK-NEXT:         %a = loop.load %x[8*i + i_in] : f32
// CHECK-NEXT:         loop.store %a, %y[8*i + i_in]
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for i1 = 0 to 1 {
// CHECK-NEXT:       loop.for i1_in = 0 to 5 hints {unroll} {
// CHECK-NEXT:         %a_1 = loop.load %x[5*i1 + i1_in + 8] : f32
// CHECK-NEXT:         loop.store %a_1, %y[5*i1 + i1_in + 8]
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @peel symbols [] (%x: memref<13xf32>, %y: memref<13xf32>) outputs 1 {
    loop.for i = 0 to 13 hints {tile = 8 : i64, tail = "peel", inner = {unroll}} {
      %a = loop.load %x[i] : f32
      loop.store %a, %y[i]
    }
  }
}

// -----

// Tail "rest": what remains is a plain loop, vectorised as the inner one is.

// CHECK:        loop.func @rest symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
// CHECK-NEXT:     loop.for i = 0 to (n floordiv 64) {
// CHECK-NEXT:       loop.for i_in = 0 to 64 hints {unroll, vector = 16 : i64} {
// CHECK-NEXT:         %a = loop.load %x[64*i + i_in] : f32
// CHECK-NEXT:         loop.store %a, %y[64*i + i_in]
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for i1 = n - (n mod 64) to n hints {vector = 16 : i64} {
// CHECK-NEXT:       %a_1 = loop.load %x[i1] : f32
// CHECK-NEXT:       loop.store %a_1, %y[i1]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @rest symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
    loop.for i = 0 to n hints {tile = 64 : i64, tail = "rest", inner = {unroll, vector = 16 : i64}} {
      %a = loop.load %x[i] : f32
      loop.store %a, %y[i]
    }
  }
}

// -----

// Where the loop is all that a loop for threads runs, the rest gets such a loop of its own.

// CHECK:        loop.func @batch symbols [b, n] (%x: memref<?x?xf32, #sym.dims<b, n>>, %y: memref<?x?xf32, #sym.dims<b, n>>) outputs 1 {
// CHECK-NEXT:     loop.for i = 0 to b hints {threads} {
// CHECK-NEXT:       loop.for j = 0 to (n floordiv 8) {
// CHECK-NEXT:         loop.for j_in = 0 to 8 hints {vector = 8 : i64} {
// CHECK-NEXT:           %a = loop.load %x[i, 8*j + j_in] : f32
// CHECK-NEXT:           loop.store %a, %y[i, 8*j + j_in]
// CHECK-NEXT:         }
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for i1 = 0 to b hints {threads} {
// CHECK-NEXT:       loop.for j1 = n - (n mod 8) to n hints {vector = 8 : i64} {
// CHECK-NEXT:         %a_1 = loop.load %x[i1, j1] : f32
// CHECK-NEXT:         loop.store %a_1, %y[i1, j1]
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @batch symbols [b, n] (%x: memref<?x?xf32, #sym.dims<b, n>>, %y: memref<?x?xf32, #sym.dims<b, n>>) outputs 1 {
    loop.for i = 0 to b hints {threads} {
      loop.for j = 0 to n hints {tile = 8 : i64, tail = "rest", inner = {vector = 8 : i64}} {
        %a = loop.load %x[i, j] : f32
        loop.store %a, %y[i, j]
      }
    }
  }
}
