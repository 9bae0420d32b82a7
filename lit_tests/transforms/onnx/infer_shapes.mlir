// RUN: igniter-opt %s --split-input-file -p infer-shapes | filecheck %s

// Shape arithmetic: what computes the target of a Reshape is evaluated, and noted on the Reshape.

// CHECK-LABEL: @arithmetic
// CHECK: onnx.Reshape
// CHECK-SAME: igniter.values = {"1" = #sym.dims<batch, 2, 4>}
// CHECK-SAME: -> tensor<?x2x4xf32, #sym.dims<batch, 2, 4>>
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @arithmetic(%x: tensor<?x8xf32, #sym.dims<batch, 8>>) {
    %zero = onnx.Constant() {value = #onnx.tensor<1xi64, [0]>} : () -> tensor<1xi64>
    %rest = onnx.Constant() {value = #onnx.tensor<2xi64, [2, 4]>} : () -> tensor<2xi64>
    %s = onnx.Shape(%x) : (tensor<?x8xf32, #sym.dims<batch, 8>>) -> tensor<*xi64>
    %b = onnx.Gather(%s, %zero) : (tensor<*xi64>, tensor<1xi64>) -> tensor<*xi64>
    %t = onnx.Concat(%b, %rest) {axis = 0 : i64} : (tensor<*xi64>, tensor<2xi64>) -> tensor<*xi64>
    %y = onnx.Reshape(%x, %t) : (tensor<?x8xf32, #sym.dims<batch, 8>>, tensor<*xi64>) -> tensor<*xf32>
    onnx.return %y : tensor<*xf32>
  }
}

// -----

// A position table of 512 rows, cut to the sequence and added: the sum says that the sequence fits.

// CHECK-LABEL: @position
// CHECK-SAME: igniter.assumptions = [#sym.requirement<min(512, seq) == seq "its dims are inconsistent" node "Add">]
// CHECK: onnx.Add
// CHECK-SAME: -> tensor<?x?xf32, #sym.dims<batch, seq>>
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @position(%x: tensor<?x?xf32, #sym.dims<batch, seq>>, %table: tensor<1x512xf32>) {
    %zero = onnx.Constant() {value = #onnx.tensor<1xi64, [0]>} : () -> tensor<1xi64>
    %one = onnx.Constant() {value = #onnx.tensor<1xi64, [1]>} : () -> tensor<1xi64>
    %s = onnx.Shape(%x) {start = 1 : i64} : (tensor<?x?xf32, #sym.dims<batch, seq>>) -> tensor<*xi64>
    %cut = onnx.Slice(%table, %zero, %s, %one) : (tensor<1x512xf32>, tensor<1xi64>, tensor<*xi64>, tensor<1xi64>) -> tensor<*xf32>
    %y = onnx.Add(%x, %cut) : (tensor<?x?xf32, #sym.dims<batch, seq>>, tensor<*xf32>) -> tensor<*xf32>
    onnx.return %y : tensor<*xf32>
  }
}

// -----

// MatMul says that two dims are equal, wherever they came from; the first input's name stays.

// CHECK-LABEL: @equal
// CHECK-SAME: %b: tensor<?x4xf32, #sym.dims<k, 4>>
// CHECK: onnx.Relu
// CHECK-SAME: -> tensor<?x4xf32, #sym.dims<k, 4>>
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @equal(%a: tensor<3x?xf32, #sym.dims<3, k>>, %b: tensor<?x4xf32, #sym.dims<other, 4>>) {
    %r = onnx.Relu(%b) : (tensor<?x4xf32, #sym.dims<other, 4>>) -> tensor<*xf32>
    %y = onnx.MatMul(%a, %b) : (tensor<3x?xf32, #sym.dims<3, k>>, tensor<?x4xf32, #sym.dims<other, 4>>) -> tensor<*xf32>
    onnx.return %y, %r : tensor<*xf32>, tensor<*xf32>
  }
}

// -----

// Two symbols that broadcast: either may be 1, so the result is neither.

// CHECK-LABEL: @broadcast
// CHECK: onnx.Add
// CHECK-SAME: -> tensor<?xf32, #sym.dims<[[D:add_[0-9]+]]>>
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @broadcast(%a: tensor<?xf32, #sym.dims<n>>, %b: tensor<?xf32, #sym.dims<m>>) {
    %y = onnx.Add(%a, %b) : (tensor<?xf32, #sym.dims<n>>, tensor<?xf32, #sym.dims<m>>) -> tensor<*xf32>
    onnx.return %y : tensor<*xf32>
  }
}

// -----

// A dim that depends on the data is a fresh symbol; an unknown rank stays unknown.

// CHECK-LABEL: @unknown
// CHECK: onnx.NonZero
// CHECK-SAME: -> tensor<2x?xi64, #sym.dims<2, [[N:nonzero_1]]>>
// CHECK: onnx.Relu
// CHECK-SAME: -> tensor<*xf32>
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @unknown(%a: tensor<3x4xf32>, %b: tensor<*xf32>) {
    %n = onnx.NonZero(%a) : (tensor<3x4xf32>) -> tensor<*xi64>
    %y = onnx.Relu(%b) : (tensor<*xf32>) -> tensor<*xf32>
    onnx.return %n, %y : tensor<*xi64>, tensor<*xf32>
  }
}

// -----

// Branches of an If that agree on a dim, and do not on another; what one branch requires binds nothing outside.

// CHECK-LABEL: @branches
// CHECK-SAME: tensor<?x?xf32, #sym.dims<n, m>>
// CHECK: onnx.If
// CHECK: }) : (tensor<i1>) -> tensor<?x?xf32, #sym.dims<n, if_0_1>>
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @branches(%c: tensor<i1>, %x: tensor<?x?xf32, #sym.dims<n, m>>, %w: tensor<4x5xf32>) {
    %y = onnx.If(%c) <{graphs = ["then_branch", "else_branch"]}> ({
      %t = onnx.MatMul(%x, %w) : (tensor<?x?xf32, #sym.dims<n, m>>, tensor<4x5xf32>) -> tensor<*xf32>
      onnx.return %t : tensor<*xf32>
    }, {
      %e = onnx.Relu(%x) : (tensor<?x?xf32, #sym.dims<n, m>>) -> tensor<*xf32>
      onnx.return %e : tensor<*xf32>
    }) : (tensor<i1>) -> tensor<*xf32>
    onnx.return %y : tensor<*xf32>
  }
}

// -----

// A Loop that appends to what it carries: the carried dim changes, and the scan output has a row for each trip.

// CHECK-LABEL: @loop
// CHECK: onnx.Loop
// CHECK: ^{{.*}}(%{{.*}}: tensor<i64>, %{{.*}}: tensor<i1>, %{{.*}}: tensor<?x2xf32, #sym.dims<loop_in_0_0, 2>>)
// CHECK: -> (tensor<?x2xf32, #sym.dims<loop_out_0_0, 2>>, tensor<7x1x2xf32>)
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @loop(%x: tensor<1x2xf32>) {
    %trips = onnx.Constant() {value = #onnx.tensor<i64, [7]>} : () -> tensor<i64>
    %true = onnx.Constant() {value = #onnx.tensor<i1, [true]>} : () -> tensor<i1>
    %y, %z = onnx.Loop(%trips, %true, %x) <{graphs = ["body"]}> ({
    ^bb0(%i: tensor<i64>, %go: tensor<i1>, %carried: tensor<*xf32>):
      %more = onnx.Concat(%carried, %x) {axis = 0 : i64} : (tensor<*xf32>, tensor<1x2xf32>) -> tensor<*xf32>
      %row = onnx.Relu(%x) : (tensor<1x2xf32>) -> tensor<*xf32>
      onnx.return %go, %more, %row : tensor<i1>, tensor<*xf32>, tensor<*xf32>
    }) : (tensor<i64>, tensor<i1>, tensor<1x2xf32>) -> (tensor<*xf32>, tensor<*xf32>)
    onnx.return %y, %z : tensor<*xf32>, tensor<*xf32>
  }
}

// -----

// A Concat's first input that is always empty: the result has its other dims only where all inputs are empty, so the dim
// is a fresh symbol. An empty input that is not the first changes nothing.

// CHECK-LABEL: @empty_first
// CHECK: onnx.Concat(%e, %x)
// CHECK-SAME: -> tensor<1x?xf32, #sym.dims<1, concat>>
// CHECK: onnx.Concat(%x, %e)
// CHECK-SAME: -> tensor<1x?xf32, #sym.dims<1, n>>
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @empty_first(%e: tensor<0x2xf32>, %x: tensor<1x?xf32, #sym.dims<1, n>>) {
    %y = onnx.Concat(%e, %x) {axis = 0 : i64} : (tensor<0x2xf32>, tensor<1x?xf32, #sym.dims<1, n>>) -> tensor<*xf32>
    %z = onnx.Concat(%x, %e) {axis = 0 : i64} : (tensor<1x?xf32, #sym.dims<1, n>>, tensor<0x2xf32>) -> tensor<*xf32>
    onnx.return %y, %z : tensor<*xf32>, tensor<*xf32>
  }
}

// -----

// `torch.arange(n)` as PyTorch's exporter writes it: the bounds are float constants that are cast to the type of `n`.
// The end of its slices is the largest int64, through a Cast; lists of one number have the type of a scalar.

// CHECK-LABEL: @arange
// CHECK: onnx.Range
// CHECK-SAME: -> tensor<?xi64, #sym.dims<seq>>
// CHECK: onnx.Slice
// CHECK-SAME: -> tensor<?xi64, #sym.dims<seq>>
// CHECK: onnx.Expand
// CHECK-SAME: -> tensor<1x?xi64, #sym.dims<1, seq>>
builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 20 : i64}}} {
  onnx.graph @arange(%x: tensor<?x?xf32, #sym.dims<batch, seq>>) {
    %s = onnx.Shape(%x) {start = 1 : i64, end = 2 : i64} : (tensor<?x?xf32, #sym.dims<batch, seq>>) -> tensor<*xi64>
    %n = onnx.Squeeze(%s) : (tensor<*xi64>) -> tensor<i64>
    %zero = onnx.Constant() {value = #onnx.tensor<f32, [0.0]>} : () -> tensor<f32>
    %one = onnx.Constant() {value = #onnx.tensor<f32, [1.0]>} : () -> tensor<f32>
    %start = onnx.CastLike(%zero, %n) : (tensor<f32>, tensor<i64>) -> tensor<*xi64>
    %step = onnx.CastLike(%one, %n) : (tensor<f32>, tensor<i64>) -> tensor<*xi64>
    %r = onnx.Range(%start, %n, %step) : (tensor<*xi64>, tensor<i64>, tensor<*xi64>) -> tensor<*xi64>
    %largest = onnx.Constant() {value = #onnx.tensor<1xi64, [9223372036854775807]>} : () -> tensor<1xi64>
    %end = onnx.Cast(%largest) {to = 7 : i64} : (tensor<1xi64>) -> tensor<*xi64>
    %from = onnx.Constant() {value_ints = [0 : i64]} : () -> tensor<i64>
    %y = onnx.Slice(%r, %from, %end) : (tensor<*xi64>, tensor<i64>, tensor<*xi64>) -> tensor<*xi64>
    %rows = onnx.Constant() {value_ints = [1 : i64]} : () -> tensor<i64>
    %target = onnx.Concat(%rows, %s) {axis = 0 : i64} : (tensor<i64>, tensor<*xi64>) -> tensor<*xi64>
    %z = onnx.Expand(%y, %target) : (tensor<*xi64>, tensor<*xi64>) -> tensor<*xi64>
    onnx.return %z : tensor<*xi64>
  }
}

// -----

// A float constant that is no integer of 32 bits says nothing of a size; a fraction is cut off.

// CHECK-LABEL: @odd_floats
// CHECK: onnx.ConstantOfShape
// CHECK-SAME: -> tensor<2xf32>
// CHECK: onnx.ConstantOfShape
// CHECK-SAME: -> tensor<?xf32, #sym.dims<constant_0>>
builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 20 : i64}}} {
  onnx.graph @odd_floats(%x: tensor<f32>) {
    %half = onnx.Constant() {value = #onnx.tensor<1xf32, [2.5]>} : () -> tensor<1xf32>
    %far = onnx.Constant() {value = #onnx.tensor<1xf32, [3.0e+20]>} : () -> tensor<1xf32>
    %two = onnx.Cast(%half) {to = 7 : i64} : (tensor<1xf32>) -> tensor<*xi64>
    %what = onnx.Cast(%far) {to = 7 : i64} : (tensor<1xf32>) -> tensor<*xi64>
    %y = onnx.ConstantOfShape(%two) : (tensor<*xi64>) -> tensor<*xf32>
    %z = onnx.ConstantOfShape(%what) : (tensor<*xi64>) -> tensor<*xf32>
    onnx.return %y, %z : tensor<*xf32>, tensor<*xf32>
  }
}
