// RUN: igniter-opt %s -p 'lower-to-loops' --check-each=values | filecheck %s

// Under a causal mask, the scores of a tile end with the last key that its last row sees, and so do its weighted
// values: the bound of the mask is computed for the last row.

// CHECK-LABEL: loop.func @causal
// CHECK:       %[[LAST:.*]] = arith.addi
// CHECK:       loop.for seen = _0 + 1 to _0 + 2 with %[[LAST]] {
// CHECK-NEXT:    loop.tile_product {{.*}} p = min(((max({{.*}}seen, 0) + 15) floordiv 16), {{.*}}
// CHECK:       loop.for seen1 = _0 + 1 to _0 + 2 with %{{.*}} {
// CHECK-NEXT:    loop.tile_product {{.*}} k1 = min({{.*}}seen1{{.*}}) tile [4, 1]
loop.kernel @causal symbols [n] (%q: tensor<?x32xf32, #sym.dims<n, 32>>, %k: tensor<?x32x16xf32, #sym.dims<(n + 15) floordiv 16, 32, 16>>, %v: tensor<1x?x16xf32, #sym.dims<1, n, 16>>, %p: tensor<i64>) -> (tensor<?x16xf32, #sym.dims<n, 16>>) {
  %s = loop.nest "scores" [i: parallel n, j: parallel n, r: reduction 32] schedule [i by 4, j by 16, product(i, j, r) tile [4, 1], i, j] -> tensor<?x?xf32, #sym.dims<n, n>> {
    %a = loop.read %q[i, r] : f32
    %b = loop.read %k[j floordiv 16, r, j mod 16] : f32
    %c = arith.mulf %a, %b : f32
    loop.yield add %c at [i, j]
  }
  %m = loop.nest "mask" [i: parallel n, j: parallel n] -> tensor<?x?xf32, #sym.dims<n, n>> {
    %a = loop.read %s[i, j] : f32
    %low = arith.constant 0xff800000 : f32
    %key = loop.index j : i64
    %row = loop.index i : i64
    %past = loop.read %p[] : i64
    %last = arith.addi %row, %past : i64
    %seen = arith.cmpi sle, %key, %last : i64
    %x = arith.select %seen, %a, %low : f32
    loop.yield none %x at [i, j]
  }
  %t = loop.nest "max" [i: parallel n, j: reduction n] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %m[i, j] : f32
    loop.yield max %a at [i]
  }
  %e = loop.nest "exp" [i: parallel n, j: parallel n] -> tensor<?x?xf32, #sym.dims<n, n>> {
    %a = loop.read %m[i, j] : f32
    %b = loop.read %t[i] : f32
    %d = arith.subf %a, %b : f32
    %x = math.exp %d : f32
    loop.yield none %x at [i, j]
  }
  %y = loop.nest "values" [i: parallel n, d: parallel 16, j: reduction n] schedule [i by 4, d by 16, product(i, d, j) tile [4, 1], i, d] -> tensor<?x16xf32, #sym.dims<n, 16>> {
    %a = loop.read %e[i, j] : f32
    %b = loop.read %v[d floordiv 16, j, d mod 16] : f32
    %c = arith.mulf %a, %b : f32
    loop.yield add %c at [i, d]
  }
  loop.return %y : tensor<?x16xf32, #sym.dims<n, 16>>
}

// Scores that are also read without a mask are all computed; a bound that falls from row to row, or another number
// than -inf, limits nothing.

// CHECK-LABEL: loop.func @unlimited
// CHECK-NOT:   loop.for seen
loop.kernel @unlimited symbols [n] (%q: tensor<?x32xf32, #sym.dims<n, 32>>, %k: tensor<?x32x16xf32, #sym.dims<(n + 15) floordiv 16, 32, 16>>) -> (tensor<?x?xf32, #sym.dims<n, n>>, tensor<?x?xf32, #sym.dims<n, n>>, tensor<?x?xf32, #sym.dims<n, n>>) {
  %s = loop.nest "scores" [i: parallel n, j: parallel n, r: reduction 32] schedule [i by 4, j by 16, product(i, j, r) tile [4, 1], i, j] -> tensor<?x?xf32, #sym.dims<n, n>> {
    %a = loop.read %q[i, r] : f32
    %b = loop.read %k[j floordiv 16, r, j mod 16] : f32
    %c = arith.mulf %a, %b : f32
    loop.yield add %c at [i, j]
  }
  %m = loop.nest "mask" [i: parallel n, j: parallel n] -> tensor<?x?xf32, #sym.dims<n, n>> {
    %a = loop.read %s[i, j] : f32
    %low = arith.constant 0xff800000 : f32
    %key = loop.index j : i64
    %row = loop.index i : i64
    %seen = arith.cmpi sle, %key, %row : i64
    %b = arith.addf %a, %a : f32
    %x = arith.select %seen, %b, %a : f32
    loop.yield none %x at [i, j]
  }
  %s2 = loop.nest "scores2" [i: parallel n, j: parallel n, r: reduction 32] schedule [i by 4, j by 16, product(i, j, r) tile [4, 1], i, j] -> tensor<?x?xf32, #sym.dims<n, n>> {
    %a = loop.read %q[i, r] : f32
    %b = loop.read %k[j floordiv 16, r, j mod 16] : f32
    %c = arith.mulf %a, %b : f32
    loop.yield add %c at [i, j]
  }
  %m2 = loop.nest "mask2" [i: parallel n, j: parallel n] -> tensor<?x?xf32, #sym.dims<n, n>> {
    %a = loop.read %s2[i, j] : f32
    %low = arith.constant 0xff800000 : f32
    %key = loop.index j : i64
    %row = loop.index n - i : i64
    %seen = arith.cmpi sle, %key, %row : i64
    %x = arith.select %seen, %a, %low : f32
    loop.yield none %x at [i, j]
  }
  %s3 = loop.nest "scores3" [i: parallel n, j: parallel n, r: reduction 32] schedule [i by 4, j by 16, product(i, j, r) tile [4, 1], i, j] -> tensor<?x?xf32, #sym.dims<n, n>> {
    %a = loop.read %q[i, r] : f32
    %b = loop.read %k[j floordiv 16, r, j mod 16] : f32
    %c = arith.mulf %a, %b : f32
    loop.yield add %c at [i, j]
  }
  %m3 = loop.nest "mask3" [i: parallel n, j: parallel n] -> tensor<?x?xf32, #sym.dims<n, n>> {
    %a = loop.read %s3[i, j] : f32
    %low = arith.constant -100.0 : f32
    %key = loop.index j : i64
    %row = loop.index i : i64
    %seen = arith.cmpi sle, %key, %row : i64
    %x = arith.select %seen, %a, %low : f32
    loop.yield none %x at [i, j]
  }
  loop.return %m, %m2, %m3 : tensor<?x?xf32, #sym.dims<n, n>>, tensor<?x?xf32, #sym.dims<n, n>>, tensor<?x?xf32, #sym.dims<n, n>>
}
