// RUN: igniter-opt %s -p abstract-dims --split-input-file | filecheck %s
// RUN: igniter-opt %s -p abstract-dims --split-input-file --emit=none --remarks 2>&1 | filecheck %s --check-prefix=REMARKS

// A kernel that knows a height only as what halving left of it has that for a symbol. A quotient of the quotient is one of
// the symbol; what only told the height is no operand any more, and what the graph assumes of it is not checked here.

// CHECK-LABEL: onnx.graph @halved
// CHECK:       fusion.region @r0 (%a = %x : {{[^,]*, [^,]*}}, 4>>) kernel @r0
// CHECK:       loop.kernel @r0 symbols [s0] (%0: tensor<?x4xf32, #sym.dims<s0 + 2, 4>>) -> (tensor<?x4xf32, #sym.dims<(s0 floordiv 2), 4>>) requires [
// CHECK-NEXT:      1 <= (s0 floordiv 2) "it is too small" node 0] typical [s0 = 8] {
// CHECK:         loop.nest "relu" [i: parallel (s0 floordiv 2), j: parallel 4]
// CHECK-NEXT:      loop.read %0[2*i + 1, j] : f32
// REMARKS: remark: abstract-dims: 'r0' applied: computed dims become symbols: ((h + 1) floordiv 2) is s0
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @halved(%x: tensor<?x4xf32, #sym.dims<((h + 1) floordiv 2) + 2, 4>>, %h: tensor<?xf32, #sym.dims<h>>) attributes {graph_name = "g", input_names = ["x", "h"], output_names = ["y"]} {
    %y = fusion.region @r0 (%a = %x : tensor<?x4xf32, #sym.dims<((h + 1) floordiv 2) + 2, 4>>, %b = %h : tensor<?xf32, #sym.dims<h>>) kernel @r0 -> (tensor<?x4xf32, #sym.dims<(h + 1) floordiv 4, 4>>) {
      %0 = onnx.Relu(%a) : (tensor<?x4xf32, #sym.dims<((h + 1) floordiv 2) + 2, 4>>) -> tensor<?x4xf32, #sym.dims<(h + 1) floordiv 4, 4>>
      fusion.yield %0 : tensor<?x4xf32, #sym.dims<(h + 1) floordiv 4, 4>>
    }
    onnx.return %y : tensor<?x4xf32, #sym.dims<(h + 1) floordiv 4, 4>>
  }
  loop.kernel @r0 symbols [h] (%0: tensor<?x4xf32, #sym.dims<((h + 1) floordiv 2) + 2, 4>>, %1: tensor<?xf32, #sym.dims<h>>) -> (tensor<?x4xf32, #sym.dims<(h + 1) floordiv 4, 4>>) requires [
      1 <= (h + 1) floordiv 4 "it is too small" node 0, 1 <= h "the graph assumes it" node "x"] typical [h = 15] {
    %2 = loop.nest "relu" [i: parallel (h + 1) floordiv 4, j: parallel 4] -> tensor<?x4xf32, #sym.dims<(h + 1) floordiv 4, 4>> {
      %3 = loop.read %0[2*i + 1, j] : f32
      loop.yield none %3 at [i, j]
    }
    loop.return %2 : tensor<?x4xf32, #sym.dims<(h + 1) floordiv 4, 4>>
  }
}

// -----

// Nothing is abstracted where the kernel needs the height as well: it reads a tensor of that.

// CHECK-LABEL: loop.kernel @both
// CHECK-SAME:  symbols [h]
// CHECK:       i: parallel ((h + 1) floordiv 2)
builtin.module {
  loop.kernel @both symbols [h] (%0: tensor<?xf32, #sym.dims<(h + 1) floordiv 2>>, %1: tensor<?xf32, #sym.dims<h>>) -> (tensor<?xf32, #sym.dims<(h + 1) floordiv 2>>) {
    %2 = loop.nest "add" [i: parallel (h + 1) floordiv 2] -> tensor<?xf32, #sym.dims<(h + 1) floordiv 2>> {
      %3 = loop.read %0[i] : f32
      %4 = loop.read %1[i] if [h - 1 - i] : f32
      %5 = arith.addf %3, %4 : f32
      loop.yield none %5 at [i]
    }
    loop.return %2 : tensor<?xf32, #sym.dims<(h + 1) floordiv 2>>
  }
}

// -----

// Where what is left would tell too little (in a product with the width, which only the idle operand tells), that stays.

// CHECK-LABEL: loop.kernel @product
// CHECK-SAME:  symbols [h, w, s0] (%0: tensor<?xf32, #sym.dims<s0*w + s0>>, %1: tensor<?x?xf32, #sym.dims<h, w>>)
builtin.module {
  loop.kernel @product symbols [h, w] (%0: tensor<?xf32, #sym.dims<w*((h + 1) floordiv 2) + ((h + 1) floordiv 2)>>, %1: tensor<?x?xf32, #sym.dims<h, w>>) -> (tensor<?xf32, #sym.dims<w*((h + 1) floordiv 2) + ((h + 1) floordiv 2)>>) {
    %2 = loop.nest "relu" [i: parallel w*((h + 1) floordiv 2) + ((h + 1) floordiv 2)] -> tensor<?xf32, #sym.dims<w*((h + 1) floordiv 2) + ((h + 1) floordiv 2)>> {
      %3 = loop.read %0[i] : f32
      loop.yield none %3 at [i]
    }
    loop.return %2 : tensor<?xf32, #sym.dims<w*((h + 1) floordiv 2) + ((h + 1) floordiv 2)>>
  }
}

// -----

// Height and width become symbols one after the other, and the operand that told both goes with the second.

// CHECK-LABEL: loop.kernel @both
// CHECK-SAME:  symbols [s0, s1] (%{{[^:]*}}: tensor<?x?xf32, #sym.dims<s0 + 2, s1 + 2>>) -> (tensor<?x?xf32, #sym.dims<s0 + 2, s1 + 2>>)
builtin.module {
  loop.kernel @both symbols [h, w] (%0: tensor<?x?xf32, #sym.dims<(h + 1) floordiv 2 + 2, (w + 1) floordiv 2 + 2>>, %1: tensor<?x?xf32, #sym.dims<h, w>>) -> (tensor<?x?xf32, #sym.dims<(h + 1) floordiv 2 + 2, (w + 1) floordiv 2 + 2>>) {
    %2 = loop.nest "relu" [i: parallel (h + 1) floordiv 2 + 2, j: parallel (w + 1) floordiv 2 + 2] -> tensor<?x?xf32, #sym.dims<(h + 1) floordiv 2 + 2, (w + 1) floordiv 2 + 2>> {
      %3 = loop.read %0[i, j] : f32
      loop.yield none %3 at [i, j]
    }
    loop.return %2 : tensor<?x?xf32, #sym.dims<(h + 1) floordiv 2 + 2, (w + 1) floordiv 2 + 2>>
  }
}

// -----

// What the graph assumes of a symbol that goes with the operand, without being in a dim of another, is not the kernel's.

// CHECK-LABEL: loop.kernel @assumed
// CHECK-SAME:  symbols [s0]
// CHECK-NOT:   other node
builtin.module {
  loop.kernel @assumed symbols [h, w] (%0: tensor<?xf32, #sym.dims<(h + 1) floordiv 2>>, %1: tensor<?x?xf32, #sym.dims<h, w>>) -> (tensor<?xf32, #sym.dims<(h + 1) floordiv 2>>) requires [
    (w + 1) floordiv 2 == 1 "its dims are inconsistent" node "other node"] {
    %2 = loop.nest "relu" [i: parallel (h + 1) floordiv 2] -> tensor<?xf32, #sym.dims<(h + 1) floordiv 2>> {
      %3 = loop.read %0[i] : f32
      loop.yield none %3 at [i]
    }
    loop.return %2 : tensor<?xf32, #sym.dims<(h + 1) floordiv 2>>
  }
}
