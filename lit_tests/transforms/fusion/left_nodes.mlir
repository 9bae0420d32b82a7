// RUN: igniter-opt %s -p 'form-fusion-regions{left="mm=it is slower here"}' --remarks --emit=none 2>&1 | filecheck %s
// RUN: igniter-opt %s -p 'form-fusion-regions{left="mm","abs"}' --remarks --emit=none 2>&1 | filecheck %s --check-prefix=BOTH
// RUN: igniter-opt %s -p 'form-fusion-regions{left="cut=it is slower here"}' --remarks --emit=none 2>&1 | filecheck %s --check-prefix=NEEDED
// RUN: igniter-opt %s -p 'form-fusion-regions{left="a=b"}' --remarks --emit=none 2>&1 | filecheck %s --check-prefix=EQUALS
// RUN: not igniter-opt %s -p 'form-fusion-regions{left="bas=it is slower here"}' 2>&1 | filecheck %s --check-prefix=UNKNOWN

// Nodes named by the caller stay with ONNX Runtime, except those without a kernel there: no ONNX Runtime clips i16.
builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>, %i: tensor<64xi16>, %l: tensor<i16>) {
    %m = onnx.MatMul(%x, %w) <{node_name = "mm"}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %a = onnx.Abs(%m) <{node_name = "abs"}> : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %b = onnx.Exp(%a) <{node_name = "a=b"}> : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %c = onnx.Clip(%i, %l) <{node_name = "cut"}> : (tensor<64xi16>, tensor<i16>) -> tensor<64xi16>
    onnx.return %b, %c : tensor<64x64xf32>, tensor<64xi16>
  }
}

// CHECK: 'mm' missed: it is slower here [reason=request]
// CHECK: 'abs' applied: in region @r0
// BOTH: 'mm' missed: it is left to ONNX Runtime on request [reason=request]
// BOTH: 'abs' missed: it is left to ONNX Runtime on request [reason=request]
// BOTH: 'a=b' applied
// NEEDED: 'cut' applied: in region
// EQUALS: 'a=b' missed: it is left to ONNX Runtime on request [reason=request]
// UNKNOWN: pass 'form-fusion-regions': no node is called 'bas', so it cannot be left to ONNX Runtime; similar: abs
