// RUN: igniter-opt %s --emit=llvm --target=x86-64-v3 | filecheck %s
// RUN: igniter-opt %s --emit=llvm --target=aarch64 | filecheck %s --check-prefix=ARM

// A call puts buffers and symbols into two arrays on the stack, which all calls of a kernel share. A kernel of another
// module is declared; one of this module is not.

// CHECK-LABEL: define internal void @p.body(
// CHECK:         %buffers{{[0-9]+}} = alloca [3 x ptr], align 8
// CHECK-NEXT:    %symbols{{[0-9]+}} = alloca [2 x i64], align 8
// CHECK:         call i64 @llvm.readcyclecounter()
// CHECK:         store ptr %b1, ptr %slot{{[0-9]+}}, align 8
// CHECK:         call void @k(ptr [[B:%buffers[0-9]+]], ptr [[S:%symbols[0-9]+]], ptr null, ptr %parallel_for, ptr %context)
// CHECK:         call void @elsewhere(ptr [[B]], ptr [[S]], ptr %scratch, ptr %parallel_for, ptr %context)
// CHECK:       declare hidden void @elsewhere(ptr, ptr, ptr, ptr, ptr)
// CHECK-NOT:   declare hidden void @k(
// ARM:         call i64 @llvm.readsteadycounter()
loop.func @k symbols [d0] (%x: memref<?xf32, #sym.dims<d0>>, %y: memref<?xf32, #sym.dims<d0>>) outputs 1 scratch(0) {
  loop.for i = 0 to d0 {
    %a = loop.load %x[i] : f32
    loop.store %a, %y[i]
  }
}
loop.func @p symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>, %z: memref<?xf32, #sym.dims<n>>, %t: memref<1xi64>) outputs 3 scratch(64) {
  %0 = loop.clock : i64
  loop.store %0, %t[0]
  loop.call @k symbols [n] (%x) -> (%y)
  %s = loop.alloc "s" offset 0 : memref<64xi8, "scratch">
  loop.call @elsewhere symbols [n, 2*n] (%x, %y) -> (%z) scratch %s
}
