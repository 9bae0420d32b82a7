// RUN: igniter-opt %s -p inline-nests --split-input-file | filecheck %s
// RUN: igniter-opt %s -p inline-nests --split-input-file --emit=none --remarks --remarks-output=- | filecheck %s --check-prefix=REMARK

// A transpose is folded by substituting subscripts.

// CHECK-LABEL: loop.kernel @transpose
loop.kernel @transpose symbols [] (%x: tensor<8x4xf32>) -> (tensor<4x8xf32>) {
  %t = loop.nest "transpose" [i: parallel 4, j: parallel 8] -> tensor<4x8xf32> {
    %v = loop.read %x[j, i] : f32
    loop.yield none %v at [i, j]
  }
  // CHECK-NEXT:  loop.nest "exp" [p: parallel 4, q: parallel 8]
  // CHECK-NEXT:    %[[V:.*]] = loop.read %x[q, p] : f32
  // CHECK-NEXT:    %[[E:.*]] = math.exp %[[V]] : f32
  // CHECK-NEXT:    loop.yield none %[[E]] at [p, q]
  %y = loop.nest "exp" [p: parallel 4, q: parallel 8] -> tensor<4x8xf32> {
    %a = loop.read %t[p, q] : f32
    %e = math.exp %a : f32
    loop.yield none %e at [p, q]
  }
  // CHECK: loop.return
  loop.return %y : tensor<4x8xf32>
}
// REMARK: 'transpose' applied: folded into 'exp'
// REMARK: 'exp' missed: its result leaves the kernel

// -----

// A concat under a pad: the guards of the reader join those of the reads, and its `else` goes to the end of the chain.

// CHECK-LABEL: loop.kernel @pad_of_concat
loop.kernel @pad_of_concat symbols [b] (%x: tensor<?x4xf32, #sym.dims<b, 4>>, %z: tensor<?x4xf32, #sym.dims<b, 4>>) -> (tensor<?x8xf32, #sym.dims<b + 1, 8>>) {
  %t = loop.nest "concat" [i: parallel b, j: parallel 8] -> tensor<?x8xf32, #sym.dims<b, 8>> {
    %w = loop.read %z[i, j - 4] if [j - 4] : f32
    %v = loop.read %x[i, j] if [3 - j] else %w : f32
    loop.yield none %v at [i, j]
  }
  // CHECK-NEXT:  loop.nest "pad" [p: parallel b + 1, q: parallel 8]
  // CHECK:         %[[HOLDS:.*]] = arith.cmpi sge
  // CHECK:         %[[NONE:.*]] = arith.select %[[HOLDS]], %{{.*}}, %one : f32
  // CHECK-NEXT:    %[[Z:.*]] = loop.read %z[p - 1, q - 4] if [p - 1, q - 4] else %[[NONE]] : f32
  // CHECK-NEXT:    %[[X:.*]] = loop.read %x[p - 1, q] if [p - 1, -q + 3] else %[[Z]] : f32
  // CHECK-NEXT:    loop.yield none %[[X]] at [p, q]
  %y = loop.nest "pad" [p: parallel b + 1, q: parallel 8] -> tensor<?x8xf32, #sym.dims<b + 1, 8>> {
    %one = arith.constant 1.0 : f32
    %a = loop.read %t[p - 1, q] if [p - 1] else %one : f32
    loop.yield none %a at [p, q]
  }
  loop.return %y : tensor<?x8xf32, #sym.dims<b + 1, 8>>
}

// -----

// A gather of something computed, through a view: the reader's index takes the place of the producer's axis, and the
// value outside of the guard is selected, since more than a read was guarded.

// CHECK-LABEL: loop.kernel @gather
loop.kernel @gather symbols [n] (%x: tensor<100x4x2xf32>, %ids: tensor<?xi64, #sym.dims<n>>) -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
  %t = loop.nest "scale" [i: parallel 100, j: parallel 4, k: parallel 2] -> tensor<100x4x2xf32> {
    %v = loop.read %x[i, j, k] : f32
    %m = arith.addf %v, %v : f32
    loop.yield none %m at [i, j, k]
  }
  %u = loop.view %t : tensor<100x4x2xf32> to tensor<400x2xf32>
  // CHECK-NEXT:  loop.nest "gather" [p: parallel n, q: parallel 4, r: parallel 2]
  // CHECK-NEXT:    %id = loop.read %ids[p] : i64
  // CHECK-NEXT:    %[[V:.*]] = loop.read %x[_0, q, r] with %id if [_0, -_0 + 99] : f32
  // CHECK-NEXT:    %[[M:.*]] = arith.addf %[[V]], %[[V]] : f32
  // CHECK:         arith.select %{{.*}}, %[[M]], %{{.*}} : f32
  %y = loop.nest "gather" [p: parallel n, q: parallel 4, r: parallel 2] -> tensor<?x8xf32, #sym.dims<n, 8>> {
    %id = loop.read %ids[p] : i64
    %a = loop.read %u[4*_0 + q, r] with %id if [_0, 99 - _0] : f32
    loop.yield none %a at [p, 2*q + r]
  }
  loop.return %y : tensor<?x8xf32, #sym.dims<n, 8>>
}

// -----

// Of a softmax, the subtraction is folded into its one reader. The exponential has two, and the reciprocal of a row's
// sum would be taken again for every element of the row.

// CHECK-LABEL: loop.kernel @softmax
loop.kernel @softmax symbols [b] (%x: tensor<?x128xf32, #sym.dims<b, 128>>, %m: tensor<?xf32, #sym.dims<b>>) -> (tensor<?x128xf32, #sym.dims<b, 128>>) {
  %d = loop.nest "sub" [i: parallel b, j: parallel 128] -> tensor<?x128xf32, #sym.dims<b, 128>> {
    %v = loop.read %x[i, j] : f32
    %w = loop.read %m[i] : f32
    %s = arith.subf %v, %w : f32
    loop.yield none %s at [i, j]
  }
  // CHECK-NEXT: %e = loop.nest "exp"
  // CHECK:        arith.subf
  // CHECK-NEXT:   math.exp
  %e = loop.nest "exp" [i: parallel b, j: parallel 128] -> tensor<?x128xf32, #sym.dims<b, 128>> {
    %v = loop.read %d[i, j] : f32
    %s = math.exp %v : f32
    loop.yield none %s at [i, j]
  }
  // CHECK: loop.nest "sum"
  %sum = loop.nest "sum" [i: parallel b, j: reduction 128] -> tensor<?xf32, #sym.dims<b>> {
    %v = loop.read %e[i, j] : f32
    loop.yield add %v at [i]
  }
  // CHECK: loop.nest "rcp"
  %r = loop.nest "rcp" [i: parallel b] -> tensor<?xf32, #sym.dims<b>> {
    %v = loop.read %sum[i] : f32
    %c = arith.constant 1.0 : f32
    %q = arith.divf %c, %v : f32
    loop.yield none %q at [i]
  }
  // CHECK: loop.nest "mul"
  %y = loop.nest "mul" [i: parallel b, j: parallel 128] -> tensor<?x128xf32, #sym.dims<b, 128>> {
    %v = loop.read %e[i, j] : f32
    %w = loop.read %r[i] : f32
    %s = arith.mulf %v, %w : f32
    loop.yield none %s at [i, j]
  }
  loop.return %y : tensor<?x128xf32, #sym.dims<b, 128>>
}
// REMARK: 'exp' missed: 2 readers would each run its body (cost 22 > 4)
// REMARK: 'sum' missed: it is a reduction with 'add'
// REMARK: 'rcp' missed: 'mul' would run its body again along j (cost 5 > 1)

// -----

// A contraction takes plain reads: a transpose is folded into it, a scale is not.

// CHECK-LABEL: loop.kernel @contraction
loop.kernel @contraction symbols [m] (%a: tensor<?x8xf32, #sym.dims<m, 8>>, %b: tensor<16x8xf32>) -> (tensor<?x16xf32, #sym.dims<m, 16>>) {
  // CHECK-NEXT: %s = loop.nest "scale"
  %s = loop.nest "scale" [i: parallel m, k: parallel 8] -> tensor<?x8xf32, #sym.dims<m, 8>> {
    %c = arith.constant 0.125 : f32
    %v = loop.read %a[i, k] : f32
    %w = arith.mulf %v, %c : f32
    loop.yield none %w at [i, k]
  }
  %t = loop.nest "transpose" [i: parallel 8, j: parallel 16] -> tensor<8x16xf32> {
    %v = loop.read %b[j, i] : f32
    loop.yield none %v at [i, j]
  }
  // CHECK:     loop.nest "matmul"
  // CHECK-DAG:   loop.read %s[i, k] : f32
  // CHECK-DAG:   loop.read %b[j, k] : f32
  %y = loop.nest "matmul" [i: parallel m, j: parallel 16, k: reduction 8] -> tensor<?x16xf32, #sym.dims<m, 16>> {
    %v = loop.read %s[i, k] : f32
    %w = loop.read %t[k, j] : f32
    %p = arith.mulf %v, %w : f32
    loop.yield add %p at [i, j]
  }
  loop.return %y : tensor<?x16xf32, #sym.dims<m, 16>>
}
// REMARK: 'transpose' applied: folded into 'matmul'
// REMARK: 'scale' missed: 'matmul' is a contraction and needs plain reads

// -----

// Joined dims would have to be taken apart again by divisions.

// CHECK-LABEL: loop.kernel @divisions
loop.kernel @divisions symbols [] (%x: tensor<8x4xf32>) -> (tensor<32xf32>) {
  // CHECK-NEXT: loop.nest "transpose"
  %t = loop.nest "transpose" [i: parallel 4, j: parallel 8] -> tensor<4x8xf32> {
    %v = loop.read %x[j, i] : f32
    loop.yield none %v at [i, j]
  }
  %u = loop.view %t : tensor<4x8xf32> to tensor<32xf32>
  %y = loop.nest "exp" [p: parallel 32] -> tensor<32xf32> {
    %a = loop.read %u[p] : f32
    %e = math.exp %a : f32
    loop.yield none %e at [p]
  }
  loop.return %y : tensor<32xf32>
}
// REMARK: 'transpose' missed: the subscripts of 'exp' would need 2 divisions

// -----

// An integer division that a guard keeps from running must not run.

// CHECK-LABEL: loop.kernel @trap
loop.kernel @trap symbols [] (%x: tensor<4xi32>, %z: tensor<4xi32>) -> (tensor<8xi32>) {
  %t = loop.nest "div" [i: parallel 4] -> tensor<4xi32> {
    %v = loop.read %x[i] : i32
    %w = loop.read %z[i] : i32
    %q = arith.divsi %v, %w : i32
    loop.yield none %q at [i]
  }
  %y = loop.nest "pad" [p: parallel 8] -> tensor<8xi32> {
    %a = loop.read %t[p] if [3 - p] : i32
    loop.yield none %a at [p]
  }
  loop.return %y : tensor<8xi32>
}
// REMARK: 'div' missed: 'pad' reads it under a guard, and its body divides integers

// -----

// A result of the kernel stays, but what only moves elements about is folded into the other readers even so.

// CHECK-LABEL: loop.kernel @escapes
loop.kernel @escapes symbols [] (%x: tensor<8x4xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK-NEXT: %t = loop.nest "transpose"
  %t = loop.nest "transpose" [i: parallel 4, j: parallel 8] -> tensor<4x8xf32> {
    %v = loop.read %x[j, i] : f32
    loop.yield none %v at [i, j]
  }
  // CHECK:      loop.nest "exp"
  // CHECK-NEXT:   loop.read %x[q, p] : f32
  %y = loop.nest "exp" [p: parallel 4, q: parallel 8] -> tensor<4x8xf32> {
    %a = loop.read %t[p, q] : f32
    %e = math.exp %a : f32
    loop.yield none %e at [p, q]
  }
  loop.return %t, %y : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// CHECK-LABEL: loop.kernel @scheduled
loop.kernel @scheduled symbols [] (%x: tensor<8xf32>) -> (tensor<8xf32>) {
  %t = loop.nest "neg" [i: parallel 8] schedule [i threads] -> tensor<8xf32> {
    %v = loop.read %x[i] : f32
    %n = arith.negf %v : f32
    loop.yield none %n at [i]
  }
  %y = loop.nest "exp" [p: parallel 8] -> tensor<8xf32> {
    %a = loop.read %t[p] : f32
    %e = math.exp %a : f32
    loop.yield none %e at [p]
  }
  loop.return %y : tensor<8xf32>
}
// REMARK: 'neg' missed: it already has a schedule

// -----

// The diamond of a gated activation becomes one nest: what is folded without duplicates merges the readers.

// CHECK-LABEL: loop.kernel @diamond
loop.kernel @diamond symbols [] (%x: tensor<8xf32>) -> (tensor<8xf32>) {
  %e = loop.nest "exp" [i: parallel 8] -> tensor<8xf32> {
    %v = loop.read %x[i] : f32
    %w = math.exp %v : f32
    loop.yield none %w at [i]
  }
  %t = loop.nest "tanh" [i: parallel 8] -> tensor<8xf32> {
    %v = loop.read %e[i] : f32
    %w = math.tanh %v : f32
    loop.yield none %w at [i]
  }
  // CHECK-NEXT: loop.nest "gate"
  // CHECK-NEXT:   loop.read
  // CHECK-NEXT:   %[[E:.*]] = math.exp
  // CHECK-NEXT:   %[[T:.*]] = math.tanh %[[E]]
  // CHECK-NEXT:   arith.mulf %[[E]], %[[T]]
  %y = loop.nest "gate" [i: parallel 8] -> tensor<8xf32> {
    %v = loop.read %e[i] : f32
    %w = loop.read %t[i] : f32
    %m = arith.mulf %v, %w : f32
    loop.yield none %m at [i]
  }
  loop.return %y : tensor<8xf32>
}

// -----

// A bias stays with its contraction where its reader permutes it; the permutation itself is done by whoever reads or,
// behind the last nest, by whoever writes.

// CHECK-LABEL: loop.kernel @heads
loop.kernel @heads symbols [s] (%a: tensor<?x8xf32, #sym.dims<s, 8>>, %w: tensor<8x32xf32>, %b: tensor<32xf32>) -> (tensor<4x?x8xf32, #sym.dims<4, s, 8>>) {
  // CHECK-NEXT: loop.nest "matmul"
  %m = loop.nest "matmul" [i: parallel s, j: parallel 32, k: reduction 8] -> tensor<?x32xf32, #sym.dims<s, 32>> {
    %v = loop.read %a[i, k] : f32
    %u = loop.read %w[k, j] : f32
    %p = arith.mulf %v, %u : f32
    loop.yield add %p at [i, j]
  }
  // CHECK:      loop.nest "bias" [i: parallel s, j: parallel 32]
  %c = loop.nest "bias" [i: parallel s, j: parallel 32] -> tensor<?x32xf32, #sym.dims<s, 32>> {
    %v = loop.read %m[i, j] : f32
    %u = loop.read %b[j] : f32
    %p = arith.addf %v, %u : f32
    loop.yield none %p at [i, j]
  }
  %h = loop.view %c : tensor<?x32xf32, #sym.dims<s, 32>> to tensor<?x4x8xf32, #sym.dims<s, 4, 8>>
  %t = loop.nest "transpose" [h: parallel 4, i: parallel s, d: parallel 8] -> tensor<4x?x8xf32, #sym.dims<4, s, 8>> {
    %v = loop.read %h[i, h, d] : f32
    loop.yield none %v at [h, i, d]
  }
  // CHECK:      loop.nest "scores" [h: parallel 4, i: parallel s, d: parallel 8, e: reduction 8] -> tensor<4x?x8xf32, #sym.dims<4, s, 8>>
  // CHECK-NEXT:   loop.read %{{.*}}[i, h, e] : f32
  %y = loop.nest "scores" [h: parallel 4, i: parallel s, d: parallel 8, e: reduction 8] -> tensor<?x4x8xf32, #sym.dims<s, 4, 8>> {
    %v = loop.read %t[h, i, e] : f32
    %u = loop.read %w[e, 8*h + d] : f32
    %p = arith.mulf %v, %u : f32
    loop.yield add %p at [i, h, d]
  }
  // CHECK:        loop.yield add %{{.*}} at [h, i, d]
  // CHECK-NOT:  loop.nest
  %z = loop.nest "back" [h: parallel 4, i: parallel s, d: parallel 8] -> tensor<4x?x8xf32, #sym.dims<4, s, 8>> {
    %v = loop.read %y[i, h, d] : f32
    loop.yield none %v at [h, i, d]
  }
  loop.return %z : tensor<4x?x8xf32, #sym.dims<4, s, 8>>
}
// REMARK: 'transpose' applied: folded into 'scores'
// REMARK: 'bias' missed: it ends the contraction 'matmul', and 'scores' reads it in another order
// REMARK: 'back' applied: 'scores' writes its elements directly to their final places

// -----

// What turns at an edge is copied in front of a contraction, so that its steps are of one size.

// CHECK-LABEL: loop.kernel @frames
loop.kernel @frames symbols [] (%x: tensor<512xf32>, %w: tensor<64x32xf32>) -> (tensor<9x32xf32>) {
  %m = loop.nest "mirror" [i: parallel 576] -> tensor<576xf32> {
    %v = loop.read %x[min(i, 1022 - i)] : f32
    loop.yield none %v at [i]
  }
  // CHECK-NEXT: %[[S:.*]] = loop.nest "shift" [i: parallel 575]
  // CHECK-NEXT:   loop.read %x[min({{.*}})] : f32
  %s = loop.nest "shift" [i: parallel 575] -> tensor<575xf32> {
    %v = loop.read %m[i + 1] : f32
    loop.yield none %v at [i]
  }
  // CHECK:      loop.nest "products"
  // CHECK-NEXT:   loop.read %[[S]][62*i + k] : f32
  %y = loop.nest "products" [i: parallel 9, o: parallel 32, k: reduction 64] -> tensor<9x32xf32> {
    %v = loop.read %s[62*i + k] : f32
    %u = loop.read %w[k, o] : f32
    %p = arith.mulf %v, %u : f32
    loop.yield add %p at [i, o]
  }
  loop.return %y : tensor<9x32xf32>
}
// REMARK: 'mirror' applied: folded into 'shift'
// REMARK: 'shift' missed: 'products' is a contraction and needs a constant stride, but this reverses at an edge

// -----

// Windows that overlap would run an expensive body again for each of their elements; windows apart run it once.

// CHECK-LABEL: loop.kernel @overlapping
loop.kernel @overlapping symbols [] (%x: tensor<40xf32>) -> (tensor<18xf32>) {
  // CHECK: loop.nest "sigmoid"
  %e = loop.nest "sigmoid" [i: parallel 40] -> tensor<40xf32> {
    %v = loop.read %x[i] : f32
    %w = math.exp %v : f32
    loop.yield none %w at [i]
  }
  %y = loop.nest "pool" [i: parallel 18, k: reduction 5] -> tensor<18xf32> {
    %v = loop.read %e[2*i + k] : f32
    loop.yield max %v at [i]
  }
  loop.return %y : tensor<18xf32>
}
// CHECK-LABEL: loop.kernel @apart
loop.kernel @apart symbols [] (%x: tensor<40xf32>) -> (tensor<8xf32>) {
  // CHECK-NOT: loop.nest "sigmoid"
  %e = loop.nest "sigmoid" [i: parallel 40] -> tensor<40xf32> {
    %v = loop.read %x[i] : f32
    %w = math.exp %v : f32
    loop.yield none %w at [i]
  }
  %y = loop.nest "pool" [i: parallel 8, k: reduction 5] -> tensor<8xf32> {
    %v = loop.read %e[5*i + k] : f32
    loop.yield max %v at [i]
  }
  loop.return %y : tensor<8xf32>
}
// A body of one addition is cheaper than a tensor in memory.
// CHECK-LABEL: loop.kernel @cheap
loop.kernel @cheap symbols [] (%x: tensor<40xf32>) -> (tensor<36xf32>) {
  // CHECK-NOT: loop.nest "twice"
  %e = loop.nest "twice" [i: parallel 40] -> tensor<40xf32> {
    %v = loop.read %x[i] : f32
    %w = arith.addf %v, %v : f32
    loop.yield none %w at [i]
  }
  %y = loop.nest "pool" [i: parallel 36, k: reduction 5] -> tensor<36xf32> {
    %v = loop.read %e[i + k] : f32
    loop.yield max %v at [i]
  }
  loop.return %y : tensor<36xf32>
}
// REMARK: 'sigmoid' missed: the windows of 'pool' would run its body 2.5 times (cost 20)
