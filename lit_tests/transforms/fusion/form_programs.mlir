// RUN: igniter-opt %s -p form-programs --split-input-file | filecheck %s
// RUN: igniter-opt %s -p form-programs --split-input-file --emit=none --remarks 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: igniter-opt %s -p "form-programs{max-nodes=2}" --split-input-file --emit=none --remarks 2>&1 | filecheck %s --check-prefix=LIMIT
// RUN: igniter-opt %s -p "form-programs{alone=true}" --split-input-file --emit=none --remarks 2>&1 | filecheck %s --check-prefix=ALONE

// Two regions with a view between them; the view leaves the program, and what it is a view of does not. A region
// behind a node that ONNX Runtime runs is alone.

// CHECK:      %v, %b = fusion.program @p0 (%x_1 = %x : tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<8*n>>, tensor<?xf32, #sym.dims<8*n>>) {
// CHECK-NEXT:   %shape = onnx.Constant()
// CHECK-NEXT:   %a = fusion.region @r0 (%x_2 = %x_1 : tensor<?x8xf32, #sym.dims<n, 8>>) kernel @r0 -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
// CHECK:        %v_1 = onnx.Reshape(%a, %shape)
// CHECK-NEXT:   %b_1 = fusion.region @r1 (%v_2 = %v_1 : tensor<?xf32, #sym.dims<8*n>>) kernel @r1 -> (tensor<?xf32, #sym.dims<8*n>>) {
// CHECK:        fusion.yield %v_1, %b_1
// CHECK-NEXT: }
// CHECK-NEXT: %c = onnx.Hardmax(%b)
// CHECK-NEXT: %d = fusion.region @r2
// REMARK:      remark: form-programs: 'r2' missed: in no program: no other region can join it in a program [reason=alone]
// REMARK-NEXT: remark: form-programs: 'p0' applied: 2 regions, from @r0 to @r1

// LIMIT:      remark: form-programs: 'r1' missed: in no program: no other region can join it in a program [reason=alone]
// LIMIT-NEXT: remark: form-programs: 'r2' missed
// LIMIT-NEXT: remark: form-programs: 'p0' applied: 1 regions, from @r0 to @r0

// ALONE:      remark: form-programs: 'p0' applied: 2 regions, from @r0 to @r1
// ALONE-NEXT: remark: form-programs: 'p1' applied: 1 regions, from @r2 to @r2
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x8xf32, #sym.dims<n, 8>>) attributes {input_names = ["x"], output_names = ["y", "z"]} {
    %a = fusion.region @r0 (%x_1 = %x : tensor<?x8xf32, #sym.dims<n, 8>>) kernel @r0 -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
      %0 = onnx.Exp(%x_1) : (tensor<?x8xf32, #sym.dims<n, 8>>) -> tensor<?x8xf32, #sym.dims<n, 8>>
      fusion.yield %0 : tensor<?x8xf32, #sym.dims<n, 8>>
    }
    %shape = onnx.Constant() {value = #onnx.tensor<1xi64, [-1]>} : () -> tensor<1xi64>
    %v = onnx.Reshape(%a, %shape) {igniter.values = {"1" = #sym.dims<8*n>}} : (tensor<?x8xf32, #sym.dims<n, 8>>, tensor<1xi64>) -> tensor<?xf32, #sym.dims<8*n>>
    %b = fusion.region @r1 (%v_1 = %v : tensor<?xf32, #sym.dims<8*n>>) kernel @r1 -> (tensor<?xf32, #sym.dims<8*n>>) {
      %0 = onnx.Tanh(%v_1) : (tensor<?xf32, #sym.dims<8*n>>) -> tensor<?xf32, #sym.dims<8*n>>
      fusion.yield %0 : tensor<?xf32, #sym.dims<8*n>>
    }
    %c = onnx.Hardmax(%b) : (tensor<?xf32, #sym.dims<8*n>>) -> tensor<?xf32, #sym.dims<8*n>>
    %d = fusion.region @r2 (%c_1 = %c : tensor<?xf32, #sym.dims<8*n>>) kernel @r1 -> (tensor<?xf32, #sym.dims<8*n>>) {
      %0 = onnx.Tanh(%c_1) : (tensor<?xf32, #sym.dims<8*n>>) -> tensor<?xf32, #sym.dims<8*n>>
      fusion.yield %0 : tensor<?xf32, #sym.dims<8*n>>
    }
    onnx.return %v, %d : tensor<?xf32, #sym.dims<8*n>>, tensor<?xf32, #sym.dims<8*n>>
  }
}

// -----

// Regions that nothing connects are in one program too. A shape that only a view inside needs is not computed any more.
// A view that leaves the program with what it is a view of is made outside, by a copy where the program needs it too.

// CHECK-LABEL: @main(%x: tensor<?x8xf32, #sym.dims<n, 8>>, %m: tensor<?xf32, #sym.dims<m>>)
// CHECK-NOT:     onnx.Shape
// CHECK:         %a, %b, %q = fusion.program @p0 (
// CHECK-SAME:      %x_1 = %x : tensor<?x8xf32, #sym.dims<n, 8>>, %m_1 = %m : tensor<?xf32, #sym.dims<m>>)
// CHECK:           %s = fusion.dims [8*n] : tensor<1xi64>
// CHECK:           fusion.region @r0
// CHECK:           onnx.Squeeze(%a_1, %zero_1)
// CHECK-NEXT:      onnx.Reshape(%a_1, %s)
// CHECK:           fusion.region @r1
// CHECK:           fusion.region @r2
// CHECK:           fusion.yield %a_1, %b_1, %q_1
// CHECK-NEXT:    }
// CHECK-NEXT:    %v = onnx.Squeeze(%a, %zero)
// CHECK-NEXT:    onnx.return %a, %v, %b, %q
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x8xf32, #sym.dims<n, 8>>, %m: tensor<?xf32, #sym.dims<m>>) attributes {input_names = ["x", "m"], output_names = ["a", "v", "b", "q"]} {
    %a = fusion.region @r0 (%x_1 = %x : tensor<?x8xf32, #sym.dims<n, 8>>) kernel @r0 -> (tensor<1x?x8xf32, #sym.dims<1, n, 8>>) {
      %0 = onnx.Exp(%x_1) : (tensor<?x8xf32, #sym.dims<n, 8>>) -> tensor<?x8xf32, #sym.dims<n, 8>>
      %1 = onnx.Constant() {value = #onnx.tensor<1xi64, [0]>} : () -> tensor<1xi64>
      %2 = onnx.Unsqueeze(%0, %1) : (tensor<?x8xf32, #sym.dims<n, 8>>, tensor<1xi64>) -> tensor<1x?x8xf32, #sym.dims<1, n, 8>>
      fusion.yield %2 : tensor<1x?x8xf32, #sym.dims<1, n, 8>>
    }
    %zero = onnx.Constant() {value = #onnx.tensor<1xi64, [0]>} : () -> tensor<1xi64>
    %v = onnx.Squeeze(%a, %zero) : (tensor<1x?x8xf32, #sym.dims<1, n, 8>>, tensor<1xi64>) -> tensor<?x8xf32, #sym.dims<n, 8>>
    %s = onnx.Shape(%m) : (tensor<?xf32, #sym.dims<m>>) -> tensor<1xi64>
    %w = onnx.Reshape(%a, %s) {igniter.values = {"1" = #sym.dims<8*n>}} : (tensor<1x?x8xf32, #sym.dims<1, n, 8>>, tensor<1xi64>) -> tensor<?xf32, #sym.dims<8*n>>
    %b = fusion.region @r1 (%w_1 = %w : tensor<?xf32, #sym.dims<8*n>>, %v_1 = %v : tensor<?x8xf32, #sym.dims<n, 8>>) kernel @r1 -> (tensor<?xf32, #sym.dims<8*n>>) {
      %0 = onnx.Tanh(%w_1) : (tensor<?xf32, #sym.dims<8*n>>) -> tensor<?xf32, #sym.dims<8*n>>
      fusion.yield %0 : tensor<?xf32, #sym.dims<8*n>>
    }
    %q = fusion.region @r2 (%m_1 = %m : tensor<?xf32, #sym.dims<m>>) kernel @r2 -> (tensor<?xf32, #sym.dims<m>>) {
      %0 = onnx.Tanh(%m_1) : (tensor<?xf32, #sym.dims<m>>) -> tensor<?xf32, #sym.dims<m>>
      fusion.yield %0 : tensor<?xf32, #sym.dims<m>>
    }
    onnx.return %a, %v, %b, %q : tensor<1x?x8xf32, #sym.dims<1, n, 8>>, tensor<?x8xf32, #sym.dims<n, 8>>, tensor<?xf32, #sym.dims<8*n>>, tensor<?xf32, #sym.dims<m>>
  }
}

// -----

// A region without a kernel is no part of a program.

// REMARK: remark: form-programs: 'r0' missed: in no program: it has no kernel; run lower-onnx-to-loop [reason=no-kernel]
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<4xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    %a = fusion.region @r0 (%x_1 = %x : tensor<4xf32>) -> (tensor<4xf32>) {
      %0 = onnx.Exp(%x_1) : (tensor<4xf32>) -> tensor<4xf32>
      fusion.yield %0 : tensor<4xf32>
    }
    onnx.return %a : tensor<4xf32>
  }
}

// -----

// A Scan whose body is a region is part of a program, with what it reads besides its operands. A constant of its body,
// and what packs it, stand in front; the shape of a view there is an expression.

// CHECK-LABEL: @main(%h: tensor<8xf32>, %x: tensor<?x8xf32, #sym.dims<t, 8>>, %w: tensor<8xf32>)
// CHECK-NEXT:    %c = onnx.Constant()
// CHECK-NEXT:    %y = fusion.program @p0 (%h_1 = %h : tensor<8xf32>, %x_1 = %x : tensor<?x8xf32, #sym.dims<t, 8>>, %w_1 = %w : tensor<8xf32>, %c_1 = %c : tensor<2x4xf32>)
// CHECK-NEXT:      onnx.Scan(%h_1, %x_1)
// CHECK-NEXT:      ^bb0(%s: tensor<8xf32>, %e: tensor<8xf32>):
// CHECK-NEXT:        [[D:%[a-z0-9_]+]] = fusion.dims [2, 4] : tensor<2xi64>
// CHECK-NEXT:        %v = onnx.Reshape(%s, [[D]])
// CHECK-NEXT:        %n = fusion.region @r0 (%{{.*}} = %v : tensor<2x4xf32>, %{{.*}} = %e : tensor<8xf32>, %{{.*}} = %w_1 : tensor<8xf32>, %{{.*}} = %c_1 : tensor<2x4xf32>) kernel @r0
// REMARK: remark: form-programs: 'p0' applied: 1 regions, 1 loops, from @r0 to @r0
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%h: tensor<8xf32>, %x: tensor<?x8xf32, #sym.dims<t, 8>>, %w: tensor<8xf32>) attributes {input_names = ["h", "x", "w"], output_names = ["y"]} {
    %y = onnx.Scan(%h, %x) ({
    ^bb0(%s: tensor<8xf32>, %e: tensor<8xf32>):
      %c = onnx.Constant() {value = #onnx.tensor<2x4xf32, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]>} : () -> tensor<2x4xf32>
      %q = onnx.Shape(%c) : (tensor<2x4xf32>) -> tensor<2xi64>
      %v = onnx.Reshape(%s, %q) {igniter.values = {"1" = #sym.dims<2, 4>}} : (tensor<8xf32>, tensor<2xi64>) -> tensor<2x4xf32>
      %n = fusion.region @r0 (%a = %v : tensor<2x4xf32>, %b = %e : tensor<8xf32>, %d = %w : tensor<8xf32>, %f = %c : tensor<2x4xf32>) kernel @r0 -> (tensor<8xf32>) {
        %0 = onnx.Add(%b, %d) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
        fusion.yield %0 : tensor<8xf32>
      }
      onnx.return %n : tensor<8xf32>
    }) {num_scan_inputs = 1 : i64} : (tensor<8xf32>, tensor<?x8xf32, #sym.dims<t, 8>>) -> tensor<8xf32>
    onnx.return %y : tensor<8xf32>
  }
}

// -----

// A Scan with a node in its body that is not in a region stays outside.

// CHECK-LABEL: @main(%h: tensor<8xf32>, %x: tensor<?x8xf32, #sym.dims<t, 8>>)
// CHECK-NOT:     fusion.program
// CHECK:         onnx.Scan
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%h: tensor<8xf32>, %x: tensor<?x8xf32, #sym.dims<t, 8>>) attributes {input_names = ["h", "x"], output_names = ["y"]} {
    %y = onnx.Scan(%h, %x) ({
    ^bb0(%s: tensor<8xf32>, %e: tensor<8xf32>):
      %n = fusion.region @r0 (%b = %s : tensor<8xf32>, %d = %e : tensor<8xf32>) kernel @r0 -> (tensor<8xf32>) {
        %0 = onnx.Add(%b, %d) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
        fusion.yield %0 : tensor<8xf32>
      }
      %m = onnx.Exp(%n) : (tensor<8xf32>) -> tensor<8xf32>
      onnx.return %m : tensor<8xf32>
    }) {num_scan_inputs = 1 : i64} : (tensor<8xf32>, tensor<?x8xf32, #sym.dims<t, 8>>) -> tensor<8xf32>
    onnx.return %y : tensor<8xf32>
  }
}
