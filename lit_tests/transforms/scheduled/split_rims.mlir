// RUN: igniter-opt %s -p "split-rims" --split-input-file | filecheck %s
// RUN: igniter-opt %s -p "split-rims" --split-input-file --remarks --remarks-output=- --emit=none | filecheck %s --check-prefix=REMARK
// RUN: igniter-opt %s -p "split-rims,plan-buffers" --split-input-file | filecheck %s --check-prefix=PLAN

// A guard that grows along the loop holds from the second vector on. One that is the same for all iterations empties the
// interior where it fails.
loop.func @pool symbols [] (%x: memref<8x160xf32>, %y: memref<4x80xf32>) outputs 1 {
  loop.for y = 0 to 4 {
    loop.for x = 0 to 80 step 8 schedule [interior] {
      %least = arith.constant -1.0 : f32
      %0 = vector.broadcast %least : f32 to vector<8xf32>
      %a = loop.load %x[2*y - 1, 2*x + 2*v - 1] lane v if [2*y - 1, 2*x + 2*v - 1] else %0 : vector<8xf32>
      loop.store %a, %y[y, x + v] lane v
    }
  }
}
// CHECK-LABEL: loop.func @pool
// CHECK-NEXT:    loop.for y = 0 to 4 {
// CHECK-NEXT:      loop.for x2 = 0 to 8 step 8 {
// CHECK:             loop.load %x[2*y - 1, 2*v + 2*x2 - 1] lane v if [2*y - 1, 2*v + 2*x2 - 1] else %{{.*}}
// CHECK:           loop.for x1 = 8 to 72*min(1, 2*y) + 8 step 8 {
// CHECK:             %{{.*}} = loop.load %x[2*y - 1, 2*v + 2*x1 - 1] lane v : vector<8xf32>
// CHECK:           loop.for x3 = 72*min(1, 2*y) + 8 to 80 step 8 {
// CHECK:             loop.load %x[2*y - 1, 2*v + 2*x3 - 1] lane v if [2*y - 1, 2*v + 2*x3 - 1] else %{{.*}}

// -----

// A guard that falls bounds the end, also of a symbolic number of vectors; the guard over another loop's axis stays.
loop.func @end symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<8*n>>) outputs 1 {
  loop.for x = 0 to 8*n step 8 schedule [interior] {
    loop.for k = 0 to 3 reduction {
      %a = loop.load %x[x + k + v] lane v if [n - x - k - v - 1] : vector<8xf32>
      loop.accumulate add %a, %y[x + v] lane v
    }
    %b = loop.load %x[x + v + 1] lane v if [n - x - v - 2] : vector<8xf32>
    loop.store %b, %y[x + v] lane v if [8*n - x - v - 1]
  }
}
// CHECK-LABEL: loop.func @end
// CHECK-NEXT:    loop.for x1 = 0 to 8*max(0, min(((n + 7) floordiv 8) - 1, n)) step 8 {
// CHECK:             loop.load %x[k1 + v + x1] lane v if [-k1 + n - v - x1 - 1] : vector<8xf32>
// CHECK:           %{{.*}} = loop.load %x[v + x1 + 1] lane v : vector<8xf32>
// CHECK-NEXT:      loop.store %{{.*}}, %y[v + x1] lane v
// CHECK-NEXT:    }
// CHECK-NEXT:    loop.for x3 = 8*max(0, min(((n + 7) floordiv 8) - 1, n)) to 8*n step 8 {
// CHECK:           loop.load %x[v + x3 + 1] lane v if [n - v - x3 - 2] : vector<8xf32>

// -----

// No guard bounds anything.
loop.func @plain symbols [] (%x: memref<16xf32>, %y: memref<16xf32>) outputs 1 {
  loop.for x = 0 to 16 step 8 schedule [interior] {
    %a = loop.load %x[x + v] lane v : vector<8xf32>
    loop.store %a, %y[x + v] lane v
  }
}
// CHECK-LABEL: loop.func @plain
// CHECK-NEXT:    loop.for x = 0 to 16 step 8 {
// REMARK: 'plain.x' missed: it has no guard that bounds an interior

// -----

// A guard that is the same for all iterations leaves no iterations before the interior. The loop without iterations is
// gone, and no longer uses the buffer.
loop.func @none_before symbols [] (%x: memref<8x160xf32>, %y: memref<4x80xf32>) outputs 1 {
  %t = loop.alloc "t" : memref<8x80xf32, "scratch">
  loop.for i = 0 to 8 {
    loop.for j = 0 to 80 {
      %v = loop.load %x[i, j] : f32
      loop.store %v, %t[i, j]
    }
  }
  loop.for y = 0 to 4 {
    loop.for x = 0 to 80 step 8 schedule [interior] {
      %least = arith.constant -1.0 : f32
      %0 = vector.broadcast %least : f32 to vector<8xf32>
      %a = loop.load %t[2*y - 1, x + v] lane v if [2*y - 1] else %0 : vector<8xf32>
      loop.store %a, %y[y, x + v] lane v
    }
  }
}
// CHECK-LABEL: loop.func @none_before
// CHECK:           loop.for x1 = 0 to {{.*}} step 8 {
// CHECK:           loop.for x3 = {{.*}} to 80 step 8 {
// PLAN-LABEL: loop.func @none_before
// PLAN-SAME:    scratch(2560)
