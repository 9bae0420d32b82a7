// RUN: igniter-opt %s -p "choose-schedule" --split-input-file | filecheck %s
// RUN: igniter-opt %s -p "choose-schedule" --split-input-file --remarks --emit=none 2>&1 | filecheck %s --check-prefix=REMARKS

// What was chosen for each group of nests, what the machine is expected to take for it, and what bounds that.

// REMARKS: remark: choose-schedule: 'add' applied: scheduled: vectors of 16 along 'j'; about ((7*m*n + 15) floordiv 16) cycles, bound by arithmetic

// One operand runs the other way: squares of 16 by 16 for transpose-accesses.

// CHECK:        loop.kernel @transposed symbols [n, m] (%x: tensor<?x?xf32, #sym.dims<m, n>>, %b: tensor<?x?xf32, #sym.dims<n, m>>) -> (tensor<?x?xf32, #sym.dims<n, m>>) {
// CHECK-NEXT:     %y = loop.nest "add" [i: parallel n, j: parallel m] schedule [i by 16 tail rest threads, j by 16 tail rest, i unroll, j vector 16] -> tensor<?x?xf32, #sym.dims<n, m>> {
// CHECK-NEXT:       %a = loop.read %x[j, i] : f32
// CHECK-NEXT:       %c = loop.read %b[i, j] : f32
// CHECK-NEXT:       %s = arith.addf %a, %c : f32
// CHECK-NEXT:       loop.yield none %s at [i, j]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %y : tensor<?x?xf32, #sym.dims<n, m>>
// CHECK-NEXT:   }

builtin.module {
  loop.kernel @transposed symbols [n, m] (%x: tensor<?x?xf32, #sym.dims<m, n>>, %b: tensor<?x?xf32, #sym.dims<n, m>>) -> (tensor<?x?xf32, #sym.dims<n, m>>) {
    %y = loop.nest "add" [i: parallel n, j: parallel m] -> tensor<?x?xf32, #sym.dims<n, m>> {
      %a = loop.read %x[j, i] : f32
      %c = loop.read %b[i, j] : f32
      %s = arith.addf %a, %c : f32
      loop.yield none %s at [i, j]
    }
    loop.return %y : tensor<?x?xf32, #sym.dims<n, m>>
  }
}

// -----

// Sums along rows: the row is the vector, in as many accumulators as it has vectors, at most 4. The nest that reads
// the sums shares the loop over rows.

// CHECK:        loop.kernel @rows symbols [n] (%x: tensor<?x32xf32, #sym.dims<n, 32>>) -> (tensor<?x32xf32, #sym.dims<n, 32>>) {
// CHECK-NEXT:     %s = loop.nest "sum" [i: parallel n, k: reduction 32] schedule [i threads fuse "g0", k vector 16 accumulators 2] -> tensor<?xf32, #sym.dims<n>> {
// CHECK-NEXT:       %a = loop.read %x[i, k] : f32
// CHECK-NEXT:       loop.yield add %a at [i]
// CHECK-NEXT:     }
// CHECK-NEXT:     %y = loop.nest "div" [i: parallel n, j: parallel 32] schedule [i threads fuse "g0", j vector 16] -> tensor<?x32xf32, #sym.dims<n, 32>> {
// CHECK-NEXT:       %a_1 = loop.read %x[i, j] : f32
// CHECK-NEXT:       %t = loop.read %s[i] : f32
// CHECK-NEXT:       %q = arith.divf %a_1, %t : f32
// CHECK-NEXT:       loop.yield none %q at [i, j]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %y : tensor<?x32xf32, #sym.dims<n, 32>>
// CHECK-NEXT:   }

builtin.module {
  loop.kernel @rows symbols [n] (%x: tensor<?x32xf32, #sym.dims<n, 32>>) -> (tensor<?x32xf32, #sym.dims<n, 32>>) {
    %s = loop.nest "sum" [i: parallel n, k: reduction 32] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i, k] : f32
      loop.yield add %a at [i]
    }
    %y = loop.nest "div" [i: parallel n, j: parallel 32] -> tensor<?x32xf32, #sym.dims<n, 32>> {
      %a = loop.read %x[i, j] : f32
      %t = loop.read %s[i] : f32
      %q = arith.divf %a, %t : f32
      loop.yield none %q at [i, j]
    }
    loop.return %y : tensor<?x32xf32, #sym.dims<n, 32>>
  }
}

// -----

// Sums along columns, of how many is not known: rows are streamed eight at a time, and the sums wait in memory.

// CHECK:        loop.kernel @columns symbols [n, m] (%x: tensor<?x?xf32, #sym.dims<n, m>>) -> (tensor<?xf32, #sym.dims<m>>) {
// CHECK-NEXT:     %s = loop.nest "sum" [j: parallel m, k: reduction n] schedule [j by 1024 tail mask threads, k by 8 tail rest, j vector 16, k unroll] -> tensor<?xf32, #sym.dims<m>> {
// CHECK-NEXT:       %a = loop.read %x[k, j] : f32
// CHECK-NEXT:       loop.yield add %a at [j]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %s : tensor<?xf32, #sym.dims<m>>
// CHECK-NEXT:   }

builtin.module {
  loop.kernel @columns symbols [n, m] (%x: tensor<?x?xf32, #sym.dims<n, m>>) -> (tensor<?xf32, #sym.dims<m>>) {
    %s = loop.nest "sum" [j: parallel m, k: reduction n] -> tensor<?xf32, #sym.dims<m>> {
      %a = loop.read %x[k, j] : f32
      loop.yield add %a at [j]
    }
    loop.return %s : tensor<?xf32, #sym.dims<m>>
  }
}

// -----

// A schedule that is there stays; doubles get half as many lanes.

// CHECK:        loop.kernel @kept symbols [] (%x: tensor<64xf64>) -> (tensor<64xf64>, tensor<64xf64>) {
// CHECK-NEXT:     %y = loop.nest "mine" [i: parallel 64] schedule [i vector 4] -> tensor<64xf64> {
// CHECK-NEXT:       %a = loop.read %x[i] : f64
// CHECK-NEXT:       %s = arith.addf %a, %a : f64
// CHECK-NEXT:       loop.yield none %s at [i]
// CHECK-NEXT:     }
// CHECK-NEXT:     %z = loop.nest "free" [i: parallel 64] schedule [i threads fuse "g0" vector 8] -> tensor<64xf64> {
// CHECK-NEXT:       %a_1 = loop.read %x[i] : f64
// CHECK-NEXT:       %s_1 = arith.mulf %a_1, %a_1 : f64
// CHECK-NEXT:       loop.yield none %s_1 at [i]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %y, %z : tensor<64xf64>, tensor<64xf64>
// CHECK-NEXT:   }

builtin.module {
  loop.kernel @kept symbols [] (%x: tensor<64xf64>) -> (tensor<64xf64>, tensor<64xf64>) {
    %y = loop.nest "mine" [i: parallel 64] schedule [i vector 4] -> tensor<64xf64> {
      %a = loop.read %x[i] : f64
      %s = arith.addf %a, %a : f64
      loop.yield none %s at [i]
    }
    %z = loop.nest "free" [i: parallel 64] -> tensor<64xf64> {
      %a = loop.read %x[i] : f64
      %s = arith.mulf %a, %a : f64
      loop.yield none %s at [i]
    }
    loop.return %y, %z : tensor<64xf64>, tensor<64xf64>
  }
}

// -----

// A softmax down the columns: no row is contiguous, but neighbouring columns are, so tiles of columns are the vectors.

// CHECK:        loop.kernel @columns symbols [b, n] (%x: tensor<?x32x?xf32, #sym.dims<b, 32, n>>) -> (tensor<?x32x?xf32, #sym.dims<b, 32, n>>) {
// CHECK-NEXT:     %s = loop.nest "sum" [i: parallel b, j: parallel n, k: reduction 32] schedule [i threads fuse "g0", j by 64 tail peel fuse "g0", k, j vector 16 unroll] -> tensor<?x?xf32, #sym.dims<b, n>> {
// CHECK-NEXT:       %a = loop.read %x[i, k, j] : f32
// CHECK-NEXT:       loop.yield add %a at [i, j]
// CHECK-NEXT:     }
// CHECK-NEXT:     %y = loop.nest "div" [i: parallel b, k: parallel 32, j: parallel n] schedule [i threads fuse "g0", j by 64 tail peel fuse "g0", k, j vector 16 unroll] -> tensor<?x32x?xf32, #sym.dims<b, 32, n>> {
// CHECK-NEXT:       %a_1 = loop.read %x[i, k, j] : f32
// CHECK-NEXT:       %t = loop.read %s[i, j] : f32
// CHECK-NEXT:       %q = arith.divf %a_1, %t : f32
// CHECK-NEXT:       loop.yield none %q at [i, k, j]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %y : tensor<?x32x?xf32, #sym.dims<b, 32, n>>
// CHECK-NEXT:   }

builtin.module {
  loop.kernel @columns symbols [b, n] (%x: tensor<?x32x?xf32, #sym.dims<b, 32, n>>) -> (tensor<?x32x?xf32, #sym.dims<b, 32, n>>) {
    %s = loop.nest "sum" [i: parallel b, j: parallel n, k: reduction 32] -> tensor<?x?xf32, #sym.dims<b, n>> {
      %a = loop.read %x[i, k, j] : f32
      loop.yield add %a at [i, j]
    }
    %y = loop.nest "div" [i: parallel b, k: parallel 32, j: parallel n] -> tensor<?x32x?xf32, #sym.dims<b, 32, n>> {
      %a = loop.read %x[i, k, j] : f32
      %t = loop.read %s[i, j] : f32
      %q = arith.divf %a, %t : f32
      loop.yield none %q at [i, k, j]
    }
    loop.return %y : tensor<?x32x?xf32, #sym.dims<b, 32, n>>
  }
}

// -----

// The same, written as rows: what is stored then runs the other way, in squares of 16 by 16.

// CHECK:        loop.kernel @columns_to_rows symbols [b, n] (%x: tensor<?x32x?xf32, #sym.dims<b, 32, n>>) -> (tensor<?x?x32xf32, #sym.dims<b, n, 32>>) {
// CHECK-NEXT:     %s = loop.nest "sum" [i: parallel b, j: parallel n, k: reduction 32] schedule [i threads fuse "g0", j by 64 tail peel fuse "g0", k, j vector 16 unroll] -> tensor<?x?xf32, #sym.dims<b, n>> {
// CHECK-NEXT:       %a = loop.read %x[i, k, j] : f32
// CHECK-NEXT:       loop.yield add %a at [i, j]
// CHECK-NEXT:     }
// CHECK-NEXT:     %y = loop.nest "div" [i: parallel b, j: parallel n, k: parallel 32] schedule [i threads fuse "g0", j by 64 tail peel fuse "g0", k by 16 tail rest, j vector 16 unroll, k unroll] -> tensor<?x?x32xf32, #sym.dims<b, n, 32>> {
// CHECK-NEXT:       %a_1 = loop.read %x[i, k, j] : f32
// CHECK-NEXT:       %t = loop.read %s[i, j] : f32
// CHECK-NEXT:       %q = arith.divf %a_1, %t : f32
// CHECK-NEXT:       loop.yield none %q at [i, j, k]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %y : tensor<?x?x32xf32, #sym.dims<b, n, 32>>
// CHECK-NEXT:   }

builtin.module {
  loop.kernel @columns_to_rows symbols [b, n] (%x: tensor<?x32x?xf32, #sym.dims<b, 32, n>>) -> (tensor<?x?x32xf32, #sym.dims<b, n, 32>>) {
    %s = loop.nest "sum" [i: parallel b, j: parallel n, k: reduction 32] -> tensor<?x?xf32, #sym.dims<b, n>> {
      %a = loop.read %x[i, k, j] : f32
      loop.yield add %a at [i, j]
    }
    %y = loop.nest "div" [i: parallel b, j: parallel n, k: parallel 32] -> tensor<?x?x32xf32, #sym.dims<b, n, 32>> {
      %a = loop.read %x[i, k, j] : f32
      %t = loop.read %s[i, j] : f32
      %q = arith.divf %a, %t : f32
      loop.yield none %q at [i, j, k]
    }
    loop.return %y : tensor<?x?x32xf32, #sym.dims<b, n, 32>>
  }
}

// -----

// The other way round behind a view: squares again, for heads of keys that are stored transposed.

// CHECK:        loop.kernel @heads symbols [n] (%x: tensor<?x768xf32, #sym.dims<n, 768>>) -> (tensor<12x64x?xf32, #sym.dims<12, 64, n>>) {
// CHECK-NEXT:     %y = loop.nest "exp" [h: parallel 12, d: parallel 64, j: parallel n] schedule [h threads, d by 16 tail rest, j by 16 tail rest, d unroll, j vector 16] -> tensor<12x64x?xf32, #sym.dims<12, 64, n>> {
// CHECK-NEXT:       %a = loop.read %x[j, d + 64*h] : f32
// CHECK-NEXT:       %b = math.exp %a : f32
// CHECK-NEXT:       loop.yield none %b at [h, d, j]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %y : tensor<12x64x?xf32, #sym.dims<12, 64, n>>
// CHECK-NEXT:   }

builtin.module {
  loop.kernel @heads symbols [n] (%x: tensor<?x768xf32, #sym.dims<n, 768>>) -> (tensor<12x64x?xf32, #sym.dims<12, 64, n>>) {
    %y = loop.nest "exp" [h: parallel 12, d: parallel 64, j: parallel n] -> tensor<12x64x?xf32, #sym.dims<12, 64, n>> {
      %a = loop.read %x[j, 64*h + d] : f32
      %b = math.exp %a : f32
      loop.yield none %b at [h, d, j]
    }
    loop.return %y : tensor<12x64x?xf32, #sym.dims<12, 64, n>>
  }
}

// -----

// Sums along few columns: all of a row's sums stay in registers while the rows go by.

// CHECK:        loop.kernel @few_columns symbols [n] (%x: tensor<?x48xf32, #sym.dims<n, 48>>) -> (tensor<48xf32>) {
// CHECK-NEXT:     %s = loop.nest "sum" [j: parallel 48, k: reduction n] schedule [j by 48 tail peel threads, k, j vector 16 unroll] -> tensor<48xf32> {
// CHECK-NEXT:       %a = loop.read %x[k, j] : f32
// CHECK-NEXT:       loop.yield add %a at [j]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %s : tensor<48xf32>
// CHECK-NEXT:   }

builtin.module {
  loop.kernel @few_columns symbols [n] (%x: tensor<?x48xf32, #sym.dims<n, 48>>) -> (tensor<48xf32>) {
    %s = loop.nest "sum" [j: parallel 48, k: reduction n] -> tensor<48xf32> {
      %a = loop.read %x[k, j] : f32
      loop.yield add %a at [j]
    }
    loop.return %s : tensor<48xf32>
  }
}

// -----

// One row by a packed weight waits for the panels, and reads six of them at a time.

// CHECK:      loop.kernel @one_row
// CHECK-NEXT:   loop.nest "matmul" [j: parallel 3072, k: reduction 768] schedule [j by 96 threads fuse "g0", product(j, k) tile [1, 6], j vector 16 unroll]

builtin.module {
  loop.kernel @one_row symbols [] (%a: tensor<768xf32>, %b: tensor<192x768x16xf32>) -> (tensor<3072xf32>) {
    %c = loop.nest "matmul" [j: parallel 3072, k: reduction 768] -> tensor<3072xf32> {
      %x = loop.read %a[k] : f32
      %w = loop.read %b[j floordiv 16, k, j mod 16] : f32
      %p = arith.mulf %x, %w : f32
      loop.yield add %p at [j]
    }
    loop.return %c : tensor<3072xf32>
  }
}

// -----

// A number of rows that is given as one may be more all the same: tiles of two.

// CHECK:      loop.kernel @typically_one_row
// CHECK-NEXT:   loop.nest "matmul" {{.*}} schedule [j by 96 threads fuse "g0", i by 2 fuse "g0", product(i, j, k) tile [2, 6], i, j vector 16 unroll]

builtin.module {
  loop.kernel @typically_one_row symbols [m] (%a: tensor<?x768xf32, #sym.dims<m, 768>>, %b: tensor<192x768x16xf32>) -> (tensor<?x3072xf32, #sym.dims<m, 3072>>) typical [m = 1] {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 3072, k: reduction 768] -> tensor<?x3072xf32, #sym.dims<m, 3072>> {
      %x = loop.read %a[i, k] : f32
      %w = loop.read %b[j floordiv 16, k, j mod 16] : f32
      %p = arith.mulf %x, %w : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x3072xf32, #sym.dims<m, 3072>>
  }
}

// -----

// Three columns of what is summed side by side are dot products, with the bias on each.

// CHECK:      loop.kernel @few_columns_of_a_layer
// CHECK-NEXT:   %c = loop.nest "matmul" [i: parallel m, j: parallel 3, k: reduction 512] schedule [i threads fuse "g0", j fuse "g0", k vector 16 accumulators 4]
// CHECK:        %y = loop.nest "bias" [i: parallel m, j: parallel 3] schedule [i threads fuse "g0", j fuse "g0"]

builtin.module {
  loop.kernel @few_columns_of_a_layer symbols [m] (%a: tensor<?x512xf32, #sym.dims<m, 512>>, %b: tensor<3x512xf32>, %bias: tensor<3xf32>) -> (tensor<?x3xf32, #sym.dims<m, 3>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 3, k: reduction 512] -> tensor<?x3xf32, #sym.dims<m, 3>> {
      %x = loop.read %a[i, k] : f32
      %w = loop.read %b[j, k] : f32
      %p = arith.mulf %x, %w : f32
      loop.yield add %p at [i, j]
    }
    %y = loop.nest "bias" [i: parallel m, j: parallel 3] -> tensor<?x3xf32, #sym.dims<m, 3>> {
      %v = loop.read %c[i, j] : f32
      %d = loop.read %bias[j] : f32
      %s = arith.addf %v, %d : f32
      loop.yield none %s at [i, j]
    }
    loop.return %y : tensor<?x3xf32, #sym.dims<m, 3>>
  }
}

// -----

// The places of an image lie a pixel apart, what is summed at each side by side. A row of results is dot products, and
// what follows goes along it in vectors.

// CHECK:      loop.kernel @few_channels
// CHECK-NEXT:   %c = loop.nest "conv" {{.*}} schedule [o threads fuse "g0", y fuse "g0", x, k vector 16 accumulators 4]
// CHECK:        %r = loop.nest "exp" {{.*}} schedule [o threads fuse "g0", y fuse "g0", x vector 16]

builtin.module {
  loop.kernel @few_channels symbols [h, w] (%a: tensor<?x?x64xf32, #sym.dims<h, w, 64>>, %b: tensor<2x64xf32>) -> (tensor<2x?x?xf32, #sym.dims<2, h, w>>) {
    %c = loop.nest "conv" [o: parallel 2, y: parallel h, x: parallel w, k: reduction 64] -> tensor<2x?x?xf32, #sym.dims<2, h, w>> {
      %u = loop.read %a[y, x, k] : f32
      %v = loop.read %b[o, k] : f32
      %p = arith.mulf %u, %v : f32
      loop.yield add %p at [o, y, x]
    }
    %r = loop.nest "exp" [o: parallel 2, y: parallel h, x: parallel w] -> tensor<2x?x?xf32, #sym.dims<2, h, w>> {
      %v = loop.read %c[o, y, x] : f32
      %e = math.exp %v : f32
      loop.yield none %e at [o, y, x]
    }
    loop.return %r : tensor<2x?x?xf32, #sym.dims<2, h, w>>
  }
}

// -----

// A contraction with a packed weight: groups of panels outside, tiles of rows inside, and the bias and the activation
// on each tile as it is finished.

// CHECK:      loop.kernel @gemm
// CHECK-NEXT:   %c = loop.nest "matmul" [i: parallel m, j: parallel 3072, k: reduction 768] schedule [j by 48 threads fuse "g0", i by 8 fuse "g0", product(i, j, k) tile [8, 3], i, j vector 16 unroll]
// CHECK:        %y = loop.nest "relu" [i: parallel m, j: parallel 3072] schedule [j by 48 threads fuse "g0", i by 8 fuse "g0", i, j vector 16 unroll]

builtin.module {
  loop.kernel @gemm symbols [m] (%a: tensor<?x768xf32, #sym.dims<m, 768>>, %b: tensor<192x768x16xf32>, %bias: tensor<3072xf32>) -> (tensor<?x3072xf32, #sym.dims<m, 3072>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 3072, k: reduction 768] -> tensor<?x3072xf32, #sym.dims<m, 3072>> {
      %x = loop.read %a[i, k] : f32
      %w = loop.read %b[j floordiv 16, k, j mod 16] : f32
      %p = arith.mulf %x, %w : f32
      loop.yield add %p at [i, j]
    }
    %y = loop.nest "relu" [i: parallel m, j: parallel 3072] -> tensor<?x3072xf32, #sym.dims<m, 3072>> {
      %v = loop.read %c[i, j] : f32
      %d = loop.read %bias[j] : f32
      %s = arith.addf %v, %d : f32
      %z = arith.constant 0.0 : f32
      %r = arith.maximumf %s, %z : f32
      loop.yield none %r at [i, j]
    }
    loop.return %y : tensor<?x3072xf32, #sym.dims<m, 3072>>
  }
}

// -----

// What needs whole rows of a product with a weight starts anew: the weight would be read again for every block of rows.

// CHECK:      loop.kernel @rows
// CHECK:        loop.nest "matmul" {{.*}} schedule [j by 48 threads fuse "g0", i by 8 fuse "g0", product(i, j, k) tile [8, 3], i, j vector 16 unroll]
// CHECK:        loop.nest "max" {{.*}} schedule [i threads, k vector 16 accumulators 4]

builtin.module {
  loop.kernel @rows symbols [m] (%a: tensor<?x768xf32, #sym.dims<m, 768>>, %b: tensor<192x768x16xf32>) -> (tensor<?xf32, #sym.dims<m>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 3072, k: reduction 768] -> tensor<?x3072xf32, #sym.dims<m, 3072>> {
      %x = loop.read %a[i, k] : f32
      %w = loop.read %b[j floordiv 16, k, j mod 16] : f32
      %p = arith.mulf %x, %w : f32
      loop.yield add %p at [i, j]
    }
    %y = loop.nest "max" [i: parallel m, k: reduction 3072] -> tensor<?xf32, #sym.dims<m>> {
      %v = loop.read %c[i, k] : f32
      loop.yield max %v at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<m>>
  }
}

// -----

// Attention: scores of a block of rows, their maxima, and the product with the values share the loops over heads and
// blocks of rows.

// CHECK:      loop.kernel @attention
// CHECK-NEXT:   %c = loop.nest "scores" {{.*}} schedule [h threads fuse "g0", i by 8 fuse "g0", j by 48, product(i, j, k) tile [8, 3], i, j vector 16 unroll]
// CHECK:        loop.nest "max" {{.*}} schedule [h threads fuse "g0", i by 8 fuse "g0", i, j vector 16 accumulators 4]
// CHECK:        loop.nest "sub" {{.*}} schedule [h threads fuse "g0", i by 8 fuse "g0", j by 48, i, j vector 16 unroll]
// CHECK:        loop.nest "values" {{.*}} schedule [h threads fuse "g0", i by 8 fuse "g0", j by 32, product(i, j, k) tile [8, 2], i, j vector 16 unroll]

builtin.module {
  loop.kernel @attention symbols [s] (%q: tensor<2x?x64xf32, #sym.dims<2, s, 64>>, %k: tensor<2x64x96xf32>, %v: tensor<2x96x64xf32>) -> (tensor<2x?x64xf32, #sym.dims<2, s, 64>>) {
    %c = loop.nest "scores" [h: parallel 2, i: parallel s, j: parallel 96, k: reduction 64] -> tensor<2x?x96xf32, #sym.dims<2, s, 96>> {
      %x = loop.read %q[h, i, k] : f32
      %w = loop.read %k[h, k, j] : f32
      %p = arith.mulf %x, %w : f32
      loop.yield add %p at [h, i, j]
    }
    %m = loop.nest "max" [h: parallel 2, i: parallel s, j: reduction 96] -> tensor<2x?xf32, #sym.dims<2, s>> {
      %x = loop.read %c[h, i, j] : f32
      loop.yield max %x at [h, i]
    }
    %e = loop.nest "sub" [h: parallel 2, i: parallel s, j: parallel 96] -> tensor<2x?x96xf32, #sym.dims<2, s, 96>> {
      %x = loop.read %c[h, i, j] : f32
      %y = loop.read %m[h, i] : f32
      %z = arith.subf %x, %y : f32
      loop.yield none %z at [h, i, j]
    }
    %o = loop.nest "values" [h: parallel 2, i: parallel s, j: parallel 64, k: reduction 96] -> tensor<2x?x64xf32, #sym.dims<2, s, 64>> {
      %x = loop.read %e[h, i, k] : f32
      %w = loop.read %v[h, k, j] : f32
      %p = arith.mulf %x, %w : f32
      loop.yield add %p at [h, i, j]
    }
    loop.return %o : tensor<2x?x64xf32, #sym.dims<2, s, 64>>
  }
}

// -----

// A procedure: threads along the outermost axis, vectors along the loops of the body in which nothing runs in order.

loop.kernel @procedure symbols [n, m] (%x: tensor<?x8x?xf32, #sym.dims<n, 8, m>>) -> (tensor<?x8x?xf32, #sym.dims<n, 8, m>>) {
  %y = loop.procedure "scan" [i: parallel n] (%a = %x) -> (%o : tensor<?x8x?xf32, #sym.dims<n, 8, m>>) {
    loop.for k = 0 to 8 sequential {
      loop.for j = 0 to m {
        %before = loop.load %o[i, k - 1, j] if [k - 1] : f32
        %v = loop.load %a[i, k, j] : f32
        %s = arith.addf %before, %v : f32
        loop.store %s, %o[i, k, j]
      }
    }
  }
  loop.return %y : tensor<?x8x?xf32, #sym.dims<n, 8, m>>
}
// CHECK-LABEL: loop.kernel @procedure
// CHECK: loop.procedure "scan" [i: parallel n] schedule [i threads, j vector 16]

// -----

// A sum whose vectors rows share is kept in registers, and what reads it is computed on the tile: 14 rows by 2 vectors of
// 16 are 28 sums, and 56 and 64 are whole numbers of tiles.

builtin.module {
  loop.kernel @conv symbols [] (%x: tensor<58x58x64xf32>, %w: tensor<3x3x64x64xf32>) -> (tensor<56x56x64xf32>) {
    %c = loop.nest "conv" [y: parallel 56, x: parallel 56, o: parallel 64, ky: reduction 3, kx: reduction 3, c: reduction 64] -> tensor<56x56x64xf32> {
      %a = loop.read %x[y + ky, x + kx, c] : f32
      %b = loop.read %w[ky, kx, c, o] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [y, x, o]
    }
    %r = loop.nest "relu" [y: parallel 56, x: parallel 56, o: parallel 64] -> tensor<56x56x64xf32> {
      %a = loop.read %c[y, x, o] : f32
      %zero = arith.constant 0.0 : f32
      %b = arith.maximumf %a, %zero : f32
      loop.yield none %b at [y, x, o]
    }
    loop.return %r : tensor<56x56x64xf32>
  }
}

// CHECK-LABEL: loop.kernel @conv
// CHECK:        loop.nest "conv" {{.*}} schedule [y threads fuse "g0", x by 14 fuse "g0", o by 32 fuse "g0", ky, kx, product(x, o, c) tile [14, 2], x, o vector 16 unroll]
// CHECK:        loop.nest "relu" {{.*}} schedule [y threads fuse "g0", x by 14 fuse "g0", o by 32 fuse "g0", x, o vector 16 unroll]

// -----

// A sum for each channel, whose window moves with the places, is a tile of places by channels in registers.

builtin.module {
  loop.kernel @depthwise symbols [] (%x: tensor<58x58x64xf32>, %w: tensor<3x3x64xf32>) -> (tensor<56x56x64xf32>) {
    %c = loop.nest "conv" [y: parallel 56, x: parallel 56, c: parallel 64, ky: reduction 3, kx: reduction 3] -> tensor<56x56x64xf32> {
      %a = loop.read %x[y + ky, x + kx, c] : f32
      %b = loop.read %w[ky, kx, c] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [y, x, c]
    }
    %r = loop.nest "relu" [y: parallel 56, x: parallel 56, c: parallel 64] -> tensor<56x56x64xf32> {
      %a = loop.read %c[y, x, c] : f32
      %zero = arith.constant 0.0 : f32
      %b = arith.maximumf %a, %zero : f32
      loop.yield none %b at [y, x, c]
    }
    loop.return %r : tensor<56x56x64xf32>
  }
}

// CHECK-LABEL: loop.kernel @depthwise
// CHECK:        loop.nest "conv" {{.*}} schedule [y threads fuse "g0", x by 14 tail peel fuse "g0", c by 16 tail peel fuse "g0", ky, kx unroll, x unroll, c vector 16 unroll]
// CHECK:        loop.nest "relu" {{.*}} schedule [y threads fuse "g0", x by 14 tail peel fuse "g0", c by 16 tail peel fuse "g0", x unroll, c vector 16 unroll]

// -----

// The columns of a window that shares guards with a row are unrolled: the masks of the lanes are constants then.

// CHECK:      loop.nest "conv" {{.*}} schedule [c threads, y, x by 48 tail peel, ky, kx unroll, x vector 16 unroll]
builtin.module {
  loop.kernel @rows symbols [] (%a: tensor<8x33x33xf32>, %w: tensor<8x3x3xf32>) -> (tensor<8x33x33xf32>) {
    %c = loop.nest "conv" [c: parallel 8, y: parallel 33, x: parallel 33, kx: reduction 3, ky: reduction 3] -> tensor<8x33x33xf32> {
      %v = loop.read %w[c, ky, kx] : f32
      %u = loop.read %a[c, y + 6*ky - 6, x + 6*kx - 6] if [y + 6*ky - 6, 38 - y - 6*ky, x + 6*kx - 6, 38 - x - 6*kx] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [c, y, x]
    }
    loop.return %c : tensor<8x33x33xf32>
  }
}
