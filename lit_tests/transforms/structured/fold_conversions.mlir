// RUN: igniter-opt %s -p "fold-conversions" --split-input-file | filecheck %s
// RUN: igniter-opt %s -p "fold-conversions" --split-input-file --emit=none --remarks 2>&1 | filecheck %s --check-prefix=WHY
// RUN: igniter-opt %s -p "fold-conversions{most=1}" --split-input-file --emit=none --remarks 2>&1 | filecheck %s --check-prefix=ONE

// WHY: 'keys' applied: folded into 'scores'
// WHY: 'keys' applied: folded into 'scores'
// WHY: 'keys' missed: each number is read 64 times (more than 4)

// ONE: 'keys' applied: folded into 'scores'
// ONE: 'keys' missed: each number is read 2 times (more than 1)
// ONE: 'keys' missed: each number is read 64 times (more than 1)

// The numbers of a byte are an axis of the sum.

// CHECK:        loop.kernel @scores symbols [n] (%q: tensor<8x64xf32>, %codes: tensor<8x?x32xui8, #sym.dims<8, n, 32>>) -> (tensor<8x?xf32, #sym.dims<8, n>>) {
// CHECK-NEXT:     %s = loop.nest "scores" [h: parallel 8, j: parallel n, d_0: reduction 2, d_1: reduction 32] -> tensor<8x?xf32, #sym.dims<8, n>> {
// CHECK-NEXT:       %x = loop.read %q[h, 32*d_0 + d_1] : f32
// CHECK-NEXT:       %0 = loop.read %codes[h, j, d_1] : i8
// CHECK-NEXT:       %w = arith.extui %0 : i8 to i32
// CHECK-NEXT:       %1 = loop.index 4*d_0 : i64
// CHECK-NEXT:       %by = arith.trunci %1 : i64 to i32
// CHECK-NEXT:       %half = arith.shrsi %w, %by : i32
// CHECK-NEXT:       %low = arith.constant 15 : i32
// CHECK-NEXT:       %number = arith.andi %half, %low : i32
// CHECK-NEXT:       %x_1 = arith.sitofp %number : i32 to f32
// CHECK-NEXT:       %z = arith.mulf %x, %x_1 : f32
// CHECK-NEXT:       loop.yield add %z at [h, j]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %s : tensor<8x?xf32, #sym.dims<8, n>>
// CHECK-NEXT:   }

builtin.module {
  loop.kernel @scores symbols [n] (%q: tensor<8x64xf32>, %codes: tensor<8x?x32xui8, #sym.dims<8, n, 32>>) -> (tensor<8x?xf32, #sym.dims<8, n>>) {
    %k = loop.nest "keys" [h: parallel 8, j: parallel n, p: parallel 2, c: parallel 32] -> tensor<8x?x2x32xf32, #sym.dims<8, n, 2, 32>> {
      %b = loop.read %codes[h, j, c] : i8
      %w = arith.extui %b : i8 to i32
      %place = loop.index 4*p : i64
      %by = arith.trunci %place : i64 to i32
      %half = arith.shrsi %w, %by : i32
      %low = arith.constant 15 : i32
      %number = arith.andi %half, %low : i32
      %x = arith.sitofp %number : i32 to f32
      loop.yield none %x at [h, j, p, c]
    }
    %v = loop.view %k : tensor<8x?x2x32xf32, #sym.dims<8, n, 2, 32>> to tensor<8x?x64xf32, #sym.dims<8, n, 64>>
    %s = loop.nest "scores" [h: parallel 8, j: parallel n, d: reduction 64] -> tensor<8x?xf32, #sym.dims<8, n>> {
      %x = loop.read %q[h, d] : f32
      %y = loop.read %v[h, j, d] : f32
      %z = arith.mulf %x, %y : f32
      loop.yield add %z at [h, j]
    }
    loop.return %s : tensor<8x?xf32, #sym.dims<8, n>>
  }
}

// -----

// Two rows convert each code twice.

// CHECK:        loop.kernel @step symbols [m, n] (%q: tensor<?x64xf32, #sym.dims<m, 64>>, %codes: tensor<?x64xi8, #sym.dims<n, 64>>) -> (tensor<?x?xf32, #sym.dims<m, n>>) typical [m = 2] {
// CHECK-NEXT:     %s = loop.nest "scores" [i: parallel m, j: parallel n, d: reduction 64] -> tensor<?x?xf32, #sym.dims<m, n>> {
// CHECK-NEXT:       %x = loop.read %q[i, d] : f32
// CHECK-NEXT:       %0 = loop.read %codes[j, d] : i8
// CHECK-NEXT:       %w = arith.extsi %0 : i8 to i32
// CHECK-NEXT:       %x_1 = arith.sitofp %w : i32 to f32
// CHECK-NEXT:       %z = arith.mulf %x, %x_1 : f32
// CHECK-NEXT:       loop.yield add %z at [i, j]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %s : tensor<?x?xf32, #sym.dims<m, n>>
// CHECK-NEXT:   }

builtin.module {
  loop.kernel @step symbols [m, n] (%q: tensor<?x64xf32, #sym.dims<m, 64>>, %codes: tensor<?x64xi8, #sym.dims<n, 64>>) -> (tensor<?x?xf32, #sym.dims<m, n>>) typical [m = 2] {
    %k = loop.nest "keys" [j: parallel n, d: parallel 64] -> tensor<?x64xf32, #sym.dims<n, 64>> {
      %b = loop.read %codes[j, d] : i8
      %w = arith.extsi %b : i8 to i32
      %x = arith.sitofp %w : i32 to f32
      loop.yield none %x at [j, d]
    }
    %s = loop.nest "scores" [i: parallel m, j: parallel n, d: reduction 64] -> tensor<?x?xf32, #sym.dims<m, n>> {
      %x = loop.read %q[i, d] : f32
      %y = loop.read %k[j, d] : f32
      %z = arith.mulf %x, %y : f32
      loop.yield add %z at [i, j]
    }
    loop.return %s : tensor<?x?xf32, #sym.dims<m, n>>
  }
}

// -----

// An unknown number of rows keeps a plain factor, to be packed.

// CHECK:        loop.kernel @prompt symbols [m, n] (%q: tensor<?x64xf32, #sym.dims<m, 64>>, %codes: tensor<?x64xi8, #sym.dims<n, 64>>) -> (tensor<?x?xf32, #sym.dims<m, n>>) {
// CHECK-NEXT:     %k = loop.nest "keys" [j: parallel n, d: parallel 64] -> tensor<?x64xf32, #sym.dims<n, 64>> {
// CHECK-NEXT:       %b = loop.read %codes[j, d] : i8
// CHECK-NEXT:       %w = arith.extsi %b : i8 to i32
// CHECK-NEXT:       %x = arith.sitofp %w : i32 to f32
// CHECK-NEXT:       loop.yield none %x at [j, d]
// CHECK-NEXT:     }
// CHECK-NEXT:     %s = loop.nest "scores" [i: parallel m, j: parallel n, d: reduction 64] -> tensor<?x?xf32, #sym.dims<m, n>> {
// CHECK-NEXT:       %x_1 = loop.read %q[i, d] : f32
// CHECK-NEXT:       %y = loop.read %k[j, d] : f32
// CHECK-NEXT:       %z = arith.mulf %x_1, %y : f32
// CHECK-NEXT:       loop.yield add %z at [i, j]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %s : tensor<?x?xf32, #sym.dims<m, n>>
// CHECK-NEXT:   }

builtin.module {
  loop.kernel @prompt symbols [m, n] (%q: tensor<?x64xf32, #sym.dims<m, 64>>, %codes: tensor<?x64xi8, #sym.dims<n, 64>>) -> (tensor<?x?xf32, #sym.dims<m, n>>) {
    %k = loop.nest "keys" [j: parallel n, d: parallel 64] -> tensor<?x64xf32, #sym.dims<n, 64>> {
      %b = loop.read %codes[j, d] : i8
      %w = arith.extsi %b : i8 to i32
      %x = arith.sitofp %w : i32 to f32
      loop.yield none %x at [j, d]
    }
    %s = loop.nest "scores" [i: parallel m, j: parallel n, d: reduction 64] -> tensor<?x?xf32, #sym.dims<m, n>> {
      %x = loop.read %q[i, d] : f32
      %y = loop.read %k[j, d] : f32
      %z = arith.mulf %x, %y : f32
      loop.yield add %z at [i, j]
    }
    loop.return %s : tensor<?x?xf32, #sym.dims<m, n>>
  }
}

// -----

// A maximum is no sum of products.
// WHY: 'numbers' missed: 'top' is no sum of products, or reads it under guards
// ONE: 'numbers' missed: 'top' is no sum of products, or reads it under guards

builtin.module {
  loop.kernel @top symbols [] (%codes: tensor<8x64xi8>) -> (tensor<8xf32>) {
    %k = loop.nest "numbers" [j: parallel 8, d: parallel 64] -> tensor<8x64xf32> {
      %b = loop.read %codes[j, d] : i8
      %x = arith.sitofp %b : i8 to f32
      loop.yield none %x at [j, d]
    }
    %s = loop.nest "top" [j: parallel 8, d: reduction 64] -> tensor<8xf32> {
      %x = loop.read %k[j, d] : f32
      loop.yield max %x at [j]
    }
    loop.return %s : tensor<8xf32>
  }
}
