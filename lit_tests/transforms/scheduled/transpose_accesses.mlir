// RUN: igniter-opt %s -p "transpose-accesses" --split-input-file | filecheck %s

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

// A square of stores is transposed first. A guard of the lanes becomes one of the rows.

// CHECK:        loop.func @stores symbols [n] (%x: memref<2x2xf32>, %y: memref<?x2xf32, #sym.dims<n, 2>>) outputs 1 {
// CHECK-NEXT:     %a = loop.load %x[0, v] lane v : vector<2xf32>
// CHECK-NEXT:     %b = loop.load %x[1, v] lane v : vector<2xf32>
// CHECK-NEXT:     %0, %1 = loop.transpose %a, %b : vector<2xf32>, vector<2xf32> to vector<2xf32>, vector<2xf32>
// CHECK-NEXT:     loop.store %0, %y[0, v] lane v if [n - 1]
// CHECK-NEXT:     loop.store %1, %y[1, v] lane v if [n - 2]
// CHECK-NEXT:   }

builtin.module {
  loop.func @stores symbols [n] (%x: memref<2x2xf32>, %y: memref<?x2xf32, #sym.dims<n, 2>>) outputs 1 {
    %a = loop.load %x[0, v] lane v : vector<2xf32>
    %b = loop.load %x[1, v] lane v : vector<2xf32>
    loop.store %a, %y[v, 0] lane v if [-v + n - 1]
    loop.store %b, %y[v, 1] lane v if [-v + n - 1]
  }
}

// -----

// A missing load, guards that differ, a write to the buffer in between, a read between the stores: nothing is done.

// CHECK:        loop.func @none symbols [n] (%x: memref<?x3xf32, #sym.dims<n, 3>>, %y: memref<2x2xf32>) outputs 1 {
// CHECK-NEXT:     %a = loop.load %x[v, 0] lane v : vector<2xf32>
// CHECK-NEXT:     %b = loop.load %x[v, 2] lane v : vector<2xf32>
// CHECK-NEXT:     %c = loop.load %x[v, 1] lane v if [n - v - 1] : vector<2xf32>
// CHECK-NEXT:     %d = loop.load %y[v, 0] lane v : vector<2xf32>
// CHECK-NEXT:     loop.store %a, %y[v, 0] lane v
// CHECK-NEXT:     %e = loop.load %y[v, 1] lane v : vector<2xf32>
// CHECK-NEXT:     loop.store %b, %y[v, 1] lane v
// CHECK-NEXT:     loop.store %c, %y[0, v] lane v
// CHECK-NEXT:     loop.store %d, %y[1, v] lane v
// CHECK-NEXT:     loop.store %e, %y[1, v] lane v
// CHECK-NEXT:   }

builtin.module {
  loop.func @none symbols [n] (%x: memref<?x3xf32, #sym.dims<n, 3>>, %y: memref<2x2xf32>) outputs 1 {
    %a = loop.load %x[v, 0] lane v : vector<2xf32>
    %b = loop.load %x[v, 2] lane v : vector<2xf32>
    %c = loop.load %x[v, 1] lane v if [-v + n - 1] : vector<2xf32>
    %d = loop.load %y[v, 0] lane v : vector<2xf32>
    loop.store %a, %y[v, 0] lane v
    %e = loop.load %y[v, 1] lane v : vector<2xf32>
    loop.store %b, %y[v, 1] lane v
    loop.store %c, %y[0, v] lane v
    loop.store %d, %y[1, v] lane v
    loop.store %e, %y[1, v] lane v
  }
}

// -----

// Rows shorter than vectors are whole vectors side by side: three planes become pixels, and pixels planes.

// CHECK:        loop.func @pixels symbols [] (%x: memref<3x8xf32>, %y: memref<8x3xf32>) outputs 1 {
// CHECK-NEXT:     %a = loop.load %x[0, v] lane v : vector<8xf32>
// CHECK-NEXT:     %b = loop.load %x[1, v] lane v : vector<8xf32>
// CHECK-NEXT:     %c = loop.load %x[2, v] lane v : vector<8xf32>
// CHECK-NEXT:     %0, %1, %2 = loop.transpose %a, %b, %c : vector<8xf32>, vector<8xf32>, vector<8xf32> to vector<8xf32>, vector<8xf32>, vector<8xf32>
// CHECK-NEXT:     %3 = loop.view %y : memref<8x3xf32> to memref<24xf32>
// CHECK-NEXT:     loop.store %0, %3[v] lane v
// CHECK-NEXT:     loop.store %1, %3[v + 8] lane v
// CHECK-NEXT:     loop.store %2, %3[v + 16] lane v
// CHECK-NEXT:   }

builtin.module {
  loop.func @pixels symbols [] (%x: memref<3x8xf32>, %y: memref<8x3xf32>) outputs 1 {
    %a = loop.load %x[0, v] lane v : vector<8xf32>
    %b = loop.load %x[1, v] lane v : vector<8xf32>
    %c = loop.load %x[2, v] lane v : vector<8xf32>
    loop.store %a, %y[v, 0] lane v
    loop.store %b, %y[v, 1] lane v
    loop.store %c, %y[v, 2] lane v
  }
}

// -----

// CHECK:        loop.func @planes symbols [n] (%x: memref<?x3xf32, #sym.dims<n, 3>>, %y: memref<3x8xf32>) outputs 1 {
// CHECK-NEXT:     %0 = loop.view %x : memref<?x3xf32, #sym.dims<n, 3>> to memref<?xf32, #sym.dims<3*n>>
// CHECK-NEXT:     %1 = loop.load %0[v + 24] lane v : vector<8xf32>
// CHECK-NEXT:     %2 = loop.load %0[v + 32] lane v : vector<8xf32>
// CHECK-NEXT:     %3 = loop.load %0[v + 40] lane v : vector<8xf32>
// CHECK-NEXT:     %a, %b, %c = loop.transpose %1, %2, %3 : vector<8xf32>, vector<8xf32>, vector<8xf32> to vector<8xf32>, vector<8xf32>, vector<8xf32> rows 8
// CHECK-NEXT:     loop.store %a, %y[0, v] lane v
// CHECK-NEXT:     loop.store %b, %y[1, v] lane v
// CHECK-NEXT:     loop.store %c, %y[2, v] lane v
// CHECK-NEXT:   }

builtin.module {
  loop.func @planes symbols [n] (%x: memref<?x3xf32, #sym.dims<n, 3>>, %y: memref<3x8xf32>) outputs 1 {
    %a = loop.load %x[v + 8, 0] lane v : vector<8xf32>
    loop.store %a, %y[0, v] lane v
    %b = loop.load %x[v + 8, 1] lane v : vector<8xf32>
    loop.store %b, %y[1, v] lane v
    %c = loop.load %x[v + 8, 2] lane v : vector<8xf32>
    loop.store %c, %y[2, v] lane v
  }
}

// -----

// Guards of the lanes, and rows that are not next to each other, stay.

// CHECK:        loop.func @apart symbols [n] (%x: memref<?x2xf32, #sym.dims<n, 2>>, %z: memref<8x4x2xf32>, %y: memref<4x8xf32>) outputs 1 {
// CHECK-NEXT:     %a = loop.load %x[v, 0] lane v if [n - v - 1] : vector<8xf32>
// CHECK-NEXT:     %b = loop.load %x[v, 1] lane v if [n - v - 1] : vector<8xf32>
// CHECK-NEXT:     %c = loop.load %z[v, 0, 0] lane v : vector<8xf32>
// CHECK-NEXT:     %d = loop.load %z[v, 0, 1] lane v : vector<8xf32>

builtin.module {
  loop.func @apart symbols [n] (%x: memref<?x2xf32, #sym.dims<n, 2>>, %z: memref<8x4x2xf32>, %y: memref<4x8xf32>) outputs 1 {
    %a = loop.load %x[v, 0] lane v if [-v + n - 1] : vector<8xf32>
    %b = loop.load %x[v, 1] lane v if [-v + n - 1] : vector<8xf32>
    %c = loop.load %z[v, 0, 0] lane v : vector<8xf32>
    %d = loop.load %z[v, 0, 1] lane v : vector<8xf32>
    loop.store %a, %y[0, v] lane v
    loop.store %b, %y[1, v] lane v
    loop.store %c, %y[2, v] lane v
    loop.store %d, %y[3, v] lane v
  }
}
