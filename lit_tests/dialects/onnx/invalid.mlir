// RUN: igniter-opt %s --split-input-file --verify-diagnostics --emit=none

// What the schema of the module's opset does not allow is refused, with the node named.

builtin.module attributes {onnx.model = {opset_import = {"" = 12 : i64}}} {
  %x = "test.op"() : () -> tensor<2xf32>
  // expected-error {{HardSwish 'act': opset 12 of ai.onnx has no such op}}
  %y = onnx.HardSwish(%x) <{node_name = "act"}> : (tensor<2xf32>) -> tensor<2xf32>
}

// -----

builtin.module attributes {onnx.model = {opset_import = {"" = 21 : i64}}} {
  %x = "test.op"() : () -> tensor<2xf32>
  // expected-error {{Upsample: deprecated since opset 10}}
  %y = onnx.Upsample(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
}

// -----

%x = "test.op"() : () -> tensor<2xf32>
// expected-error {{Add 'sum': 1 inputs where opset}}
%y = onnx.Add(%x) <{node_name = "sum"}> : (tensor<2xf32>) -> tensor<2xf32>

// -----

%x = "test.op"() : () -> tensor<2xf32>
// expected-error {{Relu: 2 outputs where opset}}
%y, %z = onnx.Relu(%x) : (tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)

// -----

%x = "test.op"() : () -> tensor<2xf32>
%none = onnx.NoValue : none
// expected-error {{Add: input 'B' is omitted but required}}
%y = onnx.Add(%x, %none) : (tensor<2xf32>, none) -> tensor<2xf32>

// -----

%x = "test.op"() : () -> tensor<2xi1>
// expected-error {{Add: 'A' is tensor(bool), which is not one of the 12 allowed types}}
%y = onnx.Add(%x, %x) : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>

// -----

builtin.module attributes {onnx.model = {opset_import = {"" = 13 : i64}}} {
  %x = "test.op"() : () -> tensor<2xi64>
  // expected-error {{Sigmoid: 'X' is tensor(int64), allowed are tensor(bfloat16), tensor(double), tensor(float), tensor(float16)}}
  %y = onnx.Sigmoid(%x) : (tensor<2xi64>) -> tensor<2xi64>
}

// -----

%x, %y = "test.op"() : () -> (tensor<2xf32>, tensor<2xf64>)
// expected-error {{Add: 'B' is tensor(double), but 'A' is tensor(float)}}
%z = onnx.Add(%x, %y) : (tensor<2xf32>, tensor<2xf64>) -> tensor<2xf32>

// -----

%x = "test.op"() : () -> tensor<2xf32>
// expected-error {{Softmax: no attribute 'axes' in opset}}
%y = onnx.Softmax(%x) {axes = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>

// -----

%x = "test.op"() : () -> tensor<2xf32>
// expected-error {{Softmax: attribute 'axis' is float, not int}}
%y = onnx.Softmax(%x) {axis = 1.0 : f32} : (tensor<2xf32>) -> tensor<2xf32>

// -----

%x = "test.op"() : () -> tensor<2xf32>
// expected-error {{Cast: attribute 'to' is missing}}
%y = onnx.Cast(%x) : (tensor<2xf32>) -> tensor<2xf32>

// -----

%x = "test.op"() : () -> tensor<2xf32>
// expected-error {{Relu: output_names has 2 names for 1 results}}
%y = onnx.Relu(%x) <{output_names = ["a", "b"]}> : (tensor<2xf32>) -> tensor<2xf32>

// -----

// expected-error {{onnx.custom needs the property op_type}}
onnx.custom() : () -> ()

// -----

// expected-error {{onnx.graph must end with onnx.return}}
onnx.graph @main(%x: tensor<2xf32>) {
  "test.termop"() : () -> ()
}

// -----

// expected-error {{input_names names 2 inputs, but there are 1}}
onnx.graph @main(%x: tensor<2xf32>) attributes {input_names = ["x", "y"]} {
  onnx.return %x : tensor<2xf32>
}

// -----

// expected-error @+1 {{tensor<2xf32> needs 8 bytes, but has 4}}
%x = onnx.Constant() {value = #onnx.tensor<2xf32, "0x00000000">} : () -> tensor<2xf32>

// -----

// expected-error @+1 {{cannot reshape array of size 3}}
%x = onnx.Constant() {value = #onnx.tensor<2xi64, [1, 2, 3]>} : () -> tensor<2xi64>
