// RUN: igniter-opt %s -p choose-schedule --target=x86-64-v4 | filecheck %s --check-prefix=OWN
// RUN: igniter-opt %s -p choose-schedule --target=x86-64-v4 --machine=%S/Inputs/small_machine.json | filecheck %s --check-prefix=SMALL
// RUN: not igniter-opt %s -p choose-schedule --target=x86-64-v3 --machine=%S/Inputs/wide_machine.json 2>&1 | filecheck %s --check-prefix=WIDE
// RUN: not igniter-opt %s -p choose-schedule --machine=%S/Inputs/misspelt_machine.json 2>&1 | filecheck %s --check-prefix=MISSPELT

// --machine gives figures in the place of the target's own: vectors and registers decide tiles and widths, the second-level
// cache how many panels go over all rows together, the latency of an addition how many sums stand side by side.

// OWN:    schedule [j by 240 threads fuse "g0", i by 8 fuse "g0", j by 48 {{.*}}, product(i, j, k) tile [8, 3], i, j vector 16]
// OWN:    schedule [i threads, j vector 16 accumulators 4]

// SMALL:  schedule [j by 64 threads fuse "g0", i by 6 fuse "g0", j by 16 {{.*}}, product(i, j, k) tile [6, 1], i, j vector 8 unroll]
// SMALL:  schedule [i threads, j vector 8 accumulators 2]

// WIDE:     figure 'vector_bytes' is 64, but target 'x86-64-v3' has 32; name a target that has it
// MISSPELT: misspelt_machine.json: unknown figure 'l2_byte' of a machine; did you mean 'l2_bytes'?

builtin.module {
  loop.kernel @product symbols [n] (%x: tensor<?x256xf32, #sym.dims<n, 256>>, %y: tensor<256x4096xf32>) -> (tensor<?x4096xf32, #sym.dims<n, 4096>>) {
    %z = loop.nest "product" [i: parallel n, j: parallel 4096, k: reduction 256] -> tensor<?x4096xf32, #sym.dims<n, 4096>> {
      %a = loop.read %x[i, k] : f32
      %b = loop.read %y[k, j] : f32
      %c = arith.mulf %a, %b : f32
      loop.yield add %c at [i, j]
    }
    loop.return %z : tensor<?x4096xf32, #sym.dims<n, 4096>>
  }
  loop.kernel @sum symbols [n, m] (%x: tensor<?x?xf32, #sym.dims<n, m>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %z = loop.nest "sum" [i: parallel n, j: reduction m] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i, j] : f32
      loop.yield add %a at [i]
    }
    loop.return %z : tensor<?xf32, #sym.dims<n>>
  }
}
