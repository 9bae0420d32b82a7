// RUN: igniter-opt %s -p lower-to-loops,fuse-loops,promote-buffers,parallelize-loops,plan-buffers --split-input-file --verify-diagnostics --emit=none

// Places of results that a schedule may name, and that cannot be. What is legal: lit_tests/examples/stores.mlir.

// -----

// A result of the kernel.

// expected-error {{lower-to-loops: nest 'double' says 'store', but its result is one of the kernel's, whose memory is the caller's}}
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

// expected-error {{promote-buffers: func 'k': the result of nest 'exp' cannot be stored where its schedule says: not all that write and read it are in one loop there.}}
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

// expected-error {{plan-buffers: func 'k': the result of nest 'exp', a buffer of 32*n bytes, cannot be stored on the stack, of which a task has 32768 bytes}}
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

// expected-error {{cannot be stored where its schedule says}}
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
