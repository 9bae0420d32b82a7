// RUN: igniter-opt %s -p 'form-fusion-regions{author="by-kind{fuse=none}"}' --remarks --emit=none 2>&1 | filecheck %s --check-prefix=NONE
// RUN: igniter-opt %s -p 'form-fusion-regions{author="by-kind{fuse=elementwise}"}' --remarks --emit=none 2>&1 | filecheck %s --check-prefix=ELEMENTWISE
// RUN: igniter-opt %s -p 'form-fusion-regions{author="by-kind{fuse=reductions}"}' --remarks --emit=none 2>&1 | filecheck %s --check-prefix=REDUCTIONS
// RUN: igniter-opt %s -p 'form-fusion-regions{author="by-kind{fuse=contractions}"}' --remarks --emit=none 2>&1 | filecheck %s --check-prefix=CONTRACTIONS
// RUN: igniter-opt %s -p 'form-fusion-regions{author=by-kind}' --remarks --emit=none 2>&1 | filecheck %s --check-prefix=ALL
// RUN: igniter-opt %s -p 'form-fusion-regions{author="by-kind{fuse=all}"}' --check-each --emit=none 2>&1 | filecheck %s --check-prefix=SAME
// RUN: not igniter-opt %s -p 'form-fusion-regions{author="by-kind{fuse=most}"}' 2>&1 | filecheck %s --check-prefix=VALUE

// The rungs of an ablation: the same nodes are compiled, and more kinds of them share a region. Two products of
// computed tensors share one at the last rung only.

builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) attributes {input_names = ["x", "w"], output_names = ["y"]} {
    %a = onnx.MatMul(%x, %w) <{node_name = "scores"}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %b = onnx.Abs(%a) <{node_name = "abs"}> : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %c = onnx.Exp(%b) <{node_name = "exp"}> : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %d = onnx.Softmax(%c) <{node_name = "softmax"}> {axis = -1 : i64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %e = onnx.MatMul(%d, %x) <{node_name = "values"}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    onnx.return %e : tensor<64x64xf32>
  }
}

// NONE:      'abs' note: not in one region with 'scores': nothing is fused (fuse=none) [reason=rung]
// NONE:      5 nodes before, 5 after, 5 of them regions, which save 0 bytes
// ELEMENTWISE-DAG: 'abs' applied: in region @r1
// ELEMENTWISE-DAG: 'exp' applied: in region @r1
// ELEMENTWISE-DAG: 'softmax' note: not in one region with 'exp': 'softmax' (normalization) is not of the kinds that are fused (fuse=elementwise)
// ELEMENTWISE: 5 nodes before, 4 after, 4 of them regions
// REDUCTIONS-DAG: 'exp' applied: in region @r1
// REDUCTIONS-DAG: 'softmax' applied: in region @r1
// REDUCTIONS-DAG: 'abs' note: not in one region with 'scores': 'scores' (contraction) is not of the kinds that are fused (fuse=reductions)
// REDUCTIONS: 5 nodes before, 3 after, 3 of them regions
// CONTRACTIONS-DAG: 'softmax' applied: in region @r0
// CONTRACTIONS-DAG: 'values' applied: in region @r1
// CONTRACTIONS-DAG: 'values' note: not in one region with 'softmax': both contain a contraction (fuse=contractions)
// CONTRACTIONS: 5 nodes before, 2 after, 2 of them regions
// ALL:       5 nodes before, 1 after, 1 of them regions
// SAME:      check: form-fusion-regions: 1 results agree
// VALUE:     the option 'fuse' of the fusion author 'by-kind' is none or elementwise or reductions or contractions or all, not most
