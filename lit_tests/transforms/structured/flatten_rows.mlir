// RUN: igniter-opt %s -p flatten-rows --split-input-file | filecheck %s
// RUN: igniter-opt %s -p flatten-rows,collapse-axes,canonicalize-loop --split-input-file | igniter-opt --split-input-file --emit=none

// The height and the width of an image are the rows of one factor, and side by side in the result.

// CHECK:      loop.kernel @conv
// CHECK:        %[[SUM:[0-9]+]] = loop.nest "conv" [n: parallel b, c: parallel 64, y_x: parallel 196, d: reduction 32, i: reduction 3, j: reduction 3] -> tensor<?x64x196xf32
// CHECK-NEXT:     loop.read %{{.*}}[c, d, i, j] : f32
// CHECK-NEXT:     loop.read %{{.*}}[n, d, i + (y_x floordiv 14) - 1, j + (y_x mod 14) - 1] if [i + (y_x floordiv 14) - 1, -i - (y_x floordiv 14) + 14, j + (y_x mod 14) - 1, -j - (y_x mod 14) + 14] : f32
// CHECK:          loop.yield add %{{.*}} at [n, c, y_x]
// CHECK:        %[[VIEW:[0-9]+]] = loop.view %[[SUM]] : tensor<?x64x196xf32, #sym.dims<b, 64, 196>> to tensor<?x64x14x14xf32
// CHECK-NEXT:   loop.return %[[VIEW]]
loop.kernel @conv symbols [b] (%x: tensor<?x32x14x14xf32, #sym.dims<b, 32, 14, 14>>, %w: tensor<64x32x3x3xf32>) -> (tensor<?x64x14x14xf32, #sym.dims<b, 64, 14, 14>>) {
  %0 = loop.nest "conv" [n: parallel b, c: parallel 64, y: parallel 14, x: parallel 14, d: reduction 32, i: reduction 3, j: reduction 3] -> tensor<?x64x14x14xf32, #sym.dims<b, 64, 14, 14>> {
    %1 = loop.read %w[c, d, i, j] : f32
    %2 = loop.read %x[n, d, y + i - 1, x + j - 1] if [y + i - 1, 14 - y - i, x + j - 1, 14 - x - j] : f32
    %3 = arith.mulf %1, %2 : f32
    loop.yield add %3 at [n, c, y, x]
  }
  loop.return %0 : tensor<?x64x14x14xf32, #sym.dims<b, 64, 14, 14>>
}

// -----

// Three of them, of sizes that only a run knows. Without a window the image is read by the joined axis.

// CHECK:      loop.kernel @volume
// CHECK:        %[[IMAGE:[0-9]+]] = loop.view %x : tensor<16x?x?x?xf32, #sym.dims<16, t, h, w>> to tensor<16x?xf32, #sym.dims<16, h*t*w>>
// CHECK:        loop.nest "conv" [c: parallel 16, z_y_x: parallel h*t*w, d: reduction 16] -> tensor<16x?xf32, #sym.dims<16, h*t*w>>
// CHECK:          loop.read %[[IMAGE]][d, z_y_x] : f32
loop.kernel @volume symbols [t, h, w] (%x: tensor<16x?x?x?xf32, #sym.dims<16, t, h, w>>, %w: tensor<16x16xf32>) -> (tensor<16x?x?x?xf32, #sym.dims<16, t, h, w>>) {
  %0 = loop.nest "conv" [c: parallel 16, z: parallel t, y: parallel h, x: parallel w, d: reduction 16] -> tensor<16x?x?x?xf32, #sym.dims<16, t, h, w>> {
    %1 = loop.read %w[c, d] : f32
    %2 = loop.read %x[d, z, y, x] : f32
    %3 = arith.mulf %1, %2 : f32
    loop.yield add %3 at [c, z, y, x]
  }
  loop.return %0 : tensor<16x?x?x?xf32, #sym.dims<16, t, h, w>>
}

// -----

// A depthwise convolution multiplies no two blocks; a product of rows has one axis of them.

// CHECK:      loop.kernel @others
// CHECK:        loop.nest "depthwise" [c: parallel 64, y: parallel 14, x: parallel 14, i: reduction 3]
// CHECK:        loop.nest "matmul" [y: parallel 14, x: parallel 14, d: reduction 16]
loop.kernel @others symbols [] (%x: tensor<64x16x16xf32>, %w: tensor<64x3xf32>, %a: tensor<14x16xf32>, %b: tensor<16x14xf32>) -> (tensor<64x14x14xf32>, tensor<14x14xf32>) {
  %0 = loop.nest "depthwise" [c: parallel 64, y: parallel 14, x: parallel 14, i: reduction 3] -> tensor<64x14x14xf32> {
    %1 = loop.read %w[c, i] : f32
    %2 = loop.read %x[c, y, x + i] : f32
    %3 = arith.mulf %1, %2 : f32
    loop.yield add %3 at [c, y, x]
  }
  %4 = loop.nest "matmul" [y: parallel 14, x: parallel 14, d: reduction 16] -> tensor<14x14xf32> {
    %5 = loop.read %a[y, d] : f32
    %6 = loop.read %b[d, x] : f32
    %7 = arith.mulf %5, %6 : f32
    loop.yield add %7 at [y, x]
  }
  loop.return %0, %4 : tensor<64x14x14xf32>, tensor<14x14xf32>
}

// -----

// The products of an attention go along the axes that all of it goes along.

// CHECK:      loop.kernel @attention
// CHECK:        loop.nest "scores" [h: parallel 4, i: parallel s, j: parallel t, d: reduction 16]
// CHECK:        loop.nest "values" [h: parallel 4, i: parallel s, f: parallel 16, j: reduction t]
loop.kernel @attention symbols [s, t] (%q: tensor<4x?x16xf32, #sym.dims<4, s, 16>>, %k: tensor<?x16xf32, #sym.dims<t, 16>>, %v: tensor<?x16xf32, #sym.dims<t, 16>>) -> (tensor<4x?x16xf32, #sym.dims<4, s, 16>>) {
  %scores = loop.nest "scores" [h: parallel 4, i: parallel s, j: parallel t, d: reduction 16] -> tensor<4x?x?xf32, #sym.dims<4, s, t>> {
    %a = loop.read %q[h, i, d] : f32
    %b = loop.read %k[j, d] : f32
    %p = arith.mulf %a, %b : f32
    loop.yield add %p at [h, i, j]
  }
  %max = loop.nest "max" [h: parallel 4, i: parallel s, j: reduction t] -> tensor<4x?x1xf32, #sym.dims<4, s, 1>> {
    %x = loop.read %scores[h, i, j] : f32
    loop.yield max %x at [h, i, 0]
  }
  %e = loop.nest "exp" [h: parallel 4, i: parallel s, j: parallel t] -> tensor<4x?x?xf32, #sym.dims<4, s, t>> {
    %x = loop.read %scores[h, i, j] : f32
    %m = loop.read %max[h, i, 0] : f32
    %z = arith.subf %x, %m : f32
    %y = math.exp %z : f32
    loop.yield none %y at [h, i, j]
  }
  %o = loop.nest "values" [h: parallel 4, i: parallel s, f: parallel 16, j: reduction t] -> tensor<4x?x16xf32, #sym.dims<4, s, 16>> {
    %x = loop.read %e[h, i, j] : f32
    %y = loop.read %v[j, f] : f32
    %p = arith.mulf %x, %y : f32
    loop.yield add %p at [h, i, f]
  }
  loop.return %o : tensor<4x?x16xf32, #sym.dims<4, s, 16>>
}

// -----

// The elementwise reader of the result joins the same axes, even if a pool of stride 2 reads its own result.

// CHECK:      loop.kernel @readers
// CHECK:        %[[SUM:[0-9]+]] = loop.nest "conv" [n_y_x: parallel 64*b, o: parallel 32, d: reduction 16]
// CHECK:        loop.nest "bias" [n_y_x: parallel 64*b, o: parallel 32]
// CHECK-NEXT:     loop.read %[[SUM]][n_y_x, o] : f32
// CHECK-NEXT:     loop.read %{{.*}}[o] : f32
// CHECK:          loop.yield none %{{.*}} at [n_y_x, o]
// CHECK:        loop.nest "pool" [n: parallel b, y: parallel 4, x: parallel 8, o: parallel 32, i: reduction 2]
loop.kernel @readers symbols [b] (%x: tensor<?x8x8x16xf32, #sym.dims<b, 8, 8, 16>>, %w: tensor<16x32xf32>, %c: tensor<32xf32>) -> (tensor<?x4x8x32xf32, #sym.dims<b, 4, 8, 32>>) {
  %0 = loop.nest "conv" [n: parallel b, y: parallel 8, x: parallel 8, o: parallel 32, d: reduction 16] -> tensor<?x8x8x32xf32, #sym.dims<b, 8, 8, 32>> {
    %1 = loop.read %w[d, o] : f32
    %2 = loop.read %x[n, y, x, d] : f32
    %3 = arith.mulf %1, %2 : f32
    loop.yield add %3 at [n, y, x, o]
  }
  %4 = loop.nest "bias" [n: parallel b, y: parallel 8, x: parallel 8, o: parallel 32] -> tensor<?x8x8x32xf32, #sym.dims<b, 8, 8, 32>> {
    %5 = loop.read %0[n, y, x, o] : f32
    %6 = loop.read %c[o] : f32
    %7 = arith.addf %5, %6 : f32
    loop.yield none %7 at [n, y, x, o]
  }
  %8 = loop.nest "pool" [n: parallel b, y: parallel 4, x: parallel 8, o: parallel 32, i: reduction 2] -> tensor<?x4x8x32xf32, #sym.dims<b, 4, 8, 32>> {
    %9 = loop.read %4[n, 2*y + i, x, o] : f32
    loop.yield max %9 at [n, y, x, o]
  }
  loop.return %8 : tensor<?x4x8x32xf32, #sym.dims<b, 4, 8, 32>>
}
