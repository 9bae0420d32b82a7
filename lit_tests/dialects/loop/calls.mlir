// RUN: igniter-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: igniter-opt %s --split-input-file --verify-diagnostics --emit=generic | filecheck %s --check-prefix=GENERIC

// A call has symbols, inputs, outputs, and the memory that the kernel works in. The kernel may be in another module.
loop.func @k symbols [d0] (%x: memref<?xf32, #sym.dims<d0>>, %y: memref<?xf32, #sym.dims<d0>>) outputs 1 scratch(4*d0) {
}
loop.func @p symbols [n] (%x: memref<?x8xf32, #sym.dims<n, 8>>, %y: memref<?xf32, #sym.dims<8*n>>, %t: memref<2xi64>) outputs 2 {
  %a = loop.view %x : memref<?x8xf32, #sym.dims<n, 8>> to memref<?xf32, #sym.dims<8*n>>
  %s = loop.alloc "k.scratch" : memref<?xi8, #sym.dims<32*n>, "scratch">
  %0 = loop.clock : i64
  loop.store %0, %t[0]
  loop.call @k symbols [8*n] (%a) -> (%y) scratch %s
  loop.call @elsewhere symbols [] () -> (%y)
}

// CHECK:      loop.func @p symbols [n]
// CHECK:        %0 = loop.clock : i64
// CHECK-NEXT:   loop.store %0, %t[0]
// CHECK-NEXT:   loop.call @k symbols [8*n] (%a) -> (%y) scratch %s
// CHECK-NEXT:   loop.call @elsewhere symbols [] () -> (%y)
// CHECK-NEXT: }
// GENERIC: "loop.call"(%a, %y, %s) <{callee = @k, symbols = #sym.dims<8*n>, operandSegmentSizes = array<i32: 1, 1, 1>}>

// -----

// Sequential loops may call. A slice is what the first subscripts of a buffer leave, in the same memory.
loop.func @steps symbols [t, n] (%x: memref<?x?x4xf32, #sym.dims<t, n, 4>>, %y: memref<?x4xf32, #sym.dims<n, 4>>) outputs 1 {
  loop.for i = 0 to t sequential {
    %a = loop.slice %x[i] : memref<?x?x4xf32, #sym.dims<t, n, 4>> to memref<?x4xf32, #sym.dims<n, 4>>
    loop.call @k symbols [n] (%a) -> (%y)
  }
  loop.for j = 0 to n sequential {
    %b = loop.slice %x[t - 1, j] : memref<?x?x4xf32, #sym.dims<t, n, 4>> to memref<4xf32>
    %c = loop.slice %y[j, 0] : memref<?x4xf32, #sym.dims<n, 4>> to memref<f32>
    loop.call @l symbols [] (%b) -> (%c)
  }
}

// CHECK:      loop.func @steps
// CHECK:          %a = loop.slice %x[i] : memref<?x?x4xf32, #sym.dims<t, n, 4>> to memref<?x4xf32, #sym.dims<n, 4>>
// CHECK-NEXT:     loop.call @k symbols [n] (%a) -> (%y)
// CHECK:          %b = loop.slice %x[t - 1, j] : memref<?x?x4xf32, #sym.dims<t, n, 4>> to memref<4xf32>
// CHECK-NEXT:     %c = loop.slice %y[j, 0] : memref<?x4xf32, #sym.dims<n, 4>> to memref<f32>
// GENERIC: "loop.slice"(%x) <{subscripts = #sym.dims<i>}>

// -----

loop.func @p symbols [n] (%x: memref<?x4xf32, #sym.dims<n, 4>>) outputs 0 {
  // expected-error@+1 {{a slice of memref<?x4xf32, #sym.dims<n, 4>> at 1 subscripts is not a memref<8xf32>}}
  %a = loop.slice %x[0] : memref<?x4xf32, #sym.dims<n, 4>> to memref<8xf32>
}

// -----

loop.func @p symbols [n] (%x: memref<4xf32>) outputs 0 {
  // expected-error@+1 {{loop.slice has 2 subscripts for memref<4xf32>}}
  %a = loop.slice %x[0, n] : memref<4xf32> to memref<f32>
}

// -----

// expected-error@+1 {{'loop.slice' names ['m'], which is neither an enclosing loop nor a symbol}}
loop.func @p symbols [] (%x: memref<4xf32>) outputs 0 {
  %a = loop.slice %x[m] : memref<4xf32> to memref<f32>
}

// -----

loop.func @k symbols [] (%x: memref<4xf32>, %y: memref<4xf32>) outputs 1 {
}
loop.func @p symbols [] (%x: memref<4xf32>, %y: memref<4xf32>) outputs 1 {
  // expected-error@+1 {{loop.call @k has 0 inputs and 1 outputs, the kernel 1 and 1}}
  loop.call @k symbols [] () -> (%y)
}

// -----

loop.func @k symbols [d0] (%x: memref<?xf32, #sym.dims<d0>>, %y: memref<4xf32>) outputs 1 {
}
loop.func @p symbols [] (%x: memref<4xf32>, %y: memref<4xf32>) outputs 1 {
  // expected-error@+1 {{loop.call @k has 0 symbols, the kernel 1}}
  loop.call @k symbols [] (%x) -> (%y)
}

// -----

loop.func @k symbols [d0] (%x: memref<?xf32, #sym.dims<d0>>, %y: memref<4xf32>) outputs 1 {
}
loop.func @p symbols [] (%x: memref<4xf32>, %y: memref<4xf32>) outputs 1 {
  // expected-error@+1 {{loop.call @k: buffer 0 is a memref<4xf32>, the kernel takes memref<?xf32, #sym.dims<d0>>}}
  loop.call @k symbols [8] (%x) -> (%y)
}

// -----

loop.func @k symbols [] (%x: memref<4xf32>, %y: memref<4xf32>) outputs 1 scratch(64) {
}
loop.func @p symbols [] (%x: memref<4xf32>, %y: memref<4xf32>) outputs 1 {
  // expected-error@+1 {{loop.call @k has no scratch memory, but the kernel needs 64 bytes}}
  loop.call @k symbols [] (%x) -> (%y)
}

// -----

loop.func @k symbols [] (%x: memref<4xf32>, %y: memref<4xf32>) outputs 1 scratch(64) {
}
loop.func @p symbols [] (%x: memref<4xf32>, %y: memref<4xf32>) outputs 1 {
  %s = loop.alloc "s" : memref<48xi8, "scratch">
  // expected-error@+1 {{loop.call @k needs 16 more bytes of scratch memory for the kernel}}
  loop.call @k symbols [] (%x) -> (%y) scratch %s
}

// -----

loop.func @p symbols [] (%x: memref<4xf32>, %y: memref<4xf32>) outputs 1 {
  // expected-error@+1 {{loop.call @k: an output is also another buffer of the call}}
  loop.call @k symbols [] (%y) -> (%y)
}

// -----

loop.func @p symbols [] (%x: memref<4xf32>, %y: memref<4xf32>) outputs 1 {
  loop.for i = 0 to 4 {
    // expected-error@+1 {{loop.call @k must be in the body of a loop.func or of sequential loops in it}}
    loop.call @k symbols [] (%x) -> (%y)
  }
}

// -----

// expected-error@+1 {{'loop.call' names ['m'], which is neither an enclosing loop nor a symbol}}
loop.func @p symbols [] (%x: memref<4xf32>, %y: memref<4xf32>) outputs 1 {
  loop.call @k symbols [m] (%x) -> (%y)
}

// -----

// The threads of a program stay together.
loop.func @together symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 typical [n = 8] team(runs 64, looks 32768) {
  loop.call @k symbols [n] (%x) -> (%y)
}

// CHECK:      loop.func @together {{.*}} outputs 1 typical [n = 8] team(runs 64, looks 32768) {
// GENERIC:    team = #loop.team<(runs 64, looks 32768)>

// -----

// expected-error {{the looks of a team must be at least 1}}
loop.func @hasty symbols [n] (%x: memref<?xf32, #sym.dims<n>>) outputs 1 team(runs 64, looks 0) {
}
