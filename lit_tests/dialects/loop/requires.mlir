// RUN: igniter-opt %s | igniter-opt | filecheck %s
// RUN: igniter-opt %s --emit=generic | filecheck %s --check-prefix=GENERIC

// What a kernel takes for granted of its symbols, on every level, with the node that asks for it: by its place in the
// region, then by its name.

// CHECK:      loop.kernel @k symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) requires [
// CHECK-NEXT:   n == 4*(n floordiv 4) "4 does not divide it" node 2,
// CHECK-NEXT:   3 <= n "it is too small"] {
// GENERIC: "loop.kernel"() <{sym_name = "k", symbols = ["n"]
// GENERIC-SAME: requires = [#sym.requirement<n == 4*(n floordiv 4) "4 does not divide it" node 2>, #sym.requirement<3 le n "it is too small">]
loop.kernel @k symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) requires [n == 4*(n floordiv 4) "4 does not divide it" node 2, 3 <= n "it is too small"] {
  %y = loop.nest "copy" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i] : f32
    loop.yield none %a at [i]
  }
  loop.return %y : tensor<?xf32, #sym.dims<n>>
}

// CHECK:      loop.func @f symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 scratch(64) requires [
// CHECK-NEXT:   3 <= n "it is too small" node "pad"] {
loop.func @f symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 scratch(64) requires [3 <= n "it is too small" node "pad"] {
  %a = loop.alloc "a" : memref<4xf32, "local">
}

// CHECK:      ort.op @op_0 kernel @f symbols [n] scratch(64) requires [
// CHECK-NEXT:   3 <= n "it is too small" node "pad"]
ort.op @op_0 kernel @f symbols [n] scratch(64) requires [3 <= n "it is too small" node "pad"] ins ["x" : f32 [n]] outs ["y" : f32 [n]]
