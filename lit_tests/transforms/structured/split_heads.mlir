// RUN: igniter-opt %s -p split-heads --split-input-file | filecheck %s
// RUN: igniter-opt %s -p split-heads,canonicalize-loop --split-input-file | igniter-opt --split-input-file --emit=none

// Four query heads share a head of keys: they become the rows of both products, in every nest of the attention and in
// the one that reads its result.

// CHECK-LABEL: loop.kernel @shared
// CHECK:         %[[S:.*]] = loop.nest "scores" [h_0: parallel 8, h_1: parallel 4, j: parallel t, d: reduction 64] -> tensor<8x4x?xf32, #sym.dims<8, 4, t>>
// CHECK-NEXT:      loop.read %q[4*h_0 + h_1, d] : f16
// CHECK:           loop.read %k[h_0, j, d] : f16
// CHECK:           loop.yield add %{{.*}} at [h_0, h_1, j]
// CHECK:         %[[M:.*]] = loop.nest "max" [h_0: parallel 8, h_1: parallel 4, j: reduction t]
// CHECK-NEXT:      loop.read %[[S]][h_0, h_1, j] : f32
// CHECK:         loop.nest "exp" [h_0: parallel 8, h_1: parallel 4, j: parallel t]
// CHECK-NEXT:      loop.read %[[S]][h_0, h_1, j] : f32
// CHECK-NEXT:      loop.read %[[M]][h_0, h_1, 0] : f32
// CHECK:         loop.nest "sum" [h_0: parallel 8, h_1: parallel 4, j: reduction t]
// CHECK:         %[[V:.*]] = loop.nest "values" [h_0: parallel 8, h_1: parallel 4, f: parallel 64, j: reduction t]
// CHECK:           loop.read %v[h_0, j, f] : f16
// CHECK:         %[[O:.*]] = loop.nest "round" [h_0: parallel 8, h_1: parallel 4, f: parallel 64] -> tensor<8x4x64xf16>
// CHECK-NEXT:      loop.read %[[V]][h_0, h_1, f] : f32
// CHECK:         %[[R:.*]] = loop.view %[[O]] : tensor<8x4x64xf16> to tensor<32x64xf16>
// CHECK-NEXT:    loop.return %[[R]]
loop.kernel @shared symbols [t] (%q: tensor<32x64xf16>, %k: tensor<8x?x64xf16, #sym.dims<8, t, 64>>, %v: tensor<8x?x64xf16, #sym.dims<8, t, 64>>) -> (tensor<32x64xf16>) {
  %scores = loop.nest "scores" [h: parallel 32, j: parallel t, d: reduction 64] -> tensor<32x?xf32, #sym.dims<32, t>> {
    %a = loop.read %q[h, d] : f16
    %aw = arith.extf %a : f16 to f32
    %b = loop.read %k[(h floordiv 4), j, d] : f16
    %bw = arith.extf %b : f16 to f32
    %p = arith.mulf %aw, %bw : f32
    loop.yield add %p at [h, j]
  }
  %max = loop.nest "max" [h: parallel 32, j: reduction t] -> tensor<32x1xf32> {
    %x = loop.read %scores[h, j] : f32
    loop.yield max %x at [h, 0]
  }
  %e = loop.nest "exp" [h: parallel 32, j: parallel t] -> tensor<32x?xf32, #sym.dims<32, t>> {
    %x = loop.read %scores[h, j] : f32
    %m = loop.read %max[h, 0] : f32
    %z = arith.subf %x, %m : f32
    %y = math.exp %z : f32
    loop.yield none %y at [h, j]
  }
  %sum = loop.nest "sum" [h: parallel 32, j: reduction t] -> tensor<32x1xf32> {
    %x = loop.read %e[h, j] : f32
    loop.yield add %x at [h, 0]
  }
  %w = loop.nest "weights" [h: parallel 32, j: parallel t] -> tensor<32x?xf32, #sym.dims<32, t>> {
    %x = loop.read %e[h, j] : f32
    %l = loop.read %sum[h, 0] : f32
    %y = arith.divf %x, %l : f32
    loop.yield none %y at [h, j]
  }
  %o = loop.nest "values" [h: parallel 32, f: parallel 64, j: reduction t] -> tensor<32x64xf32> {
    %x = loop.read %w[h, j] : f32
    %y = loop.read %v[(h floordiv 4), j, f] : f16
    %yw = arith.extf %y : f16 to f32
    %p = arith.mulf %x, %yw : f32
    loop.yield add %p at [h, f]
  }
  %r = loop.nest "round" [h: parallel 32, f: parallel 64] -> tensor<32x64xf16> {
    %x = loop.read %o[h, f] : f32
    %y = arith.truncf %x : f32 to f16
    loop.yield none %y at [h, f]
  }
  loop.return %r : tensor<32x64xf16>
}

// -----

// Refused: factors of f32, which are multiplied without tensor cores; heads that share nothing.

// CHECK-LABEL: loop.kernel @singles
// CHECK:         loop.nest "scores" [h: parallel 32, j: parallel t, d: reduction 64]
loop.kernel @singles symbols [t] (%q: tensor<32x64xf32>, %k: tensor<8x?x64xf32, #sym.dims<8, t, 64>>, %v: tensor<8x?x64xf32, #sym.dims<8, t, 64>>) -> (tensor<32x64xf32>) {
  %scores = loop.nest "scores" [h: parallel 32, j: parallel t, d: reduction 64] -> tensor<32x?xf32, #sym.dims<32, t>> {
    %a = loop.read %q[h, d] : f32
    %b = loop.read %k[(h floordiv 4), j, d] : f32
    %p = arith.mulf %a, %b : f32
    loop.yield add %p at [h, j]
  }
  %max = loop.nest "max" [h: parallel 32, j: reduction t] -> tensor<32x1xf32> {
    %x = loop.read %scores[h, j] : f32
    loop.yield max %x at [h, 0]
  }
  %e = loop.nest "exp" [h: parallel 32, j: parallel t] -> tensor<32x?xf32, #sym.dims<32, t>> {
    %x = loop.read %scores[h, j] : f32
    %m = loop.read %max[h, 0] : f32
    %z = arith.subf %x, %m : f32
    %y = math.exp %z : f32
    loop.yield none %y at [h, j]
  }
  %sum = loop.nest "sum" [h: parallel 32, j: reduction t] -> tensor<32x1xf32> {
    %x = loop.read %e[h, j] : f32
    loop.yield add %x at [h, 0]
  }
  %w = loop.nest "weights" [h: parallel 32, j: parallel t] -> tensor<32x?xf32, #sym.dims<32, t>> {
    %x = loop.read %e[h, j] : f32
    %l = loop.read %sum[h, 0] : f32
    %y = arith.divf %x, %l : f32
    loop.yield none %y at [h, j]
  }
  %o = loop.nest "values" [h: parallel 32, f: parallel 64, j: reduction t] -> tensor<32x64xf32> {
    %x = loop.read %w[h, j] : f32
    %y = loop.read %v[(h floordiv 4), j, f] : f32
    %p = arith.mulf %x, %y : f32
    loop.yield add %p at [h, f]
  }
  loop.return %o : tensor<32x64xf32>
}

// -----

// CHECK-LABEL: loop.kernel @own
// CHECK:         loop.nest "scores" [h: parallel 32, j: parallel t, d: reduction 64]
loop.kernel @own symbols [t] (%q: tensor<32x64xf16>, %k: tensor<32x?x64xf16, #sym.dims<32, t, 64>>, %v: tensor<32x?x64xf16, #sym.dims<32, t, 64>>) -> (tensor<32x64xf16>) {
  %scores = loop.nest "scores" [h: parallel 32, j: parallel t, d: reduction 64] -> tensor<32x?xf32, #sym.dims<32, t>> {
    %a = loop.read %q[h, d] : f16
    %aw = arith.extf %a : f16 to f32
    %b = loop.read %k[h, j, d] : f16
    %bw = arith.extf %b : f16 to f32
    %p = arith.mulf %aw, %bw : f32
    loop.yield add %p at [h, j]
  }
  %max = loop.nest "max" [h: parallel 32, j: reduction t] -> tensor<32x1xf32> {
    %x = loop.read %scores[h, j] : f32
    loop.yield max %x at [h, 0]
  }
  %e = loop.nest "exp" [h: parallel 32, j: parallel t] -> tensor<32x?xf32, #sym.dims<32, t>> {
    %x = loop.read %scores[h, j] : f32
    %m = loop.read %max[h, 0] : f32
    %z = arith.subf %x, %m : f32
    %y = math.exp %z : f32
    loop.yield none %y at [h, j]
  }
  %sum = loop.nest "sum" [h: parallel 32, j: reduction t] -> tensor<32x1xf32> {
    %x = loop.read %e[h, j] : f32
    loop.yield add %x at [h, 0]
  }
  %w = loop.nest "weights" [h: parallel 32, j: parallel t] -> tensor<32x?xf32, #sym.dims<32, t>> {
    %x = loop.read %e[h, j] : f32
    %l = loop.read %sum[h, 0] : f32
    %y = arith.divf %x, %l : f32
    loop.yield none %y at [h, j]
  }
  %o = loop.nest "values" [h: parallel 32, f: parallel 64, j: reduction t] -> tensor<32x64xf32> {
    %x = loop.read %w[h, j] : f32
    %y = loop.read %v[h, j, f] : f16
    %yw = arith.extf %y : f16 to f32
    %p = arith.mulf %x, %yw : f32
    loop.yield add %p at [h, f]
  }
  %r = loop.nest "round" [h: parallel 32, f: parallel 64] -> tensor<32x64xf16> {
    %x = loop.read %o[h, f] : f32
    %y = arith.truncf %x : f32 to f16
    loop.yield none %y at [h, f]
  }
  loop.return %r : tensor<32x64xf16>
}
