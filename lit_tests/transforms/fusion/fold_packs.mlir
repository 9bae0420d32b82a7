// RUN: igniter-opt %s -p fold-packs --split-input-file | filecheck %s
// RUN: igniter-opt %s -p pack-weights,fold-packs,inline-regions --split-input-file --check-each --emit=none 2>&1 | filecheck %s --check-prefix=CHECKED

// A packed weight is a constant in panels, filled up with zeros; the plain one goes where nothing else reads it.

// CHECK:      %[[P:.*]] = onnx.Constant() <{initializer_name = "w.1div4.0.1mod4"}> {value = #onnx.tensor<2x2x4xf32, [0.0, 1.0, 2.0, 3.0, 5.0, 6.0, 7.0, 8.0, 4.0, 0.0, 0.0, 0.0, 9.0, 0.0, 0.0, 0.0]>}
// CHECK-NOT:  fusion.pack
// CHECK:      fusion.region @r0 (%a = %x : tensor<?x2xf32, #sym.dims<m, 2>>, %b = %[[P]] : tensor<2x2x4xf32>)
// CHECKED: check: fold-packs: {{.*}} agree
// CHECKED: check: inline-regions: {{.*}} agree

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x2xf32, #sym.dims<m, 2>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<2x5xf32, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]>} : () -> tensor<2x5xf32>
    %p = fusion.pack %w [1 floordiv 4, 0, 1 mod 4] : tensor<2x5xf32> to tensor<2x2x4xf32>
    %y = fusion.region @r0 (%a = %x : tensor<?x2xf32, #sym.dims<m, 2>>, %b = %p : tensor<2x2x4xf32>) -> (tensor<?x5xf32, #sym.dims<m, 5>>) {
      %c = fusion.unpack %b [1 floordiv 4, 0, 1 mod 4] : tensor<2x2x4xf32> to tensor<2x5xf32>
      %d = onnx.MatMul(%a, %c) <{node_name = "product"}> : (tensor<?x2xf32, #sym.dims<m, 2>>, tensor<2x5xf32>) -> tensor<?x5xf32, #sym.dims<m, 5>>
      fusion.yield %d : tensor<?x5xf32, #sym.dims<m, 5>>
    }
    onnx.return %y : tensor<?x5xf32, #sym.dims<m, 5>>
  }
}
