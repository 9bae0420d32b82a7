// FlashAttention for one head of 64 and any number of keys. A task has 60 rows of queries. Blocks of 512 keys and values
// stay in the second-level cache while ten tiles of 6 rows use them. A tile computes its scores, their maximum, the
// exponentials and the product with the values; a score matrix is never in memory. The maxima and sums of the blocks are
// combined at the end of a row (online softmax).
//
// T. Dao et al.: FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness. NeurIPS 2022.

builtin.module {
  loop.kernel @attention symbols [s, t] (%q: tensor<?x64xf32, #sym.dims<s, 64>>, %k: tensor<?x64xf32, #sym.dims<t, 64>>, %v: tensor<?x64xf32, #sym.dims<t, 64>>) -> (tensor<?x64xf32, #sym.dims<s, 64>>) attributes {citation = {name = "flash-attention", version = "1", source = "Dao et al., NeurIPS 2022"}} {
    %0 = loop.nest "scores.pack" [block: parallel ((t + 511) floordiv 512), p: parallel 32, d: parallel 64, l: parallel 16] schedule [block threads, p, d by 16 tail rest, l by 16 tail rest, d unroll, l vector 8] -> tensor<?x32x64x16xf32, #sym.dims<((t + 511) floordiv 512), 32, 64, 16>> {
      %1 = loop.read %k[512*block + l + 16*p, d] if [-512*block - l - 16*p + t - 1] : f32
      loop.yield none %1 at [block, p, d, l]
    }
    %2 = loop.nest "values.blocks.copy" [block: parallel ((t + 511) floordiv 512), j: parallel 512, d: parallel 64] schedule [block threads, j, d vector 8] -> tensor<?x512x64xf32, #sym.dims<((t + 511) floordiv 512), 512, 64>> {
      %3 = loop.read %v[512*block + j, d] if [-512*block - j + t - 1] : f32
      loop.yield none %3 at [block, j, d]
    }
    %scores = loop.nest "scores" [i: parallel s, block: parallel ((t + 511) floordiv 512), j: parallel 512, d: reduction 64] schedule [i by 60 threads fuse "rows", block fuse "blocks", i by 6 fuse "tiles", j by 16, product(i, j, d) tile [6, 1], i, j vector 8] -> tensor<?x?x512xf32, #sym.dims<s, ((t + 511) floordiv 512), 512>> {
      %a = loop.read %q[i, d] : f32
      %b = loop.read %0[block, (j floordiv 16), d, (j mod 16)] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [i, block, j]
    }
    %scaled = loop.nest "scaled" [i: parallel s, block: parallel ((t + 511) floordiv 512), j: parallel 512] schedule [i by 60 threads fuse "rows", block fuse "blocks", i by 6 fuse "tiles", j by 16, i, j vector 8] -> tensor<?x?x512xf32, #sym.dims<s, ((t + 511) floordiv 512), 512>> {
      %a_1 = loop.read %scores[i, block, j] : f32
      %scale = arith.constant 1.250000e-01 : f32
      %b_1 = arith.mulf %a_1, %scale : f32
      loop.yield none %b_1 at [i, block, j]
    }
    %4 = loop.nest "max.blocks" [i: parallel s, block: parallel ((t + 511) floordiv 512), j: reduction 512] schedule [i by 60 threads fuse "rows", block fuse "blocks", i by 6 fuse "tiles", i, j vector 8 accumulators 4] -> tensor<?x?xf32, #sym.dims<((t + 511) floordiv 512), s>> {
      %5 = arith.constant 0xff800000 : f32
      %6 = loop.read %scaled[i, block, j] if [-512*block - j + t - 1] else %5 : f32
      loop.yield max %6 at [block, i]
    }
    %7 = loop.nest "exp.floor" [i: parallel s, block: parallel ((t + 511) floordiv 512)] schedule [i by 60 threads fuse "rows", block fuse "blocks", i by 6 fuse "tiles", i] -> tensor<?x?xf32, #sym.dims<((t + 511) floordiv 512), s>> {
      %8 = loop.read %4[block, i] : f32
      %9 = arith.constant 6.23832464 : f32
      %10 = arith.addf %8, %9 : f32
      %11 = arith.constant -3.40282347e+38 : f32
      %12 = arith.maximumf %10, %11 : f32
      loop.yield none %12 at [block, i]
    }
    %e = loop.nest "exp" [i: parallel s, block: parallel ((t + 511) floordiv 512), j: parallel 512] schedule [i by 60 threads fuse "rows", block fuse "blocks", i by 6 fuse "tiles", i, j vector 8] -> tensor<?x?x512xf32, #sym.dims<s, ((t + 511) floordiv 512), 512>> {
      %13 = arith.constant 0xff800000 : f32
      %a_2 = loop.read %scaled[i, block, j] if [-512*block - j + t - 1] else %13 : f32
      %x = loop.read %7[block, i] : f32
      %f = arith.subf %a_2, %x : f32
      %g = math.exp %f : f32
      loop.yield none %g at [i, block, j]
    }
    %14 = loop.nest "sum.blocks" [i: parallel s, block: parallel ((t + 511) floordiv 512), j: reduction 512] schedule [i by 60 threads fuse "rows", block fuse "blocks", i by 6 fuse "tiles", i, j vector 8 accumulators 4] -> tensor<?x?xf32, #sym.dims<((t + 511) floordiv 512), s>> {
      %a_3 = loop.read %e[i, block, j] : f32
      loop.yield add %a_3 at [block, i]
    }
    %15 = loop.nest "values.blocks" [i: parallel s, d: parallel 64, block: parallel ((t + 511) floordiv 512), j: reduction 512] schedule [i by 60 threads fuse "rows", block fuse "blocks", i by 6 fuse "tiles", d by 16, product(i, d, j) tile [6, 1], i, d vector 8 unroll] -> tensor<?x?x64xf32, #sym.dims<((t + 511) floordiv 512), s, 64>> {
      %a_4 = loop.read %e[i, block, j] : f32
      %b_2 = loop.read %2[block, j, d] : f32
      %p_1 = arith.mulf %a_4, %b_2 : f32
      loop.yield add %p_1 at [block, i, d]
    }
    %max = loop.nest "max" [i: parallel s, block: reduction ((t + 511) floordiv 512)] schedule [i by 60 threads fuse "rows", i, block] -> tensor<?xf32, #sym.dims<s>> {
      %16 = loop.read %4[block, i] : f32
      loop.yield max %16 at [i]
    }
    %17 = loop.nest "exp.weights" [i: parallel s, block: parallel ((t + 511) floordiv 512)] schedule [i by 60 threads fuse "rows", i, block] -> tensor<?x?xf32, #sym.dims<((t + 511) floordiv 512), s>> {
      %18 = loop.read %4[block, i] : f32
      %19 = arith.constant 6.23832464 : f32
      %20 = arith.addf %18, %19 : f32
      %21 = loop.read %max[i] : f32
      %22 = arith.subf %20, %21 : f32
      %23 = math.exp %22 : f32
      loop.yield none %23 at [block, i]
    }
    %sum = loop.nest "sum" [i: parallel s, block: reduction ((t + 511) floordiv 512)] schedule [i by 60 threads fuse "rows", i, block] -> tensor<?xf32, #sym.dims<s>> {
      %24 = loop.read %14[block, i] : f32
      %25 = loop.read %17[block, i] : f32
      %26 = arith.mulf %25, %24 : f32
      loop.yield add %26 at [i]
    }
    %o = loop.nest "values" [i: parallel s, d: parallel 64, block: reduction ((t + 511) floordiv 512)] schedule [i by 60 threads fuse "rows", i, d by 64, block, d vector 8 unroll] -> tensor<?x64xf32, #sym.dims<s, 64>> {
      %27 = loop.read %15[block, i, d] : f32
      %28 = loop.read %17[block, i] : f32
      %29 = arith.mulf %28, %27 : f32
      loop.yield add %29 at [i, d]
    }
    %y = loop.nest "scale" [i: parallel s, d: parallel 64] schedule [i by 60 threads fuse "rows", i, d vector 8 unroll] -> tensor<?x64xf32, #sym.dims<s, 64>> {
      %a_5 = loop.read %o[i, d] : f32
      %b_3 = loop.read %sum[i] : f32
      %c = arith.divf %a_5, %b_3 : f32
      loop.yield none %c at [i, d]
    }
    loop.return %y : tensor<?x64xf32, #sym.dims<s, 64>>
  }
}
