// RUN: igniter-opt %s --split-input-file | filecheck %s
// RUN: igniter-opt %s --split-input-file --emit=generic | igniter-opt --split-input-file | filecheck %s

// Everything the level can say: symbols, views, several results, guards, indirect reads, every kind of subscript.

loop.kernel @all symbols [n, "a dim"] (%x: tensor<?x?xf32, #sym.dims<n, "a dim">>, %i: tensor<4xi64>) -> (tensor<4xf32>, tensor<?xf32, #sym.dims<n*"a dim">>, tensor<?x1xi1, #sym.dims<n*"a dim", 1>>) attributes {note = "kept"} {
  %flat = loop.view %x : tensor<?x?xf32, #sym.dims<n, "a dim">> to tensor<?xf32, #sym.dims<n*"a dim">>
  %g = loop.nest "gather" [j: parallel 4] schedule [j by 8 tail mask, j] -> tensor<4xf32> attributes {origin = "a node"} {
    %at = loop.read %i[j] : i64
    %zero = arith.constant 0.0 : f32
    %v = loop.read %x[_0, min(j, "a dim" - 1)] with %at if [_0, n - 1 - _0] else %zero : f32
    loop.yield none %v at [j]
  }
  %s, %t = loop.nest "sums" [k: parallel n*"a dim", r: reduction 2] -> tensor<?xf32, #sym.dims<n*"a dim">>, tensor<?x1xi1, #sym.dims<n*"a dim", 1>> {
    %v = loop.read %flat[k] if [k - r] : f32
    %d = loop.index (k + 1) floordiv 2 + r*(k mod 3) : i64
    %f = arith.sitofp %d : i64 to f32
    %m = arith.mulf %v, %f : f32
    %c = arith.cmpf olt, %m, %v : f32
    loop.yield add %m at [k], or %c at [k, 0]
  }
  loop.return %g, %s, %t : tensor<4xf32>, tensor<?xf32, #sym.dims<n*"a dim">>, tensor<?x1xi1, #sym.dims<n*"a dim", 1>>
}

// CHECK:      loop.kernel @all symbols [n, "a dim"] (%[[X:.*]]: tensor<?x?xf32, #sym.dims<n, "a dim">>, %[[I:.*]]: tensor<4xi64>) -> (tensor<4xf32>, tensor<?xf32, #sym.dims<"a dim"*n>>, tensor<?x1xi1, #sym.dims<"a dim"*n, 1>>) attributes {note = "kept"} {
// CHECK-NEXT:   %[[FLAT:.*]] = loop.view %[[X]] : tensor<?x?xf32, #sym.dims<n, "a dim">> to tensor<?xf32, #sym.dims<"a dim"*n>>
// CHECK-NEXT:   %[[G:.*]] = loop.nest "gather" [j: parallel 4] schedule [j by 8 tail mask, j] -> tensor<4xf32> attributes {origin = "a node"} {
// CHECK-NEXT:     %[[AT:.*]] = loop.read %[[I]][j] : i64
// CHECK-NEXT:     %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %[[V:.*]] = loop.read %[[X]][_0, min("a dim" - 1, j)] with %[[AT]] if [_0, -_0 + n - 1] else %[[ZERO]] : f32
// CHECK-NEXT:     loop.yield none %[[V]] at [j]
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[S:.*]], %[[T:.*]] = loop.nest "sums" [k: parallel "a dim"*n, r: reduction 2] -> tensor<?xf32, #sym.dims<"a dim"*n>>, tensor<?x1xi1, #sym.dims<"a dim"*n, 1>> {
// CHECK-NEXT:     loop.read %[[FLAT]][k] if [k - r] : f32
// CHECK-NEXT:     loop.index r*(k mod 3) + ((k + 1) floordiv 2) : i64
// CHECK:          loop.yield add %{{.*}} at [k], or %{{.*}} at [k, 0]
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.return %[[G]], %[[S]], %[[T]] :

// -----

// Products of four bytes, added to a sum.

loop.kernel @bytes symbols [] (%x: tensor<8xi32>, %y: tensor<8xi32>) -> (tensor<i32>) {
  %s = loop.nest "dot" [k: reduction 8] -> tensor<i32> {
    %a = loop.read %x[k] : i32
    %b = loop.read %y[k] : i32
    %z = arith.constant 0 : i32
    %d = loop.dot_bytes %a, %b, %z : i32
    %e = loop.dot_bytes %a, %b, %b, %a, %d most 15 : i32
    loop.yield add %e at []
  }
  loop.return %s : tensor<i32>
}

// CHECK-LABEL: loop.kernel @bytes
// CHECK:         %[[D:.*]] = loop.dot_bytes %{{.*}}, %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:    %[[E:.*]] = loop.dot_bytes %[[A:.*]], %[[B:.*]], %[[B]], %[[A]], %[[D]] most 15 : i32
// CHECK-NEXT:    loop.yield add %[[E]] at []

// -----

// Nothing at all: no symbols, no arguments, a nest without axes.

loop.kernel @scalar symbols [] () -> (tensor<f64>) {
  %y = loop.nest "one" [] -> tensor<f64> {
    %c = arith.constant 1.0 : f64
    loop.yield none %c at []
  }
  loop.return %y : tensor<f64>
}

// CHECK:      loop.kernel @scalar symbols [] () -> (tensor<f64>) {
// CHECK-NEXT:   loop.nest "one" [] -> tensor<f64> {
// CHECK-NEXT:     arith.constant 1.000000e+00 : f64
// CHECK-NEXT:     loop.yield none %{{.*}} at []

// -----

// Elements of unsigned tensors are signless in bodies.

loop.kernel @unsigned symbols [] (%x: tensor<4xui8>) -> (tensor<4xui8>) {
  %y = loop.nest "copy" [i: parallel 4] -> tensor<4xui8> {
    %v = loop.read %x[i] : i8
    loop.yield none %v at [i]
  }
  loop.return %y : tensor<4xui8>
}

// CHECK-LABEL: loop.kernel @unsigned
// CHECK:         loop.read %{{.*}}[i] : i8
