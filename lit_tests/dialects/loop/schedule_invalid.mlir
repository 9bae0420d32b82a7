// RUN: igniter-opt %s --split-input-file --verify-diagnostics --emit=none

// Schedules that say what they may not.

// A word that does not exist.

// expected-error {{the schedule of nest 'sum': loop 'i': 'thraeds' is no word that it has; did you mean 'threads'?}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {loops = {i = {thraeds}}} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// A key that does not exist.

// expected-error {{the schedule of nest 'sum': it: 'bogus' is no word that it has: order, loops, product}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {bogus = 3 : i64} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// An axis that does not exist.

// expected-error {{the schedule of nest 'sum': 'loops' names 'j', which is no axis}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {loops = {j = {threads}}} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// A loop's words are a dictionary.

// expected-error {{the schedule of nest 'sum': the words of loop 'i' are "threads", not a dictionary}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {loops = {i = "threads"}} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// A count, and not a text.

// expected-error {{the schedule of nest 'sum': loop 'k': 'vector' is a positive count, not "wide"}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {loops = {k = {vector = "wide"}}} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// A vector of no lanes.

// expected-error {{the schedule of nest 'sum': loop 'k': 'vector' is a positive count, not 0}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {loops = {k = {vector = 0 : i64}}} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// A count, and not said alone.

// expected-error {{the schedule of nest 'sum': loop 'i': 'tile' is a positive count, not said alone}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {loops = {i = {tile}}} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// Fully, or by two at least.

// expected-error {{the schedule of nest 'sum': loop 'k': 'unroll' is said alone, or a count of at least 2, not 1}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {loops = {k = {unroll = 1 : i64}}} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// One of three texts.

// expected-error {{the schedule of nest 'sum': loop 'i': 'tail' is "mask" or "peel" or "rest", not "cut"}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {loops = {i = {tile = 8 : i64, tail = "cut"}}} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// A tail of what?

// expected-error {{the schedule of nest 'sum': loop 'i': 'tail' means nothing without 'tile'}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {loops = {i = {tail = "peel"}}} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// Inside of what?

// expected-error {{the schedule of nest 'sum': loop 'i': 'inner' means nothing without 'tile' or 'block'}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {loops = {i = {inner = {unroll}}}} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// Groups of what?

// expected-error {{the schedule of nest 'sum': loop 'i': 'group' means nothing without 'block'}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {loops = {i = {group = 4 : i64}}} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// Sums in turn are vectors.

// expected-error {{the schedule of nest 'sum': loop 'k': 'accumulators' means nothing without 'vector'}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {loops = {k = {accumulators = 4 : i64}}} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// Two ways to split.

// expected-error {{the schedule of nest 'sum': loop 'i': 'block' and 'tile' both split it; a block is tiled by what is said in 'inner'}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {order = ["i", "i", "k"], loops = {i = {block = 8 : i64, tile = 4 : i64}}} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// Threads would meet in the sum.

// expected-error {{the schedule of nest 'sum': loop 'k' is a reduction, whose iterations meet in one element: it cannot have 'threads'}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {loops = {k = {threads}}} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// A reduction stays where it is.

// expected-error {{the schedule of nest 'sum': loop 'k' is a reduction, whose iterations meet in one element: it cannot have 'sink'}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {loops = {k = {sink}}} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// The words inside of a tile are looked at, too.

// expected-error {{the schedule of nest 'sum': loop 'i', inside its tile: 'vectr' is no word that it has; did you mean 'vector'?}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {loops = {i = {tile = 8 : i64, inner = {vectr = 8 : i64}}}} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// What is inside of a tile goes to no threads.

// expected-error {{the schedule of nest 'sum': loop 'i', inside its tile: 'threads' is no word that it has}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {loops = {i = {tile = 8 : i64, inner = {threads}}}} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// Every axis has a loop.

// expected-error {{the schedule of nest 'sum': order ['i'] is no permutation of its axes ['i', 'k']}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {order = ["i"]} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// Blocks are two loops: which is where?

// expected-error {{the schedule of nest 'sum': it has no 'order', which loop 'i' with its blocks needs}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {loops = {i = {block = 4 : i64}}} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// Names, in a row.

// expected-error {{the schedule of nest 'sum': 'order' is "i, k", not names of axes}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {order = "i, k"} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// A sum per row.

// expected-error {{the schedule of nest 'sum': order ['k', 'i'] puts a parallel axis inside a reduction}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {order = ["k", "i"]} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// A product of axes that are there.

// expected-error {{the schedule of nest 'sum': the columns of a product are an axis, not "j"}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {product = {rows = "i", columns = "j", depth = "k", tile = [8 : i64, 3 : i64]}} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// A product has no other words.

// expected-error {{the schedule of nest 'sum': 'product': 'column' is no word that it has; did you mean 'columns'?}}
loop.kernel @k symbols [n] (%x: tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %s = loop.nest "sum" [i: parallel n, k: reduction 8] schedule {product = {rows = "i", column = "i", depth = "k", tile = [8 : i64, 3 : i64]}} -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i, k] : f32
    loop.yield add %a at [i]
  }
  loop.return %s : tensor<?xf32, #sym.dims<n>>
}

// -----

// The loops of a procedure have words, but no blocks.

// expected-error {{the schedule of nest 'p': loop 'j': 'block' is no word that it has}}
loop.kernel @p symbols [] (%x: tensor<4x4xf32>) -> (tensor<4x4xf32>) {
  %y = loop.procedure "p" [i: parallel 4] schedule {loops = {j = {block = 2 : i64}}} (%a = %x) -> (%o : tensor<4x4xf32>) {
    loop.for j = 0 to 4 {
      %v = loop.load %a[i, j] : f32
      loop.store %v, %o[i, j]
    }
  }
  loop.return %y : tensor<4x4xf32>
}

// -----

// A loop that is there already has hints, by the same words.

// expected-error {{the hints of loop 'j': 'vectr' is no word that it has; did you mean 'vector'?}}
loop.func @f symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
  loop.for j = 0 to n hints {vectr = 8 : i64} {
    %v = loop.load %x[j] : f32
    loop.store %v, %y[j]
  }
}
