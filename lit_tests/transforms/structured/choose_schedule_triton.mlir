// RUN: igniter-opt %s -p choose-schedule --split-input-file --target=cuda | filecheck %s
// RUN: igniter-opt %s -p "choose-schedule,lower-to-triton" --split-input-file --target=cuda --emit=none

// A normalisation is one launch: rows of known length are wholly in a program, several of them where they are short.

// CHECK: loop.nest "max" [i: parallel n, k: reduction 100] schedule [i by 8 grid fuse "l0", i vector 8, k vector 128, launch warps 4 stages 1]
// CHECK: loop.nest "sub" [i: parallel n, j: parallel 100] schedule [i by 8 grid fuse "l0", i vector 8, j vector 128, launch warps 4 stages 1]
loop.kernel @rows symbols [n] (%x: tensor<?x100xf32, #sym.dims<n, 100>>) -> (tensor<?x100xf32, #sym.dims<n, 100>>) {
  %m = loop.nest "max" [i: parallel n, k: reduction 100] -> tensor<?x1xf32, #sym.dims<n, 1>> {
    %a = loop.read %x[i, k] : f32
    loop.yield max %a at [i, 0]
  }
  %y = loop.nest "sub" [i: parallel n, j: parallel 100] -> tensor<?x100xf32, #sym.dims<n, 100>> {
    %a = loop.read %x[i, j] : f32
    %b = loop.read %m[i, 0] : f32
    %c = arith.subf %a, %b : f32
    loop.yield none %c at [i, j]
  }
  loop.return %y : tensor<?x100xf32, #sym.dims<n, 100>>
}

// -----

// Rows of any length go block by block, columns by what lies side by side.

// CHECK: loop.nest "rows" [i: parallel n, k: reduction m] schedule [i grid fuse "l0", k by 1024, k vector 1024, launch warps 4 stages 1]
// CHECK: loop.nest "columns" [j: parallel m, k: reduction n] schedule [j by 64 grid fuse "l1", k by 16, j vector 64, k vector 16, launch warps 4 stages 1]
loop.kernel @sums symbols [n, m] (%x: tensor<?x?xf32, #sym.dims<n, m>>) -> (tensor<?xf32, #sym.dims<n>>, tensor<?xf32, #sym.dims<m>>) {
  %r = loop.nest "rows" [i: parallel n, k: reduction m] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  %c = loop.nest "columns" [j: parallel m, k: reduction n] -> tensor<?xf32, #sym.dims<m>> {
    %a = loop.read %x[k, j] : f32
    loop.yield add %a at [j]
  }
  loop.return %r, %c : tensor<?xf32, #sym.dims<n>>, tensor<?xf32, #sym.dims<m>>
}

// -----

// A transpose has lanes along what lies side by side in what it reads, and in what it writes.

// CHECK: loop.nest "transpose" [i: parallel n, j: parallel m] schedule [i by 32 grid fuse "l0", j by 32 grid fuse "l0", i vector 32, j vector 32, launch warps 4 stages 1]
loop.kernel @transposed symbols [n, m] (%x: tensor<?x?xf32, #sym.dims<m, n>>) -> (tensor<?x?xf32, #sym.dims<n, m>>) {
  %y = loop.nest "transpose" [i: parallel n, j: parallel m] -> tensor<?x?xf32, #sym.dims<n, m>> {
    %a = loop.read %x[j, i] : f32
    loop.yield none %a at [i, j]
  }
  loop.return %y : tensor<?x?xf32, #sym.dims<n, m>>
}

// -----

// A small window is unrolled, and no lanes are along it. Lanes along the other dims have the least padding.

// CHECK: loop.nest "pool" [c: parallel 6, i: parallel 20, j: parallel 20, r: reduction 3, s: reduction 3] schedule [c by 2 grid fuse "l0", i by 4 grid fuse "l0", j by 32 grid fuse "l0", c vector 2, i vector 4, j vector 32, r unroll, s unroll, launch warps 4 stages 1]
loop.kernel @pool symbols [] (%x: tensor<6x22x22xf32>) -> (tensor<6x20x20xf32>) {
  %y = loop.nest "pool" [c: parallel 6, i: parallel 20, j: parallel 20, r: reduction 3, s: reduction 3] -> tensor<6x20x20xf32> {
    %a = loop.read %x[c, i + r, j + s] : f32
    loop.yield max %a at [c, i, j]
  }
  loop.return %y : tensor<6x20x20xf32>
}
