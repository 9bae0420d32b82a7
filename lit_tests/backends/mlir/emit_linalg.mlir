// RUN: igniter-opt %s --emit=linalg --split-input-file | filecheck %s

// A reduction: the result starts as the identity, an axis is an iterator, and subscripts are indexing maps.

// CHECK-LABEL: func.func @rows(%arg0: tensor<?x?xf32>) -> tensor<?x1xf32> attributes {llvm.emit_c_interface}
// CHECK:         %n = tensor.dim %arg0, %c0 : tensor<?x?xf32>
// CHECK:         // nest "sum" schedule [i threads, k]
// CHECK-NEXT:    %e = tensor.empty(%n) : tensor<?x1xf32>
// CHECK-NEXT:    %init = arith.constant 0.0 : f32
// CHECK-NEXT:    %f = linalg.fill ins(%init : f32) outs(%e : tensor<?x1xf32>) -> tensor<?x1xf32>
// CHECK-NEXT:    %sum = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0)>], iterator_types = ["parallel", "reduction"]}
// CHECK-NEXT:        ins(%arg0 : tensor<?x?xf32>) outs(%f : tensor<?x1xf32>) {
// CHECK-NEXT:    ^bb0(%x: f32, %out: f32):
// CHECK-NEXT:      %sum_1 = arith.addf %out, %x : f32
// CHECK-NEXT:      linalg.yield %sum_1 : f32
// CHECK-NEXT:    } -> tensor<?x1xf32> loc("sum")
// CHECK-NEXT:    return %sum : tensor<?x1xf32>
loop.kernel @rows symbols [n, m] (%x: tensor<?x?xf32, #sym.dims<n, m>>) -> (tensor<?x1xf32, #sym.dims<n, 1>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction m] schedule [i threads, k] -> tensor<?x1xf32, #sym.dims<n, 1>> {
    %v = loop.read %x[i, k] : f32
    loop.yield add %v at [i, 0]
  }
  loop.return %s : tensor<?x1xf32, #sym.dims<n, 1>>
}

// -----

// A window: compound subscripts are affine, and the axis of the window has an operand of its extent. A guarded read is
// a conditional.

// CHECK-LABEL: func.func @pool
// CHECK:         %extent = tensor.empty() : tensor<3xi8>
// CHECK:         indexing_maps = [affine_map<(d0, d1) -> (d0 + d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>]
// CHECK-NEXT:        ins(%arg0, %extent : tensor<?xf32>, tensor<3xi8>)
// CHECK:         %k = linalg.index 1 : index
// CHECK:         %v_1 = scf.if %in -> (f32) {
// CHECK:           %v_2 = tensor.extract %arg0[%at_2] : tensor<?xf32>
// CHECK-NEXT:      scf.yield %v_2 : f32
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %v : f32
// CHECK:         arith.maximumf
loop.kernel @pool symbols [n] (%x: tensor<?xf32, #sym.dims<n + 2>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %y = loop.nest "pool" [i: parallel n, k: reduction 3] -> tensor<?xf32, #sym.dims<n>> {
    %v = loop.read %x[i + k] : f32
    %zero = arith.constant 0.0 : f32
    %w = loop.read %x[i + k - 1] if [i + k - 1] else %zero : f32
    %s = arith.addf %v, %w : f32
    loop.yield max %s at [i]
  }
  loop.return %y : tensor<?xf32, #sym.dims<n>>
}

// -----

// A symbol that no dim is becomes an argument; one inside of a dim is solved for. Products are ops of arith.

// CHECK-LABEL: func.func @sizes(%arg0: tensor<?xi8>, %k: index) -> tensor<?xi64>
// CHECK:         %size = tensor.dim %arg0, %c0 : tensor<?xi8>
// CHECK-NEXT:    %at = affine.apply affine_map<(d0) -> (((d0 + 1) floordiv 2) - 1)>(%size)
// CHECK-NEXT:    %at_1 = arith.muli %k, %at : index
// CHECK-NEXT:    %in = arith.cmpi sle, %at_1, %c9 : index
// CHECK-NEXT:    cf.assert %in, "sizes: the \22size\22 is too large"
// CHECK:         arith.index_cast
loop.kernel @sizes symbols [n, k] (%x: tensor<?xui8, #sym.dims<2*n + 1>>) -> (tensor<?xi64, #sym.dims<n*k>>)
    requires [n*k <= 9 "the \"size\" is too large"] {
  %y = loop.nest "places" [i: parallel n*k] -> tensor<?xi64, #sym.dims<n*k>> {
    %p = loop.index i : i64
    loop.yield none %p at [i]
  }
  loop.return %y : tensor<?xi64, #sym.dims<n*k>>
}

// -----

// Subscripts that no indexing map of a result can hold become loops.

// CHECK-LABEL: func.func @shifted
// CHECK:         %f = linalg.fill ins(%init : f32)
// CHECK-NEXT:    %t_1 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %f) -> (tensor<?xf32>) {
// CHECK-NEXT:      %v = tensor.extract %arg0[%i] : tensor<?xf32>
// CHECK-NEXT:      %at_1 = affine.apply affine_map<(d0) -> (d0 + 1)>(%i)
// CHECK-NEXT:      %t_2 = tensor.insert %v into %t[%at_1] : tensor<?xf32>
// CHECK-NEXT:      scf.yield %t_2 : tensor<?xf32>
loop.kernel @shifted symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n + 1>>) {
  %y = loop.nest "shift" [i: parallel n] -> tensor<?xf32, #sym.dims<n + 1>> {
    %v = loop.read %x[i] : f32
    loop.yield none %v at [i + 1] else 1.0 : f32
  }
  loop.return %y : tensor<?xf32, #sym.dims<n + 1>>
}

// -----

// A variant is a branch; a view is a reshape.

// CHECK-LABEL: func.func @views
// CHECK:         %in = arith.cmpi sle, %n, %c1 : index
// CHECK-NEXT:    %one = scf.if %in -> (tensor<?xi16>) {
// CHECK-NEXT:      %at = affine.apply affine_map<(d0) -> (2*d0)>(%n)
// CHECK-NEXT:      %shape = tensor.from_elements %at : tensor<1xindex>
// CHECK-NEXT:      %r = tensor.reshape %arg0(%shape) : (tensor<?x2xi16>, tensor<1xindex>) -> tensor<?xi16>
// CHECK-NEXT:      scf.yield %r : tensor<?xi16>
// CHECK-NEXT:    } else {
// CHECK:           linalg.generic
loop.kernel @views symbols [n] (%x: tensor<?x2xi16, #sym.dims<n, 2>>) -> (tensor<?xi16, #sym.dims<2*n>>) {
  %y = loop.nest "copy" [i: parallel 2*n] -> tensor<?xi16, #sym.dims<2*n>> {
    %v = loop.read %x[i floordiv 2, i mod 2] : i16
    loop.yield none %v at [i]
  }
  loop.return %y : tensor<?xi16, #sym.dims<2*n>>
} variants {
  loop.kernel @one symbols [n] (%x: tensor<?x2xi16, #sym.dims<n, 2>>) -> (tensor<?xi16, #sym.dims<2*n>>) when n <= 1 {
    %y = loop.view %x : tensor<?x2xi16, #sym.dims<n, 2>> to tensor<?xi16, #sym.dims<2*n>>
    loop.return %y : tensor<?xi16, #sym.dims<2*n>>
  }
}

// -----

// A procedure is loops that carry the buffers that they write.

// CHECK-LABEL: func.func @cumsum
// CHECK:         // procedure "cumsum"
// CHECK:         %t_1 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %e) -> (tensor<?x8xf32>) {
// CHECK:           %t_5:2 = scf.for %k = %c0 to %c8 step %c1 iter_args(%t_3 = %t_2, %t_4 = %t) -> (tensor<f32>, tensor<?x8xf32>) {
// CHECK:             tensor.insert %sum into %t_3[] : tensor<f32>
// CHECK:             scf.yield %t_6, %t_7 : tensor<f32>, tensor<?x8xf32>
// CHECK:           scf.yield %t_5#1 : tensor<?x8xf32>
loop.kernel @cumsum symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
  %y = loop.procedure "cumsum" [i: parallel n] (%a = %x) -> (%o : tensor<?x8xf32, #sym.dims<n, 8>>) {
    %sum = loop.alloc "sum" : memref<f32, "register">
    %zero = arith.constant 0.0 : f32
    loop.store %zero, %sum[]
    loop.for k = 0 to 8 sequential {
      %v = loop.load %a[i, k] : f32
      loop.accumulate add %v, %sum[]
      %s = loop.load %sum[] : f32
      loop.store %s, %o[i, k]
    }
  }
  loop.return %y : tensor<?x8xf32, #sym.dims<n, 8>>
}
