// RUN: igniter-opt %s -p "split-softmax{keys=32}" --split-input-file --emit=none --remarks 2>&1 | filecheck %s

// The exponentials leave the kernel.
// CHECK: 'exp' missed: its exponentials have other uses: loop.return uses them too

builtin.module {
  loop.kernel @r symbols [s] (%q: tensor<?x16xf32, #sym.dims<s, 16>>, %k: tensor<96x16xf32>, %v: tensor<96x16xf32>) -> (tensor<?x16xf32, #sym.dims<s, 16>>, tensor<?x96xf32, #sym.dims<s, 96>>) {
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
    loop.return %y, %e : tensor<?x16xf32, #sym.dims<s, 16>>, tensor<?x96xf32, #sym.dims<s, 96>>
  }
}

// -----

// So do the scores.
// CHECK: 'exp' missed: its scores have other uses: loop.return uses them too

builtin.module {
  loop.kernel @r symbols [s] (%q: tensor<?x16xf32, #sym.dims<s, 16>>, %k: tensor<96x16xf32>, %v: tensor<96x16xf32>) -> (tensor<?x16xf32, #sym.dims<s, 16>>, tensor<?x96xf32, #sym.dims<s, 96>>) {
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
    loop.return %y, %scaled : tensor<?x16xf32, #sym.dims<s, 16>>, tensor<?x96xf32, #sym.dims<s, 96>>
  }
}

// -----

// The scale comes before the values.
// CHECK: 'exp' missed: 'weights' reads its exponentials, but is not a sum over the keys of them or of products with them

builtin.module {
  loop.kernel @r symbols [s] (%q: tensor<?x16xf32, #sym.dims<s, 16>>, %k: tensor<96x16xf32>, %v: tensor<96x16xf32>) -> (tensor<?x16xf32, #sym.dims<s, 16>>) {
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
    %w = loop.nest "weights" [i: parallel s, j: parallel 96] -> tensor<?x96xf32, #sym.dims<s, 96>> {
      %a = loop.read %e[i, j] : f32
      %b = loop.read %sum[i] : f32
      %c = arith.divf %a, %b : f32
      loop.yield none %c at [i, j]
    }
    %o = loop.nest "values" [i: parallel s, d: parallel 16, j: reduction 96] -> tensor<?x16xf32, #sym.dims<s, 16>> {
      %a = loop.read %w[i, j] : f32
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

// -----

// No values.
// CHECK: 'exp' missed: no contraction multiplies values by its exponentials

builtin.module {
  loop.kernel @r symbols [s] (%q: tensor<?x16xf32, #sym.dims<s, 16>>, %k: tensor<96x16xf32>, %v: tensor<?x16xf32, #sym.dims<s, 16>>) -> (tensor<?x16xf32, #sym.dims<s, 16>>) {
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
    %y = loop.nest "scale" [i: parallel s, d: parallel 16] -> tensor<?x16xf32, #sym.dims<s, 16>> {
      %a = loop.read %v[i, d] : f32
      %b = loop.read %sum[i] : f32
      %c = arith.divf %a, %b : f32
      loop.yield none %c at [i, d]
    }
    loop.return %y : tensor<?x16xf32, #sym.dims<s, 16>>
  }
}

// -----

// The least score is no maximum.
// CHECK: 'exp' missed: 'max' reads its scores, but is not their maximum over the keys alone

builtin.module {
  loop.kernel @r symbols [s] (%q: tensor<?x16xf32, #sym.dims<s, 16>>, %k: tensor<96x16xf32>, %v: tensor<96x16xf32>) -> (tensor<?x16xf32, #sym.dims<s, 16>>) {
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
      loop.yield min %a at [i]
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

// -----

// One block.
// CHECK: 'exp' missed: its 32 keys fit into one block of 32

builtin.module {
  loop.kernel @r symbols [s] (%q: tensor<?x16xf32, #sym.dims<s, 16>>, %k: tensor<32x16xf32>, %v: tensor<32x16xf32>) -> (tensor<?x16xf32, #sym.dims<s, 16>>) {
    %scores = loop.nest "scores" [i: parallel s, j: parallel 32, d: reduction 16] -> tensor<?x32xf32, #sym.dims<s, 32>> {
      %a = loop.read %q[i, d] : f32
      %b = loop.read %k[j, d] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [i, j]
    }
    %scaled = loop.nest "scaled" [i: parallel s, j: parallel 32] -> tensor<?x32xf32, #sym.dims<s, 32>> {
      %a = loop.read %scores[i, j] : f32
      %scale = arith.constant 0.125 : f32
      %b = arith.mulf %a, %scale : f32
      loop.yield none %b at [i, j]
    }
    %max = loop.nest "max" [i: parallel s, j: reduction 32] -> tensor<?xf32, #sym.dims<s>> {
      %a = loop.read %scaled[i, j] : f32
      loop.yield max %a at [i]
    }
    %e = loop.nest "exp" [i: parallel s, j: parallel 32] -> tensor<?x32xf32, #sym.dims<s, 32>> {
      %a = loop.read %scaled[i, j] : f32
      %x = loop.read %max[i] : f32
      %f = arith.subf %a, %x : f32
      %g = math.exp %f : f32
      loop.yield none %g at [i, j]
    }
    %sum = loop.nest "sum" [i: parallel s, j: reduction 32] -> tensor<?xf32, #sym.dims<s>> {
      %a = loop.read %e[i, j] : f32
      loop.yield add %a at [i]
    }
    %o = loop.nest "values" [i: parallel s, d: parallel 16, j: reduction 32] -> tensor<?x16xf32, #sym.dims<s, 16>> {
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

// -----

// A nest that has its loops.
// CHECK: 'exp' missed: 'scores' has a schedule for its present loops

builtin.module {
  loop.kernel @r symbols [s] (%q: tensor<?x16xf32, #sym.dims<s, 16>>, %k: tensor<96x16xf32>, %v: tensor<96x16xf32>) -> (tensor<?x16xf32, #sym.dims<s, 16>>) {
    %scores = loop.nest "scores" [i: parallel s, j: parallel 96, d: reduction 16] schedule [i, j, d] -> tensor<?x96xf32, #sym.dims<s, 96>> {
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

// -----

// Few bits.
// CHECK: 'exp' missed: its exponentials are f16, not f32 or f64

builtin.module {
  loop.kernel @r symbols [s] (%q: tensor<?x16xf16, #sym.dims<s, 16>>, %k: tensor<96x16xf16>, %v: tensor<96x16xf16>) -> (tensor<?x16xf16, #sym.dims<s, 16>>) {
    %scores = loop.nest "scores" [i: parallel s, j: parallel 96, d: reduction 16] -> tensor<?x96xf16, #sym.dims<s, 96>> {
      %a = loop.read %q[i, d] : f16
      %b = loop.read %k[j, d] : f16
      %p = arith.mulf %a, %b : f16
      loop.yield add %p at [i, j]
    }
    %scaled = loop.nest "scaled" [i: parallel s, j: parallel 96] -> tensor<?x96xf16, #sym.dims<s, 96>> {
      %a = loop.read %scores[i, j] : f16
      %scale = arith.constant 0.125 : f16
      %b = arith.mulf %a, %scale : f16
      loop.yield none %b at [i, j]
    }
    %max = loop.nest "max" [i: parallel s, j: reduction 96] -> tensor<?xf16, #sym.dims<s>> {
      %a = loop.read %scaled[i, j] : f16
      loop.yield max %a at [i]
    }
    %e = loop.nest "exp" [i: parallel s, j: parallel 96] -> tensor<?x96xf16, #sym.dims<s, 96>> {
      %a = loop.read %scaled[i, j] : f16
      %x = loop.read %max[i] : f16
      %f = arith.subf %a, %x : f16
      %g = math.exp %f : f16
      loop.yield none %g at [i, j]
    }
    %sum = loop.nest "sum" [i: parallel s, j: reduction 96] -> tensor<?xf16, #sym.dims<s>> {
      %a = loop.read %e[i, j] : f16
      loop.yield add %a at [i]
    }
    %o = loop.nest "values" [i: parallel s, d: parallel 16, j: reduction 96] -> tensor<?x16xf16, #sym.dims<s, 16>> {
      %a = loop.read %e[i, j] : f16
      %b = loop.read %v[j, d] : f16
      %p = arith.mulf %a, %b : f16
      loop.yield add %p at [i, d]
    }
    %y = loop.nest "scale" [i: parallel s, d: parallel 16] -> tensor<?x16xf16, #sym.dims<s, 16>> {
      %a = loop.read %o[i, d] : f16
      %b = loop.read %sum[i] : f16
      %c = arith.divf %a, %b : f16
      loop.yield none %c at [i, d]
    }
    loop.return %y : tensor<?x16xf16, #sym.dims<s, 16>>
  }
}

// -----

// Powers of another number.
// CHECK: remark: split-softmax: missed: no nest computes exponentials of scores minus the maximum of their row

builtin.module {
  loop.kernel @r symbols [s] (%q: tensor<?x16xf32, #sym.dims<s, 16>>, %k: tensor<96x16xf32>, %v: tensor<96x16xf32>) -> (tensor<?x16xf32, #sym.dims<s, 16>>) {
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
      %g = math.exp2 %f : f32
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

// -----

// Keys of two dims.
// CHECK: 'exp' missed: it runs over 2 axes, j, k; only one axis can be split

builtin.module {
  loop.kernel @r symbols [s] (%x: tensor<?x40x50xf32, #sym.dims<s, 40, 50>>) -> (tensor<?xf32, #sym.dims<s>>) {
    %max = loop.nest "max" [i: parallel s, j: reduction 40, k: reduction 50] -> tensor<?xf32, #sym.dims<s>> {
      %a = loop.read %x[i, j, k] : f32
      loop.yield max %a at [i]
    }
    %e = loop.nest "exp" [i: parallel s, j: parallel 40, k: parallel 50] -> tensor<?x40x50xf32, #sym.dims<s, 40, 50>> {
      %a = loop.read %x[i, j, k] : f32
      %b = loop.read %max[i] : f32
      %f = arith.subf %a, %b : f32
      %g = math.exp %f : f32
      loop.yield none %g at [i, j, k]
    }
    %sum = loop.nest "sum" [i: parallel s, j: reduction 40, k: reduction 50] -> tensor<?xf32, #sym.dims<s>> {
      %a = loop.read %e[i, j, k] : f32
      loop.yield add %a at [i]
    }
    loop.return %sum : tensor<?xf32, #sym.dims<s>>
  }
}
