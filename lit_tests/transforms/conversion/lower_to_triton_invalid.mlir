// RUN: igniter-opt %s -p lower-to-triton --split-input-file --verify-diagnostics --target=cuda | filecheck %s

// CHECK: pass 'lower-to-triton': nest 'copy' needs a schedule with 'launch'
loop.kernel @none symbols [] (%x: tensor<8xf32>) -> (tensor<8xf32>) {
  %t = loop.nest "copy" [i: parallel 8] schedule [i by 8 grid, i vector 8] -> tensor<8xf32> {
    %a = loop.read %x[i] : f32
    loop.yield none %a at [i]
  }
  loop.return %t : tensor<8xf32>
}

// -----

// CHECK: pass 'lower-to-triton': nest 'copy': 'i' has 12 lanes; the number must be a power of two
loop.kernel @lanes symbols [] (%x: tensor<8xf32>) -> (tensor<8xf32>) {
  %t = loop.nest "copy" [i: parallel 8] schedule [i by 12 grid, i vector 12, launch warps 1 stages 1] -> tensor<8xf32> {
    %a = loop.read %x[i] : f32
    loop.yield none %a at [i]
  }
  loop.return %t : tensor<8xf32>
}

// -----

// CHECK: pass 'lower-to-triton': nest 'sum': 'k' is entirely in one program, but 8 lanes cannot hold its n elements
loop.kernel @whole symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<1xf32>) {
  %t = loop.nest "sum" [k: reduction n] schedule [k vector 8, launch warps 1 stages 1] -> tensor<1xf32> {
    %a = loop.read %x[k] : f32
    loop.yield add %a at [0]
  }
  loop.return %t : tensor<1xf32>
}

// -----

// CHECK: pass 'lower-to-triton': nest 'reversed' cannot be in launch 'l0': it reads elements outside its block
loop.kernel @elsewhere symbols [] (%x: tensor<8xf32>) -> (tensor<8xf32>) {
  %t = loop.nest "copy" [i: parallel 8] schedule [i by 8 grid fuse "l0", i vector 8, launch warps 1 stages 1] -> tensor<8xf32> {
    %a = loop.read %x[i] : f32
    loop.yield none %a at [i]
  }
  %y = loop.nest "reversed" [i: parallel 8] schedule [i by 8 grid fuse "l0", i vector 8, launch warps 1 stages 1] -> tensor<8xf32> {
    %a = loop.read %t[-i + 7] : f32
    loop.yield none %a at [i]
  }
  loop.return %y : tensor<8xf32>
}

// -----

// CHECK: pass 'lower-to-triton': nest 'ctpop': there is no code for 'math.ctpop' on a GPU
loop.kernel @ops symbols [] (%x: tensor<8xi32>) -> (tensor<8xi32>) {
  %t = loop.nest "ctpop" [i: parallel 8] schedule [i by 8 grid, i vector 8, launch warps 1 stages 1] -> tensor<8xi32> {
    %a = loop.read %x[i] : i32
    %b = math.ctpop %a : i32
    loop.yield none %b at [i]
  }
  loop.return %t : tensor<8xi32>
}

// -----

// CHECK: pass 'lower-to-triton': nest 'copy': 'i threads': a launch cannot have 'threads'
loop.kernel @words symbols [] (%x: tensor<8xf32>) -> (tensor<8xf32>) {
  %t = loop.nest "copy" [i: parallel 8] schedule [i threads, launch warps 1 stages 1] -> tensor<8xf32> {
    %a = loop.read %x[i] : f32
    loop.yield none %a at [i]
  }
  loop.return %t : tensor<8xf32>
}

// -----

// CHECK: pass 'lower-to-triton': nest 'copy': 'i': a launch unrolls only whole reductions of known size, without lanes
loop.kernel @unrolled symbols [] (%x: tensor<8xf32>) -> (tensor<8xf32>) {
  %t = loop.nest "copy" [i: parallel 8] schedule [i unroll, launch warps 1 stages 1] -> tensor<8xf32> {
    %a = loop.read %x[i] : f32
    loop.yield none %a at [i]
  }
  loop.return %t : tensor<8xf32>
}

// -----

// CHECK: pass 'lower-to-triton': nest 'second' has 'launch warps 4 stages 1', but 'first' of the same launch has 'launch warps 1 stages 1'
loop.kernel @warps symbols [] (%x: tensor<8xf32>) -> (tensor<8xf32>) {
  %t = loop.nest "first" [i: parallel 8] schedule [i by 8 grid fuse "l0", i vector 8, launch warps 1 stages 1] -> tensor<8xf32> {
    %a = loop.read %x[i] : f32
    loop.yield none %a at [i]
  }
  %y = loop.nest "second" [i: parallel 8] schedule [i by 8 grid fuse "l0", i vector 8, launch warps 4 stages 1] -> tensor<8xf32> {
    %a = loop.read %t[i] : f32
    loop.yield none %a at [i]
  }
  loop.return %y : tensor<8xf32>
}

// -----

// CHECK: launches depend on each other in a cycle: those of the nests 'first', 'between'
loop.kernel @wait symbols [] (%x: tensor<8xf32>) -> (tensor<8xf32>) {
  %t = loop.nest "first" [i: parallel 8] schedule [i by 8 grid fuse "l0", i vector 8, launch warps 1 stages 1] -> tensor<8xf32> {
    %a = loop.read %x[i] : f32
    loop.yield none %a at [i]
  }
  %u = loop.nest "between" [i: parallel 8] schedule [i by 8 grid fuse "l1", i vector 8, launch warps 1 stages 1] -> tensor<8xf32> {
    %a = loop.read %t[-i + 7] : f32
    loop.yield none %a at [i]
  }
  %y = loop.nest "last" [i: parallel 8] schedule [i by 8 grid fuse "l0", i vector 8, launch warps 1 stages 1] -> tensor<8xf32> {
    %a = loop.read %t[i] : f32
    %b = loop.read %u[i] : f32
    %c = arith.addf %a, %b : f32
    loop.yield none %c at [i]
  }
  loop.return %y : tensor<8xf32>
}

// -----

// CHECK: pass 'lower-to-triton': nest 'copy': there is no code for elements of i4
loop.kernel @halves symbols [] (%x: tensor<8xi4>) -> (tensor<8xi4>) {
  %t = loop.nest "copy" [i: parallel 8] schedule [i by 8 grid, i vector 8, launch warps 1 stages 1] -> tensor<8xi4> {
    %a = loop.read %x[i] : i4
    loop.yield none %a at [i]
  }
  loop.return %t : tensor<8xi4>
}

// -----

// CHECK: pass 'lower-to-triton': nest 'copy' cannot be in launch 'l0': 'sum' lacks a dim of the grid, so several programs would compute the same elements
loop.kernel @own symbols [n, m, l] (%x: tensor<?x?xf32, #sym.dims<n, m>>) -> (tensor<?xf32, #sym.dims<n>>, tensor<?x?xf32, #sym.dims<n, l>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction m] schedule [i grid fuse "l0", k by 8, k vector 8, launch warps 1 stages 1] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  %y = loop.nest "copy" [i: parallel n, j: parallel l] schedule [i grid fuse "l0", j grid, launch warps 1 stages 1] -> tensor<?x?xf32, #sym.dims<n, l>> {
    %a = loop.read %s[i] : f32
    loop.yield none %a at [i, j]
  }
  loop.return %s, %y : tensor<?xf32, #sym.dims<n>>, tensor<?x?xf32, #sym.dims<n, l>>
}

// -----

// CHECK: pass 'lower-to-triton': nest 'copy': 'group 8' orders programs along two dims of the grid, which has 1; remove it
loop.kernel @group symbols [] (%x: tensor<8xf32>) -> (tensor<8xf32>) {
  %t = loop.nest "copy" [i: parallel 8] schedule [i by 8 grid, i vector 8, launch warps 1 stages 1 group 8] -> tensor<8xf32> {
    %a = loop.read %x[i] : f32
    loop.yield none %a at [i]
  }
  loop.return %t : tensor<8xf32>
}

// -----

// CHECK: pass 'lower-to-triton': nest 'copy': no access of the launch can have a descriptor (it has no product of blocks); remove 'descriptors'
loop.kernel @pointwise symbols [] (%x: tensor<8xf32>) -> (tensor<8xf32>) {
  %t = loop.nest "copy" [i: parallel 8] schedule [i by 8 grid, i vector 8, launch warps 1 stages 1 descriptors] -> tensor<8xf32> {
    %a = loop.read %x[i] : f32
    loop.yield none %a at [i]
  }
  loop.return %t : tensor<8xf32>
}

// -----

// CHECK: no access of the launch can have a descriptor (its rows are no multiple of 16 bytes, or it is empty); remove 'descriptors'
loop.kernel @rows symbols [] (%x: tensor<32x63xf32>, %w: tensor<63x33xf32>) -> (tensor<32x33xf32>) {
  %h = loop.nest "matmul" [i: parallel 32, j: parallel 33, k: reduction 63] schedule [i by 16 grid fuse "l0", j by 16 grid fuse "l0", k by 16, i vector 16, j vector 16, k vector 16, launch warps 1 stages 2 descriptors] -> tensor<32x33xf32> {
    %u = loop.read %x[i, k] : f32
    %v = loop.read %w[k, j] : f32
    %p = arith.mulf %u, %v : f32
    loop.yield add %p at [i, j]
  }
  loop.return %h : tensor<32x33xf32>
}
