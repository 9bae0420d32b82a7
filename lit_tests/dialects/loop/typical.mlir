// RUN: igniter-opt %s | igniter-opt | filecheck %s
// RUN: igniter-opt %s --emit=generic | filecheck %s --check-prefix=GENERIC
// RUN: igniter-opt %s --emit=generic | igniter-opt | filecheck %s
// RUN: igniter-opt %s -p deduplicate-kernels | filecheck %s --check-prefix=RENAMED
// RUN: igniter-opt %s -p lower-to-loops | filecheck %s --check-prefix=LOWERED

// What the symbols of a kernel usually are stays with it on its way down, and follows its symbols when they get other
// names. Kernels that differ in nothing else are two.

// CHECK:      loop.kernel @k symbols [n, m] (%x: tensor<?x?xf32, #sym.dims<n, m>>) -> (tensor<?x?xf32, #sym.dims<n, m>>) requires [
// CHECK-NEXT:   3 <= n "it is too small"] typical [m = 128, n = 1] {
// GENERIC:    typical = #loop.sizes<[m = 128, n = 1]>
// RENAMED:    loop.kernel @k symbols [d0, d1]
// RENAMED:    typical [d1 = 128, d0 = 1] {
// LOWERED:    loop.func @k symbols [n, m]
// LOWERED:    typical [m = 128, n = 1] {
loop.kernel @k symbols [n, m] (%x: tensor<?x?xf32, #sym.dims<n, m>>) -> (tensor<?x?xf32, #sym.dims<n, m>>) requires [3 <= n "it is too small"] typical [m = 128, n = 1] {
  %y = loop.nest "copy" [i: parallel n, j: parallel m] -> tensor<?x?xf32, #sym.dims<n, m>> {
    %a = loop.read %x[i, j] : f32
    loop.yield none %a at [i, j]
  }
  loop.return %y : tensor<?x?xf32, #sym.dims<n, m>>
}

// RENAMED:    loop.kernel @other symbols [d0, d1]
loop.kernel @other symbols [n, m] (%x: tensor<?x?xf32, #sym.dims<n, m>>) -> (tensor<?x?xf32, #sym.dims<n, m>>) requires [3 <= n "it is too small"] typical [m = 128, n = 2] {
  %y = loop.nest "copy" [i: parallel n, j: parallel m] -> tensor<?x?xf32, #sym.dims<n, m>> {
    %a = loop.read %x[i, j] : f32
    loop.yield none %a at [i, j]
  }
  loop.return %y : tensor<?x?xf32, #sym.dims<n, m>>
}

// CHECK: loop.func @f symbols [n] (%x: memref<?xf32, #sym.dims<n>>) outputs 1 scratch(64) typical [n = 7] {
loop.func @f symbols [n] (%x: memref<?xf32, #sym.dims<n>>) outputs 1 scratch(64) typical [n = 7] {
  %a = loop.alloc "a" : memref<4xf32, "local">
}
