// RUN: igniter-opt %s -p read-past-views --split-input-file | filecheck %s
// RUN: igniter-opt %s -p read-past-views --split-input-file | igniter-opt --split-input-file | filecheck %s

// A dim of one is elsewhere in the view; guards and what is read besides stay as they are.

// CHECK-LABEL: loop.kernel @moved
// CHECK:         %h = loop.nest "sum"
// CHECK-NOT:     loop.view
// CHECK:         %y = loop.nest "add" [i: parallel b, j: parallel 2, k: parallel 16]
// CHECK-NEXT:      loop.read %h[i, j, 0, k] if [i - 1] : f32
// CHECK-NEXT:      loop.read %x[i, j, k, 0] : f32
loop.kernel @moved symbols [b] (%x: tensor<?x2x16x8xf32, #sym.dims<b, 2, 16, 8>>) -> (tensor<?x2x16xf32, #sym.dims<b, 2, 16>>) {
  %h = loop.nest "sum" [i: parallel b, j: parallel 2, k: parallel 16, r: reduction 8] -> tensor<?x2x1x16xf32, #sym.dims<b, 2, 1, 16>> {
    %a = loop.read %x[i, j, k, r] : f32
    loop.yield add %a at [i, j, 0, k]
  }
  %v = loop.view %h : tensor<?x2x1x16xf32, #sym.dims<b, 2, 1, 16>> to tensor<?x1x2x16xf32, #sym.dims<b, 1, 2, 16>>
  %w = loop.view %v : tensor<?x1x2x16xf32, #sym.dims<b, 1, 2, 16>> to tensor<?x2x16x1xf32, #sym.dims<b, 2, 16, 1>>
  %y = loop.nest "add" [i: parallel b, j: parallel 2, k: parallel 16] -> tensor<?x2x16xf32, #sym.dims<b, 2, 16>> {
    %a = loop.read %w[i, j, k, 0] if [i - 1] : f32
    %c = loop.read %x[i, j, k, 0] : f32
    %s = arith.addf %a, %c : f32
    loop.yield none %s at [i, j, k]
  }
  loop.return %y : tensor<?x2x16xf32, #sym.dims<b, 2, 16>>
}

// -----

// Dims that are joined are another order of elements: such a view stays, and so does one that is returned.

// CHECK-LABEL: loop.kernel @joined
// CHECK:         %v = loop.view %h
// CHECK:         loop.read %v[i, j] : f32
// CHECK:         %u = loop.view %h
// CHECK:         loop.return %y, %u
loop.kernel @joined symbols [b] (%x: tensor<?x2x16xf32, #sym.dims<b, 2, 16>>) -> (tensor<?x32xf32, #sym.dims<b, 32>>, tensor<?x1x2x16xf32, #sym.dims<b, 1, 2, 16>>) {
  %h = loop.nest "exp" [i: parallel b, j: parallel 2, k: parallel 16] -> tensor<?x2x16xf32, #sym.dims<b, 2, 16>> {
    %a = loop.read %x[i, j, k] : f32
    %e = math.exp %a : f32
    loop.yield none %e at [i, j, k]
  }
  %v = loop.view %h : tensor<?x2x16xf32, #sym.dims<b, 2, 16>> to tensor<?x32xf32, #sym.dims<b, 32>>
  %y = loop.nest "neg" [i: parallel b, j: parallel 32] -> tensor<?x32xf32, #sym.dims<b, 32>> {
    %a = loop.read %v[i, j] : f32
    %n = arith.negf %a : f32
    loop.yield none %n at [i, j]
  }
  %u = loop.view %h : tensor<?x2x16xf32, #sym.dims<b, 2, 16>> to tensor<?x1x2x16xf32, #sym.dims<b, 1, 2, 16>>
  loop.return %y, %u : tensor<?x32xf32, #sym.dims<b, 32>>, tensor<?x1x2x16xf32, #sym.dims<b, 1, 2, 16>>
}
