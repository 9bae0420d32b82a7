// RUN: igniter-opt %s -p "form-kernel-graph" | filecheck %s

// The kernel of a function becomes a region of a graph; its weight a constant.

// CHECK:      builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64, igniter.linalg = 1 : i64}}} {
// CHECK-NEXT:   onnx.graph @main(%x: tensor<?x2xf32, #sym.dims<n, 2>>) attributes {graph_name = "main", input_names = ["x"], output_names = ["result0"]} {
// CHECK-NEXT:     %weight0 = onnx.Constant() <{initializer_name = "weight0"}> {value = #onnx.tensor<2xf32, [1.0, 2.0]>} : () -> tensor<2xf32>
// CHECK-NEXT:     %0 = fusion.region @scale (%1 = %x : tensor<?x2xf32, #sym.dims<n, 2>>, %2 = %weight0 : tensor<2xf32>) kernel @scale -> (tensor<?x2xf32, #sym.dims<n, 2>>) {
// CHECK-NEXT:       %3 = onnx.custom(%1, %2) <{domain = "igniter.linalg", op_type = "scale", node_name = "scale"}> : (tensor<?x2xf32, #sym.dims<n, 2>>, tensor<2xf32>) -> tensor<?x2xf32, #sym.dims<n, 2>>
// CHECK-NEXT:       fusion.yield %3 : tensor<?x2xf32, #sym.dims<n, 2>>
// CHECK-NEXT:     }
// CHECK-NEXT:     onnx.return %0 : tensor<?x2xf32, #sym.dims<n, 2>>
// CHECK-NEXT:   }

builtin.module {
  loop.kernel @scale symbols [n] (%x: tensor<?x2xf32, #sym.dims<n, 2>>, %w: tensor<2xf32>) -> (tensor<?x2xf32, #sym.dims<n, 2>>) attributes {igniter.arguments = [{name = "x"}, {name = "weight0", value = #onnx.tensor<2xf32, [1.0, 2.0]>}], igniter.results = ["result0"]} {
    %y = loop.nest "mul" [i: parallel n, j: parallel 2] -> tensor<?x2xf32, #sym.dims<n, 2>> {
      %a = loop.read %x[i, j] : f32
      %b = loop.read %w[j] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield none %p at [i, j]
    }
    loop.return %y : tensor<?x2xf32, #sym.dims<n, 2>>
  }
}
