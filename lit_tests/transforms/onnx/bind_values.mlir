// RUN: igniter-opt %s -p infer-shapes,bind-values | filecheck %s
// RUN: igniter-opt %s -p infer-shapes,"bind-values{ops=none}" | filecheck %s --check-prefix=NONE
// RUN: igniter-opt %s -p cpu-onnx,bind-values,"form-fusion-regions{singletons=all}" | filecheck %s --check-prefix=REGIONS

// The repeats become dims of a carrier, which the node reads as its last operand.

// CHECK-LABEL: onnx.graph @main
// CHECK: %[[T:.*]] = onnx.Concat(%{{.*}}, %repeats) {axis = 0 : i64}
// CHECK-NEXT: %[[C:.*]] = onnx.ConstantOfShape(%[[T]]) {value = #onnx.tensor<1xi1, [false]>, igniter.carrier = "node 'tile' (Tile): a number of repeats is negative"} : (tensor<3xi64>) -> tensor<0x?x?xi1, #sym.dims<0, [[A:.*]], [[B:.*]]>>
// CHECK-NEXT: %[[S:.*]] = onnx.Shape(%[[C]]) {start = 1 : i64, end = 3 : i64}
// CHECK: onnx.custom(%x, %[[S]], %[[C]]) <{domain = "igniter.bound", op_type = "Tile", node_name = "tile"
// CHECK-SAME: -> tensor<?x?xf32, #sym.dims<[[A]]*n, 8*[[B]]>>

// NONE: onnx.Tile(%x, %repeats)

// REGIONS: fusion.region @r0
// REGIONS: %[[C:.*]] = onnx.ConstantOfShape
// REGIONS-NEXT: fusion.region @r1 (%{{.*}} = %x : {{.*}}, %{{.*}} = %[[C]] :
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x8xf32, #sym.dims<n, 8>>, %repeats: tensor<2xi64>) attributes {graph_name = "g", input_names = ["x", "repeats"], output_names = ["y"]} {
    %y = onnx.Tile(%x, %repeats) <{node_name = "tile", output_names = ["y"]}> : (tensor<?x8xf32, #sym.dims<n, 8>>, tensor<2xi64>) -> tensor<*xf32>
    onnx.return %y : tensor<*xf32>
  }
}
