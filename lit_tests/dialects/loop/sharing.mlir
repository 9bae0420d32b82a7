// RUN: igniter-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: igniter-opt %s --split-input-file --verify-diagnostics | igniter-opt --split-input-file --verify-diagnostics | filecheck %s

// Launches are chosen by whether two buffers of the caller are one.

// CHECK:      loop.func @k symbols [n]
// CHECK-NEXT:   loop.if_shared %x, %y {
// CHECK-NEXT:     loop.launch @rows grid [1] warps 1 stages 1 symbols [] (%y)
// CHECK-NEXT:   } else {
// CHECK-NEXT:     loop.launch @whole grid [n] warps 1 stages 1 symbols [] (%x, %y)
// CHECK-NEXT:   }
loop.func @k symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<8xf32>) outputs 1 {
  loop.if_shared %x, %y {
    loop.launch @rows grid [1] warps 1 stages 1 symbols [] (%y)
  } else {
    loop.launch @whole grid [n] warps 1 stages 1 symbols [] (%x, %y)
  }
}

// -----

loop.func @types symbols [] (%x: memref<8xf16>, %y: memref<8xf32>) outputs 1 {
  // expected-error {{a memref<8xf16> and a memref<8xf32> are never one buffer}}
  loop.if_shared %x, %y {
    loop.launch @rows grid [1] warps 1 stages 1 symbols [] (%y)
  } else {
    loop.launch @rows grid [1] warps 1 stages 1 symbols [] (%y)
  }
}
