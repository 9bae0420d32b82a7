// RUN: igniter-opt %s -p "split-axes" --split-input-file | filecheck %s

// What a nest reads through joined dims is split, and so is what it writes; every operand takes its part.

// CHECK:        loop.kernel @joined symbols [n] (%x: tensor<?x64x49xf32, #sym.dims<n, 64, 49>>, %w: tensor<64xf32>) -> (tensor<?x64x49xf32, #sym.dims<n, 64, 49>>) {
// CHECK-NEXT:     %0 = loop.view %x : tensor<?x64x49xf32, #sym.dims<n, 64, 49>> to tensor<?x8x8x49xf32, #sym.dims<n, 8, 8, 49>>
// CHECK-NEXT:     %g = loop.nest "exp" [i: parallel n, g: parallel 8, c: parallel 8, p: parallel 49] -> tensor<?x8x8x49xf32, #sym.dims<n, 8, 8, 49>> {
// CHECK-NEXT:       %a = loop.read %0[i, g, c, p] : f32
// CHECK-NEXT:       %e = math.exp %a : f32
// CHECK-NEXT:       loop.yield none %e at [i, g, c, p]
// CHECK-NEXT:     }
// CHECK-NEXT:     %v = loop.view %g : tensor<?x8x8x49xf32, #sym.dims<n, 8, 8, 49>> to tensor<?x64x49xf32, #sym.dims<n, 64, 49>>
// CHECK-NEXT:     %y = loop.nest "mul" [i: parallel n, c_0: parallel 8, c_1: parallel 8, p: parallel 49] -> tensor<?x8x8x49xf32, #sym.dims<n, 8, 8, 49>> {
// CHECK-NEXT:       %a_1 = loop.read %g[i, c_0, c_1, p] : f32
// CHECK-NEXT:       %b = loop.read %w[8*c_0 + c_1] : f32
// CHECK-NEXT:       %m = arith.mulf %a_1, %b : f32
// CHECK-NEXT:       loop.yield none %m at [i, c_0, c_1, p]
// CHECK-NEXT:     }
// CHECK-NEXT:     %y_1 = loop.view %y : tensor<?x8x8x49xf32, #sym.dims<n, 8, 8, 49>> to tensor<?x64x49xf32, #sym.dims<n, 64, 49>>
// CHECK-NEXT:     loop.return %y_1 : tensor<?x64x49xf32, #sym.dims<n, 64, 49>>
// CHECK-NEXT:   }


builtin.module {
  loop.kernel @joined symbols [n] (%x: tensor<?x64x49xf32, #sym.dims<n, 64, 49>>, %w: tensor<64xf32>) -> (tensor<?x64x49xf32, #sym.dims<n, 64, 49>>) {
    %0 = loop.view %x : tensor<?x64x49xf32, #sym.dims<n, 64, 49>> to tensor<?x8x8x49xf32, #sym.dims<n, 8, 8, 49>>
    %g = loop.nest "exp" [i: parallel n, g: parallel 8, c: parallel 8, p: parallel 49] -> tensor<?x8x8x49xf32, #sym.dims<n, 8, 8, 49>> {
      %a = loop.read %0[i, g, c, p] : f32
      %e = math.exp %a : f32
      loop.yield none %e at [i, g, c, p]
    }
    %v = loop.view %g : tensor<?x8x8x49xf32, #sym.dims<n, 8, 8, 49>> to tensor<?x64x49xf32, #sym.dims<n, 64, 49>>
    %y = loop.nest "mul" [i: parallel n, c: parallel 64, p: parallel 49] -> tensor<?x64x49xf32, #sym.dims<n, 64, 49>> {
      %a = loop.read %v[i, c, p] : f32
      %b = loop.read %w[c] : f32
      %m = arith.mulf %a, %b : f32
      loop.yield none %m at [i, c, p]
    }
    loop.return %y : tensor<?x64x49xf32, #sym.dims<n, 64, 49>>
  }
}

// -----

// A reduction over the joined dims has two axes then.

// CHECK:        loop.kernel @sum symbols [n] (%x: tensor<?x8x16xf32, #sym.dims<n, 8, 16>>) -> (tensor<?xf32, #sym.dims<n>>) {
// CHECK-NEXT:     %e = loop.nest "exp" [i: parallel n, g: parallel 8, c: parallel 16] -> tensor<?x8x16xf32, #sym.dims<n, 8, 16>> {
// CHECK-NEXT:       %a = loop.read %x[i, g, c] : f32
// CHECK-NEXT:       %b = math.exp %a : f32
// CHECK-NEXT:       loop.yield none %b at [i, g, c]
// CHECK-NEXT:     }
// CHECK-NEXT:     %v = loop.view %e : tensor<?x8x16xf32, #sym.dims<n, 8, 16>> to tensor<?x128xf32, #sym.dims<n, 128>>
// CHECK-NEXT:     %s = loop.nest "sum" [i: parallel n, r_0: reduction 8, r_1: reduction 16] -> tensor<?xf32, #sym.dims<n>> {
// CHECK-NEXT:       %a_1 = loop.read %e[i, r_0, r_1] : f32
// CHECK-NEXT:       loop.yield add %a_1 at [i]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %s : tensor<?xf32, #sym.dims<n>>
// CHECK-NEXT:   }


builtin.module {
  loop.kernel @sum symbols [n] (%x: tensor<?x8x16xf32, #sym.dims<n, 8, 16>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %e = loop.nest "exp" [i: parallel n, g: parallel 8, c: parallel 16] -> tensor<?x8x16xf32, #sym.dims<n, 8, 16>> {
      %a = loop.read %x[i, g, c] : f32
      %b = math.exp %a : f32
      loop.yield none %b at [i, g, c]
    }
    %v = loop.view %e : tensor<?x8x16xf32, #sym.dims<n, 8, 16>> to tensor<?x128xf32, #sym.dims<n, 128>>
    %s = loop.nest "sum" [i: parallel n, r: reduction 128] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %v[i, r] : f32
      loop.yield add %a at [i]
    }
    loop.return %s : tensor<?xf32, #sym.dims<n>>
  }
}

// -----

// Refused: an innermost axis that would be left too short for vectors, two reads that want
// different parts, a subscript that is not the axis alone.

// CHECK:        loop.kernel @kept symbols [n] (%x: tensor<?x8x2xf32, #sym.dims<n, 8, 2>>, %z: tensor<?x2x64xf32, #sym.dims<n, 2, 64>>) -> (tensor<?x16xf32, #sym.dims<n, 16>>, tensor<?x128xf32, #sym.dims<n, 128>>, tensor<?x128xf32, #sym.dims<n, 128>>) {
// CHECK-NEXT:     %e = loop.nest "exp" [i: parallel n, g: parallel 8, c: parallel 2] -> tensor<?x8x2xf32, #sym.dims<n, 8, 2>> {
// CHECK-NEXT:       %a = loop.read %x[i, g, c] : f32
// CHECK-NEXT:       %b = math.exp %a : f32
// CHECK-NEXT:       loop.yield none %b at [i, g, c]
// CHECK-NEXT:     }
// CHECK-NEXT:     %v = loop.view %e : tensor<?x8x2xf32, #sym.dims<n, 8, 2>> to tensor<?x16xf32, #sym.dims<n, 16>>
// CHECK-NEXT:     %y = loop.nest "short" [i: parallel n, c: parallel 16] -> tensor<?x16xf32, #sym.dims<n, 16>> {
// CHECK-NEXT:       %a_1 = loop.read %v[i, c] : f32
// CHECK-NEXT:       %b_1 = math.sqrt %a_1 : f32
// CHECK-NEXT:       loop.yield none %b_1 at [i, c]
// CHECK-NEXT:     }
// CHECK-NEXT:     %f = loop.nest "log" [i: parallel n, g: parallel 2, c: parallel 64] -> tensor<?x2x64xf32, #sym.dims<n, 2, 64>> {
// CHECK-NEXT:       %a_2 = loop.read %z[i, g, c] : f32
// CHECK-NEXT:       %b_2 = math.log %a_2 : f32
// CHECK-NEXT:       loop.yield none %b_2 at [i, g, c]
// CHECK-NEXT:     }
// CHECK-NEXT:     %w = loop.view %f : tensor<?x2x64xf32, #sym.dims<n, 2, 64>> to tensor<?x128xf32, #sym.dims<n, 128>>
// CHECK-NEXT:     %r = loop.nest "reversed" [i: parallel n, c: parallel 128] -> tensor<?x128xf32, #sym.dims<n, 128>> {
// CHECK-NEXT:       %a_3 = loop.read %w[i, -c + 127] : f32
// CHECK-NEXT:       %b_3 = math.sqrt %a_3 : f32
// CHECK-NEXT:       loop.yield none %b_3 at [i, c]
// CHECK-NEXT:     }
// CHECK-NEXT:     %h = loop.nest "four" [i: parallel n, g: parallel 4, c: parallel 32] -> tensor<?x4x32xf32, #sym.dims<n, 4, 32>> {
// CHECK-NEXT:       %k = loop.index i : i64
// CHECK-NEXT:       %b_4 = arith.sitofp %k : i64 to f32
// CHECK-NEXT:       loop.yield none %b_4 at [i, g, c]
// CHECK-NEXT:     }
// CHECK-NEXT:     %u = loop.view %h : tensor<?x4x32xf32, #sym.dims<n, 4, 32>> to tensor<?x128xf32, #sym.dims<n, 128>>
// CHECK-NEXT:     %t = loop.nest "both" [i: parallel n, c: parallel 128] -> tensor<?x128xf32, #sym.dims<n, 128>> {
// CHECK-NEXT:       %a_4 = loop.read %w[i, c] : f32
// CHECK-NEXT:       %b_5 = loop.read %u[i, c] : f32
// CHECK-NEXT:       %d = arith.addf %a_4, %b_5 : f32
// CHECK-NEXT:       loop.yield none %d at [i, c]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %y, %r, %t : tensor<?x16xf32, #sym.dims<n, 16>>, tensor<?x128xf32, #sym.dims<n, 128>>, tensor<?x128xf32, #sym.dims<n, 128>>
// CHECK-NEXT:   }


builtin.module {
  loop.kernel @kept symbols [n] (%x: tensor<?x8x2xf32, #sym.dims<n, 8, 2>>, %z: tensor<?x2x64xf32, #sym.dims<n, 2, 64>>) -> (tensor<?x16xf32, #sym.dims<n, 16>>, tensor<?x128xf32, #sym.dims<n, 128>>, tensor<?x128xf32, #sym.dims<n, 128>>) {
    %e = loop.nest "exp" [i: parallel n, g: parallel 8, c: parallel 2] -> tensor<?x8x2xf32, #sym.dims<n, 8, 2>> {
      %a = loop.read %x[i, g, c] : f32
      %b = math.exp %a : f32
      loop.yield none %b at [i, g, c]
    }
    %v = loop.view %e : tensor<?x8x2xf32, #sym.dims<n, 8, 2>> to tensor<?x16xf32, #sym.dims<n, 16>>
    %y = loop.nest "short" [i: parallel n, c: parallel 16] -> tensor<?x16xf32, #sym.dims<n, 16>> {
      %a = loop.read %v[i, c] : f32
      %b = math.sqrt %a : f32
      loop.yield none %b at [i, c]
    }
    %f = loop.nest "log" [i: parallel n, g: parallel 2, c: parallel 64] -> tensor<?x2x64xf32, #sym.dims<n, 2, 64>> {
      %a = loop.read %z[i, g, c] : f32
      %b = math.log %a : f32
      loop.yield none %b at [i, g, c]
    }
    %w = loop.view %f : tensor<?x2x64xf32, #sym.dims<n, 2, 64>> to tensor<?x128xf32, #sym.dims<n, 128>>
    %r = loop.nest "reversed" [i: parallel n, c: parallel 128] -> tensor<?x128xf32, #sym.dims<n, 128>> {
      %a = loop.read %w[i, -c + 127] : f32
      %b = math.sqrt %a : f32
      loop.yield none %b at [i, c]
    }
    %h = loop.nest "four" [i: parallel n, g: parallel 4, c: parallel 32] -> tensor<?x4x32xf32, #sym.dims<n, 4, 32>> {
      %k = loop.index i : i64
      %b = arith.sitofp %k : i64 to f32
      loop.yield none %b at [i, g, c]
    }
    %u = loop.view %h : tensor<?x4x32xf32, #sym.dims<n, 4, 32>> to tensor<?x128xf32, #sym.dims<n, 128>>
    %t = loop.nest "both" [i: parallel n, c: parallel 128] -> tensor<?x128xf32, #sym.dims<n, 128>> {
      %a = loop.read %w[i, c] : f32
      %b = loop.read %u[i, c] : f32
      %d = arith.addf %a, %b : f32
      loop.yield none %d at [i, c]
    }
    loop.return %y, %r, %t : tensor<?x16xf32, #sym.dims<n, 16>>, tensor<?x128xf32, #sym.dims<n, 128>>, tensor<?x128xf32, #sym.dims<n, 128>>
  }
}

// -----

// The depth of a contraction stays one: micro-kernels have no other.

// CHECK:        loop.kernel @depth symbols [n] (%x: tensor<?x8x16xf32, #sym.dims<n, 8, 16>>, %w: tensor<128x32xf32>) -> (tensor<?x32xf32, #sym.dims<n, 32>>) {
// CHECK-NEXT:       %e = loop.nest "transpose" [i: parallel n, g: parallel 8, c: parallel 16] -> tensor<?x8x16xf32, #sym.dims<n, 8, 16>> {
// CHECK-NEXT:         %a = loop.read %x[i, g, c] : f32
// CHECK-NEXT:         loop.yield none %a at [i, g, c]
// CHECK-NEXT:       }
// CHECK-NEXT:       %v = loop.view %e : tensor<?x8x16xf32, #sym.dims<n, 8, 16>> to tensor<?x128xf32, #sym.dims<n, 128>>
// CHECK-NEXT:       %s = loop.nest "matmul" [i: parallel n, j: parallel 32, r: reduction 128] -> tensor<?x32xf32, #sym.dims<n, 32>> {
// CHECK-NEXT:         %a_1 = loop.read %v[i, r] : f32
// CHECK-NEXT:         %b = loop.read %w[r, j] : f32
// CHECK-NEXT:         %p = arith.mulf %a_1, %b : f32
// CHECK-NEXT:         loop.yield add %p at [i, j]
// CHECK-NEXT:       }
// CHECK-NEXT:       loop.return %s : tensor<?x32xf32, #sym.dims<n, 32>>
// CHECK-NEXT:     }


builtin.module {
  loop.kernel @depth symbols [n] (%x: tensor<?x8x16xf32, #sym.dims<n, 8, 16>>, %w: tensor<128x32xf32>) -> (tensor<?x32xf32, #sym.dims<n, 32>>) {
    %e = loop.nest "transpose" [i: parallel n, g: parallel 8, c: parallel 16] -> tensor<?x8x16xf32, #sym.dims<n, 8, 16>> {
      %a = loop.read %x[i, g, c] : f32
      loop.yield none %a at [i, g, c]
    }
    %v = loop.view %e : tensor<?x8x16xf32, #sym.dims<n, 8, 16>> to tensor<?x128xf32, #sym.dims<n, 128>>
    %s = loop.nest "matmul" [i: parallel n, j: parallel 32, r: reduction 128] -> tensor<?x32xf32, #sym.dims<n, 32>> {
      %a = loop.read %v[i, r] : f32
      %b = loop.read %w[r, j] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [i, j]
    }
    loop.return %s : tensor<?x32xf32, #sym.dims<n, 32>>
  }
}

// -----

// What reads a contraction in groups has its axes, and so can be computed on its tiles; what reads another sum has not.

// CHECK-LABEL: loop.kernel @groups
// CHECK:         loop.nest "bias" [s: parallel n, o_0: parallel 4, o_1: parallel 32] -> tensor<?x4x32xf32, #sym.dims<n, 4, 32>> {
// CHECK-NEXT:      loop.read %c[s, o_0, o_1] : f32
// CHECK:         loop.nest "square" [s: parallel n, o: parallel 128]

builtin.module {
  loop.kernel @groups symbols [n] (%x: tensor<?x64xf32, #sym.dims<n, 64>>, %w: tensor<4x16x32xf32>, %z: tensor<?x4x32x8xf32, #sym.dims<n, 4, 32, 8>>) -> (tensor<?x128xf32, #sym.dims<n, 128>>, tensor<?x128xf32, #sym.dims<n, 128>>) {
    %c = loop.nest "conv" [s: parallel n, g: parallel 4, o: parallel 32, k: reduction 16] -> tensor<?x4x32xf32, #sym.dims<n, 4, 32>> {
      %a = loop.read %x[s, 16*g + k] : f32
      %b = loop.read %w[g, k, o] : f32
      %p = arith.mulf %a, %b : f32
      loop.yield add %p at [s, g, o]
    }
    %v = loop.view %c : tensor<?x4x32xf32, #sym.dims<n, 4, 32>> to tensor<?x128xf32, #sym.dims<n, 128>>
    %y = loop.nest "bias" [s: parallel n, o: parallel 128] -> tensor<?x128xf32, #sym.dims<n, 128>> {
      %a = loop.read %v[s, o] : f32
      %b = math.exp %a : f32
      loop.yield none %b at [s, o]
    }
    %m = loop.nest "sum" [s: parallel n, g: parallel 4, o: parallel 32, k: reduction 8] -> tensor<?x4x32xf32, #sym.dims<n, 4, 32>> {
      %a = loop.read %z[s, g, o, k] : f32
      loop.yield add %a at [s, g, o]
    }
    %u = loop.view %m : tensor<?x4x32xf32, #sym.dims<n, 4, 32>> to tensor<?x128xf32, #sym.dims<n, 128>>
    %q = loop.nest "square" [s: parallel n, o: parallel 128] -> tensor<?x128xf32, #sym.dims<n, 128>> {
      %a = loop.read %u[s, o] : f32
      %b = arith.mulf %a, %a : f32
      loop.yield none %b at [s, o]
    }
    loop.return %y, %q : tensor<?x128xf32, #sym.dims<n, 128>>, tensor<?x128xf32, #sym.dims<n, 128>>
  }
}

// -----

// The innermost axis of a nest is the one along which its only reader stores: channels last, columns split into blocks.

// CHECK:       %a = loop.nest "add" [i: parallel n, c: parallel 16, y_0: parallel h, y_1: parallel 2, x_0: parallel w, x_1: parallel 2]
// CHECK-NEXT:    loop.read %d[i, c, y_0, y_1, x_0, x_1] : f32
// CHECK:       %t = loop.nest "transpose" [i: parallel n, y_0: parallel h, y_1: parallel 2, x_0: parallel w, x_1: parallel 2, c: parallel 16]
// CHECK-NEXT:    loop.read %a[i, c, y_0, y_1, x_0, x_1] : f32

builtin.module {
  loop.kernel @pixels symbols [n, h, w] (%x: tensor<?x16x?x2x?x2xf32, #sym.dims<n, 16, h, 2, w, 2>>, %b: tensor<16xf32>) -> (tensor<?x?x?x16xf32, #sym.dims<n, 2*h, 2*w, 16>>) {
    %d = loop.nest "depthtospace" [i: parallel n, c: parallel 16, y: parallel h, p: parallel 2, x: parallel w, q: parallel 2] -> tensor<?x16x?x2x?x2xf32, #sym.dims<n, 16, h, 2, w, 2>> {
      %e = loop.read %x[i, c, y, p, x, q] : f32
      loop.yield none %e at [i, c, y, p, x, q]
    }
    %v = loop.view %d : tensor<?x16x?x2x?x2xf32, #sym.dims<n, 16, h, 2, w, 2>> to tensor<?x16x?x?xf32, #sym.dims<n, 16, 2*h, 2*w>>
    %a = loop.nest "add" [i: parallel n, c: parallel 16, y: parallel 2*h, x: parallel 2*w] -> tensor<?x16x?x?xf32, #sym.dims<n, 16, 2*h, 2*w>> {
      %e = loop.read %v[i, c, y, x] : f32
      %f = loop.read %b[c] : f32
      %s = arith.addf %e, %f : f32
      loop.yield none %s at [i, c, y, x]
    }
    %t = loop.nest "transpose" [i: parallel n, y: parallel 2*h, x: parallel 2*w, c: parallel 16] -> tensor<?x?x?x16xf32, #sym.dims<n, 2*h, 2*w, 16>> {
      %e = loop.read %a[i, c, y, x] : f32
      loop.yield none %e at [i, y, x, c]
    }
    loop.return %t : tensor<?x?x?x16xf32, #sym.dims<n, 2*h, 2*w, 16>>
  }
}

// -----

// A nest of one element has no axis.

// CHECK:       loop.kernel @scalar
// CHECK-NEXT:    loop.nest "negate" [] -> tensor<f32>

builtin.module {
  loop.kernel @scalar symbols [] (%x: tensor<f32>) -> (tensor<f32>) {
    %y = loop.nest "negate" [] -> tensor<f32> {
      %a = loop.read %x[] : f32
      %b = arith.negf %a : f32
      loop.yield none %b at []
    }
    loop.return %y : tensor<f32>
  }
}
