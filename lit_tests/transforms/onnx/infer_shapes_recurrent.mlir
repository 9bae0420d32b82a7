// RUN: igniter-opt %s -p infer-shapes | filecheck %s

// What ONNX Runtime quantises of an LSTM has the shapes of one.

onnx.graph @main(%x: tensor<?x?x8xf32, #sym.dims<steps, batch, 8>>, %w: tensor<2x8x64xi8>, %r: tensor<2x16x64xi8>, %s: tensor<2xf32>, %z: tensor<2xi8>) attributes {input_names = ["x", "w", "r", "s", "z"], output_names = ["y", "h", "c"]} {
  %none = onnx.NoValue : none
  %y, %h, %c = onnx.custom(%x, %w, %r, %none, %none, %none, %none, %none, %s, %z, %s, %z) <{domain = "com.microsoft", op_type = "DynamicQuantizeLSTM"}> {direction = "bidirectional", hidden_size = 16 : i64} : (tensor<?x?x8xf32, #sym.dims<steps, batch, 8>>, tensor<2x8x64xi8>, tensor<2x16x64xi8>, none, none, none, none, none, tensor<2xf32>, tensor<2xi8>, tensor<2xf32>, tensor<2xi8>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)
  onnx.return %y, %h, %c : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
}
// CHECK: -> (tensor<?x2x?x16xf32, #sym.dims<steps, 2, batch, 16>>, tensor<2x?x16xf32, #sym.dims<2, batch, 16>>, tensor<2x?x16xf32, #sym.dims<2, batch, 16>>)
