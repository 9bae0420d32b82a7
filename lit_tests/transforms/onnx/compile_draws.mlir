// RUN: igniter-opt %s -p infer-shapes,compile-draws | filecheck %s
// RUN: igniter-opt %s -p cpu-onnx,compile-draws,"form-fusion-regions{singletons=all}",cpu-loop,"form-programs{alone=true}" | filecheck %s --check-prefix=REGIONS
// RUN: igniter-opt %s -p infer-shapes,compile-draws --emit=none --remarks 2>&1 | filecheck %s --check-prefix=REMARKS

// Nodes with a seed are marked; a marked one is a region by itself, and in no program.

// CHECK: onnx.RandomNormalLike(%{{.*}}) {{.*}}seed = 3.0{{.*}}igniter.draws
// CHECK: onnx.RandomUniformLike(%{{.*}}) <{node_name = "free"
// CHECK-NOT: igniter.draws

// REGIONS: fusion.program
// REGIONS: fusion.region @r1
// REGIONS: onnx.RandomNormalLike
// REGIONS-NEXT: fusion.yield
// REGIONS: fusion.program

// REMARKS: compile-draws: 'noise' applied: a kernel computes RandomNormalLike
// REMARKS: compile-draws: 'free' missed: RandomUniformLike has no seed
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x8xf32, #sym.dims<n, 8>>) attributes {graph_name = "g", input_names = ["x"], output_names = ["y"]} {
    %a = onnx.Relu(%x) <{node_name = "relu", output_names = ["a"]}> : (tensor<?x8xf32, #sym.dims<n, 8>>) -> tensor<*xf32>
    %b = onnx.RandomNormalLike(%a) <{node_name = "noise", output_names = ["b"]}> {seed = 3.0 : f32} : (tensor<*xf32>) -> tensor<*xf32>
    %c = onnx.RandomUniformLike(%a) <{node_name = "free", output_names = ["c"]}> : (tensor<*xf32>) -> tensor<*xf32>
    %d = onnx.Add(%a, %b) <{node_name = "add", output_names = ["d"]}> : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
    %y = onnx.Mul(%d, %c) <{node_name = "mul", output_names = ["y"]}> : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
    onnx.return %y : tensor<*xf32>
  }
}
