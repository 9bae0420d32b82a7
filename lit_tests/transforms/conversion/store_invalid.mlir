// RUN: igniter-opt %s -p lower-to-loops,fuse-loops,promote-buffers,parallelize-loops,plan-buffers --split-input-file --verify-diagnostics --emit=none

// Places of results that a schedule may name, and that cannot be. What is legal: lit_tests/examples/stores.mlir.

// -----

// A result of the kernel.

// expected-error {{pass 'lower-to-loops': nest 'double' cannot have 'store': its result is a result of the kernel, in the caller's memory}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
  %e = loop.nest "exp" [i: parallel n, j: parallel 8] schedule [i fuse "g", j] -> tensor<?x8xf32, #sym.dims<n, 8>> {
    %a = loop.read %x[i, j] : f32
    %b = math.exp %a : f32
    loop.yield none %b at [i, j]
  }
  %y = loop.nest "double" [i: parallel n, j: parallel 8] schedule [i fuse "g", store, j] -> tensor<?x8xf32, #sym.dims<n, 8>> {
    %a = loop.read %e[i, j] : f32
    %b = arith.addf %a, %a : f32
    loop.yield none %b at [i, j]
  }
  loop.return %y : tensor<?x8xf32, #sym.dims<n, 8>>
}

// -----

// Readers that are not in the loop: another one that the same group has is in between.

// expected-error {{pass 'promote-buffers': func 'k': the result of nest 'exp' cannot be stored at the scheduled place: its writers and readers are not in one loop there (give the loops around it 'fuse', where that is legal)}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
  %e = loop.nest "exp" [i: parallel n, j: parallel 8] schedule [i fuse "g", store, j] -> tensor<?x8xf32, #sym.dims<n, 8>> {
    %a = loop.read %x[i, j] : f32
    %b = math.exp %a : f32
    loop.yield none %b at [i, j]
  }
  %y = loop.nest "double" [i: parallel n, j: parallel 8] schedule [i fuse "h", j] -> tensor<?x8xf32, #sym.dims<n, 8>> {
    %a = loop.read %e[i, j] : f32
    %b = arith.addf %a, %a : f32
    loop.yield none %b at [i, j]
  }
  loop.return %y : tensor<?x8xf32, #sym.dims<n, 8>>
}

// -----

// A stack that is too small.

// expected-error {{pass 'plan-buffers': func 'k': the result of nest 'exp', a buffer of 32*n bytes, cannot be stored on the stack: a task has 32768 bytes of stack}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
  %e = loop.nest "exp" [i: parallel n, j: parallel 8] schedule [store in stack, i fuse "g", j] -> tensor<?x8xf32, #sym.dims<n, 8>> {
    %a = loop.read %x[i, j] : f32
    %b = math.exp %a : f32
    loop.yield none %b at [i, j]
  }
  %y = loop.nest "double" [i: parallel n, j: parallel 8] schedule [i fuse "h", j] -> tensor<?x8xf32, #sym.dims<n, 8>> {
    %a = loop.read %e[i, j] : f32
    %b = arith.addf %a, %a : f32
    loop.yield none %b at [i, j]
  }
  loop.return %y : tensor<?x8xf32, #sym.dims<n, 8>>
}

// -----

// Registers without a number.

// expected-error {{the result of nest 'exp' cannot be stored in registers: its dims are not constant}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
  %e = loop.nest "exp" [i: parallel n, j: parallel 8] schedule [store in registers, i fuse "g", j] -> tensor<?x8xf32, #sym.dims<n, 8>> {
    %a = loop.read %x[i, j] : f32
    %b = math.exp %a : f32
    loop.yield none %b at [i, j]
  }
  %y = loop.nest "double" [i: parallel n, j: parallel 8] schedule [i fuse "h", j] -> tensor<?x8xf32, #sym.dims<n, 8>> {
    %a = loop.read %e[i, j] : f32
    %b = arith.addf %a, %a : f32
    loop.yield none %b at [i, j]
  }
  loop.return %y : tensor<?x8xf32, #sym.dims<n, 8>>
}

// -----

// Rows that another iteration writes.

// expected-error {{pass 'promote-buffers': func 'k': the result of nest 'exp' cannot be stored at the scheduled place: its writers and readers are not in one loop there (give the loops around it 'fuse', where that is legal)}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
  %e = loop.nest "exp" [i: parallel n, j: parallel 8] schedule [i fuse "g", store, j] -> tensor<?x8xf32, #sym.dims<n, 8>> {
    %a = loop.read %x[i, j] : f32
    %b = math.exp %a : f32
    loop.yield none %b at [i, j]
  }
  %y = loop.nest "double" [i: parallel n, j: parallel 8] schedule [i fuse "g", j] -> tensor<?x8xf32, #sym.dims<n, 8>> {
    %a = loop.read %e[n - 1 - i, j] : f32
    %b = arith.addf %a, %a : f32
    loop.yield none %b at [i, j]
  }
  loop.return %y : tensor<?x8xf32, #sym.dims<n, 8>>
}
