// RUN: igniter-opt %s -p pack-operands --split-input-file | filecheck %s
// RUN: igniter-opt %s -p pack-operands,choose-schedule --split-input-file | filecheck %s --check-prefix=TOGETHER
// RUN: igniter-opt %s -p pack-operands --target sapphirerapids --split-input-file | filecheck %s --check-prefix=PAIRS
// RUN: igniter-opt %s -p pack-operands --remarks --emit=none --split-input-file 2>&1 | filecheck %s --check-prefix=REMARKS
// RUN: igniter-opt %s -p pack-operands,choose-schedule,lower-to-loops,fuse-loops,promote-buffers --check-each --emit=none --split-input-file 2>&1 | filecheck %s --check-prefix=CHECKED

// CHECKED-COUNT-18: check: promote-buffers: 1 results agree

// The keys of attention: columns that lie across memory are brought side by side, zeros behind the last of them.

// CHECK:      %{{.*}} = loop.nest "scores.pack" [b: parallel 2, p: parallel ((n + 15) floordiv 16), k: parallel 64, l: parallel 16] -> tensor<2x?x64x16xf32, #sym.dims<2, ((n + 15) floordiv 16), 64, 16>> {
// CHECK-NEXT:   %[[V:.*]] = loop.read %y[b, l + 16*p, k] if [-l + n - 16*p - 1] : f32
// CHECK-NEXT:   loop.yield none %[[V]] at [b, p, k, l]
// CHECK:      loop.nest "scores"
// CHECK-NEXT:   %v = loop.read %x[b, i, k] : f32
// CHECK-NEXT:   loop.read %{{.*}}[b, (j floordiv 16), k, (j mod 16)] : f32
// REMARKS: remark: pack-operands: 'scores' applied: its right factor is packed into panels

builtin.module {
  loop.kernel @k symbols [m, n] (%x: tensor<2x?x64xf32, #sym.dims<2, m, 64>>, %y: tensor<2x?x64xf32, #sym.dims<2, n, 64>>) -> (tensor<2x?x?xf32, #sym.dims<2, m, n>>) {
    %c = loop.nest "scores" [b: parallel 2, i: parallel m, j: parallel n, k: reduction 64] -> tensor<2x?x?xf32, #sym.dims<2, m, n>> {
      %v = loop.read %x[b, i, k] : f32
      %u = loop.read %y[b, j, k] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [b, i, j]
    }
    loop.return %c : tensor<2x?x?xf32, #sym.dims<2, m, n>>
  }
}

// -----

// Row-major, but the columns fill no whole number of panels.

// CHECK: loop.nest "scores.pack" [p: parallel 2, k: parallel n, l: parallel 16]
// CHECK-NEXT: loop.read %y[k, l + 16*p] if [-l - 16*p + 19] : f32

builtin.module {
  loop.kernel @k symbols [m, n] (%x: tensor<?x?xf32, #sym.dims<m, n>>, %y: tensor<?x20xf32, #sym.dims<n, 20>>) -> (tensor<?x20xf32, #sym.dims<m, 20>>) {
    %c = loop.nest "scores" [i: parallel m, j: parallel 20, k: reduction n] -> tensor<?x20xf32, #sym.dims<m, 20>> {
      %v = loop.read %x[i, k] : f32
      %u = loop.read %y[k, j] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x20xf32, #sym.dims<m, 20>>
  }
}

// -----

// Columns that fill panels are padded with nothing. Those of doubles are 8 wide.

// CHECK: loop.nest "scores.pack" [p: parallel 3, k: parallel n, l: parallel 8]
// CHECK-NEXT: loop.read %y[l + 8*p, k] : f64

builtin.module {
  loop.kernel @k symbols [m, n] (%x: tensor<?x?xf64, #sym.dims<m, n>>, %y: tensor<24x?xf64, #sym.dims<24, n>>) -> (tensor<?x24xf64, #sym.dims<m, 24>>) {
    %c = loop.nest "scores" [i: parallel m, j: parallel 24, k: reduction n] -> tensor<?x24xf64, #sym.dims<m, 24>> {
      %v = loop.read %x[i, k] : f64
      %u = loop.read %y[j, k] : f64
      %p = arith.mulf %v, %u : f64
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x24xf64, #sym.dims<m, 24>>
  }
}

// -----

// Panels that are there already.

// CHECK:      loop.kernel @k
// CHECK-NEXT:   loop.nest "scores"

builtin.module {
  loop.kernel @k symbols [m, n] (%x: tensor<?x?xf32, #sym.dims<m, n>>, %y: tensor<?x48xf32, #sym.dims<n, 48>>) -> (tensor<?x48xf32, #sym.dims<m, 48>>) {
    %c = loop.nest "scores" [i: parallel m, j: parallel 48, k: reduction n] -> tensor<?x48xf32, #sym.dims<m, 48>> {
      %v = loop.read %x[i, k] : f32
      %u = loop.read %y[k, j] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x48xf32, #sym.dims<m, 48>>
  }
}

// -----

// The result's last axis belongs to the left factor: that one is packed.

// CHECK: loop.nest "scores.pack" [p: parallel ((m + 15) floordiv 16), k: parallel 64, l: parallel 16]
// CHECK-NEXT: loop.read %x[l + 16*p, k]

builtin.module {
  loop.kernel @k symbols [m, n] (%x: tensor<?x64xf32, #sym.dims<m, 64>>, %y: tensor<?x64xf32, #sym.dims<n, 64>>) -> (tensor<?x?xf32, #sym.dims<n, m>>) {
    %c = loop.nest "scores" [j: parallel n, i: parallel m, k: reduction 64] -> tensor<?x?xf32, #sym.dims<n, m>> {
      %v = loop.read %x[i, k] : f32
      %u = loop.read %y[j, k] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [j, i]
    }
    loop.return %c : tensor<?x?xf32, #sym.dims<n, m>>
  }
}

// -----

// Three rows do not make up for it.

// CHECK:      loop.kernel @k
// CHECK-NEXT:   loop.nest "scores"
// REMARKS: remark: pack-operands: 'scores' missed: only 3 rows would share it

builtin.module {
  loop.kernel @k symbols [n] (%x: tensor<3x64xf32>, %y: tensor<?x64xf32, #sym.dims<n, 64>>) -> (tensor<3x?xf32, #sym.dims<3, n>>) {
    %c = loop.nest "scores" [i: parallel 3, j: parallel n, k: reduction 64] -> tensor<3x?xf32, #sym.dims<3, n>> {
      %v = loop.read %x[i, k] : f32
      %u = loop.read %y[j, k] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<3x?xf32, #sym.dims<3, n>>
  }
}

// -----

// One of the factors is a vector: no rows share what would be packed.

// CHECK:      loop.kernel @k
// CHECK-NEXT:   loop.nest "scores"
// REMARKS: remark: pack-operands: 'scores' missed: no axis of the result is in only one factor

builtin.module {
  loop.kernel @k symbols [n] (%x: tensor<64xf32>, %y: tensor<?x64xf32, #sym.dims<n, 64>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %c = loop.nest "scores" [j: parallel n, k: reduction 64] -> tensor<?xf32, #sym.dims<n>> {
      %v = loop.read %x[k] : f32
      %u = loop.read %y[j, k] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [j]
    }
    loop.return %c : tensor<?xf32, #sym.dims<n>>
  }
}

// -----

// No micro-kernel multiplies these.

// CHECK:      loop.kernel @k
// CHECK-NEXT:   loop.nest "scores"
// REMARKS: remark: pack-operands: 'scores' missed: there is no micro-kernel for products of i64 and i64 in i64

builtin.module {
  loop.kernel @k symbols [m, n] (%x: tensor<?x8xi64, #sym.dims<m, 8>>, %y: tensor<?x8xi64, #sym.dims<n, 8>>) -> (tensor<?x?xi64, #sym.dims<m, n>>) {
    %c = loop.nest "scores" [i: parallel m, j: parallel n, k: reduction 8] -> tensor<?x?xi64, #sym.dims<m, n>> {
      %v = loop.read %x[i, k] : i64
      %u = loop.read %y[j, k] : i64
      %p = arith.muli %v, %u : i64
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x?xi64, #sym.dims<m, n>>
  }
}

// -----

// 16-bit floats are multiplied in f32: the right factor is widened as it is packed, the left one by a nest of its own.

// CHECK:      loop.kernel @k
// CHECK-NEXT:   loop.nest "scores.pack" {{.*}} -> tensor<?x8x16xf32
// CHECK-NEXT:     loop.read %y[l + 16*p, k] if {{.*}} : bf16
// CHECK-NEXT:     arith.extf {{.*}} : bf16 to f32
// CHECK:        loop.nest "scores.rows" [i: parallel m, k: parallel 8] -> tensor<?x8xf32
// CHECK-NEXT:     loop.read %x[i, k] : bf16
// CHECK-NEXT:     arith.extf {{.*}} : bf16 to f32
// CHECK:        loop.nest "scores" [i: parallel m, j: parallel n, k: reduction 8]
// CHECK-NEXT:     loop.read {{.*}}[i, k] : f32
// CHECK-NEXT:     loop.read {{.*}}[(j floordiv 16), k, (j mod 16)] : f32
// CHECK-NEXT:     arith.mulf
// REMARKS: remark: pack-operands: 'scores' applied: its right factor is packed into panels

builtin.module {
  loop.kernel @k symbols [m, n] (%x: tensor<?x8xbf16, #sym.dims<m, 8>>, %y: tensor<?x8xbf16, #sym.dims<n, 8>>) -> (tensor<?x?xf32, #sym.dims<m, n>>) {
    %c = loop.nest "scores" [i: parallel m, j: parallel n, k: reduction 8] -> tensor<?x?xf32, #sym.dims<m, n>> {
      %v = loop.read %x[i, k] : bf16
      %u = loop.read %y[j, k] : bf16
      %v1 = arith.extf %v : bf16 to f32
      %u1 = arith.extf %u : bf16 to f32
      %p = arith.mulf %v1, %u1 : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x?xf32, #sym.dims<m, n>>
  }
}

// -----

// A right factor in panels stays in 16 bits; the nest that computes the left one, for this reader alone, widens it.

// CHECK:      loop.kernel @k
// CHECK-NEXT:   loop.nest "relu" [i: parallel m, k: parallel 8] -> tensor<?x8xf32
// CHECK:          arith.truncf {{.*}} : f32 to f16
// CHECK-NEXT:     arith.extf {{.*}} : f16 to f32
// CHECK:        loop.nest "product"
// CHECK-NEXT:     loop.read {{.*}}[i, k] : f32
// CHECK-NEXT:     loop.read %w[(j floordiv 16), k, (j mod 16)] : f16
// CHECK-NEXT:     arith.extf {{.*}} : f16 to f32
// CHECK-NEXT:     arith.mulf

builtin.module {
  loop.kernel @k symbols [m] (%x: tensor<?x8xf32, #sym.dims<m, 8>>, %w: tensor<2x8x16xf16>) -> (tensor<?x32xf32, #sym.dims<m, 32>>) {
    %a = loop.nest "relu" [i: parallel m, k: parallel 8] -> tensor<?x8xf16, #sym.dims<m, 8>> {
      %v = loop.read %x[i, k] : f32
      %zero = arith.constant 0.0 : f32
      %r = arith.maximumf %v, %zero : f32
      %h = arith.truncf %r : f32 to f16
      loop.yield none %h at [i, k]
    }
    %c = loop.nest "product" [i: parallel m, j: parallel 32, k: reduction 8] -> tensor<?x32xf32, #sym.dims<m, 32>> {
      %v = loop.read %a[i, k] : f16
      %u = loop.read %w[(j floordiv 16), k, (j mod 16)] : f16
      %v1 = arith.extf %v : f16 to f32
      %u1 = arith.extf %u : f16 to f32
      %p = arith.mulf %v1, %u1 : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x32xf32, #sym.dims<m, 32>>
  }
}

// -----

// Bytes are packed in groups, at compile time only.

// CHECK:      loop.kernel @k
// CHECK-NEXT:   loop.nest "scores"
// REMARKS: remark: pack-operands: 'scores' missed: elements of i8 can be packed only at compile time

builtin.module {
  loop.kernel @k symbols [m, n] (%x: tensor<?x8xi8, #sym.dims<m, 8>>, %y: tensor<?x8xi8, #sym.dims<n, 8>>) -> (tensor<?x?xi32, #sym.dims<m, n>>) {
    %c = loop.nest "scores" [i: parallel m, j: parallel n, k: reduction 8] -> tensor<?x?xi32, #sym.dims<m, n>> {
      %v = loop.read %x[i, k] : i8
      %u = loop.read %y[j, k] : i8
      %v1 = arith.extsi %v : i8 to i32
      %u1 = arith.extsi %u : i8 to i32
      %p = arith.muli %v1, %u1 : i32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x?xi32, #sym.dims<m, n>>
  }
}

// -----

// The values of each head lie in panels, but a row of all heads from each other: they are brought together, for rows
// that are as many as the steps of depth. For two rows they are not.

// CHECK:      loop.nest "weighted.pack" [h: parallel 12, p: parallel 4, k: parallel n, l: parallel 16]
// CHECK-NEXT:   loop.read %y[k, h, l + 16*p] : f32
// CHECK:      loop.nest "weighted"
// CHECK:        loop.read %{{.*}}[h, (j floordiv 16), k, (j mod 16)] : f32
// CHECK-NOT:  loop.nest "few.pack"

builtin.module {
  loop.kernel @k symbols [n] (%x: tensor<12x?x?xf32, #sym.dims<12, n, n>>, %y: tensor<?x12x64xf32, #sym.dims<n, 12, 64>>) -> (tensor<12x?x64xf32, #sym.dims<12, n, 64>>, tensor<12x2x64xf32, #sym.dims<12, 2, 64>>) {
    %c = loop.nest "weighted" [h: parallel 12, i: parallel n, j: parallel 64, k: reduction n] -> tensor<12x?x64xf32, #sym.dims<12, n, 64>> {
      %v = loop.read %x[h, i, k] : f32
      %u = loop.read %y[k, h, j] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [h, i, j]
    }
    %d = loop.nest "few" [h: parallel 12, i: parallel 2, j: parallel 64, k: reduction n] -> tensor<12x2x64xf32, #sym.dims<12, 2, 64>> {
      %v = loop.read %x[h, 0, k] : f32
      %u = loop.read %y[k, h, j] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [h, i, j]
    }
    loop.return %c, %d : tensor<12x?x64xf32, #sym.dims<12, n, 64>>, tensor<12x2x64xf32, #sym.dims<12, 2, 64>>
  }
}

// -----

// They are packed before the scores that go with them are computed: a block of rows still goes through both products.

// TOGETHER-LABEL: @attention
// TOGETHER:       loop.view %y
// TOGETHER-NEXT:  loop.nest "weighted.pack"
// TOGETHER:       loop.nest "scores.pack"
// TOGETHER:       loop.nest "scores"{{.*}} schedule [h threads fuse "g[[G:[0-9]+]]", i by 8 fuse "g[[G]]"
// TOGETHER:       loop.nest "weighted"{{.*}} schedule [h threads fuse "g[[G]]", i by 8 fuse "g[[G]]"

builtin.module {
  loop.kernel @attention symbols [n] (%q: tensor<12x?x64xf32, #sym.dims<12, n, 64>>, %k: tensor<12x?x64xf32, #sym.dims<12, n, 64>>, %y: tensor<?x768xf32, #sym.dims<n, 768>>) -> (tensor<12x?xf32, #sym.dims<12, n>>, tensor<12x?x64xf32, #sym.dims<12, n, 64>>) {
    %s = loop.nest "scores" [h: parallel 12, i: parallel n, j: parallel n, d: reduction 64] -> tensor<12x?x?xf32, #sym.dims<12, n, n>> {
      %v = loop.read %q[h, i, d] : f32
      %u = loop.read %k[h, j, d] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [h, i, j]
    }
    %m = loop.nest "max" [h: parallel 12, i: parallel n, j: reduction n] -> tensor<12x?xf32, #sym.dims<12, n>> {
      %v = loop.read %s[h, i, j] : f32
      loop.yield max %v at [h, i]
    }
    %r = loop.view %y : tensor<?x768xf32, #sym.dims<n, 768>> to tensor<?x12x64xf32, #sym.dims<n, 12, 64>>
    %w = loop.nest "weighted" [h: parallel 12, i: parallel n, j: parallel 64, d: reduction n] -> tensor<12x?x64xf32, #sym.dims<12, n, 64>> {
      %v = loop.read %s[h, i, d] : f32
      %u = loop.read %r[d, h, j] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [h, i, j]
    }
    loop.return %m, %w : tensor<12x?xf32, #sym.dims<12, n>>, tensor<12x?x64xf32, #sym.dims<12, n, 64>>
  }
}

// -----

// The rows of a linear layer behind a transposition: places of an image, and of each those of the batch, which may be
// one. Its left factor is copied to their order, and they are one axis.

// CHECK-LABEL:  loop.kernel @turned_rows
// CHECK:          %[[COPY:.*]] = loop.nest "matmul.rows" [i: parallel s, {{.*}}: parallel 64*n]
// CHECK:          %[[ROWS:.*]] = loop.view %[[COPY]] : {{.*}} to tensor<?x64xf32, #sym.dims<n*s, 64>>
// CHECK:          loop.nest "matmul" [i_b: parallel n*s, j: parallel 48, k: reduction 64]
// CHECK-NEXT:       loop.read %[[ROWS]][i_b, k] : f32
// REMARKS:      remark: pack-operands: 'matmul' applied: its left factor is copied in the order of the rows

builtin.module {
  loop.kernel @turned_rows symbols [n, s] (%x: tensor<?x64x?xf32, #sym.dims<n, 64, s>>, %w: tensor<3x64x16xf32>) -> (tensor<?x?x48xf32, #sym.dims<s, n, 48>>) {
    %c = loop.nest "matmul" [i: parallel s, b: parallel n, j: parallel 48, k: reduction 64] -> tensor<?x?x48xf32, #sym.dims<s, n, 48>> {
      %v = loop.read %x[b, k, i] : f32
      %u = loop.read %w[j floordiv 16, k, j mod 16] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [i, b, j]
    }
    loop.return %c : tensor<?x?x48xf32, #sym.dims<s, n, 48>>
  }
}

// -----

// Not so where the last axis alone fills tiles, or the rows lie in their order, if not one after the other.

// CHECK-LABEL:  loop.kernel @rows_enough
// CHECK-NOT:      .rows"

builtin.module {
  loop.kernel @rows_enough symbols [n, s] (%x: tensor<16x64x?xf32, #sym.dims<16, 64, s>>, %z: tensor<?x?x2x64xf32, #sym.dims<n, s, 2, 64>>, %w: tensor<3x64x16xf32>) -> (tensor<?x16x48xf32, #sym.dims<s, 16, 48>>, tensor<?x?x48xf32, #sym.dims<n, s, 48>>) {
    %c = loop.nest "matmul" [i: parallel s, b: parallel 16, j: parallel 48, k: reduction 64] -> tensor<?x16x48xf32, #sym.dims<s, 16, 48>> {
      %v = loop.read %x[b, k, i] : f32
      %u = loop.read %w[j floordiv 16, k, j mod 16] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [i, b, j]
    }
    %d = loop.nest "other" [b: parallel n, i: parallel s, j: parallel 48, k: reduction 64] -> tensor<?x?x48xf32, #sym.dims<n, s, 48>> {
      %v = loop.read %z[b, i, 1, k] : f32
      %u = loop.read %w[j floordiv 16, k, j mod 16] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [b, i, j]
    }
    loop.return %c, %d : tensor<?x16x48xf32, #sym.dims<s, 16, 48>>, tensor<?x?x48xf32, #sym.dims<n, s, 48>>
  }
}

// -----

// The columns lie in panels, but the lines of a panel crowd a few sets of the caches: 512 of them, 2 KiB apart.

// CHECK-LABEL:  loop.kernel @crowded
// CHECK:          %[[PANELS:.*]] = loop.nest "product.pack" [p: parallel 32, k: parallel 512, l: parallel 16]
// CHECK:          loop.read %[[PANELS]][(j floordiv 16), k, (j mod 16)]
// REMARKS:      remark: pack-operands: 'product' applied: its right factor is packed into panels

builtin.module {
  loop.kernel @crowded symbols [] (%x: tensor<32x512xf32>, %y: tensor<512x512xf32>) -> (tensor<32x512xf32>) {
    %c = loop.nest "product" [i: parallel 32, j: parallel 512, k: reduction 512] -> tensor<32x512xf32> {
      %v = loop.read %x[i, k] : f32
      %u = loop.read %y[k, j] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<32x512xf32>
  }
}

// -----

// Three rows do not share it, and how many there are has to be known: where that is a symbol, the kernel has a variant
// for few (`form-variants`).

// CHECK-LABEL:  loop.kernel @crowded_few
// CHECK-NOT:      .pack"

builtin.module {
  loop.kernel @crowded_few symbols [] (%x: tensor<3x512xf32>, %y: tensor<512x512xf32>) -> (tensor<3x512xf32>) {
    %c = loop.nest "product" [i: parallel 3, j: parallel 512, k: reduction 512] -> tensor<3x512xf32> {
      %v = loop.read %x[i, k] : f32
      %u = loop.read %y[k, j] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<3x512xf32>
  }
}

// -----

// CHECK-LABEL:  loop.kernel @crowded_unknown
// CHECK-NOT:      .pack"

builtin.module {
  loop.kernel @crowded_unknown symbols [m] (%x: tensor<?x512xf32, #sym.dims<m, 512>>, %y: tensor<512x512xf32>) -> (tensor<?x512xf32, #sym.dims<m, 512>>) {
    %c = loop.nest "product" [i: parallel m, j: parallel 512, k: reduction 512] -> tensor<?x512xf32, #sym.dims<m, 512>> {
      %v = loop.read %x[i, k] : f32
      %u = loop.read %y[k, j] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x512xf32, #sym.dims<m, 512>>
  }
}

// -----

// The weight of a convolution, computed at run time: panels of its output channels, in each the places of the window,
// and in each place the channels. A row of the window and its channels are one depth.

// CHECK-LABEL:  loop.kernel @window
// CHECK:          loop.nest "conv.pack" [p: parallel 2, u_v: parallel 9, c: parallel 8, l: parallel 16] -> tensor<2x9x8x16xf32> {
// CHECK-NEXT:       loop.read %{{.*}}[l + 16*p, c, u_v] if [-l - 16*p + 19] : f32
// CHECK-NEXT:       loop.yield none %{{.*}} at [p, u_v, c, l]
// CHECK:          loop.nest "conv" [o: parallel 20, y: parallel 6, x: parallel 6, v_c: reduction 24, u: reduction 3]
// CHECK-NEXT:       loop.read %{{.*}}[(o floordiv 16), u, v_c, (o mod 16)] : f32
// CHECK-NEXT:       loop.read %{{.*}}[u + y, v_c + 8*x] : f32
// CHECK-LABEL:  loop.kernel @few
// CHECK-NOT:      .pack"
// REMARKS:      remark: pack-operands: 'conv' applied: its right factor is packed into panels
// REMARKS:      remark: pack-operands: 'conv' missed: only 2 rows would share it

builtin.module {
  loop.kernel @window symbols [] (%x: tensor<8x8x8xf32>, %w: tensor<20x8x3x3xf32>) -> (tensor<6x6x20xf32>) {
    %c = loop.nest "conv" [o: parallel 20, y: parallel 6, x: parallel 6, c: reduction 8, u: reduction 3, v: reduction 3] -> tensor<6x6x20xf32> {
      %a = loop.read %w[o, c, u, v] : f32
      %b = loop.read %x[y + u, x + v, c] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [y, x, o]
    }
    loop.return %c : tensor<6x6x20xf32>
  }
  loop.kernel @few symbols [] (%x: tensor<3x4x8xf32>, %w: tensor<20x8x3x3xf32>) -> (tensor<2x20xf32>) {
    %c = loop.nest "conv" [o: parallel 20, x: parallel 2, c: reduction 8, u: reduction 3, v: reduction 3] -> tensor<2x20xf32> {
      %a = loop.read %w[o, c, u, v] : f32
      %b = loop.read %x[u, x + v, c] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [x, o]
    }
    loop.return %c : tensor<2x20xf32>
  }
}

// -----

// Eight columns fill half of a panel: eight rows do not make up for it, nine do. One row reads the columns as they are.

// CHECK-LABEL:  loop.kernel @narrow
// CHECK-NOT:      .pack"
// REMARKS:      remark: pack-operands: 'product' missed: only 8 rows would share it
// TOGETHER-LABEL: loop.kernel @narrow
// TOGETHER-NOT:   product(
// CHECK-LABEL:  loop.kernel @taller
// CHECK:          loop.nest "product.pack"
// TOGETHER-LABEL: loop.kernel @taller
// TOGETHER:       product(i, j, k)
// CHECK-LABEL:  loop.kernel @row
// TOGETHER-LABEL: loop.kernel @row
// TOGETHER:       schedule [b threads, j by 1024 tail mask, k by 8 tail rest, j vector 16, k unroll]

builtin.module {
  loop.kernel @narrow symbols [] (%x: tensor<8x1000xf32>, %y: tensor<1000x8xf32>) -> (tensor<8x8xf32>) {
    %c = loop.nest "product" [i: parallel 8, j: parallel 8, k: reduction 1000] -> tensor<8x8xf32> {
      %v = loop.read %x[i, k] : f32
      %u = loop.read %y[k, j] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<8x8xf32>
  }
  loop.kernel @taller symbols [] (%x: tensor<9x1000xf32>, %y: tensor<1000x8xf32>) -> (tensor<9x8xf32>) {
    %c = loop.nest "product" [i: parallel 9, j: parallel 8, k: reduction 1000] -> tensor<9x8xf32> {
      %v = loop.read %x[i, k] : f32
      %u = loop.read %y[k, j] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<9x8xf32>
  }
  loop.kernel @row symbols [] (%x: tensor<4x64xf32>, %y: tensor<4x64x512xf32>) -> (tensor<4x512xf32>) {
    %c = loop.nest "product" [b: parallel 4, j: parallel 512, k: reduction 64] -> tensor<4x512xf32> {
      %v = loop.read %x[b, k] : f32
      %u = loop.read %y[b, k, j] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [b, j]
    }
    loop.return %c : tensor<4x512xf32>
  }
}

// -----

// Windows along one axis, of fewer elements than results: they are copied to panels whose columns are the places, with
// zeros for the padding. The results are in the order of the model.

// CHECK-LABEL:  loop.kernel @line
// CHECK:          loop.nest "conv.pack" [p: parallel 2, c: parallel 2, k: parallel 5, l: parallel 16]
// CHECK-NEXT:       loop.read %{{.*}}[c, k + 2*l + 32*p - 1] if [k + 2*l + 32*p - 1, -k - 2*l - 32*p + 40, -l - 16*p + 18] : f32
// CHECK:          loop.nest "conv" [o: parallel 20, x: parallel 19, c_k: reduction 10]
// CHECK-NEXT:       loop.read %{{.*}}[o, c_k] : f32
// CHECK-NEXT:       loop.read %{{.*}}[(x floordiv 16), c_k, (x mod 16)] : f32
// REMARKS:      remark: pack-operands: 'conv' applied: its right factor is packed into panels

builtin.module {
  loop.kernel @line symbols [] (%x: tensor<2x40xf32>, %w: tensor<20x2x5xf32>) -> (tensor<20x19xf32>) {
    %s = loop.nest "conv" [o: parallel 20, x: parallel 19, c: reduction 2, k: reduction 5] -> tensor<20x19xf32> {
      %a = loop.read %w[o, c, k] : f32
      %b = loop.read %x[c, 2*x + k - 1] if [2*x + k - 1, -2*x - k + 40] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [o, x]
    }
    loop.return %s : tensor<20x19xf32>
  }
}

// -----

// With tiles of bf16: pairs of steps, and a step of zeros after an odd number. The rounding of the values is part of
// the copy. Without such tiles the left factor is widened, and the columns of the right one are in panels.

// CHECK: loop.nest "out.rows" [b: parallel 4, i: parallel n, j: parallel n] -> tensor<4x?x?xf32, #sym.dims<4, n, n>> {

// PAIRS:      %[[PACK:.*]] = loop.nest "out.pack" [b: parallel 4, p: parallel 2, j: parallel ((n + 1) floordiv 2), l: parallel 16, s: parallel 2] -> tensor<4x2x?x16x2xbf16, #sym.dims<4, 2, ((n + 1) floordiv 2), 16, 2>> {
// PAIRS-NEXT:   %[[V:.*]] = loop.read %v[b, 2*j + s, l + 16*p] if [-2*j + n - s - 1] : f32
// PAIRS-NEXT:   arith.truncf %[[V]] : f32 to bf16
// PAIRS:      %[[ROWS:.*]] = loop.nest "out.rows" [b: parallel 4, i: parallel n, j: parallel 2*((n + 1) floordiv 2)] -> tensor<4x?x?xbf16, #sym.dims<4, n, 2*((n + 1) floordiv 2)>> {
// PAIRS-NEXT:   loop.read %p[b, i, j] if [-j + n - 1] : bf16
// PAIRS:      loop.nest "out" [b: parallel 4, i: parallel n, f: parallel 32, j: reduction 2*((n + 1) floordiv 2)] ->
// PAIRS-NEXT:   loop.read %[[ROWS]][b, i, j] : bf16
// PAIRS:        loop.read %[[PACK]][b, (f floordiv 16), (j floordiv 2), (f mod 16), (j mod 2)] : bf16

builtin.module {
  loop.kernel @pairs symbols [n] (%p: tensor<4x?x?xbf16, #sym.dims<4, n, n>>, %v: tensor<4x?x32xf32, #sym.dims<4, n, 32>>) -> (tensor<4x?x32xf32, #sym.dims<4, n, 32>>) {
    %r = loop.nest "round" [b: parallel 4, j: parallel n, f: parallel 32] -> tensor<4x?x32xf32, #sym.dims<4, n, 32>> {
      %x = loop.read %v[b, j, f] : f32
      %y = arith.truncf %x : f32 to bf16
      %z = arith.extf %y : bf16 to f32
      loop.yield none %z at [b, j, f]
    }
    %o = loop.nest "out" [b: parallel 4, i: parallel n, f: parallel 32, j: reduction n] -> tensor<4x?x32xf32, #sym.dims<4, n, 32>> {
      %x = loop.read %p[b, i, j] : bf16
      %w = arith.extf %x : bf16 to f32
      %y = loop.read %r[b, j, f] : f32
      %z = arith.mulf %w, %y : f32
      loop.yield add %z at [b, i, f]
    }
    loop.return %o : tensor<4x?x32xf32, #sym.dims<4, n, 32>>
  }
}

// -----

// The rows of a small image are one axis for tiles, with the padding between them; its readers skip the padding.

// CHECK: loop.nest "conv" [n: parallel b, y: parallel 7, x: parallel 7, o: parallel 32, r: reduction 3, k: reduction 96] ->

// PAIRS:      %[[LINES:.*]] = loop.view %image
// PAIRS-NEXT: %[[FLAT:.*]] = loop.view %[[LINES]]
// PAIRS-SAME:   to tensor<?x2592xbf16, #sym.dims<b, 2592>>
// PAIRS-NEXT: %[[C:.*]] = loop.nest "conv" [n: parallel b, y_x: parallel 61, o: parallel 32, r: reduction 3, k: reduction 96] -> tensor<?x61x32xf32, #sym.dims<b, 61, 32>> {
// PAIRS-NEXT:   loop.read %[[FLAT]][n, k + 288*r + 32*y_x] : bf16
// PAIRS:      loop.nest "relu" [n: parallel b, y: parallel 7, x: parallel 7, o: parallel 32]
// PAIRS-NEXT:   loop.read %[[C]][n, x + 9*y, o] : f32

builtin.module {
  loop.kernel @small symbols [b] (%image: tensor<?x9x9x32xbf16, #sym.dims<b, 9, 9, 32>>, %w: tensor<2x3x48x16x2xbf16>) -> (tensor<?x7x7x32xbf16, #sym.dims<b, 7, 7, 32>>) {
    %v = loop.view %image : tensor<?x9x9x32xbf16, #sym.dims<b, 9, 9, 32>> to tensor<?x9x288xbf16, #sym.dims<b, 9, 288>>
    %c = loop.nest "conv" [n: parallel b, y: parallel 7, x: parallel 7, o: parallel 32, r: reduction 3, k: reduction 96] -> tensor<?x7x7x32xf32, #sym.dims<b, 7, 7, 32>> {
      %a = loop.read %v[n, y + r, 32*x + k] : bf16
      %e = arith.extf %a : bf16 to f32
      %f = loop.read %w[o floordiv 16, r, k floordiv 2, o mod 16, k mod 2] : bf16
      %g = arith.extf %f : bf16 to f32
      %p = arith.mulf %e, %g : f32
      loop.yield add %p at [n, y, x, o]
    }
    %o = loop.nest "relu" [n: parallel b, y: parallel 7, x: parallel 7, o: parallel 32] -> tensor<?x7x7x32xbf16, #sym.dims<b, 7, 7, 32>> {
      %a = loop.read %c[n, y, x, o] : f32
      %z = arith.constant 0.0 : f32
      %m = arith.maximumf %a, %z : f32
      %t = arith.truncf %m : f32 to bf16
      loop.yield none %t at [n, y, x, o]
    }
    loop.return %o : tensor<?x7x7x32xbf16, #sym.dims<b, 7, 7, 32>>
  }
}
