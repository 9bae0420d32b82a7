// RUN: igniter-opt %s -p lower-to-triton --split-input-file --target=cuda | filecheck %s

// A scan along the contiguous dim: a block of rows and steps, combined by tt.scan. Steps beyond the end are 0.

// CHECK-LABEL: tt.func @stated.0(
// CHECK:         %[[X:.*]] = tt.load %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x8x!tt.ptr<f32>>
// CHECK-NEXT:    %[[S:.*]] = "tt.scan"(%[[X]]) <{axis = 1 : i32, reverse = true}> ({
// CHECK:           arith.addf
// CHECK:         tt.store %{{.*}}, %[[S]], %{{.*}} : tensor<4x8x!tt.ptr<f32>>
// CHECK-LABEL: loop.func @stated
// CHECK-NEXT:    loop.launch @stated.0 grid [((n + 3) floordiv 4)] warps 4 stages 1 symbols [n]
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

// Block after block: a loop carries the sum of the blocks before.

// CHECK-LABEL: tt.func @blocks.0(
// CHECK:         scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%{{.*}} = %{{.*}}) -> (tensor<1xf32>)
// CHECK:           "tt.scan"
// CHECK:           "tt.reduce"
loop.kernel @blocks symbols [n] (%x: tensor<?x8x1xf32, #sym.dims<n, 8, 1>>) -> (tensor<?x8x1xf32, #sym.dims<n, 8, 1>>) {
  %y = loop.procedure "cumsum" [i: parallel n] computes #loop.prefix<add> schedule [rows grid, columns grid, steps by 4, steps vector 4, launch warps 4 stages 1] (%a = %x) -> (%o : tensor<?x8x1xf32, #sym.dims<n, 8, 1>>) {
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
