// RUN: igniter-opt %s -p choose-schedule | filecheck %s
// RUN: igniter-opt %s -p "choose-schedule,lower-to-loops,fuse-loops,promote-buffers" | filecheck %s --check-prefix=LOOPS

// Panels that are made of codes and the product that reads them go over groups of panels together, columns outermost:
// what stands between them is a group, of three panels here, and the product asks for no panels that are not there yet.

// CHECK:      loop.kernel @codes
// CHECK-NEXT: %w = loop.nest "panels" {{.*}} schedule [p by 3 threads 4 fuse "g0", p, k, l vector 16 unroll]
// CHECK:      %c = loop.nest "product" {{.*}} schedule [j by 48 threads 4 fuse "g0", i by 8 fuse "g0", product(i, j, k) tile [8, 3], i, j vector 16 unroll]

// LOOPS:      loop.for p = 0 to 64
// LOOPS-NEXT:   loop.alloc "panels" : memref<3x384x16xf32, "local">
// LOOPS:        loop.tile_product
// LOOPS-NOT:    fetch

builtin.module {
  loop.kernel @codes symbols [m] (%a: tensor<?x384xf32, #sym.dims<m, 384>>, %q: tensor<192x384x16xui8>, %s: tensor<192x16xf32>) -> (tensor<?x3072xf32, #sym.dims<m, 3072>>) {
    %w = loop.nest "panels" [p: parallel 192, k: parallel 384, l: parallel 16] -> tensor<192x384x16xf32> {
      %x = loop.read %q[p, k, l] : i8
      %f = arith.uitofp %x : i8 to f32
      %t = loop.read %s[p, l] : f32
      %v = arith.mulf %f, %t : f32
      loop.yield none %v at [p, k, l]
    }
    %c = loop.nest "product" [i: parallel m, j: parallel 3072, k: reduction 384] -> tensor<?x3072xf32, #sym.dims<m, 3072>> {
      %x = loop.read %a[i, k] : f32
      %y = loop.read %w[j floordiv 16, k, j mod 16] : f32
      %p = arith.mulf %x, %y : f32
      loop.yield add %p at [i, j]
    }
    loop.return %c : tensor<?x3072xf32, #sym.dims<m, 3072>>
  }
}
