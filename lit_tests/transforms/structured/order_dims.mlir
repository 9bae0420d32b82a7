// RUN: igniter-opt %s -p form-rims,order-dims --split-input-file | filecheck %s
// RUN: igniter-opt %s -p form-rims,order-dims --split-input-file --emit=none --remarks 2>&1 | filecheck %s --check-prefix=REMARKS
// RUN: igniter-opt %s -p "order-dims{blocks=true}" --split-input-file | filecheck %s --check-prefix=BLOCKS

// The sums of a convolution lie as its operands do, with the channels last, and so does what reads them; the move to a
// result with the channels last is then no nest of its own, and the zeros around it are what that one leaves.

// CHECK-LABEL: loop.kernel @conv
// CHECK:      %c = loop.nest "conv" [o: parallel 64, y: parallel 8, x: parallel 8, k: reduction 64] -> tensor<8x8x64xf32> {
// CHECK:        loop.yield add %m at [y, x, o]
// CHECK:      %r = loop.nest "relu" [o: parallel 64, y: parallel 8, x: parallel 8] -> tensor<10x10x64xf32> {
// CHECK:        loop.read %c[y, x, o] : f32
// CHECK:        loop.yield none %b_1 at [y + 1, x + 1, o] else 0.000000e+00 : f32
// CHECK-NOT:  loop.nest
// CHECK:      loop.return %r
// REMARKS: remark: order-dims: 'conv' applied: the dim of 'o' is now the last of its result
// REMARKS: remark: order-dims: 'relu' applied: the dim of 'o' is now the last of its result
builtin.module {
  loop.kernel @conv symbols [] (%x: tensor<8x8x64xf32>, %w: tensor<64x64xf32>) -> (tensor<10x10x64xf32>) {
    %c = loop.nest "conv" [o: parallel 64, y: parallel 8, x: parallel 8, k: reduction 64] -> tensor<64x8x8xf32> {
      %a = loop.read %x[y, x, k] : f32
      %b = loop.read %w[k, o] : f32
      %m = arith.mulf %a, %b : f32
      loop.yield add %m at [o, y, x]
    }
    %r = loop.nest "relu" [o: parallel 64, y: parallel 8, x: parallel 8] -> tensor<64x8x8xf32> {
      %a = loop.read %c[o, y, x] : f32
      %z = arith.constant 0.0 : f32
      %b = arith.maximumf %a, %z : f32
      loop.yield none %b at [o, y, x]
    }
    %p = loop.nest "pad" [y: parallel 10, x: parallel 10, o: parallel 64] -> tensor<10x10x64xf32> {
      %a = loop.read %r[o, y - 1, x - 1] if [y - 1, -y + 8, x - 1, -x + 8] : f32
      loop.yield none %a at [y, x, o]
    }
    loop.return %p : tensor<10x10x64xf32>
  }
}

// -----

// Where some reads lie side by side along one axis and others along another, the order is as good as any other; a tensor
// that is seen through a view keeps it, and so does a result of the kernel.

// CHECK-LABEL: loop.kernel @kept
// CHECK:      %t = loop.nest "transposed" {{.*}} -> tensor<8x64xf32>
// CHECK:        loop.yield none %s at [i, j]
// CHECK:      %u = loop.nest "viewed" {{.*}} -> tensor<8x64xf32>
// CHECK:        loop.yield none %a_1 at [i, j]
// CHECK:      %r = loop.nest "result" {{.*}} -> tensor<8x64xf32>
// CHECK:        loop.yield none %d at [i, j]
builtin.module {
  loop.kernel @kept symbols [] (%x: tensor<64x8xf32>, %y: tensor<8x64xf32>) -> (tensor<8x64xf32>) {
    %t = loop.nest "transposed" [i: parallel 8, j: parallel 64] -> tensor<8x64xf32> {
      %a = loop.read %x[j, i] : f32
      %b = loop.read %y[i, j] : f32
      %s = arith.addf %a, %b : f32
      loop.yield none %s at [i, j]
    }
    %u = loop.nest "viewed" [i: parallel 8, j: parallel 64] -> tensor<8x64xf32> {
      %a = loop.read %x[j, i] : f32
      loop.yield none %a at [i, j]
    }
    %v = loop.view %u : tensor<8x64xf32> to tensor<512xf32>
    %r = loop.nest "result" [i: parallel 8, j: parallel 64] -> tensor<8x64xf32> {
      %a = loop.read %x[j, i] : f32
      %b = loop.read %t[i, j] : f32
      %c = loop.read %v[64*i + j] : f32
      %s = arith.addf %a, %b : f32
      %d = arith.addf %s, %c : f32
      loop.yield none %d at [i, j]
    }
    loop.return %r : tensor<8x64xf32>
  }
}

// -----

// A contraction of bytes multiplies four steps of depth together: they lie side by side in what is computed for it,
// whichever way that reads.

// CHECK-LABEL: loop.kernel @bytes
// CHECK:      loop.nest "codes" {{.*}} -> tensor<8x8x4xui8> {
// CHECK:        loop.yield none %{{.*}} at [y, x, c]
// CHECK:      loop.read %{{.*}}[y, x, c] : i8
// REMARKS: remark: order-dims: 'codes' applied: the dim that 'conv' multiplies in groups is now the last of its result
builtin.module {
  loop.kernel @bytes symbols [] (%x: tensor<4x8x8xui8>, %w: tensor<1x1x16x4xi8>) -> (tensor<8x8x16xi32>) {
    %q = loop.nest "codes" [c: parallel 4, y: parallel 8, x: parallel 8] -> tensor<4x8x8xui8> {
      %a = loop.read %x[c, y, x] : i8
      %b = arith.addi %a, %a : i8
      loop.yield none %b at [c, y, x]
    }
    %s = loop.nest "conv" [y: parallel 8, x: parallel 8, o: parallel 16, c: reduction 4] -> tensor<8x8x16xi32> {
      %a = loop.read %q[c, y, x] : i8
      %b = loop.read %w[o floordiv 16, 0, o mod 16, c] : i8
      %d = arith.extui %a : i8 to i32
      %e = arith.extsi %b : i8 to i32
      %m = arith.muli %d, %e : i32
      loop.yield add %m at [y, x, o]
    }
    loop.return %s : tensor<8x8x16xi32>
  }
}

// -----

// A convolution sums the channels of a place together: an image that its kernel computes has them last. The output
// channels of a computed weight, which become its columns, are the last dim of the result.

// CHECK-LABEL: loop.kernel @image
// CHECK:      loop.nest "image" {{.*}} -> tensor<8x8x4xf32> {
// CHECK:        loop.yield none %{{.*}} at [y, x, c]
// CHECK:      loop.nest "conv" {{.*}} -> tensor<6x6x24xf32> {
// CHECK:        loop.read %{{.*}}[u + y, v + x, c] : f32
// CHECK:        loop.yield add %{{.*}} at [y, x, o]
// REMARKS: remark: order-dims: 'image' applied: the dim that 'conv' sums with a window is now the last of its result
// REMARKS: remark: order-dims: 'conv' applied: the dim of 'o' is now the last of its result
builtin.module {
  loop.kernel @image symbols [] (%x: tensor<4x8x8xf32>, %w: tensor<24x4x3x3xf32>) -> (tensor<24x6x6xf32>) {
    %q = loop.nest "image" [c: parallel 4, y: parallel 8, x: parallel 8] -> tensor<4x8x8xf32> {
      %a = loop.read %x[c, y, x] : f32
      %b = math.exp %a : f32
      loop.yield none %b at [c, y, x]
    }
    %s = loop.nest "conv" [o: parallel 24, y: parallel 6, x: parallel 6, c: reduction 4, u: reduction 3, v: reduction 3] -> tensor<24x6x6xf32> {
      %a = loop.read %q[c, y + u, x + v] : f32
      %b = loop.read %w[o, c, u, v] : f32
      %m = arith.mulf %a, %b : f32
      loop.yield add %m at [o, y, x]
    }
    %r = loop.nest "double" [o: parallel 24, y: parallel 6, x: parallel 6] -> tensor<24x6x6xf32> {
      %a = loop.read %s[o, y, x] : f32
      %b = arith.addf %a, %a : f32
      loop.yield none %b at [o, y, x]
    }
    loop.return %r : tensor<24x6x6xf32>
  }
}

// -----

// For programs on blocks, groups and columns of an implicit product go behind its rows, whatever the order of the
// weight; its move to channels last is then no nest of its own.

// BLOCKS-LABEL: loop.kernel @rows
// BLOCKS:       loop.nest "conv" {{.*}} -> tensor<2x6x6x4x16xf32> {
// BLOCKS:         loop.yield add %{{.*}} at [n, y, x, g, o]
// BLOCKS-NEXT:  }
// BLOCKS-NEXT:  loop.return
builtin.module {
  loop.kernel @rows symbols [] (%x: tensor<2x8x8x4x16xf32>, %w: tensor<4x16x3x3x16xf32>) -> (tensor<2x6x6x4x16xf32>) {
    %s = loop.nest "conv" [n: parallel 2, g: parallel 4, o: parallel 16, y: parallel 6, x: parallel 6, c: reduction 16, u: reduction 3, v: reduction 3] -> tensor<2x4x16x6x6xf32> {
      %a = loop.read %x[n, y + u, x + v, g, c] : f32
      %b = loop.read %w[g, o, u, v, c] : f32
      %m = arith.mulf %a, %b : f32
      loop.yield add %m at [n, g, o, y, x]
    }
    %r = loop.nest "move" [n: parallel 2, y: parallel 6, x: parallel 6, g: parallel 4, o: parallel 16] -> tensor<2x6x6x4x16xf32> {
      %a = loop.read %s[n, g, o, y, x] : f32
      loop.yield none %a at [n, y, x, g, o]
    }
    loop.return %r : tensor<2x6x6x4x16xf32>
  }
}

// -----

// A view fixes the order of the dims, and a nest sums over it: the convolution writes its channels last, and a nest
// moves them to the order of the view.
// CHECK-LABEL: loop.kernel @sums_of_groups
// CHECK: %[[C:.*]] = loop.nest "conv" {{.*}} -> tensor<32x32x32xf32>
// CHECK: loop.yield add %{{.*}} at [y, x, o]
// CHECK: %[[M:.*]] = loop.nest "conv.move" {{.*}} -> tensor<32x32x32xf32>
// CHECK-NEXT: loop.read %[[C]][i1, i2, i0] : f32
// CHECK-NEXT: loop.yield none %{{.*}} at [i0, i1, i2]
// CHECK: loop.view %[[M]]
loop.kernel @sums_of_groups symbols [] (%x: tensor<32x32x8xf32>, %w: tensor<8x32xf32>) -> (tensor<8xf32>) {
  %c = loop.nest "conv" [o: parallel 32, y: parallel 32, x: parallel 32, k: reduction 8] -> tensor<32x32x32xf32> {
    %a = loop.read %x[y, x, k] : f32
    %b = loop.read %w[k, o] : f32
    %p = arith.mulf %a, %b : f32
    loop.yield add %p at [o, y, x]
  }
  %v = loop.view %c : tensor<32x32x32xf32> to tensor<8x4096xf32>
  %s = loop.nest "sum" [g: parallel 8, r: reduction 4096] -> tensor<8xf32> {
    %a = loop.read %v[g, r] : f32
    loop.yield add %a at [g]
  }
  loop.return %s : tensor<8xf32>
}

// -----

// Without a sum the view is read in any order: there is no copy.
// CHECK-LABEL: loop.kernel @shuffled
// CHECK-NOT: "conv.move"
// CHECK: loop.return
loop.kernel @shuffled symbols [] (%x: tensor<32x32x8xf32>, %w: tensor<8x32xf32>) -> (tensor<32x32x4x8xf32>) {
  %c = loop.nest "conv" [o: parallel 32, y: parallel 32, x: parallel 32, k: reduction 8] -> tensor<32x32x32xf32> {
    %a = loop.read %x[y, x, k] : f32
    %b = loop.read %w[k, o] : f32
    %p = arith.mulf %a, %b : f32
    loop.yield add %p at [o, y, x]
  }
  %v = loop.view %c : tensor<32x32x32xf32> to tensor<8x4x32x32xf32>
  %t = loop.nest "transpose" [y: parallel 32, x: parallel 32, b: parallel 4, a: parallel 8] -> tensor<32x32x4x8xf32> {
    %e = loop.read %v[a, b, y, x] : f32
    %n = arith.negf %e : f32
    loop.yield none %n at [y, x, b, a]
  }
  loop.return %t : tensor<32x32x4x8xf32>
}
