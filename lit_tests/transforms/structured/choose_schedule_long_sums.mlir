// RUN: igniter-opt %s -p "choose-schedule" | filecheck %s
// The vector of a long sum whose terms are contiguous runs along the sum, even if what is read or written once for each
// sum is contiguous along the results.

// CHECK-LABEL: loop.kernel @squares
// CHECK: loop.nest "sum" {{.*}} schedule [i threads, r vector {{[0-9]+}} accumulators
loop.kernel @squares symbols [n, k] (%x: tensor<?x?xf32, #sym.dims<n, k>>, %m: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, r: reduction k] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, r] : f32
    %t = loop.read %m[i] : f32
    %d = arith.subf %a, %t : f32
    %q = arith.mulf %d, %d : f32
    loop.yield add %q at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// Sums of few elements: the vectors are results.
// CHECK-LABEL: loop.kernel @few
// CHECK: loop.nest "sum" {{.*}} i vector {{[0-9]+}}
loop.kernel @few symbols [n] (%x: tensor<?x5xf32, #sym.dims<n, 5>>, %m: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, r: reduction 5] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, r] : f32
    %t = loop.read %m[i] : f32
    %d = arith.subf %a, %t : f32
    %q = arith.mulf %d, %d : f32
    loop.yield add %q at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// Columns: the terms are contiguous along the results.
// CHECK-LABEL: loop.kernel @columns
// CHECK: loop.nest "sum" {{.*}} i vector {{[0-9]+}}
loop.kernel @columns symbols [n, k] (%x: tensor<?x?xf32, #sym.dims<k, n>>, %m: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, r: reduction k] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[r, i] : f32
    %t = loop.read %m[i] : f32
    %d = arith.subf %a, %t : f32
    %q = arith.mulf %d, %d : f32
    loop.yield add %q at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}
