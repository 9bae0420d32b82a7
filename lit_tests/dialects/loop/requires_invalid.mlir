// RUN: igniter-opt %s --split-input-file --verify-diagnostics --emit=none

// A requirement names symbols that are known.

// expected-error {{the requirement 3 <= m names 'm', which is not a symbol here}}
loop.func @f symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 requires [3 <= m "it is too small"] {
}

// -----

// expected-error {{the requirement 3 <= m needs 'm', which is not a dim of any input}}
ort.op @op_0 kernel @f symbols [n] requires [3 <= m "it is too small"] ins ["x" : f32 [n]] outs ["y" : f32 [n]]
