// RUN: igniter-opt %s -p form-fma --split-input-file | filecheck %s
// RUN: igniter-opt %s -p "form-fma{fma=false}" --split-input-file | filecheck %s --check-prefix=PLAIN

// A product that is added, on either side; of two the first is fused. One with another reader is kept for it.

// CHECK:        loop.kernel @sums
// CHECK:          %p = arith.mulf %a, %b : f32
// CHECK-NEXT:     [[S:%.+]] = math.fma %a, %b, %c : f32
// CHECK-NEXT:     [[T:%.+]] = math.fma %b, %c, [[S]] : f32
// CHECK-NEXT:     %r = arith.mulf %a, %a : f32
// CHECK-NEXT:     [[U:%.+]] = math.fma %a, %b, %r : f32
// CHECK-NEXT:     [[V:%.+]] = arith.mulf %p, [[U]] : f32
// CHECK-NEXT:     loop.yield none [[T]] at [i], none [[V]] at [i]

// PLAIN:        loop.kernel @sums
// PLAIN-NOT:    math.fma
// PLAIN:        loop.kernel @others

builtin.module {
  loop.kernel @sums symbols [n] (%x: tensor<?xf32, #sym.dims<n>>, %y: tensor<?xf32, #sym.dims<n>>, %z: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>, tensor<?xf32, #sym.dims<n>>) {
    %o, %w = loop.nest "sums" [i: parallel n] -> tensor<?xf32, #sym.dims<n>>, tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      %b = loop.read %y[i] : f32
      %c = loop.read %z[i] : f32
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %p, %c : f32
      %q = arith.mulf %b, %c : f32
      %t = arith.addf %s, %q : f32
      %r = arith.mulf %a, %a : f32
      %u = arith.addf %p, %r : f32
      %v = arith.mulf %p, %u : f32
      loop.yield none %t at [i], none %v at [i]
    }
    loop.return %o, %w : tensor<?xf32, #sym.dims<n>>, tensor<?xf32, #sym.dims<n>>
  }
}

// -----

// A difference, a sum of 16-bit floats (which is one of f32, rounded) and what a reduction adds up stay as they are.

// CHECK:        loop.kernel @others
// CHECK:          %p = arith.mulf %a, %b : f32
// CHECK-NEXT:     %d = arith.subf %a, %p : f32
// CHECK-NEXT:     loop.yield add %d at []
// CHECK:          %h = arith.mulf %g, %g : f16
// CHECK-NEXT:     %k = arith.addf %h, %g : f16
// CHECK-NOT:    math.fma

builtin.module {
  loop.kernel @others symbols [n] (%x: tensor<?xf32, #sym.dims<n>>, %y: tensor<?xf32, #sym.dims<n>>, %z: tensor<?xf16, #sym.dims<n>>) -> (tensor<f32>, tensor<?xf16, #sym.dims<n>>) {
    %o = loop.nest "difference" [i: reduction n] -> tensor<f32> {
      %a = loop.read %x[i] : f32
      %b = loop.read %y[i] : f32
      %p = arith.mulf %a, %b : f32
      %d = arith.subf %a, %p : f32
      loop.yield add %d at []
    }
    %w = loop.nest "half" [i: parallel n] -> tensor<?xf16, #sym.dims<n>> {
      %g = loop.read %z[i] : f16
      %h = arith.mulf %g, %g : f16
      %k = arith.addf %h, %g : f16
      loop.yield none %k at [i]
    }
    loop.return %o, %w : tensor<f32>, tensor<?xf16, #sym.dims<n>>
  }
}

// -----

// A code in steps of its scale is rounded before it is added, to a sum of such numbers or to a product of others.

// CHECK:        loop.kernel @codes
// CHECK:          %p = arith.mulf %f, %b : f32
// CHECK-NEXT:     %s = arith.addf %p, %b : f32
// CHECK-NEXT:     [[T:%.+]] = math.fma %b, %b, %p : f32
// CHECK-NEXT:     loop.yield none %s at [i], none [[T]] at [i]

builtin.module {
  loop.kernel @codes symbols [n] (%x: tensor<?xi32, #sym.dims<n>>, %y: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>, tensor<?xf32, #sym.dims<n>>) {
    %o, %w = loop.nest "codes" [i: parallel n] -> tensor<?xf32, #sym.dims<n>>, tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : i32
      %b = loop.read %y[i] : f32
      %f = arith.sitofp %a : i32 to f32
      %p = arith.mulf %f, %b : f32
      %s = arith.addf %p, %b : f32
      %q = arith.mulf %b, %b : f32
      %t = arith.addf %p, %q : f32
      loop.yield none %s at [i], none %t at [i]
    }
    loop.return %o, %w : tensor<?xf32, #sym.dims<n>>, tensor<?xf32, #sym.dims<n>>
  }
}

// -----

// A converted integer whose product may contract is no code, such as a number of 4 bits times a factor.

// CHECK:        loop.kernel @numbers
// CHECK:          %s = math.fma %f, %b, %b : f32

builtin.module {
  loop.kernel @numbers symbols [n] (%x: tensor<?xi32, #sym.dims<n>>, %y: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %o = loop.nest "numbers" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : i32
      %b = loop.read %y[i] : f32
      %f = arith.sitofp %a : i32 to f32
      %p = arith.mulf %f, %b fastmath<contract> : f32
      %s = arith.addf %p, %b : f32
      loop.yield none %s at [i]
    }
    loop.return %o : tensor<?xf32, #sym.dims<n>>
  }
}
