// RUN: igniter-opt %s -p "lower-to-loops" --split-input-file | filecheck %s

// A reduction runs in an accumulator of its own; a nest that is returned writes the caller's buffer.

// CHECK:        loop.func @sum symbols [n] (%x: memref<?x8xf32, #sym.dims<n, 8>>, %0: memref<?xf32, #sym.dims<n>>) outputs 1 {
// CHECK-NEXT:     loop.for i = 0 to n {
// CHECK-NEXT:       %1 = loop.alloc "sum" : memref<f32, "register">
// CHECK-NEXT:       %2 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:       loop.store %2, %1[]
// CHECK-NEXT:       loop.for k = 0 to 8 reduction {
// CHECK-NEXT:         %a = loop.load %x[i, k] : f32
// CHECK-NEXT:         loop.accumulate add %a, %1[]
// CHECK-NEXT:       }
// CHECK-NEXT:       %3 = loop.load %1[] : f32
// CHECK-NEXT:       loop.store %3, %0[i]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.kernel @sum symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %s = loop.nest "sum" [i: parallel n, k: reduction 8] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i, k] : f32
      loop.yield add %a at [i]
    }
    loop.return %s : tensor<?xf32, #sym.dims<n>>
  }
}

// -----

// What is not returned gets an arena buffer; views become views; axes get names of their own.

// CHECK:        loop.func @chain symbols [] (%x: memref<4x6xf32>, %0: memref<24xf32>) outputs 1 {
// CHECK-NEXT:     %a = loop.alloc "a" : memref<4x6xf32, "scratch">
// CHECK-NEXT:     loop.for i = 0 to 4 {
// CHECK-NEXT:       loop.for j = 0 to 6 {
// CHECK-NEXT:         %v = loop.load %x[i, j] : f32
// CHECK-NEXT:         loop.store %v, %a[i, j]
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     %1 = loop.view %a : memref<4x6xf32, "scratch"> to memref<24xf32>
// CHECK-NEXT:     loop.for i1 = 0 to 24 {
// CHECK-NEXT:       %v_1 = loop.load %1[i1] : f32
// CHECK-NEXT:       %w = arith.negf %v_1 : f32
// CHECK-NEXT:       loop.store %w, %0[i1]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.kernel @chain symbols [] (%x: tensor<4x6xf32>) -> (tensor<24xf32>) {
    %a = loop.nest "a" [i: parallel 4, j: parallel 6] -> tensor<4x6xf32> {
      %v = loop.read %x[i, j] : f32
      loop.yield none %v at [i, j]
    }
    %f = loop.view %a : tensor<4x6xf32> to tensor<24xf32>
    %b = loop.nest "b" [i: parallel 24] -> tensor<24xf32> {
      %v = loop.read %f[i] : f32
      %w = arith.negf %v : f32
      loop.yield none %w at [i]
    }
    loop.return %b : tensor<24xf32>
  }
}

// -----

// A schedule orders the loops and leaves hints on them. Identities belong to the combiner and the element type.

// CHECK:        loop.func @max symbols [] (%x: memref<4x6xui8>, %0: memref<6xui8>) outputs 1 {
// CHECK-NEXT:     loop.for j = 0 to 6 hints {vector = 16 : i64} {
// CHECK-NEXT:       %1 = loop.alloc "max" : memref<ui8, "register">
// CHECK-NEXT:       %2 = arith.constant 0 : i8
// CHECK-NEXT:       loop.store %2, %1[]
// CHECK-NEXT:       loop.for k = 0 to 4 reduction {
// CHECK-NEXT:         %v = loop.load %x[k, j] : i8
// CHECK-NEXT:         loop.accumulate max %v, %1[]
// CHECK-NEXT:       }
// CHECK-NEXT:       %3 = loop.load %1[] : i8
// CHECK-NEXT:       loop.store %3, %0[j]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.kernel @max symbols [] (%x: tensor<4x6xui8>) -> (tensor<6xui8>) {
    %m = loop.nest "max" [k: reduction 4, j: parallel 6] schedule {order = ["j", "k"], loops = {j = {vector = 16 : i64}}} -> tensor<6xui8> {
      %v = loop.read %x[k, j] : i8
      loop.yield max %v at [j]
    }
    loop.return %m : tensor<6xui8>
  }
}

// -----

// A kernel's argument and a value returned twice are copied.

// CHECK:        loop.func @copy symbols [] (%x: memref<4xf32>, %0: memref<4xf32>, %1: memref<4xf32>, %2: memref<4xf32>) outputs 3 {
// CHECK-NEXT:     loop.for i = 0 to 4 {
// CHECK-NEXT:       %v = loop.load %x[i] : f32
// CHECK-NEXT:       loop.store %v, %1[i]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for c = 0 to 4 {
// CHECK-NEXT:       %3 = loop.load %x[c] : f32
// CHECK-NEXT:       loop.store %3, %0[c]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for c1 = 0 to 4 {
// CHECK-NEXT:       %4 = loop.load %1[c1] : f32
// CHECK-NEXT:       loop.store %4, %2[c1]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.kernel @copy symbols [] (%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %a = loop.nest "a" [i: parallel 4] -> tensor<4xf32> {
      %v = loop.read %x[i] : f32
      loop.yield none %v at [i]
    }
    loop.return %x, %a, %a : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// A nest of nothing has no loops; who reads its buffer finds it empty.

// CHECK:      loop.func @nothing symbols [n] (%x: memref<?x0xf32, #sym.dims<n, 0>>, %{{.*}}: memref<0x?xf32, #sym.dims<0, n>>, %{{.*}}: memref<?xf32, #sym.dims<n>>) outputs 2 {
// CHECK-NOT:    loop.store {{.*}}[j
// CHECK:        loop.for i = 0 to n {
// CHECK:          loop.for k = 0 to 0 reduction {

builtin.module {
  loop.kernel @nothing symbols [n] (%x: tensor<?x0xf32, #sym.dims<n, 0>>) -> (tensor<0x?xf32, #sym.dims<0, n>>, tensor<?xf32, #sym.dims<n>>) {
    %y = loop.nest "transpose" [j: parallel 0, i: parallel n] -> tensor<0x?xf32, #sym.dims<0, n>> {
      %a = loop.read %x[i, j] : f32
      loop.yield none %a at [j, i]
    }
    %s = loop.nest "sum" [i: parallel n, k: reduction 0] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i, k] : f32
      loop.yield add %a at [i]
    }
    loop.return %y, %s : tensor<0x?xf32, #sym.dims<0, n>>, tensor<?xf32, #sym.dims<n>>
  }
}
