// RUN: igniter-opt %s -p form-variants --split-input-file | filecheck %s
// RUN: igniter-opt %s -p form-variants,pack-operands --split-input-file | filecheck %s --check-prefix=PACKED
// RUN: igniter-opt %s -p form-variants --remarks --emit=none --split-input-file 2>&1 | filecheck %s --check-prefix=REMARKS
// RUN: igniter-opt %s -p "form-variants{symbol=n most=7}" --split-input-file | filecheck %s --check-prefix=ASKED
// RUN: igniter-opt %s -p "form-variants{symbol=k most=7}" --remarks --emit=none --split-input-file 2>&1 | filecheck %s --check-prefix=NOSYMBOL
// RUN: not igniter-opt %s -p "form-variants{symbol=n}" --split-input-file 2>&1 | filecheck %s --check-prefix=HALF
// RUN: igniter-opt %s -p form-variants,pack-operands,choose-schedule,lower-to-loops --check-each --check-sizes m=1,n=19 --emit=none --split-input-file 2>&1 | filecheck %s --check-prefix=CHECKED
// RUN: igniter-opt %s -p form-variants,pack-operands,choose-schedule,lower-to-loops --check-each --check-sizes m=5,n=3 --emit=none --split-input-file 2>&1 | filecheck %s --check-prefix=CHECKED

// CHECKED-COUNT-8: check: lower-to-loops: 1 results agree

// NOSYMBOL: remark: form-variants: 'k' missed: it has no symbol 'k'
// HALF: error: pass 'form-variants': 'most' is the largest size of 'symbol'; give both or neither

// The keys of attention are packed for many rows and not for one, whose product reads them as they are.

// CHECK:      loop.kernel @k symbols [m, n] {{.*}}) {
// CHECK:      } variants {
// CHECK-NEXT:   loop.kernel @few_rows symbols [m, n] {{.*}} typical [m = 1] when m <= 1 {
// PACKED:      loop.nest "scores.pack"
// PACKED:      } variants {
// PACKED-NOT:    scores.pack
// PACKED:        loop.return
// REMARKS: remark: form-variants: 'k' applied: variant @few_rows when m <= 1: too few rows to repay packing a factor of 'scores'
// ASKED:     loop.kernel @n_to_7 symbols [m, n] {{.*}} typical [n = 7] when n <= 7 {

builtin.module {
  loop.kernel @k symbols [m, n] (%x: tensor<8x?x64xf32, #sym.dims<8, m, 64>>, %y: tensor<8x?x64xf32, #sym.dims<8, n, 64>>) -> (tensor<8x?x?xf32, #sym.dims<8, m, n>>) {
    %c = loop.nest "scores" [b: parallel 8, i: parallel m, j: parallel n, k: reduction 64] -> tensor<8x?x?xf32, #sym.dims<8, m, n>> {
      %v = loop.read %x[b, i, k] : f32
      %u = loop.read %y[b, j, k] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [b, i, j]
    }
    loop.return %c : tensor<8x?x?xf32, #sym.dims<8, m, n>>
  }
}

// -----

// Columns that lie side by side are read for up to three rows. What was said to be typical, and is for the variant now,
// is not typical of the rest.

// CHECK:      loop.kernel @row_major symbols [m, n] {{.*}} typical [n = 300] {
// CHECK:        loop.kernel @few_rows symbols [m, n] {{.*}} typical [m = 1, n = 300] when m <= 3 {

builtin.module {
  loop.kernel @row_major symbols [m, n] (%x: tensor<?x?xf32, #sym.dims<m, n>>, %y: tensor<?x100xf32, #sym.dims<n, 100>>) -> (tensor<?x100xf32, #sym.dims<m, 100>>) typical [m = 2, n = 300] {
    %c = loop.nest "product" [i: parallel m, j: parallel 100, k: reduction n] -> tensor<?x100xf32, #sym.dims<m, 100>> {
      %v = loop.read %x[i, k] : f32
      %u = loop.read %y[k, j] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x100xf32, #sym.dims<m, 100>>
  }
}

// -----

// The factor is small: one copy of it is no time.

// CHECK:     loop.kernel @small symbols [m, n]
// CHECK-NOT: variants

builtin.module {
  loop.kernel @small symbols [m, n] (%x: tensor<?x20xf32, #sym.dims<m, 20>>, %y: tensor<?x20xf32, #sym.dims<n, 20>>) -> (tensor<?x?xf32, #sym.dims<m, n>>) {
    %c = loop.nest "product" [i: parallel m, j: parallel n, k: reduction 20] -> tensor<?x?xf32, #sym.dims<m, n>> {
      %v = loop.read %x[i, k] : f32
      %u = loop.read %y[j, k] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x?xf32, #sym.dims<m, n>>
  }
}

// -----

// Few rows are few columns, too: as many keys as queries.

// CHECK:     loop.kernel @self symbols [m]
// CHECK-NOT: variants

builtin.module {
  loop.kernel @self symbols [m] (%x: tensor<8x?x64xf32, #sym.dims<8, m, 64>>, %y: tensor<8x?x64xf32, #sym.dims<8, m, 64>>) -> (tensor<8x?x?xf32, #sym.dims<8, m, m>>) {
    %c = loop.nest "scores" [b: parallel 8, i: parallel m, j: parallel m, k: reduction 64] -> tensor<8x?x?xf32, #sym.dims<8, m, m>> {
      %v = loop.read %x[b, i, k] : f32
      %u = loop.read %y[b, j, k] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [b, i, j]
    }
    loop.return %c : tensor<8x?x?xf32, #sym.dims<8, m, m>>
  }
}

// -----

// The factor lies in panels, whose lines crowd the caches: it is packed where rows enough share it.

// CHECK:     loop.kernel @crowded symbols [m]
// CHECK:     } variants {
// CHECK:       loop.kernel @few_rows symbols [m] {{.*}} typical [m = 1] when m <= 3 {

builtin.module {
  loop.kernel @crowded symbols [m] (%x: tensor<?x512xf32, #sym.dims<m, 512>>, %y: tensor<512x512xf32>) -> (tensor<?x512xf32, #sym.dims<m, 512>>) {
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

// Columns of an unknown number may fill a part of a panel: they are read as they lie, for any number of rows.

// CHECK:     loop.kernel @few_of_both symbols [m, n, k]
// CHECK:     } variants {
// CHECK:       loop.kernel @few_rows symbols [m, n, k] {{.*}} typical [m = 1] when m <= 3 {
// CHECK:       loop.kernel @few_columns symbols [m, n, k] {{.*}} typical [m = 8, n = 8] when n <= 16 {
// PACKED:     loop.kernel @few_of_both
// PACKED:       loop.nest "product.pack"
// PACKED:     } variants {
// PACKED-NOT:   product.pack
// PACKED:     loop.kernel @weights
// REMARKS: variant @few_columns when n <= 16: too few columns to pack a factor of 'product'

builtin.module {
  loop.kernel @few_of_both symbols [m, n, k] (%x: tensor<?x?xf32, #sym.dims<m, k>>, %y: tensor<?x?xf32, #sym.dims<k, n>>) -> (tensor<?x?xf32, #sym.dims<m, n>>) {
    %c = loop.nest "product" [i: parallel m, j: parallel n, r: reduction k] -> tensor<?x?xf32, #sym.dims<m, n>> {
      %v = loop.read %x[i, r] : f32
      %u = loop.read %y[r, j] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x?xf32, #sym.dims<m, n>>
  }
}

// -----

// A size that was given is what the kernel is for.

// CHECK:     loop.kernel @weights symbols [m, n]
// CHECK-NOT: few_columns

builtin.module {
  loop.kernel @weights symbols [m, n] (%x: tensor<?x64xf32, #sym.dims<m, 64>>, %y: tensor<64x?xf32, #sym.dims<64, n>>) -> (tensor<?x?xf32, #sym.dims<m, n>>) typical [n = 500] {
    %c = loop.nest "product" [i: parallel m, j: parallel n, r: reduction 64] -> tensor<?x?xf32, #sym.dims<m, n>> {
      %v = loop.read %x[i, r] : f32
      %u = loop.read %y[r, j] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x?xf32, #sym.dims<m, n>>
  }
}

// -----

// A matrix of few rows or few columns fills no square of vectors: vectors along the other axis move it.

// CHECK:     loop.kernel @turned symbols [m, n]
// CHECK:     } variants {
// CHECK:       loop.kernel @narrow_j symbols [m, n] {{.*}} typical [m = 1] when m <= 15 {
// CHECK:       loop.kernel @narrow_i symbols [m, n] {{.*}} typical [n = 1] when n <= 15 {
// REMARKS: variant @narrow_i when n <= 15: the rows of 'turned' along 'i' are too short for squares of 16 by 16

builtin.module {
  loop.kernel @turned symbols [m, n] (%x: tensor<?x?xf32, #sym.dims<m, n>>) -> (tensor<?x?xf32, #sym.dims<n, m>>) {
    %c = loop.nest "turned" [i: parallel n, j: parallel m] -> tensor<?x?xf32, #sym.dims<n, m>> {
      %v = loop.read %x[j, i] : f32
      loop.yield none %v at [i, j]
    }
    loop.return %c : tensor<?x?xf32, #sym.dims<n, m>>
  }
}

// -----

// Rows of 64 elements are so short that even squares with empty lanes take no time.

// CHECK:     loop.kernel @turned_rows symbols [m]
// CHECK-NOT: variants

builtin.module {
  loop.kernel @turned_rows symbols [m] (%x: tensor<?x64xf32, #sym.dims<m, 64>>) -> (tensor<64x?xf32, #sym.dims<64, m>>) {
    %c = loop.nest "turned" [i: parallel 64, j: parallel m] -> tensor<64x?xf32, #sym.dims<64, m>> {
      %v = loop.read %x[j, i] : f32
      loop.yield none %v at [i, j]
    }
    loop.return %c : tensor<64x?xf32, #sym.dims<64, m>>
  }
}
