// RUN: igniter-opt %s -p "form-fusion-regions" --remarks --emit=none 2>&1 | filecheck %s
// RUN: igniter-opt %s -p "form-fusion-regions{author=default}" --remarks --emit=none 2>&1 | filecheck %s
// RUN: igniter-opt %s -p 'form-fusion-regions{author="default{singletons=all contractions=none}"}' --remarks --emit=none 2>&1 | filecheck %s --check-prefix=OPTIONS
// RUN: not igniter-opt %s -p "form-fusion-regions{author=defualt}" 2>&1 | filecheck %s --check-prefix=NAME
// RUN: not igniter-opt %s -p 'form-fusion-regions{author="default{singletons=some}"}' 2>&1 | filecheck %s --check-prefix=VALUE
// RUN: not igniter-opt %s -p 'form-fusion-regions{author="default{singleton=all}"}' 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: not igniter-opt %s -p 'form-fusion-regions{singletons=none author="default{singletons=all}"}' 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: not igniter-opt %s -p 'form-fusion-regions{author="default{"}' 2>&1 | filecheck %s --check-prefix=TEXT
// RUN: not igniter-opt %s -p 'form-fusion-regions{author="default,default"}' 2>&1 | filecheck %s --check-prefix=TWO

// The options of Igniter's own author are said of the pass, or of the author.
builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) {
    %a = onnx.MatMul(%x, %w) <{node_name = "mm"}> : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %b = onnx.Abs(%a) <{node_name = "abs"}> : (tensor<64x64xf32>) -> tensor<64x64xf32>
    onnx.return %b : tensor<64x64xf32>
  }
}

// CHECK: 'mm' applied: in region @r0
// CHECK: 'abs' applied: in region @r0
// OPTIONS: 'mm' missed: MatMul is left to ONNX Runtime (contractions=none)
// OPTIONS: 'abs' applied: in region @r0
// NAME: there is no fusion author called 'defualt'; there are by-kind, default{{.*}}; did you mean 'default'?
// VALUE: the option 'singletons' of the fusion author 'default' is none or winning or all, not some
// OPTION: the fusion author 'default' has no option 'singleton': its options are contractions, small-flops, singletons, byte-products, views, algorithms, points; did you mean 'singletons'?
// TWICE: 'singletons' is given both to the pass and to the fusion author 'default'; give it once
// TEXT: cannot read the fusion author 'default{'
// TWO: 'default,default' is not a fusion author; write NAME or NAME{option=value other=value}
