// RUN: igniter-opt %s -p form-ort-library --verify-diagnostics | filecheck %s

// The size of the arena is part of the descriptor, so the plan comes first.

// CHECK: pass 'form-ort-library': @k has no buffer plan; run plan-buffers first

builtin.module {
  loop.func @k symbols [] (%y: memref<4xf32>) outputs 1 {
    %z = arith.constant 0.000000e+00 : f32
    loop.store %z, %y[0]
  }
}
