// RUN: igniter-opt %s -p mark-batches | filecheck %s
// RUN: igniter-opt %s -p mark-batches --emit=none --remarks --remarks-output=- | filecheck %s --check-prefix=REMARK

// The first dim of what is read and written is an axis of every nest, and its first subscript: the same is done for every
// element of the batch. It is not where elements of a batch are added up, where what is computed depends on the place in
// it, where another place is read, or where the batch is a part of a larger dim.

builtin.module {
  onnx.graph @main(%x: tensor<?x8xf32, #sym.dims<n, 8>>, %w: tensor<8xf32>) attributes {graph_name = "main", input_names = ["x", "w"], output_names = ["a", "b", "c", "d"]} {
    // CHECK:      fusion.region @each {{.*}} kernel @each {{.*}} attributes {igniter.batched = array<i64: 0>}
    %a = fusion.region @each (%x1 = %x : tensor<?x8xf32, #sym.dims<n, 8>>, %w1 = %w : tensor<8xf32>) kernel @each -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
      %y = onnx.Mul(%x1, %w1) : (tensor<?x8xf32, #sym.dims<n, 8>>, tensor<8xf32>) -> tensor<?x8xf32, #sym.dims<n, 8>>
      fusion.yield %y : tensor<?x8xf32, #sym.dims<n, 8>>
    }
    // CHECK:      fusion.region @sum {{.*}} kernel @sum
    // CHECK-NOT:  igniter.batched
    %b = fusion.region @sum (%x2 = %x : tensor<?x8xf32, #sym.dims<n, 8>>) kernel @sum -> (tensor<1x8xf32>) {
      %axes = onnx.Constant() {value = #onnx.tensor<1xi64, [0]>} : () -> tensor<1xi64>
      %y2 = onnx.ReduceSum(%x2, %axes) : (tensor<?x8xf32, #sym.dims<n, 8>>, tensor<1xi64>) -> tensor<1x8xf32>
      fusion.yield %y2 : tensor<1x8xf32>
    }
    %c = fusion.region @first (%x3 = %x : tensor<?x8xf32, #sym.dims<n, 8>>) kernel @first -> (tensor<?x8xf32, #sym.dims<n, 8>>) {
      %y3 = onnx.Exp(%x3) : (tensor<?x8xf32, #sym.dims<n, 8>>) -> tensor<?x8xf32, #sym.dims<n, 8>>
      fusion.yield %y3 : tensor<?x8xf32, #sym.dims<n, 8>>
    }
    %d = fusion.region @flat (%x4 = %x : tensor<?x8xf32, #sym.dims<n, 8>>) kernel @flat -> (tensor<?xf32, #sym.dims<8*n>>) {
      %minus = onnx.Constant() {value = #onnx.tensor<1xi64, [-1]>} : () -> tensor<1xi64>
      %y4 = onnx.Reshape(%x4, %minus) : (tensor<?x8xf32, #sym.dims<n, 8>>, tensor<1xi64>) -> tensor<?xf32, #sym.dims<8*n>>
      fusion.yield %y4 : tensor<?xf32, #sym.dims<8*n>>
    }
    onnx.return %a, %b, %c, %d : tensor<?x8xf32, #sym.dims<n, 8>>, tensor<1x8xf32>, tensor<?x8xf32, #sym.dims<n, 8>>, tensor<?xf32, #sym.dims<8*n>>
  }
  loop.kernel @each symbols [d0] (%x: tensor<?x8xf32, #sym.dims<d0, 8>>, %w: tensor<8xf32>) -> (tensor<?x8xf32, #sym.dims<d0, 8>>) {
    %s = loop.nest "sums" [i: parallel d0, k: reduction 8] -> tensor<?xf32, #sym.dims<d0>> {
      %v = loop.read %x[i, k] : f32
      loop.yield add %v at [i]
    }
    %t = loop.view %s : tensor<?xf32, #sym.dims<d0>> to tensor<?x1xf32, #sym.dims<d0, 1>>
    %y = loop.nest "scaled" [i: parallel d0, j: parallel 8] -> tensor<?x8xf32, #sym.dims<d0, 8>> {
      %v = loop.read %t[i, 0] : f32
      %u = loop.read %w[j] : f32
      %p = arith.mulf %v, %u : f32
      loop.yield none %p at [i, j]
    }
    loop.return %y : tensor<?x8xf32, #sym.dims<d0, 8>>
  }
  loop.kernel @sum symbols [d0] (%x: tensor<?x8xf32, #sym.dims<d0, 8>>) -> (tensor<1x8xf32>) {
    %s = loop.nest "sum" [j: parallel 8, i: reduction d0] -> tensor<1x8xf32> {
      %v = loop.read %x[i, j] : f32
      loop.yield add %v at [0, j]
    }
    loop.return %s : tensor<1x8xf32>
  }
  loop.kernel @first symbols [d0] (%x: tensor<?x8xf32, #sym.dims<d0, 8>>) -> (tensor<?x8xf32, #sym.dims<d0, 8>>) {
    %s = loop.nest "first" [i: parallel d0, j: parallel 8] -> tensor<?x8xf32, #sym.dims<d0, 8>> {
      %v = loop.read %x[d0 - 1 - i, j] : f32
      loop.yield none %v at [i, j]
    }
    loop.return %s : tensor<?x8xf32, #sym.dims<d0, 8>>
  }
  loop.kernel @flat symbols [d0] (%x: tensor<?x8xf32, #sym.dims<d0, 8>>) -> (tensor<?xf32, #sym.dims<8*d0>>) {
    %s = loop.nest "flat" [i: parallel 8*d0] -> tensor<?xf32, #sym.dims<8*d0>> {
      %v = loop.read %x[i floordiv 8, i mod 8] : f32
      loop.yield none %v at [i]
    }
    loop.return %s : tensor<?xf32, #sym.dims<8*d0>>
  }
}
// REMARK:     remark: mark-batches: 'each' applied: batched along the first dim of 1 inputs
// REMARK-NOT: remark
