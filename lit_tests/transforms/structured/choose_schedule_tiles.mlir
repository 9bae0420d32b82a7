// RUN: igniter-opt %s -p "choose-schedule{byte-tiles=true half-tiles=true}" | filecheck %s

// With AMX a tile of bytes, or of bf16, is 32 rows by 2 panels.

// CHECK:      loop.kernel @bytes
// CHECK-NEXT:   %c = loop.nest "matmul" {{.*}} schedule [j by 32 threads fuse "g0", i by 32 fuse "g0", product(i, j, k) tile [32, 2], i, j vector 16 unroll]

builtin.module {
  loop.kernel @bytes symbols [m] (%a: tensor<?x768xui8, #sym.dims<m, 768>>, %b: tensor<192x192x16x4xi8>) -> (tensor<?x3072xi32, #sym.dims<m, 3072>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 3072, k: reduction 768] -> tensor<?x3072xi32, #sym.dims<m, 3072>> {
      %x = loop.read %a[i, k] : i8
      %w = loop.read %b[j floordiv 16, k floordiv 4, j mod 16, k mod 4] : i8
      %u = arith.extui %x : i8 to i32
      %v = arith.extsi %w : i8 to i32
      %p = arith.muli %u, %v : i32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x3072xi32, #sym.dims<m, 3072>>
  }

  // CHECK:      loop.kernel @halves
  // CHECK-NEXT:   %c = loop.nest "matmul" {{.*}} schedule [j by 32 threads fuse "g0", i by 32 fuse "g0", product(i, j, k) tile [32, 2], i, j vector 16 unroll]
  loop.kernel @halves symbols [m] (%a: tensor<?x768xbf16, #sym.dims<m, 768>>, %b: tensor<192x384x16x2xbf16>) -> (tensor<?x3072xf32, #sym.dims<m, 3072>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 3072, k: reduction 768] -> tensor<?x3072xf32, #sym.dims<m, 3072>> {
      %x = loop.read %a[i, k] : bf16
      %w = loop.read %b[j floordiv 16, k floordiv 2, j mod 16, k mod 2] : bf16
      %u = arith.extf %x : bf16 to f32
      %v = arith.extf %w : bf16 to f32
      %p = arith.mulf %u, %v : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x3072xf32, #sym.dims<m, 3072>>
  }
}
