// RUN: igniter-opt %s -p form-variants,choose-schedule --target=x86-64-v3 --split-input-file | filecheck %s
// RUN: igniter-opt %s -p form-variants,choose-schedule --target=x86-64-v3 --machine=%S/Inputs/one_core.json --split-input-file | filecheck %s --check-prefix=ONE
// RUN: igniter-opt %s -p form-variants,choose-schedule --target=x86-64-v4 --split-input-file | filecheck %s --check-prefix=WIDE
// RUN: igniter-opt %s -p choose-schedule --target=x86-64-v3 --split-input-file | filecheck %s --check-prefix=ALONE
// RUN: igniter-opt %s -p form-variants --target=x86-64-v3 --remarks --emit=none --split-input-file 2>&1 | filecheck %s --check-prefix=REMARKS

// A product with a weight of a depth whose panels are more than the first-level cache is cut in blocks of the depth, each
// of which is added to the result; the bias reads it once all are. For one row the depth stays whole, in a variant of its
// own; a symbol of rows without a variant keeps the schedule that does for all. Panels go by together as far as there are
// tasks enough for the cores.

// REMARKS: remark: form-variants: 'deep' applied: variant @one_row when m <= 1: one row reads each panel of 'product' contiguously, without blocks of the depth
// REMARKS-NOT: remark

// CHECK:      loop.nest "product"
// CHECK-SAME:   schedule [j by 16 threads fuse "g0", i by 72 fuse "g0", k by 224 into result, i by 6, product(i, j, k) tile [6, 1], i, j vector 8]
// CHECK:      loop.nest "bias"
// CHECK-SAME:   schedule [j by 16 threads fuse "g0", i by 72 fuse "g0", i, j vector 8]
// CHECK:      } variants {
// CHECK:        typical [m = 1] when m <= 1 {
// CHECK:          loop.nest "product"
// CHECK-NOT:        into result
// CHECK:          loop.return
// ONE:        schedule [j by 48 threads fuse "g0", i by 72 fuse "g0", k by 224 into result, j by 16, i by 6, product(i, j, k) tile [6, 1], i, j vector 8]
// ONE:        schedule [j by 48 threads fuse "g0", i by 72 fuse "g0", i, j vector 8]
// WIDE-NOT:   variants
// WIDE-NOT:   into result
// ALONE-NOT:  into result

builtin.module {
  loop.kernel @deep symbols [m] (%x: tensor<?x1100xf32, #sym.dims<m, 1100>>, %w: tensor<13x1100x16xf32>, %b: tensor<200xf32>) -> (tensor<?x200xf32, #sym.dims<m, 200>>) {
    %p = loop.nest "product" [i: parallel m, j: parallel 200, k: reduction 1100] -> tensor<?x200xf32, #sym.dims<m, 200>> {
      %v = loop.read %x[i, k] : f32
      %u = loop.read %w[j floordiv 16, k, j mod 16] : f32
      %q = arith.mulf %v, %u : f32
      loop.yield add %q at [i, j]
    }
    %y = loop.nest "bias" [i: parallel m, j: parallel 200] -> tensor<?x200xf32, #sym.dims<m, 200>> {
      %v = loop.read %p[i, j] : f32
      %u = loop.read %b[j] : f32
      %q = arith.addf %v, %u : f32
      loop.yield none %q at [i, j]
    }
    loop.return %y : tensor<?x200xf32, #sym.dims<m, 200>>
  }
}

// -----

// Known rows need no variant. Blocks are as even as sixteens allow.

// CHECK:      loop.kernel @known
// CHECK:        schedule [j by 16 threads fuse "g0", i by 65 fuse "g0", k by 240 into result, i by 5, product(i, j, k) tile [5, 1], i, j vector 8 unroll]
// CHECK-NOT:  variants
// ALONE:      loop.kernel @known
// ALONE:        into result

builtin.module {
  loop.kernel @known symbols [] (%x: tensor<20x900xf32>, %w: tensor<25x900x16xf32>) -> (tensor<20x400xf32>) {
    %p = loop.nest "product" [i: parallel 20, j: parallel 400, k: reduction 900] -> tensor<20x400xf32> {
      %v = loop.read %x[i, k] : f32
      %u = loop.read %w[j floordiv 16, k, j mod 16] : f32
      %q = arith.mulf %v, %u : f32
      loop.yield add %q at [i, j]
    }
    loop.return %p : tensor<20x400xf32>
  }
}

// -----

// Not in blocks: a depth that is little more than the cache holds, and few rows.

// CHECK:      loop.kernel @shallow
// CHECK-NOT:  into result
// CHECK:      loop.kernel @few
// CHECK-NOT:  into result

builtin.module {
  loop.kernel @shallow symbols [] (%x: tensor<64x768xf32>, %w: tensor<4x768x16xf32>) -> (tensor<64x64xf32>) {
    %p = loop.nest "product" [i: parallel 64, j: parallel 64, k: reduction 768] -> tensor<64x64xf32> {
      %v = loop.read %x[i, k] : f32
      %u = loop.read %w[j floordiv 16, k, j mod 16] : f32
      %q = arith.mulf %v, %u : f32
      loop.yield add %q at [i, j]
    }
    loop.return %p : tensor<64x64xf32>
  }
  loop.kernel @few symbols [] (%x: tensor<8x1100xf32>, %w: tensor<4x1100x16xf32>) -> (tensor<8x64xf32>) {
    %p = loop.nest "product" [i: parallel 8, j: parallel 64, k: reduction 1100] -> tensor<8x64xf32> {
      %v = loop.read %x[i, k] : f32
      %u = loop.read %w[j floordiv 16, k, j mod 16] : f32
      %q = arith.mulf %v, %u : f32
      loop.yield add %q at [i, j]
    }
    loop.return %p : tensor<8x64xf32>
  }
}
