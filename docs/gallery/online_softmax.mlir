// Online softmax of long rows. A block of 1,024 elements computes its maximum and, relative to it, the sum of its
// exponentials while it is in the first-level cache; the maximum and the sum of a row follow from those of its blocks. So
// a row is read twice instead of three times, and exponentials are never stored.
//
// M. Milakov, N. Gimelshein: Online normalizer calculation for softmax. arXiv:1805.02867, 2018.

builtin.module {
  loop.kernel @softmax symbols [n] (%x: tensor<?x65536xf32, #sym.dims<n, 65536>>) -> (tensor<?x65536xf32, #sym.dims<n, 65536>>) attributes {citation = {name = "online-softmax", version = "1", source = "Milakov and Gimelshein, arXiv:1805.02867"}} {
    %mb = loop.nest "max.blocks" [i: parallel n, b: parallel 64, r: reduction 1024] schedule [i threads fuse "row", b fuse "block", r vector 8 accumulators 4] -> tensor<?x64xf32, #sym.dims<n, 64>> {
      %a = loop.read %x[i, r + 1024*b] : f32
      loop.yield max %a at [i, b]
    }
    %sb = loop.nest "sum.blocks" [i: parallel n, b: parallel 64, r: reduction 1024] schedule [i threads fuse "row", b fuse "block", r vector 8 accumulators 4] -> tensor<?x64xf32, #sym.dims<n, 64>> {
      %a = loop.read %x[i, r + 1024*b] : f32
      %m = loop.read %mb[i, b] : f32
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      loop.yield add %e at [i, b]
    }
    %m = loop.nest "max" [i: parallel n, b: reduction 64] schedule [i threads fuse "row", b vector 8] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %mb[i, b] : f32
      loop.yield max %a at [i]
    }
    %s = loop.nest "sum" [i: parallel n, b: reduction 64] schedule [i threads fuse "row", b vector 8] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %mb[i, b] : f32
      %t = loop.read %m[i] : f32
      %d = arith.subf %a, %t : f32
      %e = math.exp %d : f32
      %p = loop.read %sb[i, b] : f32
      %q = arith.mulf %p, %e : f32
      loop.yield add %q at [i]
    }
    %inverse = loop.nest "inverse" [i: parallel n] schedule [i threads fuse "row"] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %s[i] : f32
      %one = arith.constant 1.0 : f32
      %q = arith.divf %one, %a : f32
      loop.yield none %q at [i]
    }
    %y = loop.nest "softmax" [i: parallel n, j: parallel 65536] schedule [i threads fuse "row", j vector 8] -> tensor<?x65536xf32, #sym.dims<n, 65536>> {
      %a = loop.read %x[i, j] : f32
      %t = loop.read %m[i] : f32
      %d = arith.subf %a, %t : f32
      %e = math.exp %d : f32
      %u = loop.read %inverse[i] : f32
      %q = arith.mulf %e, %u : f32
      loop.yield none %q at [i, j]
    }
    loop.return %y : tensor<?x65536xf32, #sym.dims<n, 65536>>
  }
}
