// Persistent rows: a layer normalisation in which a task keeps its row, with the residual added, on its stack, from the
// first pass (mean) over the second (variance) to the last (scale and shift). The row is read from memory once and written
// once. On GPUs the same idea keeps a row in the registers of a block.
//
// J. L. Ba et al.: Layer Normalization, 2016, computed as in the "persistent" kernels of NVIDIA's Apex.

builtin.module {
  loop.kernel @layer_norm symbols [n] (%x: tensor<?x768xf32, #sym.dims<n, 768>>, %r: tensor<?x768xf32, #sym.dims<n, 768>>, %g: tensor<768xf32>, %b: tensor<768xf32>) -> (tensor<?x768xf32, #sym.dims<n, 768>>) attributes {citation = {name = "persistent-rows", version = "1", source = "Ba et al., 2016; NVIDIA Apex"}} {
    %row = loop.nest "row" [i: parallel n, j: parallel 768] schedule [i threads fuse "rows", store in stack, j vector 8] -> tensor<?x768xf32, #sym.dims<n, 768>> {
      %p = loop.read %x[i, j] : f32
      %q = loop.read %r[i, j] : f32
      %s = arith.addf %p, %q : f32
      loop.yield none %s at [i, j]
    }
    %sum = loop.nest "sum" [i: parallel n, j: reduction 768] schedule [i threads fuse "rows", store in registers, j vector 8 accumulators 4] -> tensor<?xf32, #sym.dims<n>> {
      %p = loop.read %row[i, j] : f32
      loop.yield add %p at [i]
    }
    %mean = loop.nest "mean" [i: parallel n] schedule [i threads fuse "rows", store in registers] -> tensor<?xf32, #sym.dims<n>> {
      %s = loop.read %sum[i] : f32
      %inverse = arith.constant 0.00130208337 : f32
      %m = arith.mulf %s, %inverse : f32
      loop.yield none %m at [i]
    }
    %squares = loop.nest "squares" [i: parallel n, j: reduction 768] schedule [i threads fuse "rows", store in registers, j vector 8 accumulators 4] -> tensor<?xf32, #sym.dims<n>> {
      %p = loop.read %row[i, j] : f32
      %m = loop.read %mean[i] : f32
      %d = arith.subf %p, %m : f32
      %q = arith.mulf %d, %d : f32
      loop.yield add %q at [i]
    }
    %root = loop.nest "root" [i: parallel n] schedule [i threads fuse "rows", store in registers] -> tensor<?xf32, #sym.dims<n>> {
      %v = loop.read %squares[i] : f32
      %inverse = arith.constant 0.00130208337 : f32
      %epsilon = arith.constant 1.0e-05 : f32
      %one = arith.constant 1.0 : f32
      %var = arith.mulf %v, %inverse : f32
      %e = arith.addf %var, %epsilon : f32
      %w = math.sqrt %e : f32
      %q = arith.divf %one, %w : f32
      loop.yield none %q at [i]
    }
    %y = loop.nest "normalise" [i: parallel n, j: parallel 768] schedule [i threads fuse "rows", j vector 8] -> tensor<?x768xf32, #sym.dims<n, 768>> {
      %p = loop.read %row[i, j] : f32
      %m = loop.read %mean[i] : f32
      %q = loop.read %root[i] : f32
      %d = arith.subf %p, %m : f32
      %n = arith.mulf %d, %q : f32
      %scale = loop.read %g[j] : f32
      %shift = loop.read %b[j] : f32
      %t = arith.mulf %n, %scale : f32
      %o = arith.addf %t, %shift : f32
      loop.yield none %o at [i, j]
    }
    loop.return %y : tensor<?x768xf32, #sym.dims<n, 768>>
  }
}
