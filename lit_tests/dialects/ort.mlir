// RUN: igniter-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: igniter-opt %s --split-input-file --verify-diagnostics --emit=generic | filecheck %s --check-prefix=GENERIC

// Ports of every kind.

// CHECK:      ort.library @encoder {
// CHECK-NEXT:   ort.op @bias_gelu kernel @kernel_0 symbols [batch, seq, has_mask, parts, "my dim"] scratch(64*batch + 128)
// CHECK-NEXT:     ins ["x" : f32 [batch, seq, 768], "past" : i64 ["my dim" + seq], "mask" : i1 [batch, seq] optional(has_mask), "rest" : f32 [batch] variadic(parts, 0)]
// CHECK-NEXT:     outs ["y" : f32 [batch, seq, 768] reuses 0, "z" : ui8 [{{.*}}batch*seq{{.*}} floordiv 2{{.*}}, max(batch, seq)]]
// CHECK-NEXT: }

// GENERIC: "ort.library"() <{sym_name = "encoder"}> ({
// GENERIC: symbols = ["batch", "seq", "has_mask", "parts", "my dim"], scratch = #sym.dims<64*batch + 128>
// GENERIC: #ort.port<"mask" : i1 [batch, seq] optional(has_mask)>

ort.library @encoder {
  ort.op @bias_gelu kernel @kernel_0 symbols [batch, seq, has_mask, parts, "my dim"] scratch(64*batch + 128)
      ins ["x" : f32 [batch, seq, 768], "past" : i64 [seq + "my dim"],
           "mask" : i1 [batch, seq] optional(has_mask), "rest" : f32 [batch] variadic(parts, 0)]
      outs ["y" : f32 [batch, seq, 768] reuses 0, "z" : ui8 [(batch*seq) floordiv 2, max(batch, seq)]]
}

// -----

// The op that makes a carrier.

// CHECK: ort.values @values_0 count 2 "node 'tile' (Tile): a number of repeats is negative"

ort.library @carriers {
  ort.values @values_0 count 2 "node 'tile' (Tile): a number of repeats is negative"
}

// -----

// expected-error {{ort.values has no values}}
ort.values @values_0 count 0 ""

// -----

// Nothing in, a scalar out; two ops may share one kernel.

// CHECK:      ort.op @one_value kernel @kernel_0 symbols []
// CHECK-NEXT:   ins []
// CHECK-NEXT:   outs ["y" : f64 []]

ort.library @constants {
  ort.op @one_value kernel @kernel_0 symbols [] ins [] outs ["y" : f64 []]
  ort.op @same_value kernel @kernel_0 symbols [] ins [] outs ["y" : f64 []]
}

// -----

// expected-error {{'Where' must be an identifier with an underscore (so that it cannot be the name of an ONNX op)}}
ort.op @Where kernel @k symbols [] ins [] outs ["y" : f32 []]

// -----

// expected-error {{'a b' is not the name of a function in an object file}}
ort.op @op_0 kernel @"a b" symbols [] ins [] outs ["y" : f32 []]

// -----

// expected-error {{an op must have at least one output}}
ort.op @op_0 kernel @k symbols [] ins [] outs []

// -----

// expected-error {{a symbol of the kernel needs 'n', which is not a dim of any input}}
ort.op @op_0 kernel @k symbols [n] ins ["x" : f32 [4]] outs ["y" : f32 [4]]

// -----

// expected-error {{output 0 ('y') needs 'n', which is not a dim of any input}}
ort.op @op_0 kernel @k symbols [] ins ["x" : f32 [4]] outs ["y" : f32 [2*n]]

// -----

// expected-error {{the scratch size needs 'n', which is not a dim of any input}}
ort.op @op_0 kernel @k symbols [] scratch(n*4) ins ["x" : f32 [4]] outs ["y" : f32 [4]]

// -----

// The number of outputs is known too late to size the scratch memory.

// expected-error {{the scratch size needs 'n', which is not a dim of any input}}
ort.op @op_0 kernel @k symbols [n] scratch(n*4) ins ["x" : f32 [4]] outs ["y" : f32 [4] variadic(n, 1)]

// -----

// expected-error {{input 0 ('x'): dim 0, a*b, has symbols that are not a dim of any input}}
ort.op @op_0 kernel @k symbols [] ins ["x" : f32 [a*b]] outs ["y" : f32 [4]]

// -----

// expected-error {{input 0 ('x') is variadic, so it must be the last}}
ort.op @op_0 kernel @k symbols [] ins ["x" : f32 [4] variadic(n, 1), "b" : f32 []] outs ["y" : f32 [4]]

// -----

// expected-error {{symbol 'n' counts a port, so it cannot be used for anything else}}
ort.op @op_0 kernel @k symbols [] ins ["x" : f32 [n], "b" : f32 [] optional(n)] outs ["y" : f32 [4]]

// -----

// expected-error {{output 0 ('y') reuses 1, which is not a required input}}
ort.op @op_0 kernel @k symbols [] ins ["x" : f32 [4]] outs ["y" : f32 [4] reuses 1]

// -----

// expected-error {{output 0 ('y') reuses an input of a different element type}}
ort.op @op_0 kernel @k symbols [] ins ["x" : i32 [4]] outs ["y" : f32 [4] reuses 0]

// -----

// expected-error {{input 0 ('x'): i7 is not an ONNX element type}}
ort.op @op_0 kernel @k symbols [] ins ["x" : i7 [4]] outs ["y" : f32 [4]]

// -----

// expected-error {{input 0 ('x') has a negative dim in [-4]}}
ort.op @op_0 kernel @k symbols [] ins ["x" : f32 [-4]] outs ["y" : f32 [4]]

// -----

// expected-error {{an ort.library can only hold ort.op and ort.values, not ort.library}}
ort.library @outer { ort.library @inner { } }
