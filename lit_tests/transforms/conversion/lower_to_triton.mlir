// RUN: igniter-opt %s -p lower-to-triton --split-input-file --target=cuda | filecheck %s
// RUN: igniter-opt %s -p lower-to-triton --split-input-file --target=cuda | igniter-opt --split-input-file | filecheck %s

// Two nests are a launch: what the first sums up is a block with a dim of one, and what both read is loaded once. The rows
// of a program may be more than there are, so they have a mask; a column has an element for each lane.

// CHECK-LABEL: tt.func @rows.0(%0: !tt.ptr<f32>, %1: !tt.ptr<f32>, %2: i64) {
// CHECK-NEXT:    %[[P:.*]] = tt.get_program_id x : i32
// CHECK:         %[[ROWS:.*]] = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
// CHECK-NEXT:    tt.expand_dims %[[ROWS]] {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
// CHECK:         %[[MASK:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : tensor<4x1xi64>
// CHECK:         tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
// CHECK:         %[[WIDE:.*]] = tt.broadcast %[[MASK]] : tensor<4x1xi1> -> tensor<4x64xi1>
// CHECK:         %[[X:.*]] = tt.load %{{.*}}, %[[WIDE]], %{{.*}} : tensor<4x64x!tt.ptr<f32>>
// CHECK-NOT:     tt.load
// CHECK:         "tt.reduce"(%[[X]]) <{axis = 1 : i32}>
// CHECK:           arith.maximumf
// CHECK:         %[[M:.*]] = tt.expand_dims %{{.*}} {axis = 1 : i32} : tensor<4xf32> -> tensor<4x1xf32>
// CHECK-NEXT:    %[[MB:.*]] = tt.broadcast %[[M]] : tensor<4x1xf32> -> tensor<4x64xf32>
// CHECK-NEXT:    %[[D:.*]] = arith.subf %[[X]], %[[MB]] : tensor<4x64xf32>
// CHECK:         tt.store %{{.*}}, %[[D]], %{{.*}} : tensor<4x64x!tt.ptr<f32>>
// CHECK-NEXT:    tt.return
// CHECK-LABEL: loop.func @rows
// CHECK-NEXT:    loop.launch @rows.0 grid [((n + 3) floordiv 4)] warps 4 stages 1 symbols [n] (%x, %{{.*}})
loop.kernel @rows symbols [n] (%x: tensor<?x64xf32, #sym.dims<n, 64>>) -> (tensor<?x64xf32, #sym.dims<n, 64>>) {
  %m = loop.nest "max" [i: parallel n, k: reduction 64] schedule [i by 4 grid fuse "l0", i vector 4, k vector 64, launch warps 4 stages 1] -> tensor<?x1xf32, #sym.dims<n, 1>> {
    %a = loop.read %x[i, k] : f32
    loop.yield max %a at [i, 0]
  }
  %y = loop.nest "sub" [i: parallel n, j: parallel 64] schedule [i by 4 grid fuse "l0", i vector 4, j vector 64, launch warps 4 stages 1] -> tensor<?x64xf32, #sym.dims<n, 64>> {
    %a = loop.read %x[i, j] : f32
    %b = loop.read %m[i, 0] : f32
    %c = arith.subf %a, %b : f32
    loop.yield none %c at [i, j]
  }
  loop.return %y : tensor<?x64xf32, #sym.dims<n, 64>>
}

// -----

// A row of any length is taken block by block: the sum is kept in a block, and reduced behind the loop.

// CHECK-LABEL: tt.func @long.0
// CHECK:         %[[S:.*]] = scf.for %{{.*}} iter_args(%[[A:.*]] = %{{.*}}) -> (tensor<1024xf32>) : i64 {
// CHECK:           %[[X:.*]] = tt.load
// CHECK:           %[[Z:.*]] = arith.select %{{.*}}, %[[X]], %{{.*}} : tensor<1024xf32>
// CHECK-NEXT:      %[[N:.*]] = arith.addf %[[A]], %[[Z]] : tensor<1024xf32>
// CHECK-NEXT:      scf.yield %[[N]] : tensor<1024xf32>
// CHECK:         "tt.reduce"(%[[S]]) <{axis = 0 : i32}>
// CHECK:         tt.store %{{.*}}, %{{.*}} : !tt.ptr<f32>
loop.kernel @long symbols [n, m] (%x: tensor<?x?xf32, #sym.dims<n, m>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction m] schedule [i grid, k by 1024, k vector 1024, launch warps 4 stages 1] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// What another launch reads is in memory between them. A bool has a byte there.

// CHECK-LABEL: tt.func @two.0(%0: !tt.ptr<f32>, %1: !tt.ptr<i8>)
// CHECK:         %[[B:.*]] = arith.cmpf olt
// CHECK:         arith.extui %[[B]] : tensor<8xi1> to tensor<8xi8>
// CHECK-LABEL: tt.func @two.1(%0: !tt.ptr<i8>, %1: !tt.ptr<i8>)
// CHECK:         arith.cmpi ne, %{{.*}}, %{{.*}} : tensor<8xi8>
// CHECK-LABEL: loop.func @two
// CHECK-NEXT:    %[[T:.*]] = loop.alloc "less" : memref<8xi1, "scratch">
// CHECK-NEXT:    loop.launch @two.0 grid [1] warps 1 stages 1 symbols [] (%x, %[[T]])
// CHECK-NEXT:    loop.launch @two.1 grid [1] warps 1 stages 1 symbols [] (%[[T]], %{{.*}})
loop.kernel @two symbols [] (%x: tensor<8xf32>) -> (tensor<8xi1>) {
  %t = loop.nest "less" [i: parallel 8] schedule [i by 8 grid fuse "l0", i vector 8, launch warps 1 stages 1] -> tensor<8xi1> {
    %a = loop.read %x[i] : f32
    %z = arith.constant 0.0 : f32
    %b = arith.cmpf olt, %a, %z : f32
    loop.yield none %b at [i]
  }
  %y = loop.nest "reversed" [i: parallel 8] schedule [i by 8 grid fuse "l1", i vector 8, launch warps 1 stages 1] -> tensor<8xi1> {
    %a = loop.read %t[-i + 7] : i1
    loop.yield none %a at [i]
  }
  loop.return %y : tensor<8xi1>
}

// -----

// Variants become loop.ifs on the sizes, each with launches of its own.

// CHECK:         tt.func @sizes.0(
// CHECK:         tt.func @sizes.few.0(
// CHECK:         tt.func @sizes.less.0(
// CHECK-NOT:     tt.func @sizes
// CHECK-LABEL: loop.func @sizes symbols [n] {{.*}} typical [n = 4096] {
// CHECK-NEXT:    loop.if [-n + 9] {
// CHECK-NEXT:      loop.launch @sizes.few.0 grid [n] warps 1 stages 1 symbols [] (%x, %{{.*}})
// CHECK-NEXT:    }
// CHECK-NEXT:    loop.if [n - 10, -n + 49] {
// CHECK-NEXT:      loop.launch @sizes.less.0 grid [((n + 7) floordiv 8)] warps 1 stages 1 symbols [n] (%x, %{{.*}})
// CHECK-NEXT:    }
// CHECK-NEXT:    loop.if [n - 10, n - 50] {
// CHECK-NEXT:      loop.launch @sizes.0 grid [((n + 7) floordiv 8)] warps 4 stages 1 symbols [n] (%x, %{{.*}})
// CHECK-NEXT:    }
loop.kernel @sizes symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) typical [n = 4096] {
  %y = loop.nest "double" [i: parallel n] schedule [i by 8 grid, i vector 8, launch warps 4 stages 1] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i] : f32
    %b = arith.addf %a, %a : f32
    loop.yield none %b at [i]
  }
  loop.return %y : tensor<?xf32, #sym.dims<n>>
} variants {
  loop.kernel @few symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) typical [n = 4] when n <= 9 {
    %y = loop.nest "double" [i: parallel n] schedule [i grid, launch warps 1 stages 1] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      %b = arith.addf %a, %a : f32
      loop.yield none %b at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
  }
  loop.kernel @less symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) when n <= 49 {
    %y = loop.nest "double" [i: parallel n] schedule [i by 8 grid, i vector 8, launch warps 1 stages 1] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      %b = arith.addf %a, %a : f32
      loop.yield none %b at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
  }
}

// -----

// A window is folded element by element on one block of results: three loads, without a loop and without a reduction of
// lanes.

// CHECK-LABEL: tt.func @window.0
// CHECK-NOT:     scf.for
// CHECK-COUNT-3: tt.load
// CHECK-NOT:     tt.load
// CHECK-NOT:     tt.reduce
// CHECK:         tt.store
loop.kernel @window symbols [] (%x: tensor<66xf32>) -> (tensor<64xf32>) {
  %t = loop.nest "pool" [i: parallel 64, k: reduction 3] schedule [i by 64 grid fuse "l0", i vector 64, k unroll, launch warps 1 stages 1] -> tensor<64xf32> {
    %a = loop.read %x[i + k] : f32
    loop.yield max %a at [i]
  }
  loop.return %t : tensor<64xf32>
}
