// RUN: igniter-opt %s -p lower-to-triton --split-input-file --target=cuda | filecheck %s
// RUN: igniter-opt %s -p lower-to-triton --split-input-file --target=cuda | igniter-opt --split-input-file | filecheck %s

// New rows in a cache: if past and present are one buffer, a launch writes the rows from `_0` on, masked behind the last
// new one and the end of the cache; otherwise a launch copies the cache.

// CHECK-LABEL: tt.func @cache.0.rows(%0: !tt.ptr<i64>, %1: !tt.ptr<f16>, %2: !tt.ptr<f16>, %3: !tt.ptr<f16>
// CHECK:         tt.load %{{.*}} : !tt.ptr<i64>
// CHECK:         arith.addi %{{.*}}, %{{.*}} : tensor<4x1xi64>
// CHECK:         tt.store
// CHECK-LABEL: tt.func @cache.0(%0: !tt.ptr<i64>
// CHECK-LABEL: loop.func @cache
// CHECK-SAME:    attributes {igniter.in_place} {
// CHECK-NEXT:    loop.if_shared %past, %{{.*}} {
// CHECK-NEXT:      loop.launch @cache.0.rows grid [1] warps 1 stages 1 symbols [] (%end, %past, %new, %{{.*}})
// CHECK-NEXT:    } else {
// CHECK-NEXT:      loop.launch @cache.0 grid [16] warps 1 stages 1 symbols [] (%end, %past, %new, %{{.*}})
// CHECK-NEXT:    }
loop.kernel @cache symbols [] (%past: tensor<64x32xf16>, %new: tensor<2x32xf16>, %end: tensor<i64>) -> (tensor<64x32xf16>) {
  %y = loop.nest "present" [s: parallel 64, d: parallel 32] schedule [s by 4 grid fuse "l0", s vector 4, d vector 32, launch warps 1 stages 1] -> tensor<64x32xf16> {
    %e = loop.read %end[] : i64
    %old = loop.read %past[s, d] with %e if [_0 - s - 1] : f16
    %v = loop.read %new[s - _0, d] with %e if [s - _0, _0 - s + 1] else %old : f16
    loop.yield none %v at [s, d]
  }
  loop.return %y : tensor<64x32xf16>
}

// -----

// Rows that are kept at another place are no update.

// CHECK-LABEL: loop.func @moved
// CHECK-NOT:     loop.if_shared
loop.kernel @moved symbols [] (%past: tensor<64x32xf16>, %new: tensor<2x32xf16>, %end: tensor<i64>) -> (tensor<63x32xf16>) {
  %y = loop.nest "present" [s: parallel 63, d: parallel 32] schedule [s by 4 grid fuse "l0", s vector 4, d vector 32, launch warps 1 stages 1] -> tensor<63x32xf16> {
    %e = loop.read %end[] : i64
    %old = loop.read %past[s + 1, d] : f16
    %v = loop.read %new[s - _0, d] with %e if [s - _0, _0 - s + 1] else %old : f16
    loop.yield none %v at [s, d]
  }
  loop.return %y : tensor<63x32xf16>
}
