// RUN: igniter-opt %s -p infer-shapes,"bind-values{ops=loops}" --split-input-file | filecheck %s

// A Loop that stacks as much as a tensor says: the trip count is a dim of a carrier, which the loop has as one more state.

// CHECK-LABEL: onnx.graph @main
// CHECK:         [[C:%[a-z0-9_]+]] = onnx.ConstantOfShape({{.*}}) {value = #onnx.tensor<1xi1, [false]>, igniter.carrier = "node 'steps' (Loop): its trip count is negative"} : (tensor<2xi64>) -> tensor<0x?xi1, #sym.dims<0, [[T:[a-z0-9_]+]]>>
// CHECK-NEXT:    [[M:%[a-z0-9_]+]] = onnx.Shape([[C]]) {start = 1 : i64, end = 2 : i64}
// CHECK:         {{.*}} = onnx.Loop([[M]], %{{.*}}, %h, [[C]]) <{graphs = ["body"], node_name = "steps"
// CHECK-NEXT:    ^bb0(%i: tensor<i64>, %b: tensor<i1>, %s: tensor<8xf32>, [[A:%[a-z0-9_]+]]: tensor<0x?xi1, #sym.dims<0, [[T]]>>):
// CHECK-NEXT:      %n = onnx.Tanh(%s)
// CHECK-NEXT:      onnx.return {{.*}}%b, %n, [[A]], %n
// CHECK:         {igniter.values = {"0" = #sym.dims<[[T]]>}} : (tensor<1xi64>, none, tensor<8xf32>, tensor<0x?xi1, #sym.dims<0, [[T]]>>) -> (tensor<8xf32>, tensor<0x?xi1, #sym.dims<0, [[T]]>>, tensor<?x8xf32, #sym.dims<[[T]], 8>>)
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%m: tensor<i64>, %h: tensor<8xf32>) attributes {graph_name = "g", input_names = ["m", "h"], output_names = ["y"]} {
    %none = onnx.NoValue : none
    %z, %y = onnx.Loop(%m, %none, %h) <{node_name = "steps"}> ({
    ^bb0(%i: tensor<i64>, %b: tensor<i1>, %s: tensor<8xf32>):
      %n = onnx.Tanh(%s) : (tensor<8xf32>) -> tensor<8xf32>
      onnx.return %b, %n, %n : tensor<i1>, tensor<8xf32>, tensor<8xf32>
    }) : (tensor<i64>, none, tensor<8xf32>) -> (tensor<8xf32>, tensor<*xf32>)
    onnx.return %y : tensor<*xf32>
  }
}

// -----

// Nothing is stacked: a program reads the count as it stands.

// CHECK-LABEL: onnx.graph @main
// CHECK-NOT:     ConstantOfShape
// CHECK:         onnx.Loop(%m,
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%m: tensor<i64>, %h: tensor<8xf32>) attributes {graph_name = "g", input_names = ["m", "h"], output_names = ["z"]} {
    %none = onnx.NoValue : none
    %z = onnx.Loop(%m, %none, %h) <{node_name = "steps"}> ({
    ^bb0(%i: tensor<i64>, %b: tensor<i1>, %s: tensor<8xf32>):
      %n = onnx.Tanh(%s) : (tensor<8xf32>) -> tensor<8xf32>
      onnx.return %b, %n : tensor<i1>, tensor<8xf32>
    }) : (tensor<i64>, none, tensor<8xf32>) -> tensor<8xf32>
    onnx.return %z : tensor<8xf32>
  }
}
