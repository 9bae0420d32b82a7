// RUN: igniter-opt %s -p lower-to-triton --split-input-file --verify-diagnostics --target=cuda | filecheck %s

// CHECK: lower-to-triton: nest 'copy' has no schedule that says how it is launched
loop.kernel @none symbols [] (%x: tensor<8xf32>) -> (tensor<8xf32>) {
  %t = loop.nest "copy" [i: parallel 8] schedule [i by 8 grid, i vector 8] -> tensor<8xf32> {
    %a = loop.read %x[i] : f32
    loop.yield none %a at [i]
  }
  loop.return %t : tensor<8xf32>
}

// -----

// CHECK: lower-to-triton: nest 'copy': 'i' has 12 lanes, which is no power of two
loop.kernel @lanes symbols [] (%x: tensor<8xf32>) -> (tensor<8xf32>) {
  %t = loop.nest "copy" [i: parallel 8] schedule [i by 12 grid, i vector 12, launch warps 1 stages 1] -> tensor<8xf32> {
    %a = loop.read %x[i] : f32
    loop.yield none %a at [i]
  }
  loop.return %t : tensor<8xf32>
}

// -----

// CHECK: lower-to-triton: nest 'sum': 'k' is in a program wholly, but 8 lanes do not have its n elements
loop.kernel @whole symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<1xf32>) {
  %t = loop.nest "sum" [k: reduction n] schedule [k vector 8, launch warps 1 stages 1] -> tensor<1xf32> {
    %a = loop.read %x[k] : f32
    loop.yield add %a at [0]
  }
  loop.return %t : tensor<1xf32>
}

// -----

// CHECK: lower-to-triton: nest 'reversed' cannot be in launch 'l0': it reads other elements than those of its block
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

// CHECK: lower-to-triton: nest 'ctpop': there is no code for 'math.ctpop' on a GPU
loop.kernel @ops symbols [] (%x: tensor<8xi32>) -> (tensor<8xi32>) {
  %t = loop.nest "ctpop" [i: parallel 8] schedule [i by 8 grid, i vector 8, launch warps 1 stages 1] -> tensor<8xi32> {
    %a = loop.read %x[i] : i32
    %b = math.ctpop %a : i32
    loop.yield none %b at [i]
  }
  loop.return %t : tensor<8xi32>
}
