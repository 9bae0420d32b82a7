// RUN: igniter-opt %s -p form-fusion-regions --remarks --emit=none 2>&1 | filecheck %s --check-prefix=ASSUMED
// RUN: igniter-opt %s -p form-fusion-regions --sizes n=4 --remarks --emit=none 2>&1 | filecheck %s --check-prefix=ONE
// RUN: igniter-opt %s -p form-fusion-regions --sizes n=4,m=2 --remarks --emit=none 2>&1 | filecheck %s --check-prefix=BOTH

// The bytes that regions save are a formula and its value, at the given sizes; assumed sizes are named.

// ASSUMED: which save 131,072 bytes of memory traffic: 8*m*n assuming m=128, n=128
// ONE:     which save 4,096 bytes of memory traffic: 8*m*n at n=4, assuming m=128
// BOTH:    which save 64 bytes of memory traffic: 8*m*n at m=2, n=4

builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<?x?xf32, #sym.dims<n, m>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %a = onnx.Exp(%x) : (tensor<?x?xf32, #sym.dims<n, m>>) -> tensor<?x?xf32, #sym.dims<n, m>>
    %b = onnx.Abs(%a) : (tensor<?x?xf32, #sym.dims<n, m>>) -> tensor<?x?xf32, #sym.dims<n, m>>
    onnx.return %b : tensor<?x?xf32, #sym.dims<n, m>>
  }
}
