// RUN: igniter-opt %s -p "deduplicate-kernels" --split-input-file | filecheck %s

// Two kernels that differ in the names of their symbols are one, and both regions refer to it.

// CHECK:        onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<n, 4>>, %y: tensor<?x4xf32, #sym.dims<m, 4>>) {
// CHECK-NEXT:     %a = fusion.region @r0 (%x_1 = %x : tensor<?x4xf32, #sym.dims<n, 4>>) kernel @k0 -> (tensor<?x4xf32, #sym.dims<n, 4>>) {
// CHECK-NEXT:       %e = onnx.Exp(%x_1) : (tensor<?x4xf32, #sym.dims<n, 4>>) -> tensor<?x4xf32, #sym.dims<n, 4>>
// CHECK-NEXT:       fusion.yield %e : tensor<?x4xf32, #sym.dims<n, 4>>
// CHECK-NEXT:     }
// CHECK-NEXT:     %b = fusion.region @r1 (%y_1 = %y : tensor<?x4xf32, #sym.dims<m, 4>>) kernel @k0 -> (tensor<?x4xf32, #sym.dims<m, 4>>) {
// CHECK-NEXT:       %e = onnx.Exp(%y_1) : (tensor<?x4xf32, #sym.dims<m, 4>>) -> tensor<?x4xf32, #sym.dims<m, 4>>
// CHECK-NEXT:       fusion.yield %e : tensor<?x4xf32, #sym.dims<m, 4>>
// CHECK-NEXT:     }
// CHECK-NEXT:     onnx.return %a, %b : tensor<?x4xf32, #sym.dims<n, 4>>, tensor<?x4xf32, #sym.dims<m, 4>>
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.kernel @k0 symbols [d0] (%x: tensor<?x4xf32, #sym.dims<d0, 4>>) -> (tensor<?x4xf32, #sym.dims<d0, 4>>) {
// CHECK-NEXT:     %y = loop.nest "exp" [i: parallel d0, j: parallel 4] -> tensor<?x4xf32, #sym.dims<d0, 4>> {
// CHECK-NEXT:       %a = loop.read %x[i, j] : f32
// CHECK-NEXT:       %e = math.exp %a : f32
// CHECK-NEXT:       loop.yield none %e at [i, j]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %y : tensor<?x4xf32, #sym.dims<d0, 4>>
// CHECK-NEXT:   }


builtin.module {
  onnx.graph @main(%x: tensor<?x4xf32, #sym.dims<n, 4>>, %y: tensor<?x4xf32, #sym.dims<m, 4>>) {
    %a = fusion.region @r0 (%x_1 = %x : tensor<?x4xf32, #sym.dims<n, 4>>) kernel @k0 -> (tensor<?x4xf32, #sym.dims<n, 4>>) {
      %e = onnx.Exp(%x_1) : (tensor<?x4xf32, #sym.dims<n, 4>>) -> tensor<?x4xf32, #sym.dims<n, 4>>
      fusion.yield %e : tensor<?x4xf32, #sym.dims<n, 4>>
    }
    %b = fusion.region @r1 (%y_1 = %y : tensor<?x4xf32, #sym.dims<m, 4>>) kernel @k1 -> (tensor<?x4xf32, #sym.dims<m, 4>>) {
      %e = onnx.Exp(%y_1) : (tensor<?x4xf32, #sym.dims<m, 4>>) -> tensor<?x4xf32, #sym.dims<m, 4>>
      fusion.yield %e : tensor<?x4xf32, #sym.dims<m, 4>>
    }
    onnx.return %a, %b : tensor<?x4xf32, #sym.dims<n, 4>>, tensor<?x4xf32, #sym.dims<m, 4>>
  }
  loop.kernel @k0 symbols [n] (%x: tensor<?x4xf32, #sym.dims<n, 4>>) -> (tensor<?x4xf32, #sym.dims<n, 4>>) {
    %y = loop.nest "exp" [i: parallel n, j: parallel 4] -> tensor<?x4xf32, #sym.dims<n, 4>> {
      %a = loop.read %x[i, j] : f32
      %e = math.exp %a : f32
      loop.yield none %e at [i, j]
    }
    loop.return %y : tensor<?x4xf32, #sym.dims<n, 4>>
  }
  loop.kernel @k1 symbols [m] (%x: tensor<?x4xf32, #sym.dims<m, 4>>) -> (tensor<?x4xf32, #sym.dims<m, 4>>) {
    %y = loop.nest "exp" [i: parallel m, j: parallel 4] -> tensor<?x4xf32, #sym.dims<m, 4>> {
      %a = loop.read %x[i, j] : f32
      %e = math.exp %a : f32
      loop.yield none %e at [i, j]
    }
    loop.return %y : tensor<?x4xf32, #sym.dims<m, 4>>
  }
}

// -----

// Another size or another op is another kernel.

// CHECK:        loop.kernel @k0 symbols [d0] (%x: tensor<?xf32, #sym.dims<d0>>) -> (tensor<?xf32, #sym.dims<d0>>) {
// CHECK-NEXT:     %y = loop.nest "exp" [i: parallel d0] -> tensor<?xf32, #sym.dims<d0>> {
// CHECK-NEXT:       %a = loop.read %x[i] : f32
// CHECK-NEXT:       %e = math.exp %a : f32
// CHECK-NEXT:       loop.yield none %e at [i]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %y : tensor<?xf32, #sym.dims<d0>>
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.kernel @k1 symbols [d0] (%x: tensor<?xf32, #sym.dims<d0>>) -> (tensor<?xf32, #sym.dims<d0>>) {
// CHECK-NEXT:     %y = loop.nest "exp" [i: parallel d0] -> tensor<?xf32, #sym.dims<d0>> {
// CHECK-NEXT:       %a = loop.read %x[i] : f32
// CHECK-NEXT:       %e = math.log %a : f32
// CHECK-NEXT:       loop.yield none %e at [i]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %y : tensor<?xf32, #sym.dims<d0>>
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.kernel @k2 symbols [] (%x: tensor<8xf32>) -> (tensor<8xf32>) {
// CHECK-NEXT:     %y = loop.nest "exp" [i: parallel 8] -> tensor<8xf32> {
// CHECK-NEXT:       %a = loop.read %x[i] : f32
// CHECK-NEXT:       %e = math.exp %a : f32
// CHECK-NEXT:       loop.yield none %e at [i]
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.return %y : tensor<8xf32>
// CHECK-NEXT:   }


builtin.module {
  loop.kernel @k0 symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %y = loop.nest "exp" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      %e = math.exp %a : f32
      loop.yield none %e at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
  }
  loop.kernel @k1 symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
    %y = loop.nest "exp" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      %e = math.log %a : f32
      loop.yield none %e at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
  }
  loop.kernel @k2 symbols [] (%x: tensor<8xf32>) -> (tensor<8xf32>) {
    %y = loop.nest "exp" [i: parallel 8] -> tensor<8xf32> {
      %a = loop.read %x[i] : f32
      %e = math.exp %a : f32
      loop.yield none %e at [i]
    }
    loop.return %y : tensor<8xf32>
  }
}
