// RUN: igniter-opt %s -p "vectorize-loops" --split-input-file | filecheck %s

// What depends on the axis becomes a vector, the rest is broadcast; the tail is masked.

// CHECK:        loop.func @rows symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %m: memref<f32>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
// CHECK-NEXT:     loop.for j = 0 to n - (n mod 8) step 8 {
// CHECK-NEXT:       %a = loop.load %x[j + v] lane v : vector<8xf32>
// CHECK-NEXT:       %b = loop.load %m[] : f32
// CHECK-NEXT:       %0 = vector.broadcast %b : f32 to vector<8xf32>
// CHECK-NEXT:       %c = arith.subf %a, %0 : vector<8xf32>
// CHECK-NEXT:       loop.store %c, %y[j + v] lane v
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for j1 = n - (n mod 8) to n step 8 {
// CHECK-NEXT:       %a_1 = loop.load %x[j1 + v] lane v if [-j1 + n - v - 1] : vector<8xf32>
// CHECK-NEXT:       %b_1 = loop.load %m[] : f32
// CHECK-NEXT:       %1 = vector.broadcast %b_1 : f32 to vector<8xf32>
// CHECK-NEXT:       %c_1 = arith.subf %a_1, %1 : vector<8xf32>
// CHECK-NEXT:       loop.store %c_1, %y[j1 + v] lane v if [-j1 + n - v - 1]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @rows symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %m: memref<f32>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
    loop.for j = 0 to n schedule [vector 8] {
      %a = loop.load %x[j] : f32
      %b = loop.load %m[] : f32
      %c = arith.subf %a, %b : f32
      loop.store %c, %y[j]
    }
  }
}

// -----

// Sums meet in a vector accumulator, two in turn here, whose lanes meet after the loop.

// CHECK:        loop.func @sum symbols [] (%x: memref<40xf32>, %y: memref<f32>) outputs 1 {
// CHECK-NEXT:     %0 = loop.alloc "lanes" : memref<2x8xf32, "register">
// CHECK-NEXT:     %1 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %2 = vector.broadcast %1 : f32 to vector<8xf32>
// CHECK-NEXT:     loop.store %2, %0[0, v] lane v
// CHECK-NEXT:     loop.store %2, %0[1, v] lane v
// CHECK-NEXT:     loop.for j = 0 to 32 step 16 reduction {
// CHECK-NEXT:       loop.for u = 0 to 2 schedule [unroll] {
// CHECK-NEXT:         %a = loop.load %x[j + 8*u + v] lane v : vector<8xf32>
// CHECK-NEXT:         loop.accumulate add %a, %0[u, v] lane v
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for j1 = 32 to 40 step 8 reduction {
// CHECK-NEXT:       %a_1 = loop.load %x[j1 + v] lane v : vector<8xf32>
// CHECK-NEXT:       loop.accumulate add %a_1, %0[0, v] lane v
// CHECK-NEXT:     }
// CHECK-NEXT:     %3 = loop.load %0[1, v] lane v : vector<8xf32>
// CHECK-NEXT:     loop.accumulate add %3, %0[0, v] lane v
// CHECK-NEXT:     %4 = loop.load %0[0, v] lane v : vector<8xf32>
// CHECK-NEXT:     %5 = loop.reduce_lanes add %4 : vector<8xf32> to f32
// CHECK-NEXT:     loop.accumulate add %5, %y[]
// CHECK-NEXT:   }

builtin.module {
  loop.func @sum symbols [] (%x: memref<40xf32>, %y: memref<f32>) outputs 1 {
    loop.for j = 0 to 40 reduction schedule [vector 8 accumulators 2] {
      %a = loop.load %x[j] : f32
      loop.accumulate add %a, %y[]
    }
  }
}

// -----

// A buffer of an iteration gets lanes; a loop inside stays a loop. Fewer elements than lanes: one masked vector.

// CHECK:        loop.func @columns symbols [n] (%x: memref<?x5xf32, #sym.dims<n, 5>>, %y: memref<5xf32>) outputs 1 {
// CHECK-NEXT:     loop.for j1 = 0 to 5 step 8 {
// CHECK-NEXT:       %acc = loop.alloc "acc" : memref<8xf32, "register">
// CHECK-NEXT:       %zero = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:       %0 = vector.broadcast %zero : f32 to vector<8xf32>
// CHECK-NEXT:       loop.store %0, %acc[v] lane v
// CHECK-NEXT:       loop.for k1 = 0 to n reduction {
// CHECK-NEXT:         %a = loop.load %x[k1, j1 + v] lane v if [-j1 - v + 4] : vector<8xf32>
// CHECK-NEXT:         loop.accumulate max %a, %acc[v] lane v
// CHECK-NEXT:       }
// CHECK-NEXT:       %s = loop.load %acc[v] lane v : vector<8xf32>
// CHECK-NEXT:       loop.store %s, %y[j1 + v] lane v if [-j1 - v + 4]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @columns symbols [n] (%x: memref<?x5xf32, #sym.dims<n, 5>>, %y: memref<5xf32>) outputs 1 {
    loop.for j = 0 to 5 schedule [vector 8] {
      %acc = loop.alloc "acc" : memref<f32, "register">
      %zero = arith.constant 0.0 : f32
      loop.store %zero, %acc[]
      loop.for k = 0 to n reduction {
        %a = loop.load %x[k, j] : f32
        loop.accumulate max %a, %acc[]
      }
      %s = loop.load %acc[] : f32
      loop.store %s, %y[j]
    }
  }
}

// -----

// Indices and indirect subscripts become vectors too; guards hold lane by lane.

// CHECK:        loop.func @gather symbols [] (%x: memref<9xf32>, %i: memref<16xi64>, %y: memref<16xi64>, %z: memref<16xf32>) outputs 2 {
// CHECK-NEXT:     loop.for j = 0 to 16 step 16 {
// CHECK-NEXT:       %k = loop.load %i[j + v] lane v : vector<16xi64>
// CHECK-NEXT:       %a = loop.load %x[_0] lane v with %k if [_0, -_0 + 8, j + v - 3] : vector<16xf32>
// CHECK-NEXT:       %0 = loop.index 2*j + 2*v lane v : vector<16xi64>
// CHECK-NEXT:       loop.store %0, %y[j + v] lane v
// CHECK-NEXT:       loop.store %a, %z[j + v] lane v
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @gather symbols [] (%x: memref<9xf32>, %i: memref<16xi64>, %y: memref<16xi64>, %z: memref<16xf32>) outputs 2 {
    loop.for j = 0 to 16 schedule [vector 16] {
      %k = loop.load %i[j] : i64
      %a = loop.load %x[_0] with %k if [_0, -_0 + 8, j - 3] : f32
      %d = loop.index 2*j : i64
      loop.store %d, %y[j]
      loop.store %a, %z[j]
    }
  }
}

// -----

// A register buffer that a masked tail would reach past the end of is rounded up to whole vectors. Unsigned lanes meet
// as unsigned.

// CHECK:        loop.func @padded symbols [] (%x: memref<5xf32>, %b: memref<8xui8>, %y: memref<5xf32>, %m: memref<ui8>) outputs 2 {
// CHECK-NEXT:     %acc = loop.alloc "acc" : memref<8xf32, "register">
// CHECK-NEXT:     loop.for j1 = 0 to 5 step 8 {
// CHECK-NEXT:       %a = loop.load %x[j1 + v] lane v if [-j1 - v + 4] : vector<8xf32>
// CHECK-NEXT:       loop.store %a, %acc[j1 + v] lane v if [-j1 - v + 4]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for k1 = 0 to 5 step 8 {
// CHECK-NEXT:       %a_1 = loop.load %acc[k1 + v1] lane v1 if [-k1 - v1 + 4] : vector<8xf32>
// CHECK-NEXT:       loop.store %a_1, %y[k1 + v1] lane v1 if [-k1 - v1 + 4]
// CHECK-NEXT:     }
// CHECK-NEXT:     %0 = loop.alloc "lanes" : memref<1x8xui8, "register">
// CHECK-NEXT:     %1 = arith.constant 0 : i8
// CHECK-NEXT:     %2 = vector.broadcast %1 : i8 to vector<8xi8>
// CHECK-NEXT:     loop.store %2, %0[0, v2] lane v2
// CHECK-NEXT:     loop.for l = 0 to 8 step 8 reduction {
// CHECK-NEXT:       %a_2 = loop.load %b[l + v2] lane v2 : vector<8xi8>
// CHECK-NEXT:       loop.accumulate max %a_2, %0[0, v2] lane v2
// CHECK-NEXT:     }
// CHECK-NEXT:     %3 = loop.load %0[0, v2] lane v2 : vector<8xi8>
// CHECK-NEXT:     %4 = loop.reduce_lanes max unsigned %3 : vector<8xi8> to i8
// CHECK-NEXT:     loop.accumulate max %4, %m[]
// CHECK-NEXT:   }

builtin.module {
  loop.func @padded symbols [] (%x: memref<5xf32>, %b: memref<8xui8>, %y: memref<5xf32>, %m: memref<ui8>) outputs 2 {
    %acc = loop.alloc "acc" : memref<5xf32, "register">
    loop.for j = 0 to 5 schedule [vector 8] {
      %a = loop.load %x[j] : f32
      loop.store %a, %acc[j]
    }
    loop.for k = 0 to 5 schedule [vector 8] {
      %a = loop.load %acc[k] : f32
      loop.store %a, %y[k]
    }
    loop.for l = 0 to 8 reduction schedule [vector 8] {
      %a = loop.load %b[l] : i8
      loop.accumulate max %a, %m[]
    }
  }
}

// -----

// An index that is the same for every lane stays one scalar: the lanes are neighbours, and nothing is gathered.

// CHECK:        loop.func @rows symbols [n] (%x: memref<?x32xf32, #sym.dims<n, 32>>, %k: memref<4xi64>, %y: memref<4x32xf32>) outputs 1 {
// CHECK-NEXT:     loop.for i = 0 to 4 {
// CHECK-NEXT:       loop.for j = 0 to 32 step 16 {
// CHECK-NEXT:         %a = loop.load %k[i] : i64
// CHECK-NEXT:         %b = loop.load %x[_0, j + v] lane v with %a if [_0, -_0 + n - 1] : vector<16xf32>
// CHECK-NEXT:         loop.store %b, %y[i, j + v] lane v
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @rows symbols [n] (%x: memref<?x32xf32, #sym.dims<n, 32>>, %k: memref<4xi64>, %y: memref<4x32xf32>) outputs 1 {
    loop.for i = 0 to 4 {
      loop.for j = 0 to 32 schedule [vector 16] {
        %a = loop.load %k[i] : i64
        %b = loop.load %x[_0, j] with %a if [_0, -_0 + n - 1] : f32
        loop.store %b, %y[i, j]
      }
    }
  }
}

// -----

// Of two loops in one another that ask for vectors the inner one gets them.

// CHECK:        loop.func @nested symbols [] (%x: memref<3x16xf32>, %y: memref<3xf32>, %z: memref<3x16xf32>) outputs 2 {
// CHECK-NEXT:     loop.for i = 0 to 3 {
// CHECK-NEXT:       %a = loop.load %x[i, 0] : f32
// CHECK-NEXT:       loop.store %a, %y[i]
// CHECK-NEXT:       loop.for j = 0 to 16 step 8 {
// CHECK-NEXT:         %b = loop.load %x[i, j + v] lane v : vector<8xf32>
// CHECK-NEXT:         loop.store %b, %z[i, j + v] lane v

builtin.module {
  loop.func @nested symbols [] (%x: memref<3x16xf32>, %y: memref<3xf32>, %z: memref<3x16xf32>) outputs 2 {
    loop.for i = 0 to 3 schedule [vector 8] {
      %a = loop.load %x[i, 0] : f32
      loop.store %a, %y[i]
      loop.for j = 0 to 16 schedule [vector 8] {
        %b = loop.load %x[i, j] : f32
        loop.store %b, %z[i, j]
      }
    }
  }
}

// -----

// The tail of a loop needs no mask in a buffer with room for whole vectors.
// CHECK-LABEL: loop.func @room
// CHECK:         loop.for j1 = n - (n mod 8) to n step 8 {
// CHECK-NEXT:      %a_1 = loop.load %x[j1 + v] lane v if [-j1 + n - v - 1] : vector<8xf32>
// CHECK-NEXT:      loop.accumulate add %a_1, %b[j1 + v] lane v
// CHECK-NEXT:      %c_1 = loop.load %b[j1 + v] lane v : vector<8xf32>
// CHECK-NEXT:      loop.store %c_1, %y[j1 + v] lane v if [-j1 + n - v - 1]
loop.func @room symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
  %b = loop.alloc "b" : memref<64xf32, "local">
  loop.for j = 0 to n schedule [vector 8] {
    %a = loop.load %x[j] : f32
    loop.accumulate add %a, %b[j]
    %c = loop.load %b[j] : f32
    loop.store %c, %y[j]
  }
}
