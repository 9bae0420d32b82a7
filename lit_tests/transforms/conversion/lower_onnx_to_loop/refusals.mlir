// RUN: igniter-opt %s -p lower-onnx-to-loop --split-input-file --verify-diagnostics --emit=none

// A node without a lowering has no place in a region; the error names it.

onnx.graph @main(%x: tensor<4x4xf32>) {
  // expected-error {{other.Volume 'volume' cannot be lowered: it has no lowering}}
  %y = fusion.region @no_lowering (%a = %x : tensor<4x4xf32>) -> (tensor<f32>) {
    %0 = onnx.custom(%a) <{domain = "other", op_type = "Volume", node_name = "volume"}> : (tensor<4x4xf32>) -> tensor<f32>
    fusion.yield %0 : tensor<f32>
  }
  onnx.return %y : tensor<f32>
}

// -----

// Dims that may or may not broadcast are never guessed about.

onnx.graph @main(%x: tensor<?xf32, #sym.dims<n>>, %w: tensor<?xf32, #sym.dims<m>>) {
  // expected-error {{Add 'sum' cannot be lowered: dim n is not known to be 1 or equal to k}}
  %y = fusion.region @unknown (%a = %x : tensor<?xf32, #sym.dims<n>>, %b = %w : tensor<?xf32, #sym.dims<m>>) -> (tensor<?xf32, #sym.dims<k>>) {
    %0 = onnx.Add(%a, %b) <{node_name = "sum"}> : (tensor<?xf32, #sym.dims<n>>, tensor<?xf32, #sym.dims<m>>) -> tensor<?xf32, #sym.dims<k>>
    fusion.yield %0 : tensor<?xf32, #sym.dims<k>>
  }
  onnx.return %y : tensor<?xf32, #sym.dims<k>>
}

// -----

// Axes that only a run knows.

onnx.graph @main(%x: tensor<4x4xf32>, %w: tensor<1xi64>) {
  // expected-error {{ReduceSum cannot be lowered: its list of axes is known only at run time}}
  %y = fusion.region @axes (%a = %x : tensor<4x4xf32>, %b = %w : tensor<1xi64>) -> (tensor<?x?xf32, #sym.dims<n, m>>) {
    %0 = onnx.ReduceSum(%a, %b) : (tensor<4x4xf32>, tensor<1xi64>) -> tensor<?x?xf32, #sym.dims<n, m>>
    fusion.yield %0 : tensor<?x?xf32, #sym.dims<n, m>>
  }
  onnx.return %y : tensor<?x?xf32, #sym.dims<n, m>>
}

// -----

// A constant that is not one number repeated, and not small, is an operand of the region.

onnx.graph @main(%x: tensor<17xf32>) {
  // expected-error {{a constant of 17 elements is too large for a kernel; it must be an operand of its region}}
  %y = fusion.region @constant (%a = %x : tensor<17xf32>) -> (tensor<17xf32>) {
    %c = onnx.Constant() {value = #onnx.tensor<17xf32, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]>} : () -> tensor<17xf32>
    %0 = onnx.Add(%a, %c) : (tensor<17xf32>, tensor<17xf32>) -> tensor<17xf32>
    fusion.yield %0 : tensor<17xf32>
  }
  onnx.return %y : tensor<17xf32>
}
