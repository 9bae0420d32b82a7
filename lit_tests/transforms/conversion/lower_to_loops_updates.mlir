// RUN: igniter-opt %s -p "lower-to-loops" --split-input-file | filecheck %s
// RUN: igniter-opt %s -p "lower-to-loops" --split-input-file | igniter-opt --split-input-file | filecheck %s
// RUN: igniter-opt %s -p "lower-to-loops" --split-input-file --check-each > /dev/null

// New rows in a cache: if past and present are one buffer, only the new rows are written. Elsewhere the rows behind
// them are zeros; here they may hold anything, so the sum over the rows ends with the new ones.

// CHECK-LABEL: loop.func @cache
// CHECK-SAME:    attributes {igniter.in_place} {
// CHECK-NEXT:    loop.if_shared %past, %{{[0-9]+}} {
// CHECK-NEXT:      loop.for s = 0 to 2 {
// CHECK-NEXT:        loop.for d = 0 to 32 schedule [vector 8] {
// CHECK-NEXT:          %{{.*}} = loop.load %end[] : i64
// CHECK-NEXT:          [[V:%.*]] = loop.load %new[s, d] with [[E:%.*]] : f32
// CHECK-NEXT:          loop.store [[V]], %{{[0-9]+}}[_0 + s, d] with [[E]] if [_0 + s, -_0 - s + 63]
// CHECK:         } else {
// CHECK-NEXT:      loop.for s1 = 0 to 64 {
// CHECK:             loop.load %past[s1, d1] with %{{.*}} if [_0 - s1 - 1] : f32
// CHECK:         loop.for i = 0 to 32
// CHECK:           loop.for k = 0 to 48 reduction {
// CHECK:             loop.load %end[] : i64
// CHECK:             loop.load %{{[0-9]+}}[k, i] with %{{.*}} if [_0 - k + 1] : f32
loop.kernel @cache symbols [] (%past: tensor<64x32xf32>, %new: tensor<2x32xf32>, %end: tensor<i64>) -> (tensor<64x32xf32>, tensor<32xf32>) {
  %y = loop.nest "present" [s: parallel 64, d: parallel 32] schedule [s, d vector 8] -> tensor<64x32xf32> {
    %e = loop.read %end[] : i64
    %old = loop.read %past[s, d] with %e if [_0 - s - 1] : f32
    %v = loop.read %new[s - _0, d] with %e if [s - _0, _0 - s + 1] else %old : f32
    loop.yield none %v at [s, d]
  }
  %z = loop.nest "sum" [i: parallel 32, k: reduction 48] -> tensor<32xf32> {
    %v = loop.read %y[k, i] : f32
    loop.yield add %v at [i]
  }
  loop.return %y, %z : tensor<64x32xf32>, tensor<32xf32>
}

// -----

// The depth of a micro-kernel ends with the new rows, too: a loop of one iteration names the end.

// CHECK-LABEL: loop.func @product
// CHECK:         loop.if_shared
// CHECK:         loop.for end = _0 + 1 to _0 + 2 with %{{.*}} {
// CHECK-NEXT:      loop.tile_product %{{.*}} over {{.*}} = min(48, end) tile [6, 1]
loop.kernel @product symbols [] (%past: tensor<64x16xf32>, %new: tensor<1x16xf32>, %end: tensor<i64>, %w: tensor<6x48xf32>) -> (tensor<64x16xf32>, tensor<6x16xf32>) {
  %y = loop.nest "present" [s: parallel 64, d: parallel 16] -> tensor<64x16xf32> {
    %e = loop.read %end[] : i64
    %old = loop.read %past[s, d] with %e if [_0 - s - 1] : f32
    %v = loop.read %new[s - _0, d] with %e if [s - _0, _0 - s] else %old : f32
    loop.yield none %v at [s, d]
  }
  %z = loop.nest "matmul" [i: parallel 6, j: parallel 16, k: reduction 48] schedule [i by 6, j by 16, product(i, j, k) tile [6, 1], i, j vector 8] -> tensor<6x16xf32> {
    %a = loop.read %w[i, k] : f32
    %b = loop.read %y[k, j] : f32
    %ab = arith.mulf %a, %b : f32
    loop.yield add %ab at [i, j]
  }
  loop.return %y, %z : tensor<64x16xf32>, tensor<6x16xf32>
}

// -----

// A past that another nest reads is never updated in place.

// CHECK-LABEL: loop.func @read_twice
// CHECK-NOT:     loop.if_shared
loop.kernel @read_twice symbols [] (%past: tensor<64x32xf32>, %new: tensor<2x32xf32>, %end: tensor<i64>) -> (tensor<64x32xf32>, tensor<64x32xf32>) {
  %y = loop.nest "present" [s: parallel 64, d: parallel 32] -> tensor<64x32xf32> {
    %e = loop.read %end[] : i64
    %old = loop.read %past[s, d] with %e if [_0 - s - 1] : f32
    %v = loop.read %new[s - _0, d] with %e if [s - _0, _0 - s + 1] else %old : f32
    loop.yield none %v at [s, d]
  }
  %z = loop.nest "negate" [s: parallel 64, d: parallel 32] -> tensor<64x32xf32> {
    %v = loop.read %past[s, d] : f32
    %n = arith.negf %v : f32
    loop.yield none %n at [s, d]
  }
  loop.return %y, %z : tensor<64x32xf32>, tensor<64x32xf32>
}
