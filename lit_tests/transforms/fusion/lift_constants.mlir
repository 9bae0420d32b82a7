// RUN: igniter-opt %s -p "form-fusion-regions{singletons=all siblings=false max_nodes=2},lift-constants" --split-input-file | filecheck %s

// Two regions that differ in a scale: it is an operand of both. What they have in common (0.5) stays inside.

onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<n, 4>>, %y: tensor<?x4xf32, #sym.dims<n, 4>>) attributes {input_names = ["x", "y"], output_names = ["a", "b"]} {
  %s = onnx.Constant() {value = #onnx.tensor<f32, [0.25]>} : () -> tensor<f32>
  %t = onnx.Constant() {value = #onnx.tensor<f32, [0.75]>} : () -> tensor<f32>
  %h = onnx.Constant() {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
  %0 = onnx.Mul(%x, %s) : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<f32>) -> tensor<?x4xf32, #sym.dims<n, 4>>
  %a = onnx.Add(%0, %h) : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<f32>) -> tensor<?x4xf32, #sym.dims<n, 4>>
  %1 = onnx.Mul(%y, %t) : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<f32>) -> tensor<?x4xf32, #sym.dims<n, 4>>
  %b = onnx.Add(%1, %h) : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<f32>) -> tensor<?x4xf32, #sym.dims<n, 4>>
  onnx.return %a, %b : tensor<?x4xf32, #sym.dims<n, 4>>, tensor<?x4xf32, #sym.dims<n, 4>>
}
// CHECK:        %[[S:.*]] = onnx.Constant() <{initializer_name = "r0.constant1"}> {value = #onnx.tensor<f32, [0.25]>} : () -> tensor<f32>
// CHECK-NEXT:   %{{.*}} = fusion.region @r0 (%[[X:.*]] = %x : tensor<?x4xf32, #sym.dims<n, 4>>, %[[C:.*]] = %[[S]] : tensor<f32>)
// CHECK-NEXT:     %[[H:.*]] = onnx.Constant() {value = #onnx.tensor<f32, [0.5]>}
// CHECK-NEXT:     %[[M:.*]] = onnx.Mul(%[[X]], %[[C]])
// CHECK:        %[[T:.*]] = onnx.Constant() <{initializer_name = "r1.constant1"}> {value = #onnx.tensor<f32, [0.75]>} : () -> tensor<f32>
// CHECK-NEXT:   %{{.*}} = fusion.region @r1 (%{{.*}} = %y : tensor<?x4xf32, #sym.dims<n, 4>>, %{{.*}} = %[[T]] : tensor<f32>)

// -----

// Refused: what a lowering may want to know, an exponent.

onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<n, 4>>, %y: tensor<?x4xf32, #sym.dims<n, 4>>) attributes {input_names = ["x", "y"], output_names = ["a", "b"]} {
  %s = onnx.Constant() {value = #onnx.tensor<f32, [2.0]>} : () -> tensor<f32>
  %t = onnx.Constant() {value = #onnx.tensor<f32, [3.0]>} : () -> tensor<f32>
  %0 = onnx.Pow(%x, %s) : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<f32>) -> tensor<?x4xf32, #sym.dims<n, 4>>
  %a = onnx.Exp(%0) : (tensor<?x4xf32, #sym.dims<n, 4>>) -> tensor<?x4xf32, #sym.dims<n, 4>>
  %1 = onnx.Pow(%y, %t) : (tensor<?x4xf32, #sym.dims<n, 4>>, tensor<f32>) -> tensor<?x4xf32, #sym.dims<n, 4>>
  %b = onnx.Exp(%1) : (tensor<?x4xf32, #sym.dims<n, 4>>) -> tensor<?x4xf32, #sym.dims<n, 4>>
  onnx.return %a, %b : tensor<?x4xf32, #sym.dims<n, 4>>, tensor<?x4xf32, #sym.dims<n, 4>>
}
// CHECK-NOT:    constant1
