// RUN: igniter-opt %s | igniter-opt | filecheck %s

// Every statement of the scheduled level prints as it parses.

// CHECK:      loop.func @all symbols [n, m] (%x: memref<?x?xf32, #sym.dims<n, m>>, %i: memref<?xi64, #sym.dims<n>>, %y: memref<?x?xf32, #sym.dims<n, m>>) outputs 1 scratch(4*m + 64)
// CHECK-NEXT:   %s = loop.alloc "row" offset 64 : memref<?xf32, #sym.dims<m>, "scratch">
// CHECK-NEXT:   loop.for a = 0 to n threads((n floordiv 4) + 1) schedule [vector 16] {
// CHECK-NEXT:     %r = loop.alloc "acc" : memref<2x16xf32, "register">
// CHECK-NEXT:     %l = loop.alloc "tile" : memref<4x4xf64, "local">
// CHECK-NEXT:     loop.for b = 0 to m step 16 reduction {
// CHECK-NEXT:       %v = loop.load %x[a, b + v] lane v if [-b + m - v - 1] : vector<16xf32>
// CHECK-NEXT:       loop.store %v, %r[1, v] lane v
// CHECK-NEXT:       loop.accumulate add %v, %r[0, v] lane v if [-b + m - v - 1]
// CHECK-NEXT:       %t = loop.reduce_lanes max %v : vector<16xf32> to f32
// CHECK-NEXT:       %w = loop.load %x[a, b] if [b - 3] else %t : f32
// CHECK-NEXT:       %j = loop.index 2*a + b : i64
// CHECK-NEXT:       %k = loop.index a + v lane v : vector<16xi64>
// CHECK-NEXT:       %g = loop.load %x[_0, b + v] lane v with %j : vector<16xf32>
// CHECK-NEXT:       %h = loop.load %x[_0, 0] lane v with %k if [_0, -_0 + n - 1] : vector<16xf32>
// CHECK-NEXT:       loop.if [a - 1, -a + n - 2] {
// CHECK-NEXT:         loop.store %w, %y[a, b]
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     %z = loop.view %s : memref<?xf32, #sym.dims<m>, "scratch"> to memref<1x?xf32, #sym.dims<1, m>, "scratch">
// CHECK:        %p, %q = loop.transpose %c, %d : vector<2xf32>, vector<2xf32> to vector<2xf32>, vector<2xf32>
loop.func @all symbols [n, m] (%x: memref<?x?xf32, #sym.dims<n, m>>, %i: memref<?xi64, #sym.dims<n>>, %y: memref<?x?xf32, #sym.dims<n, m>>) outputs 1 scratch(4*m + 64) {
  %s = loop.alloc "row" offset 64 : memref<?xf32, #sym.dims<m>, "scratch">
  loop.for a = 0 to n threads(n floordiv 4 + 1) schedule [vector 16] {
    %r = loop.alloc "acc" : memref<2x16xf32, "register">
    %l = loop.alloc "tile" : memref<4x4xf64, "local">
    loop.for b = 0 to m step 16 reduction {
      %v = loop.load %x[a, b + v] lane v if [m - 1 - b - v] : vector<16xf32>
      loop.store %v, %r[1, v] lane v
      loop.accumulate add %v, %r[0, v] lane v if [m - 1 - b - v]
      %t = loop.reduce_lanes max %v : vector<16xf32> to f32
      %w = loop.load %x[a, b] if [b - 3] else %t : f32
      %j = loop.index b + 2*a : i64
      %k = loop.index a + v lane v : vector<16xi64>
      %g = loop.load %x[_0, b + v] lane v with %j : vector<16xf32>
      %h = loop.load %x[_0, 0] lane v with %k if [_0, n - 1 - _0] : vector<16xf32>
      loop.if [a - 1, n - 2 - a] {
        loop.store %w, %y[a, b]
      }
    }
    %z = loop.view %s : memref<?xf32, #sym.dims<m>, "scratch"> to memref<1x?xf32, #sym.dims<1, m>, "scratch">
    %c = loop.load %z[0, v] lane v : vector<2xf32>
    %d = loop.load %z[0, v] lane v : vector<2xf32>
    %p, %q = loop.transpose %c, %d : vector<2xf32>, vector<2xf32> to vector<2xf32>, vector<2xf32>
  }
}

// A micro-kernel: what is replaced or added to, extents that are known at run time only, and what is fetched ahead.
// `k floordiv 2` and `k mod 2` are a group of two steps of depth.

// CHECK:      loop.func @tiles symbols [m, n, d] (%a: memref<?x?xf32, #sym.dims<m, d>>, %b: memref<?x?x16xf32, #sym.dims<((n + 15) floordiv 16), d, 16>>, %c: memref<?x?xf32, #sym.dims<m, n>>) outputs 1 {
// CHECK-NEXT:   %t = loop.alloc "tile" : memref<8x48xf32, "local">
// CHECK-NEXT:   loop.for j = 0 to ((n + 47) floordiv 48) {
// CHECK-NEXT:     loop.for i = 0 to ((m + 7) floordiv 8) {
// CHECK-NEXT:       loop.tile_product %t[r, l + 16*p] = %a[8*i + r, k] * %b[3*j + p, k, l] over r = min(-8*i + m, 8), p = ((min(-48*j + n, 48) + 15) floordiv 16), l = 16, k = d tile [8, 3] fetch [3*j + min(2, i) + 3, 0, 0]
// CHECK-NEXT:       loop.tile_product %t[r, l + 16*p] += %a[8*i + r, k] * %b[3*j + p, k, l] over r = 8, p = 3, l = 16, k = d tile [8, 3]
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
loop.func @tiles symbols [m, n, d] (%a: memref<?x?xf32, #sym.dims<m, d>>, %b: memref<?x?x16xf32, #sym.dims<(n + 15) floordiv 16, d, 16>>, %c: memref<?x?xf32, #sym.dims<m, n>>) outputs 1 {
  %t = loop.alloc "tile" : memref<8x48xf32, "local">
  loop.for j = 0 to (n + 47) floordiv 48 {
    loop.for i = 0 to (m + 7) floordiv 8 {
      loop.tile_product %t[r, 16*p + l] = %a[8*i + r, k] * %b[3*j + p, k, l] over r = min(8, m - 8*i), p = (min(48, n - 48*j) + 15) floordiv 16, l = 16, k = d tile [8, 3] fetch [3*j + min(i, 2) + 3, 0, 0]
      loop.tile_product %t[r, 16*p + l] += %a[8*i + r, k] * %b[3*j + p, k, l] over r = 8, p = 3, l = 16, k = d tile [8, 3]
    }
  }
}

// CHECK:      loop.tile_product %t1[r, l + 16*p] = %a1[r, k] * %b1[p, (k floordiv 4), l, (k mod 4)] over r = 2, p = 1, l = 16, k = 64 tile [2, 1]
loop.func @groups symbols [] (%a1: memref<2x64xui8>, %b1: memref<1x16x16x4xi8>, %t1: memref<2x16xi32>) outputs 1 {
  loop.tile_product %t1[r, 16*p + l] = %a1[r, k] * %b1[p, k floordiv 4, l, k mod 4] over r = 2, p = 1, l = 16, k = 64 tile [2, 1]
}

// A micro-kernel with an outer sum.

// CHECK:      loop.tile_product %t3[r, l + 16*p] = %a3[s, r, k] * %b3[p, s, k, l] over r = 2, p = 1, l = 16, k = 64, s = n tile [2, 1] fetch [1, 0, 0, 0]
loop.func @rounds symbols [n] (%a3: memref<?x2x64xf32, #sym.dims<n, 2, 64>>, %b3: memref<1x?x64x16xf32, #sym.dims<1, n, 64, 16>>, %t3: memref<2x16xf32>) outputs 1 {
  loop.tile_product %t3[r, 16*p + l] = %a3[s, r, k] * %b3[p, s, k, l] over r = 2, p = 1, l = 16, k = 64, s = n tile [2, 1] fetch [1, 0, 0, 0]
}

// A micro-kernel that is named.

// CHECK:      loop.tile_product %t2[r, l + 16*p] += %a2[r, k] * %b2[p, k, l] over r = 2, p = 1, l = 16, k = 64 tile [2, 1] fetch [0, 0, 0] kernel "f16"
loop.func @named symbols [] (%a2: memref<2x64xf16>, %b2: memref<1x64x16xf16>, %t2: memref<2x16xf32>) outputs 1 {
  loop.tile_product %t2[r, 16*p + l] += %a2[r, k] * %b2[p, k, l] over r = 2, p = 1, l = 16, k = 64 tile [2, 1] fetch [0, 0, 0] kernel "f16"
}
