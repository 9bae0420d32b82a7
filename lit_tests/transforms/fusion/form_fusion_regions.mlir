// RUN: igniter-opt %s --split-input-file -p "form-fusion-regions{contractions=small}" | filecheck %s
// RUN: igniter-opt %s --split-input-file -p "form-fusion-regions{contractions=small}" --remarks --emit=none 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: igniter-opt %s --split-input-file -p 'form-fusion-regions{contractions=all singletons=all}' | filecheck %s --check-prefix=ALL
// RUN: igniter-opt %s --split-input-file -p 'form-fusion-regions{contractions=small max-nodes=2}' --remarks --emit=none 2>&1 | filecheck %s --check-prefix=TWO
// RUN: igniter-opt %s --split-input-file -p "form-fusion-regions{contractions=small},inline-regions" | filecheck %s --check-prefix=INLINE

// A MatMul stays, what follows it is one region, with the constant scale cloned into it and the bias as an operand.
builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<?x64xf32, #sym.dims<n, 64>>, %w: tensor<64x64xf32>, %b: tensor<64xf32>) {
    %c = onnx.Constant() {value = #onnx.tensor<f32, [0.5]>} : () -> tensor<f32>
    %m = onnx.MatMul(%x, %w) <{node_name = "mm"}> : (tensor<?x64xf32, #sym.dims<n, 64>>, tensor<64x64xf32>) -> tensor<?x64xf32, #sym.dims<n, 64>>
    %0 = onnx.Add(%m, %b) <{node_name = "bias"}> : (tensor<?x64xf32, #sym.dims<n, 64>>, tensor<64xf32>) -> tensor<?x64xf32, #sym.dims<n, 64>>
    %1 = onnx.Mul(%0, %c) <{node_name = "scale"}> : (tensor<?x64xf32, #sym.dims<n, 64>>, tensor<f32>) -> tensor<?x64xf32, #sym.dims<n, 64>>
    onnx.return %1 : tensor<?x64xf32, #sym.dims<n, 64>>
  }
}

// CHECK: %m = onnx.MatMul(%x, %w)
// CHECK-NEXT: %0 = fusion.region @r0 (%m_1 = %m : {{.*}}, %b_1 = %b : tensor<64xf32>) -> (tensor<?x64xf32, #sym.dims<n, 64>>) {
// CHECK-NEXT: onnx.Constant()
// CHECK-NEXT: onnx.Add
// CHECK-NEXT: onnx.Mul
// CHECK-NEXT: fusion.yield
// REMARK: 'mm' missed: MatMul of {{.*}} operations is left to ONNX Runtime (contractions=small)
// REMARK: 'bias' applied: in region @r0
// REMARK: 'scale' applied: in region @r0
// REMARK: main: 3 nodes before, 2 after, 1 of them regions
// ALL: fusion.region @r0
// ALL-NEXT: onnx.Constant
// ALL-NEXT: onnx.MatMul

// -----

// The edge from 'a' to 'd' cannot be fused: the MatMul between them would depend on the region and the region on it.
builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) {
    %z = onnx.Neg(%x) <{node_name = "z"}> : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %a = onnx.Abs(%z) <{node_name = "a"}> : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %m = onnx.MatMul(%a, %w) <{node_name = "mm"}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %c = onnx.Relu(%m) <{node_name = "c"}> : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %d = onnx.Add(%c, %a) <{node_name = "d"}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    onnx.return %d : tensor<64x64xf32>
  }
}

// CHECK: fusion.region @r0 (%x_1 = %x : tensor<64x64xf32>) -> (tensor<64x64xf32>)
// CHECK: onnx.MatMul
// CHECK: fusion.region @r1
// CHECK-NEXT: onnx.Relu
// CHECK-NEXT: onnx.Add
// REMARK: main: 5 nodes before, 3 after, 2 of them regions

// -----

// Shape arithmetic that infer-shapes knows becomes fusion.dims, and the nodes that computed it go away.
builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<?x?x64xf32, #sym.dims<batch, seq, 64>>) {
    %s = onnx.Shape(%x) <{node_name = "shape"}> : (tensor<?x?x64xf32, #sym.dims<batch, seq, 64>>) -> tensor<3xi64>
    %i = onnx.Constant() {value = #onnx.tensor<2xi64, [1, 0]>} : () -> tensor<2xi64>
    %g = onnx.Gather(%s, %i) <{node_name = "gather"}> {igniter.values = {"0" = #sym.dims<batch, seq, 64>}} : (tensor<3xi64>, tensor<2xi64>) -> tensor<2xi64>
    %a = onnx.Abs(%x) <{node_name = "abs"}> : (tensor<?x?x64xf32, #sym.dims<batch, seq, 64>>) -> tensor<?x?x64xf32, #sym.dims<batch, seq, 64>>
    %n = onnx.Neg(%a) <{node_name = "neg"}> : (tensor<?x?x64xf32, #sym.dims<batch, seq, 64>>) -> tensor<?x?x64xf32, #sym.dims<batch, seq, 64>>
    %e = onnx.Reshape(%n, %g) <{node_name = "reshape"}> {igniter.values = {"1" = #sym.dims<seq, 64*batch>}} : (tensor<?x?x64xf32, #sym.dims<batch, seq, 64>>, tensor<2xi64>) -> tensor<?x?xf32, #sym.dims<seq, 64*batch>>
    %t = onnx.Exp(%e) <{node_name = "exp"}> : (tensor<?x?xf32, #sym.dims<seq, 64*batch>>) -> tensor<?x?xf32, #sym.dims<seq, 64*batch>>
    onnx.return %t : tensor<?x?xf32, #sym.dims<seq, 64*batch>>
  }
}

// CHECK: onnx.graph @main
// CHECK-NEXT: fusion.region @r0 (%x_1 = %x : {{.*}}) -> (tensor<?x?xf32, #sym.dims<seq, 64*batch>>) {
// CHECK-NEXT: fusion.dims [seq, 64*batch] : tensor<2xi64>
// CHECK-NEXT: onnx.Abs
// CHECK-NEXT: onnx.Neg
// CHECK-NEXT: onnx.Reshape
// CHECK-NEXT: onnx.Exp
// CHECK-NEXT: fusion.yield
// CHECK-NEXT: }
// CHECK-NEXT: onnx.return
// TWO: 'abs' applied: in region @r0
// TWO: 'neg' applied: in region @r0
// TWO: 'reshape' applied: in region @r1
// TWO: 'exp' applied: in region @r1
// REMARK: 'shape' missed: Shape is shape arithmetic whose value the compiler knows
// REMARK: 'gather' missed: Gather is shape arithmetic whose value the compiler knows
// REMARK: main: 6 nodes before, 1 after, 1 of them regions
// INLINE: %[[S:.*]] = onnx.Shape(%x)
// INLINE: %[[SEQ:.*]] = onnx.Gather(%[[S]],
// INLINE: %[[BATCH:.*]] = onnx.Gather(%[[S]],
// INLINE: %[[SIZE:.*]] = onnx.Mul(%[[BATCH]],
// INLINE: %[[SHAPE:.*]] = onnx.Concat(%[[SEQ]], %[[SIZE]])
// INLINE: onnx.Reshape(%{{.*}}, %[[SHAPE]])

// -----

// A region that cannot read off a symbol from what it computes with reads a graph input besides.
builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<?x64xf32, #sym.dims<n, 64>>, %w: tensor<64x64xf32>, %u: tensor<?x?xf32, #sym.dims<m, n>>) {
    %k = onnx.Constant() {value = #onnx.tensor<2xi64, [0, 0]>} : () -> tensor<2xi64>
    %0 = onnx.Neg(%w) <{node_name = "neg"}> : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %1 = onnx.Tile(%0, %k) <{node_name = "tile"}> {igniter.values = {"1" = #sym.dims<n, m>}} : (tensor<64x64xf32>, tensor<2xi64>) -> tensor<?x?xf32, #sym.dims<64*n, 64*m>>
    onnx.return %1 : tensor<?x?xf32, #sym.dims<64*n, 64*m>>
  }
}

// CHECK: fusion.region @r0 (%w_1 = %w : tensor<64x64xf32>, %u_1 = %u : tensor<?x?xf32, #sym.dims<m, n>>) ->

// -----

// Nothing to gain: a view, one Add, an op without a lowering, a type without kernels.
builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<8x8xf32>, %s: tensor<8x!onnx.string>, %q: tensor<*xf32>, %p: tensor<?xf32, #sym.dims<p>>) {
    %f = onnx.Flatten(%x) <{node_name = "view"}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %d = onnx.custom(%f) <{domain = "other", op_type = "Strange", node_name = "strange"}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %a = onnx.Add(%d, %x) <{node_name = "add"}> : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %i = onnx.Identity(%s) <{node_name = "string"}> : (tensor<8x!onnx.string>) -> tensor<8x!onnx.string>
    %r = onnx.Relu(%q) <{node_name = "unranked"}> : (tensor<*xf32>) -> tensor<*xf32>
    onnx.return %a, %i, %r : tensor<8x8xf32>, tensor<8x!onnx.string>, tensor<*xf32>
  }
}

// CHECK: %f = onnx.Flatten
// CHECK-NOT: fusion.region
// CHECK: onnx.return %a, %i, %r
// REMARK: 'view' missed: a kernel of views only gains nothing, because views move no data [reason=view]
// REMARK: 'strange' missed: Igniter has no lowering for other.Strange [reason=no-lowering]
// REMARK: 'add' missed: Add alone is left to ONNX Runtime (singletons=winning) [reason=cost]
// REMARK: 'string' missed: Identity: kernels do not support !onnx.string [reason=type]
// REMARK: 'unranked' missed: Relu: the rank of a tensor<*xf32> is unknown [reason=rank]

// -----

// Two nodes that share an input are one region, which reads it once; singles that gain stand alone.
builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) {
    %a = onnx.Sin(%x) <{node_name = "sin"}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %b = onnx.Cos(%x) <{node_name = "cos"}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %e = onnx.Erf(%y) <{node_name = "erf"}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    onnx.return %a, %b, %e : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
  }
}

// CHECK: %a, %b = fusion.region @r0 (%x_1 = %x : tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
// CHECK: %e = fusion.region @r1 (%y_1 = %y : tensor<8x8xf32>) -> (tensor<8x8xf32>)

// -----

// ORT's MatMul transposes its operands as it reads them, so such a Transpose is no kernel; any other one is.
builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<64x64xf32>, %y: tensor<8x64x64xf32>) {
    %t = onnx.Transpose(%x) <{node_name = "inner"}> {perm = array<i64: 1, 0>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %m = onnx.MatMul(%x, %t) <{node_name = "mm"}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %u = onnx.Transpose(%y) <{node_name = "outer"}> {perm = array<i64: 1, 0, 2>} : (tensor<8x64x64xf32>) -> tensor<64x8x64xf32>
    onnx.return %m, %u : tensor<64x64xf32>, tensor<64x8x64xf32>
  }
}

// REMARK: 'inner' missed: Transpose of the last two dims is part of the MatMul that ONNX Runtime runs [reason=cost]
// REMARK: 'outer' applied: in region

// -----

// The nodes of a subgraph form regions inside it, which may read what is outside.
builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%c: tensor<i1>, %x: tensor<?x8xf32, #sym.dims<n, 8>>) {
    %y = onnx.If(%c) <{node_name = "choose", graphs = ["then_branch", "else_branch"]}> ({
      %a = onnx.Tanh(%x) <{node_name = "tanh"}> : (tensor<?x8xf32, #sym.dims<n, 8>>) -> tensor<?x8xf32, #sym.dims<n, 8>>
      %b = onnx.Mul(%a, %x) <{node_name = "mul"}> : (tensor<?x8xf32, #sym.dims<n, 8>>, tensor<?x8xf32, #sym.dims<n, 8>>) -> tensor<?x8xf32, #sym.dims<n, 8>>
      onnx.return %b : tensor<?x8xf32, #sym.dims<n, 8>>
    }, {
      onnx.return %x : tensor<?x8xf32, #sym.dims<n, 8>>
    }) : (tensor<i1>) -> tensor<?x8xf32, #sym.dims<n, 8>>
    onnx.return %y : tensor<?x8xf32, #sym.dims<n, 8>>
  }
}

// CHECK: %y = onnx.If(%c)
// CHECK-NEXT: %b = fusion.region @r0 (%x_1 = %x : tensor<?x8xf32, #sym.dims<n, 8>>)
// CHECK: onnx.return %b
// REMARK: 'mul' applied: in region @r0 [region=r0]
// REMARK: 'choose' missed: If has a subgraph, which runs in ONNX Runtime [reason=subgraph]

// -----

// A Neg alone is left to ONNX Runtime, which has no kernel for one of bf16: that is a region, and so is a product of
// bf16 that the author would leave. One of f16 runs in f32.
builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<64x64xf32>, %h: tensor<64x64xf16>, %b: tensor<64x64xbf16>, %w: tensor<64x64xbf16>) {
    %0 = onnx.Neg(%x) <{node_name = "single"}> : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %1 = onnx.Neg(%h) <{node_name = "half"}> : (tensor<64x64xf16>) -> tensor<64x64xf16>
    %2 = onnx.Neg(%b) <{node_name = "brain"}> : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
    %3 = onnx.MatMul(%b, %w) <{node_name = "product"}> : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
    onnx.return %0, %1, %2, %3 : tensor<64x64xf32>, tensor<64x64xf16>, tensor<64x64xbf16>, tensor<64x64xbf16>
  }
}

// REMARK: 'single' missed: Neg alone is left to ONNX Runtime
// REMARK: 'half' missed: Neg alone is left to ONNX Runtime
// REMARK: 'brain' applied: in region
// REMARK: 'product' applied: in region
