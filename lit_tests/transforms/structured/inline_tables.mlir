// RUN: igniter-opt %s -p "inline-nests{tables=true}" | filecheck %s
// RUN: igniter-opt %s -p inline-nests | filecheck %s --check-prefix=KEPT

// A table that reads no tensor is computed where it is read, although each row of the result computes it again.

// CHECK-LABEL: loop.kernel @table
// CHECK-NOT:     loop.nest "weights"
// CHECK:         loop.nest "scaled"
// CHECK:           math.exp
// KEPT:          loop.nest "weights"
loop.kernel @table symbols [] (%x: tensor<4x8xf32>) -> (tensor<4x8xf32>) {
  %t = loop.nest "weights" [j: parallel 8] -> tensor<8xf32> {
    %i = loop.index j : i64
    %f = arith.sitofp %i : i64 to f32
    %e = math.exp %f : f32
    loop.yield none %e at [j]
  }
  %y = loop.nest "scaled" [i: parallel 4, j: parallel 8] -> tensor<4x8xf32> {
    %a = loop.read %x[i, j] : f32
    %b = loop.read %t[j] : f32
    %c = arith.mulf %a, %b : f32
    loop.yield none %c at [i, j]
  }
  loop.return %y : tensor<4x8xf32>
}
