// RUN: igniter-opt %s -p "narrow-convolutions{half-tiles=true}" --split-input-file | filecheck %s
// RUN: igniter-opt %s -p narrow-convolutions --split-input-file | filecheck %s --check-prefix=WITHOUT
// RUN: igniter-opt %s -p "narrow-convolutions{half-tiles=true},pack-weights,lower-onnx-to-loop" --check-each --emit=none --split-input-file 2>&1 | filecheck %s --check-prefix=CHECKED
// RUN: igniter-opt %s -p "narrow-convolutions{half-tiles=true},inline-regions" --check-each --split-input-file 2>/dev/null | filecheck %s --check-prefix=INLINED

// CHECKED-COUNT-2: check: lower-onnx-to-loop: {{.*}} results agree

// Where tiles multiply bf16, the convolution reads it; elsewhere it stays. Outside of its region the casts are back.

// CHECK:      fusion.region @r0
// CHECK-NEXT:   {{.*}}onnx.Conv(%a, %b) <{node_name = "conv"}> {igniter.narrow} : (tensor<1x2x3x3xbf16>, tensor<16x2x1x1xbf16>) -> tensor<1x16x3x3xf32>
// WITHOUT-COUNT-2: onnx.Cast
// WITHOUT: onnx.Conv({{.*}}) <{node_name = "conv"}> : (tensor<1x2x3x3xf32>, tensor<16x2x1x1xf32>) -> tensor<1x16x3x3xf32>
// INLINED-COUNT-2: onnx.Cast({{.*}}) {to = 1 : i64}
// INLINED: onnx.Conv({{.*}}) <{node_name = "conv"}> : (tensor<1x2x3x3xf32>, tensor<16x2x1x1xf32>) -> tensor<1x16x3x3xf32>

builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<1x2x3x3xbf16>, %w: tensor<16x2x1x1xbf16>) attributes {input_names = ["x", "w"], output_names = ["y"]} {
    %y = fusion.region @r0 (%a = %x : tensor<1x2x3x3xbf16>, %b = %w : tensor<16x2x1x1xbf16>) -> (tensor<1x16x3x3xf32>) {
      %p = onnx.Cast(%a) {to = 1 : i64} : (tensor<1x2x3x3xbf16>) -> tensor<1x2x3x3xf32>
      %q = onnx.Cast(%b) {to = 1 : i64} : (tensor<16x2x1x1xbf16>) -> tensor<16x2x1x1xf32>
      %y = onnx.Conv(%p, %q) <{node_name = "conv"}> : (tensor<1x2x3x3xf32>, tensor<16x2x1x1xf32>) -> tensor<1x16x3x3xf32>
      fusion.yield %y : tensor<1x16x3x3xf32>
    }
    onnx.return %y : tensor<1x16x3x3xf32>
  }
}

// -----

// An odd number of channels has no pairs, and stays.

// CHECK: onnx.Conv({{.*}}) <{node_name = "odd"}> : (tensor<1x3x3x3xf32>, tensor<16x3x1x1xf32>) -> tensor<1x16x3x3xf32>

builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<1x3x3x3xbf16>, %w: tensor<16x3x1x1xbf16>) attributes {input_names = ["x", "w"], output_names = ["y"]} {
    %y = fusion.region @r0 (%a = %x : tensor<1x3x3x3xbf16>, %b = %w : tensor<16x3x1x1xbf16>) -> (tensor<1x16x3x3xf32>) {
      %p = onnx.Cast(%a) {to = 1 : i64} : (tensor<1x3x3x3xbf16>) -> tensor<1x3x3x3xf32>
      %q = onnx.Cast(%b) {to = 1 : i64} : (tensor<16x3x1x1xbf16>) -> tensor<16x3x1x1xf32>
      %y = onnx.Conv(%p, %q) <{node_name = "odd"}> : (tensor<1x3x3x3xf32>, tensor<16x3x1x1xf32>) -> tensor<1x16x3x3xf32>
      fusion.yield %y : tensor<1x16x3x3xf32>
    }
    onnx.return %y : tensor<1x16x3x3xf32>
  }
}
