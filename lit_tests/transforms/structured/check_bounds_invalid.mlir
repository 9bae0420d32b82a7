// RUN: not igniter-opt %s -p check-bounds{guard=true} --emit=none 2>&1 | filecheck %s

// CHECK: pass 'check-bounds': 'shifted': a write of tensor<4xf32>: i + 1 may reach 4, the size of its dim
loop.kernel @outside symbols [] (%x: tensor<4xf32>) -> (tensor<4xf32>) {
  %y = loop.nest "shifted" [i: parallel 4] -> tensor<4xf32> {
    %v = loop.read %x[i] : f32
    loop.yield none %v at [i + 1]
  }
  loop.return %y : tensor<4xf32>
}
