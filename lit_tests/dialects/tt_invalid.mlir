// RUN: igniter-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: the dims of a block must be powers of two
tt.func @a() {
  %r = tt.make_range {start = 0 : i32, end = 48 : i32} : tensor<48xi32>
  tt.return
}

// -----

// CHECK: the arguments of a tt.func must be pointers and numbers, not tensor<4xf32>
tt.func @b(%x: tensor<4xf32>) {
  tt.return
}

// -----

// CHECK: 'tt.load' needs pointers, not tensor<4xi32>
"tt.func"() <{sym_name = "c", function_type = () -> ()}> ({
  %r = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  %v = "tt.load"(%r) <{cache = 1 : i32, evict = 1 : i32, isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<4xi32>) -> tensor<4xf32>
  tt.return
}) : () -> ()

// -----

// CHECK: 'tt.store' of tensor<4x!tt.ptr<f32>> cannot access tensor<4xi32>
"tt.func"() <{sym_name = "d", function_type = (!tt.ptr<f32>) -> ()}> ({
^bb0(%x: !tt.ptr<f32>):
  %r = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  "tt.store"(%p, %r) <{cache = 1 : i32, evict = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<4x!tt.ptr<f32>>, tensor<4xi32>) -> ()
  tt.return
}) : () -> ()

// -----

// CHECK: tensor<4x1xf32> cannot be repeated to tensor<8x4xf32>
tt.func @e() {
  %a = arith.constant dense<0.000000e+00> : tensor<4x1xf32>
  %b = tt.broadcast %a : tensor<4x1xf32> -> tensor<8x4xf32>
  tt.return
}

// -----

// CHECK: tt.dot of tensor<4x8xf32> and tensor<4x8xf32> does not give tensor<4x4xf32>
tt.func @f() {
  %a = arith.constant dense<0.000000e+00> : tensor<4x8xf32>
  %c = arith.constant dense<0.000000e+00> : tensor<4x4xf32>
  %d = tt.dot %a, %a, %c, inputPrecision = ieee : tensor<4x8xf32> * tensor<4x8xf32> -> tensor<4x4xf32>
  tt.return
}

// -----

// CHECK: the body of tt.reduce must take two elements of each block
tt.func @g() {
  %a = arith.constant dense<0.000000e+00> : tensor<4x8xf32>
  %s = "tt.reduce"(%a) <{axis = 1 : i32}> ({
  ^bb0(%l: f32):
    tt.reduce.return %l : f32
  }) : (tensor<4x8xf32>) -> tensor<4xf32>
  tt.return
}

// -----

// CHECK: the body of tt.scan must take two elements
tt.func @scan() {
  %a = arith.constant dense<0.000000e+00> : tensor<4x8xf32>
  %s = "tt.scan"(%a) <{axis = 1 : i32, reverse = false}> ({
  ^bb0(%l: f32):
    tt.scan.return %l : f32
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  tt.return
}

// -----

// CHECK: the body of a tt.func must end with tt.return
tt.func @h() {
  %pid = tt.get_program_id x : i32
}

// -----

// CHECK: tt.split needs a last dim of two, which tensor<4x8xf32> does not have
tt.func @i() {
  %a = arith.constant dense<0.000000e+00> : tensor<4x8xf32>
  %b, %c = tt.split %a : tensor<4x8xf32> -> tensor<4xf32>
  tt.return
}

// -----

// CHECK: a block of a descriptor has at least 16 bytes along its last dim, not 8
tt.func @narrow(%x: !tt.tensordesc<16x4xf16>) {
  tt.return
}

// -----

// CHECK: tt.join of tensor<4xf32> does not give tensor<2x4xf32>
tt.func @j() {
  %a = arith.constant dense<0.000000e+00> : tensor<4xf32>
  %b = tt.join %a, %a : tensor<4xf32> -> tensor<2x4xf32>
  tt.return
}

// -----

// CHECK: there is no descriptor of elements of f64
tt.func @element(%x: !tt.tensordesc<16x16xf64>) {
  tt.return
}

// -----

// CHECK: a descriptor has 1 to 5 dims, not 6
tt.func @rank(%x: !tt.tensordesc<1x1x1x1x1x16xf16>) {
  tt.return
}

// -----

// CHECK: 'tt.descriptor_load' of !tt.tensordesc<16x16xf16> needs 2 subscripts of i32
tt.func @subscripts(%x: !tt.tensordesc<16x16xf16>, %i: i32) {
  %a = tt.descriptor_load %x[%i] : !tt.tensordesc<16x16xf16>
  tt.return
}

// -----

// CHECK: the access needs a descriptor, not !tt.ptr<f32>
tt.func @pointer(%x: !tt.ptr<f32>, %i: i32) {
  %a = tt.descriptor_load %x[%i] : !tt.ptr<f32>
  tt.return
}

// -----

// CHECK: 'tt.descriptor_store' of !tt.tensordesc<16x16xf16> cannot access tensor<16x16xf32>
"tt.func"() <{sym_name = "value", function_type = (!tt.tensordesc<16x16xf16>, i32) -> ()}> ({
^bb0(%x: !tt.tensordesc<16x16xf16>, %i: i32):
  %a = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
  "tt.descriptor_store"(%x, %a, %i, %i) : (!tt.tensordesc<16x16xf16>, tensor<16x16xf32>, i32, i32) -> ()
  tt.return
}) : () -> ()

// -----

// CHECK: 'tt.num_stages' must be an i32 of at least 1, not 0 : i32
tt.func @stages(%i: i32) {
  scf.for %k = %i to %i step %i : i32 {
  } {tt.num_stages = 0 : i32}
  tt.return
}

// -----

// CHECK: 'tt.warp_specialize' has no value, but here true
tt.func @special(%i: i32) {
  scf.for %k = %i to %i step %i : i32 {
  } {tt.warp_specialize = true}
  tt.return
}

// -----

// CHECK: arith.addi has a hint for loops; only scf.for can have it
tt.func @elsewhere(%i: i32) {
  %j = arith.addi %i, %i {tt.warp_specialize} : i32
  tt.return
}

// -----

// CHECK: tt.dot_scaled needs scales of (16, 2) and of (16, 2): one for 32 depths
tt.func @scaled() {
  %a = arith.constant dense<1> : tensor<16x32xi8>
  %b = arith.constant dense<1> : tensor<32x16xi8>
  %s = arith.constant dense<127> : tensor<16x1xi8>
  %c = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
  %d = tt.dot_scaled %a, %s, %b, %s, %c, lhs = e2m1 rhs = e2m1 : tensor<16x32xi8>, tensor<16x1xi8>, tensor<32x16xi8>, tensor<16x1xi8>, tensor<16x16xf32>
  tt.return
}
