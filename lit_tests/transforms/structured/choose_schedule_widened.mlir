// RUN: igniter-opt %s -p choose-schedule --target=aarch64 --split-input-file | filecheck %s
// RUN: igniter-opt %s -p choose-schedule --target=x86-64-v3 --split-input-file | filecheck %s --check-prefix=AVX

// With NEON a tile of f32 by 16-bit floats has 48 rows, for which a panel is converted once: an unknown number of rows,
// and a constant one. 6 rows or fewer are a tile of their own height.

// CHECK:      loop.kernel @rows
// CHECK-NEXT:   %c = loop.nest "matmul" {{.*}} schedule [j by 16 threads fuse "g0", i by 48 fuse "g0", product(i, j, k) tile [48, 1], i, j vector 4 unroll]
// AVX:        product(i, j, k) tile [6, 1]

builtin.module {
  loop.kernel @rows symbols [m] (%a: tensor<?x768xf32, #sym.dims<m, 768>>, %b: tensor<192x768x16xf16>) -> (tensor<?x3072xf32, #sym.dims<m, 3072>>) {
    %c = loop.nest "matmul" [i: parallel m, j: parallel 3072, k: reduction 768] -> tensor<?x3072xf32, #sym.dims<m, 3072>> {
      %x = loop.read %a[i, k] : f32
      %w = loop.read %b[j floordiv 16, k, j mod 16] : f16
      %v = arith.extf %w : f16 to f32
      %p = arith.mulf %x, %v : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x3072xf32, #sym.dims<m, 3072>>
  }
}

// -----

// CHECK:      loop.kernel @many
// CHECK-NEXT:   {{.*}} product(i, j, k) tile [48, 1]
// CHECK:      loop.kernel @few
// CHECK-NEXT:   {{.*}} product(i, j, k) tile [6, 1]
// AVX-NOT:    tile [48

builtin.module {
  loop.kernel @many symbols [] (%a: tensor<100x768xf32>, %b: tensor<192x768x16xbf16>) -> (tensor<100x3072xf32>) {
    %c = loop.nest "matmul" [i: parallel 100, j: parallel 3072, k: reduction 768] -> tensor<100x3072xf32> {
      %x = loop.read %a[i, k] : f32
      %w = loop.read %b[j floordiv 16, k, j mod 16] : bf16
      %v = arith.extf %w : bf16 to f32
      %p = arith.mulf %x, %v : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<100x3072xf32>
  }
  loop.kernel @few symbols [] (%a: tensor<6x768xf32>, %b: tensor<192x768x16xbf16>) -> (tensor<6x3072xf32>) {
    %c = loop.nest "matmul" [i: parallel 6, j: parallel 3072, k: reduction 768] -> tensor<6x3072xf32> {
      %x = loop.read %a[i, k] : f32
      %w = loop.read %b[j floordiv 16, k, j mod 16] : bf16
      %v = arith.extf %w : bf16 to f32
      %p = arith.mulf %x, %v : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<6x3072xf32>
  }
}
