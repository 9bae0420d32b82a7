// RUN: igniter-opt %s -p "recompose" --split-input-file | filecheck %s

// Rows of a constant, taken after the product.

// CHECK:        onnx.graph @main(%first: tensor<1xi64>, %last: tensor<1xi64>) attributes {input_names = ["first", "last"], output_names = ["y", "z"]} {
// CHECK-NEXT:     %table = onnx.Constant() <{initializer_name = "table"}> {value = #onnx.tensor<4x2xf32, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]>} : () -> tensor<4x2xf32>
// CHECK-NEXT:     %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<2x3xf32, [1.0, 0.0, 2.0, 0.0, 1.0, 3.0]>} : () -> tensor<2x3xf32>
// CHECK-NEXT:     %axes = onnx.Constant() <{initializer_name = "axes"}> {value = #onnx.tensor<1xi64, [0]>} : () -> tensor<1xi64>
// CHECK-NEXT:     %0 = onnx.MatMul(%table, %w) : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
// CHECK-NEXT:     %y = onnx.Slice(%0, %first, %last, %axes) <{node_name = "plain"}> : (tensor<4x3xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x3xf32, #sym.dims<n, 3>>
// CHECK-NEXT:     %1 = onnx.MatMul(%table, %w) : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
// CHECK-NEXT:     %2 = onnx.Slice(%1, %first, %last, %axes) : (tensor<4x3xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x3xf32, #sym.dims<n, 3>>
// CHECK-NEXT:     %z = onnx.Unsqueeze(%2, %axes) <{node_name = "viewed"}> : (tensor<?x3xf32, #sym.dims<n, 3>>, tensor<1xi64>) -> tensor<1x?x3xf32, #sym.dims<1, n, 3>>
// CHECK-NEXT:     onnx.return %y, %z : tensor<?x3xf32, #sym.dims<n, 3>>, tensor<1x?x3xf32, #sym.dims<1, n, 3>>
// CHECK-NEXT:   }

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%first: tensor<1xi64>, %last: tensor<1xi64>) attributes {input_names = ["first", "last"], output_names = ["y", "z"]} {
    %table = onnx.Constant() <{initializer_name = "table"}> {value = #onnx.tensor<4x2xf32, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]>} : () -> tensor<4x2xf32>
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<2x3xf32, [1.0, 0.0, 2.0, 0.0, 1.0, 3.0]>} : () -> tensor<2x3xf32>
    %axes = onnx.Constant() <{initializer_name = "axes"}> {value = #onnx.tensor<1xi64, [0]>} : () -> tensor<1xi64>
    %rows = onnx.Slice(%table, %first, %last, %axes) : (tensor<4x2xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x2xf32, #sym.dims<n, 2>>
    %y = onnx.MatMul(%rows, %w) <{node_name = "plain"}> : (tensor<?x2xf32, #sym.dims<n, 2>>, tensor<2x3xf32>) -> tensor<?x3xf32, #sym.dims<n, 3>>
    %wide = onnx.Unsqueeze(%rows, %axes) : (tensor<?x2xf32, #sym.dims<n, 2>>, tensor<1xi64>) -> tensor<1x?x2xf32, #sym.dims<1, n, 2>>
    %z = onnx.MatMul(%wide, %w) <{node_name = "viewed"}> : (tensor<1x?x2xf32, #sym.dims<1, n, 2>>, tensor<2x3xf32>) -> tensor<1x?x3xf32, #sym.dims<1, n, 3>>
    onnx.return %y, %z : tensor<?x3xf32, #sym.dims<n, 3>>, tensor<1x?x3xf32, #sym.dims<1, n, 3>>
  }
}

// -----

// A part of each row has another product.

// CHECK:        onnx.graph @main(%first: tensor<1xi64>, %last: tensor<1xi64>) attributes {input_names = ["first", "last"], output_names = ["y"]} {
// CHECK-NEXT:     %table = onnx.Constant() <{initializer_name = "table"}> {value = #onnx.tensor<2x2xf32, [1.0, 2.0, 3.0, 4.0]>} : () -> tensor<2x2xf32>
// CHECK-NEXT:     %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<2x3xf32, [1.0, 0.0, 2.0, 0.0, 1.0, 3.0]>} : () -> tensor<2x3xf32>
// CHECK-NEXT:     %axes = onnx.Constant() <{initializer_name = "axes"}> {value = #onnx.tensor<1xi64, [1]>} : () -> tensor<1xi64>
// CHECK-NEXT:     %part = onnx.Slice(%table, %first, %last, %axes) : (tensor<2x2xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x2xf32>
// CHECK-NEXT:     %y = onnx.MatMul(%part, %w) <{node_name = "kept"}> : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:     onnx.return %y : tensor<2x3xf32>
// CHECK-NEXT:   }

builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%first: tensor<1xi64>, %last: tensor<1xi64>) attributes {input_names = ["first", "last"], output_names = ["y"]} {
    %table = onnx.Constant() <{initializer_name = "table"}> {value = #onnx.tensor<2x2xf32, [1.0, 2.0, 3.0, 4.0]>} : () -> tensor<2x2xf32>
    %w = onnx.Constant() <{initializer_name = "w"}> {value = #onnx.tensor<2x3xf32, [1.0, 0.0, 2.0, 0.0, 1.0, 3.0]>} : () -> tensor<2x3xf32>
    %axes = onnx.Constant() <{initializer_name = "axes"}> {value = #onnx.tensor<1xi64, [1]>} : () -> tensor<1xi64>
    %part = onnx.Slice(%table, %first, %last, %axes) : (tensor<2x2xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x2xf32>
    %y = onnx.MatMul(%part, %w) <{node_name = "kept"}> : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    onnx.return %y : tensor<2x3xf32>
  }
}
