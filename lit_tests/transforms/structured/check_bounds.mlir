// RUN: igniter-opt %s -p check-bounds --split-input-file --emit=none --remarks --remarks-output=- | filecheck %s
// RUN: not igniter-opt %s -p check-bounds{strict=true} --split-input-file --emit=none 2>&1 | filecheck %s --check-prefix=STRICT

// Proven, and so without a remark: guards, joined axes, divisions, tiles at the edge, lanes, strides.

loop.kernel @proven symbols [n, m] (%x: tensor<?x?xf32, #sym.dims<n, m>>, %w: tensor<10x4xf32>, %ids: tensor<?xi64, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n*m>>, tensor<?x4xf32, #sym.dims<n, 4>>, tensor<8x4xf32>) {
  %a = loop.nest "joined" [i: parallel n, j: parallel m] -> tensor<?xf32, #sym.dims<n*m>> {
    %v = loop.read %x[i, m - 1 - j] : f32
    %w0 = loop.read %x[i - 1, j] if [i - 1] else %v : f32
    loop.yield none %w0 at [i*m + j]
  }
  %b = loop.nest "gather" [i: parallel n, j: parallel 4] -> tensor<?x4xf32, #sym.dims<n, 4>> {
    %id = loop.read %ids[i] : i64
    %v = loop.read %w[_0, j] with %id if [_0, 9 - _0] : f32
    loop.yield none %v at [i, j]
  }
  %c = loop.nest "divided" [i: parallel 32] -> tensor<8x4xf32> {
    %v = loop.read %w[min(i floordiv 4, 9), i mod 4] : f32
    loop.yield none %v at [i floordiv 4, i mod 4]
  }
  loop.return %a, %b, %c : tensor<?xf32, #sym.dims<n*m>>, tensor<?x4xf32, #sym.dims<n, 4>>, tensor<8x4xf32>
}
// CHECK-NOT: 'joined'
// CHECK-NOT: 'gather'
// CHECK-NOT: 'divided'

// -----

loop.func @tiles symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
  loop.for i = 0 to (n + 7) floordiv 8 {
    loop.for j = 0 to min(8, n - 8*i) {
      %a = loop.load %x[8*i + j] : f32
      loop.store %a, %y[8*i + j]
    }
  }
  loop.for k = 0 to n step 4 {
    %v = loop.load %x[k + l] lane l if [n - 1 - k - l] : vector<4xf32>
    loop.store %v, %y[k + l] lane l if [n - 1 - k - l]
  }
}
// CHECK-NOT: 'tiles'

// -----

loop.kernel @unproven symbols [] (%x: tensor<4xf32>, %ids: tensor<4xi64>) -> (tensor<4xf32>) {
  %y = loop.nest "shift" [i: parallel 4] -> tensor<4xf32> {
    %id = loop.read %ids[i] : i64
    %a = loop.read %x[i + 1] : f32
    %b = loop.read %x[i - 1] : f32
    %c = loop.read %x[_0] with %id if [3 - _0] : f32
    %s = arith.addf %a, %b : f32
    %t = arith.addf %s, %c : f32
    loop.yield none %t at [i]
  }
  loop.return %y : tensor<4xf32>
}
// CHECK: 'shift' missed: a read of tensor<4xf32>: i + 1 may reach 4, the size of its dim
// CHECK: 'shift' missed: a read of tensor<4xf32>: i - 1 may be negative
// CHECK: 'shift' missed: a read of tensor<4xf32>: _0 may be negative

// STRICT: 'shift' in @unproven: a read of tensor<4xf32>: i + 1 may reach 4

// -----

// With 'guard' what is not proven is guarded; a write that is not proven is an error.
// RUN: igniter-opt %s -p check-bounds{guard=true} --split-input-file --remarks --remarks-output=- | filecheck %s --check-prefix=GUARD

// GUARD:       %a = loop.read %x[i + 1] if [-i + 2] : f32
// GUARD-NEXT:  %b = loop.read %x[i - 1] if [i - 1] : f32
// GUARD-NEXT:  %c = loop.read %x[_0] with %id if [-_0 + 3, _0] : f32

loop.kernel @required symbols [n, m] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<m>>) requires [m <= n "it is longer than the input"] {
  %y = loop.nest "first" [i: parallel m] -> tensor<?xf32, #sym.dims<m>> {
    %v = loop.read %x[i] : f32
    loop.yield none %v at [i]
  }
  loop.return %y : tensor<?xf32, #sym.dims<m>>
}
// What a kernel requires is known of its symbols.
// GUARD:      loop.kernel @required
// GUARD:      loop.read %x[i] : f32

// -----

loop.kernel @packed symbols [n] (%x: tensor<?x16xf32, #sym.dims<(n + 15) floordiv 16, 16>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %y = loop.nest "unpacked" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
    %v = loop.read %x[i floordiv 16, i mod 16] : f32
    loop.yield none %v at [i]
  }
  loop.return %y : tensor<?xf32, #sym.dims<n>>
}
// GUARD:      loop.kernel @packed
// GUARD:      loop.read %x[(i floordiv 16), (i mod 16)] : f32
