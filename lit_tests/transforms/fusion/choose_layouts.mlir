// RUN: igniter-opt %s -p choose-layouts --split-input-file | filecheck %s
// RUN: igniter-opt %s -p choose-layouts --split-input-file --emit=none --remarks 2>&1 | filecheck %s --check-prefix=REMARKS
// RUN: igniter-opt %s -p choose-layouts,inline-regions --split-input-file | filecheck %s --check-prefix=APART
// RUN: igniter-opt %s -p "choose-layouts{blocks=true}" --split-input-file | filecheck %s --check-prefix=BLOCKS

// Two convolutions: the graph's input and its result change their layout in regions of their own, and what passes between
// is stored with its channels last, with the zeros that the second convolution wants around it.

// CHECK-LABEL: @two
// CHECK:      %x_1 = fusion.region @l0 ({{.*}}) -> (tensor<?x?x?x2xf32, #sym.dims<n, h + 2, w + 2, 2>>) {
// CHECK-NEXT:   %0 = fusion.dims [0, 0, 1, 1, 0, 0, 1, 1] : tensor<8xi64>
// CHECK-NEXT:   %x_3 = onnx.Pad(%x_2, %0)
// CHECK-NEXT:   %x_4 = onnx.Transpose(%x_3) {perm = array<i64: 0, 2, 3, 1>}
// CHECK-NEXT:   fusion.yield %x_4
// CHECK:      %y = fusion.region @r0 ({{.*}}) -> (tensor<?x?x?x4xf32, #sym.dims<n, h + 4, w + 2, 4>>) {
// CHECK-NEXT:   %a_1 = onnx.Transpose(%a) {perm = array<i64: 0, 3, 1, 2>}
// CHECK-NEXT:   %0 = onnx.Conv(%a_1, %b) {pads = array<i64: 0, 0, 0, 0>}
// CHECK-NEXT:   %1 = onnx.Relu(%0)
// CHECK-NEXT:   %2 = fusion.dims [0, 0, 2, 0, 0, 0, 2, 2] : tensor<8xi64>
// CHECK-NEXT:   %3 = onnx.Pad(%1, %2)
// CHECK-NEXT:   %4 = onnx.Transpose(%3) {perm = array<i64: 0, 2, 3, 1>}
// CHECK-NEXT:   fusion.yield %4
// CHECK:      %z = fusion.region @r1
// CHECK-NEXT:   %a_1 = onnx.Transpose(%a) {perm = array<i64: 0, 3, 1, 2>}
// CHECK-NEXT:   %0 = onnx.Conv(%a_1, %b) {pads = array<i64: 0, 0, 0, 0>}
// CHECK-NEXT:   %1 = onnx.Transpose(%0) {perm = array<i64: 0, 2, 3, 1>}
// CHECK-NEXT:   fusion.yield %1
// CHECK:      %z_1 = fusion.region @l1
// CHECK-NEXT:   %z_3 = onnx.Transpose(%z_2) {perm = array<i64: 0, 3, 1, 2>}
// CHECK:      onnx.return %z_1
// REMARKS: remark: choose-layouts: note: 3 tensors have their channels last, 2 of them with padding
// For programs on blocks: an image of two channels from outside and a result for outside keep the model's order, and
// padding is not stored.
// BLOCKS-LABEL: @two
// BLOCKS-NEXT:   %w
// BLOCKS-NEXT:   %v
// BLOCKS-NEXT:   %y = fusion.region @r0 (%a = %x : {{.*}}) -> (tensor<?x?x?x4xf32, #sym.dims<n, h, w, 4>>) {
// BLOCKS-NEXT:     onnx.Conv(%a, %b) {pads = array<i64: 1, 1, 1, 1>}
// BLOCKS:          onnx.Transpose(%{{.*}}) {perm = array<i64: 0, 2, 3, 1>}
// BLOCKS:        %z = fusion.region @r1
// BLOCKS-NEXT:     %a_1 = onnx.Transpose(%a) {perm = array<i64: 0, 3, 1, 2>}
// BLOCKS-NEXT:     %0 = onnx.Conv(%a_1, %b) {pads = array<i64: 2, 0, 2, 2>}
// BLOCKS-NEXT:     fusion.yield %0
// BLOCKS:        onnx.return %z
// APART-LABEL: @two
// APART-NOT:   fusion.
// APART:       onnx.Pad
// APART:       onnx.return
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @two(%x: tensor<?x2x?x?xf32, #sym.dims<n, 2, h, w>>) attributes {graph_name = "g", input_names = ["x"], output_names = ["z"]} {
    %w = onnx.Constant() {value = #onnx.tensor<4x2x3x3xf32, elided>} : () -> tensor<4x2x3x3xf32>
    %v = onnx.Constant() {value = #onnx.tensor<4x4x3x3xf32, elided>} : () -> tensor<4x4x3x3xf32>
    %y = fusion.region @r0 (%a = %x : tensor<?x2x?x?xf32, #sym.dims<n, 2, h, w>>, %b = %w : tensor<4x2x3x3xf32>) -> (tensor<?x4x?x?xf32, #sym.dims<n, 4, h, w>>) {
      %0 = onnx.Conv(%a, %b) {pads = array<i64: 1, 1, 1, 1>} : (tensor<?x2x?x?xf32, #sym.dims<n, 2, h, w>>, tensor<4x2x3x3xf32>) -> tensor<?x4x?x?xf32, #sym.dims<n, 4, h, w>>
      %1 = onnx.Relu(%0) : (tensor<?x4x?x?xf32, #sym.dims<n, 4, h, w>>) -> tensor<?x4x?x?xf32, #sym.dims<n, 4, h, w>>
      fusion.yield %1 : tensor<?x4x?x?xf32, #sym.dims<n, 4, h, w>>
    }
    %z = fusion.region @r1 (%a = %y : tensor<?x4x?x?xf32, #sym.dims<n, 4, h, w>>, %b = %v : tensor<4x4x3x3xf32>) -> (tensor<?x4x?x?xf32, #sym.dims<n, 4, h + 2, w>>) {
      %0 = onnx.Conv(%a, %b) {pads = array<i64: 2, 0, 2, 2>} : (tensor<?x4x?x?xf32, #sym.dims<n, 4, h, w>>, tensor<4x4x3x3xf32>) -> tensor<?x4x?x?xf32, #sym.dims<n, 4, h + 2, w>>
      fusion.yield %0 : tensor<?x4x?x?xf32, #sym.dims<n, 4, h + 2, w>>
    }
    onnx.return %z : tensor<?x4x?x?xf32, #sym.dims<n, 4, h + 2, w>>
  }
}

// -----

// A reader that wants no zeros skips them, and one that wants fewer than are there pads by itself. A node that ONNX
// Runtime runs gets the image as the model has it.

// CHECK-LABEL: @readers
// CHECK:      fusion.region @r0 {{.*}} -> (tensor<1x10x10x4xf32>)
// CHECK:      %y_1 = fusion.region @l{{[0-9]+}}
// CHECK:        onnx.Slice
// CHECK-NEXT:   onnx.Transpose
// CHECK:      fusion.region @r1
// CHECK:        %0 = fusion.dims [1, 1] : tensor<2xi64>
// CHECK-NEXT:   %1 = fusion.dims [-1, -1] : tensor<2xi64>
// CHECK-NEXT:   %2 = fusion.dims [1, 2] : tensor<2xi64>
// CHECK-NEXT:   %a_1 = onnx.Slice(%a, %0, %1, %2)
// CHECK-NEXT:   %a_2 = onnx.Transpose(%a_1) {perm = array<i64: 0, 3, 1, 2>}
// CHECK-NEXT:   onnx.Conv(%a_2
// CHECK:      onnx.NonZero(%y_1)
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @readers(%x: tensor<1x4x8x8xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["z", "u", "o"]} {
    %w = onnx.Constant() {value = #onnx.tensor<4x4x3x3xf32, elided>} : () -> tensor<4x4x3x3xf32>
    %v = onnx.Constant() {value = #onnx.tensor<4x4x1x1xf32, elided>} : () -> tensor<4x4x1x1xf32>
    %y = fusion.region @r0 (%a = %x : tensor<1x4x8x8xf32>, %b = %v : tensor<4x4x1x1xf32>) -> (tensor<1x4x8x8xf32>) {
      %0 = onnx.Conv(%a, %b) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x8x8xf32>
      fusion.yield %0 : tensor<1x4x8x8xf32>
    }
    %z = fusion.region @r1 (%a = %y : tensor<1x4x8x8xf32>, %b = %v : tensor<4x4x1x1xf32>) -> (tensor<1x4x8x8xf32>) {
      %0 = onnx.Conv(%a, %b) : (tensor<1x4x8x8xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x8x8xf32>
      fusion.yield %0 : tensor<1x4x8x8xf32>
    }
    %u = fusion.region @r2 (%a = %y : tensor<1x4x8x8xf32>, %b = %w : tensor<4x4x3x3xf32>) -> (tensor<1x4x8x8xf32>) {
      %0 = onnx.Conv(%a, %b) {pads = array<i64: 1, 1, 1, 1>} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
      fusion.yield %0 : tensor<1x4x8x8xf32>
    }
    %o = onnx.NonZero(%y) : (tensor<1x4x8x8xf32>) -> tensor<4x?xi64, #sym.dims<4, count>>
    onnx.return %z, %u, %o : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>, tensor<4x?xi64, #sym.dims<4, count>>
  }
}

// -----

// An image that is computed in the region of the convolution is stored with its channels last, too. Without convolutions
// nothing changes.

// CHECK-LABEL: @inside
// CHECK:      fusion.region @r0
// CHECK:        %0 = onnx.Relu(%a_1)
// CHECK-NEXT:   %1 = fusion.dims [0, 0, 1, 1, 0, 0, 1, 1] : tensor<8xi64>
// CHECK-NEXT:   %2 = onnx.Pad(%0, %1)
// CHECK-NEXT:   %3 = onnx.Transpose(%2) {perm = array<i64: 0, 2, 3, 1>}
// CHECK-NEXT:   %4 = onnx.Transpose(%3) {perm = array<i64: 0, 3, 1, 2>}
// CHECK-NEXT:   %5 = onnx.Conv(%4, %b) {pads = array<i64: 0, 0, 0, 0>}
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @inside(%x: tensor<1x4x8x8xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() {value = #onnx.tensor<4x4x3x3xf32, elided>} : () -> tensor<4x4x3x3xf32>
    %y = fusion.region @r0 (%a = %x : tensor<1x4x8x8xf32>, %b = %w : tensor<4x4x3x3xf32>) -> (tensor<1x4x8x8xf32>) {
      %0 = onnx.Relu(%a) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
      %1 = onnx.Conv(%0, %b) {pads = array<i64: 1, 1, 1, 1>} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
      fusion.yield %1 : tensor<1x4x8x8xf32>
    }
    onnx.return %y : tensor<1x4x8x8xf32>
  }
}

// -----

// CHECK-LABEL: @none
// CHECK:       fusion.region @r0 (%a = %x : tensor<1x4x8x8xf32>) -> (tensor<1x4x8x8xf32>)
// CHECK-NOT:   Transpose
// CHECK:       onnx.return
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @none(%x: tensor<1x4x8x8xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %y = fusion.region @r0 (%a = %x : tensor<1x4x8x8xf32>) -> (tensor<1x4x8x8xf32>) {
      %0 = onnx.Relu(%a) : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
      fusion.yield %0 : tensor<1x4x8x8xf32>
    }
    onnx.return %y : tensor<1x4x8x8xf32>
  }
}

// -----

// In opsets before 11 Pad says its sizes in attributes, and before 10 Slice.

// CHECK-LABEL: @old
// CHECK:      fusion.region @l0
// CHECK-NEXT:   onnx.Pad(%x_{{[0-9]}}) {pads = array<i64: 0, 0, 1, 1, 0, 0, 1, 1>}
// CHECK:      fusion.region @r0
// CHECK:        onnx.Slice(%a) {starts = array<i64: 1, 1>, ends = array<i64: -1, -1>, axes = array<i64: 1, 2>}
builtin.module attributes {onnx.model = {ir_version = 4 : i64, opset_import = {"" = 9 : i64}}} {
  onnx.graph @old(%x: tensor<1x4x8x8xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() {value = #onnx.tensor<4x4x3x3xf32, elided>} : () -> tensor<4x4x3x3xf32>
    %y = fusion.region @r0 (%a = %x : tensor<1x4x8x8xf32>, %b = %w : tensor<4x4x3x3xf32>) -> (tensor<1x4x8x8xf32>) {
      %0 = onnx.Conv(%a, %b) {pads = array<i64: 1, 1, 1, 1>} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
      %1 = onnx.Add(%0, %a) : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
      fusion.yield %1 : tensor<1x4x8x8xf32>
    }
    onnx.return %y : tensor<1x4x8x8xf32>
  }
}

// -----

// How much `SAME` padding adds hangs on the dims of the image: those that it has, not those that are stored.

// CHECK-LABEL: @same
// CHECK:        %0 = fusion.dims [2, 3] : tensor<2xi64>
// CHECK-NEXT:   %1 = fusion.dims [-2, -2] : tensor<2xi64>
// CHECK-NEXT:   %2 = fusion.dims [1, 2] : tensor<2xi64>
// CHECK-NEXT:   %a_1 = onnx.Slice(%a, %0, %1, %2) {{.*}} -> tensor<1x7x9x4xf32>
// CHECK-NEXT:   %a_2 = onnx.Transpose(%a_1)
// CHECK-NEXT:   onnx.Conv(%a_2, %b) {strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>}
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @same(%x: tensor<1x4x5x8xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y", "z"]} {
    %w = onnx.Constant() {value = #onnx.tensor<4x4x3x3xf32, elided>} : () -> tensor<4x4x3x3xf32>
    %v = onnx.Constant() {value = #onnx.tensor<4x4x7x7xf32, elided>} : () -> tensor<4x4x7x7xf32>
    %y = fusion.region @r0 (%a = %x : tensor<1x4x5x8xf32>, %b = %w : tensor<4x4x3x3xf32>) -> (tensor<1x4x3x4xf32>) {
      %0 = onnx.Conv(%a, %b) {auto_pad = "SAME_UPPER", strides = array<i64: 2, 2>} : (tensor<1x4x5x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x3x4xf32>
      fusion.yield %0 : tensor<1x4x3x4xf32>
    }
    %z = fusion.region @r1 (%a = %x : tensor<1x4x5x8xf32>, %b = %v : tensor<4x4x7x7xf32>) -> (tensor<1x4x5x8xf32>) {
      %0 = onnx.Conv(%a, %b) {pads = array<i64: 3, 3, 3, 3>} : (tensor<1x4x5x8xf32>, tensor<4x4x7x7xf32>) -> tensor<1x4x5x8xf32>
      fusion.yield %0 : tensor<1x4x5x8xf32>
    }
    onnx.return %y, %z : tensor<1x4x3x4xf32>, tensor<1x4x5x8xf32>
  }
}

// -----

// Nothing is cut from an axis without zeros, and nothing at an end without: an attribute could not say how large an image
// is, and what a run finds could be of either sign.

// CHECK-LABEL: @old_symbols
// CHECK:        onnx.Slice(%a) {starts = array<i64: 2>, ends = array<i64: 1073741824>, axes = array<i64: 1>}
builtin.module attributes {onnx.model = {ir_version = 4 : i64, opset_import = {"" = 9 : i64}}} {
  onnx.graph @old_symbols(%x: tensor<1x4x?x?xf32, #sym.dims<1, 4, h, w>>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() {value = #onnx.tensor<4x4x3x1xf32, elided>} : () -> tensor<4x4x3x1xf32>
    %y = fusion.region @r0 (%a = %x : tensor<1x4x?x?xf32, #sym.dims<1, 4, h, w>>, %b = %w : tensor<4x4x3x1xf32>) -> (tensor<1x4x?x?xf32, #sym.dims<1, 4, h, w>>) {
      %0 = onnx.Conv(%a, %b) {pads = array<i64: 2, 0, 0, 0>} : (tensor<1x4x?x?xf32, #sym.dims<1, 4, h, w>>, tensor<4x4x3x1xf32>) -> tensor<1x4x?x?xf32, #sym.dims<1, 4, h, w>>
      %1 = onnx.Add(%0, %a) : (tensor<1x4x?x?xf32, #sym.dims<1, 4, h, w>>, tensor<1x4x?x?xf32, #sym.dims<1, 4, h, w>>) -> tensor<1x4x?x?xf32, #sym.dims<1, 4, h, w>>
      fusion.yield %1 : tensor<1x4x?x?xf32, #sym.dims<1, 4, h, w>>
    }
    onnx.return %y : tensor<1x4x?x?xf32, #sym.dims<1, 4, h, w>>
  }
}

// -----

// A normalisation that works along channels says so: what it makes of an image is stored as that is.

// CHECK-LABEL: @normalised
// CHECK:      fusion.region @r1 {{.*}} -> (tensor<1x8x8x96xf32>)
// CHECK:      fusion.region @r2 {{.*}} -> (tensor<1x8x8x96xf32>)
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @normalised(%x: tensor<1x96x8x8xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["u"]} {
    %w = onnx.Constant() {value = #onnx.tensor<96x96x1x1xf32, elided>} : () -> tensor<96x96x1x1xf32>
    %y = fusion.region @r0 (%a = %x : tensor<1x96x8x8xf32>, %b = %w : tensor<96x96x1x1xf32>) -> (tensor<1x96x8x8xf32>) {
      %0 = onnx.Conv(%a, %b) : (tensor<1x96x8x8xf32>, tensor<96x96x1x1xf32>) -> tensor<1x96x8x8xf32>
      fusion.yield %0 : tensor<1x96x8x8xf32>
    }
    %z = fusion.region @r1 (%a = %y : tensor<1x96x8x8xf32>) -> (tensor<1x96x8x8xf32>) {
      %0 = onnx.LRN(%a) {size = 5 : i64} : (tensor<1x96x8x8xf32>) -> tensor<1x96x8x8xf32>
      fusion.yield %0 : tensor<1x96x8x8xf32>
    }
    %u = fusion.region @r2 (%a = %z : tensor<1x96x8x8xf32>) -> (tensor<1x96x8x8xf32>) {
      %0 = onnx.Tanh(%a) : (tensor<1x96x8x8xf32>) -> tensor<1x96x8x8xf32>
      fusion.yield %0 : tensor<1x96x8x8xf32>
    }
    onnx.return %u : tensor<1x96x8x8xf32>
  }
}

// -----

// The rim of an image of bytes holds its zero point.

// CHECK-LABEL: @bytes
// CHECK:      fusion.region @l0
// CHECK:        %[[Z:.*]] = onnx.Constant() {value = #onnx.tensor<ui8, [7]>}
// CHECK:        onnx.Pad(%{{.*}}, %{{.*}}, %[[Z]])
// CHECK:      fusion.region @r0
// CHECK:        %[[I:.*]] = onnx.Transpose(%a) {perm = array<i64: 0, 3, 1, 2>}
// CHECK:        onnx.ConvInteger(%[[I]], %b, %z) {pads = array<i64: 0, 0, 0, 0>}
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @bytes(%x: tensor<1x4x8x8xui8>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() {value = #onnx.tensor<4x4x3x3xi8, elided>} : () -> tensor<4x4x3x3xi8>
    %y = fusion.region @r0 (%a = %x : tensor<1x4x8x8xui8>, %b = %w : tensor<4x4x3x3xi8>) -> (tensor<1x4x8x8xi32>) {
      %z = onnx.Constant() {value = #onnx.tensor<ui8, [7]>} : () -> tensor<ui8>
      %0 = onnx.ConvInteger(%a, %b, %z) {pads = array<i64: 1, 1, 1, 1>} : (tensor<1x4x8x8xui8>, tensor<4x4x3x3xi8>, tensor<ui8>) -> tensor<1x4x8x8xi32>
      fusion.yield %0 : tensor<1x4x8x8xi32>
    }
    onnx.return %y : tensor<1x4x8x8xi32>
  }
}

// -----

// What is only quantised is read as it lies: its bytes are put into the other order.

// CHECK-LABEL: @quantised
// CHECK:      %y = fusion.region @r0 (%a = %x : tensor<1x4x8x8xf32>
// CHECK:        %[[Q:.*]] = onnx.QuantizeLinear(%a, %s, %z)
// CHECK:        %[[P:.*]] = onnx.Pad(%[[Q]],
// CHECK-NEXT:   onnx.Transpose(%[[P]]) {perm = array<i64: 0, 2, 3, 1>}
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @quantised(%x: tensor<1x4x8x8xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() {value = #onnx.tensor<4x4x3x3xi8, elided>} : () -> tensor<4x4x3x3xi8>
    %y = fusion.region @r0 (%a = %x : tensor<1x4x8x8xf32>, %b = %w : tensor<4x4x3x3xi8>) -> (tensor<1x4x8x8xi32>) {
      %s = onnx.Constant() {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
      %z = onnx.Constant() {value = #onnx.tensor<ui8, [7]>} : () -> tensor<ui8>
      %q = onnx.QuantizeLinear(%a, %s, %z) : (tensor<1x4x8x8xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x4x8x8xui8>
      %0 = onnx.ConvInteger(%q, %b, %z) {pads = array<i64: 1, 1, 1, 1>} : (tensor<1x4x8x8xui8>, tensor<4x4x3x3xi8>, tensor<ui8>) -> tensor<1x4x8x8xi32>
      fusion.yield %0 : tensor<1x4x8x8xi32>
    }
    onnx.return %y : tensor<1x4x8x8xi32>
  }
}

// -----

// A lone pointwise convolution of many channels to few multiplies its weight with the image as the model has it. A
// convolution of an image that its region computes stores that image, without any other image in the graph.

// CHECK-LABEL: @few
// CHECK:      fusion.region @r0 (%a = %x : tensor<1x64x8x8xf32>
// CHECK-NEXT:   onnx.Conv(%a, %b)
// CHECK-LABEL: @short
// CHECK:      fusion.region @r0 (%a = %x : tensor<1x32x8x8xf32>
// CHECK-NEXT:   onnx.Conv(%a, %b)
// CHECK-LABEL: @groups
// CHECK:      fusion.region @r0 (%a = %x : tensor<1x128x8x8xf32>
// CHECK-NEXT:   onnx.Conv(%a, %b)
// CHECK-LABEL: @reshaped
// CHECK:      fusion.region @r1 (%a = %x : tensor<2x4x8x8xf32>
// CHECK:        %[[R:.*]] = onnx.Reshape(%a, %s)
// CHECK:        %[[P:.*]] = onnx.Pad(%[[R]],
// CHECK-NEXT:   %[[L:.*]] = onnx.Transpose(%[[P]]) {perm = array<i64: 0, 2, 3, 1>}
// CHECK-NEXT:   %[[I:.*]] = onnx.Transpose(%[[L]]) {perm = array<i64: 0, 3, 1, 2>}
// CHECK-NEXT:   onnx.Conv(%[[I]], %b) {group = 2 : i64, pads = array<i64: 0, 0, 0, 0>}
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @few(%x: tensor<1x64x8x8xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() {value = #onnx.tensor<3x64x1x1xf32, elided>} : () -> tensor<3x64x1x1xf32>
    %y = fusion.region @r0 (%a = %x : tensor<1x64x8x8xf32>, %b = %w : tensor<3x64x1x1xf32>) -> (tensor<1x3x8x8xf32>) {
      %0 = onnx.Conv(%a, %b) : (tensor<1x64x8x8xf32>, tensor<3x64x1x1xf32>) -> tensor<1x3x8x8xf32>
      fusion.yield %0 : tensor<1x3x8x8xf32>
    }
    onnx.return %y : tensor<1x3x8x8xf32>
  }
}

// -----

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @short(%x: tensor<1x32x8x8xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() {value = #onnx.tensor<128x32x1x1xf32, elided>} : () -> tensor<128x32x1x1xf32>
    %y = fusion.region @r0 (%a = %x : tensor<1x32x8x8xf32>, %b = %w : tensor<128x32x1x1xf32>) -> (tensor<1x128x8x8xf32>) {
      %0 = onnx.Conv(%a, %b) : (tensor<1x32x8x8xf32>, tensor<128x32x1x1xf32>) -> tensor<1x128x8x8xf32>
      fusion.yield %0 : tensor<1x128x8x8xf32>
    }
    onnx.return %y : tensor<1x128x8x8xf32>
  }
}

// -----

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @groups(%x: tensor<1x128x8x8xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() {value = #onnx.tensor<128x64x1x1xf32, elided>} : () -> tensor<128x64x1x1xf32>
    %y = fusion.region @r0 (%a = %x : tensor<1x128x8x8xf32>, %b = %w : tensor<128x64x1x1xf32>) -> (tensor<1x128x8x8xf32>) {
      %0 = onnx.Conv(%a, %b) {group = 2 : i64} : (tensor<1x128x8x8xf32>, tensor<128x64x1x1xf32>) -> tensor<1x128x8x8xf32>
      fusion.yield %0 : tensor<1x128x8x8xf32>
    }
    onnx.return %y : tensor<1x128x8x8xf32>
  }
}

// -----

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @reshaped(%x: tensor<2x4x8x8xf32>, %w: tensor<8x4x3x3xf32>) attributes {graph_name = "g", input_names = ["x", "w"], output_names = ["y"]} {
    %y = fusion.region @r1 (%a = %x : tensor<2x4x8x8xf32>, %b = %w : tensor<8x4x3x3xf32>) -> (tensor<2x4x8x8xf32>) {
      %s = onnx.Constant() {value = #onnx.tensor<4xi64, [1, 8, 8, 8]>} : () -> tensor<4xi64>
      %t = onnx.Constant() {value = #onnx.tensor<4xi64, [2, 4, 8, 8]>} : () -> tensor<4xi64>
      %0 = onnx.Reshape(%a, %s) : (tensor<2x4x8x8xf32>, tensor<4xi64>) -> tensor<1x8x8x8xf32>
      %1 = onnx.Conv(%0, %b) {group = 2 : i64, pads = array<i64: 1, 1, 1, 1>} : (tensor<1x8x8x8xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x8x8xf32>
      %2 = onnx.Reshape(%1, %t) : (tensor<1x8x8x8xf32>, tensor<4xi64>) -> tensor<2x4x8x8xf32>
      fusion.yield %2 : tensor<2x4x8x8xf32>
    }
    onnx.return %y : tensor<2x4x8x8xf32>
  }
}

// -----

// A lone depthwise convolution with narrow windows moves along the rows of its planes as they are, those that its region
// computes too; with strides it has its channels last.

// CHECK-LABEL: @planes
// CHECK-NOT:  onnx.Transpose
// CHECK:      onnx.Conv(%s, %b) {group = 8 : i64, pads = array<i64: 1, 1, 1, 1>}
// CHECK-LABEL: @strided
// CHECK:      onnx.Transpose
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @planes(%x: tensor<1x8x32x32xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() {value = #onnx.tensor<8x1x3x3xf32, elided>} : () -> tensor<8x1x3x3xf32>
    %y = fusion.region @r0 (%a = %x : tensor<1x8x32x32xf32>, %b = %w : tensor<8x1x3x3xf32>) -> (tensor<1x8x32x32xf32>) {
      %s = onnx.Sigmoid(%a) : (tensor<1x8x32x32xf32>) -> tensor<1x8x32x32xf32>
      %0 = onnx.Conv(%s, %b) {group = 8 : i64, pads = array<i64: 1, 1, 1, 1>} : (tensor<1x8x32x32xf32>, tensor<8x1x3x3xf32>) -> tensor<1x8x32x32xf32>
      fusion.yield %0 : tensor<1x8x32x32xf32>
    }
    onnx.return %y : tensor<1x8x32x32xf32>
  }
}

// -----

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @strided(%x: tensor<1x8x32x32xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() {value = #onnx.tensor<8x1x3x3xf32, elided>} : () -> tensor<8x1x3x3xf32>
    %y = fusion.region @r0 (%a = %x : tensor<1x8x32x32xf32>, %b = %w : tensor<8x1x3x3xf32>) -> (tensor<1x8x16x16xf32>) {
      %0 = onnx.Conv(%a, %b) {group = 8 : i64, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<1x8x32x32xf32>, tensor<8x1x3x3xf32>) -> tensor<1x8x16x16xf32>
      fusion.yield %0 : tensor<1x8x16x16xf32>
    }
    onnx.return %y : tensor<1x8x16x16xf32>
  }
}

// -----

// A window dilated so far that much of it sees padding keeps its padding: guards leave it out. Another reader's padding
// is skipped.

// CHECK-LABEL: @dilated
// CHECK:      fusion.region @l0 {{.*}} -> (tensor<1x18x18x32xf32>)
// CHECK:      fusion.region @r0
// CHECK:        %[[CUT:.*]] = onnx.Slice
// CHECK:        %[[FIRST:.*]] = onnx.Transpose(%[[CUT]]) {perm = array<i64: 0, 3, 1, 2>}
// CHECK:        onnx.Conv(%[[FIRST]], %b) {dilations = array<i64: 6, 6>, pads = array<i64: 6, 6, 6, 6>}
// CHECK:      fusion.region @r1
// CHECK:        onnx.Conv(%a_1, %b) {pads = array<i64: 0, 0, 0, 0>}
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @dilated(%x: tensor<1x32x16x16xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y", "z"]} {
    %w = onnx.Constant() {value = #onnx.tensor<16x32x3x3xf32, elided>} : () -> tensor<16x32x3x3xf32>
    %y = fusion.region @r0 (%a = %x : tensor<1x32x16x16xf32>, %b = %w : tensor<16x32x3x3xf32>) -> (tensor<1x16x16x16xf32>) {
      %0 = onnx.Conv(%a, %b) {dilations = array<i64: 6, 6>, pads = array<i64: 6, 6, 6, 6>} : (tensor<1x32x16x16xf32>, tensor<16x32x3x3xf32>) -> tensor<1x16x16x16xf32>
      fusion.yield %0 : tensor<1x16x16x16xf32>
    }
    %z = fusion.region @r1 (%a = %x : tensor<1x32x16x16xf32>, %b = %w : tensor<16x32x3x3xf32>) -> (tensor<1x16x16x16xf32>) {
      %0 = onnx.Conv(%a, %b) {pads = array<i64: 1, 1, 1, 1>} : (tensor<1x32x16x16xf32>, tensor<16x32x3x3xf32>) -> tensor<1x16x16x16xf32>
      fusion.yield %0 : tensor<1x16x16x16xf32>
    }
    onnx.return %y, %z : tensor<1x16x16x16xf32>, tensor<1x16x16x16xf32>
  }
}
