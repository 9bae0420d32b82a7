// RUN: igniter-opt %s --emit=scf --split-input-file --verify-diagnostics

// What has no form in MLIR is an error with the op and the kernel.

// expected-error @+1 {{kernel @profiled: 'loop.clock' has no form in MLIR: MLIR's dialects have no time stamp counter}}
loop.func @profiled symbols [] (%t: memref<1xi64>) outputs 1 {
  %0 = loop.clock : i64
  loop.store %0, %t[0]
}

// -----

// expected-error @+1 {{--emit=scf writes scheduled kernels, and the module has none}}
loop.kernel @k symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %0 = loop.nest "copy" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
    %1 = loop.read %x[i] : f32
    loop.yield none %1 at [i]
  }
  loop.return %0 : tensor<?xf32, #sym.dims<n>>
}
