// RUN: igniter-opt %s -p "hoist-selections" --split-input-file | filecheck %s
// RUN: igniter-opt %s -p "hoist-selections" --split-input-file --remarks 2>&1 >/dev/null | filecheck %s --check-prefix=REMARK

// The last position of a decoder: both operands of the residual get one row, and the Gather only removes the dim.

// REMARK: hoist-selections: 'last' applied: 3 nodes compute fewer rows

// CHECK-LABEL: @last
// CHECK:       %h = onnx.Sigmoid(%x)
// CHECK:       [[A:%.*]] = onnx.Gather(%h, {{.*}}) {axis = 1 : i64} : {{.*}} -> tensor<?x1x4xf32, #sym.dims<b, 1, 4>>
// CHECK:       %p = onnx.MatMul([[A]], %w) {{.*}} -> tensor<?x1x4xf32
// CHECK:       [[R:%.*]] = onnx.Gather(%r, {{.*}}) {axis = 1 : i64} : {{.*}} -> tensor<?x1x4xf32
// CHECK:       %s = onnx.Add(%p, [[R]]) {{.*}} -> tensor<?x1x4xf32
// CHECK:       %n = onnx.LayerNormalization(%s, %g) {{.*}} -> tensor<?x1x4xf32
// CHECK:       [[ZERO:%.*]] = onnx.Constant() {value = #onnx.tensor<i64, [0]>}
// CHECK:       %y = onnx.Gather(%n, [[ZERO]]) <{node_name = "last"{{.*}} -> tensor<?x4xf32
// CHECK:       onnx.return %y, %h
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @last(%x: tensor<?x?x4xf32, #sym.dims<b, n, 4>>, %r: tensor<?x?x4xf32, #sym.dims<b, n, 4>>) attributes {input_names = ["x", "r"], output_names = ["y", "h"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<4x4xf32, [1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0]>} : () -> tensor<4x4xf32>
    %g = onnx.Constant() <{initializer_name = "g"}> {value = #onnx.tensor<4xf32, [1.0, 2.0, 3.0, 4.0]>} : () -> tensor<4xf32>
    %i = onnx.Constant() {value = #onnx.tensor<i64, [-1]>} : () -> tensor<i64>
    %h = onnx.Sigmoid(%x) : (tensor<?x?x4xf32, #sym.dims<b, n, 4>>) -> tensor<?x?x4xf32, #sym.dims<b, n, 4>>
    %p = onnx.MatMul(%h, %w) : (tensor<?x?x4xf32, #sym.dims<b, n, 4>>, tensor<4x4xf32>) -> tensor<?x?x4xf32, #sym.dims<b, n, 4>>
    %s = onnx.Add(%p, %r) : (tensor<?x?x4xf32, #sym.dims<b, n, 4>>, tensor<?x?x4xf32, #sym.dims<b, n, 4>>) -> tensor<?x?x4xf32, #sym.dims<b, n, 4>>
    %n = onnx.LayerNormalization(%s, %g) : (tensor<?x?x4xf32, #sym.dims<b, n, 4>>, tensor<4xf32>) -> tensor<?x?x4xf32, #sym.dims<b, n, 4>>
    %y = onnx.Gather(%n, %i) <{node_name = "last"}> {axis = 1 : i64} : (tensor<?x?x4xf32, #sym.dims<b, n, 4>>, tensor<i64>) -> tensor<?x4xf32, #sym.dims<b, 4>>
    onnx.return %y, %h : tensor<?x4xf32, #sym.dims<b, 4>>, tensor<?x?x4xf32, #sym.dims<b, n, 4>>
  }
}

// -----

// A Slice keeps the dim, so nothing remains behind the product. An operand of lower rank has another axis.

// CHECK-LABEL: @first
// CHECK:       %axis = onnx.Constant()
// CHECK:       onnx.Constant() {value = #onnx.tensor<1xi64, [2]>}
// CHECK-NEXT:  [[AXIS:%.*]] = onnx.Constant() {value = #onnx.tensor<1xi64, [1]>}
// CHECK:       [[A:%.*]] = onnx.Slice(%x, %{{.*}}, %{{.*}}, [[AXIS]]) {{.*}} -> tensor<?x2x4xf32
// CHECK:       onnx.Constant() {value = #onnx.tensor<1xi64, [2]>}
// CHECK-NEXT:  [[AXIS:%.*]] = onnx.Constant() {value = #onnx.tensor<1xi64, [0]>}
// CHECK:       [[B:%.*]] = onnx.Slice(%r, %{{.*}}, %{{.*}}, [[AXIS]]) {{.*}} -> tensor<2x4xf32>
// CHECK:       %s = onnx.Add([[A]], [[B]]) {{.*}} -> tensor<?x2x4xf32
// CHECK:       %p = onnx.MatMul(%s, %w) {{.*}} -> tensor<?x2x4xf32
// CHECK:       onnx.return %p
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @first(%x: tensor<?x9x4xf32, #sym.dims<b, 9, 4>>, %r: tensor<9x4xf32>) attributes {input_names = ["x", "r"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<4x4xf32, [1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0]>} : () -> tensor<4x4xf32>
    %zero = onnx.Constant() {value = #onnx.tensor<1xi64, [0]>} : () -> tensor<1xi64>
    %two = onnx.Constant() {value = #onnx.tensor<1xi64, [2]>} : () -> tensor<1xi64>
    %axis = onnx.Constant() {value = #onnx.tensor<1xi64, [-2]>} : () -> tensor<1xi64>
    %s = onnx.Add(%x, %r) : (tensor<?x9x4xf32, #sym.dims<b, 9, 4>>, tensor<9x4xf32>) -> tensor<?x9x4xf32, #sym.dims<b, 9, 4>>
    %p = onnx.MatMul(%s, %w) : (tensor<?x9x4xf32, #sym.dims<b, 9, 4>>, tensor<4x4xf32>) -> tensor<?x9x4xf32, #sym.dims<b, 9, 4>>
    %y = onnx.Slice(%p, %zero, %two, %axis) : (tensor<?x9x4xf32, #sym.dims<b, 9, 4>>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2x4xf32, #sym.dims<b, 2, 4>>
    onnx.return %y : tensor<?x2x4xf32, #sym.dims<b, 2, 4>>
  }
}

// -----

// Left: a second reader (%a), elementwise nodes alone (%c), a selection of columns (%e), and more than half of the rows
// (%g).

// CHECK-LABEL: @left
// CHECK:       %a = onnx.MatMul(%x, %w) {{.*}} -> tensor<9x4xf32>
// CHECK-NEXT:  %b = onnx.Gather(%a, %i)
// CHECK-NEXT:  %c = onnx.Relu(%x) {{.*}} -> tensor<9x4xf32>
// CHECK-NEXT:  %d = onnx.Gather(%c, %i)
// CHECK-NEXT:  %e = onnx.MatMul(%x, %w) {{.*}} -> tensor<9x4xf32>
// CHECK-NEXT:  %f = onnx.Gather(%e, %i) {axis = 1 : i64}
// CHECK-NEXT:  %g = onnx.MatMul(%x, %w) {{.*}} -> tensor<9x4xf32>
// CHECK-NEXT:  %h = onnx.Gather(%g, %j)
// CHECK-NEXT:  onnx.return
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @left(%x: tensor<9x4xf32>) attributes {input_names = ["x"], output_names = ["a", "b", "d", "f", "h"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<4x4xf32, [1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0]>} : () -> tensor<4x4xf32>
    %i = onnx.Constant() {value = #onnx.tensor<i64, [0]>} : () -> tensor<i64>
    %j = onnx.Constant() {value = #onnx.tensor<5xi64, [0, 1, 2, 3, 4]>} : () -> tensor<5xi64>
    %a = onnx.MatMul(%x, %w) : (tensor<9x4xf32>, tensor<4x4xf32>) -> tensor<9x4xf32>
    %b = onnx.Gather(%a, %i) : (tensor<9x4xf32>, tensor<i64>) -> tensor<4xf32>
    %c = onnx.Relu(%x) : (tensor<9x4xf32>) -> tensor<9x4xf32>
    %d = onnx.Gather(%c, %i) : (tensor<9x4xf32>, tensor<i64>) -> tensor<4xf32>
    %e = onnx.MatMul(%x, %w) : (tensor<9x4xf32>, tensor<4x4xf32>) -> tensor<9x4xf32>
    %f = onnx.Gather(%e, %i) {axis = 1 : i64} : (tensor<9x4xf32>, tensor<i64>) -> tensor<9xf32>
    %g = onnx.MatMul(%x, %w) : (tensor<9x4xf32>, tensor<4x4xf32>) -> tensor<9x4xf32>
    %h = onnx.Gather(%g, %j) : (tensor<9x4xf32>, tensor<5xi64>) -> tensor<5x4xf32>
    onnx.return %a, %b, %d, %f, %h : tensor<9x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<9xf32>, tensor<5x4xf32>
  }
}
