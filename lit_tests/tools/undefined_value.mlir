// RUN: igniter-opt %s --split-input-file --verify-diagnostics

// An undefined value is an error where it is used.

%0 = arith.constant 1 : i32
// expected-error @+1 {{%one is used, but not defined; also undefined: %two}}
"test.op"(%0, %one, %two) : (i32, i32, i32) -> ()
"test.op"(%two) : (i32) -> ()

// -----

loop.kernel @k symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %squared = loop.nest "k" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i] : f32
    loop.yield none %a at [i]
  }
  // expected-error @+1 {{%square is used, but not defined; did you mean %squared?}}
  loop.return %square : tensor<?xf32, #sym.dims<n>>
}
