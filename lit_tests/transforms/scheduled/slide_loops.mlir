// RUN: igniter-opt %s -p "slide-loops" --split-input-file | filecheck %s
// RUN: igniter-opt %s -p "slide-loops" --split-input-file --emit=none --remarks 2>&1 | filecheck %s --check-prefix=REMARKS

// REMARKS: remark: slide-loops: 'rows.y' applied: 'i' computes rows as needed, and keeps 3
// REMARKS: remark: slide-loops: 'skips.y' applied: 'i' computes rows as needed, and keeps 1

// Rows of an image with a rim, and windows of three rows: the first of a band makes three, each later one another. The
// rim above and below is filled where a window comes to it, the one beside the rows once.

// CHECK:      loop.func @rows symbols [n]
// CHECK-NOT:    loop.alloc
// CHECK:        loop.for t = 0 to n {
// CHECK-NEXT:     loop.for b = 0 to 4 {
// CHECK-NEXT:       %e = loop.alloc "e" : memref<3x9xf32, "local">
// CHECK-NEXT:       loop.for [[Q:q[0-9]*]] = 0 to 3 {
// CHECK-NEXT:         [[Z:%.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:         loop.store [[Z]], %e[[[Q]], 0]
// CHECK-NEXT:       }
// CHECK-NEXT:       loop.for i = 0 to 14 sequential {
// CHECK-NEXT:         loop.for [[A:q[0-9]*]] = max(-14*b, i + 2*min(1, i)) to min(-14*b + 1, i + 3) {
// CHECK:                loop.for [[S:s[0-9]*]] = 0 to 9 {
// CHECK-NEXT:             loop.store {{.*}}, %e[([[A]] mod 3), [[S]]]
// CHECK:              loop.for [[Y:y_row[0-9]*]] = max(-14*b + 1, i + 2*min(1, i)) to min(-14*b + 57, i + 3) {
// CHECK-NEXT:           loop.for x = 0 to 8 {
// CHECK-NEXT:             %a = loop.load %x[t, 14*b + [[Y]] - 1, x] : f32
// CHECK-NEXT:             loop.store %a, %e[([[Y]] mod 3), x + 1]
// CHECK:              loop.for [[C:q[0-9]*]] = max(-14*b + 57, i + 2*min(1, i)) to min(-14*b + 58, i + 3) {
// CHECK:              loop.for x1 = 0 to 8 {
// CHECK:                loop.load %e[((i + r) mod 3), x1 + 1] : f32

builtin.module {
  loop.func @rows symbols [n] (%x: memref<?x56x8xf32, #sym.dims<n, 56, 8>>, %y: memref<?x56x8xf32, #sym.dims<n, 56, 8>>) outputs 1 {
    %e = loop.alloc "e" : memref<?x58x9xf32, #sym.dims<n, 58, 9>, "scratch">
    %z = arith.constant 0.0 : f32
    loop.for s = 0 to n {
      loop.for s1 = 0 to 9 {
        loop.store %z, %e[s, 0, s1]
      }
    }
    loop.for s2 = 0 to n {
      loop.for s3 = 0 to 9 {
        loop.store %z, %e[s2, 57, s3]
      }
    }
    loop.for s4 = 0 to n {
      loop.for s5 = 0 to 56 {
        loop.store %z, %e[s4, s5 + 1, 0]
      }
    }
    loop.for t = 0 to n {
      loop.for y = 0 to 56 schedule [slide "w"] {
        loop.for x = 0 to 8 {
          %a = loop.load %x[t, y, x] : f32
          loop.store %a, %e[t, y + 1, x + 1]
        }
      }
      loop.for b = 0 to 4 {
        loop.for i = 0 to 14 schedule [slide "w"] {
          loop.for x1 = 0 to 8 {
            %s = loop.alloc "s" : memref<f32, "register">
            loop.store %z, %s[]
            loop.for r = 0 to 3 reduction {
              %v = loop.load %e[t, 14*b + i + r, x1 + 1] : f32
              loop.accumulate add %v, %s[]
            }
            %u = loop.load %s[] : f32
            loop.store %u, %y[t, 14*b + i, x1]
          }
        }
      }
    }
  }
}

// -----

// Rows that no window reads are not made. No bands: the loop over windows is right behind.

// CHECK:      loop.func @skips
// CHECK:        %e = loop.alloc "e" : memref<1x8xf32, "scratch">
// CHECK-NEXT:   loop.for i = 0 to 20 sequential {
// CHECK-NEXT:     loop.for [[Y:y_row[0-9]*]] = 3*i to min(3*i + 1, 60) {
// CHECK:              loop.load %x[[[Y]], x] : f32
// CHECK:              loop.store {{.*}}, %e[0, x]
// CHECK:            loop.load %e[0, x1] : f32

builtin.module {
  loop.func @skips symbols [] (%x: memref<60x8xf32>, %y: memref<20x8xf32>) outputs 1 {
    %e = loop.alloc "e" : memref<60x8xf32, "scratch">
    loop.for y = 0 to 60 schedule [slide "w"] {
      loop.for x = 0 to 8 {
        %a = loop.load %x[y, x] : f32
        loop.store %a, %e[y, x]
      }
    }
    loop.for i = 0 to 20 schedule [slide "w"] {
      loop.for x1 = 0 to 8 {
        %v = loop.load %e[3*i, x1] : f32
        loop.store %v, %y[i, x1]
      }
    }
  }
}
