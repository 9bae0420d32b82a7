// RUN: igniter-opt %s -p cpu-onnx --print-debuginfo | filecheck %s --check-prefix=ONNX
// RUN: igniter-opt %s -p cpu-onnx,cpu-fusion,cpu-loop,inline-nests --mlir-print-debuginfo | filecheck %s --check-prefix=NESTS
// RUN: igniter-opt %s -p cpu --print-debuginfo | igniter-opt --print-debuginfo | filecheck %s --check-prefix=LOOPS
// RUN: igniter-opt %s -p cpu --emit=llvm --target=x86-64-v3 --debug-info | filecheck %s --check-prefix=LLVM
// RUN: not igniter-opt %s --print-debuginfo --emit=llvm 2>&1 | filecheck %s --check-prefix=LOST
// RUN: not igniter-opt %s --debug-info 2>&1 | filecheck %s --check-prefix=ALONE

// The location of an op is the name of its ONNX node, at every level, read back, and as a line in LLVM's debug
// information: the number of the node.

// ONNX: onnx.Mul(%x, %y) <{node_name = "double"{{.*}} loc("double")
// ONNX: onnx.Exp({{.*}} loc("grow")

// NESTS: arith.mulf {{.*}} loc("double")
// NESTS: math.exp {{.*}} loc("grow")
// NESTS: } loc("grow")

// LOOPS: arith.mulf {{.*}} : vector<16xf32> loc("double")
// LOOPS: math.exp {{.*}} : vector<16xf32> loc("grow")
// LOOPS: loop.store {{.*}} loc("grow")

// LLVM: define internal void @r0.task1.body({{.*}} noinline #0 !dbg [[BODY:![0-9]+]] {
// LLVM: ; node double
// LLVM: fmul contract <8 x float> {{.*}}, !dbg [[DOUBLE:![0-9]+]]
// LLVM: ; node grow
// LLVM: store <8 x float> {{.*}}, !dbg [[GROW:![0-9]+]]
// LLVM: !DIFile(filename: "growth", directory: ".")
// LLVM: [[BODY]] = distinct !DISubprogram(name: "double, grow", linkageName: "r0.task1.body", {{.*}} line: 1,
// LLVM: [[DOUBLE]] = !DILocation(line: 1, scope: [[BODY]])
// LLVM: [[GROW]] = !DILocation(line: 2, scope: [[BODY]])

// LOST: --print-debuginfo is for IR: it needs --emit=mlir or generic
// ALONE: --debug-info is for the text of --emit=llvm: give both, or neither
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?xf32, #sym.dims<n>>, %y: tensor<?xf32, #sym.dims<n>>) attributes {graph_name = "growth", input_names = ["x", "y"], output_names = ["b"]} {
    %a = onnx.Mul(%x, %y) <{node_name = "double", output_names = ["a"]}> : (tensor<?xf32, #sym.dims<n>>, tensor<?xf32, #sym.dims<n>>) -> tensor<?xf32, #sym.dims<n>>
    %b = onnx.Exp(%a) <{node_name = "grow", output_names = ["b"]}> : (tensor<?xf32, #sym.dims<n>>) -> tensor<?xf32, #sym.dims<n>>
    onnx.return %b : tensor<?xf32, #sym.dims<n>>
  }
}
