// RUN: igniter-opt %s -p lower-linalg-to-loop --split-input-file --verify-diagnostics | filecheck %s

// What cannot be lowered; the message has the op, its line, and a way out.

// Buffers come after this level.
// CHECK: lower_linalg_to_loop_invalid.mlir:9: 'memref.alloc' cannot be lowered: the function works on buffers; give it before bufferization, on tensors

func.func @buffers() {
  %a = memref.alloc() : memref<4xf32>
  return
}

// -----

// CHECK: lower_linalg_to_loop_invalid.mlir:20: 'tensor.empty' cannot be lowered: a size depends on data, not only on the sizes of the arguments; make it an argument of type index

func.func @data(%n: tensor<i64>) -> tensor<?xf32> {
  %s = tensor.extract %n[] : tensor<i64>
  %i = arith.index_cast %s : i64 to index
  %e = tensor.empty(%i) : tensor<?xf32>
  return %e : tensor<?xf32>
}

// -----

// CHECK: lower_linalg_to_loop_invalid.mlir:31: 'linalg.matmul' cannot be lowered: the dims of the operands differ: 8 and 9 (correct the types of the operands)

func.func @depth(%a: tensor<4x8xf32>, %b: tensor<9x4xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // Both are constants: no size of a call could agree.

  %d = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<9x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %d : tensor<4x4xf32>
}

// -----

// CHECK: lower_linalg_to_loop_invalid.mlir:42: 'func.call' cannot be lowered: there is no body of @elsewhere; give the function in the same module

func.func private @elsewhere(tensor<4xf32>) -> tensor<4xf32>
func.func @caller(%a: tensor<4xf32>) -> tensor<4xf32> {

  %b = func.call @elsewhere(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}

// -----

// CHECK: there are no tensors of i4 in kernels

func.func @narrow(%a: tensor<4xi4>) -> tensor<4xi4> {
  return %a : tensor<4xi4>
}

// -----

// CHECK: 'linalg.generic' cannot be lowered: output 0 has no dim at the parallel axis 1; make it a reduction

func.func @race(%a: tensor<4x8xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<4x8xf32>) outs(%b : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// CHECK: 'linalg.generic': the body yields (f64), not (f32)

func.func @yielded(%a: tensor<4xf32>, %d: f64) -> tensor<4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%a : tensor<4xf32>) {
  ^bb0(%out: f32):
    linalg.yield %d : f64
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// CHECK: 'scf.if' cannot be lowered: control flow outside of the bodies of linalg ops is not supported; unroll it, or write it as linalg

func.func @flow(%c: i1, %a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %r = scf.if %c -> (tensor<4xf32>) {
    scf.yield %a : tensor<4xf32>
  } else {
    scf.yield %b : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
