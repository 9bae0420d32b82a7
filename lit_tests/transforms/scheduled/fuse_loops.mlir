// RUN: igniter-opt %s -p "fuse-loops{all=true}" --split-input-file | filecheck %s

// Two loops over one range: what the second reads, the first wrote in the same iteration.

// CHECK:        loop.func @rows symbols [n] (%x: memref<?x8xf32, #sym.dims<n, 8>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
// CHECK-NEXT:     %t = loop.alloc "t" : memref<?xf32, #sym.dims<n>, "scratch">
// CHECK-NEXT:     loop.for i = 0 to n {
// CHECK-NEXT:       %a = loop.load %x[i, 0] : f32
// CHECK-NEXT:       loop.store %a, %t[i]
// CHECK-NEXT:       %b = loop.load %t[i] : f32
// CHECK-NEXT:       loop.store %b, %y[i]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @rows symbols [n] (%x: memref<?x8xf32, #sym.dims<n, 8>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
    %t = loop.alloc "t" : memref<?xf32, #sym.dims<n>, "scratch">
    loop.for i = 0 to n {
      %a = loop.load %x[i, 0] : f32
      loop.store %a, %t[i]
    }
    loop.for i1 = 0 to n {
      %b = loop.load %t[i1] : f32
      loop.store %b, %y[i1]
    }
  }
}

// -----

// The second needs all that the first wrote: they stay apart.

// CHECK:        loop.func @all symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
// CHECK-NEXT:     %t = loop.alloc "t" : memref<f32, "register">
// CHECK-NEXT:     loop.for i = 0 to n reduction {
// CHECK-NEXT:       %a = loop.load %x[i] : f32
// CHECK-NEXT:       loop.accumulate add %a, %t[]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for i1 = 0 to n {
// CHECK-NEXT:       %b = loop.load %t[] : f32
// CHECK-NEXT:       loop.store %b, %y[i1]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @all symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
    %t = loop.alloc "t" : memref<f32, "register">
    loop.for i = 0 to n reduction {
      %a = loop.load %x[i] : f32
      loop.accumulate add %a, %t[]
    }
    loop.for i1 = 0 to n {
      %b = loop.load %t[] : f32
      loop.store %b, %y[i1]
    }
  }
}

// -----

// A shifted read meets another iteration's write.

// CHECK:        loop.func @shift symbols [] (%x: memref<8xf32>, %y: memref<8xf32>) outputs 1 {
// CHECK-NEXT:     %t = loop.alloc "t" : memref<9xf32, "scratch">
// CHECK-NEXT:     loop.for i = 0 to 8 {
// CHECK-NEXT:       %a = loop.load %x[i] : f32
// CHECK-NEXT:       loop.store %a, %t[i]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for i1 = 0 to 8 {
// CHECK-NEXT:       %b = loop.load %t[i1 + 1] : f32
// CHECK-NEXT:       loop.store %b, %y[i1]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @shift symbols [] (%x: memref<8xf32>, %y: memref<8xf32>) outputs 1 {
    %t = loop.alloc "t" : memref<9xf32, "scratch">
    loop.for i = 0 to 8 {
      %a = loop.load %x[i] : f32
      loop.store %a, %t[i]
    }
    loop.for i1 = 0 to 8 {
      %b = loop.load %t[i1 + 1] : f32
      loop.store %b, %y[i1]
    }
  }
}

// -----

// Through a view, rows of 8 are rows of 8: the same iteration.

// CHECK:        loop.func @view symbols [n] (%x: memref<?x8xf32, #sym.dims<n, 8>>, %y: memref<?x2x4xf32, #sym.dims<n, 2, 4>>) outputs 1 {
// CHECK-NEXT:     %t = loop.alloc "t" : memref<?x8xf32, #sym.dims<n, 8>, "scratch">
// CHECK-NEXT:     %v = loop.view %t : memref<?x8xf32, #sym.dims<n, 8>, "scratch"> to memref<?x2x4xf32, #sym.dims<n, 2, 4>, "scratch">
// CHECK-NEXT:     loop.for i = 0 to n {
// CHECK-NEXT:       loop.for j = 0 to 8 {
// CHECK-NEXT:         %a = loop.load %x[i, j] : f32
// CHECK-NEXT:         loop.store %a, %t[i, j]
// CHECK-NEXT:       }
// CHECK-NEXT:       loop.for j1 = 0 to 2 {
// CHECK-NEXT:         loop.for k1 = 0 to 4 {
// CHECK-NEXT:           %b = loop.load %v[i, j1, k1] : f32
// CHECK-NEXT:           loop.store %b, %y[i, j1, k1]
// CHECK-NEXT:         }
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @view symbols [n] (%x: memref<?x8xf32, #sym.dims<n, 8>>, %y: memref<?x2x4xf32, #sym.dims<n, 2, 4>>) outputs 1 {
    %t = loop.alloc "t" : memref<?x8xf32, #sym.dims<n, 8>, "scratch">
    %v = loop.view %t : memref<?x8xf32, #sym.dims<n, 8>, "scratch"> to memref<?x2x4xf32, #sym.dims<n, 2, 4>, "scratch">
    loop.for i = 0 to n {
      loop.for j = 0 to 8 {
        %a = loop.load %x[i, j] : f32
        loop.store %a, %t[i, j]
      }
    }
    loop.for i1 = 0 to n {
      loop.for j1 = 0 to 2 {
        loop.for k1 = 0 to 4 {
          %b = loop.load %v[i1, j1, k1] : f32
          loop.store %b, %y[i1, j1, k1]
        }
      }
    }
  }
}

// -----

// A statement in between that only the second loop needs moves up; different ranges never fuse.

// CHECK:        loop.func @between symbols [n, m] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>, %z: memref<?xf32, #sym.dims<m>>) outputs 2 {
// CHECK-NEXT:     %t = loop.alloc "t" : memref<f32, "register">
// CHECK-NEXT:     %zero = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     loop.store %zero, %t[]
// CHECK-NEXT:     loop.for i = 0 to n reduction {
// CHECK-NEXT:       %a = loop.load %x[i] : f32
// CHECK-NEXT:       loop.store %a, %y[i]
// CHECK-NEXT:       %b = loop.load %x[i] : f32
// CHECK-NEXT:       loop.accumulate add %b, %t[]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for k = 0 to m {
// CHECK-NEXT:       loop.store %zero, %z[k]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @between symbols [n, m] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>, %z: memref<?xf32, #sym.dims<m>>) outputs 2 {
    %t = loop.alloc "t" : memref<f32, "register">
    loop.for i = 0 to n {
      %a = loop.load %x[i] : f32
      loop.store %a, %y[i]
    }
    %zero = arith.constant 0.0 : f32
    loop.store %zero, %t[]
    loop.for i1 = 0 to n reduction {
      %b = loop.load %x[i1] : f32
      loop.accumulate add %b, %t[]
    }
    loop.for k = 0 to m {
      loop.store %zero, %z[k]
    }
  }
}

// -----

// A loop around a vector loop is no vector, even where the loop that joins it was one.

// CHECK:        loop.func @inside symbols [n] (%x: memref<8x?xf32, #sym.dims<8, n>>, %m: memref<8xf32>, %y: memref<8xf32>) outputs 2 {
// CHECK-NEXT:     loop.for i = 0 to 8 {
// CHECK-NEXT:       loop.for k = 0 to n reduction schedule [vector 16] {
// CHECK-NEXT:         %a = loop.load %x[i, k] : f32
// CHECK-NEXT:         loop.accumulate add %a, %m[i]
// CHECK-NEXT:       }
// CHECK-NEXT:       %b = loop.load %m[i] : f32
// CHECK-NEXT:       loop.store %b, %y[i]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @inside symbols [n] (%x: memref<8x?xf32, #sym.dims<8, n>>, %m: memref<8xf32>, %y: memref<8xf32>) outputs 2 {
    loop.for i = 0 to 8 schedule [fuse "g"] {
      loop.for k = 0 to n reduction schedule [vector 16] {
        %a = loop.load %x[i, k] : f32
        loop.accumulate add %a, %m[i]
      }
    }
    loop.for i1 = 0 to 8 schedule [fuse "g" vector 8] {
      %b = loop.load %m[i1] : f32
      loop.store %b, %y[i1]
    }
  }
}

// -----

// A block of rows of a product, and what reads the same rows; the last block is shorter in both.

// CHECK:      loop.func @blocks
// CHECK:        loop.for i = 0 to ((n + 7) floordiv 8) {
// CHECK-NEXT:     loop.tile_product %c[8*i + r, l]
// CHECK-NEXT:     loop.for i_in = 0 to min(-8*i + n, 8) {
// CHECK-NOT:    loop.for i1

builtin.module {
  loop.func @blocks symbols [n] (%x: memref<?x64xf32, #sym.dims<n, 64>>, %b: memref<64x16xf32>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
    %c = loop.alloc "c" : memref<?x16xf32, #sym.dims<n, 16>, "scratch">
    loop.for i = 0 to (n + 7) floordiv 8 schedule [fuse "g"] {
      loop.tile_product %c[8*i + r, l] = %x[8*i + r, k] * %b[k, l] over r = min(8, n - 8*i), p = 1, l = 16, k = 64 tile [8, 1]
    }
    loop.for i1 = 0 to (n + 7) floordiv 8 schedule [fuse "g"] {
      loop.for i_in = 0 to min(8, n - 8*i1) {
        %v = loop.load %c[8*i1 + i_in, 3] : f32
        loop.store %v, %y[8*i1 + i_in]
      }
    }
  }
}

// -----

// The rows that are read belong to other blocks: two loops.

// CHECK:      loop.func @turned
// CHECK:        loop.for i = 0 to 4 {
// CHECK:        loop.for i1 = 0 to 4 {

builtin.module {
  loop.func @turned symbols [] (%x: memref<32x64xf32>, %b: memref<64x16xf32>, %y: memref<32xf32>) outputs 1 {
    %c = loop.alloc "c" : memref<32x16xf32, "scratch">
    loop.for i = 0 to 4 schedule [fuse "g"] {
      loop.tile_product %c[8*i + r, l] = %x[8*i + r, k] * %b[k, l] over r = 8, p = 1, l = 16, k = 64 tile [8, 1]
    }
    loop.for i1 = 0 to 4 schedule [fuse "g"] {
      loop.for i_in = 0 to 8 {
        %v = loop.load %c[31 - 8*i1 - i_in, 3] : f32
        loop.store %v, %y[8*i1 + i_in]
      }
    }
  }
}
