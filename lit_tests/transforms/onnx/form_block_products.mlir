// RUN: igniter-opt %s -p "form-block-products" --split-input-file | filecheck %s
// RUN: igniter-opt %s -p "form-block-products{rows=8}" --split-input-file | filecheck %s --check-prefix=FEW
// RUN: igniter-opt %s -p "form-block-products{plain=true}" --split-input-file | filecheck %s --check-prefix=PLAIN

// A row times dequantised weights reads the codes: 16 columns fill a panel, and one scale is that of all blocks.
// CHECK-LABEL: attributes {input_names = ["x"], output_names = ["y"]}
// CHECK: %[[B:.*]] = onnx.Constant() <{initializer_name = "q.blocks"}> {value = #onnx.tensor<16x1x32xui8
// CHECK: %[[S:.*]] = onnx.Constant() <{initializer_name = "q.scales"}> {value = #onnx.tensor<16x1xf32
// CHECK: onnx.custom(%x, %[[B]], %[[S]]) <{{.*}}op_type = "MatMulNBits"{{.*}}> {K = 2 : i64, N = 16 : i64, bits = 8 : i64, block_size = 32 : i64}
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 13 : i64}}} {
  onnx.graph @main(%x: tensor<1x2xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    %q = onnx.Constant() <{initializer_name = "q"}> {value = #onnx.tensor<2x16xi8, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]>} : () -> tensor<2x16xi8>
    %s = onnx.Constant() <{initializer_name = "s"}> {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
    %w = onnx.DequantizeLinear(%q, %s) : (tensor<2x16xi8>, tensor<f32>) -> tensor<2x16xf32>
    %y = onnx.MatMul(%x, %w) <{output_names = ["y"]}> : (tensor<1x2xf32>, tensor<2x16xf32>) -> tensor<1x16xf32>
    onnx.return %y : tensor<1x16xf32>
  }
}

// -----

// Many rows say so: they are multiplied in another way. More than are asked for are left.
// CHECK-LABEL: attributes {input_names = ["many"], output_names = ["y"]}
// CHECK: op_type = "MatMulNBits"{{.*}}igniter.many_rows
// PLAIN-LABEL: attributes {input_names = ["many"], output_names = ["y"]}
// PLAIN: op_type = "MatMulNBits"{{.*}}igniter.plain
// PLAIN-NOT: igniter.many_rows
// FEW-LABEL: attributes {input_names = ["many"], output_names = ["y"]}
// FEW: onnx.DequantizeLinear
// FEW: onnx.MatMul(%many
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 13 : i64}}} {
  onnx.graph @main(%many: tensor<64x2xf32>) attributes {input_names = ["many"], output_names = ["y"]} {
    %q = onnx.Constant() <{initializer_name = "q"}> {value = #onnx.tensor<2x16xi8, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]>} : () -> tensor<2x16xi8>
    %s = onnx.Constant() <{initializer_name = "s"}> {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
    %w = onnx.DequantizeLinear(%q, %s) : (tensor<2x16xi8>, tensor<f32>) -> tensor<2x16xf32>
    %y = onnx.MatMul(%many, %w) <{output_names = ["y"]}> : (tensor<64x2xf32>, tensor<2x16xf32>) -> tensor<64x16xf32>
    onnx.return %y : tensor<64x16xf32>
  }
}

// -----

// A weight that is transposed behind DequantizeLinear, and rows of which nobody said how many there are.
// CHECK-LABEL: attributes {input_names = ["turned"], output_names = ["y"]}
// CHECK: onnx.Constant() <{initializer_name = "q.blocks"}> {value = #onnx.tensor<16x1x32xui8
// CHECK: op_type = "MatMulNBits"{{.*}}{K = 2 : i64, N = 16 : i64, bits = 8 : i64, block_size = 32 : i64, igniter.many_rows}
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 13 : i64}}} {
  onnx.graph @main(%turned: tensor<?x2xf32, #sym.dims<rows, 2>>) attributes {input_names = ["turned"], output_names = ["y"]} {
    %q = onnx.Constant() <{initializer_name = "q"}> {value = #onnx.tensor<16x2xi8, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]>} : () -> tensor<16x2xi8>
    %s = onnx.Constant() <{initializer_name = "s"}> {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
    %w = onnx.DequantizeLinear(%q, %s) : (tensor<16x2xi8>, tensor<f32>) -> tensor<16x2xf32>
    %t = onnx.Transpose(%w) {perm = [1, 0]} : (tensor<16x2xf32>) -> tensor<2x16xf32>
    %y = onnx.MatMul(%turned, %t) : (tensor<?x2xf32, #sym.dims<rows, 2>>, tensor<2x16xf32>) -> tensor<?x16xf32, #sym.dims<rows, 16>>
    onnx.return %y : tensor<?x16xf32, #sym.dims<rows, 16>>
  }
}

// -----

// A product of two dequantised factors is one of integers.
// CHECK-LABEL: attributes {input_names = ["codes"], output_names = ["y"]}
// CHECK: onnx.MatMul(%x, %w)
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 13 : i64}}} {
  onnx.graph @main(%codes: tensor<64x2xui8>) attributes {input_names = ["codes"], output_names = ["y"]} {
    %q = onnx.Constant() <{initializer_name = "q"}> {value = #onnx.tensor<2x16xi8, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]>} : () -> tensor<2x16xi8>
    %s = onnx.Constant() <{initializer_name = "s"}> {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
    %x = onnx.DequantizeLinear(%codes, %s) : (tensor<64x2xui8>, tensor<f32>) -> tensor<64x2xf32>
    %w = onnx.DequantizeLinear(%q, %s) : (tensor<2x16xi8>, tensor<f32>) -> tensor<2x16xf32>
    %y = onnx.MatMul(%x, %w) <{output_names = ["y"]}> : (tensor<64x2xf32>, tensor<2x16xf32>) -> tensor<64x16xf32>
    onnx.return %y : tensor<64x16xf32>
  }
}

// -----

// GPUs multiply 16-bit floats; on CPUs this product is left.
// CHECK-LABEL: attributes {input_names = ["half"], output_names = ["y"]}
// CHECK: onnx.MatMul(%half
// PLAIN-LABEL: attributes {input_names = ["half"], output_names = ["y"]}
// PLAIN: #onnx.tensor<16x1xf16
// PLAIN: op_type = "MatMulNBits"{{.*}}{K = 2 : i64, N = 16 : i64, bits = 8 : i64, block_size = 32 : i64, igniter.plain}
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 19 : i64}}} {
  onnx.graph @main(%half: tensor<64x2xf16>) attributes {input_names = ["half"], output_names = ["y"]} {
    %q = onnx.Constant() <{initializer_name = "q"}> {value = #onnx.tensor<2x16xi8, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]>} : () -> tensor<2x16xi8>
    %s = onnx.Constant() <{initializer_name = "s"}> {value = #onnx.tensor<f16, [0.5]>} : () -> tensor<f16>
    %w = onnx.DequantizeLinear(%q, %s) : (tensor<2x16xi8>, tensor<f16>) -> tensor<2x16xf16>
    %y = onnx.MatMul(%half, %w) <{output_names = ["y"]}> : (tensor<64x2xf16>, tensor<2x16xf16>) -> tensor<64x16xf16>
    onnx.return %y : tensor<64x16xf16>
  }
}
