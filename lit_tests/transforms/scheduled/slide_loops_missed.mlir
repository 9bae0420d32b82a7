// RUN: igniter-opt %s -p "slide-loops" --split-input-file --emit=none --remarks 2>&1 | filecheck %s
// RUN: igniter-opt %s -p "slide-loops" --split-input-file | filecheck %s --check-prefix=SAME

// What cannot slide stays in front, and no hint is left.

// SAME-NOT: slide
// SAME-NOT: sequential

// CHECK: remark: slide-loops: 'elsewhere.y' missed: it stays before 'i': its rows are used elsewhere
builtin.module {
  loop.func @elsewhere symbols [] (%x: memref<60x8xf32>, %y: memref<20xf32>, %u: memref<1xf32>) outputs 2 {
    %e = loop.alloc "e" : memref<60x8xf32, "scratch">
    loop.for y = 0 to 60 schedule [slide "w"] {
      %a = loop.load %x[y, 0] : f32
      loop.store %a, %e[y, 0]
    }
    loop.for i = 0 to 20 schedule [slide "w"] {
      %v = loop.load %e[3*i, 0] : f32
      loop.store %v, %y[i]
    }
    %w = loop.load %e[59, 0] : f32
    loop.store %w, %u[0]
  }
}

// -----

// CHECK: remark: slide-loops: 'backwards.y' missed: it stays before 'i': windows do not slide along its rows with a constant step
builtin.module {
  loop.func @backwards symbols [] (%x: memref<60x8xf32>, %y: memref<60xf32>) outputs 1 {
    %e = loop.alloc "e" : memref<60x8xf32, "scratch">
    loop.for y = 0 to 60 schedule [slide "w"] {
      %a = loop.load %x[y, 0] : f32
      loop.store %a, %e[y, 0]
    }
    loop.for i = 0 to 60 schedule [slide "w"] {
      %v = loop.load %e[59 - i, 0] : f32
      loop.store %v, %y[i]
    }
  }
}

// -----

// CHECK: remark: slide-loops: 'result.y' missed: it stays before 'i': the rows are a result of the kernel, so all of them must be stored
builtin.module {
  loop.func @result symbols [] (%x: memref<60x8xf32>, %e: memref<60x8xf32>, %y: memref<58xf32>) outputs 2 {
    loop.for y = 0 to 60 schedule [slide "w"] {
      %a = loop.load %x[y, 0] : f32
      loop.store %a, %e[y, 0]
    }
    loop.for i = 0 to 58 schedule [slide "w"] {
      %v = loop.load %e[i + 2, 0] : f32
      loop.store %v, %y[i]
    }
  }
}

// -----

// CHECK: remark: slide-loops: 'below.y' missed: it stays before 'i': its rows are used elsewhere
builtin.module {
  loop.func @below symbols [n] (%x: memref<60x8xf32>, %y: memref<58xf32>) outputs 1 {
    %e = loop.alloc "e" : memref<60x8xf32, "scratch">
    %z = arith.constant 0.0 : f32
    loop.for s = 0 to 8 {
      loop.store %z, %e[30, s]
    }
    loop.for y = 0 to 60 schedule [slide "w"] {
      %a = loop.load %x[y, 0] : f32
      loop.store %a, %e[y, 0]
    }
    loop.for i = 0 to 58 schedule [slide "w"] {
      %v = loop.load %e[i + 2, 0] : f32
      loop.store %v, %y[i]
    }
  }
}

// -----

// What no window reads would not be made.

// CHECK: remark: slide-loops: 'both.y' missed: it stays before 'i': it also writes a buffer other than the rows
builtin.module {
  loop.func @both symbols [] (%x: memref<60x8xf32>, %u: memref<60xf32>, %y: memref<20xf32>) outputs 2 {
    %e = loop.alloc "e" : memref<60x8xf32, "scratch">
    loop.for y = 0 to 60 schedule [slide "w"] {
      %a = loop.load %x[y, 0] : f32
      loop.store %a, %e[y, 0]
      loop.store %a, %u[y]
    }
    loop.for i = 0 to 20 schedule [slide "w"] {
      %v = loop.load %e[3*i, 0] : f32
      loop.store %v, %y[i]
    }
  }
}

// -----

// What is filled behind is filled over what was made.

// CHECK: remark: slide-loops: 'over.y' missed: it stays before 'i': its rows are used elsewhere
builtin.module {
  loop.func @over symbols [] (%x: memref<60x8xf32>, %y: memref<58xf32>) outputs 1 {
    %e = loop.alloc "e" : memref<60x8xf32, "scratch">
    %z = arith.constant 0.0 : f32
    loop.for y = 0 to 60 schedule [slide "w"] {
      %a = loop.load %x[y, 0] : f32
      loop.store %a, %e[y, 0]
    }
    loop.for i = 0 to 58 schedule [slide "w"] {
      %v = loop.load %e[i + 2, 0] : f32
      loop.store %v, %y[i]
    }
    loop.for s = 0 to 60 {
      loop.store %z, %e[s, 0]
    }
  }
}
