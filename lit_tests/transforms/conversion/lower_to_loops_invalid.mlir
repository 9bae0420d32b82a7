// RUN: igniter-opt %s -p lower-to-loops --split-input-file --verify-diagnostics | filecheck %s

// What is no schedule of a product.

// The depth has no loop: it is the micro-kernel's.
// CHECK: the schedule of nest 'matmul': order ['j', 'i', 'k', 'i', 'j'] is no permutation of its axes ['i', 'i', 'j', 'j'] (those with blocks twice, with groups of blocks three times)

builtin.module {
  loop.kernel @order symbols [m] (%a: tensor<?x64xf32, #sym.dims<m, 64>>, %b: tensor<64x96xf32>) -> (tensor<?x96xf32, #sym.dims<m, 96>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 96, k: reduction 64] schedule {
        order = ["j", "i", "k", "i", "j"], loops = {i = {block = 8 : i64}, j = {block = 48 : i64}},
        product = {rows = "i", columns = "j", depth = "k", tile = [8 : i64, 3 : i64]}} -> tensor<?x96xf32, #sym.dims<m, 96>> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %b[k, j] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x96xf32, #sym.dims<m, 96>>
  }
}

// -----

// An axis with a block is two loops.
// CHECK: the schedule of nest 'matmul': order ['j', 'i', 'j'] is no permutation of its axes ['i', 'i', 'j', 'j'] (those with blocks twice, with groups of blocks three times)

builtin.module {
  loop.kernel @once symbols [m] (%a: tensor<?x64xf32, #sym.dims<m, 64>>, %b: tensor<64x96xf32>) -> (tensor<?x96xf32, #sym.dims<m, 96>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 96, k: reduction 64] schedule {
        order = ["j", "i", "j"], loops = {i = {block = 8 : i64}, j = {block = 48 : i64}},
        product = {rows = "i", columns = "j", depth = "k", tile = [8 : i64, 3 : i64]}} -> tensor<?x96xf32, #sym.dims<m, 96>> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %b[k, j] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x96xf32, #sym.dims<m, 96>>
  }
}

// -----

// Only sums of products.
// CHECK: nest 'matmul' has a schedule for a product, but it does not sum products

builtin.module {
  loop.kernel @body symbols [m] (%a: tensor<?x64xf32, #sym.dims<m, 64>>, %b: tensor<64x96xf32>) -> (tensor<?x96xf32, #sym.dims<m, 96>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 96, k: reduction 64] schedule {
        order = ["j", "i", "i", "j"], loops = {i = {block = 8 : i64}, j = {block = 48 : i64}},
        product = {rows = "i", columns = "j", depth = "k", tile = [8 : i64, 3 : i64]}} -> tensor<?x96xf32, #sym.dims<m, 96>> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %b[k, j] : f32
      %p = arith.addf %x, %y : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x96xf32, #sym.dims<m, 96>>
  }
}

// -----

// Only sums.
// CHECK: nest 'matmul' has a schedule for a product, but it is not one sum

builtin.module {
  loop.kernel @combiner symbols [m] (%a: tensor<?x64xf32, #sym.dims<m, 64>>, %b: tensor<64x96xf32>) -> (tensor<?x96xf32, #sym.dims<m, 96>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 96, k: reduction 64] schedule {
        order = ["j", "i", "i", "j"], loops = {i = {block = 8 : i64}, j = {block = 48 : i64}},
        product = {rows = "i", columns = "j", depth = "k", tile = [8 : i64, 3 : i64]}} -> tensor<?x96xf32, #sym.dims<m, 96>> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %b[k, j] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield max %p at [i, j]
    }
    loop.return %c : tensor<?x96xf32, #sym.dims<m, 96>>
  }
}

// -----

// The columns are those of the factor that has them side by side.
// CHECK: nest 'matmul' has a schedule for a product, but its rows, columns and depth are ['i', 'j', 'k']

builtin.module {
  loop.kernel @swapped symbols [m] (%a: tensor<?x64xf32, #sym.dims<m, 64>>, %b: tensor<64x96xf32>) -> (tensor<?x96xf32, #sym.dims<m, 96>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 96, k: reduction 64] schedule {
        order = ["j", "i", "i", "j"], loops = {i = {block = 48 : i64}, j = {block = 8 : i64}},
        product = {rows = "j", columns = "i", depth = "k", tile = [8 : i64, 3 : i64]}} -> tensor<?x96xf32, #sym.dims<m, 96>> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %b[k, j] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x96xf32, #sym.dims<m, 96>>
  }
}

// -----

// More rows to a block than the micro-kernel has sums for.
// CHECK: nest 'matmul' has a schedule for a product, but a tile of 8 rows and 3 panels takes blocks of 8 rows at most and of 48 columns

builtin.module {
  loop.kernel @rows symbols [m] (%a: tensor<?x64xf32, #sym.dims<m, 64>>, %b: tensor<64x96xf32>) -> (tensor<?x96xf32, #sym.dims<m, 96>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 96, k: reduction 64] schedule {
        order = ["j", "i", "i", "j"], loops = {i = {block = 16 : i64}, j = {block = 48 : i64}},
        product = {rows = "i", columns = "j", depth = "k", tile = [8 : i64, 3 : i64]}} -> tensor<?x96xf32, #sym.dims<m, 96>> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %b[k, j] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x96xf32, #sym.dims<m, 96>>
  }
}

// -----

// A block of columns is the panels of a tile.
// CHECK: nest 'matmul' has a schedule for a product, but a tile of 8 rows and 3 panels takes blocks of 8 rows at most and of 48 columns

builtin.module {
  loop.kernel @columns symbols [m] (%a: tensor<?x64xf32, #sym.dims<m, 64>>, %b: tensor<64x96xf32>) -> (tensor<?x96xf32, #sym.dims<m, 96>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 96, k: reduction 64] schedule {
        order = ["j", "i", "i", "j"], loops = {i = {block = 8 : i64}, j = {block = 32 : i64}},
        product = {rows = "i", columns = "j", depth = "k", tile = [8 : i64, 3 : i64]}} -> tensor<?x96xf32, #sym.dims<m, 96>> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %b[k, j] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x96xf32, #sym.dims<m, 96>>
  }
}

// -----

// A product without a tile.
// CHECK: the schedule of nest 'matmul': the tile of a product is [rows, panels], two positive counts

builtin.module {
  loop.kernel @tile symbols [m] (%a: tensor<?x64xf32, #sym.dims<m, 64>>, %b: tensor<64x96xf32>) -> (tensor<?x96xf32, #sym.dims<m, 96>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 96, k: reduction 64] schedule {
        order = ["j", "i", "i", "j"], loops = {i = {block = 8 : i64}, j = {block = 48 : i64}},
        product = {rows = "i", columns = "j", depth = "k"}} -> tensor<?x96xf32, #sym.dims<m, 96>> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %b[k, j] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x96xf32, #sym.dims<m, 96>>
  }
}
