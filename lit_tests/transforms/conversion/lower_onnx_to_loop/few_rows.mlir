// RUN: igniter-opt %s -p "form-block-products,form-fusion-regions{singletons=all},lower-onnx-to-loop{few-rows=true}" | filecheck %s
// RUN: igniter-opt %s -p "form-block-products,form-fusion-regions{singletons=all},lower-onnx-to-loop" | filecheck %s --check-prefix=ALONE
// RUN: igniter-opt %s -p "form-block-products,form-fusion-regions{singletons=all},lower-onnx-to-loop{few-rows=true},lower-to-loops" --check-each --check-sizes rows=3 --emit=none 2>&1 | filecheck %s --check-prefix=CHECKED
// RUN: igniter-opt %s -p "form-block-products,form-fusion-regions{singletons=all},lower-onnx-to-loop{few-rows=true},lower-to-loops" --check-each --check-sizes rows=5 --emit=none 2>&1 | filecheck %s --check-prefix=CHECKED

// A product with codes of as many rows as a run says makes panels of floats for many; a variant for up to four, of
// another lowering, reads the codes as they are. Rows that are known have the one way that is theirs.

// CHECK:      loop.kernel @r0 symbols [rows]
// CHECK:        loop.nest "matmulnbits.panels"
// CHECK:      } variants {
// CHECK-NEXT:   loop.kernel @few_rows symbols [rows] {{.*}} typical [rows = 1] when rows <= 4 {
// CHECK-NOT:      loop.nest "matmulnbits.panels"
// CHECK:          loop.return
// CHECK:      loop.kernel @r1
// CHECK:        loop.nest "matmulnbits.panels"
// CHECK-NOT:  variants
// ALONE-NOT:  variants
// CHECKED: check: lower-onnx-to-loop: {{[1-9]}} results agree
// CHECKED: check: lower-to-loops: {{[1-9]}} results agree

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 13 : i64}}} {
  onnx.graph @main(%x: tensor<?x2xf32, #sym.dims<rows, 2>>, %z: tensor<64x2xf32>) attributes {input_names = ["x", "z"], output_names = ["y", "u"]} {
    %q = onnx.Constant() <{initializer_name = "q"}> {value = #onnx.tensor<2x16xi8, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]>} : () -> tensor<2x16xi8>
    %s = onnx.Constant() <{initializer_name = "s"}> {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
    %w = onnx.DequantizeLinear(%q, %s) : (tensor<2x16xi8>, tensor<f32>) -> tensor<2x16xf32>
    %y = onnx.MatMul(%x, %w) <{output_names = ["y"]}> : (tensor<?x2xf32, #sym.dims<rows, 2>>, tensor<2x16xf32>) -> tensor<?x16xf32, #sym.dims<rows, 16>>
    %u = onnx.MatMul(%z, %w) <{output_names = ["u"]}> : (tensor<64x2xf32>, tensor<2x16xf32>) -> tensor<64x16xf32>
    onnx.return %y, %u : tensor<?x16xf32, #sym.dims<rows, 16>>, tensor<64x16xf32>
  }
}
