// RUN: igniter-opt %s -p choose-splits --split-input-file | filecheck %s
// RUN: igniter-opt %s -p choose-splits --split-input-file | igniter-opt --split-input-file | filecheck %s
// RUN: igniter-opt %s -p choose-splits --split-input-file --emit=none --remarks --remarks-output=- | filecheck %s --check-prefix=REMARK

// Few rows and columns and a long depth: split-K.

// REMARK: 'matmul' applied: its sums over k are computed in 8 parts
// CHECK-LABEL: loop.kernel @product
// CHECK:         loop.nest "matmul.parts" [part: parallel 8, i: parallel 128, j: parallel 768, k: reduction 384] -> tensor<8x128x768xf32>
// CHECK:           loop.read %a[i, k + 384*part] : f16
// CHECK:         loop.nest "matmul" [i: parallel 128, j: parallel 768, part: reduction 8] -> tensor<128x768xf32>
loop.kernel @product symbols [] (%a: tensor<128x3072xf16>, %b: tensor<3072x768xf16>) -> (tensor<128x768xf32>) {
  %c = loop.nest "matmul" [i: parallel 128, j: parallel 768, k: reduction 3072] -> tensor<128x768xf32> {
    %0 = loop.read %a[i, k] : f16
    %1 = loop.read %b[k, j] : f16
    %2 = arith.extf %0 : f16 to f32
    %3 = arith.extf %1 : f16 to f32
    %4 = arith.mulf %2, %3 : f32
    loop.yield add %4 at [i, j]
  }
  loop.return %c : tensor<128x768xf32>
}

// -----

// All of a tensor, as long as it may be, in two steps; behind the end there is nothing to add.

// REMARK: 'max' applied: its sums over i are computed in 128 parts
// CHECK-LABEL: loop.kernel @all
// CHECK:         loop.nest "max.parts" [part: parallel 128, i: reduction 31250] -> tensor<128xf32>
// CHECK-NEXT:      loop.read %x[i + 31250*part] : f32
// CHECK:         loop.nest "max" [part: reduction 128] -> tensor<f32>
loop.kernel @all symbols [] (%x: tensor<4000000xf32>) -> (tensor<f32>) {
  %m = loop.nest "max" [i: reduction 4000000] -> tensor<f32> {
    %0 = loop.read %x[i] : f32
    loop.yield max %0 at []
  }
  loop.return %m : tensor<f32>
}

// -----

// Left as they are: many results, a short sum, a product of as many rows as there may be, and one with a schedule.

// CHECK-LABEL: loop.kernel @whole
// CHECK-NOT:     parts
// CHECK:         loop.return
loop.kernel @whole symbols [n] (%x: tensor<4096x4096xf32>, %s: tensor<2000xf32>, %a: tensor<?x3072xf16, #sym.dims<n, 3072>>, %b: tensor<3072x64xf16>, %l: tensor<4000000xf32>) -> (tensor<4096xf32>, tensor<f32>, tensor<?x64xf32, #sym.dims<n, 64>>, tensor<f32>) {
  %rows = loop.nest "rows" [i: parallel 4096, k: reduction 4096] -> tensor<4096xf32> {
    %0 = loop.read %x[i, k] : f32
    loop.yield add %0 at [i]
  }
  %short = loop.nest "short" [k: reduction 2000] -> tensor<f32> {
    %0 = loop.read %s[k] : f32
    loop.yield add %0 at []
  }
  %c = loop.nest "matmul" [i: parallel n, j: parallel 64, k: reduction 3072] -> tensor<?x64xf32, #sym.dims<n, 64>> {
    %0 = loop.read %a[i, k] : f16
    %1 = loop.read %b[k, j] : f16
    %2 = arith.extf %0 : f16 to f32
    %3 = arith.extf %1 : f16 to f32
    %4 = arith.mulf %2, %3 : f32
    loop.yield add %4 at [i, j]
  }
  %m = loop.nest "max" [i: reduction 4000000] schedule [i by 1024, i vector 1024, launch warps 4 stages 1] -> tensor<f32> {
    %0 = loop.read %l[i] : f32
    loop.yield max %0 at []
  }
  loop.return %rows, %short, %c, %m : tensor<4096xf32>, tensor<f32>, tensor<?x64xf32, #sym.dims<n, 64>>, tensor<f32>
}

// -----

// Sums of columns: a program has 64 of them, and so few programs do not read as fast as the memory is.

// CHECK-LABEL: loop.kernel @columns
// CHECK:         loop.nest "sums.parts" [part: parallel 8, j: parallel 4096, k: reduction 1024]
// CHECK:         loop.nest "sums" [j: parallel 4096, part: reduction 8]
loop.kernel @columns symbols [] (%x: tensor<8192x4096xf32>) -> (tensor<4096xf32>) {
  %sums = loop.nest "sums" [j: parallel 4096, k: reduction 8192] -> tensor<4096xf32> {
    %0 = loop.read %x[k, j] : f32
    loop.yield add %0 at [j]
  }
  loop.return %sums : tensor<4096xf32>
}

// -----

// One row by a matrix: the same, though it is a product.

// CHECK-LABEL: loop.kernel @row
// CHECK:         loop.nest "matmul.parts" [part: parallel 8, j: parallel 4096, k: reduction 512]
loop.kernel @row symbols [] (%x: tensor<4096xf16>, %w: tensor<4096x4096xf16>) -> (tensor<4096xf32>) {
  %y = loop.nest "matmul" [j: parallel 4096, k: reduction 4096] -> tensor<4096xf32> {
    %0 = loop.read %x[k] : f16
    %1 = loop.read %w[k, j] : f16
    %2 = arith.extf %0 : f16 to f32
    %3 = arith.extf %1 : f16 to f32
    %4 = arith.mulf %2, %3 : f32
    loop.yield add %4 at [j]
  }
  loop.return %y : tensor<4096xf32>
}

// -----

// A tensor without dims is read like any other.

// CHECK-LABEL: loop.kernel @scalar
// CHECK:         loop.nest "sums.parts" [part: parallel 8, j: parallel 4096, k: reduction 1024]
loop.kernel @scalar symbols [] (%x: tensor<8192x4096xf32>, %s: tensor<f32>) -> (tensor<4096xf32>) {
  %sums = loop.nest "sums" [j: parallel 4096, k: reduction 8192] -> tensor<4096xf32> {
    %0 = loop.read %x[k, j] : f32
    %1 = loop.read %s[] if [k - 3] : f32
    %2 = arith.mulf %0, %1 : f32
    loop.yield add %2 at [j]
  }
  loop.return %sums : tensor<4096xf32>
}
