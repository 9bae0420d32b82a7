// RUN: igniter-opt %s --emit=scf --split-input-file | filecheck %s

// Every statement of a scheduled kernel as an op of scf, memref or vector. `tests/backends/mlir/test_scheduled.py` runs
// them.

// A loop with threads, its body with buffers on the stack as a function; a masked tail; a fold of lanes; a prefetch.

// CHECK-LABEL: func.func @rows(%arg0: memref<?x?xf32>, %arg1: memref<?xf32>, %n: index, %m: index, %scratch: memref<?xi8>) attributes {llvm.emit_c_interface} {
// CHECK:         // 8 iterations per task
// CHECK-NEXT:    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
// CHECK-NEXT:      func.call @rows.task1(%n, %m, %i, %arg0, %arg1, %scratch) : (index, index, index, memref<?x?xf32>, memref<?xf32>, memref<?xi8>) -> ()
// CHECK-NEXT:      scf.reduce
// CHECK-LABEL: func.func private @rows.task1(%n: index, %m: index, %i: index, %b: memref<?x?xf32>, %b_1: memref<?xf32>, %scratch: memref<?xi8>) {
// CHECK:         %sum = memref.alloca() {alignment = 64 : i64} : memref<f32>
// CHECK:         %row = memref.view %scratch[%c64][%m] : memref<?xi8> to memref<?xf32>
// CHECK:         scf.for %j = %c0 to %m step %c8 {
// CHECK:           // prefetch %b[i + 8, j]
// CHECK:           arith.cmpi sge, {{.*}} : vector<8xindex>
// CHECK:           vector.maskedload %b[%i, %j], {{.*}} : memref<?x?xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
// CHECK:           vector.maskedstore %row[%j], {{.*}} : memref<?xf32>, vector<8xi1>, vector<8xf32>
// CHECK:           vector.reduction <add>, {{.*}} : vector<8xf32> into f32
// CHECK:           memref.store {{.*}}, %sum[] : memref<f32>
loop.func @rows symbols [n, m] (%x: memref<?x?xf32, #sym.dims<n, m>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 scratch(4*m + 64) {
  loop.for i = 0 to n threads(8) {
    %row = loop.alloc "row" offset 64 : memref<?xf32, #sym.dims<m>, "scratch">
    %s = loop.alloc "sum" : memref<f32, "register">
    %z = arith.constant 0.0 : f32
    loop.store %z, %s[]
    loop.for j = 0 to m step 8 reduction {
      loop.prefetch %x[i + 8, j]
      %a = loop.load %x[i, j + v] lane v if [m - 1 - j - v] : vector<8xf32>
      loop.store %a, %row[j + v] lane v if [m - 1 - j - v]
      %b = loop.reduce_lanes add %a : vector<8xf32> to f32
      loop.accumulate add %b, %s[]
    }
    %t = loop.load %s[] : f32
    loop.store %t, %y[i]
  }
}

// -----

// Lanes that are no neighbours; booleans are bytes; a guarded element; a condition.

// CHECK-LABEL: func.func @apart(%arg0: memref<?xf32>, %arg1: memref<?xi8>, %n: index)
// CHECK:         vector.gather %arg0[%c0] [{{.*}}], {{.*}} : memref<?xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32> into vector<4xf32>
// CHECK:         arith.cmpf ogt, {{.*}} : vector<4xf32>
// CHECK:         scf.if {{.*}} {
// CHECK:           arith.extui {{.*}} : vector<4xi1> to vector<4xi8>
// CHECK:           vector.store {{.*}}, %arg1[%i] : memref<?xi8>, vector<4xi8>
// CHECK:         scf.if {{.*}} -> (f32) {
// CHECK:           memref.load %arg0
loop.func @apart symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xi1, #sym.dims<n>>) outputs 1 {
  loop.for i = 0 to n - 7 step 4 {
    %a = loop.load %x[i + 2*v] lane v : vector<4xf32>
    %z = arith.constant dense<0.0> : vector<4xf32>
    %b = arith.cmpf ogt, %a, %z : vector<4xf32>
    loop.if [n - 8 - i] {
      loop.store %b, %y[i + v] lane v
    }
    %o = arith.constant 1.0 : f32
    %c = loop.load %x[i - 1] if [i - 1] else %o : f32
  }
}

// -----

// A tile by the meaning of its micro-kernel.

// CHECK-LABEL: func.func @tile(
// CHECK:         scf.for %r = %c0 to %c4 step %c1 {
// CHECK-NEXT:      scf.for %p = %c0 to %c2 step %c1 {
// CHECK:             %sums = scf.for %k = %c0 to %c5 step %c1 iter_args(%sum = {{.*}}) -> (vector<16xf32>) {
// CHECK-NEXT:          [[A:%v[_0-9]*]] = memref.load %arg0[%r, %k] : memref<4x5xf32>
// CHECK:               [[B:%v[_0-9]*]] = vector.load %arg1[%p, %k, {{.*}}] : memref<2x5x16xf32>, vector<16xf32>
// CHECK:               arith.mulf {{.*}} : vector<16xf32>
// CHECK:               arith.addf %sum, {{.*}} : vector<16xf32>
// CHECK:             vector.store %sums, %arg2
loop.func @tile symbols [] (%a: memref<4x5xf32>, %b: memref<2x5x16xf32>, %c: memref<4x32xf32>) outputs 1 {
  loop.tile_product %c[r, 16*p + l] = %a[r, k] * %b[p, k, l] over r = 4, p = 2, l = 16, k = 5 tile [8, 3]
}

// -----

// A program: a kernel that gets slices takes buffers with an offset.

// CHECK-LABEL: func.func @one(%arg0: memref<?xf32, strided<[1], offset: ?>>, %arg1: memref<?xf32, strided<[1], offset: ?>>, %d0: index)
// CHECK-LABEL: func.func @images(
// CHECK:         memref.subview %arg0[%i, 0] [1, %n] [1, 1] : memref<?x?xf32> to memref<?xf32, strided<[1], offset: ?>>
// CHECK:         func.call @one(
// CHECK:         func.call @elsewhere({{.*}}) : (memref<?xf32>, memref<?xf32>, index, memref<?xi8>) -> ()
// CHECK:       func.func private @elsewhere(memref<?xf32>, memref<?xf32>, index, memref<?xi8>)
loop.func @one symbols [d0] (%x: memref<?xf32, #sym.dims<d0>>, %y: memref<?xf32, #sym.dims<d0>>) outputs 1 scratch(0) {
  loop.for i = 0 to d0 {
    %a = loop.load %x[i] : f32
    loop.store %a, %y[i]
  }
}
loop.func @images symbols [b, n] (%x: memref<?x?xf32, #sym.dims<b, n>>, %w: memref<?xf32, #sym.dims<n>>, %y: memref<?x?xf32, #sym.dims<b, n>>, %z: memref<?xf32, #sym.dims<n>>) outputs 2 scratch(64) {
  loop.for i = 0 to b sequential {
    %0 = loop.slice %x[i] : memref<?x?xf32, #sym.dims<b, n>> to memref<?xf32, #sym.dims<n>>
    %1 = loop.slice %y[i] : memref<?x?xf32, #sym.dims<b, n>> to memref<?xf32, #sym.dims<n>>
    loop.call @one symbols [n] (%0) -> (%1)
  }
  %s = loop.alloc "s" offset 0 : memref<64xi8, "scratch">
  loop.call @elsewhere symbols [n] (%w) -> (%z) scratch %s
}
