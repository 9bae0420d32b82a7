// RUN: igniter-opt %s --split-input-file --verify-diagnostics --emit=none

// What the verifier of the structured level refuses.

// expected-error {{a loop.kernel must end with loop.return}}
loop.kernel @no_return symbols [] (%x: tensor<4xf32>) -> (tensor<4xf32>) {
  "test.termop"() : () -> ()
}

// -----

// expected-error {{the types of loop.return do not match the result types of the kernel}}
loop.kernel @types symbols [] (%x: tensor<4xf32>) -> (tensor<2x2xf32>) {
  loop.return %x : tensor<4xf32>
}

// -----

// expected-error {{a loop.kernel can only hold nests, procedures and views, not 'arith.constant'}}
loop.kernel @foreign symbols [] (%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %c = arith.constant 1.0 : f32
  loop.return %x : tensor<4xf32>
}

// -----

// expected-error {{two nests are named 'copy'}}
loop.kernel @names symbols [] (%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %y = loop.nest "copy" [i: parallel 4] -> tensor<4xf32> {
    %v = loop.read %x[i] : f32
    loop.yield none %v at [i]
  }
  %z = loop.nest "copy" [i: parallel 4] -> tensor<4xf32> {
    %v = loop.read %y[i] : f32
    loop.yield none %v at [i]
  }
  loop.return %z : tensor<4xf32>
}

// -----

// expected-error {{nest 'copy': axes ['n'] shadow symbols of the kernel}}
loop.kernel @hidden symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %y = loop.nest "copy" [n: parallel n] -> tensor<?xf32, #sym.dims<n>> {
    %v = loop.read %x[n] : f32
    loop.yield none %v at [n]
  }
  loop.return %y : tensor<?xf32, #sym.dims<n>>
}

// -----

// expected-error {{nest 'copy': 'loop.read' names ['q'], which is neither an axis nor a symbol}}
loop.kernel @unknown_axis symbols [] (%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %y = loop.nest "copy" [i: parallel 4] -> tensor<4xf32> {
    %v = loop.read %x[q] : f32
    loop.yield none %v at [i]
  }
  loop.return %y : tensor<4xf32>
}

// -----

// expected-error {{nest 'copy': 'loop.read' names ['q'], which is neither an axis nor a symbol}}
loop.kernel @unknown_in_guard symbols [] (%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %y = loop.nest "copy" [i: parallel 4] -> tensor<4xf32> {
    %v = loop.read %x[i] if [q - 1] : f32
    loop.yield none %v at [i]
  }
  loop.return %y : tensor<4xf32>
}

// -----

// An indirect operand that is not there.
// expected-error {{nest 'copy': 'loop.read' names ['_1'], which is neither an axis nor a symbol}}
loop.kernel @unknown_operand symbols [] (%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %y = loop.nest "copy" [i: parallel 4] -> tensor<4xf32> {
    %k = loop.index i : i64
    %v = loop.read %x[_1] with %k : f32
    loop.yield none %v at [i]
  }
  loop.return %y : tensor<4xf32>
}

// -----

// expected-error {{nest 'copy': 'loop.index' names ['q'], which is neither an axis nor a symbol}}
loop.kernel @unknown_in_index symbols [] () -> (tensor<4xi64>) {
  %y = loop.nest "copy" [i: parallel 4] -> tensor<4xi64> {
    %v = loop.index i + q : i64
    loop.yield none %v at [i]
  }
  loop.return %y : tensor<4xi64>
}

// -----

// expected-error {{nest 'copy': 'loop.yield' names ['q'], which is neither an axis nor a symbol}}
loop.kernel @unknown_in_yield symbols [] () -> (tensor<4xi64>) {
  %y = loop.nest "copy" [i: parallel 4] -> tensor<4xi64> {
    %v = loop.index i : i64
    loop.yield none %v at [i + q]
  }
  loop.return %y : tensor<4xi64>
}

// -----

// expected-error {{nest 'copy': the extent of 'i' must consist of symbols}}
loop.kernel @extent symbols [] () -> (tensor<4x2xi64>) {
  %y = loop.nest "copy" [j: parallel 2, i: parallel j + 2] -> tensor<4x2xi64> {
    %v = loop.index i : i64
    loop.yield none %v at [i, j]
  }
  loop.return %y : tensor<4x2xi64>
}

// -----

// expected-error {{the operands and results of a loop.kernel must be tensors, not memref<4xf32>}}
loop.kernel @memref symbols [] (%x: memref<4xf32>) -> () {
  loop.return
}

// -----

// expected-error {{uses symbols that the kernel does not declare: ['n']}}
loop.kernel @undeclared symbols [] (%x: tensor<?xf32, #sym.dims<n>>) -> () {
  loop.return
}

// -----

// expected-error {{loop.view cannot change the element type}}
loop.kernel @view symbols [] (%x: tensor<4xf32>) -> (tensor<4xi32>) {
  %y = loop.view %x : tensor<4xf32> to tensor<4xi32>
  loop.return %y : tensor<4xi32>
}

// -----

// expected-error {{the axes of a nest must have different names}}
loop.kernel @axes symbols [] () -> (tensor<4x4xi64>) {
  %y = loop.nest "copy" [i: parallel 4, i: parallel 4] -> tensor<4x4xi64> {
    %v = loop.index i : i64
    loop.yield none %v at [i, i]
  }
  loop.return %y : tensor<4x4xi64>
}

// -----

// expected-error {{an axis must be 'parallel' or 'reduction', not 'serial'}}
%y = loop.nest "copy" [i: serial 4] -> tensor<4xi64> {
}

// -----

// expected-error {{the body of a loop.nest must end with loop.yield}}
loop.kernel @no_yield symbols [] () -> (tensor<4xi64>) {
  %y = loop.nest "copy" [i: parallel 4] -> tensor<4xi64> {
    %v = loop.index i : i64
    "test.termop"() : () -> ()
  }
  loop.return %y : tensor<4xi64>
}

// -----

// expected-error {{the body of a loop.nest cannot have block arguments (its axes are names)}}
%y = "loop.nest"() <{label = "copy", axes = #loop.axes<i: parallel 4>}> ({
^bb0(%i: i64):
  "loop.yield"(%i) <{combiners = ["none"], subscripts = [#sym.dims<i>]}> : (i64) -> ()
}) : () -> tensor<4xi64>

// -----

// expected-error {{2 results, but 1 yield clauses}}
loop.kernel @clauses symbols [] () -> (tensor<4xi64>) {
  %y, %z = loop.nest "copy" [i: parallel 4] -> tensor<4xi64>, tensor<4xi64> {
    %v = loop.index i : i64
    loop.yield none %v at [i]
  }
  loop.return %y : tensor<4xi64>
}

// -----

// expected-error {{cannot yield i64 for elements of tensor<4xf32>}}
loop.kernel @element symbols [] () -> (tensor<4xf32>) {
  %y = loop.nest "copy" [i: parallel 4] -> tensor<4xf32> {
    %v = loop.index i : i64
    loop.yield none %v at [i]
  }
  loop.return %y : tensor<4xf32>
}

// -----

// expected-error {{1 subscripts for tensor<4x1xi64>}}
loop.kernel @rank symbols [] () -> (tensor<4x1xi64>) {
  %y = loop.nest "copy" [i: parallel 4] -> tensor<4x1xi64> {
    %v = loop.index i : i64
    loop.yield none %v at [i]
  }
  loop.return %y : tensor<4x1xi64>
}

// -----

// expected-error {{writes along the reduction axes ['r']}}
loop.kernel @reduction_write symbols [] () -> (tensor<4xi64>) {
  %y = loop.nest "sum" [r: reduction 4] -> tensor<4xi64> {
    %v = loop.index r : i64
    loop.yield add %v at [r]
  }
  loop.return %y : tensor<4xi64>
}

// -----

// expected-error {{combiner 'none' in a nest with reduction axes: several iterations would write one element}}
loop.kernel @none_reduction symbols [] () -> (tensor<4xi64>) {
  %y = loop.nest "sum" [i: parallel 4, r: reduction 4] -> tensor<4xi64> {
    %v = loop.index r : i64
    loop.yield none %v at [i]
  }
  loop.return %y : tensor<4xi64>
}

// -----

// expected-error {{two iterations of the parallel axes may write the same element at [i + j]: the subscripts are not known to be injective}}
loop.kernel @points_meet symbols [] () -> (tensor<7xi64>) {
  %y = loop.nest "fold" [i: parallel 4, j: parallel 4] -> tensor<7xi64> {
    %v = loop.index i + j : i64
    loop.yield add %v at [i + j]
  }
  loop.return %y : tensor<7xi64>
}

// -----

// expected-error {{the subscripts of a result do not use the parallel axes ['j']: their iterations would write the same element}}
loop.kernel @overlap symbols [] () -> (tensor<4xi64>) {
  %y = loop.nest "copy" [i: parallel 4, j: parallel 4] -> tensor<4xi64> {
    %v = loop.index i + j : i64
    loop.yield none %v at [i]
  }
  loop.return %y : tensor<4xi64>
}

// -----

// expected-error {{'loop.view' cannot be in the body of a loop.nest}}
loop.kernel @body symbols [] (%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %y = loop.nest "copy" [i: parallel 4] -> tensor<4xf32> {
    %w = loop.view %x : tensor<4xf32> to tensor<4xf32>
    %v = loop.read %w[i] : f32
    loop.yield none %v at [i]
  }
  loop.return %y : tensor<4xf32>
}

// -----

// expected-error {{1 subscripts for tensor<4x4xf32>}}
loop.kernel @read_rank symbols [] (%x: tensor<4x4xf32>) -> (tensor<4xf32>) {
  %y = loop.nest "copy" [i: parallel 4] -> tensor<4xf32> {
    %v = loop.read %x[i] : f32
    loop.yield none %v at [i]
  }
  loop.return %y : tensor<4xf32>
}

// -----

// expected-error {{an indirect subscript must be an i64, not i32}}
loop.kernel @narrow symbols [] (%x: tensor<4xf32>, %k: tensor<4xi32>) -> (tensor<4xf32>) {
  %y = loop.nest "copy" [i: parallel 4] -> tensor<4xf32> {
    %at = loop.read %k[i] : i32
    %v = loop.read %x[_0] with %at : f32
    loop.yield none %v at [i]
  }
  loop.return %y : tensor<4xf32>
}

// -----

// expected-error {{the value after 'else' is i64, not f32}}
loop.kernel @otherwise symbols [] (%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %y = loop.nest "copy" [i: parallel 4] -> tensor<4xf32> {
    %c = arith.constant 0 : i64
    %v = loop.read %x[i] if [i - 1] else %c : f32
    loop.yield none %v at [i]
  }
  loop.return %y : tensor<4xf32>
}

// -----

// expected-error {{cannot read f64 from tensor<4xf32>}}
%x = "test.op"() : () -> tensor<4xf32>
%v = "loop.read"(%x) <{subscripts = #sym.dims<0>, operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<4xf32>) -> f64

// -----

// expected-error {{unknown combiner 'median'; known: add, and, max, min, mul, none, or, xor}}
loop.kernel @combiner symbols [] () -> (tensor<4xi64>) {
  %y = loop.nest "copy" [i: parallel 4] -> tensor<4xi64> {
    %v = loop.index i : i64
    loop.yield median %v at [i]
  }
  loop.return %y : tensor<4xi64>
}

// -----

// expected-error {{the value after 'else' is i64, but the written value is f32}}
loop.kernel @rim symbols [] (%x: tensor<4xf32>) -> (tensor<6xf32>) {
  %y = loop.nest "copy" [i: parallel 4] -> tensor<6xf32> {
    %v = loop.read %x[i] : f32
    loop.yield none %v at [i + 1] else 0 : i64
  }
  loop.return %y : tensor<6xf32>
}

// -----

// expected-error {{the value after 'else' must be a number, not "zero"}}
loop.kernel @rim symbols [] (%x: tensor<4xf32>) -> (tensor<6xf32>) {
  %y = loop.nest "copy" [i: parallel 4] -> tensor<6xf32> {
    %v = loop.read %x[i] : f32
    loop.yield none %v at [i + 1] else "zero"
  }
  loop.return %y : tensor<6xf32>
}

// -----

loop.kernel @bytes symbols [] (%x: tensor<4xi64>) -> (tensor<4xi64>) {
  %y = loop.nest "dot" [i: parallel 4] -> tensor<4xi64> {
    %v = loop.read %x[i] : i64
    // expected-error@+1 {{a sum of byte products needs elements of i32, not i64}}
    %d = loop.dot_bytes %v, %v, %v : i64
    loop.yield none %d at [i]
  }
  loop.return %y : tensor<4xi64>
}

// -----

loop.kernel @bytes symbols [] (%x: tensor<4xi32>) -> (tensor<4xi32>) {
  %y = loop.nest "dot" [i: parallel 4] -> tensor<4xi32> {
    %v = loop.read %x[i] : i32
    // expected-error@+1 {{the largest unsigned byte is 256; it must be from 1 to 255}}
    %d = loop.dot_bytes %v, %v, %v most 256 : i32
    loop.yield none %d at [i]
  }
  loop.return %y : tensor<4xi32>
}

// -----

loop.kernel @bytes symbols [] (%x: tensor<4xi32>) -> (tensor<4xi32>) {
  %y = loop.nest "dot" [i: parallel 4] -> tensor<4xi32> {
    %v = loop.read %x[i] : i32
    // expected-error@+1 {{products of bytes need pairs of operands and a total}}
    %d = loop.dot_bytes %v, %v, %v, %v : i32
    loop.yield none %d at [i]
  }
  loop.return %y : tensor<4xi32>
}
