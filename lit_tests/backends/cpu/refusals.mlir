// RUN: igniter-opt %s --emit=llvm --target=x86-64-v3 --split-input-file --verify-diagnostics

// What the emitter refuses, each with the func, the op and what to do.

// expected-error {{cannot emit 'k' for the CPU: loop.alloc: buffer 'row' has no offset in the arena yet; run plan-buffers}}
loop.func @k symbols [] (%x: memref<4xf32>) outputs 1 {
  %s = loop.alloc "row" : memref<64xf32, "scratch">
}

// -----

// expected-error {{local buffer 'big' of 80000 bytes does not fit a stack; plan-buffers puts it in scratch}}
loop.func @k symbols [] (%x: memref<4xf32>) outputs 1 {
  %s = loop.alloc "big" : memref<20000xf32, "local">
}

// -----

// expected-error {{local buffer 'row' of symbolic size does not fit a stack; plan-buffers puts it in scratch}}
loop.func @k symbols [n] (%x: memref<?xf32, #sym.dims<n>>) outputs 1 {
  %s = loop.alloc "row" : memref<?xf32, #sym.dims<n>, "local">
}

// -----

// expected-error {{subscripts [i] of a register buffer are not constant; unroll the loops around it}}
loop.func @k symbols [] (%x: memref<4xf32>) outputs 1 {
  %r = loop.alloc "acc" : memref<4xf32, "register">
  loop.for i = 0 to 4 {
    %a = loop.load %x[i] : f32
    loop.store %a, %r[i]
  }
}

// -----

// expected-error {{register buffer 'acc' is accessed as elements 2 to 6 here and as 0 to 4 elsewhere}}
loop.func @k symbols [] (%x: memref<8xf32>) outputs 1 {
  %r = loop.alloc "acc" : memref<8xf32, "register">
  %a = loop.load %x[v] lane v : vector<4xf32>
  loop.store %a, %r[v] lane v
  loop.store %a, %r[2 + v] lane v
}

// -----

// expected-error {{elements 6 to 10 of register buffer 'acc' of 8}}
loop.func @k symbols [] (%x: memref<8xf32>) outputs 1 {
  %r = loop.alloc "acc" : memref<8xf32, "register">
  %a = loop.load %x[v] lane v : vector<4xf32>
  loop.store %a, %r[6 + v] lane v
}

// -----

// expected-error {{register buffer 'acc' lives outside the threads loop that accesses it}}
loop.func @k symbols [] (%x: memref<8xf32>) outputs 1 {
  %r = loop.alloc "acc" : memref<1xf32, "register">
  loop.for i = 0 to 8 threads(1) {
    %a = loop.load %x[i] : f32
    loop.store %a, %r[0]
  }
}

// -----

// expected-error {{a register buffer has no address, so it has no view}}
loop.func @k symbols [] (%x: memref<8xf32>) outputs 1 {
  %r = loop.alloc "acc" : memref<4xf32, "register">
  %v = loop.view %r : memref<4xf32, "register"> to memref<2x2xf32, "register">
}

// -----

// expected-error {{every lane writes the same element}}
loop.func @k symbols [] (%x: memref<8xf32>) outputs 1 {
  %a = loop.load %x[v] lane v : vector<4xf32>
  loop.store %a, %x[0] lane v
}

// -----

// expected-error {{vector.print: the CPU backend has no code for this op}}
loop.func @k symbols [] (%x: memref<8xf32>) outputs 1 {
  %a = loop.load %x[v] lane v : vector<4xf32>
  "vector.print"(%a) : (vector<4xf32>) -> ()
}

// -----

// expected-error {{vector<2x2xf32>: only vectors of rank 1 have a register}}
loop.func @k symbols [] (%x: memref<8xf32>) outputs 1 {
  %a = arith.constant dense<0.0> : vector<2x2xf32>
}
