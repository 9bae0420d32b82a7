// RUN: igniter-opt %s --split-input-file --verify-diagnostics --emit=none

// Schedules that say what they may not.

// -----

// A word that does not exist.

// expected-error {{the schedule of nest 'sum': loop 'i': unknown word 'thraeds'; did you mean 'threads'?}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [i thraeds, k] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// What is no loop.

// expected-error {{'[' expected}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {bogus = 3 : i64} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// An axis that does not exist.

// expected-error {{the schedule of nest 'sum': unknown axis 'j'}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [i, k, j threads] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// A word that is said twice.

// expected-error {{the schedule of nest 'sum': loop 'i': 'threads' is given twice}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [i threads threads, k] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// A count, and not a text.

// expected-error {{the schedule of nest 'sum': loop 'k': 'vector' takes a positive count}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [i, k vector "wide"] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// A count of nothing.

// expected-error {{the schedule of nest 'sum': loop 'k': 'vector' takes a positive count, not 0}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [i, k vector 0] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// One copy is no unrolling.

// expected-error {{the schedule of nest 'sum': loop 'k': 'unroll' takes nothing or a count of at least 2, not 1}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [i, k unroll 1] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// A tail that does not exist.

// expected-error {{the schedule of nest 'sum': loop 'i': 'tail' is mask, peel, rest, not 'cut'}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [i by 8 tail cut, i, k] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// A tail of what has no blocks.

// expected-error {{the schedule of nest 'sum': loop 'i': 'tail' has no effect without 'by'}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [i tail peel, k] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// Accumulators of what is no vector.

// expected-error {{the schedule of nest 'sum': loop 'k': 'accumulators' has no effect without 'vector'}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [i, k accumulators 4] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// Blocks are no lanes.

// expected-error {{the schedule of nest 'sum': loop 'i' iterates over blocks; it cannot have 'vector' (only the innermost loop of an axis has lanes)}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [i by 8 vector 8, i, k] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// A block of blocks that do not fill it.

// expected-error {{the schedule of nest 'sum': axis 'i': blocks of 8 are not a multiple of the blocks of 3 inside them}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [i by 8, i by 3, i, k] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// Blocks with nothing inside.

// expected-error {{the schedule of nest 'sum': axis 'i' has no loop inside its blocks of 8}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [i by 8, k] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// Two loops over all of an axis.

// expected-error {{the schedule of nest 'sum': axis 'i': blocks of 1 are not a multiple of the blocks of 1 inside them}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [i, i, k] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// A race.

// expected-error {{the schedule of nest 'sum': loop 'k' is a reduction; it cannot have 'threads' (its iterations add to the same element; split it with split_reduction first)}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [i, k threads] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// An axis without a loop.

// expected-error {{the schedule of nest 'sum': axis 'k' has no loop}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [i] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// What is no sum adds nothing to the result.

// expected-error {{the schedule of nest 'sum': loop 'i' is not a reduction; it cannot have 'into'}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [i by 8 into result, i, k] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// Of no iterations, 0 would not be written.

// expected-error {{the schedule of nest 'sum': loop 'k' iterates over single elements; it cannot have 'into' (a reduction of no iterations must still write 0)}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [k into result, i] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// The result is added to by one loop.

// expected-error {{the schedule of nest 'sum': only one loop, the outermost reduction, may have 'into result'}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [k by 4 into result, k by 2 into result, i, k] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// A product of what are no axes.

// expected-error {{the schedule of nest 'sum': the product has the unknown axis 'j'}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [product(i, j, k) tile [8, 3], i, k] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// A product of one axis twice.

// expected-error {{the schedule of nest 'sum': the axes of a product must differ}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [i by 8, product(i, i, k) tile [8, 3], i] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// A product without a tile.

// expected-error {{the schedule of nest 'sum': a product needs a tile: product(..) tile [rows, panels]}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [i by 8, product(i, k), i] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// A tile of three sizes.

// expected-error {{the schedule of nest 'sum': the tile of a product must be [rows, panels], two positive counts}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [i by 8, product(i, k) tile [8, 3, 1], i] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// A loop over what the product goes along.

// expected-error {{the schedule of nest 'sum': loop 'k' is behind the product; only single rows and columns of its tile may be}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [i by 8, product(i, k) tile [8, 3], i, k] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// The loops of a procedure have words, but no blocks.

// expected-error {{the schedule of nest 'p': loop 'j' is in the body of a procedure; it cannot have 'by'}}
loop.kernel @p symbols [] (%x: tensor<4x4xf32>) -> (tensor<4x4xf32>) {
  %y = loop.procedure "p" [i: parallel 4] schedule [i, j by 2] (%a = %x) -> (%o : tensor<4x4xf32>) {
    loop.for j = 0 to 4 {
      %v = loop.load %a[i, j] : f32
      loop.store %v, %o[i, j]
    }
  }
  loop.return %y : tensor<4x4xf32>
}

// -----

// A loop that is there already has words of the same table.

// expected-error {{the schedule of loop 'j': unknown word 'vectr'; did you mean 'vector'?}}
loop.func @f symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
  loop.for j = 0 to n schedule [vectr 8] {
    %v = loop.load %x[j] : f32
    loop.store %v, %y[j]
  }
}

// -----

// A micro-kernel that does not exist.

// expected-error {{the schedule of nest 'p': there is no micro-kernel called 'f33'; there are bf16, f16, f32, f32bf16, f32f16, f64, i16, i8i8, u8i8; did you mean 'f32'?}}
loop.kernel @k symbols [n] (%a: tensor<?x8xf32, #sym.dims<n, 8>>, %b: tensor<8x16xf32>) -> (tensor<?x16xf32, #sym.dims<n, 16>>) {
  %p = loop.nest "p" [i: parallel n, j: parallel 16, k: reduction 8] schedule [i by 6, j by 16, product(i, j, k) tile [6, 1] by "f33", i, j] -> tensor<?x16xf32, #sym.dims<n, 16>> {
    %x = loop.read %a[i, k] : f32
    %y = loop.read %b[k, j] : f32
    %m = arith.mulf %x, %y : f32
    loop.yield add %m at [i, j]
  }
  loop.return %p : tensor<?x16xf32, #sym.dims<n, 16>>
}

// -----

// Its name is in quotes.

// expected-error {{the schedule of nest 'p': 'by' of a product needs the name of a micro-kernel, in quotes}}
loop.kernel @k symbols [n] (%a: tensor<?x8xf32, #sym.dims<n, 8>>, %b: tensor<8x16xf32>) -> (tensor<?x16xf32, #sym.dims<n, 16>>) {
  %p = loop.nest "p" [i: parallel n, j: parallel 16, k: reduction 8] schedule [i by 6, j by 16, product(i, j, k) tile [6, 1] by f32, i, j] -> tensor<?x16xf32, #sym.dims<n, 16>> {
    %x = loop.read %a[i, k] : f32
    %y = loop.read %b[k, j] : f32
    %m = arith.mulf %x, %y : f32
    loop.yield add %m at [i, j]
  }
  loop.return %p : tensor<?x16xf32, #sym.dims<n, 16>>
}

// -----

// A memory that does not exist.

// expected-error {{a result: unknown memory 'stak'; did you mean 'stack'?}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
  %e = loop.nest "exp" [i: parallel n, j: parallel 8] schedule [i fuse "g", store in stak, j] -> tensor<?x8xf32, #sym.dims<n, 8>> {
    %a = loop.read %x[i, j] : f32
    %b = math.exp %a : f32
    loop.yield none %b at [i, j]
  }
  %y = loop.nest "double" [i: parallel n, j: parallel 8] schedule [i fuse "g", j] -> tensor<?x8xf32, #sym.dims<n, 8>> {
    %a = loop.read %e[i, j] : f32
    %b = arith.addf %a, %a : f32
    loop.yield none %b at [i, j]
  }
  loop.return %y : tensor<?x8xf32, #sym.dims<n, 8>>
}

// -----

// Two places.

// expected-error {{it has 'store' twice}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
  %e = loop.nest "exp" [i: parallel n, j: parallel 8] schedule [store, i fuse "g", store, j] -> tensor<?x8xf32, #sym.dims<n, 8>> {
    %a = loop.read %x[i, j] : f32
    %b = math.exp %a : f32
    loop.yield none %b at [i, j]
  }
  %y = loop.nest "double" [i: parallel n, j: parallel 8] schedule [i fuse "g", j] -> tensor<?x8xf32, #sym.dims<n, 8>> {
    %a = loop.read %e[i, j] : f32
    %b = arith.addf %a, %a : f32
    loop.yield none %b at [i, j]
  }
  loop.return %y : tensor<?x8xf32, #sym.dims<n, 8>>
}

// -----

// A loop that no reader is in.

// expected-error {{'store' is inside loop 'i', which the readers of the result do not share (add 'fuse' to the loops of both nests)}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
  %e = loop.nest "exp" [i: parallel n, j: parallel 8] schedule [i, store, j] -> tensor<?x8xf32, #sym.dims<n, 8>> {
    %a = loop.read %x[i, j] : f32
    %b = math.exp %a : f32
    loop.yield none %b at [i, j]
  }
  %y = loop.nest "double" [i: parallel n, j: parallel 8] schedule [i fuse "g", j] -> tensor<?x8xf32, #sym.dims<n, 8>> {
    %a = loop.read %e[i, j] : f32
    %b = arith.addf %a, %a : f32
    loop.yield none %b at [i, j]
  }
  loop.return %y : tensor<?x8xf32, #sym.dims<n, 8>>
}

// -----

// A loop whose iterations are made later.

// expected-error {{'store' is inside loop 'i' with 'tail', which a later pass transforms}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
  %e = loop.nest "exp" [i: parallel n, j: parallel 8] schedule [i by 4 tail peel fuse "g", store, i, j] -> tensor<?x8xf32, #sym.dims<n, 8>> {
    %a = loop.read %x[i, j] : f32
    %b = math.exp %a : f32
    loop.yield none %b at [i, j]
  }
  %y = loop.nest "double" [i: parallel n, j: parallel 8] schedule [i fuse "g", j] -> tensor<?x8xf32, #sym.dims<n, 8>> {
    %a = loop.read %e[i, j] : f32
    %b = arith.addf %a, %a : f32
    loop.yield none %b at [i, j]
  }
  loop.return %y : tensor<?x8xf32, #sym.dims<n, 8>>
}

// -----

// Lanes.

// expected-error {{'store' is inside loop 'j' with 'vector', which a later pass transforms}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
  %e = loop.nest "exp" [i: parallel n, j: parallel 8] schedule [i fuse "g", j fuse "h" vector 8, store] -> tensor<?x8xf32, #sym.dims<n, 8>> {
    %a = loop.read %x[i, j] : f32
    %b = math.exp %a : f32
    loop.yield none %b at [i, j]
  }
  %y = loop.nest "double" [i: parallel n, j: parallel 8] schedule [i fuse "g", j] -> tensor<?x8xf32, #sym.dims<n, 8>> {
    %a = loop.read %e[i, j] : f32
    %b = arith.addf %a, %a : f32
    loop.yield none %b at [i, j]
  }
  loop.return %y : tensor<?x8xf32, #sym.dims<n, 8>>
}

// -----

// A reduction, whose iterations all write what is stored.

// expected-error {{'store' is inside loop 'k', a reduction whose iterations all write the result}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule [i fuse "g", k fuse "h", store] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// A group of programs without blocks.

// expected-error {{'launch' has 'group 0'; a group has at least 1 block}}
loop.kernel @k symbols [] (%x: tensor<8xf32>) -> (tensor<8xf32>) {
  %t = loop.nest "copy" [i: parallel 8] schedule [i by 8 grid, i vector 8, launch warps 1 stages 1 group 0] -> tensor<8xf32> {
    %a = loop.read %x[i] : f32
    loop.yield none %a at [i]
  }
  loop.return %t : tensor<8xf32>
}

// -----

// Warps for loads without descriptors.

// expected-error {{'launch' has 'specialized' without 'descriptors': the warps for loads copy by descriptors}}
loop.kernel @k symbols [] (%x: tensor<8xf32>) -> (tensor<8xf32>) {
  %t = loop.nest "copy" [i: parallel 8] schedule [i by 8 grid, i vector 8, launch warps 1 stages 1 specialized] -> tensor<8xf32> {
    %a = loop.read %x[i] : f32
    loop.yield none %a at [i]
  }
  loop.return %t : tensor<8xf32>
}
