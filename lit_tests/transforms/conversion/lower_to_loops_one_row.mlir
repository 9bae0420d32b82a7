// RUN: igniter-opt %s -p "form-fusion-regions,lower-onnx-to-loop,canonicalize-loop,inline-nests,lower-to-loops" | filecheck %s

// PyTorch's exporter writes an update along an axis as a ScatterND between transposes. Of one row it is a nest that the
// transposes are inlined into, and in the memory of the old cache it writes this row alone.

// CHECK-LABEL: loop.func @r0
// CHECK:         attributes {igniter.in_place
// CHECK:         loop.if_shared %{{[0-9]+}}, %{{[0-9]+}} {
// CHECK-NEXT:      loop.for {{.*}} = 0 to 2 {
// CHECK-NEXT:        loop.for {{.*}} = 0 to 1 {
// CHECK-NEXT:          loop.for {{.*}} = 0 to 8 {
// CHECK:                 loop.store
// CHECK:         } else {
// CHECK-NEXT:      loop.for {{.*}} = 0 to 2 {
// CHECK-NEXT:        loop.for {{.*}} = 0 to 64 {
builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 18 : i64}}} {
  onnx.graph @main(%cache: tensor<1x2x64x8xf32>, %at: tensor<1x1xi64>, %row: tensor<1x1x2x8xf32>) {
    %t = onnx.Transpose(%cache) {perm = array<i64: 2, 0, 1, 3>} : (tensor<1x2x64x8xf32>) -> tensor<64x1x2x8xf32>
    %s = onnx.ScatterND(%t, %at, %row) : (tensor<64x1x2x8xf32>, tensor<1x1xi64>, tensor<1x1x2x8xf32>) -> tensor<64x1x2x8xf32>
    %y = onnx.Transpose(%s) {perm = array<i64: 1, 2, 0, 3>} : (tensor<64x1x2x8xf32>) -> tensor<1x2x64x8xf32>
    onnx.return %y : tensor<1x2x64x8xf32>
  }
}
