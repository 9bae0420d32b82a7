// RUN: igniter-opt %s -p infer-shapes,form-fusion-regions{singletons=all},lower-onnx-to-loop | filecheck %s
// RUN: igniter-opt %s -p infer-shapes,form-fusion-regions{singletons=all},cpu-loop,cpu-schedule | filecheck %s --check-prefix=OP
// RUN: igniter-opt %s -p infer-shapes,form-fusion-regions{singletons=all},cpu-loop,cpu-schedule | igniter-opt --emit=none

// The last result of the kernel says whether an index is out of range. The op is not given it as an output.

// CHECK:      loop.kernel @r0 symbols [n, k] (%{{.*}}: tensor<?x8xf32, #sym.dims<n, 8>>, %{{.*}}: tensor<?xi64, #sym.dims<k>>) -> (tensor<?x8xf32, #sym.dims<k, 8>>, tensor<i64>) checks [
// CHECK-NEXT:   "indices element out of data bounds" in [-n, n - 1] node 1] {
// CHECK:        [[CHECK:%[0-9]+]] = loop.nest "gather.check" [r0: reduction k] -> tensor<i64> {
// CHECK:          loop.yield max %{{.*}} at []
// CHECK:        loop.return %{{[0-9]+}}, [[CHECK]]

// OP:      loop.func @r0 symbols [d0, d1]
// OP-SAME: outputs 2 scratch(0) checks [
// OP:      ort.op @igniter_r0 kernel @r0 symbols [d0, d1] scratch(0) checks [
// OP-NEXT:   "indices element out of data bounds" in [-d0, d0 - 1] node "rows"]
// OP-NEXT:   ins [{{.*}} : f32 [d0, 8], {{.*}} : i64 [d1]]
// OP-NEXT:   outs [{{.*}} : f32 [d1, 8]]
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x8xf32, #sym.dims<n, 8>>, %i: tensor<?xi64, #sym.dims<k>>) attributes {input_names = ["x", "i"], output_names = ["y"]} {
    %a = onnx.Exp(%x) : (tensor<?x8xf32, #sym.dims<n, 8>>) -> tensor<*xf32>
    %y = onnx.Gather(%a, %i) <{node_name = "rows"}> : (tensor<*xf32>, tensor<?xi64, #sym.dims<k>>) -> tensor<*xf32>
    onnx.return %y : tensor<*xf32>
  }
}
