// RUN: not igniter-opt %s -p "prefetch-loops{axis=i}" 2>&1 | filecheck %s
// RUN: igniter-opt %s -p "prefetch-loops" --emit=none --remarks 2>&1 | filecheck %s --check-prefix=REMARKS

// A loop that is named has to have something before it; one that only has the hint stays as it is.
// REMARKS: missed: no statement precedes loop 'i', so a prefetch has nothing to overlap with

// CHECK: pass 'prefetch-loops': no statement precedes loop 'i', so a prefetch has nothing to overlap with

builtin.module {
  loop.func @first symbols [] (%x: memref<4xf32>, %y: memref<4xf32>) outputs 1 {
    loop.for i = 0 to 4 schedule [prefetch] {
      %p = loop.load %x[i] : f32
      loop.store %p, %y[i]
    }
  }
}
