// RUN: igniter-opt %s -p "plan-buffers" --split-input-file | filecheck %s

// Buffers that are never live together share memory; sizes are rounded up to cache lines.

// CHECK:        loop.func @chain symbols [] (%x: memref<100xf32>, %y: memref<100xf32>) outputs 1 scratch(704) {
// CHECK-NEXT:     %a = loop.alloc "a" offset 0 : memref<100xf32, "scratch">
// CHECK-NEXT:     %b = loop.alloc "b" offset 448 : memref<50xf32, "scratch">
// CHECK-NEXT:     %c = loop.alloc "c" offset 0 : memref<100xf32, "scratch">
// CHECK-NEXT:     loop.for i = 0 to 100 {
// CHECK-NEXT:       %v = loop.load %x[i] : f32
// CHECK-NEXT:       loop.store %v, %a[i]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for i1 = 0 to 50 {
// CHECK-NEXT:       %v_1 = loop.load %a[-i1 + 99] : f32
// CHECK-NEXT:       loop.store %v_1, %b[i1]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for i2 = 0 to 100 {
// CHECK-NEXT:       %v_2 = loop.load %b[(i2 floordiv 2)] : f32
// CHECK-NEXT:       loop.store %v_2, %c[i2]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for i3 = 0 to 100 {
// CHECK-NEXT:       %v_3 = loop.load %c[-i3 + 99] : f32
// CHECK-NEXT:       loop.store %v_3, %y[i3]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @chain symbols [] (%x: memref<100xf32>, %y: memref<100xf32>) outputs 1 {
    %a = loop.alloc "a" : memref<100xf32, "scratch">
    %b = loop.alloc "b" : memref<50xf32, "scratch">
    %c = loop.alloc "c" : memref<100xf32, "scratch">
    loop.for i = 0 to 100 {
      %v = loop.load %x[i] : f32
      loop.store %v, %a[i]
    }
    loop.for i1 = 0 to 50 {
      %v = loop.load %a[-i1 + 99] : f32
      loop.store %v, %b[i1]
    }
    loop.for i2 = 0 to 100 {
      %v = loop.load %b[i2 floordiv 2] : f32
      loop.store %v, %c[i2]
    }
    loop.for i3 = 0 to 100 {
      %v = loop.load %c[-i3 + 99] : f32
      loop.store %v, %y[i3]
    }
  }
}

// -----

// Symbolic sizes: a dead buffer's slot is taken again when it is known to be large enough.

// CHECK:        loop.func @symbolic symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 scratch(128*((4*n + 63) floordiv 64)) {
// CHECK-NEXT:     %a = loop.alloc "a" offset 0 : memref<?xf32, #sym.dims<n>, "scratch">
// CHECK-NEXT:     %b = loop.alloc "b" offset 64*((4*n + 63) floordiv 64) : memref<?xf32, #sym.dims<n>, "scratch">
// CHECK-NEXT:     %c = loop.alloc "c" offset 0 : memref<?xf32, #sym.dims<n>, "scratch">
// CHECK-NEXT:     loop.for i = 0 to n {
// CHECK-NEXT:       %v = loop.load %x[i] : f32
// CHECK-NEXT:       loop.store %v, %a[i]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for i1 = 0 to n {
// CHECK-NEXT:       %v_1 = loop.load %a[-i1 + n - 1] : f32
// CHECK-NEXT:       loop.store %v_1, %b[i1]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for i2 = 0 to n {
// CHECK-NEXT:       %v_2 = loop.load %b[-i2 + n - 1] : f32
// CHECK-NEXT:       loop.store %v_2, %c[i2]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for i3 = 0 to n {
// CHECK-NEXT:       %v_3 = loop.load %c[-i3 + n - 1] : f32
// CHECK-NEXT:       loop.store %v_3, %y[i3]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @symbolic symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
    %a = loop.alloc "a" : memref<?xf32, #sym.dims<n>, "scratch">
    %b = loop.alloc "b" : memref<?xf32, #sym.dims<n>, "scratch">
    %c = loop.alloc "c" : memref<?xf32, #sym.dims<n>, "scratch">
    loop.for i = 0 to n {
      %v = loop.load %x[i] : f32
      loop.store %v, %a[i]
    }
    loop.for i1 = 0 to n {
      %v = loop.load %a[-i1 + n - 1] : f32
      loop.store %v, %b[i1]
    }
    loop.for i2 = 0 to n {
      %v = loop.load %b[-i2 + n - 1] : f32
      loop.store %v, %c[i2]
    }
    loop.for i3 = 0 to n {
      %v = loop.load %c[-i3 + n - 1] : f32
      loop.store %v, %y[i3]
    }
  }
}

// -----

// A task's small buffer stays on its stack; one of unknown size gets a slot a task in the arena.

// CHECK:        loop.func @tasks symbols [n, m] (%x: memref<?x?xf32, #sym.dims<n, m>>, %y: memref<?x?xf32, #sym.dims<n, m>>) outputs 1 scratch(64*((4*m + 63) floordiv 64)*((n + 3) floordiv 4)) {
// CHECK-NEXT:     loop.for i = 0 to n threads(4) {
// CHECK-NEXT:       %small = loop.alloc "small" : memref<64xf32, "local">
// CHECK-NEXT:       %row = loop.alloc "row" offset 64*((4*m + 63) floordiv 64)*(i floordiv 4) : memref<?xf32, #sym.dims<m>, "scratch">
// CHECK-NEXT:       loop.for j = 0 to m {
// CHECK-NEXT:         %v = loop.load %x[i, j] : f32
// CHECK-NEXT:         loop.store %v, %row[j]
// CHECK-NEXT:         loop.store %v, %small[0]
// CHECK-NEXT:       }
// CHECK-NEXT:       loop.for j1 = 0 to m {
// CHECK-NEXT:         %v_1 = loop.load %row[-j1 + m - 1] : f32
// CHECK-NEXT:         %w = loop.load %small[0] : f32
// CHECK-NEXT:         %u = arith.addf %v_1, %w : f32
// CHECK-NEXT:         loop.store %u, %y[i, j1]
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @tasks symbols [n, m] (%x: memref<?x?xf32, #sym.dims<n, m>>, %y: memref<?x?xf32, #sym.dims<n, m>>) outputs 1 {
    loop.for i = 0 to n threads(4) {
      %small = loop.alloc "small" : memref<64xf32, "local">
      %row = loop.alloc "row" : memref<?xf32, #sym.dims<m>, "local">
      loop.for j = 0 to m {
        %v = loop.load %x[i, j] : f32
        loop.store %v, %row[j]
        loop.store %v, %small[0]
      }
      loop.for j1 = 0 to m {
        %v = loop.load %row[-j1 + m - 1] : f32
        %w = loop.load %small[0] : f32
        %u = arith.addf %v, %w : f32
        loop.store %u, %y[i, j1]
      }
    }
  }
}

// -----

// Element by element, a buffer takes the place of the one that is read for the last time.

// CHECK:        loop.func @in_place symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 scratch(64*((4*n + 63) floordiv 64)) {
// CHECK-NEXT:     %a = loop.alloc "a" offset 0 : memref<?xf32, #sym.dims<n>, "scratch">
// CHECK-NEXT:     %b = loop.alloc "b" offset 0 : memref<?xf32, #sym.dims<n>, "scratch">
// CHECK-NEXT:     loop.for i = 0 to n {
// CHECK-NEXT:       %v = loop.load %x[i] : f32
// CHECK-NEXT:       loop.store %v, %a[i]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for i1 = 0 to n {
// CHECK-NEXT:       %v_1 = loop.load %a[i1] : f32
// CHECK-NEXT:       %w = arith.negf %v_1 : f32
// CHECK-NEXT:       loop.store %w, %b[i1]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for i2 = 0 to n {
// CHECK-NEXT:       %v_2 = loop.load %b[-i2 + n - 1] : f32
// CHECK-NEXT:       loop.store %v_2, %y[i2]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.func @in_place symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
    %a = loop.alloc "a" : memref<?xf32, #sym.dims<n>, "scratch">
    %b = loop.alloc "b" : memref<?xf32, #sym.dims<n>, "scratch">
    loop.for i = 0 to n {
      %v = loop.load %x[i] : f32
      loop.store %v, %a[i]
    }
    loop.for i1 = 0 to n {
      %v = loop.load %a[i1] : f32
      %w = arith.negf %v : f32
      loop.store %w, %b[i1]
    }
    loop.for i2 = 0 to n {
      %v = loop.load %b[-i2 + n - 1] : f32
      loop.store %v, %y[i2]
    }
  }
}

// -----

// Where it is not known which of two sizes is larger, a slot that is free grows: one slot as large as both need.

// CHECK:        loop.func @grown symbols [n, m] {{.*}} outputs 1 scratch(max(64*((4*m + 63) floordiv 64), 64*((4*n + 63) floordiv 64))) {
// CHECK-NEXT:     %a = loop.alloc "a" offset 0 : memref<?xf32, #sym.dims<n>, "scratch">
// CHECK-NEXT:     %b = loop.alloc "b" offset 0 : memref<?xf32, #sym.dims<m>, "scratch">

builtin.module {
  loop.func @grown symbols [n, m] (%x: memref<4xf32>, %y: memref<2xf32>) outputs 1 {
    %a = loop.alloc "a" : memref<?xf32, #sym.dims<n>, "scratch">
    %b = loop.alloc "b" : memref<?xf32, #sym.dims<m>, "scratch">
    loop.if [n - 1] {
      %v = loop.load %x[0] : f32
      loop.store %v, %a[0]
      %w = loop.load %a[0] : f32
      loop.store %w, %y[0]
    }
    loop.if [m - 1] {
      %v = loop.load %x[0] : f32
      loop.store %v, %b[0]
      %w = loop.load %b[0] : f32
      loop.store %w, %y[1]
    }
  }
}

// -----

// In a loop of a program every iteration has buffers of its own: one may have the place of another that the iteration
// needs no more. What lies outside of the loop keeps its place for all of it.

// CHECK-LABEL: loop.func @steps symbols [] (%x: memref<16xf32>, %y: memref<16xf32>) outputs 1 scratch(192) {
// CHECK:         %a = loop.alloc "kept" offset [[KEPT:[0-9]+]] :
// CHECK:         %b = loop.alloc "first" offset [[FIRST:[0-9]+]] :
// CHECK:         %c = loop.alloc "second" offset [[SECOND:[0-9]+]] :
// CHECK:         %d = loop.alloc "third" offset [[FIRST]] :
loop.func @steps symbols [] (%x: memref<16xf32>, %y: memref<16xf32>) outputs 1 {
  %a = loop.alloc "kept" : memref<16xf32, "scratch">
  loop.call @k symbols [] (%x) -> (%a)
  loop.for t = 0 to 8 sequential {
    %b = loop.alloc "first" : memref<16xf32, "scratch">
    loop.call @k symbols [] (%a) -> (%b)
    %c = loop.alloc "second" : memref<16xf32, "scratch">
    %s = loop.view %c : memref<16xf32, "scratch"> to memref<4x4xf32>
    %u = loop.slice %s[0] : memref<4x4xf32> to memref<4xf32>
    loop.call @k symbols [] (%b) -> (%s)
    %d = loop.alloc "third" : memref<16xf32, "scratch">
    loop.call @l symbols [] (%u) -> (%d)
    loop.call @k symbols [] (%d) -> (%y)
  }
}

// -----

// Sizes that are multiples of a symbol are placed like numbers: a slot of a dead buffer for each would take 320*n bytes.

// CHECK-LABEL: loop.func @multiples symbols [n] {{.*}} scratch(192*n)
// CHECK:         %a = loop.alloc "a" offset 0 :
// CHECK:         %b = loop.alloc "b" offset 128*n :
// CHECK:         %c = loop.alloc "c" offset 0 :
// CHECK:         %d = loop.alloc "d" offset 64*n :

builtin.module {
  loop.func @multiples symbols [n] (%x: memref<?x32xf32, #sym.dims<n, 32>>, %y: memref<?x32xf32, #sym.dims<n, 32>>) outputs 1 {
    %a = loop.alloc "a" : memref<?x32xf32, #sym.dims<n, 32>, "scratch">
    %b = loop.alloc "b" : memref<?x16xf32, #sym.dims<n, 16>, "scratch">
    %c = loop.alloc "c" : memref<?x16xf32, #sym.dims<n, 16>, "scratch">
    %d = loop.alloc "d" : memref<?x32xf32, #sym.dims<n, 32>, "scratch">
    loop.for i = 0 to n {
      %v = loop.load %x[i, 0] : f32
      loop.store %v, %a[i, 0]
    }
    loop.for i1 = 0 to n {
      %v = loop.load %a[-i1 + n - 1, 0] : f32
      loop.store %v, %b[i1, 0]
    }
    loop.for i2 = 0 to n {
      %v = loop.load %b[-i2 + n - 1, 0] : f32
      loop.store %v, %c[i2, 0]
    }
    loop.for i3 = 0 to n {
      %v = loop.load %c[-i3 + n - 1, 0] : f32
      loop.store %v, %d[i3, 0]
    }
    loop.for i4 = 0 to n {
      %v = loop.load %d[-i4 + n - 1, 0] : f32
      loop.store %v, %y[i4, 0]
    }
  }
}
