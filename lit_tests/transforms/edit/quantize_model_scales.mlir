// RUN: igniter-opt %s -p "infer-shapes,quantize-model{ranges=\"%S/quantize_model_scales.json\"}" | filecheck %s

// The normalisation is in the convolution, in front of which the channels are divided. The shift is taken from the bias.
// CHECK: %[[S:.*]] = onnx.Mul(%x, %x.inverse)
// CHECK: %[[Q:.*]] = onnx.QuantizeLinear(%[[S]], %x.scaled.scale, %x.scaled.zero)
// CHECK: %[[D:.*]] = onnx.DequantizeLinear(%[[Q]], %x.scaled.scale, %x.scaled.zero)
// CHECK: %y.bias = onnx.Constant() <{initializer_name = "y.bias"}> {value = #onnx.tensor<2xi32, [450, 3400]>}
// CHECK: onnx.Conv(%[[D]], {{.*}}) <{node_name = "conv"
// CHECK-NOT: onnx.BatchNormalization
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<1x3x4x4xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<2x3x1x1xf32, [0.5, 1.0, 1.5, 2.0, -0.5, -1.0]>} : () -> tensor<2x3x1x1xf32>
    %scale = onnx.Constant() <{initializer_name = "scale"}> {value = #onnx.tensor<2xf32, [1.0, 2.0]>} : () -> tensor<2xf32>
    %offset = onnx.Constant() <{initializer_name = "offset"}> {value = #onnx.tensor<2xf32, [0.5, 1.0]>} : () -> tensor<2xf32>
    %mean = onnx.Constant() <{initializer_name = "mean"}> {value = #onnx.tensor<2xf32, [0.0, 0.25]>} : () -> tensor<2xf32>
    %var = onnx.Constant() <{initializer_name = "var"}> {value = #onnx.tensor<2xf32, [1.0, 4.0]>} : () -> tensor<2xf32>
    %c = onnx.Conv(%x, %w) <{node_name = "conv", output_names = ["c"]}> : (tensor<1x3x4x4xf32>, tensor<2x3x1x1xf32>) -> tensor<1x2x4x4xf32>
    %y = onnx.BatchNormalization(%c, %scale, %offset, %mean, %var) <{node_name = "norm", output_names = ["y"]}> : (tensor<1x2x4x4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x4x4xf32>
    onnx.return %y : tensor<1x2x4x4xf32>
  }
}
