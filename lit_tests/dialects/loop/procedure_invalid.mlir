// RUN: igniter-opt %s --split-input-file --verify-diagnostics --emit=none

// What the verifier refuses of procedures, and of the statements that only they need.

// Two points may write one element: i is in no subscript.

// expected-error {{iterations along 'i' of 'p' may access the same element of memref<4xf32>}}
loop.kernel @meet symbols [] (%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %y = loop.procedure "p" [i: parallel 4] (%a = %x) -> (%o : tensor<4xf32>) {
    loop.for j = 0 to 4 {
      %v = loop.load %a[j] : f32
      loop.store %v, %o[j]
    }
  }
  loop.return %y : tensor<4xf32>
}

// -----

// i is a subscript of both accesses, but not in one place.

// expected-error {{iterations along 'i' of 'p' may access the same element of memref<4x4xf32>}}
loop.kernel @crossing symbols [] (%x: tensor<4x4xf32>) -> (tensor<4x4xf32>) {
  %y = loop.procedure "p" [i: parallel 4] (%a = %x) -> (%o : tensor<4x4xf32>) {
    loop.for j = 0 to 4 {
      %v = loop.load %a[i, j] : f32
      loop.store %v, %o[i, j]
      loop.store %v, %o[j, i]
    }
  }
  loop.return %y : tensor<4x4xf32>
}

// -----

// expected-error {{the axes of a procedure must be parallel; write sequential computation as a loop in its body}}
loop.kernel @reduction symbols [] (%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %y = loop.procedure "p" [i: reduction 4] (%a = %x) -> (%o : tensor<4xf32>) {
    %c = arith.constant 0 : i64
  }
  loop.return %y : tensor<4xf32>
}

// -----

// expected-error {{a procedure cannot write an operand}}
loop.kernel @operand symbols [] (%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %y = loop.procedure "p" [i: parallel 4] (%a = %x) -> (%o : tensor<4xf32>) {
    %v = loop.load %a[i] : f32
    loop.store %v, %o[i]
    loop.store %v, %a[i]
  }
  loop.return %y : tensor<4xf32>
}

// -----

// expected-error {{the indirect subscript _0 of 'loop.store' needs guards for both its lower and its upper bound}}
loop.kernel @unguarded symbols [] (%x: tensor<4xi64>) -> (tensor<4xi64>) {
  %y = loop.procedure "p" [] (%a = %x) -> (%o : tensor<4xi64>) {
    loop.for j = 0 to 4 sequential {
      %v = loop.load %a[j] : i64
      loop.store %v, %o[_0] with %v if [_0]
    }
  }
  loop.return %y : tensor<4xi64>
}

// -----

// expected-error {{'loop.load' names ['q'], which is neither an enclosing loop nor a symbol}}
loop.kernel @names symbols [] (%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %y = loop.procedure "p" [i: parallel 4] (%a = %x) -> (%o : tensor<4xf32>) {
    %v = loop.load %a[q] : f32
    loop.store %v, %o[i]
  }
  loop.return %y : tensor<4xf32>
}

// -----

loop.func @hints symbols [] (%x: memref<4xf32>) outputs 1 {
  // expected-error {{loop 'i' is sequential: it cannot be a reduction or have threads or a schedule}}
  loop.for i = 0 to 4 sequential threads(1) {
    %c = arith.constant 0 : i64
  }
}

// -----

loop.func @condition symbols [] (%x: memref<4xi64>) outputs 1 {
  // expected-error {{the condition of loop 'i' must be one integer, not memref<4xi64>}}
  loop.for i = 0 to 4 sequential while %x {
    %c = arith.constant 0 : i64
  }
}

// -----

loop.func @plain symbols [] (%x: memref<i64>) outputs 1 {
  // expected-error {{loop 'i' has a condition, so it must be sequential}}
  loop.for i = 0 to 4 while %x {
    %c = arith.constant 0 : i64
  }
}

// -----

// An algorithm of other operands and results.

// expected-error {{procedure 'cumsum' does not compute #loop.top<largest>: 'top' takes a tensor of three dims, and gives elements and their places}}
loop.kernel @other symbols [n] (%x: tensor<?x8x1xf32, #sym.dims<n, 8, 1>>) -> (tensor<?x8x1xf32, #sym.dims<n, 8, 1>>) {
  %y = loop.procedure "cumsum" [i: parallel n] computes #loop.top<largest> (%a = %x) -> (%o : tensor<?x8x1xf32, #sym.dims<n, 8, 1>>) {
    %sum = loop.alloc "sum" : memref<f32, "register">
    %zero = arith.constant 0.0 : f32
    loop.store %zero, %sum[]
    loop.for k = 0 to 8 sequential {
      %v = loop.load %a[i, k, 0] : f32
      loop.accumulate add %v, %sum[]
      %s = loop.load %sum[] : f32
      loop.store %s, %o[i, k, 0]
    }
  }
  loop.return %y : tensor<?x8x1xf32, #sym.dims<n, 8, 1>>
}

// -----

// A schedule of launches names the dims of the algorithm.

// expected-error {{the schedule of nest 'cumsum': unknown axis 'i'}}
loop.kernel @axes symbols [n] (%x: tensor<?x8x1xf32, #sym.dims<n, 8, 1>>) -> (tensor<?x8x1xf32, #sym.dims<n, 8, 1>>) {
  %y = loop.procedure "cumsum" [i: parallel n] computes #loop.prefix<add> schedule [i by 4 grid, i vector 4, launch warps 4 stages 1] (%a = %x) -> (%o : tensor<?x8x1xf32, #sym.dims<n, 8, 1>>) {
    %sum = loop.alloc "sum" : memref<f32, "register">
    %zero = arith.constant 0.0 : f32
    loop.store %zero, %sum[]
    loop.for k = 0 to 8 sequential {
      %v = loop.load %a[i, k, 0] : f32
      loop.accumulate add %v, %sum[]
      %s = loop.load %sum[] : f32
      loop.store %s, %o[i, k, 0]
    }
  }
  loop.return %y : tensor<?x8x1xf32, #sym.dims<n, 8, 1>>
}
