// RUN: igniter-opt %s -p winograd --split-input-file | filecheck %s
// RUN: igniter-opt %s -p winograd --split-input-file | igniter-opt --split-input-file | filecheck %s
// RUN: igniter-opt %s -p winograd --split-input-file --emit=none --remarks 2>&1 | filecheck %s --check-prefix=REMARKS
// RUN: igniter-opt %s -p "winograd{tile=2 force=true}" --split-input-file --emit=none --remarks 2>&1 | filecheck %s --check-prefix=FORCED
// RUN: igniter-opt %s -p "winograd{tolerance=0.0000001}" --split-input-file --emit=none --remarks 2>&1 | filecheck %s --check-prefix=STRICT
// RUN: igniter-opt %s -p "winograd{force=true rows=2 columns=9}" --split-input-file | filecheck %s --check-prefix=BAND
// RUN: not igniter-opt %s -p "winograd{tile=3}" --split-input-file 2>&1 | filecheck %s --check-prefix=BAD

// BAD: pass 'winograd': the option 'tile' must be 2 or 4, not 3

// A convolution that is worth it is marked, and stays what it is. Sizes that a run knows are taken for typical ones.

// CHECK:      onnx.Conv(%x, %w) <{node_name = "worth"}> {pads = array<i64: 1, 1, 1, 1>, igniter.winograd = array<i64: 4, 1, 0>}
// REMARKS:      remark: winograd: 'worth' applied: in tiles of 4 x 4: 36 products for 144; the error is at most 63 times that of a direct sum, and about 2 times for random data [tile=4] [band=1x?] [amplification=62.7]
// REMARKS-NEXT: remark: winograd: note: 1 of 1 convolutions are computed in tiles [count=1]
// STRICT:      remark: winograd: 'worth' missed: the error of its tiles is not 4 times smaller than 1e-07 of its results
// BAND:        igniter.winograd = array<i64: 4, 2, 9>
// FORCED:      remark: winograd: 'worth' applied: in tiles of 2 x 2: 16 products for 36; the error is at most 7 times that of a direct sum, and about 0.7 times for random data [tile=2] [band=1x?] [amplification=7.1]
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x64x?x?xf32, #sym.dims<n, 64, h, w>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<64x64x3x3xf32, elided>} : () -> tensor<64x64x3x3xf32>
    %y = onnx.Conv(%x, %w) <{node_name = "worth"}> {pads = array<i64: 1, 1, 1, 1>} : (tensor<?x64x?x?xf32, #sym.dims<n, 64, h, w>>, tensor<64x64x3x3xf32>) -> tensor<?x64x?x?xf32, #sym.dims<n, 64, h, w>>
    onnx.return %y : tensor<?x64x?x?xf32, #sym.dims<n, 64, h, w>>
  }
}

// -----

// Where 4 x 4 reads too much weight for few places, tiles of 2 x 2 do.

// CHECK:   onnx.Conv(%x, %w) <{node_name = "few"}> {{.*}}igniter.winograd = array<i64: 2, 4, 4>
// REMARKS: remark: winograd: 'few' applied: in tiles of 2 x 2
// FORCED:  remark: winograd: 'few' applied: in tiles of 2 x 2
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<1x512x7x7xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<512x512x3x3xf32, elided>} : () -> tensor<512x512x3x3xf32>
    %y = onnx.Conv(%x, %w) <{node_name = "few"}> {pads = array<i64: 1, 1, 1, 1>} : (tensor<1x512x7x7xf32>, tensor<512x512x3x3xf32>) -> tensor<1x512x7x7xf32>
    onnx.return %y : tensor<1x512x7x7xf32>
  }
}

// -----

// With few channels, what is moved takes longer than what is saved.

// CHECK-NOT: igniter.winograd
// REMARKS: remark: winograd: 'thin' missed: tiles of 4 x 4 take 1,769,472 multiplications, plus the time of 12,349,440 for transforming their elements and of 0 for the weight; force=true overrides this
// REMARKS-NEXT: remark: winograd: note: 0 of 1 convolutions are computed in tiles [count=0]
// FORCED: remark: winograd: 'thin' applied: in tiles of 2 x 2
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<1x3x64x64xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<64x3x3x3xf32, elided>} : () -> tensor<64x3x3x3xf32>
    %y = onnx.Conv(%x, %w) <{node_name = "thin"}> {pads = array<i64: 1, 1, 1, 1>} : (tensor<1x3x64x64xf32>, tensor<64x3x3x3xf32>) -> tensor<1x64x64x64xf32>
    onnx.return %y : tensor<1x64x64x64xf32>
  }
}

// -----

// Strides.

// CHECK-NOT: igniter.winograd
// REMARKS: remark: winograd: 'stride' missed: its windows have a stride of 2 x 2
// REMARKS-NEXT: remark: winograd: note: 0 of 1 convolutions are computed in tiles [count=0]
// FORCED: remark: winograd: 'stride' missed: its windows have a stride of 2 x 2
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<1x64x28x28xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<64x64x3x3xf32, elided>} : () -> tensor<64x64x3x3xf32>
    %y = onnx.Conv(%x, %w) <{node_name = "stride"}> {pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<1x64x28x28xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x14x14xf32>
    onnx.return %y : tensor<1x64x14x14xf32>
  }
}

// -----

// Dilations.

// CHECK-NOT: igniter.winograd
// REMARKS: remark: winograd: 'dilated' missed: its windows are dilated by 2 x 2
// REMARKS-NEXT: remark: winograd: note: 0 of 1 convolutions are computed in tiles [count=0]
// FORCED: remark: winograd: 'dilated' missed: its windows are dilated by 2 x 2
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<1x64x28x28xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<64x64x3x3xf32, elided>} : () -> tensor<64x64x3x3xf32>
    %y = onnx.Conv(%x, %w) <{node_name = "dilated"}> {pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 2, 2>} : (tensor<1x64x28x28xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x26x26xf32>
    onnx.return %y : tensor<1x64x26x26xf32>
  }
}

// -----

// Groups.

// CHECK-NOT: igniter.winograd
// REMARKS: remark: winograd: 'groups' missed: it has 2 groups, which do not share channels
// REMARKS-NEXT: remark: winograd: note: 0 of 1 convolutions are computed in tiles [count=0]
// FORCED: remark: winograd: 'groups' missed: it has 2 groups, which do not share channels
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<1x64x28x28xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<64x32x3x3xf32, elided>} : () -> tensor<64x32x3x3xf32>
    %y = onnx.Conv(%x, %w) <{node_name = "groups"}> {pads = array<i64: 1, 1, 1, 1>, group = 2 : i64} : (tensor<1x64x28x28xf32>, tensor<64x32x3x3xf32>) -> tensor<1x64x28x28xf32>
    onnx.return %y : tensor<1x64x28x28xf32>
  }
}

// -----

// Other windows.

// CHECK-NOT: igniter.winograd
// REMARKS: remark: winograd: 'wide' missed: its windows are 5 x 5, not 3 x 3
// REMARKS-NEXT: remark: winograd: note: 0 of 1 convolutions are computed in tiles [count=0]
// FORCED: remark: winograd: 'wide' missed: its windows are 5 x 5, not 3 x 3
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<1x64x28x28xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<64x64x5x5xf32, elided>} : () -> tensor<64x64x5x5xf32>
    %y = onnx.Conv(%x, %w) <{node_name = "wide"}> {pads = array<i64: 1, 1, 1, 1>} : (tensor<1x64x28x28xf32>, tensor<64x64x5x5xf32>) -> tensor<1x64x26x26xf32>
    onnx.return %y : tensor<1x64x26x26xf32>
  }
}

// -----

// One axis.

// CHECK-NOT: igniter.winograd
// REMARKS: remark: winograd: 'line' missed: its windows are 3, not 3 x 3
// REMARKS-NEXT: remark: winograd: note: 0 of 1 convolutions are computed in tiles [count=0]
// FORCED: remark: winograd: 'line' missed: its windows are 3, not 3 x 3
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<1x64x28xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<64x64x3xf32, elided>} : () -> tensor<64x64x3xf32>
    %y = onnx.Conv(%x, %w) <{node_name = "line"}> {} : (tensor<1x64x28xf32>, tensor<64x64x3xf32>) -> tensor<1x64x26xf32>
    onnx.return %y : tensor<1x64x26xf32>
  }
}

// -----

// A weight that a run computes.

// CHECK-NOT: igniter.winograd
// REMARKS: remark: winograd: 'computed' missed: its weight is not a constant, so it cannot be transformed at compile time
// REMARKS-NEXT: remark: winograd: note: 0 of 1 convolutions are computed in tiles [count=0]
// FORCED: remark: winograd: 'computed' missed: its weight is not a constant, so it cannot be transformed at compile time
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<1x64x28x28xf32>, %w: tensor<64x64x3x3xf32>) attributes {input_names = ["x", "w"], output_names = ["y"]} {
    %y = onnx.Conv(%x, %w) <{node_name = "computed"}> {pads = array<i64: 1, 1, 1, 1>} : (tensor<1x64x28x28xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x28x28xf32>
    onnx.return %y : tensor<1x64x28x28xf32>
  }
}

// -----

// Half precision.

// CHECK-NOT: igniter.winograd
// REMARKS: remark: winograd: 'half' missed: its elements are f16, which have too few bits for the sums of tiles
// REMARKS-NEXT: remark: winograd: note: 0 of 1 convolutions are computed in tiles [count=0]
// FORCED: remark: winograd: 'half' missed: its elements are f16, which have too few bits for the sums of tiles
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<1x64x28x28xf16>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<64x64x3x3xf16, elided>} : () -> tensor<64x64x3x3xf16>
    %y = onnx.Conv(%x, %w) <{node_name = "half"}> {pads = array<i64: 1, 1, 1, 1>} : (tensor<1x64x28x28xf16>, tensor<64x64x3x3xf16>) -> tensor<1x64x28x28xf16>
    onnx.return %y : tensor<1x64x28x28xf16>
  }
}

// -----

// Nothing to do.

// REMARKS: remark: winograd: note: 0 of 0 convolutions are computed in tiles: the model has no convolutions [count=0]
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<1x64x28x28xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    %y = onnx.Relu(%x) : (tensor<1x64x28x28xf32>) -> tensor<1x64x28x28xf32>
    onnx.return %y : tensor<1x64x28x28xf32>
  }
}
