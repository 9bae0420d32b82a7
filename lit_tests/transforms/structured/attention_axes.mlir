// RUN: igniter-opt %s -p "split-axes{sums=true},inline-nests,collapse-axes{attention=true},canonicalize-loop" | filecheck %s
// RUN: igniter-opt %s -p split-axes,inline-nests,collapse-axes,canonicalize-loop | filecheck %s --check-prefix=ALONE

// Four heads of queries share each head of keys. With `sums`, what is made of the sums of rows gets the two axes of heads,
// too; with `attention` both products keep the axes that the mask keeps apart.

// CHECK:      loop.nest "matmul" [i0: parallel d0, i1_0: parallel 2, i1_1: parallel 4, i2: parallel d2, i3: parallel d1, r0: reduction 16]
// CHECK:      loop.nest "softmax.max" [i0: parallel d0, i1_0: parallel 2, i1_1: parallel 4, i2: parallel d2, r0: reduction d1]
// CHECK:      loop.nest "softmax.floor" [i0: parallel d0, i1_0: parallel 2, i1_1: parallel 4, i2: parallel d2]
// CHECK:      loop.nest "softmax.inverse" [i0: parallel d0, i1_0: parallel 2, i1_1: parallel 4, i2: parallel d2]
// CHECK:      loop.nest "matmul_1" [i0: parallel d0, i1_0: parallel 2, i1_1: parallel 4, i2: parallel d2, i3: parallel 16, r0: reduction d1]

// ALONE:      loop.nest "softmax.floor" [i0: parallel d0, i1: parallel 8, i2: parallel d2]
// ALONE:      loop.nest "matmul_1" [i0_i1_0: parallel 2*d0, i1_1_i2: parallel 4*d2, i3: parallel 16, r0: reduction d1]
loop.kernel @r0 symbols [d0, d1, d2] (%0: tensor<?x2x?x16xf32, #sym.dims<d0, 2, d1, 16>>, %1: tensor<?x2x?x16xf32, #sym.dims<d0, 2, d1, 16>>, %2: tensor<?x8x?x16xf32, #sym.dims<d0, 8, d2, 16>>, %3: tensor<?x?xi1, #sym.dims<d2, d1>>) -> (tensor<?x8x?x16xf32, #sym.dims<d0, 8, d2, 16>>) requires [
  1 <= 128*d0 "the input cannot be reshaped to the requested shape" node 2] {
  %4 = loop.view %0 : tensor<?x2x?x16xf32, #sym.dims<d0, 2, d1, 16>> to tensor<?x2x1x?x16xf32, #sym.dims<d0, 2, 1, d1, 16>>
  %5 = loop.nest "expand" [i0: parallel d0, i1: parallel 2, i2: parallel 4, i3: parallel d1, i4: parallel 16] -> tensor<?x2x4x?x16xf32, #sym.dims<d0, 2, 4, d1, 16>> {
    %6 = loop.read %4[i0, i1, 0, i3, i4] : f32
    loop.yield none %6 at [i0, i1, i2, i3, i4]
  }
  %7 = loop.view %5 : tensor<?x2x4x?x16xf32, #sym.dims<d0, 2, 4, d1, 16>> to tensor<?x8x?x16xf32, #sym.dims<d0, 8, d1, 16>>
  %8 = loop.view %1 : tensor<?x2x?x16xf32, #sym.dims<d0, 2, d1, 16>> to tensor<?x2x1x?x16xf32, #sym.dims<d0, 2, 1, d1, 16>>
  %9 = loop.nest "expand_1" [i0: parallel d0, i1: parallel 2, i2: parallel 4, i3: parallel d1, i4: parallel 16] -> tensor<?x2x4x?x16xf32, #sym.dims<d0, 2, 4, d1, 16>> {
    %10 = loop.read %8[i0, i1, 0, i3, i4] : f32
    loop.yield none %10 at [i0, i1, i2, i3, i4]
  }
  %11 = loop.view %9 : tensor<?x2x4x?x16xf32, #sym.dims<d0, 2, 4, d1, 16>> to tensor<?x8x?x16xf32, #sym.dims<d0, 8, d1, 16>>
  %12 = loop.nest "transpose" [i0: parallel d0, i1: parallel 8, i2: parallel 16, i3: parallel d1] -> tensor<?x8x16x?xf32, #sym.dims<d0, 8, 16, d1>> {
    %13 = loop.read %7[i0, i1, i3, i2] : f32
    loop.yield none %13 at [i0, i1, i2, i3]
  }
  %14 = loop.nest "matmul" [i0: parallel d0, i1: parallel 8, i2: parallel d2, i3: parallel d1, r0: reduction 16] -> tensor<?x8x?x?xf32, #sym.dims<d0, 8, d2, d1>> {
    %15 = loop.read %2[i0, i1, i2, r0] : f32
    %16 = loop.read %12[i0, i1, r0, i3] : f32
    %17 = arith.mulf %15, %16 : f32
    loop.yield add %17 at [i0, i1, i2, i3]
  }
  %18 = loop.nest "mul" [i0: parallel d0, i1: parallel 8, i2: parallel d2, i3: parallel d1] -> tensor<?x8x?x?xf32, #sym.dims<d0, 8, d2, d1>> {
    %19 = loop.read %14[i0, i1, i2, i3] : f32
    %20 = arith.constant 2.500000e-01 : f32
    %21 = arith.mulf %19, %20 : f32
    loop.yield none %21 at [i0, i1, i2, i3]
  }
  %22 = loop.nest "where" [i0: parallel d0, i1: parallel 8, i2: parallel d2, i3: parallel d1] -> tensor<?x8x?x?xf32, #sym.dims<d0, 8, d2, d1>> {
    %23 = loop.read %3[i2, i3] : i1
    %24 = loop.read %18[i0, i1, i2, i3] : f32
    %25 = arith.constant -3.40282347e+38 : f32
    %26 = arith.select %23, %24, %25 : f32
    loop.yield none %26 at [i0, i1, i2, i3]
  }
  %27 = loop.nest "softmax.max" [i0: parallel d0, i1: parallel 8, i2: parallel d2, r0: reduction d1] -> tensor<?x8x?x1xf32, #sym.dims<d0, 8, d2, 1>> {
    %28 = loop.read %22[i0, i1, i2, r0] : f32
    loop.yield max %28 at [i0, i1, i2, 0]
  }
  %29 = loop.nest "softmax.floor" [i0: parallel d0, i1: parallel 8, i2: parallel d2] -> tensor<?x8x?x1xf32, #sym.dims<d0, 8, d2, 1>> {
    %30 = loop.read %27[i0, i1, i2, 0] : f32
    %31 = loop.index max(1, d1) : i64
    %32 = arith.sitofp %31 : i64 to f32
    %33 = math.log %32 : f32
    %34 = arith.addf %30, %33 : f32
    loop.yield none %34 at [i0, i1, i2, 0]
  }
  %35 = loop.nest "softmax.exp" [i0: parallel d0, i1: parallel 8, i2: parallel d2, i3: parallel d1] -> tensor<?x8x?x?xf32, #sym.dims<d0, 8, d2, d1>> {
    %36 = loop.read %22[i0, i1, i2, i3] : f32
    %37 = loop.read %29[i0, i1, i2, 0] : f32
    %38 = arith.subf %36, %37 : f32
    %39 = math.exp %38 : f32
    loop.yield none %39 at [i0, i1, i2, i3]
  }
  %40 = loop.nest "softmax.sum" [i0: parallel d0, i1: parallel 8, i2: parallel d2, r0: reduction d1] -> tensor<?x8x?x1xf32, #sym.dims<d0, 8, d2, 1>> {
    %41 = loop.read %35[i0, i1, i2, r0] : f32
    loop.yield add %41 at [i0, i1, i2, 0]
  }
  %42 = loop.nest "softmax.inverse" [i0: parallel d0, i1: parallel 8, i2: parallel d2] -> tensor<?x8x?x1xf32, #sym.dims<d0, 8, d2, 1>> {
    %43 = loop.read %40[i0, i1, i2, 0] : f32
    %44 = arith.constant 1.000000e+00 : f32
    %45 = arith.divf %44, %43 : f32
    loop.yield none %45 at [i0, i1, i2, 0]
  }
  %46 = loop.nest "softmax" [i0: parallel d0, i1: parallel 8, i2: parallel d2, i3: parallel d1] -> tensor<?x8x?x?xf32, #sym.dims<d0, 8, d2, d1>> {
    %47 = loop.read %35[i0, i1, i2, i3] : f32
    %48 = loop.read %42[i0, i1, i2, 0] : f32
    %49 = arith.mulf %47, %48 : f32
    loop.yield none %49 at [i0, i1, i2, i3]
  }
  %50 = loop.nest "matmul_1" [i0: parallel d0, i1: parallel 8, i2: parallel d2, i3: parallel 16, r0: reduction d1] -> tensor<?x8x?x16xf32, #sym.dims<d0, 8, d2, 16>> {
    %51 = loop.read %46[i0, i1, i2, r0] : f32
    %52 = loop.read %11[i0, i1, r0, i3] : f32
    %53 = arith.mulf %51, %52 : f32
    loop.yield add %53 at [i0, i1, i2, i3]
  }
  loop.return %50 : tensor<?x8x?x16xf32, #sym.dims<d0, 8, d2, 16>>
}
