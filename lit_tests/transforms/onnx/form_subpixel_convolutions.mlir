// RUN: igniter-opt %s -p "form-subpixel-convolutions{force=true}" --split-input-file | filecheck %s
// RUN: igniter-opt %s -p "form-subpixel-convolutions{force=true}" --split-input-file | igniter-opt --split-input-file | filecheck %s
// RUN: igniter-opt %s -p "form-subpixel-convolutions{force=true}" --split-input-file --emit=none --remarks --remarks-output=- | filecheck %s --check-prefix=REMARK

// RUN: igniter-opt %s -p form-subpixel-convolutions --split-input-file --emit=none --remarks --remarks-output=- | filecheck %s --check-prefix=ALONE

// ALONE: form-subpixel-convolutions: missed: it has no neighbouring convolution to share a layout with

// Four phases, each a window of two by two turned around, are the channels of one convolution. What works on single
// elements stands in front of the moves, so that the convolution ends with it.

// CHECK-LABEL: onnx.graph @cropped
// CHECK:         %[[W:.*]] = onnx.Constant() {{.*}} : () -> tensor<8x1x2x2xf32>
// CHECK-NEXT:    %[[B:.*]] = onnx.Constant() {value = #onnx.tensor<8xf32, [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0]>}
// CHECK-NEXT:    %[[P:.*]] = onnx.Conv(%x, %[[W]], %[[B]]) {pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, group = 1 : i64, kernel_shape = array<i64: 2, 2>} : {{.*}} -> tensor<1x8x6x8xf32>
// CHECK:         %[[R:.*]] = onnx.Relu(%[[P]])
// CHECK-NEXT:    %[[Q:.*]] = onnx.DepthToSpace(%[[R]]) {blocksize = 2 : i64} : {{.*}} -> tensor<1x2x12x16xf32>
// CHECK:         %[[Y:.*]] = onnx.Slice(%[[Q]], {{.*}} -> tensor<1x2x10x14xf32>
// CHECK-NEXT:    onnx.return %[[Y]]
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @cropped(%x: tensor<1x1x5x7xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() {value = #onnx.tensor<1x2x4x4xf32, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0]>} : () -> tensor<1x2x4x4xf32>
    %b = onnx.Constant() {value = #onnx.tensor<2xf32, [1.0, 2.0]>} : () -> tensor<2xf32>
    %c = onnx.ConvTranspose(%x, %w, %b) {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>} : (tensor<1x1x5x7xf32>, tensor<1x2x4x4xf32>, tensor<2xf32>) -> tensor<1x2x10x14xf32>
    %y = onnx.Relu(%c) : (tensor<1x2x10x14xf32>) -> tensor<1x2x10x14xf32>
    onnx.return %y : tensor<1x2x10x14xf32>
  }
}
// REMARK: form-subpixel-convolutions: applied: 1 transposed convolutions became convolutions [count=1]

// -----

// A convolution behind it has its layout, through what does the same in any.

// CHECK-LABEL: onnx.graph @beside
// CHECK-NOT:     onnx.ConvTranspose
// ALONE: form-subpixel-convolutions: applied: 1 transposed convolutions became convolutions [count=1]
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @beside(%x: tensor<1x1x5x7xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() {value = #onnx.tensor<1x2x2x2xf32, elided>} : () -> tensor<1x2x2x2xf32>
    %v = onnx.Constant() {value = #onnx.tensor<3x2x1x1xf32, elided>} : () -> tensor<3x2x1x1xf32>
    %c = onnx.ConvTranspose(%x, %w) {strides = array<i64: 2, 2>} : (tensor<1x1x5x7xf32>, tensor<1x2x2x2xf32>) -> tensor<1x2x10x14xf32>
    %r = onnx.Relu(%c) : (tensor<1x2x10x14xf32>) -> tensor<1x2x10x14xf32>
    %y = onnx.Conv(%r, %v) : (tensor<1x2x10x14xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x10x14xf32>
    onnx.return %y : tensor<1x3x10x14xf32>
  }
}

// -----

// All places of all phases are wanted, and each phase fills vectors: phases are marked, and will be loops.

// CHECK-LABEL: onnx.graph @whole
// CHECK:         onnx.Conv(%x, {{.*}}) {{{.*}}igniter.phases = array<i64: 2, 2>} : (tensor<?x1x?x?xf32, #sym.dims<n, 1, h, w>>, tensor<64x1x1x1xf32>) -> tensor<?x64x?x?xf32, #sym.dims<n, 64, h, w>>
// CHECK-NEXT:    onnx.DepthToSpace
// CHECK-NEXT:    onnx.return
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @whole(%x: tensor<?x1x?x?xf32, #sym.dims<n, 1, h, w>>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() {value = #onnx.tensor<1x16x2x2xf32, elided>} : () -> tensor<1x16x2x2xf32>
    %y = onnx.ConvTranspose(%x, %w) {strides = array<i64: 2, 2>} : (tensor<?x1x?x?xf32, #sym.dims<n, 1, h, w>>, tensor<1x16x2x2xf32>) -> tensor<?x16x?x?xf32, #sym.dims<n, 16, 2*h, 2*w>>
    onnx.return %y : tensor<?x16x?x?xf32, #sym.dims<n, 16, 2*h, 2*w>>
  }
}

// -----

// The stride does not divide the window: phases see two elements or one, and those that see as many are a convolution.

// CHECK-LABEL: onnx.graph @uneven
// CHECK:         %[[A:.*]] = onnx.Conv(%x, {{.*}} {pads = array<i64: 1, 1, 1, 1>, {{.*}} tensor<2x1x2x2xf32>) -> tensor<1x2x6x8xf32>
// CHECK:         %[[B:.*]] = onnx.Conv(%x, {{.*}} {pads = array<i64: 1, 0, 1, 1>, {{.*}} tensor<2x1x2x1xf32>) -> tensor<1x2x6x8xf32>
// CHECK:         %[[C:.*]] = onnx.Conv(%x, {{.*}} {pads = array<i64: 0, 1, 1, 1>, {{.*}} tensor<2x1x1x2xf32>) -> tensor<1x2x6x8xf32>
// CHECK:         %[[D:.*]] = onnx.Conv(%x, {{.*}} {pads = array<i64: 0, 0, 1, 1>, {{.*}} tensor<2x1x1x1xf32>) -> tensor<1x2x6x8xf32>
// CHECK-NEXT:    onnx.Concat(%[[A]], %[[B]], %[[C]], %[[D]]) {axis = 1 : i64}
// CHECK-NEXT:    onnx.DepthToSpace
// CHECK:         onnx.Slice
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @uneven(%x: tensor<1x1x5x7xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() {value = #onnx.tensor<1x2x3x3xf32, elided>} : () -> tensor<1x2x3x3xf32>
    %y = onnx.ConvTranspose(%x, %w) {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, output_padding = array<i64: 1, 1>} : (tensor<1x1x5x7xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x10x14xf32>
    onnx.return %y : tensor<1x2x10x14xf32>
  }
}

// -----

// In one dim, Reshape and Transpose stand for DepthToSpace.

// CHECK-LABEL: onnx.graph @line
// CHECK:         %[[P:.*]] = onnx.Conv(%x, {{.*}} {pads = array<i64: 1, 1>, {{.*}} -> tensor<1x8x?xf32, #sym.dims<1, 8, s + 1>>
// CHECK:         %[[A:.*]] = onnx.Reshape(%[[P]], {{.*}} -> tensor<1x4x2x?xf32, #sym.dims<1, 4, 2, s + 1>>
// CHECK-NEXT:    %[[T:.*]] = onnx.Transpose(%[[A]]) {perm = array<i64: 0, 2, 3, 1>}
// CHECK:         %[[Q:.*]] = onnx.Reshape(%[[T]], {{.*}} -> tensor<1x2x?xf32, #sym.dims<1, 2, 4*s + 4>>
// CHECK:         onnx.Slice(%[[Q]], {{.*}} -> tensor<1x2x?xf32, #sym.dims<1, 2, 4*s>>
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @line(%x: tensor<1x4x?xf32, #sym.dims<1, 4, s>>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() {value = #onnx.tensor<4x2x8xf32, elided>} : () -> tensor<4x2x8xf32>
    %y = onnx.ConvTranspose(%x, %w) {strides = array<i64: 4>, pads = array<i64: 2, 2>} : (tensor<1x4x?xf32, #sym.dims<1, 4, s>>, tensor<4x2x8xf32>) -> tensor<1x2x?xf32, #sym.dims<1, 2, 4*s>>
    onnx.return %y : tensor<1x2x?xf32, #sym.dims<1, 2, 4*s>>
  }
}

// -----

// Of a group, all phases of a channel lie together. A stride of one is one phase, which may be dilated.

// CHECK-LABEL: onnx.graph @others
// CHECK:         onnx.Conv(%x, {{.*}} {pads = array<i64: 0, 0, 0, 0>, {{.*}} group = 4 : i64, {{.*}} -> tensor<1x16x5x7xf32>
// CHECK-NEXT:    onnx.DepthToSpace({{.*}}) {blocksize = 2 : i64, mode = "CRD"}
// CHECK:         onnx.Conv(%x, {{.*}} {pads = array<i64: 2, 3, 2, 3>, dilations = array<i64: 2, 3>, {{.*}} -> tensor<1x1x7x10xf32>
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @others(%x: tensor<1x4x5x7xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y", "z"]} {
    %w = onnx.Constant() {value = #onnx.tensor<4x1x2x2xf32, elided>} : () -> tensor<4x1x2x2xf32>
    %y = onnx.ConvTranspose(%x, %w) {strides = array<i64: 2, 2>, group = 4 : i64} : (tensor<1x4x5x7xf32>, tensor<4x1x2x2xf32>) -> tensor<1x4x10x14xf32>
    %z = onnx.ConvTranspose(%x, %w) {dilations = array<i64: 2, 3>} : (tensor<1x4x5x7xf32>, tensor<4x1x2x2xf32>) -> tensor<1x1x7x10xf32>
    onnx.return %y, %z : tensor<1x4x10x14xf32>, tensor<1x1x7x10xf32>
  }
}

// -----

// Left: a weight that is no constant, and windows that do not touch. Strides that differ are no reason.

// CHECK-LABEL: onnx.graph @left
// CHECK-COUNT-3: onnx.ConvTranspose
// CHECK-NEXT:    onnx.Constant
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @left(%x: tensor<1x1x?x?xf32, #sym.dims<1, 1, h, w>>, %w: tensor<1x1x2x2xf32>) attributes {graph_name = "g", input_names = ["x", "w"], output_names = ["a", "c", "d", "e"]} {
    %k = onnx.Constant() {value = #onnx.tensor<1x1x2x2xf32, [1.0, 2.0, 3.0, 4.0]>} : () -> tensor<1x1x2x2xf32>
    %a = onnx.ConvTranspose(%x, %w) <{node_name = "computed"}> : (tensor<1x1x?x?xf32, #sym.dims<1, 1, h, w>>, tensor<1x1x2x2xf32>) -> tensor<1x1x?x?xf32, #sym.dims<1, 1, h + 1, w + 1>>
    %c = onnx.ConvTranspose(%x, %k) <{node_name = "apart"}> {strides = array<i64: 3, 3>} : (tensor<1x1x?x?xf32, #sym.dims<1, 1, h, w>>, tensor<1x1x2x2xf32>) -> tensor<1x1x?x?xf32, #sym.dims<1, 1, 3*h - 1, 3*w - 1>>
    %d = onnx.ConvTranspose(%x, %k) <{node_name = "dilated"}> {strides = array<i64: 2, 2>, dilations = array<i64: 2, 2>} : (tensor<1x1x?x?xf32, #sym.dims<1, 1, h, w>>, tensor<1x1x2x2xf32>) -> tensor<1x1x?x?xf32, #sym.dims<1, 1, 2*h + 1, 2*w + 1>>
    %e = onnx.ConvTranspose(%x, %k) <{node_name = "unequal"}> {strides = array<i64: 2, 1>} : (tensor<1x1x?x?xf32, #sym.dims<1, 1, h, w>>, tensor<1x1x2x2xf32>) -> tensor<1x1x?x?xf32, #sym.dims<1, 1, 2*h, w + 1>>
    onnx.return %a, %c, %d, %e : tensor<1x1x?x?xf32, #sym.dims<1, 1, h + 1, w + 1>>, tensor<1x1x?x?xf32, #sym.dims<1, 1, 3*h - 1, 3*w - 1>>, tensor<1x1x?x?xf32, #sym.dims<1, 1, 2*h + 1, 2*w + 1>>, tensor<1x1x?x?xf32, #sym.dims<1, 1, 2*h, w + 1>>
  }
}
// REMARK: form-subpixel-convolutions: 'computed' missed: its weight is not a constant
// REMARK: form-subpixel-convolutions: 'apart' missed: its windows of 2, dilated by 1, have a stride of 3
// REMARK: form-subpixel-convolutions: 'dilated' missed: its windows of 2, dilated by 2, have a stride of 2

// -----

// A single pixel has no neighbour: its window is the stride, and the convolution one of 1 x 1, whatever the stride is.

// CHECK-LABEL: onnx.graph @pixel
// CHECK:         onnx.Conv(%x, {{.*}} {pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 1 : i64, kernel_shape = array<i64: 1, 1>
// CHECK-SAME:      -> tensor<1x32x1x1xf32>
// CHECK-NEXT:    %[[D:.*]] = onnx.DepthToSpace({{.*}}) {blocksize = 4 : i64}
// CHECK:         onnx.Slice(%[[D]], {{.*}} -> tensor<1x2x2x3xf32>
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @pixel(%x: tensor<1x3x1x1xf32>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() {value = #onnx.tensor<3x2x4x4xf32, elided>} : () -> tensor<3x2x4x4xf32>
    %y = onnx.ConvTranspose(%x, %w) {pads = array<i64: 1, 0, 1, 1>} : (tensor<1x3x1x1xf32>, tensor<3x2x4x4xf32>) -> tensor<1x2x2x3xf32>
    onnx.return %y : tensor<1x2x2x3xf32>
  }
}
