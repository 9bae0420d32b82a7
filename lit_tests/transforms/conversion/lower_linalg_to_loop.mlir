// RUN: igniter-opt %s -p "lower-linalg-to-loop" --split-input-file | filecheck %s

// Dynamic dims are symbols. The dims of the operands of a product are equal, so the arguments share a symbol; the
// initial value of a sum is dropped if it is zero.

// CHECK:        loop.kernel @product symbols [a_d0, a_d1] (%a: tensor<?x?xf32, #sym.dims<a_d0, a_d1>>, %b: tensor<?x16xf32, #sym.dims<a_d1, 16>>) -> (tensor<?x16xf32, #sym.dims<a_d0, 16>>) attributes {igniter.arguments = [{name = "a"}, {name = "b"}], igniter.results = ["result0"]} {
// CHECK-NEXT:     %0 = loop.nest "matmul" [i0: parallel a_d0, i1: parallel 16, r0: reduction a_d1] -> tensor<?x16xf32, #sym.dims<a_d0, 16>> {
// CHECK-NEXT:       %1 = loop.read %a[i0, r0] : f32
// CHECK-NEXT:       %2 = loop.read %b[r0, i1] : f32
// CHECK-NEXT:       %3 = arith.mulf %1, %2 : f32
// CHECK-NEXT:       loop.yield add %3 at [i0, i1]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %0 : tensor<?x16xf32, #sym.dims<a_d0, 16>>
// CHECK-NEXT:   }

func.func @product(%a: tensor<?x?xf32>, %b: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x16xf32>) -> tensor<?x16xf32>
  %c = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x16xf32>) outs(%f : tensor<?x16xf32>) -> tensor<?x16xf32>
  return %c : tensor<?x16xf32>
}

// -----

// Any other initial value is combined after the fold. A sum of 16-bit floats is in f32.

// CHECK:        loop.kernel @added symbols [] (%a: tensor<4x8xf16>, %b: tensor<8x4xf16>, %c: tensor<4x4xf16>) -> (tensor<4x4xf16>) attributes {igniter.arguments = [{name = "a"}, {name = "b"}, {name = "c"}], igniter.results = ["result0"]} {
// CHECK-NEXT:     %0 = loop.nest "matmul" [i0: parallel 4, i1: parallel 4, r0: reduction 8] -> tensor<4x4xf32> {
// CHECK-NEXT:       %1 = loop.read %a[i0, r0] : f16
// CHECK-NEXT:       %2 = loop.read %b[r0, i1] : f16
// CHECK-NEXT:       %3 = arith.extf %1 : f16 to f32
// CHECK-NEXT:       %4 = arith.extf %2 : f16 to f32
// CHECK-NEXT:       %5 = arith.mulf %3, %4 : f32
// CHECK-NEXT:       loop.yield add %5 at [i0, i1]
// CHECK-NEXT:     }
// CHECK-NEXT:     %6 = loop.nest "matmul.init" [i0: parallel 4, i1: parallel 4] -> tensor<4x4xf16> {
// CHECK-NEXT:       %7 = loop.read %0[i0, i1] : f32
// CHECK-NEXT:       %8 = loop.read %c[i0, i1] : f16
// CHECK-NEXT:       %9 = arith.extf %8 : f16 to f32
// CHECK-NEXT:       %10 = arith.addf %9, %7 : f32
// CHECK-NEXT:       %11 = arith.truncf %10 : f32 to f16
// CHECK-NEXT:       loop.yield none %11 at [i0, i1]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %6 : tensor<4x4xf16>
// CHECK-NEXT:   }

func.func @added(%a: tensor<4x8xf16>, %b: tensor<8x4xf16>, %c: tensor<4x4xf16>) -> tensor<4x4xf16> {
  %d = linalg.matmul ins(%a, %b : tensor<4x8xf16>, tensor<8x4xf16>) outs(%c : tensor<4x4xf16>) -> tensor<4x4xf16>
  return %d : tensor<4x4xf16>
}

// -----

// Only the maximum is used: a fold. The index is not computed.

// CHECK:        loop.kernel @largest symbols [] (%x: tensor<4x8xf32>) -> (tensor<4xf32>) attributes {igniter.arguments = [{name = "x"}], igniter.results = ["result0"]} {
// CHECK-NEXT:     %0 = loop.nest "generic" [i0: parallel 4, r0: reduction 8] -> tensor<4xf32> {
// CHECK-NEXT:       %1 = loop.read %x[i0, r0] : f32
// CHECK-NEXT:       loop.yield max %1 at [i0]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %0 : tensor<4xf32>
// CHECK-NEXT:   }

func.func @largest(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i64
  %ev = tensor.empty() : tensor<4xf32>
  %ei = tensor.empty() : tensor<4xi64>
  %v = linalg.fill ins(%least : f32) outs(%ev : tensor<4xf32>) -> tensor<4xf32>
  %i = linalg.fill ins(%zero : i64) outs(%ei : tensor<4xi64>) -> tensor<4xi64>
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%v, %i : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%in: f32, %out: f32, %at: i64):
    %k = linalg.index 1 : index
    %n = arith.index_cast %k : index to i64
    %m = arith.maximumf %in, %out : f32
    %g = arith.cmpf ogt, %in, %out : f32
    %s = arith.select %g, %n, %at : i64
    linalg.yield %m, %s : f32, i64
  } -> (tensor<4xf32>, tensor<4xi64>)
  return %r#0 : tensor<4xf32>
}

// -----

// Both are used: a procedure in the order of the axis, for no combiner expresses the index.

// CHECK:        loop.kernel @argmax symbols [] (%x: tensor<4x8xf32>) -> (tensor<4xi64>) attributes {igniter.arguments = [{name = "x"}], igniter.results = ["result0"]} {
// CHECK-NEXT:     %0 = loop.procedure "generic" [i0: parallel 4] (%1 = %x) -> (%2 : tensor<4xi64>) {
// CHECK-NEXT:       %3 = arith.constant 0xff800000 : f32
// CHECK-NEXT:       %4 = loop.alloc "out0" : memref<f32, "register">
// CHECK-NEXT:       loop.store %3, %4[]
// CHECK-NEXT:       %5 = arith.constant 0 : i64
// CHECK-NEXT:       %6 = loop.alloc "out1" : memref<i64, "register">
// CHECK-NEXT:       loop.store %5, %6[]
// CHECK-NEXT:       loop.for k0 = 0 to 8 sequential {
// CHECK-NEXT:         %7 = loop.load %1[i0, k0] : f32
// CHECK-NEXT:         %8 = loop.load %4[] : f32
// CHECK-NEXT:         %9 = loop.load %6[] : i64
// CHECK-NEXT:         %10 = arith.maximumf %7, %8 : f32
// CHECK-NEXT:         %11 = arith.cmpf ogt, %7, %8 : f32
// CHECK-NEXT:         %12 = loop.index k0 : i64
// CHECK-NEXT:         %13 = arith.select %11, %12, %9 : i64
// CHECK-NEXT:         loop.store %10, %4[]
// CHECK-NEXT:         loop.store %13, %6[]
// CHECK-NEXT:       }
// CHECK-NEXT:       %14 = loop.load %6[] : i64
// CHECK-NEXT:       loop.store %14, %2[i0]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %0 : tensor<4xi64>
// CHECK-NEXT:   }

func.func @argmax(%x: tensor<4x8xf32>) -> tensor<4xi64> {
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i64
  %ev = tensor.empty() : tensor<4xf32>
  %ei = tensor.empty() : tensor<4xi64>
  %v = linalg.fill ins(%least : f32) outs(%ev : tensor<4xf32>) -> tensor<4xf32>
  %i = linalg.fill ins(%zero : i64) outs(%ei : tensor<4xi64>) -> tensor<4xi64>
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%v, %i : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%in: f32, %out: f32, %at: i64):
    %k = linalg.index 1 : index
    %n = arith.index_cast %k : index to i64
    %m = arith.maximumf %in, %out : f32
    %g = arith.cmpf ogt, %in, %out : f32
    %s = arith.select %g, %n, %at : i64
    linalg.yield %m, %s : f32, i64
  } -> (tensor<4xf32>, tensor<4xi64>)
  return %r#1 : tensor<4xi64>
}

// -----

// A broadcast as exporters write it: the dim is 1, or as long as the axis. The kernel requires it.

// CHECK:        loop.kernel @broadcast symbols [x_d0, y_d0] (%x: tensor<?xf32, #sym.dims<x_d0>>, %y: tensor<?xf32, #sym.dims<y_d0>>) -> (tensor<?xf32, #sym.dims<y_d0>>) requires [
// CHECK-NEXT:     x_d0*max(-x_d0 + y_d0, 0) - max(-x_d0 + y_d0, 0) == 0 "an operand cannot be broadcast" node "tensor.extract at lower_linalg_to_loop.mlir:158"] attributes {igniter.arguments = [{name = "x"}, {name = "y"}], igniter.results = ["result0"]} {
// CHECK-NEXT:     %0 = loop.nest "generic" [i0: parallel y_d0] -> tensor<?xf32, #sym.dims<y_d0>> {
// CHECK-NEXT:       %1 = loop.read %x[min(i0, x_d0 - 1)] if [min(i0, x_d0 - 1)] : f32
// CHECK-NEXT:       loop.yield none %1 at [i0]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %0 : tensor<?xf32, #sym.dims<y_d0>>
// CHECK-NEXT:   }

func.func @broadcast(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %y, %c0 : tensor<?xf32>
  %m = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<?xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %one = arith.cmpi eq, %m, %c1 : index
    %s = arith.select %one, %c0, %i : index
    %v = tensor.extract %x[%s] : tensor<?xf32>
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

// A cf.assert of sizes unifies symbols, or is a requirement; one of data is a check of the kernel, with the place of a
// failing point.

// CHECK:        loop.kernel @asserts symbols [x_d0, z_d0] (%x: tensor<?xf32, #sym.dims<x_d0>>, %y: tensor<?xf32, #sym.dims<x_d0>>, %z: tensor<?xf32, #sym.dims<z_d0>>) -> (tensor<?xf32, #sym.dims<x_d0>>, tensor<i64>) requires [
// CHECK-NEXT:     -z_d0 + 4 <= 0 "z is too short" node "cf.assert at lower_linalg_to_loop.mlir:200"] checks [
// CHECK-NEXT:     "y has a zero" node "cf.assert at lower_linalg_to_loop.mlir:205"] attributes {igniter.arguments = [{name = "x"}, {name = "y"}, {name = "z"}], igniter.results = ["result0"]} {
// CHECK-NEXT:     %0 = loop.nest "generic" [i0: parallel x_d0] -> tensor<?xf32, #sym.dims<x_d0>> {
// CHECK-NEXT:       %1 = loop.read %x[i0] : f32
// CHECK-NEXT:       %2 = loop.read %y[i0] : f32
// CHECK-NEXT:       %3 = arith.divf %1, %2 : f32
// CHECK-NEXT:       loop.yield none %3 at [i0]
// CHECK-NEXT:     }
// CHECK-NEXT:     %4 = loop.nest "generic.check" [r0: reduction x_d0] -> tensor<i64> {
// CHECK-NEXT:       %5 = loop.read %y[r0] : f32
// CHECK-NEXT:       %6 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:       %7 = arith.cmpf one, %5, %6 : f32
// CHECK-NEXT:       %8 = loop.index r0 : i64
// CHECK-NEXT:       %9 = arith.constant -9223372036854775808 : i64
// CHECK-NEXT:       %10 = arith.select %7, %9, %8 : i64
// CHECK-NEXT:       loop.yield max %10 at []
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %0, %4 : tensor<?xf32, #sym.dims<x_d0>>, tensor<i64>
// CHECK-NEXT:   }

func.func @asserts(%x: tensor<?xf32>, %y: tensor<?xf32>, %z: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %m = tensor.dim %y, %c0 : tensor<?xf32>
  %k = tensor.dim %z, %c0 : tensor<?xf32>
  %same = arith.cmpi eq, %n, %m : index
  cf.assert %same, "x and y differ"
  %long = arith.cmpi sge, %k, %c4 : index
  cf.assert %long, "z is too short"
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %nonzero = arith.cmpf one, %b, %zero : f32
    cf.assert %nonzero, "y has a zero"
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

// An index argument is a symbol; a scalar one is a tensor of rank 0; a large constant is a weight.

// CHECK:        loop.kernel @arguments symbols [n] (%s: tensor<f32>, %x: tensor<20xf32>, %weight0: tensor<20xf32>) -> (tensor<?x20xf32, #sym.dims<n, 20>>) attributes {igniter.arguments = [{name = "n", index}, {name = "s"}, {name = "x"}, {name = "weight0", value = #onnx.tensor<20xf32, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0]>}], igniter.results = ["result0"]} {
// CHECK-NEXT:     %0 = loop.nest "generic" [i0: parallel n, i1: parallel 20] -> tensor<?x20xf32, #sym.dims<n, 20>> {
// CHECK-NEXT:       %1 = loop.read %x[i1] : f32
// CHECK-NEXT:       %2 = loop.read %weight0[i1] : f32
// CHECK-NEXT:       %3 = loop.read %s[] : f32
// CHECK-NEXT:       %4 = arith.mulf %1, %2 : f32
// CHECK-NEXT:       %5 = arith.addf %4, %3 : f32
// CHECK-NEXT:       loop.yield none %5 at [i0, i1]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %0 : tensor<?x20xf32, #sym.dims<n, 20>>
// CHECK-NEXT:   }

func.func @arguments(%n: index, %s: f32, %x: tensor<20xf32>) -> tensor<?x20xf32> {
  %w = arith.constant dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0]> : tensor<20xf32>
  %e = tensor.empty(%n) : tensor<?x20xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x, %w, %s : tensor<20xf32>, tensor<20xf32>, f32) outs(%e : tensor<?x20xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %p, %c : f32
    linalg.yield %q : f32
  } -> tensor<?x20xf32>
  return %r : tensor<?x20xf32>
}

// -----

// A window, and its padding; a private function is inlined into its caller.

// CHECK:        loop.kernel @padded symbols [] (%x: tensor<1x1x4x4xf32>, %w: tensor<2x1x3x3xf32>) -> (tensor<1x2x2x2xf32>) attributes {igniter.arguments = [{name = "x"}, {name = "w"}], igniter.results = ["result0"]} {
// CHECK-NEXT:     %0 = loop.nest "pad" [i0: parallel 6, i1: parallel 6] -> tensor<1x1x6x6xf32> {
// CHECK-NEXT:       %1 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:       %2 = loop.read %x[0, 0, i0 - 1, i1 - 1] if [i0 - 1, -i0 + 4, i1 - 1, -i1 + 4] else %1 : f32
// CHECK-NEXT:       loop.yield none %2 at [0, 0, i0, i1]
// CHECK-NEXT:     }
// CHECK-NEXT:     %3 = loop.nest "conv_2d_nchw_fchw" [i0: parallel 2, i1: parallel 2, i2: parallel 2, r0: reduction 3, r1: reduction 3] -> tensor<1x2x2x2xf32> {
// CHECK-NEXT:       %4 = loop.read %0[0, 0, 2*i1 + r0, 2*i2 + r1] : f32
// CHECK-NEXT:       %5 = loop.read %w[i0, 0, r0, r1] : f32
// CHECK-NEXT:       %6 = arith.mulf %4, %5 : f32
// CHECK-NEXT:       loop.yield add %6 at [0, i0, i1, i2]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %3 : tensor<1x2x2x2xf32>
// CHECK-NEXT:   }

func.func private @window(%x: tensor<1x1x6x6xf32>, %w: tensor<2x1x3x3xf32>) -> tensor<1x2x2x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2x2x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%x, %w : tensor<1x1x6x6xf32>, tensor<2x1x3x3xf32>) outs(%f : tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  return %c : tensor<1x2x2x2xf32>
}
func.func @padded(%x: tensor<1x1x4x4xf32>, %w: tensor<2x1x3x3xf32>) -> tensor<1x2x2x2xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x1x4x4xf32> to tensor<1x1x6x6xf32>
  %c = func.call @window(%p, %w) : (tensor<1x1x6x6xf32>, tensor<2x1x3x3xf32>) -> tensor<1x2x2x2xf32>
  return %c : tensor<1x2x2x2xf32>
}
