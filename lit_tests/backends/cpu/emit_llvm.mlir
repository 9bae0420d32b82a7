// RUN: igniter-opt %s --emit=llvm --target=x86-64-v4 --split-input-file | filecheck %s

// What statements of a scheduled kernel become: the kernel's own entry, its body with `noalias` parameters, and a
// task for the loop that goes to threads.

// Addresses are summed loop by loop, outermost first; the constant comes last.

// CHECK-LABEL: define internal void @rows.task1.body(i64 %first, i64 %last,
// CHECK-SAME:    ptr noalias readonly align 4
// CHECK:         phi i64
// CHECK-NEXT:    [[ROW:%x[0-9]+]] = mul nsw i64 %i{{[0-9]+}}, %s{{[0-9]+}}
// CHECK-NEXT:    [[AT:%p[0-9]+]] = getelementptr inbounds float, ptr %b{{[0-9]+}}, i64 [[ROW]]
// CHECK:         [[J:%i[0-9]+]] = phi i64
// CHECK-NEXT:    [[P:%p[0-9]+]] = getelementptr inbounds float, ptr [[AT]], i64 [[J]]
// CHECK-NEXT:    getelementptr inbounds float, ptr [[P]], i64 16
// CHECK:         load <16 x float>, ptr %p{{[0-9]+}}, align 4
// CHECK:         fadd <16 x float>
// CHECK:         br i1 {{.*}}, !llvm.loop
// CHECK-LABEL: define internal void @rows.task1(ptr %data, i64 %index)
// CHECK:         call i64 @llvm.smin.i64
// CHECK-LABEL: define internal void @rows.body(
// CHECK:         icmp eq ptr %parallel_for, null
// CHECK:         call void @rows.task1.body(i64 0,
// CHECK:         call void %parallel_for(ptr %context, ptr @rows.task1, i64
// CHECK-LABEL: define void @rows(ptr %buffers, ptr %symbols, ptr %scratch, ptr %parallel_for, ptr %context)
// CHECK:       "prefer-vector-width"="512"
loop.func @rows symbols [n, m] (%x: memref<?x?xf32, #sym.dims<n, m>>, %y: memref<?x?xf32, #sym.dims<n, m>>) outputs 1 {
  loop.for i = 0 to n threads(8) {
    loop.for j = 0 to m - 31 step 32 {
      %a = loop.load %x[i, j + v] lane v : vector<16xf32>
      %b = loop.load %x[i, j + 16 + v] lane v : vector<16xf32>
      %c = arith.addf %a, %b : vector<16xf32>
      loop.store %c, %y[i, j + v] lane v
    }
  }
}

// -----

// A guard that falls with the lane is a mask of the first lanes; one that is proven is gone.

// CHECK-LABEL: define internal void @tail.body(
// CHECK:         [[LEFT:%v[0-9]+]] = call i64 @llvm.smin.i64(i64 {{%x[0-9]+}}, i64 16)
// CHECK:         [[MASK:%v[0-9]+]] = icmp ult <16 x i32> <i32 0, i32 1,
// CHECK:         call <16 x float> @llvm.masked.load.v16f32.p0(ptr align 4 {{%p[0-9]+}}, <16 x i1> [[MASK]], <16 x float> splat (float 0x3FF0000000000000))
// CHECK:         call void @llvm.masked.store.v16f32.p0(
loop.func @tail symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {
  loop.for i = 0 to n step 16 {
    %one = arith.constant dense<1.0> : vector<16xf32>
    %a = loop.load %x[i + v] lane v if [n - 1 - i - v, i] else %one : vector<16xf32>
    loop.store %a, %y[i + v] lane v if [n - 1 - i - v]
  }
}

// -----

// A register buffer is one slot for each accessed place; LLVM promotes each. A loop of one iteration is no loop.

// CHECK-LABEL: define internal void @sum.body(
// CHECK:         alloca <8 x float>, align 64
// CHECK-NOT:     alloca
// CHECK:         store <8 x float> splat (float 0x0000000000000000)
// CHECK-COUNT-3: shufflevector
// CHECK:         extractelement <1 x float>
loop.func @sum symbols [] (%x: memref<64xf32>, %y: memref<f32>) outputs 1 {
  %r = loop.alloc "acc" : memref<2x8xf32, "register">
  %z = arith.constant dense<0.0> : vector<8xf32>
  loop.for k = 1 to 2 {
    loop.store %z, %r[k, v] lane v
  }
  loop.for i = 0 to 64 step 8 reduction {
    %a = loop.load %x[i + v] lane v : vector<8xf32>
    loop.accumulate add %a, %r[1, v] lane v
  }
  %t = loop.load %r[1, v] lane v : vector<8xf32>
  %s = loop.reduce_lanes add %t : vector<8xf32> to f32
  loop.store %s, %y[]
}

// -----

// Equal lanes are one scalar load; long strides and indirect subscripts gather. Bools take a byte.

// CHECK-LABEL: define internal void @lanes.body(
// CHECK:         [[ONE:%v[0-9]+]] = load float, ptr
// CHECK:         insertelement <8 x float> poison, float [[ONE]]
// CHECK:         getelementptr float, ptr {{%[a-z0-9]+}}, <8 x i64> <i64 0, i64 5,
// CHECK:         @llvm.masked.gather.v8f32.v8p0(<8 x ptr> align 4
// CHECK:         fcmp olt <8 x float>
// CHECK:         zext <8 x i1> {{%v[0-9]+}} to <8 x i8>
// CHECK:         store <8 x i8>
loop.func @lanes symbols [] (%x: memref<48xf32>, %y: memref<8xi1>) outputs 1 {
  %a = loop.load %x[5] lane v : vector<8xf32>
  %b = loop.load %x[5*v] lane v : vector<8xf32>
  %c = arith.cmpf olt, %a, %b : vector<8xf32>
  loop.store %c, %y[v] lane v
}

// -----

// A short stride loads all that lies between, without passing the last lane, and picks the lanes.

// CHECK-LABEL: define internal void @every_third.body(
// CHECK:         [[A:%v[0-9]+]] = load <4 x float>, ptr
// CHECK:         [[B:%v[0-9]+]] = load <4 x float>, ptr
// CHECK:         [[AB:%v[0-9]+]] = shufflevector <4 x float> [[A]], <4 x float> [[B]], <4 x i32> <i32 0, i32 3, i32 6,
// CHECK:         [[C:%v[0-9]+]] = load <4 x float>, ptr
// CHECK:         shufflevector <4 x float> [[AB]], <4 x float> [[C]], <4 x i32> <i32 0, i32 1, i32 2, i32 7>
// CHECK-NOT:     gather

builtin.module {
  loop.func @every_third symbols [] (%x: memref<12xf32>, %y: memref<4xf32>) outputs 1 scratch(0) {
    %a = loop.load %x[3*v + 1] lane v : vector<4xf32>
    loop.store %a, %y[v] lane v
  }
}

// -----

// What a condition around an access has asked is not asked again: the vector is loaded without a mask.

// CHECK-LABEL: define internal void @known.body(
// CHECK:         icmp sge i64
// CHECK:         br i1
// CHECK-NOT:     icmp sge
// CHECK:         load <16 x float>, ptr %p{{[0-9]+}}, align 4
// CHECK-NOT:     masked

builtin.module {
  loop.func @known symbols [] (%at: memref<9xi64>, %x: memref<8x16xf32>, %y: memref<9x16xf32>) outputs 1 scratch(0) {
    loop.for i = 0 to 9 {
      %k = loop.load %at[i] : i64
      loop.if [_0, 7 - _0] with %k {
        %a = loop.load %x[_0, v] lane v with %k if [_0, 7 - _0] : vector<16xf32>
        loop.store %a, %y[i, v] lane v
      }
    }
  }
}
