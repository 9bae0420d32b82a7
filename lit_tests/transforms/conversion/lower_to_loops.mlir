// RUN: igniter-opt %s -p "lower-to-loops" --split-input-file | filecheck %s

// A reduction runs in an accumulator of its own; a nest that is returned writes the caller's buffer.

// CHECK:        loop.func @sum symbols [n] (%x: memref<?x8xf32, #sym.dims<n, 8>>, %0: memref<?xf32, #sym.dims<n>>) outputs 1 {
// CHECK-NEXT:     loop.for i = 0 to n {
// CHECK-NEXT:       %1 = loop.alloc "sum" : memref<f32, "register">
// CHECK-NEXT:       %2 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:       loop.store %2, %1[]
// CHECK-NEXT:       loop.for k = 0 to 8 reduction {
// CHECK-NEXT:         %a = loop.load %x[i, k] : f32
// CHECK-NEXT:         loop.accumulate add %a, %1[]
// CHECK-NEXT:       }
// CHECK-NEXT:       %3 = loop.load %1[] : f32
// CHECK-NEXT:       loop.store %3, %0[i]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.kernel @sum symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %s = loop.nest "sum" [i: parallel n, k: reduction 8] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i, k] : f32
      loop.yield add %a at [i]
    }
    loop.return %s : tensor<?xf32, #sym.dims<n>>
  }
}

// -----

// What is not returned gets an arena buffer; views become views; axes get names of their own.

// CHECK:        loop.func @chain symbols [] (%x: memref<4x6xf32>, %0: memref<24xf32>) outputs 1 {
// CHECK-NEXT:     %a = loop.alloc "a" : memref<4x6xf32, "scratch">
// CHECK-NEXT:     loop.for i = 0 to 4 {
// CHECK-NEXT:       loop.for j = 0 to 6 {
// CHECK-NEXT:         %v = loop.load %x[i, j] : f32
// CHECK-NEXT:         loop.store %v, %a[i, j]
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     %1 = loop.view %a : memref<4x6xf32, "scratch"> to memref<24xf32>
// CHECK-NEXT:     loop.for i1 = 0 to 24 {
// CHECK-NEXT:       %v_1 = loop.load %1[i1] : f32
// CHECK-NEXT:       %w = arith.negf %v_1 : f32
// CHECK-NEXT:       loop.store %w, %0[i1]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.kernel @chain symbols [] (%x: tensor<4x6xf32>) -> (tensor<24xf32>) {
    %a = loop.nest "a" [i: parallel 4, j: parallel 6] -> tensor<4x6xf32> {
      %v = loop.read %x[i, j] : f32
      loop.yield none %v at [i, j]
    }
    %f = loop.view %a : tensor<4x6xf32> to tensor<24xf32>
    %b = loop.nest "b" [i: parallel 24] -> tensor<24xf32> {
      %v = loop.read %f[i] : f32
      %w = arith.negf %v : f32
      loop.yield none %w at [i]
    }
    loop.return %b : tensor<24xf32>
  }
}

// -----

// A schedule orders the loops and leaves words on them. Identities belong to the combiner and the element type.

// CHECK:        loop.func @max symbols [] (%x: memref<4x6xui8>, %0: memref<6xui8>) outputs 1 {
// CHECK-NEXT:     loop.for j = 0 to 6 schedule [vector 16] {
// CHECK-NEXT:       %1 = loop.alloc "max" : memref<ui8, "register">
// CHECK-NEXT:       %2 = arith.constant 0 : i8
// CHECK-NEXT:       loop.store %2, %1[]
// CHECK-NEXT:       loop.for k = 0 to 4 reduction {
// CHECK-NEXT:         %v = loop.load %x[k, j] : i8
// CHECK-NEXT:         loop.accumulate max %v, %1[]
// CHECK-NEXT:       }
// CHECK-NEXT:       %3 = loop.load %1[] : i8
// CHECK-NEXT:       loop.store %3, %0[j]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.kernel @max symbols [] (%x: tensor<4x6xui8>) -> (tensor<6xui8>) {
    %m = loop.nest "max" [k: reduction 4, j: parallel 6] schedule [j vector 16, k] -> tensor<6xui8> {
      %v = loop.read %x[k, j] : i8
      loop.yield max %v at [j]
    }
    loop.return %m : tensor<6xui8>
  }
}

// -----

// A kernel's argument and a value returned twice are copied.

// CHECK:        loop.func @copy symbols [] (%x: memref<4xf32>, %0: memref<4xf32>, %1: memref<4xf32>, %2: memref<4xf32>) outputs 3 {
// CHECK-NEXT:     loop.for i = 0 to 4 {
// CHECK-NEXT:       %v = loop.load %x[i] : f32
// CHECK-NEXT:       loop.store %v, %1[i]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for c = 0 to 4 {
// CHECK-NEXT:       %3 = loop.load %x[c] : f32
// CHECK-NEXT:       loop.store %3, %0[c]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for c1 = 0 to 4 {
// CHECK-NEXT:       %4 = loop.load %1[c1] : f32
// CHECK-NEXT:       loop.store %4, %2[c1]
// CHECK-NEXT:     }
// CHECK-NEXT:   }

builtin.module {
  loop.kernel @copy symbols [] (%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %a = loop.nest "a" [i: parallel 4] -> tensor<4xf32> {
      %v = loop.read %x[i] : f32
      loop.yield none %v at [i]
    }
    loop.return %x, %a, %a : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// A nest of nothing has no loops; who reads its buffer finds it empty.

// CHECK:      loop.func @nothing symbols [n] (%x: memref<?x0xf32, #sym.dims<n, 0>>, %{{.*}}: memref<0x?xf32, #sym.dims<0, n>>, %{{.*}}: memref<?xf32, #sym.dims<n>>) outputs 2 {
// CHECK-NOT:    loop.store {{.*}}[j
// CHECK:        loop.for i = 0 to n {
// CHECK:          loop.for k = 0 to 0 reduction {

builtin.module {
  loop.kernel @nothing symbols [n] (%x: tensor<?x0xf32, #sym.dims<n, 0>>) -> (tensor<0x?xf32, #sym.dims<0, n>>, tensor<?xf32, #sym.dims<n>>) {
    %y = loop.nest "transpose" [j: parallel 0, i: parallel n] -> tensor<0x?xf32, #sym.dims<0, n>> {
      %a = loop.read %x[i, j] : f32
      loop.yield none %a at [j, i]
    }
    %s = loop.nest "sum" [i: parallel n, k: reduction 0] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i, k] : f32
      loop.yield add %a at [i]
    }
    loop.return %y, %s : tensor<0x?xf32, #sym.dims<0, n>>, tensor<?xf32, #sym.dims<n>>
  }
}

// -----

// An axis with a block is two loops: over blocks, and inside one, which has the words `inside`. The last may be shorter.

// CHECK:      loop.func @blocks
// CHECK-NEXT:   loop.for i = 0 to ((n + 7) floordiv 8) schedule [threads fuse "g"] {
// CHECK-NEXT:     loop.for j = 0 to 2 {
// CHECK-NEXT:       loop.for i1 = 0 to min(-8*i + n, 8) {
// CHECK-NEXT:         loop.for j1 = 0 to 24 schedule [vector 8] {
// CHECK-NEXT:           %a = loop.load %x[8*i + i1, 24*j + j1] : f32
// CHECK-NEXT:           loop.store %a, %0[8*i + i1, 24*j + j1]

builtin.module {
  loop.kernel @blocks symbols [n] (%x: tensor<?x48xf32, #sym.dims<n, 48>>) -> (tensor<?x48xf32, #sym.dims<n, 48>>) {
    %y = loop.nest "copy" [i: parallel n, j: parallel 48] schedule [i by 8 threads fuse "g", j by 24, i, j vector 8] -> tensor<?x48xf32, #sym.dims<n, 48>> {
      %a = loop.read %x[i, j] : f32
      loop.yield none %a at [i, j]
    }
    loop.return %y : tensor<?x48xf32, #sym.dims<n, 48>>
  }
}

// -----

// Blocks around a reduction: its accumulator stands inside them.

// CHECK:      loop.func @sums
// CHECK-NEXT:   loop.for i = 0 to 3 {
// CHECK-NEXT:     loop.for i1 = 0 to min(-8*i + 20, 8) {
// CHECK-NEXT:       loop.alloc "sum" : memref<f32, "register">
// CHECK:            loop.for k = 0 to n reduction {
// CHECK-NEXT:         %a = loop.load %x[8*i + i1, k] : f32

builtin.module {
  loop.kernel @sums symbols [n] (%x: tensor<20x?xf32, #sym.dims<20, n>>) -> (tensor<20xf32>) {
    %y = loop.nest "sum" [i: parallel 20, k: reduction n] schedule [i by 8, i, k] -> tensor<20xf32> {
      %a = loop.read %x[i, k] : f32
      loop.yield add %a at [i]
    }
    loop.return %y : tensor<20xf32>
  }
}

// -----

// A contraction with a `product`: a micro-kernel for every tile, for as many rows as there are. With tiles of rows
// inside those of columns, the first of them fetch the panels that come next.

// CHECK:      loop.func @gemm
// CHECK-NEXT:   loop.for j = 0 to 3 schedule [threads] {
// CHECK-NEXT:     loop.for i = 0 to ((m + 7) floordiv 8) {
// CHECK-NEXT:       %c = loop.alloc "matmul" : memref<8x48xf32, "local">
// CHECK-NEXT:       loop.tile_product %c[r, l + 16*p] = %a[8*i + r, k] * %b[3*j + p, k, l] over r = min(-8*i + m, 8), p = ((min(-48*j + 100, 48) + 15) floordiv 16), l = 16, k = 64 tile [8, 3] fetch [{{.*}}, 0, {{.*}}]
// CHECK-NEXT:       loop.for i1 = 0 to min(-8*i + m, 8) {
// CHECK-NEXT:         loop.for j1 = 0 to min(-48*j + 100, 48) schedule [vector 16] {
// CHECK-NEXT:           %1 = loop.load %c[i1, j1] : f32
// CHECK-NEXT:           loop.store %1, %0[8*i + i1, 48*j + j1]

builtin.module {
  loop.kernel @gemm symbols [m] (%a: tensor<?x64xf32, #sym.dims<m, 64>>, %b: tensor<7x64x16xf32>) -> (tensor<?x100xf32, #sym.dims<m, 100>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 100, k: reduction 64] schedule [j by 48 threads, i by 8, product(i, j, k) tile [8, 3], i, j vector 16] -> tensor<?x100xf32, #sym.dims<m, 100>> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %b[j floordiv 16, k, j mod 16] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x100xf32, #sym.dims<m, 100>>
  }
}

// -----

// Batch axes are loops around the tiles. The result may be stored in another order.

// CHECK:      loop.func @batch
// CHECK:        loop.for b = 0 to n {
// CHECK-NEXT:     loop.for i = 0 to ((m + 7) floordiv 8) {
// CHECK-NEXT:       loop.for j = 0 to 1 {
// CHECK-NEXT:         %c = loop.alloc "matmul" : memref<8x48xf32, "local">
// CHECK-NEXT:         loop.tile_product %c[r, l + 16*p] = %a[8*i + r, b, k] * %w[b, k, 48*j + l + 16*p] over r = min(-8*i + m, 8), p = 3, l = 16, k = d tile [8, 3]
// CHECK-NOT:          fetch
// CHECK:                loop.store %1, %0[b, 48*j + j1, 8*i + i1]

builtin.module {
  loop.kernel @batch symbols [n, m, d] (%a: tensor<?x?x?xf32, #sym.dims<m, n, d>>, %w: tensor<?x?x48xf32, #sym.dims<n, d, 48>>) -> (tensor<?x48x?xf32, #sym.dims<n, 48, m>>) {
    %c = loop.nest "matmul" [b: parallel n, i: parallel m, j: parallel 48, k: reduction d] schedule [b, i by 8, j by 48, product(i, j, k) tile [8, 3], i, j] -> tensor<?x48x?xf32, #sym.dims<n, 48, m>> {
      %x = loop.read %a[i, b, k] : f32
      %y = loop.read %w[b, k, j] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [b, j, i]
    }
    loop.return %c : tensor<?x48x?xf32, #sym.dims<n, 48, m>>
  }
}

// -----

// A window: the sum over its rows is the micro-kernel's own, and one further out, in which the image has no constant
// step, is a loop around it that adds to the tile.

// CHECK:      loop.func @window
// CHECK:          %c = loop.alloc "conv" : memref<7x16xf32, "local">
// CHECK-NEXT:     loop.tile_product %c[r, l + 16*p] = %a[s + y, r + 7*x, k] * %w[o + p, s, k, l] over r = 7, p = 1, l = 16, k = 12, s = 3 tile [7, 1]
// CHECK-NEXT:     loop.for x1 = 0 to 7 {
// CHECK:      loop.func @turned
// CHECK:          %c = loop.alloc "conv" : memref<7x16xf32, "local">
// CHECK:          loop.for h = 0 to 3 reduction {
// CHECK-NEXT:       loop.tile_product %c[r, l + 16*p] += %a[min(-h - y + 8, h + y), r + 7*x, k] * %w[o + p, h, k, l] over r = 7, p = 1, l = 16, k = 12 tile [7, 1]

builtin.module {
  loop.kernel @window symbols [] (%a: tensor<9x14x12xf32>, %w: tensor<1x3x12x16xf32>) -> (tensor<7x14x16xf32>) {
    %c = loop.nest "conv" [y: parallel 7, x: parallel 14, o: parallel 16, h: reduction 3, k: reduction 12] schedule [y, x by 7, o by 16, h, product(x, o, k) tile [7, 1], x, o] -> tensor<7x14x16xf32> {
      %v = loop.read %a[y + h, x, k] : f32
      %u = loop.read %w[o floordiv 16, h, k, o mod 16] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [y, x, o]
    }
    loop.return %c : tensor<7x14x16xf32>
  }
  loop.kernel @turned symbols [] (%a: tensor<9x14x12xf32>, %w: tensor<1x3x12x16xf32>) -> (tensor<7x14x16xf32>) {
    %c = loop.nest "conv" [y: parallel 7, x: parallel 14, o: parallel 16, h: reduction 3, k: reduction 12] schedule [y, x by 7, o by 16, h, product(x, o, k) tile [7, 1], x, o] -> tensor<7x14x16xf32> {
      %v = loop.read %a[min(y + h, 8 - y - h), x, k] : f32
      %u = loop.read %w[o floordiv 16, h, k, o mod 16] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [y, x, o]
    }
    loop.return %c : tensor<7x14x16xf32>
  }
}

// -----

// Guards of the left factor are bounds: of a sum around the tile, for the place of the tile and any of its rows, and of
// the rows, for an element of the window. A tile without rows is not multiplied.

// CHECK:      loop.func @guarded
// CHECK:          %c = loop.alloc "conv" : memref<4x16xf32, "local">
// CHECK:          loop.for h = max(((-y + 3) floordiv 4) + 1, 0) to min(((-y + 2) floordiv 4) + 3, 3) reduction {
// CHECK-NEXT:       loop.for w = max(-x + 1, 0) to min(-x + 3, 3) reduction {
// CHECK-NEXT:         loop.if [-max(-4*w - 4*x + 4, 0) + min(-4*w - 4*x + 10, 4) - 1] {
// CHECK-NEXT:           loop.tile_product %c[r + max(-4*w - 4*x + 4, 0), l + 16*p] += %a[4*h + y - 4, r + 4*w + 4*x + max(-4*w - 4*x + 4, 0) - 4, k] * %w[o + p, h, w, k, l] over r = -max(-4*w - 4*x + 4, 0) + min(-4*w - 4*x + 10, 4), p = 1, l = 16, k = 12 tile [4, 1]
// CHECK:      loop.func @guarded_rows
// CHECK:          loop.store %1, %c[
// CHECK:          loop.if [
// CHECK-NEXT:       loop.tile_product %c[{{.*}}] += %a[

builtin.module {
  loop.kernel @guarded symbols [] (%a: tensor<7x6x12xf32>, %w: tensor<1x3x3x12x16xf32>) -> (tensor<7x8x16xf32>) {
    %c = loop.nest "conv" [y: parallel 7, x: parallel 8, o: parallel 16, h: reduction 3, w: reduction 3, k: reduction 12] schedule [y, x by 4, o by 16, h, w, product(x, o, k) tile [4, 1], x, o] -> tensor<7x8x16xf32> {
      %v = loop.read %a[y + 4*h - 4, x + 4*w - 4, k] if [y + 4*h - 4, 10 - y - 4*h, x + 4*w - 4, 9 - x - 4*w] : f32
      %u = loop.read %w[o floordiv 16, h, w, k, o mod 16] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [y, x, o]
    }
    loop.return %c : tensor<7x8x16xf32>
  }
  loop.kernel @guarded_rows symbols [] (%a: tensor<6x12xf32>, %w: tensor<1x12x16xf32>) -> (tensor<8x16xf32>) {
    %c = loop.nest "conv" [x: parallel 8, o: parallel 16, k: reduction 12] schedule [x by 4, o by 16, product(x, o, k) tile [4, 1], x, o] -> tensor<8x16xf32> {
      %v = loop.read %a[x - 1, k] if [x - 1, 6 - x] : f32
      %u = loop.read %w[o floordiv 16, k, o mod 16] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [x, o]
    }
    loop.return %c : tensor<8x16xf32>
  }
}

// -----

// A vector times a matrix has one row and no axis for it.

// CHECK:      loop.func @vector
// CHECK-NEXT:   loop.for j = 0 to 2 {
// CHECK-NEXT:     %c = loop.alloc "matmul" : memref<1x48xf32, "local">
// CHECK-NEXT:     loop.tile_product %c[r, l + 16*p] = %a[k] * %b[k, 48*j + l + 16*p] over r = 1, p = 3, l = 16, k = 64 tile [1, 3]
// CHECK-NEXT:     loop.for j1 = 0 to 48 {
// CHECK-NEXT:       %1 = loop.load %c[0, j1] : f32

builtin.module {
  loop.kernel @vector symbols [] (%a: tensor<64xf32>, %b: tensor<64x96xf32>) -> (tensor<96xf32>) {
    %c = loop.nest "matmul" [j: parallel 96, k: reduction 64] schedule [j by 48, product(j, k) tile [1, 3], j] -> tensor<96xf32> {
      %x = loop.read %a[k] : f32
      %y = loop.read %b[k, j] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [j]
    }
    loop.return %c : tensor<96xf32>
  }
}

// -----

// A procedure: loops over its axes, its body inside, and words on the loops that the schedule names. Its loops get
// names of their own, and what it computes goes to the buffers that stand outside.

loop.kernel @scan symbols [n, m] (%x: tensor<?x8x?xf32, #sym.dims<n, 8, m>>) -> (tensor<?x8x?xf32, #sym.dims<n, 8, m>>) {
  %y = loop.procedure "scan" [i: parallel n] schedule [i threads, j vector 8] (%a = %x) -> (%o : tensor<?x8x?xf32, #sym.dims<n, 8, m>>) {
    loop.for k = 0 to 8 sequential {
      loop.for j = 0 to m {
        %before = loop.load %o[i, k - 1, j] if [k - 1] : f32
        %v = loop.load %a[i, k, j] : f32
        %s = arith.addf %before, %v : f32
        loop.store %s, %o[i, k, j]
      }
    }
  }
  %z = loop.nest "double" [i: parallel n, k: parallel 8, j: parallel m] -> tensor<?x8x?xf32, #sym.dims<n, 8, m>> {
    %v = loop.read %y[i, k, j] : f32
    %w = arith.addf %v, %v : f32
    loop.yield none %w at [i, k, j]
  }
  loop.return %z : tensor<?x8x?xf32, #sym.dims<n, 8, m>>
}
// CHECK-LABEL: loop.func @scan
// CHECK: %[[Y:.*]] = loop.alloc "scan" : memref<?x8x?xf32, #sym.dims<n, 8, m>, "scratch">
// CHECK-NEXT: loop.for i = 0 to n schedule [threads] {
// CHECK-NEXT:   loop.for k = 0 to 8 sequential {
// CHECK-NEXT:     loop.for j = 0 to m schedule [vector 8] {
// CHECK-NEXT:       %[[B:.*]] = loop.load %[[Y]][i, k - 1, j] if [k - 1] : f32
// CHECK-NEXT:       %[[V:.*]] = loop.load %{{.*}}[i, k, j] : f32
// CHECK-NEXT:       %[[S:.*]] = arith.addf %[[B]], %[[V]] : f32
// CHECK-NEXT:       loop.store %[[S]], %[[Y]][i, k, j]
// CHECK: loop.for i1 = 0 to n {
// CHECK-NEXT:   loop.for k1 = 0 to 8 {
// CHECK-NEXT:     loop.for j1 = 0 to m {

// -----

// Blocks in groups: a loop over groups, one over the blocks of a group, which may be fewer in the last, and one inside.

// CHECK:        loop.func @groups symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %0: memref<?xf32, #sym.dims<n>>) outputs 1 {
// CHECK-NEXT:       loop.for i = 0 to ((n + 31) floordiv 32) {
// CHECK-NEXT:         loop.for i1 = 0 to min(-4*i + ((n + 7) floordiv 8), 4) {
// CHECK-NEXT:           loop.for i2 = 0 to min(-32*i - 8*i1 + n, 8) schedule [vector 8] {
// CHECK-NEXT:             %a = loop.load %x[32*i + 8*i1 + i2] : f32
// CHECK-NEXT:             loop.store %a, %0[32*i + 8*i1 + i2]
// CHECK-NEXT:           }
// CHECK-NEXT:         }
// CHECK-NEXT:       }
// CHECK-NEXT:     }


builtin.module {
  loop.kernel @groups symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %y = loop.nest "copy" [i: parallel n] schedule [i by 32, i by 8, i vector 8] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      loop.yield none %a at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
  }
}

// -----

// A product by a micro-kernel that is named: two factors of f16, neither of which is widened before.

// CHECK:      loop.func @named
// CHECK:         loop.tile_product %c[r, l + 16*p] = %a[8*i + r, k] * %b[k, 48*j + l + 16*p] over r = min(-8*i + m, 8), p = 3, l = 16, k = 64 tile [8, 3] fetch {{.*}} kernel "f16"

builtin.module {
  loop.kernel @named symbols [m] (%a: tensor<?x64xf16, #sym.dims<m, 64>>, %b: tensor<64x96xf16>) -> (tensor<?x96xf32, #sym.dims<m, 96>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 96, k: reduction 64] schedule [j by 48, i by 8, product(i, j, k) tile [8, 3] by "f16", i, j] -> tensor<?x96xf32, #sym.dims<m, 96>> {
      %x = loop.read %a[i, k] : f16
      %y = loop.read %b[k, j] : f16
      %u = arith.extf %x : f16 to f32
      %v = arith.extf %y : f16 to f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x96xf32, #sym.dims<m, 96>>
  }
}

// -----

// What a nest leaves of its result is filled in front of all loops, box by box: two rows, then the ends of the others.

// CHECK-LABEL: loop.func @rim
// CHECK-NEXT:  %1 = arith.constant 1.500000e+00 : f32
// CHECK-NEXT:  loop.for s = 0 to 6 schedule [vector 4] {
// CHECK-NEXT:    loop.store %1, %0[0, s]
// CHECK:       loop.for s1 = 0 to 6 schedule [vector 4] {
// CHECK-NEXT:    loop.store %1, %0[n + 1, s1]
// CHECK:       loop.for s2 = 0 to n {
// CHECK-NEXT:    loop.for s3 = 0 to 2 schedule [vector 4] {
// CHECK-NEXT:      loop.store %1, %0[s2 + 1, s3 + 4]
// CHECK:       loop.for i = 0 to n {
// CHECK:         loop.store %v, %0[i + 1, j]
builtin.module {
  loop.kernel @rim symbols [n] (%x: tensor<?x4xf32, #sym.dims<n, 4>>) -> (tensor<?x6xf32, #sym.dims<n + 2, 6>>) {
    %y = loop.nest "copy" [i: parallel n, j: parallel 4] schedule [i, j vector 4] -> tensor<?x6xf32, #sym.dims<n + 2, 6>> {
      %v = loop.read %x[i, j] : f32
      loop.yield none %v at [i + 1, j] else 1.5 : f32
    }
    loop.return %y : tensor<?x6xf32, #sym.dims<n + 2, 6>>
  }
}

// -----

// What is no box is filled as a whole first.

// CHECK-LABEL: loop.func @gaps
// CHECK:       loop.for s = 0 to 8 {
// CHECK-NEXT:    loop.store %1, %0[s]
// CHECK:       loop.for i = 0 to 4 {
// CHECK:         loop.store %v, %0[2*i]
builtin.module {
  loop.kernel @gaps symbols [] (%x: tensor<4xf32>) -> (tensor<8xf32>) {
    %y = loop.nest "copy" [i: parallel 4] -> tensor<8xf32> {
      %v = loop.read %x[i] : f32
      loop.yield none %v at [2*i] else 0.0 : f32
    }
    loop.return %y : tensor<8xf32>
  }
}
