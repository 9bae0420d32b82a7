// RUN: igniter-opt %s --split-input-file -p "infer-shapes,form-fusion-regions{contractions=all singletons=all},lower-onnx-to-loop,deduplicate-kernels" | filecheck %s

// A convolution is one nest over the channels of a group, guarded where a window reaches into the padding; the bias is
// added behind it, and groups are joined by a view.

// CHECK:      requires [
// CHECK-NEXT:   1 <= ((d1 + 1) floordiv 2) "its input is smaller than its window" node 0] {
// CHECK-NEXT: loop.nest "conv" [i0: parallel d0, i1: parallel 2, i2: parallel 3, i3: parallel ((d1 + 1) floordiv 2), i4: parallel 9, r0: reduction 2, r1: reduction 3, r2: reduction 3]
// CHECK-NEXT:   loop.read %1[3*i1 + i2, r0, r1, r2] : f32
// CHECK-NEXT:   loop.read %0[i0, 2*i1 + r0, 2*i3 + r1 - 1, i4 + r2 - 1] if [2*i3 + r1 - 1, d1 - 2*i3 - r1, i4 + r2 - 1, -i4 - r2 + 9] : f32
// CHECK:        loop.yield add %{{.*}} at [i0, i1, i2, i3, i4]
// CHECK:      loop.view
// CHECK-NEXT: loop.nest "conv.bias"
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x4x?x9xf32, #sym.dims<n, 4, h, 9>>, %w: tensor<6x2x3x3xf32>, %b: tensor<6xf32>) attributes {input_names = ["x", "w", "b"], output_names = ["y"]} {
    %y = onnx.Conv(%x, %w, %b) <{node_name = "conv"}> {group = 2 : i64, strides = [2, 1], pads = [1, 1, 1, 1]} : (tensor<?x4x?x9xf32, #sym.dims<n, 4, h, 9>>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> tensor<*xf32>
    onnx.return %y : tensor<*xf32>
  }
}

// -----

// A transposed convolution gathers: every phase of the stride is a convolution with some of the weights, and the phases
// are dealt out again. A weight that is no constant may be infinite, and is not read beyond the ends of the input.

// CHECK:      loop.nest "convtranspose.phases" [i0: parallel 3, i1: parallel 2, i2: parallel d0, r0: reduction 4, r1: reduction 2]
// CHECK-NEXT:   loop.read %1[r0, i0, 2*r1 + ((i1 + 1) mod 2)] if [i2 - r1 + ((i1 + 1) floordiv 2), d0 - i2 + r1 - ((i1 + 1) floordiv 2) - 1] : f32
// CHECK-NEXT:   loop.read %0[0, r0, i2 - r1 + ((i1 + 1) floordiv 2)] if [i2 - r1 + ((i1 + 1) floordiv 2), d0 - i2 + r1 - ((i1 + 1) floordiv 2) - 1] : f32
// CHECK:      loop.nest "convtranspose" [i0: parallel 3, i1: parallel 2*d0]
// CHECK-NEXT:   loop.read %{{.*}}[0, i0, (i1 mod 2), (i1 floordiv 2)] : f32
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<1x4x?xf32, #sym.dims<1, 4, h>>, %w: tensor<4x3x4xf32>) attributes {input_names = ["x", "w"], output_names = ["y"]} {
    %y = onnx.ConvTranspose(%x, %w) <{node_name = "up"}> {strides = [2], pads = [1, 1]} : (tensor<1x4x?xf32, #sym.dims<1, 4, h>>, tensor<4x3x4xf32>) -> tensor<*xf32>
    onnx.return %y : tensor<*xf32>
  }
}

// -----

// Pools: what is outside counts as the least number, or not at all. ONNX Runtime's windows of nothing give one element.

// CHECK:      requires [
// CHECK-NEXT:   1 <= max(-d0 + 1, 4*d1) "its input is empty" node 0] {
// CHECK-NEXT: loop.nest "maxpool" [i0: parallel d0, i1: parallel 4, i2: parallel max(((d1 + 1) floordiv 2), 1), r0: reduction 3]
// CHECK-NEXT:   %[[LEAST:.*]] = arith.constant -3.40282347e+38 : f32
// CHECK-NEXT:   loop.read %0[i0, i1, 2*i2 + r0 - 1] if [2*i2 + r0 - 1, d1 - 2*i2 - r0] else %[[LEAST]] : f32
// CHECK-NEXT:   loop.yield max
// CHECK:      loop.nest "averagepool.sum"
// CHECK:        loop.yield add
// CHECK:      loop.nest "averagepool"
// CHECK:        loop.index max(-max(-2*i2 + 1, 0) + min(2, d1 - 2*i2) + 1, 1) : i64
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x4x?xf32, #sym.dims<n, 4, h>>) attributes {input_names = ["x"], output_names = ["y", "z"]} {
    %y = onnx.MaxPool(%x) <{node_name = "max"}> {kernel_shape = [3], strides = [2], pads = [1, 1]} : (tensor<?x4x?xf32, #sym.dims<n, 4, h>>) -> tensor<*xf32>
    %z = onnx.AveragePool(%x) <{node_name = "average"}> {kernel_shape = [3], strides = [2], pads = [1, 1]} : (tensor<?x4x?xf32, #sym.dims<n, 4, h>>) -> tensor<*xf32>
    onnx.return %y, %z : tensor<*xf32>, tensor<*xf32>
  }
}

// -----

// A Resize by a whole factor reads at a quotient.

// CHECK:      loop.nest "resize" [i0: parallel 2*d0]
// CHECK-NEXT:   loop.read %0[0, 0, (i0 floordiv 2)] : f32
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<1x1x?xf32, #sym.dims<1, 1, h>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %none = onnx.NoValue : none
    %scales = onnx.Constant() {value = #onnx.tensor<3xf32, [1.0, 1.0, 2.0]>} : () -> tensor<3xf32>
    %y = onnx.Resize(%x, %none, %scales) <{node_name = "resize"}> {mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"} : (tensor<1x1x?xf32, #sym.dims<1, 1, h>>, none, tensor<3xf32>) -> tensor<*xf32>
    onnx.return %y : tensor<*xf32>
  }
}
