// RUN: igniter-opt %s | filecheck %s
// RUN: igniter-opt %s | igniter-opt | filecheck %s
// RUN: igniter-opt %s --emit=generic | igniter-opt | filecheck %s

// CHECK-LABEL: tt.func @all(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i64) {
tt.func @all(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i64) {
  // CHECK-NEXT: %pid = tt.get_program_id y : i32
  %pid = tt.get_program_id y : i32
  // CHECK-NEXT: %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  // CHECK-NEXT: %row = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %row = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  // CHECK-NEXT: %at = tt.broadcast %row : tensor<1x64xi32> -> tensor<4x64xi32>
  %at = tt.broadcast %row : tensor<1x64xi32> -> tensor<4x64xi32>
  // CHECK-NEXT: %px = tt.splat %x : !tt.ptr<f32> -> tensor<4x64x!tt.ptr<f32>>
  %px = tt.splat %x : !tt.ptr<f32> -> tensor<4x64x!tt.ptr<f32>>
  // CHECK-NEXT: %p = tt.addptr %px, %at : tensor<4x64x!tt.ptr<f32>>, tensor<4x64xi32>
  %p = tt.addptr %px, %at : tensor<4x64x!tt.ptr<f32>>, tensor<4x64xi32>
  %limit = arith.constant dense<50> : tensor<4x64xi32>
  // CHECK:      %mask = arith.cmpi slt, %at, %limit : tensor<4x64xi32>
  %mask = arith.cmpi slt, %at, %limit : tensor<4x64xi32>
  %zero = arith.constant dense<0.000000e+00> : tensor<4x64xf32>
  // CHECK:      %a = tt.load %p : tensor<4x64x!tt.ptr<f32>>
  %a = tt.load %p : tensor<4x64x!tt.ptr<f32>>
  // CHECK-NEXT: %b = tt.load %p, %mask : tensor<4x64x!tt.ptr<f32>>
  %b = tt.load %p, %mask : tensor<4x64x!tt.ptr<f32>>
  // CHECK-NEXT: %c = tt.load %p, %mask, %zero : tensor<4x64x!tt.ptr<f32>>
  %c = tt.load %p, %mask, %zero : tensor<4x64x!tt.ptr<f32>>
  // CHECK-NEXT: %sum = "tt.reduce"(%c) <{axis = 1 : i32}> ({
  %sum = "tt.reduce"(%c) <{axis = 1 : i32}> ({
  ^bb0(%l: f32, %m: f32):
    %s = arith.addf %l, %m : f32
    // CHECK:      tt.reduce.return %{{.*}} : f32
    tt.reduce.return %s : f32
  }) : (tensor<4x64xf32>) -> tensor<4xf32>
  // CHECK:      %running = "tt.scan"(%c) <{axis = 1 : i32, reverse = true}> ({
  %running = "tt.scan"(%c) <{axis = 1 : i32, reverse = true}> ({
  ^bb0(%l: f32, %m: f32):
    %s = arith.addf %l, %m : f32
    // CHECK:      tt.scan.return %{{.*}} : f32
    tt.scan.return %s : f32
  }) : (tensor<4x64xf32>) -> tensor<4x64xf32>
  // CHECK:      %t = tt.trans %c {order = array<i32: 1, 0>} : tensor<4x64xf32> -> tensor<64x4xf32>
  %t = tt.trans %c {order = array<i32: 1, 0>} : tensor<4x64xf32> -> tensor<64x4xf32>
  %acc = arith.constant dense<0.000000e+00> : tensor<4x4xf32>
  // CHECK:      %d = tt.dot %c, %t, %acc, inputPrecision = ieee : tensor<4x64xf32> * tensor<64x4xf32> -> tensor<4x4xf32>
  %d = tt.dot %c, %t, %acc, inputPrecision = ieee : tensor<4x64xf32> * tensor<64x4xf32> -> tensor<4x4xf32>
  // CHECK-NEXT: %flat = tt.reshape %d : tensor<4x4xf32> -> tensor<16xf32>
  %flat = tt.reshape %d : tensor<4x4xf32> -> tensor<16xf32>
  // CHECK-NEXT: %joined = tt.join %flat, %flat : tensor<16xf32> -> tensor<16x2xf32>
  %joined = tt.join %flat, %flat : tensor<16xf32> -> tensor<16x2xf32>
  // CHECK-NEXT: %even, %odd = tt.split %joined : tensor<16x2xf32> -> tensor<16xf32>
  %even, %odd = tt.split %joined : tensor<16x2xf32> -> tensor<16xf32>
  // CHECK-NEXT: %q = tt.precise_divf %c, %b : tensor<4x64xf32>
  %q = tt.precise_divf %c, %b : tensor<4x64xf32>
  // CHECK-NEXT: %root = tt.precise_sqrt %q : tensor<4x64xf32>
  %root = tt.precise_sqrt %q : tensor<4x64xf32>
  // CHECK-NEXT: %e = tt.extern_elementwise %root {libname = "", libpath = "", symbol = "__nv_tanhf", pure = true} : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %e = tt.extern_elementwise %root {libname = "", libpath = "", symbol = "__nv_tanhf", pure = true} : (tensor<4x64xf32>) -> tensor<4x64xf32>
  // CHECK-NEXT: %old = tt.atomic_rmw fadd, %p, %e, %mask : tensor<4x64x!tt.ptr<f32>>
  %old = tt.atomic_rmw fadd, %p, %e, %mask : tensor<4x64x!tt.ptr<f32>>
  // CHECK-NEXT: tt.store %p, %e, %mask : tensor<4x64x!tt.ptr<f32>>
  tt.store %p, %e, %mask : tensor<4x64x!tt.ptr<f32>>
  // CHECK-NEXT: tt.store %p, %e : tensor<4x64x!tt.ptr<f32>>
  tt.store %p, %e : tensor<4x64x!tt.ptr<f32>>
  // CHECK-NEXT: tt.return
  tt.return
}

// CHECK:      tt.func @descriptors(%x: !tt.tensordesc<1x16x64xf16>, %y: !tt.tensordesc<16x16xi8>, %i: i32) {
tt.func @descriptors(%x: !tt.tensordesc<1x16x64xf16>, %y: !tt.tensordesc<16x16xi8>, %i: i32) {
  // CHECK-NEXT: %n = tt.get_num_programs x : i32
  %n = tt.get_num_programs x : i32
  // CHECK-NEXT: %a = tt.descriptor_load %x[%i, %i, %i] : !tt.tensordesc<1x16x64xf16>
  %a = tt.descriptor_load %x[%i, %i, %i] : !tt.tensordesc<1x16x64xf16>
  // CHECK-NEXT: tt.descriptor_store %x[%i, %i, %i], %a : !tt.tensordesc<1x16x64xf16>
  tt.descriptor_store %x[%i, %i, %i], %a : !tt.tensordesc<1x16x64xf16>
  // CHECK-NEXT: %b = tt.descriptor_load %y[%i, %i] : !tt.tensordesc<16x16xi8>
  %b = tt.descriptor_load %y[%i, %i] : !tt.tensordesc<16x16xi8>
  tt.return
}

// CHECK:      tt.func @loops(%p: !tt.ptr<f32>, %i: i32) {
tt.func @loops(%p: !tt.ptr<f32>, %i: i32) {
  // CHECK-NEXT: scf.for %k = %i to %i step %i : i32 {
  scf.for %k = %i to %i step %i : i32 {
    // CHECK-NEXT: tt.addptr
    %q = tt.addptr %p, %k : !tt.ptr<f32>, i32
  // CHECK-NEXT: } {tt.num_stages = 3 : i32, tt.warp_specialize}
  } {tt.num_stages = 3 : i32, tt.warp_specialize}
  tt.return
}

// CHECK-LABEL: tt.func @scaled() {
tt.func @scaled() {
  %a = arith.constant dense<1> : tensor<16x32xi8>
  %b = arith.constant dense<1> : tensor<32x16xi8>
  %s = arith.constant dense<127> : tensor<16x2xi8>
  %c = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
  // CHECK:      %d = tt.dot_scaled %a, %s, %b, %s, %c, lhs = e2m1 rhs = e2m1 : tensor<16x32xi8>, tensor<16x2xi8>, tensor<32x16xi8>, tensor<16x2xi8>, tensor<16x16xf32>
  %d = tt.dot_scaled %a, %s, %b, %s, %c, lhs = e2m1 rhs = e2m1 : tensor<16x32xi8>, tensor<16x2xi8>, tensor<32x16xi8>, tensor<16x2xi8>, tensor<16x16xf32>
  tt.return
}
