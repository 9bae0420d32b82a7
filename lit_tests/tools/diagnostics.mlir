// RUN: igniter-opt %s --split-input-file --verify-diagnostics --emit=none

// An error of the parser, at the line that the comment names.

// expected-error @+1 {{Operation test.no_such_dialect.op is not registered}}
"test.no_such_dialect.op"() : () -> ()

// -----

// An error of the verifier.

// expected-error {{operand 'lhs' at position 0 does not verify}}
%0 = arith.constant 1.0 : f32
%1 = "arith.addi"(%0, %0) : (f32, f32) -> f32
