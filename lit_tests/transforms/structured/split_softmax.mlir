// RUN: igniter-opt %s -p "split-softmax{keys=32}" --split-input-file | filecheck %s
// RUN: igniter-opt %s -p "split-softmax{keys=32},pack-operands,check-bounds{guard=true}" --split-input-file --check-each --check-sizes s=3,t=70 --emit=none 2>&1 | filecheck %s --check-prefix=CHECKED

// Any number of keys: those behind the end are -inf to the maximum and to the exponentials, which are 0 there, and what
// the contractions read of the last block is copied, with zeros behind the end. The copies come first, then the nests
// of blocks, then what makes one result of them.

builtin.module {
  loop.kernel @uneven symbols [s, t] (%q: tensor<?x16xf32, #sym.dims<s, 16>>, %k: tensor<?x16xf32, #sym.dims<t, 16>>, %v: tensor<?x16xf32, #sym.dims<t, 16>>) -> (tensor<?x16xf32, #sym.dims<s, 16>>) {
    %scores = loop.nest "scores" [i: parallel s, j: parallel t, d: reduction 16] -> tensor<?x?xf32, #sym.dims<s, t>> {
      %a = loop.read %q[i, d] : f32
      %b = loop.read %k[j, d] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [i, j]
    }
    %scaled = loop.nest "scaled" [i: parallel s, j: parallel t] -> tensor<?x?xf32, #sym.dims<s, t>> {
      %a = loop.read %scores[i, j] : f32
      %scale = arith.constant 0.125 : f32
      %b = arith.mulf %a, %scale : f32
      loop.yield none %b at [i, j]
    }
    %max = loop.nest "max" [i: parallel s, j: reduction t] -> tensor<?xf32, #sym.dims<s>> {
      %a = loop.read %scaled[i, j] : f32
      loop.yield max %a at [i]
    }
    %e = loop.nest "exp" [i: parallel s, j: parallel t] -> tensor<?x?xf32, #sym.dims<s, t>> {
      %a = loop.read %scaled[i, j] : f32
      %x = loop.read %max[i] : f32
      %f = arith.subf %a, %x : f32
      %g = math.exp %f : f32
      loop.yield none %g at [i, j]
    }
    %sum = loop.nest "sum" [i: parallel s, j: reduction t] -> tensor<?xf32, #sym.dims<s>> {
      %a = loop.read %e[i, j] : f32
      loop.yield add %a at [i]
    }
    %o = loop.nest "values" [i: parallel s, d: parallel 16, j: reduction t] -> tensor<?x16xf32, #sym.dims<s, 16>> {
      %a = loop.read %e[i, j] : f32
      %b = loop.read %v[j, d] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [i, d]
    }
    %y = loop.nest "scale" [i: parallel s, d: parallel 16] -> tensor<?x16xf32, #sym.dims<s, 16>> {
      %a = loop.read %o[i, d] : f32
      %b = loop.read %sum[i] : f32
      %c = arith.divf %a, %b : f32
      loop.yield none %c at [i, d]
    }
    loop.return %y : tensor<?x16xf32, #sym.dims<s, 16>>
  }
}

// CHECK-LABEL: loop.kernel @uneven
// CHECK-NEXT:     %0 = loop.nest "scores.pack" [block: parallel ((t + 31) floordiv 32), p: parallel 2, d: parallel 16, l: parallel 16] -> tensor<?x2x16x16xf32, #sym.dims<((t + 31) floordiv 32), 2, 16, 16>> {
// CHECK-NEXT:       %1 = loop.read %k[32*block + l + 16*p, d] if [-32*block - l - 16*p + t - 1] : f32
// CHECK-NEXT:       loop.yield none %1 at [block, p, d, l]
// CHECK:          %2 = loop.nest "values.blocks.copy" [block: parallel ((t + 31) floordiv 32), j: parallel 32, d: parallel 16] -> tensor<?x32x16xf32, #sym.dims<((t + 31) floordiv 32), 32, 16>> {
// CHECK-NEXT:       %3 = loop.read %v[32*block + j, d] if [-32*block - j + t - 1] : f32
// CHECK-NEXT:       loop.yield none %3 at [block, j, d]
// CHECK:          %scores = loop.nest "scores" [i: parallel s, block: parallel ((t + 31) floordiv 32), j: parallel 32, d: reduction 16] -> tensor<?x?x32xf32, #sym.dims<s, ((t + 31) floordiv 32), 32>> {
// CHECK-NEXT:       %a = loop.read %q[i, d] : f32
// CHECK-NEXT:       %b = loop.read %0[block, (j floordiv 16), d, (j mod 16)] : f32
// CHECK-NEXT:       %p = arith.mulf %a, %b : f32
// CHECK-NEXT:       loop.yield add %p at [i, block, j]
// CHECK:          %scaled = loop.nest "scaled" [i: parallel s, block: parallel ((t + 31) floordiv 32), j: parallel 32] -> tensor<?x?x32xf32, #sym.dims<s, ((t + 31) floordiv 32), 32>> {
// CHECK-NEXT:       %a_1 = loop.read %scores[i, block, j] : f32
// CHECK-NEXT:       %scale = arith.constant 1.250000e-01 : f32
// CHECK-NEXT:       %b_1 = arith.mulf %a_1, %scale : f32
// CHECK-NEXT:       loop.yield none %b_1 at [i, block, j]
// CHECK:          %4 = loop.nest "max.blocks" [i: parallel s, block: parallel ((t + 31) floordiv 32), j: reduction 32] -> tensor<?x?xf32, #sym.dims<((t + 31) floordiv 32), s>> {
// CHECK-NEXT:       %5 = arith.constant 0xff800000 : f32
// CHECK-NEXT:       %6 = loop.read %scaled[i, block, j] if [-32*block - j + t - 1] else %5 : f32
// CHECK-NEXT:       loop.yield max %6 at [block, i]
// CHECK:          %7 = loop.nest "exp.floor" [i: parallel s, block: parallel ((t + 31) floordiv 32)] -> tensor<?x?xf32, #sym.dims<((t + 31) floordiv 32), s>> {
// CHECK-NEXT:       %8 = loop.read %4[block, i] : f32
// CHECK-NEXT:       %9 = arith.constant 3.46573591 : f32
// CHECK-NEXT:       %10 = arith.addf %8, %9 : f32
// CHECK-NEXT:       %11 = arith.constant -3.40282347e+38 : f32
// CHECK-NEXT:       %12 = arith.maximumf %10, %11 : f32
// CHECK-NEXT:       loop.yield none %12 at [block, i]
// CHECK:          %e = loop.nest "exp" [i: parallel s, block: parallel ((t + 31) floordiv 32), j: parallel 32] -> tensor<?x?x32xf32, #sym.dims<s, ((t + 31) floordiv 32), 32>> {
// CHECK-NEXT:       %13 = arith.constant 0xff800000 : f32
// CHECK-NEXT:       %a_2 = loop.read %scaled[i, block, j] if [-32*block - j + t - 1] else %13 : f32
// CHECK-NEXT:       %x = loop.read %7[block, i] : f32
// CHECK-NEXT:       %f = arith.subf %a_2, %x : f32
// CHECK-NEXT:       %g = math.exp %f : f32
// CHECK-NEXT:       loop.yield none %g at [i, block, j]
// CHECK:          %14 = loop.nest "sum.blocks" [i: parallel s, block: parallel ((t + 31) floordiv 32), j: reduction 32] -> tensor<?x?xf32, #sym.dims<((t + 31) floordiv 32), s>> {
// CHECK-NEXT:       %a_3 = loop.read %e[i, block, j] : f32
// CHECK-NEXT:       loop.yield add %a_3 at [block, i]
// CHECK:          %15 = loop.nest "values.blocks" [i: parallel s, d: parallel 16, block: parallel ((t + 31) floordiv 32), j: reduction 32] -> tensor<?x?x16xf32, #sym.dims<((t + 31) floordiv 32), s, 16>> {
// CHECK-NEXT:       %a_4 = loop.read %e[i, block, j] : f32
// CHECK-NEXT:       %b_2 = loop.read %2[block, j, d] : f32
// CHECK-NEXT:       %p_1 = arith.mulf %a_4, %b_2 : f32
// CHECK-NEXT:       loop.yield add %p_1 at [block, i, d]
// CHECK:          %max = loop.nest "max" [i: parallel s, block: reduction ((t + 31) floordiv 32)] -> tensor<?xf32, #sym.dims<s>> {
// CHECK-NEXT:       %16 = loop.read %4[block, i] : f32
// CHECK-NEXT:       loop.yield max %16 at [i]
// CHECK:          %17 = loop.nest "exp.weights" [i: parallel s, block: parallel ((t + 31) floordiv 32)] -> tensor<?x?xf32, #sym.dims<((t + 31) floordiv 32), s>> {
// CHECK-NEXT:       %18 = loop.read %4[block, i] : f32
// CHECK-NEXT:       %19 = arith.constant 3.46573591 : f32
// CHECK-NEXT:       %20 = arith.addf %18, %19 : f32
// CHECK-NEXT:       %21 = loop.read %max[i] : f32
// CHECK-NEXT:       %22 = arith.subf %20, %21 : f32
// CHECK-NEXT:       %23 = math.exp %22 : f32
// CHECK-NEXT:       loop.yield none %23 at [block, i]
// CHECK:          %sum = loop.nest "sum" [i: parallel s, block: reduction ((t + 31) floordiv 32)] -> tensor<?xf32, #sym.dims<s>> {
// CHECK-NEXT:       %24 = loop.read %14[block, i] : f32
// CHECK-NEXT:       %25 = loop.read %17[block, i] : f32
// CHECK-NEXT:       %26 = arith.mulf %25, %24 : f32
// CHECK-NEXT:       loop.yield add %26 at [i]
// CHECK:          %o = loop.nest "values" [i: parallel s, d: parallel 16, block: reduction ((t + 31) floordiv 32)] -> tensor<?x16xf32, #sym.dims<s, 16>> {
// CHECK-NEXT:       %27 = loop.read %15[block, i, d] : f32
// CHECK-NEXT:       %28 = loop.read %17[block, i] : f32
// CHECK-NEXT:       %29 = arith.mulf %28, %27 : f32
// CHECK-NEXT:       loop.yield add %29 at [i, d]
// CHECK:          %y = loop.nest "scale" [i: parallel s, d: parallel 16] -> tensor<?x16xf32, #sym.dims<s, 16>> {
// CHECK-NEXT:       %a_5 = loop.read %o[i, d] : f32
// CHECK-NEXT:       %b_3 = loop.read %sum[i] : f32
// CHECK-NEXT:       %c = arith.divf %a_5, %b_3 : f32
// CHECK-NEXT:       loop.yield none %c at [i, d]

// CHECKED: split-softmax: 1 results agree

// -----

// Blocks that divide the keys: all is read where it is.

builtin.module {
  loop.kernel @even symbols [s] (%q: tensor<?x16xf32, #sym.dims<s, 16>>, %k: tensor<96x16xf32>, %v: tensor<96x16xf32>) -> (tensor<?x16xf32, #sym.dims<s, 16>>) {
    %scores = loop.nest "scores" [i: parallel s, j: parallel 96, d: reduction 16] -> tensor<?x96xf32, #sym.dims<s, 96>> {
      %a = loop.read %q[i, d] : f32
      %b = loop.read %k[j, d] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [i, j]
    }
    %scaled = loop.nest "scaled" [i: parallel s, j: parallel 96] -> tensor<?x96xf32, #sym.dims<s, 96>> {
      %a = loop.read %scores[i, j] : f32
      %scale = arith.constant 0.125 : f32
      %b = arith.mulf %a, %scale : f32
      loop.yield none %b at [i, j]
    }
    %max = loop.nest "max" [i: parallel s, j: reduction 96] -> tensor<?xf32, #sym.dims<s>> {
      %a = loop.read %scaled[i, j] : f32
      loop.yield max %a at [i]
    }
    %e = loop.nest "exp" [i: parallel s, j: parallel 96] -> tensor<?x96xf32, #sym.dims<s, 96>> {
      %a = loop.read %scaled[i, j] : f32
      %x = loop.read %max[i] : f32
      %f = arith.subf %a, %x : f32
      %g = math.exp %f : f32
      loop.yield none %g at [i, j]
    }
    %sum = loop.nest "sum" [i: parallel s, j: reduction 96] -> tensor<?xf32, #sym.dims<s>> {
      %a = loop.read %e[i, j] : f32
      loop.yield add %a at [i]
    }
    %o = loop.nest "values" [i: parallel s, d: parallel 16, j: reduction 96] -> tensor<?x16xf32, #sym.dims<s, 16>> {
      %a = loop.read %e[i, j] : f32
      %b = loop.read %v[j, d] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [i, d]
    }
    %y = loop.nest "scale" [i: parallel s, d: parallel 16] -> tensor<?x16xf32, #sym.dims<s, 16>> {
      %a = loop.read %o[i, d] : f32
      %b = loop.read %sum[i] : f32
      %c = arith.divf %a, %b : f32
      loop.yield none %c at [i, d]
    }
    loop.return %y : tensor<?x16xf32, #sym.dims<s, 16>>
  }
}

// CHECK-LABEL: loop.kernel @even
// CHECK-NEXT:     %scores = loop.nest "scores" [i: parallel s, block: parallel 3, j: parallel 32, d: reduction 16] -> tensor<?x3x32xf32, #sym.dims<s, 3, 32>> {
// CHECK:            %b = loop.read %k[32*block + j, d] : f32
// CHECK:          %scaled = loop.nest "scaled" [i: parallel s, block: parallel 3, j: parallel 32] -> tensor<?x3x32xf32, #sym.dims<s, 3, 32>> {
// CHECK:          %0 = loop.nest "max.blocks" [i: parallel s, block: parallel 3, j: reduction 32] -> tensor<3x?xf32, #sym.dims<3, s>> {
// CHECK-NEXT:       %1 = loop.read %scaled[i, block, j] : f32
// CHECK:          %2 = loop.nest "exp.floor" [i: parallel s, block: parallel 3] -> tensor<3x?xf32, #sym.dims<3, s>> {
// CHECK:          %e = loop.nest "exp" [i: parallel s, block: parallel 3, j: parallel 32] -> tensor<?x3x32xf32, #sym.dims<s, 3, 32>> {
// CHECK-NEXT:       %a_2 = loop.read %scaled[i, block, j] : f32
// CHECK:          %8 = loop.nest "sum.blocks" [i: parallel s, block: parallel 3, j: reduction 32] -> tensor<3x?xf32, #sym.dims<3, s>> {
// CHECK:          %9 = loop.nest "values.blocks" [i: parallel s, d: parallel 16, block: parallel 3, j: reduction 32] -> tensor<3x?x16xf32, #sym.dims<3, s, 16>> {
// CHECK:            %b_2 = loop.read %v[32*block + j, d] : f32
// CHECK:          %max = loop.nest "max" [i: parallel s, block: reduction 3] -> tensor<?xf32, #sym.dims<s>> {
// CHECK:          %11 = loop.nest "exp.weights" [i: parallel s, block: parallel 3] -> tensor<3x?xf32, #sym.dims<3, s>> {
// CHECK:          %sum = loop.nest "sum" [i: parallel s, block: reduction 3] -> tensor<?xf32, #sym.dims<s>> {
// CHECK:          %o = loop.nest "values" [i: parallel s, d: parallel 16, block: reduction 3] -> tensor<?x16xf32, #sym.dims<s, 16>> {
// CHECK:          %y = loop.nest "scale" [i: parallel s, d: parallel 16] -> tensor<?x16xf32, #sym.dims<s, 16>> {

// CHECKED: split-softmax: 1 results agree
