// RUN: igniter-opt %s -p collapse-axes,canonicalize-loop --split-input-file | filecheck %s
// RUN: igniter-opt %s -p collapse-axes,canonicalize-loop --split-input-file --emit=none --remarks --remarks-output=- | filecheck %s --check-prefix=REMARK

// The rows of a layer normalisation become one axis in every nest, and stay apart from the columns in every nest, the
// elementwise ones too: nests fuse over the axes that they share.

// CHECK-LABEL: loop.kernel @rows
loop.kernel @rows symbols [b, s] (%x: tensor<?x?x768xf32, #sym.dims<b, s, 768>>) -> (tensor<?x?x768xf32, #sym.dims<b, s, 768>>) {
  // CHECK-NEXT: %[[X:.*]] = loop.view %x : {{.*}} to tensor<?x768xf32, #sym.dims<b*s, 768>>
  // CHECK-NEXT: loop.nest "exp" [i_j: parallel b*s, k: parallel 768] -> tensor<?x768xf32, #sym.dims<b*s, 768>>
  // CHECK-NEXT:   loop.read %[[X]][i_j, k] : f32
  %y = loop.nest "exp" [i: parallel b, j: parallel s, k: parallel 768] -> tensor<?x?x768xf32, #sym.dims<b, s, 768>> {
    %v = loop.read %x[i, j, k] : f32
    %a = math.exp %v : f32
    loop.yield none %a at [i, j, k]
  }
  // CHECK:      loop.nest "sum" [i_j: parallel b*s, k: reduction 768] -> tensor<?xf32, #sym.dims<b*s>>
  // CHECK:        loop.yield add %{{.*}} at [i_j]
  %m = loop.nest "sum" [i: parallel b, j: parallel s, k: reduction 768] -> tensor<?x?x1xf32, #sym.dims<b, s, 1>> {
    %v = loop.read %y[i, j, k] : f32
    loop.yield add %v at [i, j, 0]
  }
  // CHECK:      loop.nest "sub" [i_j: parallel b*s, k: parallel 768]
  // CHECK:        loop.read %m[i_j] : f32
  %z = loop.nest "sub" [i: parallel b, j: parallel s, k: parallel 768] -> tensor<?x?x768xf32, #sym.dims<b, s, 768>> {
    %v = loop.read %y[i, j, k] : f32
    %w = loop.read %m[i, j, 0] : f32
    %a = arith.subf %v, %w : f32
    loop.yield none %a at [i, j, k]
  }
  // CHECK:      %[[Z:.*]] = loop.view %z : {{.*}} to tensor<?x?x768xf32, #sym.dims<b, s, 768>>
  // CHECK-NEXT: loop.return %[[Z]]
  loop.return %z : tensor<?x?x768xf32, #sym.dims<b, s, 768>>
}
// REMARK: 'exp' applied: joined i, j
// REMARK: 'exp' missed: j and k stay apart: 'sub' reads a tensor along one of j and k

// -----

// Where nothing keeps them apart, all axes become one; a slice of whole rows stays contiguous.

// CHECK-LABEL: loop.kernel @elementwise
loop.kernel @elementwise symbols [b] (%x: tensor<?x4x8xf32, #sym.dims<b + 2, 4, 8>>) -> (tensor<?x4x8xf32, #sym.dims<b, 4, 8>>) {
  // CHECK-NEXT: %[[X:.*]] = loop.view %x : {{.*}} to tensor<?xf32, #sym.dims<32*b + 64>>
  // CHECK-NEXT: loop.nest "exp" [i_j_k: parallel 32*b]
  // CHECK-NEXT:   loop.read %[[X]][i_j_k + 32] : f32
  // CHECK:        loop.yield none %{{.*}} at [i_j_k]
  %z = loop.nest "exp" [i: parallel b, j: parallel 4, k: parallel 8] -> tensor<?x4x8xf32, #sym.dims<b, 4, 8>> {
    %v = loop.read %x[i + 1, j, k] : f32
    %a = math.exp %v : f32
    loop.yield none %a at [i, j, k]
  }
  loop.return %z : tensor<?x4x8xf32, #sym.dims<b, 4, 8>>
}

// -----

// A contraction joins its rows, though the transpose that reads its result cannot: a view stands between them.

// CHECK-LABEL: loop.kernel @gemm
loop.kernel @gemm symbols [b, s] (%x: tensor<?x?x768xf32, #sym.dims<b, s, 768>>, %w: tensor<768x768xf32>) -> (tensor<?x12x?x64xf32, #sym.dims<b, 12, s, 64>>) {
  // CHECK:      loop.nest "gemm" [i_j: parallel b*s, n: parallel 768, k: reduction 768]
  %y = loop.nest "gemm" [i: parallel b, j: parallel s, n: parallel 768, k: reduction 768] -> tensor<?x?x768xf32, #sym.dims<b, s, 768>> {
    %v = loop.read %x[i, j, k] : f32
    %u = loop.read %w[k, n] : f32
    %a = arith.mulf %v, %u : f32
    loop.yield add %a at [i, j, n]
  }
  // CHECK:      %[[H:.*]] = loop.view %y : tensor<?x768xf32, {{.*}}> to tensor<?x?x12x64xf32, #sym.dims<b, s, 12, 64>>
  %h = loop.view %y : tensor<?x?x768xf32, #sym.dims<b, s, 768>> to tensor<?x?x12x64xf32, #sym.dims<b, s, 12, 64>>
  // CHECK-NEXT: loop.nest "transpose" [i: parallel b, h: parallel 12, j: parallel s, k: parallel 64]
  %z = loop.nest "transpose" [i: parallel b, h: parallel 12, j: parallel s, k: parallel 64] -> tensor<?x12x?x64xf32, #sym.dims<b, 12, s, 64>> {
    %v = loop.read %h[i, j, h, k] : f32
    loop.yield none %v at [i, h, j, k]
  }
  loop.return %z : tensor<?x12x?x64xf32, #sym.dims<b, 12, s, 64>>
}
// REMARK: 'gemm' missed: j and k stay apart: 'gemm' reduces over one of j and k
// REMARK: 'transpose' missed: i and j stay apart: 'transpose' uses i and j separately

// -----

// Reduction axes join too. A position along an axis, a guard on it and a schedule keep axes apart.

// CHECK-LABEL: loop.kernel @others
loop.kernel @others symbols [b] (%x: tensor<?x4x8xf32, #sym.dims<b, 4, 8>>) -> (tensor<?xf32, #sym.dims<b>>, tensor<?x4x8xi64, #sym.dims<b, 4, 8>>, tensor<?x4x8xf32, #sym.dims<b, 4, 8>>) {
  // CHECK:      loop.nest "sum" [i: parallel b, j_k: reduction 32]
  %s = loop.nest "sum" [i: parallel b, j: reduction 4, k: reduction 8] -> tensor<?xf32, #sym.dims<b>> {
    %v = loop.read %x[i, j, k] : f32
    loop.yield add %v at [i]
  }
  // CHECK:      loop.nest "index" [i: parallel b, j_k: parallel 32]
  %t = loop.nest "index" [i: parallel b, j: parallel 4, k: parallel 8] -> tensor<?x4x8xi64, #sym.dims<b, 4, 8>> {
    %p = loop.index i : i64
    loop.yield none %p at [i, j, k]
  }
  // CHECK:      loop.nest "fixed" [i: parallel b, j: parallel 4, k: parallel 8]
  %u = loop.nest "fixed" [i: parallel b, j: parallel 4, k: parallel 8] schedule [i threads, j, k] -> tensor<?x4x8xf32, #sym.dims<b, 4, 8>> {
    %c = arith.constant 1.0 : f32
    loop.yield none %c at [i, j, k]
  }
  loop.return %s, %t, %u : tensor<?xf32, #sym.dims<b>>, tensor<?x4x8xi64, #sym.dims<b, 4, 8>>, tensor<?x4x8xf32, #sym.dims<b, 4, 8>>
}
// REMARK: 'index' missed: i and j stay apart: 'index' uses the position along i or j
// REMARK: 'fixed' missed: i and j stay apart: 'fixed' has a schedule

// -----

// A row of a window and its channels, which a packed weight has in groups of four.

// CHECK-LABEL: loop.kernel @grouped
// CHECK:      %[[X:.*]] = loop.view %x : {{.*}} to tensor<10x80xui8>
// CHECK:      %[[W:.*]] = loop.view %w : {{.*}} to tensor<1x3x6x16x4xi8>
// CHECK:      loop.nest "conv" [y: parallel 8, x: parallel 8, o: parallel 16, r: reduction 3, s_c: reduction 24]
// CHECK-NEXT:   loop.read %[[X]][r + y, s_c + 8*x] : i8
// CHECK:        loop.read %[[W]][0, r, (s_c floordiv 4), o, (s_c mod 4)] : i8
loop.kernel @grouped symbols [] (%x: tensor<10x10x8xui8>, %w: tensor<1x3x3x2x16x4xi8>) -> (tensor<8x8x16xi32>) {
  %y = loop.nest "conv" [y: parallel 8, x: parallel 8, o: parallel 16, r: reduction 3, s: reduction 3, c: reduction 8] -> tensor<8x8x16xi32> {
    %a = loop.read %x[y + r, x + s, c] : i8
    %b = loop.read %w[o floordiv 16, r, s, c floordiv 4, o mod 16, c mod 4] : i8
    %d = arith.extui %a : i8 to i32
    %e = arith.extsi %b : i8 to i32
    %m = arith.muli %d, %e : i32
    loop.yield add %m at [y, x, o]
  }
  loop.return %y : tensor<8x8x16xi32>
}

// -----

// Four channels are one group, which the weight counts along a dim of size 1.

// CHECK-LABEL: loop.kernel @one_group
// CHECK:      loop.nest "conv" [y: parallel 8, x: parallel 8, o: parallel 16, r: reduction 3, s_c: reduction 12]
// CHECK:        loop.read %{{.*}}[0, r, (s_c floordiv 4), o, (s_c mod 4)] : i8
loop.kernel @one_group symbols [] (%x: tensor<10x10x4xui8>, %w: tensor<1x3x3x1x16x4xi8>) -> (tensor<8x8x16xi32>) {
  %y = loop.nest "conv" [y: parallel 8, x: parallel 8, o: parallel 16, r: reduction 3, s: reduction 3, c: reduction 4] -> tensor<8x8x16xi32> {
    %a = loop.read %x[y + r, x + s, c] : i8
    %b = loop.read %w[o floordiv 16, r, s, 0, o mod 16, c] : i8
    %d = arith.extui %a : i8 to i32
    %e = arith.extsi %b : i8 to i32
    %m = arith.muli %d, %e : i32
    loop.yield add %m at [y, x, o]
  }
  loop.return %y : tensor<8x8x16xi32>
}

// -----

// A window and its channels are one sum, whichever of the factors is read first: where the place in the window is added to
// one along the image, what is summed over tells the two apart.

// CHECK-LABEL: loop.kernel @weight_first
// CHECK:         loop.nest "conv" {{.*}}, r_c: reduction 576]
// CHECK-NEXT:      loop.read %{{.*}}[o, r_c] : f32
// CHECK-NEXT:      loop.read %{{.*}}[r_c + 192*x] : f32
builtin.module {
  loop.kernel @weight_first symbols [n] (%x: tensor<?x192xf32, #sym.dims<n + 2, 192>>, %w: tensor<768x3x192xf32>) -> (tensor<?x768xf32, #sym.dims<n, 768>>) {
    %y = loop.nest "conv" [x: parallel n, o: parallel 768, r: reduction 3, c: reduction 192] -> tensor<?x768xf32, #sym.dims<n, 768>> {
      %a = loop.read %w[o, r, c] : f32
      %b = loop.read %x[x + r, c] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [x, o]
    }
    loop.return %y : tensor<?x768xf32, #sym.dims<n, 768>>
  }
}
