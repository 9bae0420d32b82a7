// RUN: igniter-opt %s -p inline-regions --split-input-file | filecheck %s
// RUN: igniter-opt %s -p inline-regions --split-input-file --check-each --emit=none 2>&1 | filecheck %s --check-prefix=CHECKED

// Nodes take the place of their region, in order, wired to what the region read and to what reads it.

// CHECK:      onnx.graph @main(%x: tensor<4xf32>, %z: tensor<4xf32>)
// CHECK-NEXT:   %[[E:.*]] = onnx.Exp(%x)
// CHECK-NEXT:   %[[A:.*]] = onnx.Add(%[[E]], %z)
// CHECK-NEXT:   %[[N:.*]] = onnx.Neg(%[[A]])
// CHECK-NEXT:   onnx.return %[[N]], %[[E]]
// CHECKED: inline-regions: 1 results agree

builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<4xf32>, %z: tensor<4xf32>) attributes {input_names = ["x", "z"], output_names = ["y", "e"]} {
    %r, %s = fusion.region @r0 (%a = %x : tensor<4xf32>, %b = %z : tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = onnx.Exp(%a) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = onnx.Add(%0, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      fusion.yield %1, %0 : tensor<4xf32>, tensor<4xf32>
    }
    %y = onnx.Neg(%r) : (tensor<4xf32>) -> tensor<4xf32>
    onnx.return %y, %s : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// Programs are taken apart first. A shape that was an expression is computed from what the program reads.

// CHECK:      onnx.graph @main(%x: tensor<?x2xf32, #sym.dims<n, 2>>)
// CHECK:        %[[B:.*]] = onnx.Exp(%x)
// CHECK:        onnx.Shape(%x)
// CHECK:        %[[E:.*]] = onnx.Reshape(%[[B]],
// CHECK-NEXT:   onnx.return %[[E]]
// CHECKED: inline-regions: 1 results agree

builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<?x2xf32, #sym.dims<n, 2>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %y = fusion.program @p0 (%a = %x : tensor<?x2xf32, #sym.dims<n, 2>>) -> (tensor<?xf32, #sym.dims<2*n>>) {
      %b = fusion.region @r0 (%c = %a : tensor<?x2xf32, #sym.dims<n, 2>>) -> (tensor<?x2xf32, #sym.dims<n, 2>>) {
        %0 = onnx.Exp(%c) : (tensor<?x2xf32, #sym.dims<n, 2>>) -> tensor<?x2xf32, #sym.dims<n, 2>>
        fusion.yield %0 : tensor<?x2xf32, #sym.dims<n, 2>>
      }
      %s = fusion.dims [2*n] : tensor<1xi64>
      %e = onnx.Reshape(%b, %s) : (tensor<?x2xf32, #sym.dims<n, 2>>, tensor<1xi64>) -> tensor<?xf32, #sym.dims<2*n>>
      fusion.yield %e : tensor<?xf32, #sym.dims<2*n>>
    }
    onnx.return %y : tensor<?xf32, #sym.dims<2*n>>
  }
}

// -----

// A region on a packed weight gets the plain one, and for `--check-each` runs on its own: nodes unpack its operand.

// CHECK:      %[[W:.*]] = onnx.Constant
// CHECK-NEXT: %[[T:.*]] = onnx.Transpose(%[[W]])
// CHECK-NEXT: %[[Y:.*]] = onnx.MatMul(%x, %[[T]])
// CHECK-NEXT: onnx.return %[[Y]]
// CHECKED: inline-regions: 1 results agree

builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<2x3xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() {value = #onnx.tensor<2x3xf32, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]>} : () -> tensor<2x3xf32>
    %p = fusion.pack %w [0 floordiv 4, 1, 0 mod 4] : tensor<2x3xf32> to tensor<1x3x4xf32>
    %y = fusion.region @r0 (%a = %x : tensor<2x3xf32>, %b = %p : tensor<1x3x4xf32>) -> (tensor<2x2xf32>) {
      %c = fusion.unpack %b [0 floordiv 4, 1, 0 mod 4] : tensor<1x3x4xf32> to tensor<2x3xf32>
      %t = onnx.Transpose(%c) {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
      %0 = onnx.MatMul(%a, %t) : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
      fusion.yield %0 : tensor<2x2xf32>
    }
    onnx.return %y : tensor<2x2xf32>
  }
}

// -----

// The tables of a node go with its region, and so do the constants that nothing else reads.

// CHECK:      onnx.graph @main(%x: tensor<4xf32>)
// CHECK-NEXT:   %[[Y:.*]] = onnx.Relu(%x)
// CHECK-NEXT:   onnx.return %[[Y]]
// CHECKED: inline-regions: 1 results agree

builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<4xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    %r = onnx.Constant() <{initializer_name = "roots"}> {value = #onnx.tensor<3xi32, [0, 7, 14]>} : () -> tensor<3xi32>
    %y = fusion.region @r0 (%a = %x : tensor<4xf32>, %b = %r : tensor<3xi32>) -> (tensor<4xf32>) {
      fusion.tables ["roots"] %b : tensor<3xi32>
      %0 = onnx.Relu(%a) : (tensor<4xf32>) -> tensor<4xf32>
      fusion.yield %0 : tensor<4xf32>
    }
    onnx.return %y : tensor<4xf32>
  }
}

// -----

// A quotient that is a dim of an operand is read from there, where no operand has its symbol.

// CHECK:      onnx.graph @main(%x: tensor<?xf32, #sym.dims<(n floordiv 9)>>)
// CHECK:        %[[SHAPE:.*]] = onnx.Shape(%x)
// CHECK:        %[[Q:.*]] = onnx.Gather(%[[SHAPE]],
// CHECK:        onnx.Concat(%[[Q]],
// CHECKED: inline-regions: 1 results agree

builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<?xf32, #sym.dims<(n floordiv 9)>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %y = fusion.region @r0 (%a = %x : tensor<?xf32, #sym.dims<(n floordiv 9)>>) -> (tensor<?x1xf32, #sym.dims<(n floordiv 9), 1>>) {
      %s = fusion.dims [(n floordiv 9), 1] : tensor<2xi64>
      %0 = onnx.Reshape(%a, %s) : (tensor<?xf32, #sym.dims<(n floordiv 9)>>, tensor<2xi64>) -> tensor<?x1xf32, #sym.dims<(n floordiv 9), 1>>
      fusion.yield %0 : tensor<?x1xf32, #sym.dims<(n floordiv 9), 1>>
    }
    onnx.return %y : tensor<?x1xf32, #sym.dims<(n floordiv 9), 1>>
  }
}
