// RUN: igniter-opt %s -p canonicalize-loop --split-input-file | filecheck %s
// RUN: igniter-opt %s -p canonicalize-loop --split-input-file --emit=none --remarks --remarks-output=- | filecheck %s --check-prefix=REMARK

// Copies, views of views, guards that always hold, axes of extent 1, a reduction of one value, equal reads.

// CHECK-LABEL: loop.kernel @tidy
loop.kernel @tidy symbols [] (%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %c = loop.nest "copy" [i: parallel 4] -> tensor<4xf32> {
    %v = loop.read %x[i] if [3 - i] : f32
    loop.yield none %v at [i]
  }
  %u = loop.view %c : tensor<4xf32> to tensor<2x2xf32>
  %w = loop.view %u : tensor<2x2xf32> to tensor<4xf32>
  // CHECK-NEXT: loop.nest "add" [i: parallel 4] -> tensor<4xf32>
  // CHECK-NEXT:   %[[A:.*]] = loop.read %x[i] : f32
  // CHECK-NEXT:   %[[S:.*]] = arith.addf %[[A]], %[[A]] : f32
  // CHECK-NEXT:   loop.yield none %[[S]] at [i]
  %y = loop.nest "add" [i: parallel 4, one: reduction 1] -> tensor<4xf32> {
    %a = loop.read %w[i + one] : f32
    %b = loop.read %w[i] : f32
    %s = arith.addf %a, %b : f32
    loop.yield add %s at [i]
  }
  loop.return %y : tensor<4xf32>
}
// REMARK: 'copy' applied: it copies its operand

// -----

// Constants fold where the value does not change: 1.5 * 2.0, x * 1.0 and x + -0.0, but not x + 0.0.

// CHECK-LABEL: loop.kernel @fold
loop.kernel @fold symbols [] (%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi64>) {
  // CHECK:      %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
  // CHECK-NEXT: %[[C:.*]] = arith.constant 3.000000e+00 : f32
  // CHECK-NEXT: %[[X:.*]] = loop.read %x[i] : f32
  // CHECK-NEXT: %[[A:.*]] = arith.addf %[[X]], %[[ZERO]] : f32
  // CHECK-NEXT: %[[M:.*]] = arith.mulf %[[A]], %[[C]] : f32
  // CHECK-NEXT: loop.yield none %[[M]] at [i]
  %y = loop.nest "floats" [i: parallel 4] -> tensor<4xf32> {
    %one = arith.constant 1.0 : f32
    %minus = arith.constant -0.0 : f32
    %zero = arith.constant 0.0 : f32
    %p = arith.constant 1.5 : f32
    %q = arith.constant 2.0 : f32
    %c = arith.mulf %p, %q : f32
    %v = loop.read %x[i] : f32
    %a = arith.mulf %v, %one : f32
    %b = arith.addf %a, %minus : f32
    %d = arith.addf %b, %zero : f32
    %m = arith.mulf %d, %c : f32
    loop.yield none %m at [i]
  }
  // CHECK:      loop.nest "ints"
  // CHECK-NEXT:   %[[FIVE:.*]] = arith.constant 5 : i64
  // CHECK-NEXT:   loop.yield none %[[FIVE]] at [i]
  %z = loop.nest "ints" [i: parallel 4] -> tensor<4xi64> {
    %p = arith.constant 2 : i64
    %q = arith.constant 3 : i64
    %c = arith.addi %p, %q : i64
    %less = arith.cmpi slt, %p, %q : i64
    %v = arith.select %less, %c, %q : i64
    loop.yield none %v at [i]
  }
  loop.return %y, %z : tensor<4xf32>, tensor<4xi64>
}

// -----

// A quotient by a power of two is a product, bit for bit; by another number it is not.

// CHECK-LABEL: loop.kernel @quotient
loop.kernel @quotient symbols [] (%x: tensor<4xf32>) -> (tensor<4xf32>) {
  // CHECK:      %[[THREE:.*]] = arith.constant 3.000000e+00 : f32
  // CHECK-NEXT: %[[X:.*]] = loop.read
  // CHECK-NEXT: %[[R:.*]] = arith.constant 1.562500e-02 : f32
  // CHECK-NEXT: %[[M:.*]] = arith.mulf %[[X]], %[[R]] : f32
  // CHECK-NEXT: arith.divf %[[M]], %[[THREE]] : f32
  %y = loop.nest "mean" [i: parallel 4] -> tensor<4xf32> {
    %c = arith.constant 64.0 : f32
    %three = arith.constant 3.0 : f32
    %v = loop.read %x[i] : f32
    %q = arith.divf %v, %c : f32
    %r = arith.divf %q, %three : f32
    loop.yield none %r at [i]
  }
  loop.return %y : tensor<4xf32>
}

// -----

// A guard that never holds leaves the value after `else`, or zero. What depends on a symbol stays.

// CHECK-LABEL: loop.kernel @guards
loop.kernel @guards symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<4xf32>) {
  // CHECK:      %[[NINE:.*]] = arith.constant 9.000000e+00 : f32
  // CHECK-NEXT: %[[A:.*]] = arith.constant 0.000000e+00 : f32
  // CHECK-NEXT: %[[C:.*]] = loop.read %x[i] if [-i + n - 1] : f32
  // CHECK-NEXT: %[[S:.*]] = arith.addf %[[C]], %[[A]] : f32
  // CHECK-NEXT: arith.mulf %[[S]], %[[NINE]] : f32
  %y = loop.nest "guards" [i: parallel 4] -> tensor<4xf32> {
    %nine = arith.constant 9.0 : f32
    %zero = loop.read %x[i] if [i - 4] : f32
    %b = loop.read %x[i] if [-1 - i] else %nine : f32
    %c = loop.read %x[i] if [n - 1 - i, i, i + 1] : f32
    %s = arith.addf %c, %zero : f32
    %t = arith.mulf %s, %b : f32
    loop.yield none %t at [i]
  }
  loop.return %y : tensor<4xf32>
}

// -----

// Equal nests merge, whatever their axes are called; results that nothing reads go, and so do nests without readers.
// What leaves the kernel keeps a nest of its own.

// CHECK-LABEL: loop.kernel @merge
loop.kernel @merge symbols [] (%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[A:.*]] = loop.nest "a" [i: parallel 4] -> tensor<4xf32> {
  // CHECK-NEXT:   loop.read
  // CHECK-NEXT:   math.exp
  // CHECK-NEXT:   loop.yield
  %a = loop.nest "a" [i: parallel 4] -> tensor<4xf32> {
    %v = loop.read %x[i] : f32
    %e = math.exp %v : f32
    loop.yield none %e at [i]
  }
  // CHECK-NOT: loop.nest "b"
  %b, %unused = loop.nest "b" [j: parallel 4] -> tensor<4xf32>, tensor<4xf32> {
    %v = loop.read %x[j] : f32
    %e = math.exp %v : f32
    %n = arith.negf %v : f32
    loop.yield none %e at [j], none %n at [j]
  }
  // CHECK-NOT: "dead"
  %dead = loop.nest "dead" [i: parallel 4] -> tensor<4xf32> {
    %v = loop.read %b[i] : f32
    loop.yield none %v at [i]
  }
  // CHECK:      loop.nest "c"
  // CHECK-NEXT:   %[[V:.*]] = loop.read %[[A]][i] : f32
  // CHECK-NEXT:   arith.addf %[[V]], %[[V]] : f32
  %c = loop.nest "c" [i: parallel 4] -> tensor<4xf32> {
    %v = loop.read %a[i] : f32
    %w = loop.read %b[i] : f32
    %s = arith.addf %v, %w : f32
    loop.yield none %s at [i]
  }
  // CHECK:      loop.nest "copy"
  %copy = loop.nest "copy" [i: parallel 4] -> tensor<4xf32> {
    %v = loop.read %x[i] : f32
    loop.yield none %v at [i]
  }
  loop.return %c, %copy : tensor<4xf32>, tensor<4xf32>
}
// REMARK: 'dead' applied: it is unused

// The order of parallel axes does not matter, that of reductions does.

// CHECK-LABEL: loop.kernel @orders
loop.kernel @orders symbols [] (%x: tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<2xf32>) {
  // CHECK: %[[A:.*]] = loop.nest "a"
  %a = loop.nest "a" [i: parallel 4, j: parallel 5] -> tensor<4x5xf32> {
    %v = loop.read %x[i, j] : f32
    %e = math.exp %v : f32
    loop.yield none %e at [i, j]
  }
  // CHECK-NOT: loop.nest "b"
  %b = loop.nest "b" [k: parallel 5, l: parallel 4] -> tensor<4x5xf32> {
    %v = loop.read %x[l, k] : f32
    %e = math.exp %v : f32
    loop.yield none %e at [l, k]
  }
  // CHECK: loop.nest "sum" [o: parallel 2, r: reduction 4, s: reduction 5]
  // CHECK-NEXT: loop.read %[[A]]
  %c = loop.nest "sum" [o: parallel 2, r: reduction 4, s: reduction 5] -> tensor<2xf32> {
    %v = loop.read %b[r, s] : f32
    loop.yield add %v at [o]
  }
  // CHECK: loop.nest "other" [o: parallel 2, s: reduction 5, r: reduction 4]
  %d = loop.nest "other" [o: parallel 2, s: reduction 5, r: reduction 4] -> tensor<2xf32> {
    %v = loop.read %b[r, s] : f32
    loop.yield add %v at [o]
  }
  %e = loop.nest "both" [o: parallel 2] -> tensor<2xf32> {
    %v = loop.read %c[o] : f32
    %w = loop.read %d[o] : f32
    %s = arith.mulf %v, %w : f32
    loop.yield none %s at [o]
  }
  loop.return %a, %e : tensor<4x5xf32>, tensor<2xf32>
}
