// RUN: igniter-opt %s -p "split-reductions{nest=sum axis=k parts=4}" --split-input-file | filecheck %s

// Four independent sums, and the sum of these.

builtin.module {
  loop.kernel @even symbols [n] (%x: tensor<?x64xf32, #sym.dims<n, 64>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %s = loop.nest "sum" [i: parallel n, k: reduction 64] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i, k] : f32
      loop.yield add %a at [i]
    }
    loop.return %s : tensor<?xf32, #sym.dims<n>>
  }
}

// CHECK-LABEL: loop.kernel @even
// CHECK-NEXT:     %0 = loop.nest "sum.parts" [part: parallel 4, i: parallel n, k: reduction 16] -> tensor<4x?xf32, #sym.dims<4, n>> {
// CHECK-NEXT:       %a = loop.read %x[i, k + 16*part] : f32
// CHECK-NEXT:       loop.yield add %a at [part, i]
// CHECK-NEXT:     }
// CHECK-NEXT:     %s = loop.nest "sum" [i: parallel n, part: reduction 4] -> tensor<?xf32, #sym.dims<n>> {
// CHECK-NEXT:       %1 = loop.read %0[part, i] : f32
// CHECK-NEXT:       loop.yield add %1 at [i]
// CHECK-NEXT:     }

// -----

// The last part is shorter; behind the end the greatest is what no element is smaller than.

builtin.module {
  loop.kernel @uneven symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<f32>) {
    %s = loop.nest "sum" [k: reduction n] -> tensor<f32> {
      %a = loop.read %x[k] : f32
      loop.yield max %a at []
    }
    loop.return %s : tensor<f32>
  }
}

// CHECK-LABEL: loop.kernel @uneven
// CHECK-NEXT:     %0 = loop.nest "sum.parts" [part: parallel 4, k: reduction ((n + 3) floordiv 4)] -> tensor<4xf32> {
// CHECK:            loop.read %x[part*((n + 3) floordiv 4) + k] if [-part*((n + 3) floordiv 4) - k + n - 1] else
// CHECK:            arith.constant 0xff800000 : f32
// CHECK-NEXT:       %{{.*}} = arith.select
// CHECK-NEXT:       loop.yield max %{{.*}} at [part]
