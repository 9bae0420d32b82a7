// RUN: igniter-opt %s -p "split-reductions{nest=sum axis=k parts=4}" --split-input-file --verify-diagnostics | filecheck %s

// The axis is no reduction.
// CHECK: pass 'split-reductions': nest 'sum' has no reduction 'k'; it has: r

builtin.module {
  loop.kernel @kind symbols [] (%x: tensor<8x64xf32>) -> (tensor<8xf32>) {
    %s = loop.nest "sum" [k: parallel 8, r: reduction 64] -> tensor<8xf32> {
      %a = loop.read %x[k, r] : f32
      loop.yield add %a at [k]
    }
    loop.return %s : tensor<8xf32>
  }
}

// -----

// The nest does not exist.
// CHECK: pass 'split-reductions': unknown nest 'sum'; known: total

builtin.module {
  loop.kernel @name symbols [] (%x: tensor<8x64xf32>) -> (tensor<8xf32>) {
    %s = loop.nest "total" [i: parallel 8, k: reduction 64] -> tensor<8xf32> {
      %a = loop.read %x[i, k] : f32
      loop.yield add %a at [i]
    }
    loop.return %s : tensor<8xf32>
  }
}

// -----

// A schedule speaks of the loops that are there.
// CHECK: pass 'split-reductions': nest 'sum' has a schedule for its present loops

builtin.module {
  loop.kernel @scheduled symbols [] (%x: tensor<8x64xf32>) -> (tensor<8xf32>) {
    %s = loop.nest "sum" [i: parallel 8, k: reduction 64] schedule [i, k] -> tensor<8xf32> {
      %a = loop.read %x[i, k] : f32
      loop.yield add %a at [i]
    }
    loop.return %s : tensor<8xf32>
  }
}
