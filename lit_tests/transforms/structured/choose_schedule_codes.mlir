// RUN: igniter-opt %s -p 'choose-schedule' --target=x86-64-v3 | filecheck %s --check-prefixes=CHECK,AVX2
// RUN: igniter-opt %s -p 'choose-schedule' --target=znver4 | filecheck %s --check-prefixes=CHECK,AVX512

// Codes of 4 bits in panels, times rows rounded to bytes: threads share the panels, and a tile of rows the unpacked
// codes of a vector. A single row takes the vectors of a panel together. An unknown number of rows has tiles as well,
// and its rest row by row. With few cores (8 of a Zen 4, 16 of x86-64-v3), a tile of rows passes a few panels at a time.

// CHECK-LABEL: loop.kernel @many
// AVX2:   schedule [p threads, i by 4 tail peel, l by 8, b, i unroll, l vector 8]
// AVX512: schedule [p by 2 threads, i by 8 tail peel, p, b, i unroll, l vector 16]
loop.kernel @many symbols [] (%w: tensor<86x16x16xui32>, %x: tensor<128x16xi32>) -> (tensor<128x1376xf32>) {
  %y = loop.nest "product" [p: parallel 86, i: parallel 128, l: parallel 16, b: reduction 16] -> tensor<128x1376xf32> {
    %c = loop.read %w[p, b, l] : i32
    %m = arith.constant 252645135 : i32
    %u = arith.andi %c, %m : i32
    %s = loop.read %x[i, b] : i32
    %z = arith.constant 0 : i32
    %d = loop.dot_bytes %u, %s, %z most 15 : i32
    %f = arith.sitofp %d : i32 to f32
    loop.yield add %f at [i, 16*p + l]
  }
  loop.return %y : tensor<128x1376xf32>
}

// CHECK-LABEL: loop.kernel @one
// AVX2:   schedule [p threads, l by 16, b ahead 4, l vector 8 unroll]
// AVX512: schedule [p threads, b ahead 4, l vector 16]
loop.kernel @one symbols [] (%w: tensor<86x16x16xui32>, %x: tensor<16xi32>) -> (tensor<1376xf32>) {
  %y = loop.nest "product" [p: parallel 86, l: parallel 16, b: reduction 16] -> tensor<1376xf32> {
    %c = loop.read %w[p, b, l] : i32
    %m = arith.constant 252645135 : i32
    %u = arith.andi %c, %m : i32
    %s = loop.read %x[b] : i32
    %z = arith.constant 0 : i32
    %d = loop.dot_bytes %u, %s, %z most 15 : i32
    %f = arith.sitofp %d : i32 to f32
    loop.yield add %f at [16*p + l]
  }
  loop.return %y : tensor<1376xf32>
}

// CHECK-LABEL: loop.kernel @unknown
// AVX2:   schedule [p threads, i by 4 tail rest, l by 8, b, i unroll, l vector 8]
// AVX512: schedule [p by 2 threads, i by 8 tail rest, p, b, i unroll, l vector 16]
loop.kernel @unknown symbols [n] (%w: tensor<86x16x16xui32>, %x: tensor<?x16xi32, #sym.dims<n, 16>>) -> (tensor<?x1376xf32, #sym.dims<n, 1376>>) {
  %y = loop.nest "product" [p: parallel 86, i: parallel n, l: parallel 16, b: reduction 16] -> tensor<?x1376xf32, #sym.dims<n, 1376>> {
    %c = loop.read %w[p, b, l] : i32
    %m = arith.constant 252645135 : i32
    %u = arith.andi %c, %m : i32
    %s = loop.read %x[i, b] : i32
    %z = arith.constant 0 : i32
    %d = loop.dot_bytes %u, %s, %z most 15 : i32
    %f = arith.sitofp %d : i32 to f32
    loop.yield add %f at [i, 16*p + l]
  }
  loop.return %y : tensor<?x1376xf32, #sym.dims<n, 1376>>
}
