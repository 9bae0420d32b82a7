// RUN: igniter-opt %s -p pack-weights --split-input-file | filecheck %s
// RUN: igniter-opt %s -p pack-weights --remarks --emit=none --split-input-file 2>&1 | filecheck %s --check-prefix=APPLIED
// RUN: igniter-opt %s -p pack-weights,lower-onnx-to-loop --check-each --emit=none --split-input-file 2>&1 | filecheck %s --check-prefix=CHECKED
// RUN: igniter-opt %s -p pack-weights,inline-regions --check-each --emit=none --split-input-file 2>&1 | filecheck %s --check-prefix=INLINED

// CHECKED-COUNT-12: check: lower-onnx-to-loop: {{[2-3]}} results agree
// INLINED-COUNT-12: check: inline-regions: {{.*}} agree

// A weight is packed outside the region, which still sees it as it was. Five columns fill a part of one panel.

// APPLIED: remark: pack-weights: 'product' applied: operand 1 is packed into panels
// CHECK:      %w_1 = fusion.pack %w [1 floordiv 16, 0, 1 mod 16] : tensor<2x5xf32> to tensor<1x2x16xf32>
// CHECK-NEXT: %y = fusion.region @r0 (%a = %x : tensor<?x2xf32, #sym.dims<m, 2>>, %b = %w_1 : tensor<1x2x16xf32>)
// CHECK-NEXT:   %b_1 = fusion.unpack %b [1 floordiv 16, 0, 1 mod 16] : tensor<1x2x16xf32> to tensor<2x5xf32>
// CHECK-NEXT:   onnx.MatMul(%a, %b_1)

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x2xf32, #sym.dims<m, 2>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<2x5xf32, [0, 1, 2, 3, 4, 5, 6, 0, 1, 2]>} : () -> tensor<2x5xf32>
    %y = fusion.region @r0 (%a = %x : tensor<?x2xf32, #sym.dims<m, 2>>, %b = %w : tensor<2x5xf32>) -> (tensor<?x5xf32, #sym.dims<m, 5>>) {
      %p = onnx.MatMul(%a, %b) <{node_name = "product"}> : (tensor<?x2xf32, #sym.dims<m, 2>>, tensor<2x5xf32>) -> tensor<?x5xf32, #sym.dims<m, 5>>
      fusion.yield %p : tensor<?x5xf32, #sym.dims<m, 5>>
    }
    onnx.return %y : tensor<?x5xf32, #sym.dims<m, 5>>
  }
}

// -----

// A Gemm whose right operand is transposed: its columns are the first dim.

// CHECK: fusion.pack %w [0 floordiv 16, 1, 0 mod 16] : tensor<17x2xf32> to tensor<2x2x16xf32>

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x2xf32, #sym.dims<m, 2>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<17x2xf32, [0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5]>} : () -> tensor<17x2xf32>
    %y = fusion.region @r0 (%a = %x : tensor<?x2xf32, #sym.dims<m, 2>>, %b = %w : tensor<17x2xf32>) -> (tensor<?x17xf32, #sym.dims<m, 17>>) {
      %p = onnx.Gemm(%a, %b) <{node_name = "product"}> {transB = 1 : i64} : (tensor<?x2xf32, #sym.dims<m, 2>>, tensor<17x2xf32>) -> tensor<?x17xf32, #sym.dims<m, 17>>
      fusion.yield %p : tensor<?x17xf32, #sym.dims<m, 17>>
    }
    onnx.return %y : tensor<?x17xf32, #sym.dims<m, 17>>
  }
}

// -----

// The dims of a stack of weights stay in front. Panels of doubles are 8 columns.

// CHECK: fusion.pack %w [0, 2 floordiv 8, 1, 2 mod 8] : tensor<3x2x4xf64> to tensor<3x1x2x8xf64>

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<3x?x2xf64, #sym.dims<3, m, 2>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<3x2x4xf64, [0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2]>} : () -> tensor<3x2x4xf64>
    %y = fusion.region @r0 (%a = %x : tensor<3x?x2xf64, #sym.dims<3, m, 2>>, %b = %w : tensor<3x2x4xf64>) -> (tensor<3x?x4xf64, #sym.dims<3, m, 4>>) {
      %p = onnx.MatMul(%a, %b) <{node_name = "product"}> : (tensor<3x?x2xf64, #sym.dims<3, m, 2>>, tensor<3x2x4xf64>) -> tensor<3x?x4xf64, #sym.dims<3, m, 4>>
      fusion.yield %p : tensor<3x?x4xf64, #sym.dims<3, m, 4>>
    }
    onnx.return %y : tensor<3x?x4xf64, #sym.dims<3, m, 4>>
  }
}

// -----

// Einsum: either operand, where the last dim of the result is its own.

// CHECK: fusion.pack %w [1 floordiv 16, 0, 1 mod 16] : tensor<2x4xf32> to tensor<1x2x16xf32>

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x2xf32, #sym.dims<m, 2>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<2x4xf32, [0, 1, 2, 3, 4, 5, 6, 0]>} : () -> tensor<2x4xf32>
    %y = fusion.region @r0 (%a = %x : tensor<?x2xf32, #sym.dims<m, 2>>, %b = %w : tensor<2x4xf32>) -> (tensor<?x4xf32, #sym.dims<m, 4>>) {
      %p = onnx.Einsum(%b, %a) <{node_name = "product"}> {equation = "jk,ij->ik"} : (tensor<2x4xf32>, tensor<?x2xf32, #sym.dims<m, 2>>) -> tensor<?x4xf32, #sym.dims<m, 4>>
      fusion.yield %p : tensor<?x4xf32, #sym.dims<m, 4>>
    }
    onnx.return %y : tensor<?x4xf32, #sym.dims<m, 4>>
  }
}

// -----

// Bytes are packed in groups of four steps of depth.

// CHECK: fusion.pack %w [1 floordiv 16, 0 floordiv 4, 1 mod 16, 0 mod 4] : tensor<4x5xi8> to tensor<1x1x16x4xi8>

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x4xui8, #sym.dims<m, 4>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<4x5xi8, [0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5]>} : () -> tensor<4x5xi8>
    %y = fusion.region @r0 (%a = %x : tensor<?x4xui8, #sym.dims<m, 4>>, %b = %w : tensor<4x5xi8>) -> (tensor<?x5xi32, #sym.dims<m, 5>>) {
      %p = onnx.MatMulInteger(%a, %b) <{node_name = "product"}> : (tensor<?x4xui8, #sym.dims<m, 4>>, tensor<4x5xi8>) -> tensor<?x5xi32, #sym.dims<m, 5>>
      fusion.yield %p : tensor<?x5xi32, #sym.dims<m, 5>>
    }
    onnx.return %y : tensor<?x5xi32, #sym.dims<m, 5>>
  }
}

// -----

// Too few columns.

// APPLIED: remark: pack-weights: 'product' missed: 3 columns fill too small a part of a panel
// CHECK: onnx.MatMul(%a, %b)

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x2xf32, #sym.dims<m, 2>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<2x3xf32, [0, 1, 2, 3, 4, 5]>} : () -> tensor<2x3xf32>
    %y = fusion.region @r0 (%a = %x : tensor<?x2xf32, #sym.dims<m, 2>>, %b = %w : tensor<2x3xf32>) -> (tensor<?x3xf32, #sym.dims<m, 3>>) {
      %p = onnx.MatMul(%a, %b) <{node_name = "product"}> : (tensor<?x2xf32, #sym.dims<m, 2>>, tensor<2x3xf32>) -> tensor<?x3xf32, #sym.dims<m, 3>>
      fusion.yield %p : tensor<?x3xf32, #sym.dims<m, 3>>
    }
    onnx.return %y : tensor<?x3xf32, #sym.dims<m, 3>>
  }
}

// -----

// As few, and a depth that fills vectors: each is stored side by side, for dot products.

// APPLIED: remark: pack-weights: 'product' missed: 3 columns fill too small a part of a panel
// CHECK: fusion.pack %w [1, 0] : tensor<40x3xf32> to tensor<3x40xf32>
// CHECK: %[[W:.*]] = fusion.unpack %b [1, 0] : tensor<3x40xf32> to tensor<40x3xf32>
// CHECK: onnx.MatMul(%a, %[[W]])

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x40xf32, #sym.dims<m, 40>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<40x3xf32, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119]>} : () -> tensor<40x3xf32>
    %y = fusion.region @r0 (%a = %x : tensor<?x40xf32, #sym.dims<m, 40>>, %b = %w : tensor<40x3xf32>) -> (tensor<?x3xf32, #sym.dims<m, 3>>) {
      %p = onnx.MatMul(%a, %b) <{node_name = "product"}> : (tensor<?x40xf32, #sym.dims<m, 40>>, tensor<40x3xf32>) -> tensor<?x3xf32, #sym.dims<m, 3>>
      fusion.yield %p : tensor<?x3xf32, #sym.dims<m, 3>>
    }
    onnx.return %y : tensor<?x3xf32, #sym.dims<m, 3>>
  }
}

// -----

// A depth that is no multiple of the group.

// APPLIED: remark: pack-weights: 'product' missed: a depth of 6 is not a multiple of the 4 steps of one instruction
// CHECK: onnx.MatMulInteger(%a, %b)

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x6xui8, #sym.dims<m, 6>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<6x5xi8, [0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1]>} : () -> tensor<6x5xi8>
    %y = fusion.region @r0 (%a = %x : tensor<?x6xui8, #sym.dims<m, 6>>, %b = %w : tensor<6x5xi8>) -> (tensor<?x5xi32, #sym.dims<m, 5>>) {
      %p = onnx.MatMulInteger(%a, %b) <{node_name = "product"}> : (tensor<?x6xui8, #sym.dims<m, 6>>, tensor<6x5xi8>) -> tensor<?x5xi32, #sym.dims<m, 5>>
      fusion.yield %p : tensor<?x5xi32, #sym.dims<m, 5>>
    }
    onnx.return %y : tensor<?x5xi32, #sym.dims<m, 5>>
  }
}

// -----

// A type that no micro-kernel multiplies.

// APPLIED: remark: pack-weights: 'product' missed: there is no micro-kernel for products of i64 and i64 in i64
// CHECK: onnx.MatMul(%a, %b)

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x2xi64, #sym.dims<m, 2>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<2x5xi64, [0, 1, 2, 3, 4, 5, 6, 0, 1, 2]>} : () -> tensor<2x5xi64>
    %y = fusion.region @r0 (%a = %x : tensor<?x2xi64, #sym.dims<m, 2>>, %b = %w : tensor<2x5xi64>) -> (tensor<?x5xi64, #sym.dims<m, 5>>) {
      %p = onnx.MatMul(%a, %b) <{node_name = "product"}> : (tensor<?x2xi64, #sym.dims<m, 2>>, tensor<2x5xi64>) -> tensor<?x5xi64, #sym.dims<m, 5>>
      fusion.yield %p : tensor<?x5xi64, #sym.dims<m, 5>>
    }
    onnx.return %y : tensor<?x5xi64, #sym.dims<m, 5>>
  }
}

// -----

// One packed weight for all nodes and regions that read it one way, another for those that read it the other way.

// CHECK:      %w_1 = fusion.pack %w [0 floordiv 16, 1, 0 mod 16]
// CHECK-NEXT: %w_2 = fusion.pack %w [1 floordiv 16, 0, 1 mod 16]
// CHECK-NEXT: fusion.region @r0 (%a = %x : {{[^%]*}}, %b = %w_1 : tensor<1x4x16xf32>, %b_1 = %w_2 : tensor<1x4x16xf32>)
// CHECK:      fusion.region @r1 (%a = %y : {{[^%]*}}, %b = %w_2 : tensor<1x4x16xf32>)

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<m, 4>>) attributes {input_names = ["x"], output_names = ["z"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<4x4xf32, [0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1]>} : () -> tensor<4x4xf32>
    %y = fusion.region @r0 (%a = %x : tensor<?x4xf32, #sym.dims<m, 4>>, %b = %w : tensor<4x4xf32>) -> (tensor<?x4xf32, #sym.dims<m, 4>>) {
      %p = onnx.MatMul(%a, %b) : (tensor<?x4xf32, #sym.dims<m, 4>>, tensor<4x4xf32>) -> tensor<?x4xf32, #sym.dims<m, 4>>
      %q = onnx.MatMul(%p, %b) : (tensor<?x4xf32, #sym.dims<m, 4>>, tensor<4x4xf32>) -> tensor<?x4xf32, #sym.dims<m, 4>>
      %s = onnx.Gemm(%q, %b) {transB = 1 : i64} : (tensor<?x4xf32, #sym.dims<m, 4>>, tensor<4x4xf32>) -> tensor<?x4xf32, #sym.dims<m, 4>>
      fusion.yield %s : tensor<?x4xf32, #sym.dims<m, 4>>
    }
    %z = fusion.region @r1 (%a = %y : tensor<?x4xf32, #sym.dims<m, 4>>, %b = %w : tensor<4x4xf32>) -> (tensor<?x4xf32, #sym.dims<m, 4>>) {
      %p = onnx.MatMul(%a, %b) : (tensor<?x4xf32, #sym.dims<m, 4>>, tensor<4x4xf32>) -> tensor<?x4xf32, #sym.dims<m, 4>>
      fusion.yield %p : tensor<?x4xf32, #sym.dims<m, 4>>
    }
    onnx.return %z : tensor<?x4xf32, #sym.dims<m, 4>>
  }
}

// -----

// What reads the weight otherwise still has it as it was.

// CHECK:      fusion.region @r0 (%a = %x : tensor<4x4xf32>, %b = %w : tensor<4x4xf32>, %b_1 = %w_1 : tensor<1x4x16xf32>)
// CHECK-NEXT:   %b_2 = fusion.unpack %b_1
// CHECK-NEXT:   %p = onnx.MatMul(%a, %b_2)
// CHECK-NEXT:   %q = onnx.Add(%p, %b)

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<4x4xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<4x4xf32, [0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1]>} : () -> tensor<4x4xf32>
    %y = fusion.region @r0 (%a = %x : tensor<4x4xf32>, %b = %w : tensor<4x4xf32>) -> (tensor<4x4xf32>) {
      %p = onnx.MatMul(%a, %b) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %q = onnx.Add(%p, %b) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      fusion.yield %q : tensor<4x4xf32>
    }
    onnx.return %y : tensor<4x4xf32>
  }
}

// -----

// An operand that is computed is for pack-operands.

// CHECK: onnx.MatMul(%a, %b)

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) attributes {input_names = ["x", "w"], output_names = ["y"]} {
    %y = fusion.region @r0 (%a = %x : tensor<4x4xf32>, %b = %w : tensor<4x4xf32>) -> (tensor<4x4xf32>) {
      %p = onnx.MatMul(%a, %b) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      fusion.yield %p : tensor<4x4xf32>
    }
    onnx.return %y : tensor<4x4xf32>
  }
}

// -----

// A convolution whose image has its channels last has output channels for its columns; the depth are the places of the
// window, then the channels. Elsewhere its places are the columns.

// CHECK-LABEL: @channels
// CHECK:      %w_1 = fusion.pack %w [0 floordiv 16, 2, 1, 0 mod 16] : tensor<4x8x1xf32> to tensor<1x1x8x16xf32>
// CHECK:      fusion.unpack %v [0 floordiv 16, 2, 1, 0 mod 16] : tensor<1x1x8x16xf32> to tensor<4x8x1xf32>
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @channels(%x: tensor<?x?x8xf32, #sym.dims<b, t, 8>>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y", "z"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<4x8x1xf32, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]>} : () -> tensor<4x8x1xf32>
    %y, %z = fusion.region @r0 (%a = %x : tensor<?x?x8xf32, #sym.dims<b, t, 8>>, %v = %w : tensor<4x8x1xf32>) -> (tensor<?x?x4xf32, #sym.dims<b, t, 4>>, tensor<?x4x?xf32, #sym.dims<b, 4, t>>) {
      %t = onnx.Transpose(%a) {perm = array<i64: 0, 2, 1>} : (tensor<?x?x8xf32, #sym.dims<b, t, 8>>) -> tensor<?x8x?xf32, #sym.dims<b, 8, t>>
      %c = onnx.Conv(%t, %v) : (tensor<?x8x?xf32, #sym.dims<b, 8, t>>, tensor<4x8x1xf32>) -> tensor<?x4x?xf32, #sym.dims<b, 4, t>>
      %u = onnx.Transpose(%c) {perm = array<i64: 0, 2, 1>} : (tensor<?x4x?xf32, #sym.dims<b, 4, t>>) -> tensor<?x?x4xf32, #sym.dims<b, t, 4>>
      %d = onnx.Conv(%t, %v) : (tensor<?x8x?xf32, #sym.dims<b, 8, t>>, tensor<4x8x1xf32>) -> tensor<?x4x?xf32, #sym.dims<b, 4, t>>
      fusion.yield %u, %d : tensor<?x?x4xf32, #sym.dims<b, t, 4>>, tensor<?x4x?xf32, #sym.dims<b, 4, t>>
    }
    onnx.return %y, %z : tensor<?x?x4xf32, #sym.dims<b, t, 4>>, tensor<?x4x?xf32, #sym.dims<b, 4, t>>
  }
}

// -----

// Numbers of 4 bits are read as words of four bytes, scales and zero points as they are; a part of a panel is zeros.

// CHECK:      fusion.pack %q [0 floordiv 16, 1, 2 floordiv 4, 0 mod 16, 2 mod 4] words : tensor<3x2x8xui8> to tensor<1x2x2x16xui32>
// CHECK:      fusion.pack %s [0 floordiv 16, 1, 0 mod 16] : tensor<3x2xf32> to tensor<1x2x16xf32>
// CHECK:      fusion.unpack %{{.*}} [0 floordiv 16, 1, 2 floordiv 4, 0 mod 16, 2 mod 4] words : tensor<1x2x2x16xui32> to tensor<3x2x8xui8>

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64, "com.microsoft" = 1 : i64}}} {
  onnx.graph @main(%x: tensor<2x20xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    %q = onnx.Constant() <{initializer_name = "q"}> {value = #onnx.tensor<3x2x8xui8, [1, 35, 69, 103, 137, 171, 205, 239, 16, 50, 84, 118, 152, 186, 220, 254, 0, 255, 15, 240, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 90, 165, 60, 195, 129, 66, 24, 36, 17, 34, 51, 68, 85, 102, 119, 136]>} : () -> tensor<3x2x8xui8>
    %s = onnx.Constant() <{initializer_name = "s"}> {value = #onnx.tensor<3x2xf32, [0.5, 0.25, 1, 2, 0.125, 0.5]>} : () -> tensor<3x2xf32>
    %y = fusion.region @r0 (%a = %x : tensor<2x20xf32>, %b = %q : tensor<3x2x8xui8>, %c = %s : tensor<3x2xf32>) -> (tensor<2x3xf32>) {
      %p = onnx.custom(%a, %b, %c) <{domain = "com.microsoft", op_type = "MatMulNBits", node_name = "product"}> {K = 20 : i64, N = 3 : i64, bits = 4 : i64, block_size = 16 : i64} : (tensor<2x20xf32>, tensor<3x2x8xui8>, tensor<3x2xf32>) -> tensor<2x3xf32>
      fusion.yield %p : tensor<2x3xf32>
    }
    onnx.return %y : tensor<2x3xf32>
  }
}
