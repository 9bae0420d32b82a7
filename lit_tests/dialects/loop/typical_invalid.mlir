// RUN: igniter-opt %s --split-input-file --verify-diagnostics --emit=none

// expected-error {{typical: 'm' is not a symbol of the kernel; known: n}}
loop.func @f symbols [n] (%x: memref<?xf32, #sym.dims<n>>) outputs 1 typical [m = 3] {
}

// -----

// expected-error {{typical: the size of 'n' is 0; it must be positive}}
loop.func @f symbols [n] (%x: memref<?xf32, #sym.dims<n>>) outputs 1 typical [n = 0] {
}

// -----

// expected-error {{typical: 'n' is given twice}}
loop.func @f symbols [n] (%x: memref<?xf32, #sym.dims<n>>) outputs 1 typical [n = 1, n = 2] {
}

// -----

// expected-error {{a typical size needs the name of a symbol, as in n = 128}}
loop.func @f symbols [n] (%x: memref<?xf32, #sym.dims<n>>) outputs 1 typical [2*n = 1] {
}

// -----

// expected-error {{typical: 'm' is not a symbol of the kernel; known: n}}
loop.kernel @k symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) typical [m = 3] {
  loop.return %x : tensor<?xf32, #sym.dims<n>>
}
