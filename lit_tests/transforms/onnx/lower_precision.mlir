// RUN: igniter-opt %s -p "lower-precision{to=int8-dynamic}" --split-input-file | filecheck %s
// RUN: igniter-opt %s -p "lower-precision{to=bf16}" --split-input-file | filecheck %s --check-prefix=BF16
// RUN: igniter-opt %s -p "lower-precision{to=bf16 half-tiles=true}" --split-input-file | filecheck %s --check-prefix=TILES
// RUN: not igniter-opt %s -p "lower-precision{to=int3}" --split-input-file 2>&1 | filecheck %s --check-prefix=BAD

// BAD: the option 'to' must be one of f32, bf16, int8-dynamic, not 'int3'

// A product with constant weights.

// CHECK:        onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<n, 4>>) attributes {input_names = ["x"], output_names = ["y"]} {
// CHECK-NEXT:     %0 = onnx.Abs(%x) : (tensor<?x4xf32, #sym.dims<n, 4>>) -> tensor<?x4xf32, #sym.dims<n, 4>>
// CHECK-NEXT:     %1 = onnx.ReduceMax(%0) {axes = array<i64: -1>, keepdims = 1 : i64} : (tensor<?x4xf32, #sym.dims<n, 4>>) -> tensor<?x1xf32, #sym.dims<n, 1>>
// CHECK-NEXT:     %2 = onnx.Constant() {value = #onnx.tensor<f32, [1.0e-30]>} : () -> tensor<f32>
// CHECK-NEXT:     %3 = onnx.Max(%1, %2) : (tensor<?x1xf32, #sym.dims<n, 1>>, tensor<f32>) -> tensor<?x1xf32, #sym.dims<n, 1>>
// CHECK-NEXT:     %4 = onnx.Constant() {value = #onnx.tensor<f32, [0.007874016]>} : () -> tensor<f32>
// CHECK-NEXT:     %5 = onnx.Mul(%3, %4) : (tensor<?x1xf32, #sym.dims<n, 1>>, tensor<f32>) -> tensor<?x1xf32, #sym.dims<n, 1>>
// CHECK-NEXT:     %6 = onnx.Constant() {value = #onnx.tensor<f32, [127.0]>} : () -> tensor<f32>
// CHECK-NEXT:     %7 = onnx.Div(%6, %3) : (tensor<f32>, tensor<?x1xf32, #sym.dims<n, 1>>) -> tensor<?x1xf32, #sym.dims<n, 1>>
// CHECK-NEXT:     %8 = onnx.Mul(%x, %7) : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<?x1xf32, #sym.dims<n, 1>>) -> tensor<?x4xf32, #sym.dims<n, 4>>
// CHECK-NEXT:     %9 = onnx.Round(%8) : (tensor<?x4xf32, #sym.dims<n, 4>>) -> tensor<?x4xf32, #sym.dims<n, 4>>
// CHECK-NEXT:     %10 = onnx.Constant() {value = #onnx.tensor<f32, [128.0]>} : () -> tensor<f32>
// CHECK-NEXT:     %11 = onnx.Add(%9, %10) : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<f32>) -> tensor<?x4xf32, #sym.dims<n, 4>>
// CHECK-NEXT:     %12 = onnx.Cast(%11) {to = 2 : i64} : (tensor<?x4xf32, #sym.dims<n, 4>>) -> tensor<?x4xui8, #sym.dims<n, 4>>
// CHECK-NEXT:     %w.i8 = onnx.Constant() <{initializer_name = "w.i8"}> {value = #onnx.tensor<4x16xi8, [-127, 0, 127, -64, 64, -127, 0, 127, -64, 64, -127, 0, 127, -64, 64, -127, 0, 127, -64, 64, -127, 0, 127, -64, 64, -127, 0, 127, -64, 64, -127, 0, 127, -64, 64, -127, 0, 127, -64, 64, -127, 0, 127, -64, 64, -127, 0, 127, -64, 64, -127, 0, 127, -64, 64, -127, 0, 127, -64, 64, -127, 0, 127, -64]>} : () -> tensor<4x16xi8>
// CHECK-NEXT:     %w.scale = onnx.Constant() <{initializer_name = "w.scale"}> {value = #onnx.tensor<16xf32, [0.003937008, 0.003937008, 0.003937008, 0.003937008, 0.003937008, 0.003937008, 0.003937008, 0.003937008, 0.003937008, 0.003937008, 0.003937008, 0.003937008, 0.003937008, 0.003937008, 0.003937008, 0.003937008]>} : () -> tensor<16xf32>
// CHECK-NEXT:     %w.sum = onnx.Constant() <{initializer_name = "w.sum"}> {value = #onnx.tensor<16xi32, [-8192, 16256, 0, -16256, 8192, -8192, 16256, 0, -16256, 8192, -8192, 16256, 0, -16256, 8192, -8192]>} : () -> tensor<16xi32>
// CHECK-NEXT:     %13 = onnx.MatMulInteger(%12, %w.i8) : (tensor<?x4xui8, #sym.dims<n, 4>>, tensor<4x16xi8>) -> tensor<?x16xi32, #sym.dims<n, 16>>
// CHECK-NEXT:     %14 = onnx.Sub(%13, %w.sum) : (tensor<?x16xi32, #sym.dims<n, 16>>, tensor<16xi32>) -> tensor<?x16xi32, #sym.dims<n, 16>>
// CHECK-NEXT:     %15 = onnx.Cast(%14) {to = 1 : i64} : (tensor<?x16xi32, #sym.dims<n, 16>>) -> tensor<?x16xf32, #sym.dims<n, 16>>
// CHECK-NEXT:     %16 = onnx.Mul(%15, %5) : (tensor<?x16xf32, #sym.dims<n, 16>>, tensor<?x1xf32, #sym.dims<n, 1>>) -> tensor<?x16xf32, #sym.dims<n, 16>>
// CHECK-NEXT:     %y = onnx.Mul(%16, %w.scale) <{node_name = "product"}> : (tensor<?x16xf32, #sym.dims<n, 16>>, tensor<16xf32>) -> tensor<?x16xf32, #sym.dims<n, 16>>
// CHECK-NEXT:     onnx.return %y : tensor<?x16xf32, #sym.dims<n, 16>>
// CHECK-NEXT:   }

// BF16:        onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<n, 4>>) attributes {input_names = ["x"], output_names = ["y"]} {
// BF16-NEXT:     %0 = onnx.Cast(%x) {to = 16 : i64} : (tensor<?x4xf32, #sym.dims<n, 4>>) -> tensor<?x4xbf16, #sym.dims<n, 4>>
// BF16-NEXT:     %1 = onnx.Cast(%0) {to = 1 : i64} : (tensor<?x4xbf16, #sym.dims<n, 4>>) -> tensor<?x4xf32, #sym.dims<n, 4>>
// BF16-NEXT:     %w.bf16 = onnx.Constant() <{initializer_name = "w.bf16"}> {value = #onnx.tensor<4x16xbf16, [-0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25]>} : () -> tensor<4x16xbf16>
// BF16-NEXT:     %2 = onnx.Cast(%w.bf16) {to = 1 : i64} : (tensor<4x16xbf16>) -> tensor<4x16xf32>
// BF16-NEXT:     %y = onnx.MatMul(%1, %2) <{node_name = "product"}> : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<4x16xf32>) -> tensor<?x16xf32, #sym.dims<n, 16>>
// BF16-NEXT:     onnx.return %y : tensor<?x16xf32, #sym.dims<n, 16>>
// BF16-NEXT:   }

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<n, 4>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<4x16xf32, [-0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25]>} : () -> tensor<4x16xf32>
    %y = onnx.MatMul(%x, %w) <{node_name = "product"}> : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<4x16xf32>) -> tensor<?x16xf32, #sym.dims<n, 16>>
    onnx.return %y : tensor<?x16xf32, #sym.dims<n, 16>>
  }
}

// -----

// Few columns stay as they are.

// CHECK:        onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<n, 4>>) attributes {input_names = ["x"], output_names = ["y"]} {
// CHECK-NEXT:     %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<4x3xf32, [-0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0]>} : () -> tensor<4x3xf32>
// CHECK-NEXT:     %y = onnx.MatMul(%x, %w) <{node_name = "product"}> : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<4x3xf32>) -> tensor<?x3xf32, #sym.dims<n, 3>>
// CHECK-NEXT:     onnx.return %y : tensor<?x3xf32, #sym.dims<n, 3>>
// CHECK-NEXT:   }

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<n, 4>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<4x3xf32, [-0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0]>} : () -> tensor<4x3xf32>
    %y = onnx.MatMul(%x, %w) <{node_name = "product"}> : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<4x3xf32>) -> tensor<?x3xf32, #sym.dims<n, 3>>
    onnx.return %y : tensor<?x3xf32, #sym.dims<n, 3>>
  }
}

// -----

// So does a depth that is no multiple of the group.

// CHECK:        onnx.graph @main(%x: tensor<?x3xf32, #sym.dims<n, 3>>) attributes {input_names = ["x"], output_names = ["y"]} {
// CHECK-NEXT:     %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<3x16xf32, [-0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5]>} : () -> tensor<3x16xf32>
// CHECK-NEXT:     %y = onnx.MatMul(%x, %w) <{node_name = "product"}> : (tensor<?x3xf32, #sym.dims<n, 3>>, tensor<3x16xf32>) -> tensor<?x16xf32, #sym.dims<n, 16>>
// CHECK-NEXT:     onnx.return %y : tensor<?x16xf32, #sym.dims<n, 16>>
// CHECK-NEXT:   }

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x3xf32, #sym.dims<n, 3>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<3x16xf32, [-0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5, -0.25, 0.25, -0.5, 0.0, 0.5]>} : () -> tensor<3x16xf32>
    %y = onnx.MatMul(%x, %w) <{node_name = "product"}> : (tensor<?x3xf32, #sym.dims<n, 3>>, tensor<3x16xf32>) -> tensor<?x16xf32, #sym.dims<n, 16>>
    onnx.return %y : tensor<?x16xf32, #sym.dims<n, 16>>
  }
}

// -----

// With tiles of bf16 so is a product of two computed tensors: each is rounded before it is moved.

// CHECK: %s = onnx.MatMul(%q, %t) <{node_name = "scores"}>
// BF16: %s = onnx.MatMul(%q, %t) <{node_name = "scores"}>

// TILES:      %[[Q:.*]] = onnx.Cast(%q) {to = 16 : i64}
// TILES-NEXT: %[[A:.*]] = onnx.Cast(%[[Q]]) {to = 1 : i64}
// TILES-NEXT: %[[K:.*]] = onnx.Cast(%k) {to = 16 : i64}
// TILES-NEXT: %[[W:.*]] = onnx.Cast(%[[K]]) {to = 1 : i64}
// TILES-NEXT: %[[B:.*]] = onnx.Transpose(%[[W]]) {perm = array<i64: 1, 0>}
// TILES-NEXT: %s = onnx.MatMul(%[[A]], %[[B]]) <{node_name = "scores"}>

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%q: tensor<?x64xf32, #sym.dims<n, 64>>, %k: tensor<?x64xf32, #sym.dims<n, 64>>) attributes {input_names = ["q", "k"], output_names = ["s"]} {
    %t = onnx.Transpose(%k) {perm = array<i64: 1, 0>} : (tensor<?x64xf32, #sym.dims<n, 64>>) -> tensor<64x?xf32, #sym.dims<64, n>>
    %s = onnx.MatMul(%q, %t) <{node_name = "scores"}> : (tensor<?x64xf32, #sym.dims<n, 64>>, tensor<64x?xf32, #sym.dims<64, n>>) -> tensor<?x?xf32, #sym.dims<n, n>>
    onnx.return %s : tensor<?x?xf32, #sym.dims<n, n>>
  }
}

// -----

// A symbolic number of rows beside other keys may be one row on a long past: it stays.

// TILES: %s = onnx.MatMul(%q, %k) <{node_name = "scores"}>

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%q: tensor<?x64xf32, #sym.dims<n, 64>>, %k: tensor<64x?xf32, #sym.dims<64, past>>) attributes {input_names = ["q", "k"], output_names = ["s"]} {
    %s = onnx.MatMul(%q, %k) <{node_name = "scores"}> : (tensor<?x64xf32, #sym.dims<n, 64>>, tensor<64x?xf32, #sym.dims<64, past>>) -> tensor<?x?xf32, #sym.dims<n, past>>
    onnx.return %s : tensor<?x?xf32, #sym.dims<n, past>>
  }
}
