// RUN: igniter-opt %s -p "choose-schedule{vector-bytes=16 byte-pairs=true half-pairs=true}" | filecheck %s

// With Arm's matrix instructions a tile of bytes, or of bf16, is 192 rows by a panel.

// CHECK:      loop.kernel @bytes
// CHECK-NEXT:   %c = loop.nest "matmul" {{.*}} schedule [j by 16 threads fuse "g0", i by 192 fuse "g0", product(i, j, k) tile [192, 1], i, j vector 4 unroll]

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
  // CHECK-NEXT:   %c = loop.nest "matmul" {{.*}} schedule [j by 16 threads fuse "g0", i by 192 fuse "g0", product(i, j, k) tile [192, 1], i, j vector 4 unroll]
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

  // 200 rows are two blocks of 17 and 16 stripes, not one of 192 rows and one of 8.
  // CHECK:      loop.kernel @known
  // CHECK-NEXT:   %c = loop.nest "matmul" {{.*}} schedule [j by 16 threads fuse "g0", i by 102 fuse "g0", product(i, j, k) tile [192, 1], i, j vector 4 unroll]
  loop.kernel @known symbols [] (%a: tensor<200x768xui8>, %b: tensor<192x192x16x4xi8>) -> (tensor<200x3072xi32>) {
    %c = loop.nest "matmul" [i: parallel 200, j: parallel 3072, k: reduction 768] -> tensor<200x3072xi32> {
      %x = loop.read %a[i, k] : i8
      %w = loop.read %b[j floordiv 16, k floordiv 4, j mod 16, k mod 4] : i8
      %u = arith.extui %x : i8 to i32
      %v = arith.extsi %w : i8 to i32
      %p = arith.muli %u, %v : i32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<200x3072xi32>
  }
}
