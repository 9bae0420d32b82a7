// RUN: igniter-opt %s -p "promote-buffers" --split-input-file | filecheck %s

// A buffer used in one iteration only shrinks to what an iteration needs; one element becomes a register, and a value
// stored and then loaded in the same body is passed on.

// CHECK:        loop.func @rows symbols [n] (%x: memref<?x8xf32, #sym.dims<n, 8>>, %y: memref<?x8xf32, #sym.dims<n, 8>>) outputs 1 {
// CHECK-NEXT:     loop.for i = 0 to n {
// CHECK-NEXT:       %u = loop.alloc "u" : memref<f32, "register">
// CHECK-NEXT:       %t = loop.alloc "t" : memref<8xf32, "local">
// CHECK-NEXT:       %f = loop.load %x[i, 3] : f32
// CHECK-NEXT:       loop.store %f, %u[]
// CHECK-NEXT:       loop.for j = 0 to 8 {
// CHECK-NEXT:         %a = loop.load %x[i, j] : f32
// CHECK-NEXT:         %b = arith.addf %a, %f : f32
// CHECK-NEXT:         loop.store %b, %t[j]
// CHECK-NEXT:       }
// CHECK-NEXT:       loop.for j1 = 0 to 8 {
// CHECK-NEXT:         %c = loop.load %t[j1] : f32
// CHECK-NEXT:         %d = loop.load %u[] : f32
// CHECK-NEXT:         %e = arith.mulf %c, %d : f32
// CHECK-NEXT:         loop.store %e, %y[i, j1]
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @rows symbols [n] (%x: memref<?x8xf32, #sym.dims<n, 8>>, %y: memref<?x8xf32, #sym.dims<n, 8>>) outputs 1 {
    %t = loop.alloc "t" : memref<?x8xf32, #sym.dims<n, 8>, "scratch">
    %u = loop.alloc "u" : memref<?xf32, #sym.dims<n>, "scratch">
    %w = loop.alloc "w" : memref<?xf32, #sym.dims<n>, "scratch">
    loop.for i = 0 to n {
      %f = loop.load %x[i, 3] : f32
      loop.store %f, %u[i]
      loop.store %f, %w[i]
      %g = loop.load %w[i] : f32
      loop.for j = 0 to 8 {
        %a = loop.load %x[i, j] : f32
        %b = arith.addf %a, %g : f32
        loop.store %b, %t[i, j]
      }
      loop.for j1 = 0 to 8 {
        %c = loop.load %t[i, j1] : f32
        %d = loop.load %u[i] : f32
        %e = arith.mulf %c, %d : f32
        loop.store %e, %y[i, j1]
      }
    }
  }
}

// -----

// Tiles: the buffer keeps the rows of a tile, and no more than the tile has.

// CHECK:        loop.func @tiles symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
// CHECK-NEXT:     loop.for i = 0 to ((n + 7) floordiv 8) {
// CHECK-NEXT:       %t = loop.alloc "t" : memref<8xf32, "local">
// CHECK-NEXT:       loop.for i_in = 0 to min(-8*i + n, 8) {
// CHECK-NEXT:         %a = loop.load %x[8*i + i_in] : f32
// CHECK-NEXT:         loop.store %a, %t[i_in]
// CHECK-NEXT:       }
// CHECK-NEXT:       loop.for i_in1 = 0 to min(-8*i + n, 8) {
// CHECK-NEXT:         %b = loop.load %t[i_in1] : f32
// CHECK-NEXT:         loop.store %b, %y[8*i + i_in1]
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @tiles symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
    %t = loop.alloc "t" : memref<?xf32, #sym.dims<n>, "scratch">
    loop.for i = 0 to (n + 7) floordiv 8 {
      loop.for i_in = 0 to min(8, n - 8*i) {
        %a = loop.load %x[8*i + i_in] : f32
        loop.store %a, %t[8*i + i_in]
      }
      loop.for i_in1 = 0 to min(8, n - 8*i) {
        %b = loop.load %t[8*i + i_in1] : f32
        loop.store %b, %y[8*i + i_in1]
      }
    }
  }
}

// -----

// Used by two loops, a buffer stays where it is.

// CHECK:        loop.func @stays symbols [] (%x: memref<8xf32>, %y: memref<8xf32>) outputs 1 {
// CHECK-NEXT:     %t = loop.alloc "t" : memref<8xf32, "scratch">
// CHECK-NEXT:     loop.for i = 0 to 8 {
// CHECK-NEXT:       %a = loop.load %x[i] : f32
// CHECK-NEXT:       loop.store %a, %t[i]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for i1 = 0 to 8 {
// CHECK-NEXT:       %b = loop.load %t[-i1 + 7] : f32
// CHECK-NEXT:       loop.store %b, %y[i1]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @stays symbols [] (%x: memref<8xf32>, %y: memref<8xf32>) outputs 1 {
    %t = loop.alloc "t" : memref<8xf32, "scratch">
    loop.for i = 0 to 8 {
      %a = loop.load %x[i] : f32
      loop.store %a, %t[i]
    }
    loop.for i1 = 0 to 8 {
      %b = loop.load %t[-i1 + 7] : f32
      loop.store %b, %y[i1]
    }
  }
}

// -----

// Between two micro-kernels a block of rows is enough.

// CHECK:      loop.func @tiles
// CHECK-NEXT:   loop.for i = 0 to ((s + 7) floordiv 8) {
// CHECK-NEXT:     %c = loop.alloc "c" : memref<8x48xf32, "local">
// CHECK-NEXT:     loop.tile_product %c[r, l + 16*p] = %q[8*i + r, k] * %k[k, l + 16*p] over r = min(-8*i + s, 8), p = 3, l = 16, k = 64 tile [8, 3]
// CHECK-NEXT:     loop.tile_product %y[8*i + r1, l1 + 16*p1] = %c[r1, k1] * %v[k1, l1 + 16*p1] over r1 = min(-8*i + s, 8), p1 = 2, l1 = 16, k1 = 48 tile [8, 2]
// CHECK-NEXT:   }

builtin.module {
  loop.func @tiles symbols [s] (%q: memref<?x64xf32, #sym.dims<s, 64>>, %k: memref<64x48xf32>, %v: memref<48x32xf32>, %y: memref<?x32xf32, #sym.dims<s, 32>>) outputs 1 {
    %c = loop.alloc "c" : memref<?x48xf32, #sym.dims<s, 48>, "scratch">
    loop.for i = 0 to (s + 7) floordiv 8 {
      loop.tile_product %c[8*i + r, 16*p + l] = %q[8*i + r, k] * %k[k, 16*p + l] over r = min(8, s - 8*i), p = 3, l = 16, k = 64 tile [8, 3]
      loop.tile_product %y[8*i + r1, 16*p1 + l1] = %c[8*i + r1, k1] * %v[k1, 16*p1 + l1] over r1 = min(8, s - 8*i), p1 = 2, l1 = 16, k1 = 48 tile [8, 2]
    }
  }
}

// -----

// Panels that are fetched ahead belong to other iterations: their buffer stays.

// CHECK:      loop.func @fetched
// CHECK-NEXT:   %b = loop.alloc "b" : memref<3x64x16xf32, "scratch">
// CHECK-NEXT:   loop.for j = 0 to 3 {

builtin.module {
  loop.func @fetched symbols [] (%q: memref<8x64xf32>, %k: memref<3x64x16xf32>, %y: memref<8x48xf32>) outputs 1 {
    %b = loop.alloc "b" : memref<3x64x16xf32, "scratch">
    loop.for j = 0 to 3 {
      loop.for d = 0 to 64 {
        loop.for e = 0 to 16 {
          %a = loop.load %k[j, d, e] : f32
          loop.store %a, %b[j, d, e]
        }
      }
      loop.tile_product %y[r, 16*j + 16*p + l] = %q[r, k] * %b[j + p, k, l] over r = 8, p = 1, l = 16, k = 64 tile [8, 1] fetch [j + 1, 0, 0]
    }
  }
}

// -----

// One row of one panel has no register to be: the micro-kernel needs its address.

// CHECK:      loop.func @address
// CHECK-NEXT:   loop.for i = 0 to n {
// CHECK-NEXT:     %a = loop.alloc "a" : memref<f32, "local">
// CHECK:          loop.store %v, %a[]
// CHECK-NEXT:     loop.tile_product %y[i + r, l] = %a[] * %b[k, l] over r = 1, p = 1, l = 16, k = 1 tile [1, 1]

builtin.module {
  loop.func @address symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %b: memref<1x16xf32>, %y: memref<?x16xf32, #sym.dims<n, 16>>) outputs 1 {
    %a = loop.alloc "a" : memref<?xf32, #sym.dims<n>, "scratch">
    loop.for i = 0 to n {
      %v = loop.load %x[i] : f32
      loop.store %v, %a[i]
      loop.tile_product %y[i + r, l] = %a[i] * %b[k, l] over r = 1, p = 1, l = 16, k = 1 tile [1, 1]
    }
  }
}
