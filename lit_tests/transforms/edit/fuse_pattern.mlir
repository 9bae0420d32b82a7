// RUN: igniter-opt %s -p 'infer-shapes,fuse-pattern{pattern="gelu"}' | filecheck %s
// RUN: igniter-opt %s -p 'infer-shapes,fuse-pattern{pattern="gelu" into="default"}' | filecheck %s --check-prefix OP

// The nodes of the instance become the body of a function; with `into`, an op.

// CHECK:      onnx.function @Gelu(%{{.*}}: !onnx.unknown) attributes {domain = "fused", function_name = "Gelu"
// CHECK:        onnx.Erf
// CHECK:      onnx.graph @main
// CHECK-NEXT:   %y = onnx.custom(%x) <{{{.*}}domain = "fused", op_type = "Gelu"
// CHECK-NEXT:   onnx.return %y

// OP-NOT:     onnx.function
// OP:           %y = onnx.custom(%x) <{{{.*}}domain = "com.microsoft", op_type = "Gelu"
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<n, 4>>) {
    %root = onnx.Constant() {value = #onnx.tensor<f32, [1.41421354]>} : () -> tensor<f32>
    %one = onnx.Constant() {value = #onnx.tensor<f32, [1.0]>} : () -> tensor<f32>
    %half = onnx.Constant() {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
    %d = onnx.Div(%x, %root) : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<f32>) -> tensor<?x4xf32, #sym.dims<n, 4>>
    %e = onnx.Erf(%d) : (tensor<?x4xf32, #sym.dims<n, 4>>) -> tensor<?x4xf32, #sym.dims<n, 4>>
    %a = onnx.Add(%e, %one) : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<f32>) -> tensor<?x4xf32, #sym.dims<n, 4>>
    %p = onnx.Mul(%x, %a) : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<?x4xf32, #sym.dims<n, 4>>) -> tensor<?x4xf32, #sym.dims<n, 4>>
    %y = onnx.Mul(%p, %half) : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<f32>) -> tensor<?x4xf32, #sym.dims<n, 4>>
    onnx.return %y : tensor<?x4xf32, #sym.dims<n, 4>>
  }
}
