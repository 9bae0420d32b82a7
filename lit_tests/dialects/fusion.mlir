// RUN: igniter-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: igniter-opt %s --split-input-file --verify-diagnostics --emit=generic | filecheck %s --check-prefix=GENERIC

// A region takes its operands by name, isolated from what is around it.
%x, %w = "test.op"() : () -> (tensor<?x8xf32, #sym.dims<n, 8>>, tensor<8xf32>)
%y, %z = fusion.region @r0 (%a = %x : tensor<?x8xf32, #sym.dims<n, 8>>, %b = %w : tensor<8xf32>) kernel @k0
    -> (tensor<?x8xf32, #sym.dims<n, 8>>, tensor<?x8xf32, #sym.dims<n, 8>>) attributes {note = "two results"} {
  %0 = onnx.Add(%a, %b) : (tensor<?x8xf32, #sym.dims<n, 8>>, tensor<8xf32>) -> tensor<?x8xf32, #sym.dims<n, 8>>
  %1 = onnx.Relu(%0) : (tensor<?x8xf32, #sym.dims<n, 8>>) -> tensor<?x8xf32, #sym.dims<n, 8>>
  fusion.yield %0, %1 : tensor<?x8xf32, #sym.dims<n, 8>>, tensor<?x8xf32, #sym.dims<n, 8>>
}

// CHECK: %y, %z = fusion.region @r0 (%a = %x : tensor<?x8xf32, #sym.dims<n, 8>>, %b = %w : tensor<8xf32>) kernel @k0 -> (tensor<?x8xf32, #sym.dims<n, 8>>, tensor<?x8xf32, #sym.dims<n, 8>>) attributes {note = "two results"} {
// CHECK-NEXT: %0 = onnx.Add(%a, %b)
// CHECK-NEXT: %1 = onnx.Relu(%0)
// CHECK-NEXT: fusion.yield %0, %1 : tensor<?x8xf32, #sym.dims<n, 8>>, tensor<?x8xf32, #sym.dims<n, 8>>
// CHECK-NEXT: }
// GENERIC: "fusion.region"(%x, %w) <{sym_name = "r0", kernel = @k0}> ({
// GENERIC-NEXT: ^bb0(%a: tensor<?x8xf32, #sym.dims<n, 8>>, %b: tensor<8xf32>):

// -----

// A region may be made of nothing but its symbols, and hold shape arithmetic as expressions.
%r = fusion.region @r0 (%a = %x : tensor<?x?xf32, #sym.dims<n, m>>) -> (tensor<?xf32, #sym.dims<m*n>>) {
  %s = fusion.dims [m*n] : tensor<1xi64>
  %e = fusion.dims [n] : tensor<i32>
  %0 = onnx.Reshape(%a, %s) : (tensor<?x?xf32, #sym.dims<n, m>>, tensor<1xi64>) -> tensor<?xf32, #sym.dims<m*n>>
  fusion.yield %0 : tensor<?xf32, #sym.dims<m*n>>
}
%x = "test.op"() : () -> tensor<?x?xf32, #sym.dims<n, m>>

// CHECK: fusion.region @r0
// CHECK-NEXT: %s = fusion.dims [m*n] : tensor<1xi64>
// CHECK-NEXT: %e = fusion.dims [n] : tensor<i32>

// -----

%x = "test.op"() : () -> tensor<4xf32>
// expected-error@+1 {{region @r0: operand 0 has type tensor<4xf32>, but its argument has type tensor<2xf32>}}
%y = "fusion.region"(%x) <{sym_name = "r0"}> ({
^bb0(%a: tensor<2xf32>):
  %0 = "test.pureop"(%a) : (tensor<2xf32>) -> tensor<2xf32>
  fusion.yield %0 : tensor<2xf32>
}) : (tensor<4xf32>) -> tensor<2xf32>

// -----

%x = "test.op"() : () -> tensor<4xf32>
// expected-error@+1 {{region @r0 has 1 operands, but 0 arguments}}
%y = "fusion.region"(%x) <{sym_name = "r0"}> ({
  %0 = "test.pureop"() : () -> tensor<4xf32>
  fusion.yield %0 : tensor<4xf32>
}) : (tensor<4xf32>) -> tensor<4xf32>

// -----

%x = "test.op"() : () -> tensor<4xf32>
// expected-error@+1 {{region @r0: result 0 has type tensor<2xf32>, but its yielded value has type tensor<4xf32>}}
%y = fusion.region @r0 (%a = %x : tensor<4xf32>) -> (tensor<2xf32>) {
  %0 = "test.pureop"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  fusion.yield %0 : tensor<4xf32>
}

// -----

%x = "test.op"() : () -> tensor<4xf32>
// expected-error@+1 {{region @r0 holds no node}}
%y = fusion.region @r0 (%a = %x : tensor<4xf32>) -> (tensor<4xf32>) {
  fusion.yield %a : tensor<4xf32>
}

// -----

%x = "test.op"() : () -> tensor<4xf32>
// expected-error@+1 {{region @r0 has no result}}
fusion.region @r0 (%a = %x : tensor<4xf32>) -> () {
  %0 = "test.pureop"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  fusion.yield
}

// -----

%x = "test.op"() : () -> tensor<4xf32>
// expected-error@+1 {{region @r0 holds region @r1; regions do not nest}}
%y = fusion.region @r0 (%a = %x : tensor<4xf32>) -> (tensor<4xf32>) {
  %z = fusion.region @r1 (%b = %a : tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = "test.pureop"(%b) : (tensor<4xf32>) -> tensor<4xf32>
    fusion.yield %0 : tensor<4xf32>
  }
  fusion.yield %z : tensor<4xf32>
}

// -----

%x = "test.op"() : () -> tensor<4xf32>
// expected-error@+1 {{region @r0 holds 'test.op', which has a subgraph}}
%y = fusion.region @r0 (%a = %x : tensor<4xf32>) -> (tensor<4xf32>) {
  %0 = "test.op"(%a) ({
    "test.termop"() : () -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  fusion.yield %0 : tensor<4xf32>
}

// -----

%x = "test.op"() : () -> tensor<4xf32>
// expected-error@+1 {{fusion.yield must be in a fusion.region or a fusion.program}}
fusion.yield %x : tensor<4xf32>

// -----

// expected-error@+1 {{2 expressions for tensor<3xi64>}}
%s = fusion.dims [n, 4] : tensor<3xi64>

// -----

// expected-error@+1 {{the result of fusion.dims must be an i32 or i64 tensor of rank 0 or 1, not tensor<1xf32>}}
%s = fusion.dims [n] : tensor<1xf32>

// -----

// A program holds regions, views between them, and what these take their shapes from.
%x = "test.op"() : () -> tensor<?x8xf32, #sym.dims<n, 8>>
%y = fusion.program @p0 (%a = %x : tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<8*n>>) attributes {note = "one result"} {
  %b = fusion.region @r0 (%c = %a : tensor<?x8xf32, #sym.dims<n, 8>>) kernel @k -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
    %d = onnx.Relu(%c) : (tensor<?x8xf32, #sym.dims<n, 8>>) -> tensor<?x8xf32, #sym.dims<n, 8>>
    fusion.yield %d : tensor<?x8xf32, #sym.dims<n, 8>>
  }
  %s = fusion.dims [8*n] : tensor<1xi64>
  %e = onnx.Reshape(%b, %s) : (tensor<?x8xf32, #sym.dims<n, 8>>, tensor<1xi64>) -> tensor<?xf32, #sym.dims<8*n>>
  fusion.yield %e : tensor<?xf32, #sym.dims<8*n>>
}

// CHECK:      %y = fusion.program @p0 (%a = %x : tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<8*n>>) attributes {note = "one result"} {
// CHECK-NEXT:   %b = fusion.region @r0 (%c = %a : tensor<?x8xf32, #sym.dims<n, 8>>) kernel @k -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
// CHECK:        %s = fusion.dims [8*n] : tensor<1xi64>
// CHECK-NEXT:   %e = onnx.Reshape(%b, %s)
// CHECK-NEXT:   fusion.yield %e : tensor<?xf32, #sym.dims<8*n>>
// CHECK-NEXT: }
// GENERIC: "fusion.program"(%x) <{sym_name = "p0"}> ({

// -----

%x = "test.op"() : () -> tensor<4xf32>
// expected-error@+1 {{program @p0 holds no region}}
%y = fusion.program @p0 (%a = %x : tensor<4xf32>) -> (tensor<4xf32>) {
  %b = onnx.Identity(%a) : (tensor<4xf32>) -> tensor<4xf32>
  fusion.yield %b : tensor<4xf32>
}

// -----

// A program may hold a loop over regions, whose body may read what is around it, and nothing else in that body.
%x, %w = "test.op"() : () -> (tensor<?x8xf32, #sym.dims<t, 8>>, tensor<8xf32>)
%y = fusion.program @p0 (%a = %x : tensor<?x8xf32, #sym.dims<t, 8>>, %b = %w : tensor<8xf32>) -> (tensor<8xf32>) {
  %s = onnx.Scan(%b, %a) ({
  ^bb0(%h: tensor<8xf32>, %e: tensor<8xf32>):
    %n = fusion.region @r0 (%c = %h : tensor<8xf32>, %d = %e : tensor<8xf32>, %f = %b : tensor<8xf32>) kernel @k -> (tensor<8xf32>) {
      %0 = onnx.Sum(%c, %d, %f) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      fusion.yield %0 : tensor<8xf32>
    }
    onnx.return %n : tensor<8xf32>
  }) {num_scan_inputs = 1 : i64} : (tensor<8xf32>, tensor<?x8xf32, #sym.dims<t, 8>>) -> tensor<8xf32>
  fusion.yield %s : tensor<8xf32>
}

// CHECK:      %y = fusion.program @p0
// CHECK-NEXT:   %s = onnx.Scan(%b, %a) ({
// CHECK:          %n = fusion.region @r0 (%c = %h : tensor<8xf32>, %d = %e : tensor<8xf32>, %f = %b : tensor<8xf32>) kernel @k -> (tensor<8xf32>) {

// -----

%x, %w = "test.op"() : () -> (tensor<?x8xf32, #sym.dims<t, 8>>, tensor<8xf32>)
// expected-error@+1 {{program @p0 holds 'onnx.Add'; it may hold regions, views, and loops of these}}
%y = fusion.program @p0 (%a = %x : tensor<?x8xf32, #sym.dims<t, 8>>, %b = %w : tensor<8xf32>) -> (tensor<8xf32>) {
  %s = onnx.Scan(%b, %a) ({
  ^bb0(%h: tensor<8xf32>, %e: tensor<8xf32>):
    %n = onnx.Add(%h, %e) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    onnx.return %n : tensor<8xf32>
  }) {num_scan_inputs = 1 : i64} : (tensor<8xf32>, tensor<?x8xf32, #sym.dims<t, 8>>) -> tensor<8xf32>
  fusion.yield %s : tensor<8xf32>
}

// -----

%x = "test.op"() : () -> tensor<4xf32>
// expected-error@+1 {{program @p0 holds 'onnx.Exp'; it may hold regions, views, and loops of these}}
%y = fusion.program @p0 (%a = %x : tensor<4xf32>) -> (tensor<4xf32>) {
  %b = fusion.region @r0 (%c = %a : tensor<4xf32>) -> (tensor<4xf32>) {
    %d = onnx.Relu(%c) : (tensor<4xf32>) -> tensor<4xf32>
    fusion.yield %d : tensor<4xf32>
  }
  %e = onnx.Exp(%b) : (tensor<4xf32>) -> tensor<4xf32>
  fusion.yield %e : tensor<4xf32>
}

// -----

%x = "test.op"() : () -> tensor<4xf32>
// expected-error@+1 {{program @p0: result 0 has type tensor<2xf32>, but its yielded value has type tensor<4xf32>}}
%y = fusion.program @p0 (%a = %x : tensor<4xf32>) -> (tensor<2xf32>) {
  %b = fusion.region @r0 (%c = %a : tensor<4xf32>) -> (tensor<4xf32>) {
    %d = onnx.Relu(%c) : (tensor<4xf32>) -> tensor<4xf32>
    fusion.yield %d : tensor<4xf32>
  }
  fusion.yield %b : tensor<4xf32>
}

// -----

// A weight in panels outside, and as it was inside; bytes in groups, and four of them as a word.
%w, %b = "test.op"() : () -> (tensor<768x20xf32>, tensor<2x64x20xi8>)
%c = "test.op"() : () -> tensor<20x2x16xui8>
%q = fusion.pack %c [0 floordiv 16, 1, 2 floordiv 4, 0 mod 16, 2 mod 4] words : tensor<20x2x16xui8> to tensor<2x2x4x16xui32>
%p = fusion.pack %w [1 floordiv 16, 0, 1 mod 16] : tensor<768x20xf32> to tensor<2x768x16xf32>
%g = fusion.pack %b [0, 2 floordiv 16, 1 floordiv 4, 2 mod 16, 1 mod 4] : tensor<2x64x20xi8> to tensor<2x2x16x16x4xi8>
%y = fusion.region @r0 (%a = %p : tensor<2x768x16xf32>) -> (tensor<768x20xf32>) {
  %u = fusion.unpack %a [1 floordiv 16, 0, 1 mod 16] : tensor<2x768x16xf32> to tensor<768x20xf32>
  %0 = onnx.Relu(%u) : (tensor<768x20xf32>) -> tensor<768x20xf32>
  fusion.yield %0 : tensor<768x20xf32>
}

// CHECK:      %q = fusion.pack %c [0 floordiv 16, 1, 2 floordiv 4, 0 mod 16, 2 mod 4] words : tensor<20x2x16xui8> to tensor<2x2x4x16xui32>
// CHECK-NEXT: %p = fusion.pack %w [1 floordiv 16, 0, 1 mod 16] : tensor<768x20xf32> to tensor<2x768x16xf32>
// CHECK-NEXT: %g = fusion.pack %b [0, 2 floordiv 16, 1 floordiv 4, 2 mod 16, 1 mod 4] : tensor<2x64x20xi8> to tensor<2x2x16x16x4xi8>
// CHECK:      %u = fusion.unpack %a [1 floordiv 16, 0, 1 mod 16] : tensor<2x768x16xf32> to tensor<768x20xf32>

// -----

// Panels of groups that fill none: each begins with one.
%w = "test.op"() : () -> tensor<48x3x5xf32>
%p = fusion.pack %w [0 floordiv 24, 0 mod 24 floordiv 16, 2, 1, 0 mod 24 mod 16] : tensor<48x3x5xf32> to tensor<2x2x5x3x16xf32>

// CHECK: %p = fusion.pack %w [0 floordiv 24, 0 mod 24 floordiv 16, 2, 1, 0 mod 24 mod 16] : tensor<48x3x5xf32> to tensor<2x2x5x3x16xf32>

// -----

// Tables of the node behind them.
%x, %r = "test.op"() : () -> (tensor<4xf32>, tensor<3xi32>)
%y = fusion.region @r0 (%a = %x : tensor<4xf32>, %b = %r : tensor<3xi32>) -> (tensor<4xf32>) {
  fusion.tables ["roots"] %b : tensor<3xi32>
  %0 = onnx.Relu(%a) : (tensor<4xf32>) -> tensor<4xf32>
  fusion.yield %0 : tensor<4xf32>
}

// CHECK:      fusion.tables ["roots"] %b : tensor<3xi32>
// CHECK-NEXT: onnx.Relu

// -----

%r = "test.op"() : () -> tensor<3xi32>
// expected-error@+1 {{2 names for 1 tables}}
fusion.tables ["roots", "yes"] %r : tensor<3xi32>

// -----

%w = "test.op"() : () -> tensor<768x20xf32>
// expected-error@+1 {{layout [0, 1 floordiv 16, 1, 1 mod 16] must store each of 2 dims exactly once: whole, or as blocks and offsets in them}}
%p = fusion.pack %w [0, 1 floordiv 16, 1, 1 mod 16] : tensor<768x20xf32> to tensor<2x768x16xf32>

// -----

%w = "test.op"() : () -> tensor<768x20xf32>
// expected-error@+1 {{layout [1, 2 floordiv 16, 0, 2 mod 16] must store each of 2 dims exactly once: whole, or as blocks and offsets in them}}
%p = fusion.pack %w [1, 2 floordiv 16, 0, 2 mod 16] : tensor<768x20xf32> to tensor<2x768x16xf32>

// -----

%w = "test.op"() : () -> tensor<768x20xf32>
// expected-error@+1 {{tensor<768x20xf32> packed has dims [2, 768, 16], not tensor<1x768x20xf32>}}
%p = fusion.pack %w [1 floordiv 16, 0, 1 mod 16] : tensor<768x20xf32> to tensor<1x768x20xf32>

// -----

%w = "test.op"() : () -> tensor<768x20xf32>
// expected-error@+1 {{tensor<768x20xf32> packed has elements f32, not tensor<2x768x16xf64>}}
%p = fusion.pack %w [1 floordiv 16, 0, 1 mod 16] : tensor<768x20xf32> to tensor<2x768x16xf64>

// -----

%w = "test.op"() : () -> tensor<20x8xui8>
// expected-error@+1 {{the last part of layout [0 floordiv 16, 1, 0 mod 16] words must be the offset in blocks of 4 bytes}}
%p = fusion.pack %w [0 floordiv 16, 1, 0 mod 16] words : tensor<20x8xui8> to tensor<2x8xui32>

// -----

%w = "test.op"() : () -> tensor<20x8xf32>
// expected-error@+1 {{a layout in words needs elements of ui8, not tensor<20x8xf32>}}
%p = fusion.pack %w [0 floordiv 16, 1 floordiv 4, 0 mod 16, 1 mod 4] words : tensor<20x8xf32> to tensor<2x2x16xui32>

// -----

%w = "test.op"() : () -> tensor<20x8xui8>
// expected-error@+1 {{tensor<20x8xui8> packed has elements ui32, not tensor<2x2x16xui8>}}
%p = fusion.pack %w [0 floordiv 16, 1 floordiv 4, 0 mod 16, 1 mod 4] words : tensor<20x8xui8> to tensor<2x2x16xui8>

// -----

%w = "test.op"() : () -> tensor<6x20xi8>
// expected-error@+1 {{layout [1 floordiv 16, 0 floordiv 4, 1 mod 16, 0 mod 2] must store each of 2 dims exactly once: whole, or as blocks and offsets in them}}
%p = fusion.pack %w [1 floordiv 16, 0 floordiv 4, 1 mod 16, 0 mod 2] : tensor<6x20xi8> to tensor<2x2x16x2xi8>

// -----

%w = "test.op"() : () -> tensor<48x3xf32>
// expected-error@+1 {{layout [0 floordiv 12, 0 mod 24 floordiv 16, 1, 0 mod 24 mod 16] must store each of 2 dims exactly once: whole, or as blocks and offsets in them}}
%p = fusion.pack %w [0 floordiv 12, 0 mod 24 floordiv 16, 1, 0 mod 24 mod 16] : tensor<48x3xf32> to tensor<4x2x3x16xf32>

// -----

%w = "test.op"() : () -> tensor<48x3xf32>
// expected-error@+1 {{layout [0 mod 24 floordiv 16, 1, 0 mod 24 mod 16] must store each of 2 dims exactly once: whole, or as blocks and offsets in them}}
%p = fusion.pack %w [0 mod 24 floordiv 16, 1, 0 mod 24 mod 16] : tensor<48x3xf32> to tensor<2x3x16xf32>

// -----

%p = "test.op"() : () -> tensor<2x768x16xf32>
// expected-error@+1 {{fusion.unpack must be in a fusion.region}}
%w = fusion.unpack %p [1 floordiv 16, 0, 1 mod 16] : tensor<2x768x16xf32> to tensor<768x20xf32>
