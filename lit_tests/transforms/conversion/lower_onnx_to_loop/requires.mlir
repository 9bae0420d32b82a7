// RUN: igniter-opt %s --split-input-file -p infer-shapes,form-fusion-regions{singletons=all},lower-onnx-to-loop,deduplicate-kernels | filecheck %s
// RUN: igniter-opt %s --split-input-file -p infer-shapes,form-fusion-regions{singletons=all},cpu-loop,cpu-schedule | filecheck %s --check-prefix=OP
// RUN: igniter-opt %s --split-input-file -p "infer-shapes,form-fusion-regions{singletons=all max-nodes=2},cpu-loop,cpu-schedule,form-programs,lower-programs" | filecheck %s --check-prefix=PROGRAM

// A Reshape that 64 has to divide, and a reflection that needs a row and one more for each that it adds. The node is
// the second of its region; the op around the kernel knows it by name.

// CHECK:      loop.kernel @r0 symbols [d0]
// CHECK-SAME: requires [
// CHECK-NEXT:   16*d0 == 64*((16*d0) floordiv 64) "the input cannot be reshaped to the requested shape" node 1,
// CHECK-NEXT:   4 <= d0 - 1 "the dim is too small for reflection" node 2] {

// OP:      ort.op @igniter_r0 kernel @r0 symbols [d0] scratch(0) requires [
// OP-NEXT:   16*d0 == 64*((16*d0) floordiv 64) "the input cannot be reshaped to the requested shape" node "reshape",
// OP-NEXT:   4 <= d0 - 1 "the dim is too small for reflection" node "pad"]

// PROGRAM:      loop.func @p0 symbols [n]
// PROGRAM-SAME: requires [
// PROGRAM-NEXT:   16*n == 64*((16*n) floordiv 64) "the input cannot be reshaped to the requested shape" node "reshape",
// PROGRAM-NEXT:   4 <= n - 1 "the dim is too small for reflection" node "pad"] {
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x16xf32, #sym.dims<n, 16>>) attributes {input_names = ["x"], output_names = ["y", "z"]} {
    %shape = onnx.Constant() {value = #onnx.tensor<2xi64, [64, -1]>} : () -> tensor<2xi64>
    %pads = onnx.Constant() {value = #onnx.tensor<4xi64, [0, 0, 4, 0]>} : () -> tensor<4xi64>
    %a = onnx.Exp(%x) : (tensor<?x16xf32, #sym.dims<n, 16>>) -> tensor<*xf32>
    %y = onnx.Reshape(%a, %shape) <{node_name = "reshape"}> : (tensor<*xf32>, tensor<2xi64>) -> tensor<*xf32>
    %z = onnx.Pad(%a, %pads) <{node_name = "pad"}> {mode = "reflect"} : (tensor<*xf32>, tensor<4xi64>) -> tensor<*xf32>
    onnx.return %y, %z : tensor<*xf32>, tensor<*xf32>
  }
}
