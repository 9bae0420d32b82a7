// RUN: igniter-opt %s -p "transpose-loads" --split-input-file | filecheck %s

// A square of strided loads: contiguous loads, transposed in registers.

// CHECK:        loop.func @square symbols [n, m] (%x: memref<?x?xf32, #sym.dims<n, m>>, %y: memref<4x4xf32>) outputs 1 {
// CHECK-NEXT:     loop.for i = 0 to (m floordiv 4) {
// CHECK-NEXT:       %0 = loop.load %x[0, 4*i + v] lane v : vector<4xf32>
// CHECK-NEXT:       %1 = loop.load %x[1, 4*i + v] lane v : vector<4xf32>
// CHECK-NEXT:       %2 = loop.load %x[2, 4*i + v] lane v : vector<4xf32>
// CHECK-NEXT:       %3 = loop.load %x[3, 4*i + v] lane v : vector<4xf32>
// CHECK-NEXT:       %a, %b, %c, %d = loop.transpose %0, %1, %2, %3 : vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32> to vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>
// CHECK-NEXT:       loop.store %a, %y[0, v] lane v
// CHECK-NEXT:       loop.store %b, %y[1, v] lane v
// CHECK-NEXT:       loop.store %c, %y[2, v] lane v
// CHECK-NEXT:       loop.store %d, %y[3, v] lane v
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @square symbols [n, m] (%x: memref<?x?xf32, #sym.dims<n, m>>, %y: memref<4x4xf32>) outputs 1 {
    loop.for i = 0 to m floordiv 4 {
      %a = loop.load %x[v, 4*i] lane v : vector<4xf32>
      loop.store %a, %y[0, v] lane v
      %b = loop.load %x[w, 4*i + 1] lane w : vector<4xf32>
      loop.store %b, %y[1, v] lane v
      %c = loop.load %x[v, 4*i + 2] lane v : vector<4xf32>
      loop.store %c, %y[2, v] lane v
      %d = loop.load %x[v, 4*i + 3] lane v : vector<4xf32>
      loop.store %d, %y[3, v] lane v
    }
  }
}

// -----

// A masked load, a missing one, or a write to the same buffer in between: nothing is done.

// CHECK:        loop.func @none symbols [n] (%x: memref<?x2xf32, #sym.dims<n, 2>>, %y: memref<2x2xf32>) outputs 1 {
// CHECK-NEXT:     %a = loop.load %x[v, 0] lane v if [n - v - 1] : vector<2xf32>
// CHECK-NEXT:     loop.store %a, %y[0, v] lane v
// CHECK-NEXT:     %b = loop.load %x[v, 1] lane v if [n - v - 1] : vector<2xf32>
// CHECK-NEXT:     loop.store %b, %y[1, v] lane v
// CHECK-NEXT:     %c = loop.load %y[v, 0] lane v : vector<2xf32>
// CHECK-NEXT:     loop.store %c, %y[0, v] lane v
// CHECK-NEXT:     %d = loop.load %y[v, 1] lane v : vector<2xf32>
// CHECK-NEXT:     loop.store %d, %y[1, v] lane v
// CHECK-NEXT:   }

builtin.module {
  loop.func @none symbols [n] (%x: memref<?x2xf32, #sym.dims<n, 2>>, %y: memref<2x2xf32>) outputs 1 {
    %a = loop.load %x[v, 0] lane v if [-v + n - 1] : vector<2xf32>
    loop.store %a, %y[0, v] lane v
    %b = loop.load %x[v, 1] lane v if [-v + n - 1] : vector<2xf32>
    loop.store %b, %y[1, v] lane v
    %c = loop.load %y[v, 0] lane v : vector<2xf32>
    loop.store %c, %y[0, v] lane v
    %d = loop.load %y[v, 1] lane v : vector<2xf32>
    loop.store %d, %y[1, v] lane v
  }
}
