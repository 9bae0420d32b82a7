// RUN: igniter-opt %s --split-input-file | igniter-opt --split-input-file | filecheck %s
// RUN: igniter-opt %s --split-input-file --emit=generic | igniter-opt --split-input-file | filecheck %s

// Procedures are printed as they are parsed.

// A running sum: the iterations hand each other a register.

loop.kernel @cumsum symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
  %y = loop.procedure "cumsum" [i: parallel n] (%a = %x) -> (%o : tensor<?x8xf32, #sym.dims<n, 8>>) {
    %sum = loop.alloc "sum" : memref<f32, "register">
    %zero = arith.constant 0.0 : f32
    loop.store %zero, %sum[]
    loop.for k = 0 to 8 sequential {
      %v = loop.load %a[i, k] : f32
      loop.accumulate add %v, %sum[]
      %s = loop.load %sum[] : f32
      loop.store %s, %o[i, k]
    }
  }
  loop.return %y : tensor<?x8xf32, #sym.dims<n, 8>>
}
// CHECK-LABEL: loop.kernel @cumsum
// CHECK-NEXT: %{{.*}} = loop.procedure "cumsum" [i: parallel n] (%[[A:.*]] = %{{.*}}) -> (%[[O:.*]] : tensor<?x8xf32, #sym.dims<n, 8>>) {
// CHECK-NEXT:   %[[SUM:.*]] = loop.alloc "sum" : memref<f32, "register">
// CHECK-NEXT:   %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:   loop.store %[[ZERO]], %[[SUM]][]
// CHECK-NEXT:   loop.for k = 0 to 8 sequential {
// CHECK-NEXT:     %[[V:.*]] = loop.load %[[A]][i, k] : f32
// CHECK-NEXT:     loop.accumulate add %[[V]], %[[SUM]][]
// CHECK-NEXT:     %[[S:.*]] = loop.load %[[SUM]][] : f32
// CHECK-NEXT:     loop.store %[[S]], %[[O]][i, k]

// -----

// Bounds, conditions and subscripts that values decide, and a loop that ends when a register holds 0.

loop.kernel @follow symbols [n, m] (%next: tensor<?xi64, #sym.dims<n>>, %steps: tensor<i64>) -> (tensor<?xi64, #sym.dims<m>>, tensor<i64>) {
  %path, %last = loop.procedure "follow" [] schedule [] (%a = %next, %c = %steps) -> (%o : tensor<?xi64, #sym.dims<m>>, %l : tensor<i64>) {
    %go = loop.alloc "go" : memref<i1, "register">
    %at = loop.alloc "at" : memref<i64, "register">
    %count = loop.load %c[] : i64
    %zero = arith.constant 0 : i64
    %yes = arith.constant true
    loop.store %zero, %at[]
    loop.store %yes, %go[]
    loop.for k = 0 to min(_0, m) sequential with %count while %go {
      %p = loop.load %at[] : i64
      %q = loop.load %a[_0] with %p if [_0, n - _0 - 1] : i64
      loop.store %q, %o[k]
      loop.store %q, %at[]
      loop.if [-_0] with %q {
        %no = arith.constant false
        loop.store %no, %go[]
      }
    }
    %e = loop.load %at[] : i64
    loop.store %e, %l[]
  }
  loop.return %path, %last : tensor<?xi64, #sym.dims<m>>, tensor<i64>
}
// CHECK-LABEL: loop.kernel @follow
// CHECK: loop.procedure "follow" [] schedule [] (%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (%[[O:.*]] : tensor<?xi64, #sym.dims<m>>, %{{.*}} : tensor<i64>) {
// CHECK: loop.for k = 0 to min(_0, m) sequential with %{{.*}} while %{{.*}} {
// CHECK: loop.load %{{.*}}[_0] with %{{.*}} if [_0, -_0 + n - 1] : i64
// CHECK: loop.if [-_0] with %{{.*}} {

// -----

// What the body computes, and a schedule over the dims of that: for GPUs.

// CHECK-LABEL: loop.kernel @stated
// CHECK-NEXT: loop.procedure "cumsum" [i: parallel n] computes #loop.prefix<add, reverse> schedule [rows by 4 grid, columns grid, rows vector 4, steps vector 8, launch warps 4 stages 1] (
loop.kernel @stated symbols [n] (%x: tensor<?x8x1xf32, #sym.dims<n, 8, 1>>) -> (tensor<?x8x1xf32, #sym.dims<n, 8, 1>>) {
  %y = loop.procedure "cumsum" [i: parallel n] computes #loop.prefix<add, reverse> schedule [rows by 4 grid, columns grid, rows vector 4, steps vector 8, launch warps 4 stages 1] (%a = %x) -> (%o : tensor<?x8x1xf32, #sym.dims<n, 8, 1>>) {
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

// CHECK-LABEL: loop.kernel @updates
// CHECK-NEXT: loop.procedure "scatter" [] computes #loop.scatter<along, 0> (
loop.kernel @updates symbols [n] (%x: tensor<8xf32>, %i: tensor<?xi64, #sym.dims<n>>, %u: tensor<?xf32, #sym.dims<n>>) -> (tensor<8xf32>) {
  %y = loop.procedure "scatter" [] computes #loop.scatter<along, 0> (%a = %x, %b = %i, %c = %u) -> (%o : tensor<8xf32>) {
    loop.for j = 0 to 8 {
      %v = loop.load %a[j] : f32
      loop.store %v, %o[j]
    }
    loop.for k = 0 to n sequential {
      %p = loop.load %b[k] : i64
      %w = loop.load %c[k] : f32
      loop.store %w, %o[_0] with %p if [_0, 7 - _0]
    }
  }
  loop.return %y : tensor<8xf32>
}
