// RUN: igniter-opt %s --emit=llvm --target=x86-64-v3 --llvm=14 | filecheck %s --check-prefix=OLD
// RUN: igniter-opt %s --emit=llvm --target=x86-64-v3 --llvm=19 | filecheck %s --check-prefix=MIDDLE
// RUN: igniter-opt %s --emit=llvm --target=x86-64-v3 --llvm=newest | filecheck %s --check-prefix=NEW
// RUN: not igniter-opt %s --llvm=19 2>&1 | filecheck %s --check-prefix=LOST
// RUN: not igniter-opt %s --emit=llvm --target=cuda --llvm=19 2>&1 | filecheck %s --check-prefix=GPU

// The text for another LLVM: the alignment of masked accesses, constants of equal elements, and `maximum`, which the
// code generator of LLVM 14 lacks on x86.

// OLD:      ; For LLVM 14 and later. The tools of LLVM 14 need -opaque-pointers.
// OLD-NEXT: target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
// OLD-NEXT: target triple = "x86_64-unknown-linux-gnu"
// OLD:      call <8 x float> @llvm.masked.load.v8f32.p0(ptr %p{{[0-9]+}}, i32 4, <8 x i1> %v{{[0-9]+}}, <8 x float> <float 0x{{[0-9A-F]+}}, float
// OLD:      call <8 x float> @igniter.maximum.v8f32(
// OLD:      define internal <8 x float> @igniter.maximum.v8f32(<8 x float> %a, <8 x float> %b) alwaysinline #0 {
// OLD:      fcmp uno <8 x float> %a, %b

// MIDDLE:      ; For LLVM 19 and later.
// MIDDLE-NEXT: target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
// MIDDLE:      call <8 x float> @llvm.masked.load.v8f32.p0(ptr %p{{[0-9]+}}, i32 4, <8 x i1> %v{{[0-9]+}}, <8 x float> splat (float
// MIDDLE:      call <8 x float> @llvm.maximum.v8f32(
// MIDDLE:      call void @llvm.masked.store.v8f32.p0(<8 x float> %v{{[0-9]+}}, ptr %p{{[0-9]+}}, i32 4, <8 x i1>

// NEW:      ; For LLVM {{[0-9]+\.[0-9]+}}.{{[0-9]+}} and later; --llvm=14|17|19 writes for an older version.
// NEW-NEXT: target datalayout
// NEW:      call <8 x float> @llvm.masked.load.v8f32.p0(ptr align 4

// LOST: --llvm is the version of LLVM that --emit=llvm writes for: give both, or neither
// GPU: --llvm=19: the target 'cuda:sm_80' has no LLVM IR; --llvm is for CPUs
loop.func @tail symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
  loop.for i = 0 to n step 8 {
    %one = arith.constant dense<1.0> : vector<8xf32>
    %a = loop.load %x[i + v] lane v if [n - 1 - i - v] else %one : vector<8xf32>
    %b = arith.maximumf %a, %one : vector<8xf32>
    loop.store %b, %y[i + v] lane v if [n - 1 - i - v]
  }
}
