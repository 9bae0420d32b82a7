// RUN: igniter-opt %s -p "choose-schedule{author=naive},lower-to-loops" | filecheck %s
// RUN: igniter-opt %s -p "form-variants{author=naive}" | filecheck %s --check-prefix=VARIANTS
// RUN: igniter-opt %s -p "form-variants" | filecheck %s --check-prefix=DEFAULT
// RUN: igniter-opt %s -p "form-variants{author=nobody}" --verify-diagnostics | filecheck %s --check-prefix=NOBODY

// The author `naive` leaves plain loops in the order of the axes, and asks for no variant by size.

// CHECK:      loop.for i = 0 to n {
// CHECK-NEXT:   loop.for j = 0 to m {
// CHECK-NOT:  schedule
// VARIANTS-NOT: variants
// DEFAULT:    } variants {
// NOBODY:     pass 'form-variants': there is no schedule author called 'nobody'

builtin.module {
  loop.kernel @turned symbols [n, m] (%x: tensor<?x?xf32, #sym.dims<m, n>>) -> (tensor<?x?xf32, #sym.dims<n, m>>) {
    %c = loop.nest "turned" [i: parallel n, j: parallel m] -> tensor<?x?xf32, #sym.dims<n, m>> {
      %v = loop.read %x[j, i] : f32
      loop.yield none %v at [i, j]
    }
    loop.return %c : tensor<?x?xf32, #sym.dims<n, m>>
  }
}
