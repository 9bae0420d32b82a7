// RUN: igniter-opt %s -p canonicalize-loop,form-fma --stop-after=0 | filecheck %s --check-prefix=NONE
// RUN: igniter-opt %s -p canonicalize-loop,form-fma --stop-after=3 --remarks 2>&1 | filecheck %s --check-prefix=THREE
// RUN: igniter-opt %s -p canonicalize-loop,form-fma --stop-after=4 | filecheck %s --check-prefix=FOUR
// RUN: igniter-opt %s -p form-fma,check-bounds --stop-after=9 --emit=none 2>&1 | filecheck %s --check-prefix=MORE
// RUN: not igniter-opt %s -p check-bounds --stop-after=1 2>&1 | filecheck %s --check-prefix=UNCOUNTED
// RUN: not igniter-opt %s -p form-fma --stop-after=-1 2>&1 | filecheck %s --check-prefix=NEGATIVE

// Rewrites are counted over the whole pipeline: the two nests are simplified first, then two sums become one op each.

// NONE-NOT: math.fma

// THREE:     remark: form-fma: '@axpy' note: rewrite 3, the last that may be made: a multiply-add is formed
// THREE:     igniter-opt: note: --stop-after=3: 3 rewrites; the last: form-fma: '@axpy' a multiply-add is formed
// THREE:     loop.nest "first"
// THREE:     math.fma
// THREE:     loop.nest "second"
// THREE-NOT: math.fma

// FOUR:     loop.nest "first"
// FOUR:     math.fma
// FOUR:     loop.nest "second"
// FOUR:     math.fma

// MORE: igniter-opt: note: --stop-after does not hold for check-bounds
// MORE: igniter-opt: note: --stop-after=9: no more than 2 rewrites to make; the last: form-fma

// UNCOUNTED: igniter-opt: error: --stop-after counts rewrites, and no pass of the pipeline makes any that count
// NEGATIVE: '-1' is no number of rewrites: 0, 1, 2, ...

builtin.module {
  loop.kernel @axpy symbols [n] (%x: tensor<?xf32, #sym.dims<n>>, %y: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>, tensor<?xf32, #sym.dims<n>>) {
    %z = loop.nest "first" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      %b = loop.read %y[i] : f32
      %c = arith.mulf %a, %a : f32
      %d = arith.addf %c, %b : f32
      loop.yield none %d at [i]
    }
    %w = loop.nest "second" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      %b = loop.read %z[i] : f32
      %c = arith.mulf %b, %b : f32
      %d = arith.addf %c, %a : f32
      loop.yield none %d at [i]
    }
    loop.return %z, %w : tensor<?xf32, #sym.dims<n>>, tensor<?xf32, #sym.dims<n>>
  }
}
