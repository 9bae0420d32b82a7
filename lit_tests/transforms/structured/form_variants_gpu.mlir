// RUN: igniter-opt %s -p form-variants --target=cuda --split-input-file | filecheck %s
// RUN: igniter-opt %s -p form-variants --target=cuda --remarks --emit=none --split-input-file 2>&1 | filecheck %s --check-prefix=REMARKS
// RUN: igniter-opt %s -p form-variants,choose-splits,choose-schedule --target=cuda --split-input-file | filecheck %s --check-prefix=SCHEDULED
// RUN: igniter-opt %s -p form-variants,choose-splits,choose-schedule --target=cuda --split-input-file | igniter-opt --target=cuda --split-input-file | filecheck %s --check-prefix=SCHEDULED
// RUN: igniter-opt %s -p form-variants,choose-splits,choose-schedule,lower-to-triton,plan-buffers --target=cuda --split-input-file | filecheck %s --check-prefix=LAUNCHES
// RUN: igniter-opt %s -p form-variants,choose-splits,choose-schedule --target=cuda --check-each --check-sizes m=3 --emit=none --split-input-file 2>&1 | filecheck %s --check-prefix=CHECKED

// A product has small blocks and parts of its depth for few rows, and large blocks for many. The size of the kernel is
// its rows; the thresholds are those of the estimates. Versions share the kernel that adds up parts.

// CHECK:      loop.kernel @rows symbols [m] {{.*}} typical [m = {{[0-9]+}}] {
// CHECK:      } variants {
// CHECK-NEXT:   loop.kernel @to_[[FEW:[0-9]+]] symbols [m] {{.*}} typical [m = {{[0-9]+}}] when m <= [[FEW]] {
// CHECK:        loop.kernel @to_[[SOME:[0-9]+]] symbols [m] {{.*}} typical [m = {{[0-9]+}}] when m <= [[SOME]] {

// REMARKS: remark: form-variants: 'rows' applied: variant @to_[[FEW:[0-9]+]] when m <= [[FEW]]: with the schedule for larger sizes it is expected to take up to {{[0-9.]+}} times as long
// REMARKS: remark: form-variants: 'rows' applied: variant @to_[[SOME:[0-9]+]] when m <= [[SOME]]: with

// SCHEDULED:      loop.nest "product" {{.*}} schedule [i by 128 grid fuse "l0", j by 128 grid fuse "l0", k by 64,
// SCHEDULED:      } variants {
// SCHEDULED:        loop.nest "product.parts" {{.*}} schedule [part grid fuse "l0", i by [[LEFT:[0-9]+]] grid fuse "l0",
// SCHEDULED:        loop.nest "product" {{.*}} part: reduction [[PARTS:[0-9]+]]]
// SCHEDULED:        loop.nest "product.parts"

// LAUNCHES-LABEL: loop.func @rows
// LAUNCHES-NEXT:    loop.if [-m + [[FEW:[0-9]+]]] {
// LAUNCHES-NEXT:      loop.alloc "product.parts"
// LAUNCHES-NEXT:      loop.launch @rows.to_[[FEW]].0
// LAUNCHES-NEXT:      loop.launch @rows.to_[[FEW]].1
// LAUNCHES-NEXT:    }
// LAUNCHES-NEXT:    loop.if [m - {{[0-9]+}}, -m + [[SOME:[0-9]+]]] {
// LAUNCHES-NEXT:      loop.alloc "product.parts"
// LAUNCHES-NEXT:      loop.launch @rows.to_[[SOME]].0
// LAUNCHES-NEXT:      loop.launch @rows.to_[[FEW]].1
// LAUNCHES-NEXT:    }
// LAUNCHES-NEXT:    loop.if [m - {{[0-9]+}}, m - {{[0-9]+}}] {
// LAUNCHES-NEXT:      loop.launch @rows.0
// LAUNCHES-NEXT:    }

// CHECKED-COUNT-3: results agree

builtin.module {
  loop.kernel @rows symbols [m] (%x: tensor<?x3072xf16, #sym.dims<m, 3072>>, %y: tensor<3072x768xf16>) -> (tensor<?x768xf32, #sym.dims<m, 768>>) {
    %c = loop.nest "product" [i: parallel m, j: parallel 768, k: reduction 3072] -> tensor<?x768xf32, #sym.dims<m, 768>> {
      %v = loop.read %x[i, k] : f16
      %u = loop.read %y[k, j] : f16
      %a = arith.extf %v : f16 to f32
      %b = arith.extf %u : f16 to f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x768xf32, #sym.dims<m, 768>>
  }
}

// -----

// Two symbols: the size is the number of rows of both.

// CHECK:      loop.kernel @tokens
// CHECK:        when b*s <= {{[0-9]+}} {
// CHECK:        when b*s <= {{[0-9]+}} {
// LAUNCHES-LABEL: loop.func @tokens
// LAUNCHES-NEXT:    loop.if [-b*s + {{[0-9]+}}] {

builtin.module {
  loop.kernel @tokens symbols [b, s] (%x: tensor<?x?x768xf16, #sym.dims<b, s, 768>>, %y: tensor<768x768xf16>) -> (tensor<?x?x768xf32, #sym.dims<b, s, 768>>) {
    %c = loop.nest "product" [h: parallel b, i: parallel s, j: parallel 768, k: reduction 768] -> tensor<?x?x768xf32, #sym.dims<b, s, 768>> {
      %v = loop.read %x[h, i, k] : f16
      %u = loop.read %y[k, j] : f16
      %a = arith.extf %v : f16 to f32
      %d = arith.extf %u : f16 to f32
      %p = arith.mulf %a, %d : f32
      loop.yield add %p at [h, i, j]
    }
    loop.return %c : tensor<?x?x768xf32, #sym.dims<b, s, 768>>
  }
}

// -----

// Schedules are chosen for given sizes: no variants.

// CHECK:     loop.kernel @given
// CHECK-NOT: variants
// LAUNCHES-LABEL: loop.func @given
// LAUNCHES-NOT: loop.if

builtin.module {
  loop.kernel @given symbols [m] (%x: tensor<?x3072xf16, #sym.dims<m, 3072>>, %y: tensor<3072x768xf16>) -> (tensor<?x768xf32, #sym.dims<m, 768>>) typical [m = 32] {
    %c = loop.nest "product" [i: parallel m, j: parallel 768, k: reduction 3072] -> tensor<?x768xf32, #sym.dims<m, 768>> {
      %v = loop.read %x[i, k] : f16
      %u = loop.read %y[k, j] : f16
      %a = arith.extf %v : f16 to f32
      %b = arith.extf %u : f16 to f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x768xf32, #sym.dims<m, 768>>
  }
}

// -----

// One schedule suits all sizes.

// CHECK:     loop.kernel @pointwise
// CHECK-NOT: variants
// LAUNCHES-LABEL: loop.func @pointwise
// LAUNCHES-NOT: loop.if

builtin.module {
  loop.kernel @pointwise symbols [m] (%x: tensor<?xf32, #sym.dims<m>>) -> (tensor<?xf32, #sym.dims<m>>) {
    %y = loop.nest "double" [i: parallel m] -> tensor<?xf32, #sym.dims<m>> {
      %a = loop.read %x[i] : f32
      %b = arith.addf %a, %a : f32
      loop.yield none %b at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<m>>
  }
}
