// RUN: igniter-opt %s -p lower-to-triton --split-input-file --target=cuda:sm_90 | filecheck %s
// RUN: igniter-opt %s --split-input-file | filecheck %s --check-prefix=SAME

// Factors and results of 16 bits are accessed by descriptors, whose tensors have 0 beyond their ends: there are no masks.
// The first factor has a batch, the second one is stored with the depth last.

// CHECK-LABEL: tt.func @product.0(%{{.*}}: i64, %{{.*}}: !tt.tensordesc<1x16x32xf16>, %{{.*}}: !tt.tensordesc<16x32xf16>, %{{.*}}: !tt.tensordesc<1x16x16xf16>) {
// CHECK-NOT:     tt.load
// CHECK:         scf.for
// CHECK:           %[[A:.*]] = tt.descriptor_load %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] : !tt.tensordesc<1x16x32xf16>
// CHECK-NEXT:      %[[X:.*]] = tt.reshape %[[A]] : tensor<1x16x32xf16> -> tensor<16x32xf16>
// CHECK:           %[[B:.*]] = tt.descriptor_load %{{.*}}[%{{.*}}, %{{.*}}] : !tt.tensordesc<16x32xf16>
// CHECK-NEXT:      %[[W:.*]] = tt.trans %[[B]] {order = array<i32: 1, 0>} : tensor<16x32xf16> -> tensor<32x16xf16>
// CHECK-NEXT:      tt.dot %[[X]], %[[W]], %{{.*}}, inputPrecision = ieee
// CHECK:         %[[S:.*]] = arith.truncf
// CHECK-NEXT:    %[[Y:.*]] = tt.reshape %[[S]] : tensor<16x16xf16> -> tensor<1x16x16xf16>
// CHECK:         tt.descriptor_store %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}], %[[Y]] : !tt.tensordesc<1x16x16xf16>
// CHECK:       loop.func @product
// CHECK-NEXT:    loop.launch @product.0 grid [{{.*}}] warps 1 stages 2 symbols [m] (%x, %w, %{{.*}}) maps [{{\[}}n, m, 64], [1024, 64], [n, m, 1024]]
// SAME: launch warps 1 stages 2 descriptors]
loop.kernel @product symbols [n, m] (%x: tensor<?x?x64xf16, #sym.dims<n, m, 64>>, %w: tensor<1024x64xf16>) -> (tensor<?x?x1024xf16, #sym.dims<n, m, 1024>>) {
  %h = loop.nest "matmul" [b: parallel n, i: parallel m, j: parallel 1024, k: reduction 64] schedule [b grid fuse "l0", i by 16 grid fuse "l0", j by 16 grid fuse "l0", k by 32, i vector 16, j vector 16, k vector 32, launch warps 1 stages 2 descriptors] -> tensor<?x?x1024xf32, #sym.dims<n, m, 1024>> {
    %u = loop.read %x[b, i, k] : f16
    %v = loop.read %w[j, k] : f16
    %s = arith.extf %u : f16 to f32
    %t = arith.extf %v : f16 to f32
    %p = arith.mulf %s, %t : f32
    loop.yield add %p at [b, i, j]
  }
  %y = loop.nest "cast" [b: parallel n, i: parallel m, j: parallel 1024] schedule [b grid fuse "l0", i by 16 grid fuse "l0", j by 16 grid fuse "l0", i vector 16, j vector 16, launch warps 1 stages 2 descriptors] -> tensor<?x?x1024xf16, #sym.dims<n, m, 1024>> {
    %s = loop.read %h[b, i, j] : f32
    %e = arith.truncf %s : f32 to f16
    loop.yield none %e at [b, i, j]
  }
  loop.return %y : tensor<?x?x1024xf16, #sym.dims<n, m, 1024>>
}

// -----

// The strides depend on sizes: if they are no multiples of 16 bytes, or the depth is empty, the host takes a kernel with
// addresses. Results of 32 bits are stored through addresses.

// CHECK-LABEL: tt.func @either.0(%{{.*}}: !tt.ptr<f32>,
// CHECK:         tt.descriptor_load
// CHECK:         tt.store
// CHECK-LABEL: tt.func @either.0.addresses(
// CHECK-NOT:     tt.descriptor_load
// CHECK-LABEL: loop.func @either
// CHECK-NEXT:    loop.if [{{.*}}(d mod 4){{.*}}] {
// CHECK-NEXT:      loop.launch @either.0 {{.*}} maps [{{\[}}64, d], [d, 64]]
// CHECK-NEXT:    }
// CHECK-NEXT:    loop.if [{{.*}}(d mod 4){{.*}}] {
// CHECK-NEXT:      loop.launch @either.0.addresses
loop.kernel @either symbols [d] (%x: tensor<64x?xf32, #sym.dims<64, d>>, %w: tensor<?x64xf32, #sym.dims<d, 64>>) -> (tensor<64x64xf32>) {
  %h = loop.nest "matmul" [i: parallel 64, j: parallel 64, k: reduction d] schedule [i by 16 grid fuse "l0", j by 16 grid fuse "l0", k by 16, i vector 16, j vector 16, k vector 16, launch warps 1 stages 2 tf32 descriptors] -> tensor<64x64xf32> {
    %u = loop.read %x[i, k] : f32
    %v = loop.read %w[k, j] : f32
    %p = arith.mulf %u, %v : f32
    loop.yield add %p at [i, j]
  }
  loop.return %h : tensor<64x64xf32>
}

// -----

// Other warps load the blocks of the loop.

// CHECK-LABEL: tt.func @special.0(
// CHECK:         scf.for
// CHECK:           tt.dot
// CHECK:         } {tt.warp_specialize}
// SAME: launch warps 4 stages 3 descriptors specialized]
loop.kernel @special symbols [] (%x: tensor<256x256xf16>, %w: tensor<256x256xf16>) -> (tensor<256x256xf32>) {
  %h = loop.nest "matmul" [i: parallel 256, j: parallel 256, k: reduction 256] schedule [i by 128 grid fuse "l0", j by 64 grid fuse "l0", k by 64, i vector 128, j vector 64, k vector 64, launch warps 4 stages 3 descriptors specialized] -> tensor<256x256xf32> {
    %u = loop.read %x[i, k] : f16
    %v = loop.read %w[k, j] : f16
    %s = arith.extf %u : f16 to f32
    %t = arith.extf %v : f16 to f32
    %p = arith.mulf %s, %t : f32
    loop.yield add %p at [i, j]
  }
  loop.return %h : tensor<256x256xf32>
}
