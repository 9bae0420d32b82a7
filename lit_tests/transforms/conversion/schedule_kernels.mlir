// RUN: igniter-opt %s -p schedule-kernels --isolate --remarks 2>&1 | filecheck %s
// RUN: igniter-opt %s -p schedule-kernels,inline-failed-regions --isolate --remarks 2>&1 | filecheck %s --check-prefix=INLINED
// RUN: igniter-opt %s -p schedule-kernels --verify-diagnostics | filecheck %s --check-prefix=ERROR
// RUN: igniter-opt %s -p "schedule-kernels{passes=canonicalize-loop}" --verify-diagnostics | filecheck %s --check-prefix=LEFT

// Each kernel is scheduled alone. The second reads outside of its tensor, so a pass refuses it: its region is marked,
// and the first is none the worse for it.

// CHECK:      onnx.graph @main
// CHECK-NEXT:   fusion.region @r0 {{.*}} kernel @r0 -> (tensor<8xf32>) {
// CHECK:        fusion.region @r1 {{.*}} kernel @r1 -> (tensor<8xf32>) attributes {igniter.failed = "pass 'check-bounds': {{.*}}"}
// CHECK:      loop.func @r0
// CHECK-NOT:  loop.kernel
// CHECK-NOT:  @r1

// INLINED:    fusion.region @r0
// INLINED-NOT: fusion.region @r1
// INLINED:    onnx.Neg

// Where nothing is isolated, the first failure is the pass's.

// ERROR: pass 'check-bounds': 
// LEFT: pass 'schedule-kernels': the passes 'canonicalize-loop' leave kernel @r0 unscheduled

builtin.module attributes {onnx.model = {ir_version = 10 : i64, opset_import = {"" = 21 : i64}}} {
  onnx.graph @main(%x: tensor<8xf32>) attributes {input_names = ["x"], output_names = ["y"]} {
    %r = fusion.region @r0 (%a = %x : tensor<8xf32>) kernel @r0 -> (tensor<8xf32>) {
      %0 = onnx.Exp(%a) : (tensor<8xf32>) -> tensor<8xf32>
      fusion.yield %0 : tensor<8xf32>
    }
    %y = fusion.region @r1 (%b = %r : tensor<8xf32>) kernel @r1 -> (tensor<8xf32>) {
      %1 = onnx.Neg(%b) : (tensor<8xf32>) -> tensor<8xf32>
      fusion.yield %1 : tensor<8xf32>
    }
    onnx.return %y : tensor<8xf32>
  }
  loop.kernel @r0 symbols [] (%0: tensor<8xf32>) -> (tensor<8xf32>) {
    %1 = loop.nest "exp" [i0: parallel 8] -> tensor<8xf32> {
      %2 = loop.read %0[i0] : f32
      %3 = math.exp %2 : f32
      loop.yield none %3 at [i0]
    }
    loop.return %1 : tensor<8xf32>
  }
  loop.kernel @r1 symbols [] (%0: tensor<8xf32>) -> (tensor<8xf32>) {
    %1 = loop.nest "neg" [i0: parallel 8] -> tensor<8xf32> {
      %2 = loop.read %0[i0] : f32
      %3 = arith.negf %2 : f32
      loop.yield none %3 at [i0 + 1]
    }
    loop.return %1 : tensor<8xf32>
  }
}
