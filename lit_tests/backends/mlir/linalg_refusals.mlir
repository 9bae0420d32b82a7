// RUN: igniter-opt %s --emit=linalg --split-input-file --verify-diagnostics

// What has no form in MLIR is refused with the op and the kernel.

// expected-error {{kernel @k: 'arith.mulsi_extended' has no form in MLIR: it is not an op of arith or math on scalars}}
loop.kernel @k symbols [n] (%x: tensor<?xi32, #sym.dims<n>>) -> (tensor<?xi32, #sym.dims<n>>) {
  %y = loop.nest "wide" [i: parallel n] -> tensor<?xi32, #sym.dims<n>> {
    %v = loop.read %x[i] : i32
    %low, %high = "arith.mulsi_extended"(%v, %v) : (i32, i32) -> (i32, i32)
    loop.yield none %low at [i]
  }
  loop.return %y : tensor<?xi32, #sym.dims<n>>
}

// -----

// expected-error {{--emit=linalg writes structured kernels, and the module has none}}
builtin.module {}
