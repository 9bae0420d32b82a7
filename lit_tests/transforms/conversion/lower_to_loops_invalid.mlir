// RUN: igniter-opt %s -p lower-to-loops --split-input-file --verify-diagnostics | filecheck %s

// What is no schedule of a product.

// The depth has no loop: it is the micro-kernel's.
// CHECK: the schedule of nest 'matmul': loop 'k' is behind the product; only single rows and columns of its tile may be

builtin.module {
  loop.kernel @order symbols [m] (%a: tensor<?x64xf32, #sym.dims<m, 64>>, %b: tensor<64x96xf32>) -> (tensor<?x96xf32, #sym.dims<m, 96>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 96, k: reduction 64] schedule [j by 48, i by 8, product(i, j, k) tile [8, 3], k, i, j] -> tensor<?x96xf32, #sym.dims<m, 96>> {
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
// CHECK: the schedule of nest 'matmul': axis 'i' has no loop inside its blocks of 8

builtin.module {
  loop.kernel @once symbols [m] (%a: tensor<?x64xf32, #sym.dims<m, 64>>, %b: tensor<64x96xf32>) -> (tensor<?x96xf32, #sym.dims<m, 96>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 96, k: reduction 64] schedule [j by 48, i by 8, product(i, j, k) tile [8, 3], j] -> tensor<?x96xf32, #sym.dims<m, 96>> {
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
// CHECK: nest 'matmul': it has a schedule for a product, but it does not sum products

builtin.module {
  loop.kernel @body symbols [m] (%a: tensor<?x64xf32, #sym.dims<m, 64>>, %b: tensor<64x96xf32>) -> (tensor<?x96xf32, #sym.dims<m, 96>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 96, k: reduction 64] schedule [j by 48, i by 8, product(i, j, k) tile [8, 3], i, j] -> tensor<?x96xf32, #sym.dims<m, 96>> {
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
// CHECK: nest 'matmul': it has a schedule for a product, but it is not a single sum

builtin.module {
  loop.kernel @combiner symbols [m] (%a: tensor<?x64xf32, #sym.dims<m, 64>>, %b: tensor<64x96xf32>) -> (tensor<?x96xf32, #sym.dims<m, 96>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 96, k: reduction 64] schedule [j by 48, i by 8, product(i, j, k) tile [8, 3], i, j] -> tensor<?x96xf32, #sym.dims<m, 96>> {
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
// CHECK: nest 'matmul': it has a schedule for a product, but its rows, columns and depth must be ['i', 'j', 'k']

builtin.module {
  loop.kernel @swapped symbols [m] (%a: tensor<?x64xf32, #sym.dims<m, 64>>, %b: tensor<64x96xf32>) -> (tensor<?x96xf32, #sym.dims<m, 96>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 96, k: reduction 64] schedule [j by 8, i by 48, product(j, i, k) tile [8, 3], i, j] -> tensor<?x96xf32, #sym.dims<m, 96>> {
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
// CHECK: nest 'matmul': it has a schedule for a product, but a tile of 8 rows and 3 panels needs blocks of at most 8 rows and of 48 columns

builtin.module {
  loop.kernel @rows symbols [m] (%a: tensor<?x64xf32, #sym.dims<m, 64>>, %b: tensor<64x96xf32>) -> (tensor<?x96xf32, #sym.dims<m, 96>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 96, k: reduction 64] schedule [j by 48, i by 16, product(i, j, k) tile [8, 3], i, j] -> tensor<?x96xf32, #sym.dims<m, 96>> {
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
// CHECK: nest 'matmul': it has a schedule for a product, but a tile of 8 rows and 3 panels needs blocks of at most 8 rows and of 48 columns

builtin.module {
  loop.kernel @columns symbols [m] (%a: tensor<?x64xf32, #sym.dims<m, 64>>, %b: tensor<64x96xf32>) -> (tensor<?x96xf32, #sym.dims<m, 96>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 96, k: reduction 64] schedule [j by 32, i by 8, product(i, j, k) tile [8, 3], i, j] -> tensor<?x96xf32, #sym.dims<m, 96>> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %b[k, j] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x96xf32, #sym.dims<m, 96>>
  }
}

// -----

// Blocks of the depth are added to the result.
// CHECK: nest 'matmul': loop 'k' splits the depth of a product, so tiles must be added to the result: give it 'into result', or put it directly before the product, where its iterations add to the tile

builtin.module {
  loop.kernel @depth symbols [m] (%a: tensor<?x64xf32, #sym.dims<m, 64>>, %b: tensor<64x96xf32>) -> (tensor<?x96xf32, #sym.dims<m, 96>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 96, k: reduction 64] schedule [k by 32, j by 48, i by 8, product(i, j, k) tile [8, 3], i, j] -> tensor<?x96xf32, #sym.dims<m, 96>> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %b[k, j] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x96xf32, #sym.dims<m, 96>>
  }
}

// -----

// Sums of rows whose number is not known have no room.
// CHECK: nest 'sum': loop 'i' iterates over m elements inside the reduction 'k', whose partial sums need a constant size: split it into blocks outside the reduction, or give the reduction 'into result'

builtin.module {
  loop.kernel @room symbols [m] (%a: tensor<?x64xf32, #sym.dims<m, 64>>) -> (tensor<?xf32, #sym.dims<m>>) {
    %c = loop.nest "sum" [i: parallel m, k: reduction 64] schedule [k, i] -> tensor<?xf32, #sym.dims<m>> {
      %x = loop.read %a[i, k] : f32
      loop.yield add %x at [i]
    }
    loop.return %c : tensor<?xf32, #sym.dims<m>>
  }
}

// -----

// Blocks that are made late go below the last reduction, or below everything.
// CHECK: nest 'sum': the loops inside the blocks of 'i' cannot be in this order. With 'tail', such a loop must be directly inside its blocks, or below the last reduction, or below all loops that are neither vectors nor unrolled (the vector innermost); without 'tail', any order is allowed

builtin.module {
  loop.kernel @late symbols [m] (%a: tensor<?x64x32xf32, #sym.dims<m, 64, 32>>) -> (tensor<?xf32, #sym.dims<m>>) {
    %c = loop.nest "sum" [i: parallel m, k: reduction 64, l: reduction 32] schedule [i by 8 tail peel, k, i, l] -> tensor<?xf32, #sym.dims<m>> {
      %x = loop.read %a[i, k, l] : f32
      loop.yield add %x at [i]
    }
    loop.return %c : tensor<?xf32, #sym.dims<m>>
  }
}

// -----

// The micro-kernel means something else.
// CHECK: nest 'matmul': it has a schedule for a product, but its body differs from the meaning of micro-kernel 'f32'

builtin.module {
  loop.kernel @meaning symbols [m] (%a: tensor<?x64xf32, #sym.dims<m, 64>>, %b: tensor<64x96xf32>) -> (tensor<?x96xf32, #sym.dims<m, 96>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 96, k: reduction 64] schedule [j by 48, i by 8, product(i, j, k) tile [8, 3] by "f32", i, j] -> tensor<?x96xf32, #sym.dims<m, 96>> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %b[k, j] : f32
      %p = arith.subf %x, %y : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x96xf32, #sym.dims<m, 96>>
  }
}

// -----

// The micro-kernel takes other elements.
// CHECK: nest 'matmul': it has a schedule for a product, but micro-kernel 'f16' takes elements of f16 and f16 and folds f32, not f32, f32 and f32

builtin.module {
  loop.kernel @elements symbols [m] (%a: tensor<?x64xf32, #sym.dims<m, 64>>, %b: tensor<64x96xf32>) -> (tensor<?x96xf32, #sym.dims<m, 96>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 96, k: reduction 64] schedule [j by 48, i by 8, product(i, j, k) tile [8, 3] by "f16", i, j] -> tensor<?x96xf32, #sym.dims<m, 96>> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %b[k, j] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x96xf32, #sym.dims<m, 96>>
  }
}

// -----

// The tile is not that of the blocks.
// CHECK: nest 'matmul': it has a schedule for a product, but a tile of 6 rows and 3 panels needs blocks of at most 6 rows and of 48 columns

builtin.module {
  loop.kernel @blocks symbols [m] (%a: tensor<?x64xf32, #sym.dims<m, 64>>, %b: tensor<64x96xf32>) -> (tensor<?x96xf32, #sym.dims<m, 96>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 96, k: reduction 64] schedule [j by 48, i by 8, product(i, j, k) tile [6, 3] by "f32", i, j] -> tensor<?x96xf32, #sym.dims<m, 96>> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %b[k, j] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x96xf32, #sym.dims<m, 96>>
  }
}
