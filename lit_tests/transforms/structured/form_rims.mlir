// RUN: igniter-opt %s -p form-rims --split-input-file | filecheck %s

// A padding is a copy of what it does not add, and so is one of what is computed.

// CHECK-LABEL: loop.kernel @padded
// CHECK:      %p = loop.nest "pad" [y: parallel h, x: parallel 6, c: parallel 4] -> tensor<?x9x4xf32, #sym.dims<h + 1, 9, 4>> {
// CHECK-NEXT:   %a = loop.read %x[y, x, c] : f32
// CHECK-NEXT:   loop.yield none %a at [y + 1, x + 2, c] else 0.000000e+00 : f32
// CHECK:      %q = loop.nest "relu" [y: parallel h, x: parallel 6, c: parallel 4]
// CHECK-NEXT:   %a_1 = loop.read %x[y, x, c] : f32
// CHECK-NEXT:   %z = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:   %m = arith.maximumf %a_1, %z : f32
// CHECK-NEXT:   loop.yield none %m at [y + 1, x, c] else 2.500000e+00 : f32
builtin.module {
  loop.kernel @padded symbols [h] (%x: tensor<?x6x4xf32, #sym.dims<h, 6, 4>>) -> (tensor<?x9x4xf32, #sym.dims<h + 1, 9, 4>>, tensor<?x6x4xf32, #sym.dims<h + 1, 6, 4>>) {
    %p = loop.nest "pad" [y: parallel h + 1, x: parallel 9, c: parallel 4] -> tensor<?x9x4xf32, #sym.dims<h + 1, 9, 4>> {
      %a = loop.read %x[y - 1, x - 2, c] if [y - 1, x - 2, -x + 7] : f32
      loop.yield none %a at [y, x, c]
    }
    %q = loop.nest "relu" [y: parallel h + 1, x: parallel 6, c: parallel 4] -> tensor<?x6x4xf32, #sym.dims<h + 1, 6, 4>> {
      %a = loop.read %x[y - 1, x, c] if [y - 1] : f32
      %z = arith.constant 0.0 : f32
      %m = arith.maximumf %a, %z : f32
      %i = loop.index y - 1 : i64
      %0 = arith.constant 0 : i64
      %in = arith.cmpi sge, %i, %0 : i64
      %r = arith.constant 2.5 : f32
      %v = arith.select %in, %m, %r : f32
      loop.yield none %v at [y, x, c]
    }
    loop.return %p, %q : tensor<?x9x4xf32, #sym.dims<h + 1, 9, 4>>, tensor<?x6x4xf32, #sym.dims<h + 1, 6, 4>>
  }
}

// -----

// No box: a guard of two axes, a window whose padding the next element of it has, other values around, and sizes of which
// it is not known that they leave anything.

// CHECK-LABEL: loop.kernel @others
// CHECK-COUNT-4: if [
// CHECK-NOT:   at {{.*}} else
builtin.module {
  loop.kernel @others symbols [n] (%x: tensor<8x8xf32>, %y: tensor<?xf32, #sym.dims<n>>) -> (tensor<8x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<?xf32, #sym.dims<n>>) {
    %a = loop.nest "triangle" [i: parallel 8, j: parallel 8] -> tensor<8x8xf32> {
      %v = loop.read %x[i, j] if [i - j] : f32
      loop.yield none %v at [i, j]
    }
    %b = loop.nest "window" [i: parallel 8, k: reduction 3] -> tensor<8xf32> {
      %v = loop.read %x[i + k - 1, 0] if [i + k - 1, 8 - i - k] : f32
      loop.yield add %v at [i]
    }
    %c = loop.nest "others" [i: parallel 8] -> tensor<8xf32> {
      %o = loop.read %x[i, 1] : f32
      %v = loop.read %x[i - 1, 0] if [i - 1] else %o : f32
      loop.yield none %v at [i]
    }
    %d = loop.nest "cut" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %v = loop.read %y[i - 4] if [i - 4] : f32
      loop.yield none %v at [i]
    }
    loop.return %a, %b, %c, %d : tensor<8x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<?xf32, #sym.dims<n>>
  }
}
