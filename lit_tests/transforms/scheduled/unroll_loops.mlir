// RUN: igniter-opt %s -p "unroll-loops" --split-input-file | filecheck %s

// Fully: subscripts become constants. A loop that runs once is its body.

// CHECK:        loop.func @full symbols [] (%x: memref<4xf32>, %y: memref<4xf32>) outputs 1 {
// CHECK-NEXT:     %a = loop.load %x[0] : f32
// CHECK-NEXT:     loop.store %a, %y[1]
// CHECK-NEXT:     %a_1 = loop.load %x[2] : f32
// CHECK-NEXT:     loop.store %a_1, %y[3]
// CHECK-NEXT:     %a_2 = loop.load %x[3] : f32
// CHECK-NEXT:     loop.store %a_2, %y[3]
// CHECK-NEXT:   }

builtin.module {
  loop.func @full symbols [] (%x: memref<4xf32>, %y: memref<4xf32>) outputs 1 {
    loop.for i = 0 to 4 step 2 schedule [unroll] {
      %a = loop.load %x[i] : f32
      loop.store %a, %y[i + 1]
    }
    loop.for j = 3 to 4 step 16 {
      %a = loop.load %x[j] : f32
      loop.store %a, %y[j]
    }
  }
}

// -----

// By a factor, with a loop for what remains.

// CHECK:        loop.func @factor symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
// CHECK-NEXT:     loop.for i = 0 to n - (n mod 2) step 2 {
// CHECK-NEXT:       %a = loop.load %x[i] : f32
// CHECK-NEXT:       loop.store %a, %y[i]
// CHECK-NEXT:       %a_1 = loop.load %x[i + 1] : f32
// CHECK-NEXT:       loop.store %a_1, %y[i + 1]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for i1 = n - (n mod 2) to n {
// CHECK-NEXT:       %a_2 = loop.load %x[i1] : f32
// CHECK-NEXT:       loop.store %a_2, %y[i1]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @factor symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
    loop.for i = 0 to n schedule [unroll 2] {
      %a = loop.load %x[i] : f32
      loop.store %a, %y[i]
    }
  }
}
