// RUN: igniter-opt %s -p lower-onnx-to-loop --split-input-file | filecheck %s

// Attention of four heads, of which two each share those of keys and values: two contractions whose bodies are the
// product of two reads, and between them what it is when written out. Heads are split and joined in the subscripts.

builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 23 : i64}}} {
  onnx.graph @main(%q: tensor<?x?x32xf32, #sym.dims<b, s, 32>>, %k: tensor<?x?x16xf32, #sym.dims<b, t, 16>>, %v: tensor<?x?x16xf32, #sym.dims<b, t, 16>>) {
    %y = fusion.region @grouped (%0 = %q : tensor<?x?x32xf32, #sym.dims<b, s, 32>>, %1 = %k : tensor<?x?x16xf32, #sym.dims<b, t, 16>>, %2 = %v : tensor<?x?x16xf32, #sym.dims<b, t, 16>>) -> (tensor<?x?x32xf32, #sym.dims<b, s, 32>>) {
      %3 = onnx.Attention(%0, %1, %2) {is_causal = 1 : i64, kv_num_heads = 2 : i64, q_num_heads = 4 : i64} : (tensor<?x?x32xf32, #sym.dims<b, s, 32>>, tensor<?x?x16xf32, #sym.dims<b, t, 16>>, tensor<?x?x16xf32, #sym.dims<b, t, 16>>) -> tensor<?x?x32xf32, #sym.dims<b, s, 32>>
      fusion.yield %3 : tensor<?x?x32xf32, #sym.dims<b, s, 32>>
    }
    onnx.return %y : tensor<?x?x32xf32, #sym.dims<b, s, 32>>
  }
}
// CHECK-LABEL: loop.kernel @grouped symbols [b, s, t]
// CHECK-SAME:    requires [
// CHECK-NEXT:    1 <= b "its query, key or value has no elements" node 0,
// CHECK-NEXT:    1 <= s
// CHECK-NEXT:    1 <= t
// CHECK:       %[[SCORES:.*]] = loop.nest "attention.scores" [i0: parallel b, i1: parallel 4, i2: parallel s, i3: parallel t, r0: reduction 8]
// CHECK-NEXT:    %[[Q:.*]] = loop.read %{{.*}}[i0, i2, 8*i1 + r0] : f32
// CHECK-NEXT:    %[[K:.*]] = loop.read %{{.*}}[i0, i3, r0 + 8*(i1 floordiv 2)] : f32
// CHECK-NEXT:    %[[P:.*]] = arith.mulf %[[Q]], %[[K]] : f32
// CHECK-NEXT:    loop.yield add %[[P]] at [i0, i1, i2, i3]
// CHECK:       loop.nest "attention.scale"
// CHECK-NEXT:    loop.read %[[SCORES]][i0, i1, i2, i3] : f32
// CHECK:         arith.mulf
// CHECK:       loop.nest "attention.mask"
// CHECK:         loop.index -i2 + i3 : i64
// CHECK:         arith.select
// CHECK-NEXT:    arith.addf
// CHECK:       loop.nest "attention.max"
// CHECK:       loop.nest "attention.exp"
// CHECK:       loop.nest "attention.sum"
// CHECK:       loop.nest "attention.inverse"
// CHECK:       %[[WEIGHTS:.*]] = loop.nest "attention.weights"
// CHECK:       loop.nest "attention" [i0: parallel b, i1: parallel 4, i2: parallel s, i3: parallel 8, r0: reduction t]
// CHECK-NEXT:    loop.read %[[WEIGHTS]][i0, i1, i2, r0] : f32
// CHECK-NEXT:    loop.read %{{.*}}[i0, r0, i3 + 8*(i1 floordiv 2)] : f32
// CHECK-NEXT:    arith.mulf
// CHECK-NEXT:    loop.yield add %{{.*}} at [i0, i2, i1, i3]
// CHECK:       loop.view

// -----

// A feature of a head turns with that four further on: which of the two it is, is an axis of 2, read in both orders.

builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 23 : i64}}} {
  onnx.graph @main(%x: tensor<?x4x?x8xf32, #sym.dims<b, 4, s, 8>>, %cos: tensor<?x?x4xf32, #sym.dims<b, s, 4>>, %sin: tensor<?x?x4xf32, #sym.dims<b, s, 4>>) {
    %y = fusion.region @turned (%0 = %x : tensor<?x4x?x8xf32, #sym.dims<b, 4, s, 8>>, %1 = %cos : tensor<?x?x4xf32, #sym.dims<b, s, 4>>, %2 = %sin : tensor<?x?x4xf32, #sym.dims<b, s, 4>>) -> (tensor<?x4x?x8xf32, #sym.dims<b, 4, s, 8>>) {
      %3 = onnx.RotaryEmbedding(%0, %1, %2) : (tensor<?x4x?x8xf32, #sym.dims<b, 4, s, 8>>, tensor<?x?x4xf32, #sym.dims<b, s, 4>>, tensor<?x?x4xf32, #sym.dims<b, s, 4>>) -> tensor<?x4x?x8xf32, #sym.dims<b, 4, s, 8>>
      fusion.yield %3 : tensor<?x4x?x8xf32, #sym.dims<b, 4, s, 8>>
    }
    onnx.return %y : tensor<?x4x?x8xf32, #sym.dims<b, 4, s, 8>>
  }
}
// CHECK-LABEL: loop.kernel @turned
// CHECK-NEXT:  loop.nest "rotaryembedding" [i0: parallel b, i1: parallel 4, i2: parallel s, i3: parallel 2, i4: parallel 4]
// CHECK-NEXT:    loop.read %{{.*}}[i0, i2, i4] : f32
// CHECK-NEXT:    loop.read %{{.*}}[i0, i2, i4] : f32
// CHECK-NEXT:    loop.read %{{.*}}[i0, i1, i2, 4*i3 + i4] : f32
// CHECK-NEXT:    loop.read %{{.*}}[i0, i1, i2, -4*i3 + i4 + 4] : f32
