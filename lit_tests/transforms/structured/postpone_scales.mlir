// RUN: igniter-opt %s -p "postpone-scales" --split-input-file | filecheck %s

// The exponentials go to the contraction as they are, and its sums are scaled.

// CHECK:        loop.kernel @values symbols [n] (%s: tensor<?x?xf32, #sym.dims<n, n>>, %r: tensor<?xf32, #sym.dims<n>>, %v: tensor<?x64xf32, #sym.dims<n, 64>>) -> (tensor<?x64xf32, #sym.dims<n, 64>>) {
// CHECK-NEXT:     %e = loop.nest "exp" [i: parallel n, j: parallel n] -> tensor<?x?xf32, #sym.dims<n, n>> {
// CHECK-NEXT:       %x = loop.read %s[i, j] : f32
// CHECK-NEXT:       %y = math.exp %x : f32
// CHECK-NEXT:       loop.yield none %y at [i, j]
// CHECK-NEXT:     }
// CHECK-NEXT:     %o = loop.nest "values" [i: parallel n, d: parallel 64, j: reduction n] -> tensor<?x64xf32, #sym.dims<n, 64>> {
// CHECK-NEXT:       %x_1 = loop.read %e[i, j] : f32
// CHECK-NEXT:       %y_1 = loop.read %v[j, d] : f32
// CHECK-NEXT:       %z = arith.mulf %x_1, %y_1 : f32
// CHECK-NEXT:       loop.yield add %z at [i, d]
// CHECK-NEXT:     }
// CHECK-NEXT:     %o_1 = loop.nest "values.scale" [i: parallel n, d: parallel 64] -> tensor<?x64xf32, #sym.dims<n, 64>> {
// CHECK-NEXT:       %0 = loop.read %o[i, d] : f32
// CHECK-NEXT:       %1 = loop.read %r[i] : f32
// CHECK-NEXT:       %2 = arith.mulf %0, %1 : f32
// CHECK-NEXT:       loop.yield none %2 at [i, d]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %o_1 : tensor<?x64xf32, #sym.dims<n, 64>>
// CHECK-NEXT:   }

builtin.module {
  loop.kernel @values symbols [n] (%s: tensor<?x?xf32, #sym.dims<n, n>>, %r: tensor<?xf32, #sym.dims<n>>, %v: tensor<?x64xf32, #sym.dims<n, 64>>) -> (tensor<?x64xf32, #sym.dims<n, 64>>) {
    %e = loop.nest "exp" [i: parallel n, j: parallel n] -> tensor<?x?xf32, #sym.dims<n, n>> {
      %x = loop.read %s[i, j] : f32
      %y = math.exp %x : f32
      loop.yield none %y at [i, j]
    }
    %p = loop.nest "softmax" [i: parallel n, j: parallel n] -> tensor<?x?xf32, #sym.dims<n, n>> {
      %x = loop.read %e[i, j] : f32
      %y = loop.read %r[i] : f32
      %z = arith.mulf %x, %y : f32
      loop.yield none %z at [i, j]
    }
    %o = loop.nest "values" [i: parallel n, d: parallel 64, j: reduction n] -> tensor<?x64xf32, #sym.dims<n, 64>> {
      %x = loop.read %p[i, j] : f32
      %y = loop.read %v[j, d] : f32
      %z = arith.mulf %x, %y : f32
      loop.yield add %z at [i, d]
    }
    loop.return %o : tensor<?x64xf32, #sym.dims<n, 64>>
  }
}

// -----

// A scale that changes along the depth stays; so does one of what is no exponential.

// CHECK:        loop.kernel @along symbols [n] (%s: tensor<?x?xf32, #sym.dims<n, n>>, %r: tensor<?xf32, #sym.dims<n>>, %v: tensor<?x64xf32, #sym.dims<n, 64>>) -> (tensor<?x64xf32, #sym.dims<n, 64>>, tensor<?x64xf32, #sym.dims<n, 64>>) {
// CHECK-NEXT:     %e = loop.nest "exp" [i: parallel n, j: parallel n] -> tensor<?x?xf32, #sym.dims<n, n>> {
// CHECK-NEXT:       %x = loop.read %s[i, j] : f32
// CHECK-NEXT:       %y = math.exp %x : f32
// CHECK-NEXT:       loop.yield none %y at [i, j]
// CHECK-NEXT:     }
// CHECK-NEXT:     %p = loop.nest "scaled" [i: parallel n, j: parallel n] -> tensor<?x?xf32, #sym.dims<n, n>> {
// CHECK-NEXT:       %x_1 = loop.read %e[i, j] : f32
// CHECK-NEXT:       %y_1 = loop.read %r[j] : f32
// CHECK-NEXT:       %z = arith.mulf %x_1, %y_1 : f32
// CHECK-NEXT:       loop.yield none %z at [i, j]
// CHECK-NEXT:     }
// CHECK-NEXT:     %o = loop.nest "values" [i: parallel n, d: parallel 64, j: reduction n] -> tensor<?x64xf32, #sym.dims<n, 64>> {
// CHECK-NEXT:       %x_2 = loop.read %p[i, j] : f32
// CHECK-NEXT:       %y_2 = loop.read %v[j, d] : f32
// CHECK-NEXT:       %z_1 = arith.mulf %x_2, %y_2 : f32
// CHECK-NEXT:       loop.yield add %z_1 at [i, d]
// CHECK-NEXT:     }
// CHECK-NEXT:     %q = loop.nest "plain" [i: parallel n, j: parallel n] -> tensor<?x?xf32, #sym.dims<n, n>> {
// CHECK-NEXT:       %x_3 = loop.read %s[i, j] : f32
// CHECK-NEXT:       %y_3 = loop.read %r[i] : f32
// CHECK-NEXT:       %z_2 = arith.mulf %x_3, %y_3 : f32
// CHECK-NEXT:       loop.yield none %z_2 at [i, j]
// CHECK-NEXT:     }
// CHECK-NEXT:     %u = loop.nest "others" [i: parallel n, d: parallel 64, j: reduction n] -> tensor<?x64xf32, #sym.dims<n, 64>> {
// CHECK-NEXT:       %x_4 = loop.read %q[i, j] : f32
// CHECK-NEXT:       %y_4 = loop.read %v[j, d] : f32
// CHECK-NEXT:       %z_3 = arith.mulf %x_4, %y_4 : f32
// CHECK-NEXT:       loop.yield add %z_3 at [i, d]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %o, %u : tensor<?x64xf32, #sym.dims<n, 64>>, tensor<?x64xf32, #sym.dims<n, 64>>
// CHECK-NEXT:   }

builtin.module {
  loop.kernel @along symbols [n] (%s: tensor<?x?xf32, #sym.dims<n, n>>, %r: tensor<?xf32, #sym.dims<n>>, %v: tensor<?x64xf32, #sym.dims<n, 64>>) -> (tensor<?x64xf32, #sym.dims<n, 64>>, tensor<?x64xf32, #sym.dims<n, 64>>) {
    %e = loop.nest "exp" [i: parallel n, j: parallel n] -> tensor<?x?xf32, #sym.dims<n, n>> {
      %x = loop.read %s[i, j] : f32
      %y = math.exp %x : f32
      loop.yield none %y at [i, j]
    }
    %p = loop.nest "scaled" [i: parallel n, j: parallel n] -> tensor<?x?xf32, #sym.dims<n, n>> {
      %x = loop.read %e[i, j] : f32
      %y = loop.read %r[j] : f32
      %z = arith.mulf %x, %y : f32
      loop.yield none %z at [i, j]
    }
    %o = loop.nest "values" [i: parallel n, d: parallel 64, j: reduction n] -> tensor<?x64xf32, #sym.dims<n, 64>> {
      %x = loop.read %p[i, j] : f32
      %y = loop.read %v[j, d] : f32
      %z = arith.mulf %x, %y : f32
      loop.yield add %z at [i, d]
    }
    %q = loop.nest "plain" [i: parallel n, j: parallel n] -> tensor<?x?xf32, #sym.dims<n, n>> {
      %x = loop.read %s[i, j] : f32
      %y = loop.read %r[i] : f32
      %z = arith.mulf %x, %y : f32
      loop.yield none %z at [i, j]
    }
    %u = loop.nest "others" [i: parallel n, d: parallel 64, j: reduction n] -> tensor<?x64xf32, #sym.dims<n, 64>> {
      %x = loop.read %q[i, j] : f32
      %y = loop.read %v[j, d] : f32
      %z = arith.mulf %x, %y : f32
      loop.yield add %z at [i, d]
    }
    loop.return %o, %u : tensor<?x64xf32, #sym.dims<n, 64>>, tensor<?x64xf32, #sym.dims<n, 64>>
  }
}

// -----

// Queries without keys: a sum of nothing is 0, and stays so.

// CHECK-LABEL:  loop.kernel @keys
// CHECK:          loop.nest "values.scale" [i: parallel m, d: parallel 64]
// CHECK-NEXT:       [[T:%.*]] = loop.read %o[i, d] : f32
// CHECK-NEXT:       [[R:%.*]] = loop.read %r[i] : f32
// CHECK-NEXT:       [[P:%.*]] = arith.mulf [[T]], [[R]] : f32
// CHECK-NEXT:       [[N:%.*]] = loop.index n : i64
// CHECK-NEXT:       [[Z:%.*]] = arith.constant 0 : i64
// CHECK-NEXT:       [[E:%.*]] = arith.cmpi eq, [[N]], [[Z]] : i64
// CHECK-NEXT:       [[S:%.*]] = arith.select [[E]], [[T]], [[P]] : f32
// CHECK-NEXT:       loop.yield none [[S]] at [i, d]

builtin.module {
  loop.kernel @keys symbols [m, n] (%s: tensor<?x?xf32, #sym.dims<m, n>>, %r: tensor<?xf32, #sym.dims<m>>, %v: tensor<?x64xf32, #sym.dims<n, 64>>) -> (tensor<?x64xf32, #sym.dims<m, 64>>) {
    %e = loop.nest "exp" [i: parallel m, j: parallel n] -> tensor<?x?xf32, #sym.dims<m, n>> {
      %x = loop.read %s[i, j] : f32
      %y = math.exp %x : f32
      loop.yield none %y at [i, j]
    }
    %p = loop.nest "softmax" [i: parallel m, j: parallel n] -> tensor<?x?xf32, #sym.dims<m, n>> {
      %x = loop.read %e[i, j] : f32
      %y = loop.read %r[i] : f32
      %z = arith.mulf %x, %y : f32
      loop.yield none %z at [i, j]
    }
    %o = loop.nest "values" [i: parallel m, d: parallel 64, j: reduction n] -> tensor<?x64xf32, #sym.dims<m, 64>> {
      %x = loop.read %p[i, j] : f32
      %y = loop.read %v[j, d] : f32
      %z = arith.mulf %x, %y : f32
      loop.yield add %z at [i, d]
    }
    loop.return %o : tensor<?x64xf32, #sym.dims<m, 64>>
  }
}
