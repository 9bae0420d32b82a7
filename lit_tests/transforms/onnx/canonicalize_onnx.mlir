// RUN: igniter-opt %s --split-input-file -p canonicalize-onnx | filecheck %s

// Transpose pairs, Casts to the type that is there, Identity.

// CHECK-LABEL: @pairs
// CHECK-NEXT: onnx.return %x
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @pairs(%x: tensor<2x3x4xf32>) {
    %a = onnx.Transpose(%x) {perm = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
    %b = onnx.Transpose(%a) {perm = array<i64: 0, 2, 1>} : (tensor<2x4x3xf32>) -> tensor<2x3x4xf32>
    %c = onnx.Cast(%b) {to = 1 : i64} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %y = onnx.Identity(%c) : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    onnx.return %y : tensor<2x3x4xf32>
  }
}

// -----

// x - 0.0 and x + -0.0 are x; x + 0.0 is not, for x = -0.0. Nor is a product with a 1 that broadcasts.

// CHECK-LABEL: @zeros
// CHECK: %[[Z:.*]] = onnx.Constant
// CHECK: %[[A:.*]] = onnx.Add(%x, %[[Z]])
// CHECK: %[[M:.*]] = onnx.Mul
// CHECK-NEXT: onnx.return %x, %x, %[[A]], %x, %[[M]]
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @zeros(%x: tensor<4xf32>) {
    %p = onnx.Constant() {value = #onnx.tensor<f32, "0x00000000">} : () -> tensor<f32>
    %n = onnx.Constant() {value = #onnx.tensor<f32, "0x00000080">} : () -> tensor<f32>
    %one = onnx.Constant() {value = #onnx.tensor<1xf32, [1.0]>} : () -> tensor<1xf32>
    %ones = onnx.Constant() {value = #onnx.tensor<3x1xf32, [1.0, 1.0, 1.0]>} : () -> tensor<3x1xf32>
    %a = onnx.Sub(%x, %p) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %b = onnx.Add(%n, %x) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
    %c = onnx.Add(%x, %p) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %d = onnx.Mul(%x, %one) : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
    %e = onnx.Mul(%x, %ones) : (tensor<4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
    onnx.return %a, %b, %c, %d, %e : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>
  }
}

// -----

// A pair of Casts is one where the first loses nothing.

// CHECK-LABEL: @casts
// CHECK-NEXT: onnx.Cast(%i) {to = 10 : i64} : (tensor<4xi32>) -> tensor<4xf16>
// CHECK-NEXT: onnx.Cast(%x) {to = 7 : i64}
// CHECK-NEXT: onnx.Cast
// CHECK-NEXT: onnx.Cast
// CHECK-NEXT: onnx.Cast
// CHECK-NEXT: onnx.return
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @casts(%i: tensor<4xi32>, %x: tensor<4xf32>) {
    %a = onnx.Cast(%i) {to = 7 : i64} : (tensor<4xi32>) -> tensor<4xi64>
    %b = onnx.Cast(%a) {to = 6 : i64} : (tensor<4xi64>) -> tensor<4xi32>
    %c = onnx.Cast(%b) {to = 10 : i64} : (tensor<4xi32>) -> tensor<4xf16>
    %d = onnx.Cast(%x) {to = 11 : i64} : (tensor<4xf32>) -> tensor<4xf64>
    %e = onnx.Cast(%d) {to = 7 : i64} : (tensor<4xf64>) -> tensor<4xi64>
    %f = onnx.Cast(%x) {to = 10 : i64} : (tensor<4xf32>) -> tensor<4xf16>
    %g = onnx.Cast(%f) {to = 1 : i64} : (tensor<4xf16>) -> tensor<4xf32>
    %h = onnx.Cast(%i) {to = 1 : i64} : (tensor<4xi32>) -> tensor<4xf32>
    onnx.return %c, %e, %g, %h : tensor<4xf16>, tensor<4xi64>, tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// A computed target of Reshape becomes a constant, 0 for what stays; the shape arithmetic goes.

// CHECK-LABEL: @reshape
// CHECK-NEXT: %[[T:.*]] = onnx.Constant() {value = #onnx.tensor<4xi64, [0, 0, 12, 64]>}
// CHECK-NEXT: %[[Y:.*]] = onnx.Reshape(%x, %[[T]])
// CHECK-NEXT: onnx.return %[[Y]]
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @reshape(%x: tensor<?x?x768xf32, #sym.dims<b, s, 768>>) {
    %heads = onnx.Constant() {value = #onnx.tensor<2xi64, [12, 64]>} : () -> tensor<2xi64>
    %bs = onnx.Shape(%x) {end = 2 : i64} : (tensor<?x?x768xf32, #sym.dims<b, s, 768>>) -> tensor<2xi64>
    %t = onnx.Concat(%bs, %heads) {axis = 0 : i64} : (tensor<2xi64>, tensor<2xi64>) -> tensor<4xi64>
    %y = onnx.Reshape(%x, %t) {igniter.values = {"1" = #sym.dims<b, s, 12, 64>}} : (tensor<?x?x768xf32, #sym.dims<b, s, 768>>, tensor<4xi64>) -> tensor<?x?x12x64xf32, #sym.dims<b, s, 12, 64>>
    onnx.return %y : tensor<?x?x12x64xf32, #sym.dims<b, s, 12, 64>>
  }
}

// -----

// -1 beside a dim that may be 0 does not say the same for an empty tensor: the target stays computed.

// CHECK-LABEL: @empty
// CHECK: onnx.Reshape(%x, %t)
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @empty(%x: tensor<?x4x?xf32, #sym.dims<b, 4, s>>, %t: tensor<2xi64>) {
    %y = onnx.Reshape(%x, %t) {igniter.values = {"1" = #sym.dims<b, 4*s>}} : (tensor<?x4x?xf32, #sym.dims<b, 4, s>>, tensor<2xi64>) -> tensor<?x?xf32, #sym.dims<b, 4*s>>
    onnx.return %y : tensor<?x?xf32, #sym.dims<b, 4*s>>
  }
}

// -----

// A view of a view is one; and none where it comes back to where it began.

// CHECK-LABEL: @views
// CHECK-NEXT: %[[T:.*]] = onnx.Constant() {value = #onnx.tensor<4xi64, [3, 1, 1, -1]>}
// CHECK-NEXT: %[[R:.*]] = onnx.Reshape(%x, %[[T]])
// CHECK-NEXT: onnx.return %[[R]], %x
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @views(%x: tensor<1x3x?xf32, #sym.dims<1, 3, n>>) {
    %t = onnx.Constant() {value = #onnx.tensor<2xi64, [3, -1]>} : () -> tensor<2xi64>
    %zero = onnx.Constant() {value = #onnx.tensor<1xi64, [0]>} : () -> tensor<1xi64>
    %middle = onnx.Constant() {value = #onnx.tensor<2xi64, [1, 2]>} : () -> tensor<2xi64>
    %a = onnx.Reshape(%x, %t) : (tensor<1x3x?xf32, #sym.dims<1, 3, n>>, tensor<2xi64>) -> tensor<3x?xf32, #sym.dims<3, n>>
    %b = onnx.Unsqueeze(%a, %zero) : (tensor<3x?xf32, #sym.dims<3, n>>, tensor<1xi64>) -> tensor<1x3x?xf32, #sym.dims<1, 3, n>>
    %c = onnx.Unsqueeze(%a, %middle) : (tensor<3x?xf32, #sym.dims<3, n>>, tensor<2xi64>) -> tensor<3x1x1x?xf32, #sym.dims<3, 1, 1, n>>
    onnx.return %c, %b : tensor<3x1x1x?xf32, #sym.dims<3, 1, 1, n>>, tensor<1x3x?xf32, #sym.dims<1, 3, n>>
  }
}

// -----

// Range takes scalars; a bound in a tensor of one element is squeezed.

// CHECK-LABEL: @range
// CHECK: %[[N:.*]] = onnx.Squeeze(%n, %{{.*}}) : (tensor<1xi64>, tensor<1xi64>) -> tensor<i64>
// CHECK: onnx.Range(%zero, %[[N]], %one) : (tensor<i64>, tensor<i64>, tensor<i64>)
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @range(%n: tensor<1xi64>) {
    %zero = onnx.Constant() {value = #onnx.tensor<i64, [0]>} : () -> tensor<i64>
    %one = onnx.Constant() {value = #onnx.tensor<i64, [1]>} : () -> tensor<i64>
    %r = onnx.Range(%zero, %n, %one) : (tensor<i64>, tensor<1xi64>, tensor<i64>) -> tensor<?xi64, #sym.dims<r>>
    onnx.return %r : tensor<?xi64, #sym.dims<r>>
  }
}

// -----

// If with a constant condition is its branch; Dropout outside of training is nothing; Where(x, a, a) is a.

// CHECK-LABEL: @control
// CHECK-NEXT: %[[R:.*]] = onnx.Relu(%x)
// CHECK-NEXT: onnx.return %[[R]]
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @control(%x: tensor<4xf32>, %m: tensor<4xi1>) {
    %c = onnx.Constant() {value = #onnx.tensor<i1, [true]>} : () -> tensor<i1>
    %y = onnx.If(%c) <{graphs = ["then_branch", "else_branch"]}> ({
      %t = onnx.Relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
      onnx.return %t : tensor<4xf32>
    }, {
      onnx.return %x : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    %z = onnx.Where(%m, %y, %y) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %d = onnx.Dropout(%z) : (tensor<4xf32>) -> tensor<4xf32>
    onnx.return %d : tensor<4xf32>
  }
}

// -----

// A state that no iteration changes is read from around the loop, and what is left of it is what it was at first.

// CHECK-LABEL: @invariant
// CHECK: %[[Y:.*]] = onnx.Loop(%n, %{{.*}}, %x)
// CHECK-NEXT: ^bb0(%i: tensor<i64>, %c: tensor<i1>, %h: tensor<4xf32>):
// CHECK-NEXT: %[[A:.*]] = onnx.Mul(%h, %w)
// CHECK-NEXT: onnx.return {input_names = ["i", "c", "h"], output_names = ["c", "a"]} %c, %[[A]]
// CHECK: onnx.return %[[Y]], %w
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @invariant(%n: tensor<i64>, %x: tensor<4xf32>, %w: tensor<4xf32>) {
    %none = onnx.NoValue : none
    %y, %v = onnx.Loop(%n, %none, %x, %w) <{graphs = ["body"]}> ({
    ^bb0(%i: tensor<i64>, %c: tensor<i1>, %h: tensor<4xf32>, %k: tensor<4xf32>):
      %a = onnx.Mul(%h, %k) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      onnx.return {input_names = ["i", "c", "h", "k"], output_names = ["c", "a", "k"]} %c, %a, %k : tensor<i1>, tensor<4xf32>, tensor<4xf32>
    }) : (tensor<i64>, none, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    onnx.return %y, %v : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// Two states that change places are no such states.

// CHECK-LABEL: @swapped
// CHECK: onnx.Loop(%n, %{{.*}}, %x, %w)
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @swapped(%n: tensor<i64>, %x: tensor<4xf32>, %w: tensor<4xf32>) {
    %none = onnx.NoValue : none
    %y, %v = onnx.Loop(%n, %none, %x, %w) <{graphs = ["body"]}> ({
    ^bb0(%i: tensor<i64>, %c: tensor<i1>, %h: tensor<4xf32>, %k: tensor<4xf32>):
      onnx.return %c, %k, %h : tensor<i1>, tensor<4xf32>, tensor<4xf32>
    }) : (tensor<i64>, none, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    onnx.return %y, %v : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// Dropout that may train, and whose mask is used, stays.

// CHECK-LABEL: @trains
// CHECK: onnx.Dropout
// CHECK: onnx.Dropout
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @trains(%x: tensor<4xf32>, %training: tensor<i1>) {
    %r = onnx.Constant() {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
    %a = onnx.Dropout(%x, %r, %training) : (tensor<4xf32>, tensor<f32>, tensor<i1>) -> tensor<4xf32>
    %b, %mask = onnx.Dropout(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi1>)
    onnx.return %a, %b, %mask : tensor<4xf32>, tensor<4xf32>, tensor<4xi1>
  }
}

// -----

// mask[b, s] by a Gather of computed positions is the mask; a comparison that always holds is no condition; and the
// mask is computed as the row that it is.

// CHECK-LABEL: @mask
// CHECK-NOT: onnx.Range
// CHECK: %[[M:.*]] = onnx.Unsqueeze(%mask
// CHECK: %[[W:.*]] = onnx.Where(%[[M]]
// CHECK-SAME: -> tensor<?x1x1x?xf32, #sym.dims<b, 1, 1, s>>
// CHECK: onnx.Add(%scores, %[[W]])
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @mask(%mask: tensor<?x?xi1, #sym.dims<b, s>>, %scores: tensor<?x12x?x?xf32, #sym.dims<b, 12, s, s>>, %nb: tensor<i64>, %ns: tensor<i64>) {
    %zero = onnx.Constant() {value = #onnx.tensor<i64, [0]>} : () -> tensor<i64>
    %one = onnx.Constant() {value = #onnx.tensor<i64, [1]>} : () -> tensor<i64>
    %rows = onnx.Constant() {value = #onnx.tensor<3xi64, [1, 2, 3]>} : () -> tensor<3xi64>
    %columns = onnx.Constant() {value = #onnx.tensor<3xi64, [0, 1, 2]>} : () -> tensor<3xi64>
    %queries = onnx.Constant() {value = #onnx.tensor<3xi64, [0, 1, 3]>} : () -> tensor<3xi64>
    %flat = onnx.Constant() {value = #onnx.tensor<1xi64, [-1]>} : () -> tensor<1xi64>
    %keep = onnx.Constant() {value = #onnx.tensor<f32, [0.0]>} : () -> tensor<f32>
    %drop = onnx.Constant() {value = #onnx.tensor<f32, [-1.0e30]>} : () -> tensor<f32>
    %ib = onnx.Range(%zero, %nb, %one) {igniter.values = {"1" = #sym.dims<b>}} : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, #sym.dims<b>>
    %is = onnx.Range(%zero, %ns, %one) {igniter.values = {"1" = #sym.dims<s>}} : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64, #sym.dims<s>>
    %r = onnx.Unsqueeze(%ib, %rows) : (tensor<?xi64, #sym.dims<b>>, tensor<3xi64>) -> tensor<?x1x1x1xi64, #sym.dims<b, 1, 1, 1>>
    %c = onnx.Unsqueeze(%is, %columns) : (tensor<?xi64, #sym.dims<s>>, tensor<3xi64>) -> tensor<1x1x1x?xi64, #sym.dims<1, 1, 1, s>>
    %q = onnx.Unsqueeze(%is, %queries) : (tensor<?xi64, #sym.dims<s>>, tensor<3xi64>) -> tensor<1x1x?x1xi64, #sym.dims<1, 1, s, 1>>
    %ge = onnx.GreaterOrEqual(%q, %zero) : (tensor<1x1x?x1xi64, #sym.dims<1, 1, s, 1>>, tensor<i64>) -> tensor<1x1x?x1xi1, #sym.dims<1, 1, s, 1>>
    %rs = onnx.Mul(%r, %ns) {igniter.values = {"1" = #sym.dims<s>}} : (tensor<?x1x1x1xi64, #sym.dims<b, 1, 1, 1>>, tensor<i64>) -> tensor<?x1x1x1xi64, #sym.dims<b, 1, 1, 1>>
    %at = onnx.Add(%rs, %c) : (tensor<?x1x1x1xi64, #sym.dims<b, 1, 1, 1>>, tensor<1x1x1x?xi64, #sym.dims<1, 1, 1, s>>) -> tensor<?x1x1x?xi64, #sym.dims<b, 1, 1, s>>
    %all = onnx.Reshape(%mask, %flat) : (tensor<?x?xi1, #sym.dims<b, s>>, tensor<1xi64>) -> tensor<?xi1, #sym.dims<b*s>>
    %picked = onnx.Gather(%all, %at) : (tensor<?xi1, #sym.dims<b*s>>, tensor<?x1x1x?xi64, #sym.dims<b, 1, 1, s>>) -> tensor<?x1x1x?xi1, #sym.dims<b, 1, 1, s>>
    %and = onnx.And(%ge, %picked) : (tensor<1x1x?x1xi1, #sym.dims<1, 1, s, 1>>, tensor<?x1x1x?xi1, #sym.dims<b, 1, 1, s>>) -> tensor<?x1x?x?xi1, #sym.dims<b, 1, s, s>>
    %w = onnx.Where(%and, %keep, %drop) : (tensor<?x1x?x?xi1, #sym.dims<b, 1, s, s>>, tensor<f32>, tensor<f32>) -> tensor<?x1x?x?xf32, #sym.dims<b, 1, s, s>>
    %y = onnx.Add(%scores, %w) : (tensor<?x12x?x?xf32, #sym.dims<b, 12, s, s>>, tensor<?x1x?x?xf32, #sym.dims<b, 1, s, s>>) -> tensor<?x12x?x?xf32, #sym.dims<b, 12, s, s>>
    onnx.return %y : tensor<?x12x?x?xf32, #sym.dims<b, 12, s, s>>
  }
}

// -----

// A window on an image of 5 x 5, dilated by 6: its corners and edges see padding only.

// CHECK-LABEL: @padding
// CHECK:      %[[W:.*]] = onnx.Slice(%w, %{{.*}}, %{{.*}}, %{{.*}}) : (tensor<4x2x3x3xf32>, {{.*}}) -> tensor<4x2x1x1xf32>
// CHECK-NEXT: onnx.Conv(%x, %[[W]]) {dilations = array<i64: 6, 6>, pads = array<i64: 0, 0, 0, 0>, kernel_shape = array<i64: 1, 1>}
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @padding(%x: tensor<1x2x5x5xf32>, %w: tensor<4x2x3x3xf32>) attributes {graph_name = "g", input_names = ["x", "w"], output_names = ["y"]} {
    %y = onnx.Conv(%x, %w) {dilations = array<i64: 6, 6>, pads = array<i64: 6, 6, 6, 6>} : (tensor<1x2x5x5xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x5x5xf32>
    onnx.return %y : tensor<1x4x5x5xf32>
  }
}

// -----

// Heads of keys and values that are repeated for groups of queries are shared instead, if both are.

// CHECK-LABEL: @groups
// CHECK: %[[R:.*]] = onnx.Reshape
// CHECK-NEXT: %[[Y:.*]] = onnx.Attention(%q, %k, %v) {is_causal = 1 : i64}
// CHECK-NEXT: %[[Z:.*]] = onnx.Attention(%q, %[[R]], %w)
// CHECK-NEXT: onnx.return %[[Y]], %[[Z]]
builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 23 : i64}}} {
  onnx.graph @groups(%q: tensor<2x6x?x8xf32, #sym.dims<2, 6, n, 8>>, %k: tensor<2x3x?x8xf32, #sym.dims<2, 3, n, 8>>, %v: tensor<2x3x?x8xf32, #sym.dims<2, 3, n, 8>>, %w: tensor<2x6x?x8xf32, #sym.dims<2, 6, n, 8>>, %five: tensor<5xi64>) {
    %axis = onnx.Constant() {value = #onnx.tensor<1xi64, [2]>} : () -> tensor<1xi64>
    %four = onnx.Constant() {value = #onnx.tensor<4xi64, [2, 6, -1, 8]>} : () -> tensor<4xi64>
    %ku = onnx.Unsqueeze(%k, %axis) : (tensor<2x3x?x8xf32, #sym.dims<2, 3, n, 8>>, tensor<1xi64>) -> tensor<2x3x1x?x8xf32, #sym.dims<2, 3, 1, n, 8>>
    %ke = onnx.Expand(%ku, %five) {igniter.values = {"1" = #sym.dims<2, 3, 2, n, 8>}} : (tensor<2x3x1x?x8xf32, #sym.dims<2, 3, 1, n, 8>>, tensor<5xi64>) -> tensor<2x3x2x?x8xf32, #sym.dims<2, 3, 2, n, 8>>
    %kr = onnx.Reshape(%ke, %four) : (tensor<2x3x2x?x8xf32, #sym.dims<2, 3, 2, n, 8>>, tensor<4xi64>) -> tensor<2x6x?x8xf32, #sym.dims<2, 6, n, 8>>
    %vu = onnx.Unsqueeze(%v, %axis) : (tensor<2x3x?x8xf32, #sym.dims<2, 3, n, 8>>, tensor<1xi64>) -> tensor<2x3x1x?x8xf32, #sym.dims<2, 3, 1, n, 8>>
    %ve = onnx.Expand(%vu, %five) {igniter.values = {"1" = #sym.dims<2, 3, 2, n, 8>}} : (tensor<2x3x1x?x8xf32, #sym.dims<2, 3, 1, n, 8>>, tensor<5xi64>) -> tensor<2x3x2x?x8xf32, #sym.dims<2, 3, 2, n, 8>>
    %vr = onnx.Reshape(%ve, %four) : (tensor<2x3x2x?x8xf32, #sym.dims<2, 3, 2, n, 8>>, tensor<4xi64>) -> tensor<2x6x?x8xf32, #sym.dims<2, 6, n, 8>>
    %y = onnx.Attention(%q, %kr, %vr) {is_causal = 1 : i64} : (tensor<2x6x?x8xf32, #sym.dims<2, 6, n, 8>>, tensor<2x6x?x8xf32, #sym.dims<2, 6, n, 8>>, tensor<2x6x?x8xf32, #sym.dims<2, 6, n, 8>>) -> tensor<2x6x?x8xf32, #sym.dims<2, 6, n, 8>>
    %z = onnx.Attention(%q, %kr, %w) : (tensor<2x6x?x8xf32, #sym.dims<2, 6, n, 8>>, tensor<2x6x?x8xf32, #sym.dims<2, 6, n, 8>>, tensor<2x6x?x8xf32, #sym.dims<2, 6, n, 8>>) -> tensor<2x6x?x8xf32, #sym.dims<2, 6, n, 8>>
    onnx.return %y, %z : tensor<2x6x?x8xf32, #sym.dims<2, 6, n, 8>>, tensor<2x6x?x8xf32, #sym.dims<2, 6, n, 8>>
  }
}
