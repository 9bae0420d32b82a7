// RUN: igniter-opt %s -p infer-shapes,form-fusion-regions{singletons=all},lower-onnx-to-loop,drop-checks,canonicalize-loop | filecheck %s
// RUN: igniter-opt %s -p infer-shapes,form-fusion-regions{singletons=all},lower-onnx-to-loop,drop-checks,canonicalize-loop | igniter-opt --emit=none

// What says whether an index is out of range is gone, and the nest that found it out.

// CHECK:      loop.kernel @r0 symbols [n, k] (%{{.*}}: tensor<?x8xf32, #sym.dims<n, 8>>, %{{.*}}: tensor<?xi64, #sym.dims<k>>) -> (tensor<?x8xf32, #sym.dims<k, 8>>)
// CHECK-NOT:    checks
// CHECK-NOT:    gather.check
// CHECK:        loop.return %{{[0-9]+}} : tensor<?x8xf32, #sym.dims<k, 8>>
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x8xf32, #sym.dims<n, 8>>, %i: tensor<?xi64, #sym.dims<k>>) attributes {input_names = ["x", "i"], output_names = ["y"]} {
    %a = onnx.Exp(%x) : (tensor<?x8xf32, #sym.dims<n, 8>>) -> tensor<*xf32>
    %y = onnx.Gather(%a, %i) <{node_name = "rows"}> : (tensor<*xf32>, tensor<?xi64, #sym.dims<k>>) -> tensor<*xf32>
    onnx.return %y : tensor<*xf32>
  }
}
