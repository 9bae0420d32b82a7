target triple = "x86_64-unknown-linux-gnu"

%union.anon = type { %struct.anon }
%struct.anon = type { ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr }
%struct.igniter_port = type { ptr, ptr, ptr, ptr, i32, i32, i32, i32, i64, i64, i64 }
%struct.trouble = type { ptr, ptr, i32 }
%struct.loaded = type { ptr, ptr, ptr }
%struct.launches = type { ptr, ptr, ptr, ptr, ptr, ptr }
%struct.map = type { i32, i32, i32, i32, i32, [5 x i32] }
%struct.text = type { %struct.igniter_string, [1024 x i8] }
%struct.igniter_string = type { ptr, i64, i64 }

@igniter_gpu_name = external constant [0 x i8], align 1
@.str = private unnamed_addr constant [3 x i8] c": \00", align 1
@.str.1 = private unnamed_addr constant [49 x i8] c" programs are more than a GPU launches at a time\00", align 1
@.str.2 = private unnamed_addr constant [15 x i8] c"cuLaunchKernel\00", align 1
@driver = internal unnamed_addr global %union.anon zeroinitializer, align 8
@LOADING = internal constant [20 x i8] c"loading its kernels\00", align 16
@driver_ready = internal unnamed_addr global i32 0, align 4
@.str.3 = private unnamed_addr constant [13 x i8] c"libcuda.so.1\00", align 1
@.str.4 = private unnamed_addr constant [63 x i8] c"it runs on GPUs of NVIDIA, and their driver cannot be loaded: \00", align 1
@.str.5 = private unnamed_addr constant [17 x i8] c"an unknown error\00", align 1
@names = internal unnamed_addr constant [17 x ptr] [ptr @.str.7, ptr @.str.8, ptr @.str.9, ptr @.str.10, ptr @.str.11, ptr @.str.12, ptr @.str.13, ptr @.str.14, ptr @.str.15, ptr @.str.16, ptr @.str.17, ptr @.str.18, ptr @.str.19, ptr @.str.20, ptr @.str.21, ptr @.str.2, ptr @.str.22], align 16
@.str.6 = private unnamed_addr constant [44 x i8] c"the driver of NVIDIA is too old: it has no \00", align 1
@.str.7 = private unnamed_addr constant [7 x i8] c"cuInit\00", align 1
@.str.8 = private unnamed_addr constant [15 x i8] c"cuGetErrorName\00", align 1
@.str.9 = private unnamed_addr constant [17 x i8] c"cuGetErrorString\00", align 1
@.str.10 = private unnamed_addr constant [12 x i8] c"cuDeviceGet\00", align 1
@.str.11 = private unnamed_addr constant [21 x i8] c"cuDeviceGetAttribute\00", align 1
@.str.12 = private unnamed_addr constant [25 x i8] c"cuDevicePrimaryCtxRetain\00", align 1
@.str.13 = private unnamed_addr constant [29 x i8] c"cuDevicePrimaryCtxRelease_v2\00", align 1
@.str.14 = private unnamed_addr constant [16 x i8] c"cuCtxGetCurrent\00", align 1
@.str.15 = private unnamed_addr constant [15 x i8] c"cuCtxGetDevice\00", align 1
@.str.16 = private unnamed_addr constant [20 x i8] c"cuCtxPushCurrent_v2\00", align 1
@.str.17 = private unnamed_addr constant [19 x i8] c"cuCtxPopCurrent_v2\00", align 1
@.str.18 = private unnamed_addr constant [17 x i8] c"cuModuleLoadData\00", align 1
@.str.19 = private unnamed_addr constant [15 x i8] c"cuModuleUnload\00", align 1
@.str.20 = private unnamed_addr constant [20 x i8] c"cuModuleGetFunction\00", align 1
@.str.21 = private unnamed_addr constant [19 x i8] c"cuFuncSetAttribute\00", align 1
@.str.22 = private unnamed_addr constant [23 x i8] c"cuTensorMapEncodeTiled\00", align 1
@igniter_kernel_count = external local_unnamed_addr constant i64, align 8
@igniter_kernels = external local_unnamed_addr constant [0 x ptr], align 8
@.str.23 = private unnamed_addr constant [59 x i8] c": the library has no code for a GPU of compute capability \00", align 1
@.str.24 = private unnamed_addr constant [71 x i8] c" (in tenths): compile for it, or with the target cuda for all since 80\00", align 1
@.str.25 = private unnamed_addr constant [68 x i8] c": the driver of NVIDIA is too old: it has no cuTensorMapEncodeTiled\00", align 1
@__const.run_func.trouble = private unnamed_addr constant { ptr, ptr, i32, [4 x i8] } { ptr @LOADING, ptr null, i32 0, [4 x i8] zeroinitializer }, align 8
@.str.26 = private unnamed_addr constant [14 x i8] c": its buffer \00", align 1
@.str.27 = private unnamed_addr constant [16 x i8] c" is at address \00", align 1
@.str.28 = private unnamed_addr constant [63 x i8] c", which is no multiple of 16: give ONNX Runtime memory that is\00", align 1
@.str.29 = private unnamed_addr constant [8 x i8] c" gives \00", align 1

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(none)
define hidden noundef nonnull ptr @igniter_gpu_provider(ptr noundef readnone captures(none) %op) local_unnamed_addr #0 {
entry:
  ret ptr @igniter_gpu_name
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(read, inaccessiblemem: none, target_mem0: none, target_mem1: none)
define hidden range(i32 -2, 1) i32 @igniter_gpu_input_memory(ptr noundef readonly captures(none) %op, i64 noundef %k) local_unnamed_addr #1 {
entry:
  %desc = getelementptr inbounds nuw i8, ptr %op, i64 208
  %0 = load ptr, ptr %desc, align 8
  %inputs = getelementptr inbounds nuw i8, ptr %0, i64 8
  %1 = load ptr, ptr %inputs, align 8
  %arrayidx = getelementptr inbounds nuw %struct.igniter_port, ptr %1, i64 %k
  %rank = getelementptr inbounds nuw i8, ptr %arrayidx, i64 48
  %2 = load i64, ptr %rank, align 8
  %tobool.not = icmp eq i64 %2, 0
  br i1 %tobool.not, label %land.end, label %land.rhs

land.rhs:                                         ; preds = %entry
  %dims = getelementptr inbounds nuw i8, ptr %arrayidx, i64 24
  %3 = load ptr, ptr %dims, align 8
  %4 = load i64, ptr %3, align 8
  %tobool2.not = icmp eq i64 %4, 0
  %5 = select i1 %tobool2.not, i32 -2, i32 0
  br label %land.end

land.end:                                         ; preds = %land.rhs, %entry
  %cond = phi i32 [ 0, %entry ], [ %5, %land.rhs ]
  ret i32 %cond
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #2

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #2

; Function Attrs: nounwind
define hidden ptr @igniter_gpu_create(ptr noundef %op, ptr noundef %api, ptr noundef %info, ptr noundef %made) local_unnamed_addr #3 {
entry:
  %trouble.i.i.i = alloca %struct.trouble, align 8
  %context.i.i.i = alloca ptr, align 8
  %its.i.i.i = alloca i32, align 4
  %trouble.i45.i = alloca %struct.trouble, align 8
  %major.i.i = alloca i32, align 4
  %minor.i.i = alloca i32, align 4
  %popped.i.i = alloca ptr, align 8
  %where.i.i = alloca ptr, align 8
  %standard.i.i = alloca ptr, align 8
  %memory.i.i = alloca ptr, align 8
  %trouble.i.i = alloca %struct.trouble, align 8
  %allocator.i = alloca ptr, align 8
  %id.i = alloca i32, align 4
  %call = tail call ptr @igniter_create(ptr noundef %op, ptr noundef %api, ptr noundef %info, ptr noundef %made) #7
  %tobool.not.not = icmp eq ptr %call, null
  br i1 %tobool.not.not, label %do.end, label %return

do.end:                                           ; preds = %entry
  %desc = getelementptr inbounds nuw i8, ptr %op, i64 208
  %0 = load ptr, ptr %desc, align 8
  %1 = load ptr, ptr %made, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %allocator.i) #8
  call void @llvm.lifetime.start.p0(ptr nonnull %id.i) #8
  call void @llvm.lifetime.start.p0(ptr nonnull %trouble.i.i) #8
  call void @llvm.memcpy.p0.p0.i64(ptr noundef nonnull align 8 dereferenceable(24) %trouble.i.i, ptr noundef nonnull align 8 dereferenceable(24) @__const.run_func.trouble, i64 24, i1 false)
  %2 = load atomic i32, ptr @driver_ready acquire, align 4
  %tobool.not.i.i = icmp eq i32 %2, 0
  br i1 %tobool.not.i.i, label %if.end.i.i, label %open_driver.exit.i

if.end.i.i:                                       ; preds = %do.end
  %call.i.i = tail call ptr @dlopen(ptr noundef nonnull @.str.3, i32 noundef 2) #7
  %tobool1.not.i.i = icmp eq ptr %call.i.i, null
  br i1 %tobool1.not.i.i, label %if.then2.i.i, label %for.body.i.i

if.then2.i.i:                                     ; preds = %if.end.i.i
  %call3.i.i = tail call ptr @dlerror() #7
  %tobool4.not.i.i = icmp eq ptr %call3.i.i, null
  %cond.i.i = select i1 %tobool4.not.i.i, ptr @.str.5, ptr %call3.i.i
  %call5.i.i = tail call fastcc ptr @simple(ptr noundef readonly %api, ptr noundef %0, ptr noundef nonnull @.str.4, ptr noundef nonnull %cond.i.i) #9
  br label %open_driver.exit.i

for.body.i.i:                                     ; preds = %cleanup.i.i, %if.end.i.i
  %retval.042.i.i = phi ptr [ %retval.1.i.i, %cleanup.i.i ], [ undef, %if.end.i.i ]
  %k.041.i.i = phi i64 [ %inc.i.i, %cleanup.i.i ], [ 0, %if.end.i.i ]
  %arrayidx.i.i = getelementptr inbounds nuw ptr, ptr @names, i64 %k.041.i.i
  %3 = load ptr, ptr %arrayidx.i.i, align 8
  %call7.i.i = tail call ptr @dlsym(ptr noundef nonnull %call.i.i, ptr noundef %3) #7
  %tobool8.i.i = icmp eq ptr %call7.i.i, null
  %cmp9.i.i = icmp ne i64 %k.041.i.i, 16
  %or.cond.not.not44.i.i = and i1 %cmp9.i.i, %tobool8.i.i
  br i1 %or.cond.not.not44.i.i, label %if.then10.i.i, label %if.end13.i.i

if.then10.i.i:                                    ; preds = %for.body.i.i
  %call12.i.i = tail call fastcc ptr @simple(ptr noundef readonly %api, ptr noundef %0, ptr noundef nonnull @.str.6, ptr noundef %3) #9
  br label %cleanup.i.i

if.end13.i.i:                                     ; preds = %for.body.i.i
  %arrayidx14.i.i = getelementptr inbounds nuw ptr, ptr @driver, i64 %k.041.i.i
  %4 = ptrtoint ptr %call7.i.i to i64
  store atomic i64 %4, ptr %arrayidx14.i.i monotonic, align 8
  br label %cleanup.i.i

cleanup.i.i:                                      ; preds = %if.end13.i.i, %if.then10.i.i
  %retval.1.i.i = phi ptr [ %call12.i.i, %if.then10.i.i ], [ %retval.042.i.i, %if.end13.i.i ]
  %inc.i.i = add nuw nsw i64 %k.041.i.i, 1
  %exitcond.i.i = icmp eq i64 %inc.i.i, 17
  %or.cond.i.i = select i1 %tobool8.i.i, i1 true, i1 %exitcond.i.i
  br i1 %or.cond.i.i, label %cleanup15.i.i, label %for.body.i.i, !llvm.loop !0

cleanup15.i.i:                                    ; preds = %cleanup.i.i
  br i1 %or.cond.not.not44.i.i, label %open_driver.exit.i, label %for.end.i.i

for.end.i.i:                                      ; preds = %cleanup15.i.i
  %5 = load ptr, ptr @driver, align 8
  %call17.i.i = tail call i32 %5(i32 noundef 0) #7
  %function1.i.i.i = getelementptr inbounds nuw i8, ptr %trouble.i.i, i64 8
  store ptr @.str.7, ptr %function1.i.i.i, align 8
  %code2.i.i.i = getelementptr inbounds nuw i8, ptr %trouble.i.i, i64 16
  store i32 %call17.i.i, ptr %code2.i.i.i, align 8
  %tobool.not.i.not.i.i = icmp eq i32 %call17.i.i, 0
  br i1 %tobool.not.i.not.i.i, label %if.end22.i.i, label %if.then20.i.i

if.then20.i.i:                                    ; preds = %for.end.i.i
  %call21.i.i = call fastcc ptr @driver_failed(ptr noundef readonly %api, ptr noundef %0, ptr noundef %trouble.i.i) #9
  br label %open_driver.exit.i

if.end22.i.i:                                     ; preds = %for.end.i.i
  store atomic i32 1, ptr @driver_ready release, align 4
  br label %open_driver.exit.i

open_driver.exit.i:                               ; preds = %if.end22.i.i, %if.then20.i.i, %cleanup15.i.i, %if.then2.i.i, %do.end
  %retval.4.i.i = phi ptr [ null, %do.end ], [ null, %if.end22.i.i ], [ %call21.i.i, %if.then20.i.i ], [ %retval.1.i.i, %cleanup15.i.i ], [ %call5.i.i, %if.then2.i.i ]
  call void @llvm.lifetime.end.p0(ptr nonnull %trouble.i.i) #8
  %tobool.not.i = icmp eq ptr %retval.4.i.i, null
  br i1 %tobool.not.i, label %do.body1.i, label %attach_device.exit

do.body1.i:                                       ; preds = %open_driver.exit.i
  %KernelInfoGetAllocator.i = getelementptr inbounds nuw i8, ptr %api, i64 2224
  %6 = load ptr, ptr %KernelInfoGetAllocator.i, align 8
  %call3.i = call ptr %6(ptr noundef %info, i32 noundef 0, ptr noundef nonnull %allocator.i) #7
  %tobool4.not.i = icmp eq ptr %call3.i, null
  br i1 %tobool4.not.i, label %do.end11.i, label %attach_device.exit

do.end11.i:                                       ; preds = %do.body1.i
  %7 = load ptr, ptr %allocator.i, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %where.i.i) #8
  call void @llvm.lifetime.start.p0(ptr nonnull %standard.i.i) #8
  call void @llvm.lifetime.start.p0(ptr nonnull %memory.i.i) #8
  %AllocatorGetInfo.i.i = getelementptr inbounds nuw i8, ptr %api, i64 616
  %8 = load ptr, ptr %AllocatorGetInfo.i.i, align 8
  %call.i38.i = call ptr %8(ptr noundef %7, ptr noundef nonnull %where.i.i) #7
  %tobool.not.i39.i = icmp eq ptr %call.i38.i, null
  br i1 %tobool.not.i39.i, label %do.body1.i.i, label %make_device.exit.i

do.body1.i.i:                                     ; preds = %do.end11.i
  %MemoryInfoGetId.i.i = getelementptr inbounds nuw i8, ptr %api, i64 576
  %9 = load ptr, ptr %MemoryInfoGetId.i.i, align 8
  %10 = load ptr, ptr %where.i.i, align 8
  %call3.i40.i = call ptr %9(ptr noundef %10, ptr noundef nonnull %id.i) #7
  %tobool4.not.i41.i = icmp eq ptr %call3.i40.i, null
  br i1 %tobool4.not.i41.i, label %do.body12.i.i, label %make_device.exit.i

do.body12.i.i:                                    ; preds = %do.body1.i.i
  %GetAllocatorWithDefaultOptions.i.i = getelementptr inbounds nuw i8, ptr %api, i64 624
  %11 = load ptr, ptr %GetAllocatorWithDefaultOptions.i.i, align 8
  %call14.i.i = call ptr %11(ptr noundef nonnull %standard.i.i) #7
  %tobool15.not.i.i = icmp eq ptr %call14.i.i, null
  br i1 %tobool15.not.i.i, label %do.end22.i.i, label %make_device.exit.i

do.end22.i.i:                                     ; preds = %do.body12.i.i
  %12 = load i64, ptr @igniter_kernel_count, align 8
  %mul.i.i = mul i64 %12, 24
  %add.i.i = add i64 %mul.i.i, 24
  %AllocatorAlloc.i.i = getelementptr inbounds nuw i8, ptr %api, i64 600
  %13 = load ptr, ptr %AllocatorAlloc.i.i, align 8
  %14 = load ptr, ptr %standard.i.i, align 8
  %call25.i.i = call ptr %13(ptr noundef %14, i64 noundef %add.i.i, ptr noundef nonnull %memory.i.i) #7
  %tobool26.not.i.i = icmp eq ptr %call25.i.i, null
  br i1 %tobool26.not.i.i, label %do.end33.i.i, label %make_device.exit.i

do.end33.i.i:                                     ; preds = %do.end22.i.i
  %15 = load ptr, ptr %memory.i.i, align 8
  store ptr %7, ptr %15, align 8
  %context.i.i = getelementptr inbounds nuw i8, ptr %15, i64 8
  store ptr null, ptr %context.i.i, align 8
  %number.i.i = getelementptr inbounds nuw i8, ptr %15, i64 16
  store i32 0, ptr %number.i.i, align 8
  %retained.i.i = getelementptr inbounds nuw i8, ptr %15, i64 20
  store i32 0, ptr %retained.i.i, align 4
  %cmp62.i.i = icmp sgt i64 %12, 0
  br i1 %cmp62.i.i, label %for.body.lr.ph.i.i, label %make_device.exit.i

for.body.lr.ph.i.i:                               ; preds = %do.end33.i.i
  %kernels.i.i = getelementptr inbounds nuw i8, ptr %15, i64 24
  br label %for.body.i42.i

for.body.i42.i:                                   ; preds = %for.body.i42.i, %for.body.lr.ph.i.i
  %k.063.i.i = phi i64 [ 0, %for.body.lr.ph.i.i ], [ %inc.i44.i, %for.body.i42.i ]
  %arrayidx.i43.i = getelementptr inbounds nuw %struct.loaded, ptr %kernels.i.i, i64 %k.063.i.i
  store ptr null, ptr %arrayidx.i43.i, align 8
  %inc.i44.i = add nuw nsw i64 %k.063.i.i, 1
  %exitcond.not.i.i = icmp eq i64 %inc.i44.i, %12
  br i1 %exitcond.not.i.i, label %make_device.exit.i, label %for.body.i42.i, !llvm.loop !3

make_device.exit.i:                               ; preds = %for.body.i42.i, %do.end33.i.i, %do.end22.i.i, %do.body12.i.i, %do.body1.i.i, %do.end11.i
  %device.0.i = phi ptr [ undef, %do.end11.i ], [ undef, %do.end22.i.i ], [ undef, %do.body12.i.i ], [ undef, %do.body1.i.i ], [ %15, %do.end33.i.i ], [ %15, %for.body.i42.i ]
  %retval.5.i.i = phi ptr [ %call.i38.i, %do.end11.i ], [ %call25.i.i, %do.end22.i.i ], [ %call14.i.i, %do.body12.i.i ], [ %call3.i40.i, %do.body1.i.i ], [ null, %do.end33.i.i ], [ null, %for.body.i42.i ]
  call void @llvm.lifetime.end.p0(ptr nonnull %memory.i.i) #8
  call void @llvm.lifetime.end.p0(ptr nonnull %standard.i.i) #8
  call void @llvm.lifetime.end.p0(ptr nonnull %where.i.i) #8
  %tobool13.not.i = icmp eq ptr %retval.5.i.i, null
  br i1 %tobool13.not.i, label %if.end15.i, label %if.then14.i

if.then14.i:                                      ; preds = %make_device.exit.i
  %ReleaseAllocator.i = getelementptr inbounds nuw i8, ptr %api, i64 1056
  %16 = load ptr, ptr %ReleaseAllocator.i, align 8
  %17 = load ptr, ptr %allocator.i, align 8
  call void %16(ptr noundef %17) #7
  br label %attach_device.exit

if.end15.i:                                       ; preds = %make_device.exit.i
  %18 = load i32, ptr %id.i, align 4
  call void @llvm.lifetime.start.p0(ptr nonnull %trouble.i45.i) #8
  call void @llvm.memcpy.p0.p0.i64(ptr noundef nonnull align 8 dereferenceable(24) %trouble.i45.i, ptr noundef nonnull align 8 dereferenceable(24) @__const.run_func.trouble, i64 24, i1 false)
  call void @llvm.lifetime.start.p0(ptr nonnull %major.i.i) #8
  call void @llvm.lifetime.start.p0(ptr nonnull %minor.i.i) #8
  call void @llvm.lifetime.start.p0(ptr nonnull %popped.i.i) #8
  %19 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @driver, i64 24), align 8
  %number.i46.i = getelementptr inbounds nuw i8, ptr %device.0.i, i64 16
  %call.i47.i = call i32 %19(ptr noundef nonnull %number.i46.i, i32 noundef %18) #7
  %function1.i.i48.i = getelementptr inbounds nuw i8, ptr %trouble.i45.i, i64 8
  store ptr @.str.10, ptr %function1.i.i48.i, align 8
  %code2.i.i49.i = getelementptr inbounds nuw i8, ptr %trouble.i45.i, i64 16
  store i32 %call.i47.i, ptr %code2.i.i49.i, align 8
  %tobool.not.i.not.i50.i = icmp eq i32 %call.i47.i, 0
  br i1 %tobool.not.i.not.i50.i, label %lor.lhs.false.i.i, label %if.then.i.i

lor.lhs.false.i.i:                                ; preds = %if.end15.i
  %20 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @driver, i64 32), align 8
  %21 = load i32, ptr %number.i46.i, align 8
  %call3.i53.i = call i32 %20(ptr noundef nonnull %major.i.i, i32 noundef 75, i32 noundef %21) #7
  store ptr @.str.11, ptr %function1.i.i48.i, align 8
  store i32 %call3.i53.i, ptr %code2.i.i49.i, align 8
  %tobool.not.i28.not.i.i = icmp eq i32 %call3.i53.i, 0
  br i1 %tobool.not.i28.not.i.i, label %lor.lhs.false6.i.i, label %if.then.i.i

lor.lhs.false6.i.i:                               ; preds = %lor.lhs.false.i.i
  %22 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @driver, i64 32), align 8
  %23 = load i32, ptr %number.i46.i, align 8
  %call8.i.i = call i32 %22(ptr noundef nonnull %minor.i.i, i32 noundef 76, i32 noundef %23) #7
  store ptr @.str.11, ptr %function1.i.i48.i, align 8
  store i32 %call8.i.i, ptr %code2.i.i49.i, align 8
  %tobool.not.i32.not.i.i = icmp eq i32 %call8.i.i, 0
  br i1 %tobool.not.i32.not.i.i, label %lor.lhs.false11.i.i, label %if.then.i.i

lor.lhs.false11.i.i:                              ; preds = %lor.lhs.false6.i.i
  call void @llvm.lifetime.start.p0(ptr nonnull %context.i.i.i) #8
  store ptr null, ptr %context.i.i.i, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %its.i.i.i) #8
  store i32 -1, ptr %its.i.i.i, align 4
  %24 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @driver, i64 56), align 8
  %call.i.i.i = call i32 %24(ptr noundef nonnull %context.i.i.i) #7
  store ptr @.str.14, ptr %function1.i.i48.i, align 8
  store i32 %call.i.i.i, ptr %code2.i.i49.i, align 8
  %tobool.not.i.not.i.i.i = icmp eq i32 %call.i.i.i, 0
  br i1 %tobool.not.i.not.i.i.i, label %lor.lhs.false.i.i.i, label %enter_context.exit.i.i

lor.lhs.false.i.i.i:                              ; preds = %lor.lhs.false11.i.i
  %25 = load ptr, ptr %context.i.i.i, align 8
  %tobool2.not.i.i.i = icmp eq ptr %25, null
  br i1 %tobool2.not.i.i.i, label %if.end.i.i.i, label %land.lhs.true.i.i.i

land.lhs.true.i.i.i:                              ; preds = %lor.lhs.false.i.i.i
  %26 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @driver, i64 64), align 8
  %call3.i.i.i = call i32 %26(ptr noundef nonnull %its.i.i.i) #7
  store ptr @.str.15, ptr %function1.i.i48.i, align 8
  store i32 %call3.i.i.i, ptr %code2.i.i49.i, align 8
  %tobool.not.i31.not.i.i.i = icmp eq i32 %call3.i.i.i, 0
  br i1 %tobool.not.i31.not.i.i.i, label %if.end.i.i.i, label %enter_context.exit.i.i

if.end.i.i.i:                                     ; preds = %land.lhs.true.i.i.i, %lor.lhs.false.i.i.i
  %27 = load ptr, ptr %context.i.i.i, align 8
  %tobool6.not.i.i.i = icmp eq ptr %27, null
  br i1 %tobool6.not.i.i.i, label %if.then8.i.i.i, label %lor.lhs.false7.i.i.i

lor.lhs.false7.i.i.i:                             ; preds = %if.end.i.i.i
  %28 = load i32, ptr %its.i.i.i, align 4
  %29 = load i32, ptr %number.i46.i, align 8
  %cmp.not.i.i.i = icmp eq i32 %28, %29
  br i1 %cmp.not.i.i.i, label %if.end15.i.i.i, label %if.then8.i.i.i

if.then8.i.i.i:                                   ; preds = %lor.lhs.false7.i.i.i, %if.end.i.i.i
  %30 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @driver, i64 40), align 8
  %31 = load i32, ptr %number.i46.i, align 8
  %call10.i.i.i = call i32 %30(ptr noundef nonnull %context.i.i.i, i32 noundef %31) #7
  store ptr @.str.12, ptr %function1.i.i48.i, align 8
  store i32 %call10.i.i.i, ptr %code2.i.i49.i, align 8
  %tobool.not.i35.not.i.i.i = icmp eq i32 %call10.i.i.i, 0
  br i1 %tobool.not.i35.not.i.i.i, label %if.end14.i.i.i, label %enter_context.exit.i.i

if.end14.i.i.i:                                   ; preds = %if.then8.i.i.i
  %retained.i.i.i = getelementptr inbounds nuw i8, ptr %device.0.i, i64 20
  store i32 1, ptr %retained.i.i.i, align 4
  br label %if.end15.i.i.i

if.end15.i.i.i:                                   ; preds = %if.end14.i.i.i, %lor.lhs.false7.i.i.i
  %32 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @driver, i64 72), align 8
  %33 = load ptr, ptr %context.i.i.i, align 8
  %call16.i.i.i = call i32 %32(ptr noundef %33) #7
  store ptr @.str.16, ptr %function1.i.i48.i, align 8
  store i32 %call16.i.i.i, ptr %code2.i.i49.i, align 8
  %tobool.not.i39.not.i.i.i = icmp eq i32 %call16.i.i.i, 0
  br i1 %tobool.not.i39.not.i.i.i, label %if.end20.i.i.i, label %enter_context.exit.i.i

if.end20.i.i.i:                                   ; preds = %if.end15.i.i.i
  %34 = load ptr, ptr %context.i.i.i, align 8
  %context21.i.i.i = getelementptr inbounds nuw i8, ptr %device.0.i, i64 8
  store ptr %34, ptr %context21.i.i.i, align 8
  call void @llvm.lifetime.end.p0(ptr nonnull %its.i.i.i) #8
  call void @llvm.lifetime.end.p0(ptr nonnull %context.i.i.i) #8
  %35 = load i32, ptr %major.i.i, align 4
  %mul.i54.i = mul nsw i32 %35, 10
  %36 = load i32, ptr %minor.i.i, align 4
  %add.i55.i = add nsw i32 %mul.i54.i, %36
  %launched1.i.i.i = getelementptr inbounds nuw i8, ptr %0, i64 120
  %37 = load ptr, ptr %launched1.i.i.i, align 8
  %38 = load i64, ptr %37, align 8
  %cmp.not46.i.i.i = icmp sgt i64 %38, 0
  br i1 %cmp.not46.i.i.i, label %for.body.lr.ph.i.i.i, label %load_all.exit.i.i

enter_context.exit.i.i:                           ; preds = %if.end15.i.i.i, %if.then8.i.i.i, %land.lhs.true.i.i.i, %lor.lhs.false11.i.i
  call void @llvm.lifetime.end.p0(ptr nonnull %its.i.i.i) #8
  call void @llvm.lifetime.end.p0(ptr nonnull %context.i.i.i) #8
  br label %if.then.i.i

if.then.i.i:                                      ; preds = %enter_context.exit.i.i, %lor.lhs.false6.i.i, %lor.lhs.false.i.i, %if.end15.i
  %call14.i51.i = call fastcc ptr @driver_failed(ptr noundef readonly %api, ptr noundef %0, ptr noundef %trouble.i45.i) #9
  br label %open_device.exit.i

for.body.lr.ph.i.i.i:                             ; preds = %if.end20.i.i.i
  %numbers.i.i.i = getelementptr inbounds nuw i8, ptr %37, i64 8
  %function.i.i.i = getelementptr inbounds nuw i8, ptr %trouble.i.i.i, i64 8
  %code.i.i.i = getelementptr inbounds nuw i8, ptr %trouble.i.i.i, i64 16
  %39 = getelementptr inbounds nuw i8, ptr %trouble.i.i.i, i64 20
  %kernels.i.i.i = getelementptr inbounds nuw i8, ptr %device.0.i, i64 24
  %conv.i.i.i = sext i32 %add.i55.i to i64
  br label %for.body.i.i.i

for.cond.i.i.i:                                   ; preds = %cleanup.i.i.i
  %inc.i.i.i = add nuw nsw i64 %k.047.i.i.i, 1
  %40 = load i64, ptr %37, align 8
  %cmp.not.i36.i.i = icmp slt i64 %inc.i.i.i, %40
  br i1 %cmp.not.i36.i.i, label %for.body.i.i.i, label %load_all.exit.i.i, !llvm.loop !4

for.body.i.i.i:                                   ; preds = %for.cond.i.i.i, %for.body.lr.ph.i.i.i
  %retval.048.i.i.i = phi ptr [ undef, %for.body.lr.ph.i.i.i ], [ %retval.1.i.i.i, %for.cond.i.i.i ]
  %k.047.i.i.i = phi i64 [ 0, %for.body.lr.ph.i.i.i ], [ %inc.i.i.i, %for.cond.i.i.i ]
  %arrayidx.i.i.i = getelementptr inbounds nuw i64, ptr %numbers.i.i.i, i64 %k.047.i.i.i
  %41 = load i64, ptr %arrayidx.i.i.i, align 8
  %arrayidx2.i.i.i = getelementptr inbounds ptr, ptr @igniter_kernels, i64 %41
  %42 = load ptr, ptr %arrayidx2.i.i.i, align 8
  %tobool.not7.i.i.i.i = icmp eq ptr %42, null
  br i1 %tobool.not7.i.i.i.i, label %fitting.exit.i.i.i, label %land.rhs.i.i.i.i

land.rhs.i.i.i.i:                                 ; preds = %while.body.i.i.i.i, %for.body.i.i.i
  %kernel.addr.08.i.i.i.i = phi ptr [ %45, %while.body.i.i.i.i ], [ %42, %for.body.i.i.i ]
  %least.i.i.i.i = getelementptr inbounds nuw i8, ptr %kernel.addr.08.i.i.i.i, i64 40
  %43 = load i32, ptr %least.i.i.i.i, align 8
  %cmp.i.i.i.i = icmp slt i32 %add.i55.i, %43
  br i1 %cmp.i.i.i.i, label %while.body.i.i.i.i, label %lor.rhs.i.i.i.i

lor.rhs.i.i.i.i:                                  ; preds = %land.rhs.i.i.i.i
  %most.i.i.i.i = getelementptr inbounds nuw i8, ptr %kernel.addr.08.i.i.i.i, i64 44
  %44 = load i32, ptr %most.i.i.i.i, align 4
  %cmp1.i.i.i.i = icmp sgt i32 %add.i55.i, %44
  br i1 %cmp1.i.i.i.i, label %while.body.i.i.i.i, label %fitting.exit.i.i.i

while.body.i.i.i.i:                               ; preds = %lor.rhs.i.i.i.i, %land.rhs.i.i.i.i
  %others.i.i.i.i = getelementptr inbounds nuw i8, ptr %kernel.addr.08.i.i.i.i, i64 48
  %45 = load ptr, ptr %others.i.i.i.i, align 8
  %tobool.not.i.i.i.i = icmp eq ptr %45, null
  br i1 %tobool.not.i.i.i.i, label %fitting.exit.i.i.i, label %land.rhs.i.i.i.i, !llvm.loop !5

fitting.exit.i.i.i:                               ; preds = %while.body.i.i.i.i, %lor.rhs.i.i.i.i, %for.body.i.i.i
  %kernel.addr.0.lcssa.i.i.i.i = phi ptr [ null, %for.body.i.i.i ], [ %kernel.addr.08.i.i.i.i, %lor.rhs.i.i.i.i ], [ null, %while.body.i.i.i.i ]
  call void @llvm.lifetime.start.p0(ptr nonnull %trouble.i.i.i) #8
  %46 = load ptr, ptr %42, align 8
  store ptr %46, ptr %trouble.i.i.i, align 8
  store ptr null, ptr %function.i.i.i, align 8
  store i32 0, ptr %code.i.i.i, align 8
  store i32 0, ptr %39, align 4
  %tobool.not.i34.i.i = icmp eq ptr %kernel.addr.0.lcssa.i.i.i.i, null
  br i1 %tobool.not.i34.i.i, label %if.then.i.i.i, label %if.end.i35.i.i

if.then.i.i.i:                                    ; preds = %fitting.exit.i.i.i
  %call6.i.i.i = call fastcc ptr @numbered(ptr noundef readonly %api, ptr noundef %0, ptr noundef %46, ptr noundef nonnull @.str.23, i64 noundef %conv.i.i.i, ptr noundef nonnull @.str.24) #9
  br label %cleanup.i.i.i

if.end.i35.i.i:                                   ; preds = %fitting.exit.i.i.i
  %map_count.i.i.i = getelementptr inbounds nuw i8, ptr %kernel.addr.0.lcssa.i.i.i.i, i64 56
  %47 = load i64, ptr %map_count.i.i.i, align 8
  %tobool7.i.i.i = icmp eq i64 %47, 0
  %48 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @driver, i64 128), align 8
  %tobool8.i.i.i = icmp ne ptr %48, null
  %or.cond.i.i.i = select i1 %tobool7.i.i.i, i1 true, i1 %tobool8.i.i.i
  br i1 %or.cond.i.i.i, label %if.end12.i.i.i, label %if.then9.i.i.i

if.then9.i.i.i:                                   ; preds = %if.end.i35.i.i
  %call11.i.i.i = call fastcc ptr @simple(ptr noundef readonly %api, ptr noundef %0, ptr noundef %46, ptr noundef nonnull @.str.25) #9
  br label %cleanup.i.i.i

if.end12.i.i.i:                                   ; preds = %if.end.i35.i.i
  %arrayidx13.i.i.i = getelementptr inbounds %struct.loaded, ptr %kernels.i.i.i, i64 %41
  br label %while.cond.i.i.i.i

while.cond.i.i.i.i:                               ; preds = %fitting.exit.i.i.i.i, %if.end12.i.i.i
  %kernel.addr.0.i.i.i.i = phi ptr [ %kernel.addr.0.lcssa.i.i.i.i, %if.end12.i.i.i ], [ %kernel.addr.0.lcssa.i.i.i.i.i, %fitting.exit.i.i.i.i ]
  %49 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @driver, i64 88), align 8
  %code.i.i.i.i = getelementptr inbounds nuw i8, ptr %kernel.addr.0.i.i.i.i, i64 8
  %50 = load ptr, ptr %code.i.i.i.i, align 8
  %call.i.i.i.i = call i32 %49(ptr noundef nonnull %arrayidx13.i.i.i, ptr noundef %50) #7
  store ptr @.str.18, ptr %function.i.i.i, align 8
  store i32 %call.i.i.i.i, ptr %code.i.i.i, align 8
  %tobool.not.i.not.i.i.i.i = icmp eq i32 %call.i.i.i.i, 0
  br i1 %tobool.not.i.not.i.i.i.i, label %while.end.i.i.i.i, label %while.body.i40.i.i.i

while.body.i40.i.i.i:                             ; preds = %while.cond.i.i.i.i
  %others.i41.i.i.i = getelementptr inbounds nuw i8, ptr %kernel.addr.0.i.i.i.i, i64 48
  %51 = load ptr, ptr %others.i41.i.i.i, align 8
  %tobool.not7.i.i.i.i.i = icmp eq ptr %51, null
  br i1 %tobool.not7.i.i.i.i.i, label %fitting.exit.i.i.i.i, label %land.rhs.i.i.i.i.i

land.rhs.i.i.i.i.i:                               ; preds = %while.body.i.i.i.i.i, %while.body.i40.i.i.i
  %kernel.addr.08.i.i.i.i.i = phi ptr [ %54, %while.body.i.i.i.i.i ], [ %51, %while.body.i40.i.i.i ]
  %least.i.i.i.i.i = getelementptr inbounds nuw i8, ptr %kernel.addr.08.i.i.i.i.i, i64 40
  %52 = load i32, ptr %least.i.i.i.i.i, align 8
  %cmp.i.i.i.i.i = icmp slt i32 %add.i55.i, %52
  br i1 %cmp.i.i.i.i.i, label %while.body.i.i.i.i.i, label %lor.rhs.i.i.i.i.i

lor.rhs.i.i.i.i.i:                                ; preds = %land.rhs.i.i.i.i.i
  %most.i.i.i.i.i = getelementptr inbounds nuw i8, ptr %kernel.addr.08.i.i.i.i.i, i64 44
  %53 = load i32, ptr %most.i.i.i.i.i, align 4
  %cmp1.i.i.i.i.i = icmp sgt i32 %add.i55.i, %53
  br i1 %cmp1.i.i.i.i.i, label %while.body.i.i.i.i.i, label %fitting.exit.i.i.i.i

while.body.i.i.i.i.i:                             ; preds = %lor.rhs.i.i.i.i.i, %land.rhs.i.i.i.i.i
  %others.i.i.i.i.i = getelementptr inbounds nuw i8, ptr %kernel.addr.08.i.i.i.i.i, i64 48
  %54 = load ptr, ptr %others.i.i.i.i.i, align 8
  %tobool.not.i27.i.i.i.i = icmp eq ptr %54, null
  br i1 %tobool.not.i27.i.i.i.i, label %fitting.exit.i.i.i.i, label %land.rhs.i.i.i.i.i, !llvm.loop !5

fitting.exit.i.i.i.i:                             ; preds = %while.body.i.i.i.i.i, %lor.rhs.i.i.i.i.i, %while.body.i40.i.i.i
  %kernel.addr.0.lcssa.i.i.i.i.i = phi ptr [ null, %while.body.i40.i.i.i ], [ %kernel.addr.08.i.i.i.i.i, %lor.rhs.i.i.i.i.i ], [ null, %while.body.i.i.i.i.i ]
  %tobool3.not.i.i.i.i = icmp eq ptr %kernel.addr.0.lcssa.i.i.i.i.i, null
  br i1 %tobool3.not.i.i.i.i, label %if.then16.i.i.i, label %while.cond.i.i.i.i, !llvm.loop !6

while.end.i.i.i.i:                                ; preds = %while.cond.i.i.i.i
  %kernel4.i.i.i.i = getelementptr inbounds nuw i8, ptr %arrayidx13.i.i.i, i64 16
  store ptr %kernel.addr.0.i.i.i.i, ptr %kernel4.i.i.i.i, align 8
  %55 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @driver, i64 104), align 8
  %function.i.i.i.i = getelementptr inbounds nuw i8, ptr %arrayidx13.i.i.i, i64 8
  %56 = load ptr, ptr %arrayidx13.i.i.i, align 8
  %entry6.i.i.i.i = getelementptr inbounds nuw i8, ptr %kernel.addr.0.i.i.i.i, i64 16
  %57 = load ptr, ptr %entry6.i.i.i.i, align 8
  %call7.i.i.i.i = call i32 %55(ptr noundef nonnull %function.i.i.i.i, ptr noundef %56, ptr noundef %57) #7
  store ptr @.str.20, ptr %function.i.i.i, align 8
  store i32 %call7.i.i.i.i, ptr %code.i.i.i, align 8
  %tobool.not.i30.not.i.i.i.i = icmp eq i32 %call7.i.i.i.i, 0
  br i1 %tobool.not.i30.not.i.i.i.i, label %land.rhs.i42.i.i.i, label %if.then16.i.i.i

land.rhs.i42.i.i.i:                               ; preds = %while.end.i.i.i.i
  %shared.i.i.i.i = getelementptr inbounds nuw i8, ptr %kernel.addr.0.i.i.i.i, i64 28
  %58 = load i32, ptr %shared.i.i.i.i, align 4
  %cmp.i43.i.i.i = icmp ult i32 %58, 49153
  br i1 %cmp.i43.i.i.i, label %cleanup.i.i.i, label %lor.rhs.i44.i.i.i

lor.rhs.i44.i.i.i:                                ; preds = %land.rhs.i42.i.i.i
  %59 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @driver, i64 112), align 8
  %60 = load ptr, ptr %function.i.i.i.i, align 8
  %call12.i.i.i.i = call i32 %59(ptr noundef %60, i32 noundef 8, i32 noundef %58) #7
  store ptr @.str.21, ptr %function.i.i.i, align 8
  store i32 %call12.i.i.i.i, ptr %code.i.i.i, align 8
  %tobool.not.i34.i.not.i.i.i = icmp eq i32 %call12.i.i.i.i, 0
  br i1 %tobool.not.i34.i.not.i.i.i, label %cleanup.i.i.i, label %if.then16.i.i.i

if.then16.i.i.i:                                  ; preds = %lor.rhs.i44.i.i.i, %while.end.i.i.i.i, %fitting.exit.i.i.i.i
  %call17.i.i.i = call fastcc ptr @driver_failed(ptr noundef readonly %api, ptr noundef %0, ptr noundef %trouble.i.i.i) #9
  br label %cleanup.i.i.i

cleanup.i.i.i:                                    ; preds = %if.then16.i.i.i, %lor.rhs.i44.i.i.i, %land.rhs.i42.i.i.i, %if.then9.i.i.i, %if.then.i.i.i
  %cond24.i.i.i = phi i1 [ false, %if.then.i.i.i ], [ false, %if.then16.i.i.i ], [ false, %if.then9.i.i.i ], [ true, %lor.rhs.i44.i.i.i ], [ true, %land.rhs.i42.i.i.i ]
  %retval.1.i.i.i = phi ptr [ %call6.i.i.i, %if.then.i.i.i ], [ %call17.i.i.i, %if.then16.i.i.i ], [ %call11.i.i.i, %if.then9.i.i.i ], [ %retval.048.i.i.i, %lor.rhs.i44.i.i.i ], [ %retval.048.i.i.i, %land.rhs.i42.i.i.i ]
  call void @llvm.lifetime.end.p0(ptr nonnull %trouble.i.i.i) #8
  br i1 %cond24.i.i.i, label %for.cond.i.i.i, label %load_all.exit.i.i

load_all.exit.i.i:                                ; preds = %cleanup.i.i.i, %for.cond.i.i.i, %if.end20.i.i.i
  %spec.select.i.i.i = phi ptr [ null, %if.end20.i.i.i ], [ %retval.1.i.i.i, %cleanup.i.i.i ], [ null, %for.cond.i.i.i ]
  %61 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @driver, i64 80), align 8
  %call16.i.i = call i32 %61(ptr noundef nonnull %popped.i.i) #7
  br label %open_device.exit.i

open_device.exit.i:                               ; preds = %load_all.exit.i.i, %if.then.i.i
  %retval.0.i.i = phi ptr [ %spec.select.i.i.i, %load_all.exit.i.i ], [ %call14.i51.i, %if.then.i.i ]
  call void @llvm.lifetime.end.p0(ptr nonnull %popped.i.i) #8
  call void @llvm.lifetime.end.p0(ptr nonnull %minor.i.i) #8
  call void @llvm.lifetime.end.p0(ptr nonnull %major.i.i) #8
  call void @llvm.lifetime.end.p0(ptr nonnull %trouble.i45.i) #8
  %tobool17.not.i = icmp eq ptr %retval.0.i.i, null
  br i1 %tobool17.not.i, label %if.else.i, label %if.then18.i

if.then18.i:                                      ; preds = %open_device.exit.i
  call fastcc void @close_device(ptr noundef readonly %api, ptr noundef %device.0.i) #10
  br label %attach_device.exit

if.else.i:                                        ; preds = %open_device.exit.i
  %device19.i = getelementptr inbounds nuw i8, ptr %1, i64 16
  store ptr %device.0.i, ptr %device19.i, align 8
  br label %attach_device.exit

attach_device.exit:                               ; preds = %if.else.i, %if.then18.i, %if.then14.i, %do.body1.i, %open_driver.exit.i
  %retval.3.i = phi ptr [ %retval.4.i.i, %open_driver.exit.i ], [ %call3.i, %do.body1.i ], [ %retval.5.i.i, %if.then14.i ], [ null, %if.else.i ], [ %retval.0.i.i, %if.then18.i ]
  call void @llvm.lifetime.end.p0(ptr nonnull %id.i) #8
  call void @llvm.lifetime.end.p0(ptr nonnull %allocator.i) #8
  %tobool2.not = icmp eq ptr %retval.3.i, null
  br i1 %tobool2.not, label %return, label %if.then3

if.then3:                                         ; preds = %attach_device.exit
  %62 = load ptr, ptr %made, align 8
  call void @igniter_destroy(ptr noundef %62) #7
  store ptr null, ptr %made, align 8
  br label %return

return:                                           ; preds = %if.then3, %attach_device.exit, %entry
  %retval.1 = phi ptr [ %call, %entry ], [ %retval.3.i, %if.then3 ], [ null, %attach_device.exit ]
  ret ptr %retval.1
}

declare ptr @igniter_create(ptr noundef, ptr noundef, ptr noundef, ptr noundef) local_unnamed_addr #4

declare void @igniter_destroy(ptr noundef) local_unnamed_addr #4

; Function Attrs: nounwind
define hidden void @igniter_gpu_destroy(ptr noundef %state) local_unnamed_addr #3 {
entry:
  %api = getelementptr inbounds nuw i8, ptr %state, i64 8
  %0 = load ptr, ptr %api, align 8
  %device = getelementptr inbounds nuw i8, ptr %state, i64 16
  %1 = load ptr, ptr %device, align 8
  tail call fastcc void @close_device(ptr noundef %0, ptr noundef %1) #10
  tail call void @igniter_destroy(ptr noundef %state) #7
  ret void
}

; Function Attrs: nounwind
define internal fastcc void @close_device(ptr noundef readonly captures(none) %api, ptr noundef %device) unnamed_addr #3 {
entry:
  %popped = alloca ptr, align 8
  %standard = alloca ptr, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %popped) #8
  call void @llvm.lifetime.start.p0(ptr nonnull %standard) #8
  %context = getelementptr inbounds nuw i8, ptr %device, i64 8
  %0 = load ptr, ptr %context, align 8
  %tobool.not = icmp eq ptr %0, null
  br i1 %tobool.not, label %if.end9, label %if.then

if.then:                                          ; preds = %entry
  %1 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @driver, i64 72), align 8
  %call = tail call i32 %1(ptr noundef nonnull %0) #7
  %2 = load i64, ptr @igniter_kernel_count, align 8
  %cmp41 = icmp sgt i64 %2, 0
  br i1 %cmp41, label %for.body.lr.ph, label %for.cond.cleanup

for.body.lr.ph:                                   ; preds = %if.then
  %kernels = getelementptr inbounds nuw i8, ptr %device, i64 24
  br label %for.body

for.cond.cleanup:                                 ; preds = %for.inc, %if.then
  %3 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @driver, i64 80), align 8
  %call8 = call i32 %3(ptr noundef nonnull %popped) #7
  br label %if.end9

for.body:                                         ; preds = %for.inc, %for.body.lr.ph
  %k.042 = phi i64 [ 0, %for.body.lr.ph ], [ %inc, %for.inc ]
  %arrayidx = getelementptr inbounds nuw %struct.loaded, ptr %kernels, i64 %k.042
  %4 = load ptr, ptr %arrayidx, align 8
  %tobool2.not = icmp eq ptr %4, null
  br i1 %tobool2.not, label %for.inc, label %if.then3

if.then3:                                         ; preds = %for.body
  %5 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @driver, i64 96), align 8
  %call7 = tail call i32 %5(ptr noundef nonnull %4) #7
  br label %for.inc

for.inc:                                          ; preds = %if.then3, %for.body
  %inc = add nuw nsw i64 %k.042, 1
  %exitcond.not = icmp eq i64 %inc, %2
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body, !llvm.loop !7

if.end9:                                          ; preds = %for.cond.cleanup, %entry
  %retained = getelementptr inbounds nuw i8, ptr %device, i64 20
  %6 = load i32, ptr %retained, align 4
  %tobool10.not = icmp eq i32 %6, 0
  br i1 %tobool10.not, label %if.end13, label %if.then11

if.then11:                                        ; preds = %if.end9
  %7 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @driver, i64 48), align 8
  %number = getelementptr inbounds nuw i8, ptr %device, i64 16
  %8 = load i32, ptr %number, align 8
  %call12 = call i32 %7(i32 noundef %8) #7
  br label %if.end13

if.end13:                                         ; preds = %if.then11, %if.end9
  %ReleaseAllocator = getelementptr inbounds nuw i8, ptr %api, i64 1056
  %9 = load ptr, ptr %ReleaseAllocator, align 8
  %10 = load ptr, ptr %device, align 8
  call void %9(ptr noundef %10) #7
  %GetAllocatorWithDefaultOptions = getelementptr inbounds nuw i8, ptr %api, i64 624
  %11 = load ptr, ptr %GetAllocatorWithDefaultOptions, align 8
  %call14 = call ptr %11(ptr noundef nonnull %standard) #7
  %tobool.not.i.not = icmp eq ptr %call14, null
  br i1 %tobool.not.i.not, label %if.then17, label %if.end20.sink.split

if.then17:                                        ; preds = %if.end13
  %AllocatorFree = getelementptr inbounds nuw i8, ptr %api, i64 608
  %12 = load ptr, ptr %AllocatorFree, align 8
  %13 = load ptr, ptr %standard, align 8
  %call18 = call ptr %12(ptr noundef %13, ptr noundef nonnull %device) #7
  %tobool.not.i36 = icmp eq ptr %call18, null
  br i1 %tobool.not.i36, label %if.end20, label %if.end20.sink.split

if.end20.sink.split:                              ; preds = %if.then17, %if.end13
  %call14.sink = phi ptr [ %call14, %if.end13 ], [ %call18, %if.then17 ]
  %ReleaseStatus.i = getelementptr inbounds nuw i8, ptr %api, i64 744
  %14 = load ptr, ptr %ReleaseStatus.i, align 8
  call void %14(ptr noundef nonnull %call14.sink) #7
  br label %if.end20

if.end20:                                         ; preds = %if.end20.sink.split, %if.then17
  call void @llvm.lifetime.end.p0(ptr nonnull %standard) #8
  call void @llvm.lifetime.end.p0(ptr nonnull %popped) #8
  ret void
}

; Function Attrs: nounwind
define hidden ptr @igniter_gpu_run(ptr noundef readonly captures(none) %state, ptr noundef %desc, ptr noundef %api, ptr noundef %context, ptr noundef %buffers, ptr noundef %symbols, i64 noundef %size) local_unnamed_addr #3 {
entry:
  %trouble.i = alloca %struct.trouble, align 8
  %popped.i = alloca ptr, align 8
  %where.i = alloca ptr, align 8
  %call = alloca %struct.launches, align 8
  %memory = alloca ptr, align 8
  %device1 = getelementptr inbounds nuw i8, ptr %state, i64 16
  %0 = load ptr, ptr %device1, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %call) #8
  store ptr %api, ptr %call, align 8
  %context3 = getelementptr inbounds nuw i8, ptr %call, i64 8
  store ptr %context, ptr %context3, align 8
  %error = getelementptr inbounds nuw i8, ptr %call, i64 16
  store ptr null, ptr %error, align 8
  %desc4 = getelementptr inbounds nuw i8, ptr %call, i64 24
  store ptr %desc, ptr %desc4, align 8
  %device5 = getelementptr inbounds nuw i8, ptr %call, i64 32
  store ptr %0, ptr %device5, align 8
  %stream = getelementptr inbounds nuw i8, ptr %call, i64 40
  store ptr null, ptr %stream, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %memory) #8
  store ptr null, ptr %memory, align 8
  %KernelContext_GetGPUComputeStream = getelementptr inbounds nuw i8, ptr %api, i64 1544
  %1 = load ptr, ptr %KernelContext_GetGPUComputeStream, align 8
  %call7 = call ptr %1(ptr noundef %context, ptr noundef nonnull %stream) #7
  %tobool.not = icmp eq ptr %call7, null
  br i1 %tobool.not, label %do.end, label %cleanup29

do.end:                                           ; preds = %entry
  %tobool8.not = icmp eq i64 %size, 0
  br i1 %tobool8.not, label %if.end21, label %do.body10

do.body10:                                        ; preds = %do.end
  %2 = load ptr, ptr %call, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %where.i) #8
  %add.i = add i64 %size, 64
  %3 = load ptr, ptr %stream, align 8
  %tobool.not.i = icmp eq ptr %3, null
  %4 = load ptr, ptr %device5, align 8
  %5 = load ptr, ptr %4, align 8
  br i1 %tobool.not.i, label %do.body16.i, label %do.body.i

do.body.i:                                        ; preds = %do.body10
  %AllocatorGetInfo.i = getelementptr inbounds nuw i8, ptr %2, i64 616
  %6 = load ptr, ptr %AllocatorGetInfo.i, align 8
  %call2.i = call ptr %6(ptr noundef %5, ptr noundef nonnull %where.i) #7
  %tobool3.not.i = icmp eq ptr %call2.i, null
  br i1 %tobool3.not.i, label %do.body5.i, label %allocate.exit

do.body5.i:                                       ; preds = %do.body.i
  %KernelContext_GetScratchBuffer.i = getelementptr inbounds nuw i8, ptr %2, i64 2216
  %7 = load ptr, ptr %KernelContext_GetScratchBuffer.i, align 8
  %8 = load ptr, ptr %context3, align 8
  %9 = load ptr, ptr %where.i, align 8
  %call7.i = call ptr %7(ptr noundef %8, ptr noundef %9, i64 noundef %add.i, ptr noundef nonnull %memory) #7
  %tobool8.not.i = icmp eq ptr %call7.i, null
  br i1 %tobool8.not.i, label %if.end29.i, label %allocate.exit

do.body16.i:                                      ; preds = %do.body10
  %AllocatorAlloc.i = getelementptr inbounds nuw i8, ptr %2, i64 600
  %10 = load ptr, ptr %AllocatorAlloc.i, align 8
  %call20.i = call ptr %10(ptr noundef %5, i64 noundef %add.i, ptr noundef nonnull %memory) #7
  %tobool21.not.i = icmp eq ptr %call20.i, null
  br i1 %tobool21.not.i, label %if.end29.i, label %allocate.exit

if.end29.i:                                       ; preds = %do.body16.i, %do.body5.i
  %11 = load ptr, ptr %memory, align 8
  %tobool30.not.i = icmp eq ptr %11, null
  br i1 %tobool30.not.i, label %cond.false.i, label %allocate.exit

cond.false.i:                                     ; preds = %if.end29.i
  %12 = load ptr, ptr %desc4, align 8
  %call31.i = call ptr @igniter_fail(ptr noundef %2, ptr noundef %12, i32 noundef 9, ptr noundef null, i64 noundef 0, i64 noundef 0, i64 noundef 0, i64 noundef range(i64 1, 0) %size) #7
  br label %allocate.exit

allocate.exit:                                    ; preds = %cond.false.i, %if.end29.i, %do.body16.i, %do.body5.i, %do.body.i
  %retval.3.i = phi ptr [ %call20.i, %do.body16.i ], [ %call7.i, %do.body5.i ], [ %call2.i, %do.body.i ], [ %call31.i, %cond.false.i ], [ null, %if.end29.i ]
  call void @llvm.lifetime.end.p0(ptr nonnull %where.i) #8
  %tobool13.not = icmp eq ptr %retval.3.i, null
  br i1 %tobool13.not, label %if.end21, label %cleanup29

if.end21:                                         ; preds = %allocate.exit, %do.end
  %13 = load ptr, ptr %memory, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %trouble.i) #8
  call void @llvm.memcpy.p0.p0.i64(ptr noundef nonnull align 8 dereferenceable(24) %trouble.i, ptr noundef nonnull align 8 dereferenceable(24) @__const.run_func.trouble, i64 24, i1 false)
  call void @llvm.lifetime.start.p0(ptr nonnull %popped.i) #8
  %14 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @driver, i64 72), align 8
  %15 = load ptr, ptr %device5, align 8
  %context.i43 = getelementptr inbounds nuw i8, ptr %15, i64 8
  %16 = load ptr, ptr %context.i43, align 8
  %call1.i = call i32 %14(ptr noundef %16) #7
  %function1.i.i = getelementptr inbounds nuw i8, ptr %trouble.i, i64 8
  store ptr @.str.16, ptr %function1.i.i, align 8
  %code2.i.i = getelementptr inbounds nuw i8, ptr %trouble.i, i64 16
  store i32 %call1.i, ptr %code2.i.i, align 8
  %tobool.not.i.not.i = icmp eq i32 %call1.i, 0
  br i1 %tobool.not.i.not.i, label %if.end.i, label %if.then.i

if.then.i:                                        ; preds = %if.end21
  %17 = load ptr, ptr %call, align 8
  %18 = load ptr, ptr %desc4, align 8
  %call3.i = call fastcc ptr @driver_failed(ptr noundef %17, ptr noundef %18, ptr noundef %trouble.i) #9
  br label %run_func.exit

if.end.i:                                         ; preds = %if.end21
  %19 = ptrtoint ptr %13 to i64
  %add.i45 = add i64 %19, 63
  %and.i = and i64 %add.i45, -64
  %20 = inttoptr i64 %and.i to ptr
  %21 = load ptr, ptr %desc4, align 8
  %kernel.i = getelementptr inbounds nuw i8, ptr %21, i64 32
  %22 = load ptr, ptr %kernel.i, align 8
  call void %22(ptr noundef %buffers, ptr noundef %symbols, ptr noundef %20, ptr noundef null, ptr noundef nonnull %call) #7
  %23 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @driver, i64 80), align 8
  %call5.i = call i32 %23(ptr noundef nonnull %popped.i) #7
  %24 = load ptr, ptr %error, align 8
  br label %run_func.exit

run_func.exit:                                    ; preds = %if.end.i, %if.then.i
  %retval.0.i = phi ptr [ %24, %if.end.i ], [ %call3.i, %if.then.i ]
  call void @llvm.lifetime.end.p0(ptr nonnull %popped.i) #8
  call void @llvm.lifetime.end.p0(ptr nonnull %trouble.i) #8
  %25 = load ptr, ptr %memory, align 8
  %tobool23.not = icmp eq ptr %25, null
  br i1 %tobool23.not, label %cleanup29, label %if.then24

if.then24:                                        ; preds = %run_func.exit
  %AllocatorFree = getelementptr inbounds nuw i8, ptr %api, i64 608
  %26 = load ptr, ptr %AllocatorFree, align 8
  %27 = load ptr, ptr %0, align 8
  %call25 = call ptr %26(ptr noundef %27, ptr noundef nonnull %25) #7
  %tobool.not.i46 = icmp eq ptr %call25, null
  br i1 %tobool.not.i46, label %cleanup29, label %if.then.i47

if.then.i47:                                      ; preds = %if.then24
  %ReleaseStatus.i = getelementptr inbounds nuw i8, ptr %api, i64 744
  %28 = load ptr, ptr %ReleaseStatus.i, align 8
  call void %28(ptr noundef nonnull %call25) #7
  br label %cleanup29

cleanup29:                                        ; preds = %if.then.i47, %if.then24, %run_func.exit, %allocate.exit, %entry
  %retval.2 = phi ptr [ %call7, %entry ], [ %retval.3.i, %allocate.exit ], [ %retval.0.i, %run_func.exit ], [ %retval.0.i, %if.then24 ], [ %retval.0.i, %if.then.i47 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %memory) #8
  call void @llvm.lifetime.end.p0(ptr nonnull %call) #8
  ret ptr %retval.2
}

; Function Attrs: nounwind
define hidden void @igniter_launch(ptr noundef captures(none) %call, i64 noundef %number, i64 noundef %grid, ptr noundef %parameters) local_unnamed_addr #3 {
entry:
  %sizes.i = alloca [5 x i64], align 16
  %strides.i = alloca [5 x i64], align 16
  %steps.i = alloca [5 x i32], align 16
  %trouble = alloca %struct.trouble, align 8
  %0 = load ptr, ptr %call, align 8
  %error = getelementptr inbounds nuw i8, ptr %call, i64 16
  %1 = load ptr, ptr %error, align 8
  %tobool = icmp ne ptr %1, null
  %cmp = icmp slt i64 %grid, 1
  %or.cond = or i1 %cmp, %tobool
  br i1 %or.cond, label %cleanup60, label %if.end

if.end:                                           ; preds = %entry
  %device = getelementptr inbounds nuw i8, ptr %call, i64 32
  %2 = load ptr, ptr %device, align 8
  %kernels = getelementptr inbounds nuw i8, ptr %2, i64 24
  %arrayidx = getelementptr inbounds %struct.loaded, ptr %kernels, i64 %number
  %kernel2 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 16
  %3 = load ptr, ptr %kernel2, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %trouble) #8
  %4 = load ptr, ptr %3, align 8
  store ptr %4, ptr %trouble, align 8
  %function = getelementptr inbounds nuw i8, ptr %trouble, i64 8
  store ptr null, ptr %function, align 8
  %code = getelementptr inbounds nuw i8, ptr %trouble, i64 16
  store i32 0, ptr %code, align 8
  %5 = getelementptr inbounds nuw i8, ptr %trouble, i64 20
  store i32 0, ptr %5, align 4
  %cmp4 = icmp sgt i64 %grid, 2147483647
  br i1 %cmp4, label %if.then5, label %for.cond.preheader

for.cond.preheader:                               ; preds = %if.end
  %addresses = getelementptr inbounds nuw i8, ptr %3, i64 32
  %6 = load i64, ptr %addresses, align 8
  %map_count = getelementptr inbounds nuw i8, ptr %3, i64 56
  %7 = load i64, ptr %map_count, align 8
  %add = add i64 %7, %6
  %cmp10.not109.not = icmp eq i64 %add, 0
  br i1 %cmp10.not109.not, label %for.cond27.preheader, label %for.body.lr.ph

for.body.lr.ph:                                   ; preds = %for.cond.preheader
  %maps = getelementptr inbounds nuw i8, ptr %3, i64 64
  br label %for.body

if.then5:                                         ; preds = %if.end
  %desc = getelementptr inbounds nuw i8, ptr %call, i64 24
  %8 = load ptr, ptr %desc, align 8
  %call7 = tail call fastcc ptr @numbered(ptr noundef %0, ptr noundef %8, ptr noundef %4, ptr noundef nonnull @.str, i64 noundef %grid, ptr noundef nonnull @.str.1) #9
  br label %cleanup57.sink.split

for.cond27.preheader:                             ; preds = %for.inc, %for.cond.preheader
  %map_count.le = getelementptr inbounds nuw i8, ptr %3, i64 56
  %9 = load i64, ptr %map_count.le, align 8
  %cmp29.not112.not = icmp eq i64 %9, 0
  br i1 %cmp29.not112.not, label %for.end46, label %for.body32.lr.ph

for.body32.lr.ph:                                 ; preds = %for.cond27.preheader
  %maps33 = getelementptr inbounds nuw i8, ptr %3, i64 64
  %add.ptr17.i = getelementptr inbounds nuw i8, ptr %strides.i, i64 8
  br label %for.body32

for.body:                                         ; preds = %for.inc, %for.body.lr.ph
  %k.0110 = phi i64 [ 0, %for.body.lr.ph ], [ %inc, %for.inc ]
  %cmp12 = icmp ult i64 %k.0110, %6
  br i1 %cmp12, label %cond.end, label %cond.false

cond.false:                                       ; preds = %for.body
  %10 = load ptr, ptr %maps, align 8
  %sub = sub nuw i64 %k.0110, %6
  %arrayidx14 = getelementptr inbounds nuw %struct.map, ptr %10, i64 %sub
  %11 = load i32, ptr %arrayidx14, align 4
  %conv = zext i32 %11 to i64
  br label %cond.end

cond.end:                                         ; preds = %cond.false, %for.body
  %cond = phi i64 [ %conv, %cond.false ], [ %k.0110, %for.body ]
  %arrayidx15 = getelementptr inbounds nuw ptr, ptr %parameters, i64 %cond
  %12 = load ptr, ptr %arrayidx15, align 8
  %13 = load i64, ptr %12, align 8
  %and = and i64 %13, 15
  %tobool16.not = icmp eq i64 %and, 0
  br i1 %tobool16.not, label %for.inc, label %if.then17

if.then17:                                        ; preds = %cond.end
  %desc18 = getelementptr inbounds nuw i8, ptr %call, i64 24
  %14 = load ptr, ptr %desc18, align 8
  %call20 = tail call fastcc ptr @bad_address(ptr noundef %0, ptr noundef %14, ptr noundef %4, i64 noundef %k.0110, i64 noundef %13) #9
  br label %cleanup57.sink.split

for.inc:                                          ; preds = %cond.end
  %inc = add nuw i64 %k.0110, 1
  %exitcond.not = icmp eq i64 %inc, %add
  br i1 %exitcond.not, label %for.cond27.preheader, label %for.body, !llvm.loop !8

for.cond27:                                       ; preds = %encode.exit
  %inc43 = add nuw i64 %k26.0113, 1
  %15 = load i64, ptr %map_count.le, align 8
  %cmp29.not = icmp ult i64 %inc43, %15
  br i1 %cmp29.not, label %for.body32, label %for.end46, !llvm.loop !9

for.body32:                                       ; preds = %for.cond27, %for.body32.lr.ph
  %k26.0113 = phi i64 [ 0, %for.body32.lr.ph ], [ %inc43, %for.cond27 ]
  %16 = load ptr, ptr %maps33, align 8
  %arrayidx34 = getelementptr inbounds nuw %struct.map, ptr %16, i64 %k26.0113
  %17 = load i32, ptr %arrayidx34, align 4
  %idx.ext.i = zext i32 %17 to i64
  %add.ptr.i = getelementptr inbounds nuw ptr, ptr %parameters, i64 %idx.ext.i
  %18 = load ptr, ptr %add.ptr.i, align 8
  %19 = load ptr, ptr %18, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %sizes.i) #8
  call void @llvm.lifetime.start.p0(ptr nonnull %strides.i) #8
  call void @llvm.lifetime.start.p0(ptr nonnull %steps.i) #8
  %rank.i = getelementptr inbounds nuw i8, ptr %arrayidx34, i64 4
  %20 = load i32, ptr %rank.i, align 4
  %cmp38.not.i = icmp eq i32 %20, 0
  br i1 %cmp38.not.i, label %encode.exit, label %for.body.lr.ph.i

for.body.lr.ph.i:                                 ; preds = %for.body32
  %factor.i = shl i32 %20, 1
  %invariant.op.i = or disjoint i32 %factor.i, 1
  %bytes.i = getelementptr inbounds nuw i8, ptr %arrayidx34, i64 16
  %21 = load i32, ptr %bytes.i, align 4
  %conv10.i = zext i32 %21 to i64
  %22 = zext i32 %20 to i64
  br label %for.body.i

for.body.i:                                       ; preds = %for.body.i, %for.body.lr.ph.i
  %indvars.iv.i = phi i64 [ 0, %for.body.lr.ph.i ], [ %indvars.iv.next.i, %for.body.i ]
  %23 = trunc nuw i64 %indvars.iv.i to i32
  %24 = xor i32 %23, -1
  %25 = sub nuw nsw i64 %22, %indvars.iv.i
  %arrayidx.i = getelementptr inbounds nuw ptr, ptr %add.ptr.i, i64 %25
  %26 = load ptr, ptr %arrayidx.i, align 8
  %27 = load i32, ptr %26, align 4
  %conv.i = zext i32 %27 to i64
  %arrayidx4.i = getelementptr inbounds nuw i64, ptr %sizes.i, i64 %indvars.iv.i
  store i64 %conv.i, ptr %arrayidx4.i, align 8
  %add7.reass.i = add i32 %invariant.op.i, %24
  %idxprom8.i = zext i32 %add7.reass.i to i64
  %arrayidx9.i = getelementptr inbounds nuw ptr, ptr %add.ptr.i, i64 %idxprom8.i
  %28 = load ptr, ptr %arrayidx9.i, align 8
  %29 = load i64, ptr %28, align 8
  %mul.i = mul i64 %29, %conv10.i
  %arrayidx12.i = getelementptr inbounds nuw i64, ptr %strides.i, i64 %indvars.iv.i
  store i64 %mul.i, ptr %arrayidx12.i, align 8
  %arrayidx14.i = getelementptr inbounds nuw i32, ptr %steps.i, i64 %indvars.iv.i
  store i32 1, ptr %arrayidx14.i, align 4
  %indvars.iv.next.i = add nuw nsw i64 %indvars.iv.i, 1
  %exitcond.not.i = icmp eq i64 %indvars.iv.next.i, %22
  br i1 %exitcond.not.i, label %encode.exit, label %for.body.i, !llvm.loop !10

encode.exit:                                      ; preds = %for.body.i, %for.body32
  %30 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @driver, i64 128), align 8
  %type.i = getelementptr inbounds nuw i8, ptr %arrayidx34, i64 8
  %31 = load i32, ptr %type.i, align 4
  %box.i = getelementptr inbounds nuw i8, ptr %arrayidx34, i64 20
  %swizzle.i = getelementptr inbounds nuw i8, ptr %arrayidx34, i64 12
  %32 = load i32, ptr %swizzle.i, align 4
  %call.i = call i32 %30(ptr noundef nonnull %18, i32 noundef %31, i32 noundef %20, ptr noundef %19, ptr noundef nonnull %sizes.i, ptr noundef nonnull %add.ptr17.i, ptr noundef nonnull %box.i, ptr noundef nonnull %steps.i, i32 noundef 0, i32 noundef %32, i32 noundef 2, i32 noundef 0) #7
  %tobool.not.i.i.not = icmp eq i32 %call.i, 0
  call void @llvm.lifetime.end.p0(ptr nonnull %steps.i) #8
  call void @llvm.lifetime.end.p0(ptr nonnull %strides.i) #8
  call void @llvm.lifetime.end.p0(ptr nonnull %sizes.i) #8
  br i1 %tobool.not.i.i.not, label %for.cond27, label %if.then37

if.then37:                                        ; preds = %encode.exit
  store ptr @.str.22, ptr %function, align 8
  store i32 %call.i, ptr %code, align 8
  %desc38 = getelementptr inbounds nuw i8, ptr %call, i64 24
  %33 = load ptr, ptr %desc38, align 8
  %call39 = call fastcc ptr @driver_failed(ptr noundef %0, ptr noundef %33, ptr noundef %trouble) #9
  br label %cleanup57.sink.split

for.end46:                                        ; preds = %for.cond27, %for.cond27.preheader
  %.str.22.lcssa = phi ptr [ null, %for.cond27.preheader ], [ @.str.22, %for.cond27 ]
  store ptr %.str.22.lcssa, ptr %function, align 8
  store i32 0, ptr %code, align 8
  %34 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @driver, i64 120), align 8
  %function47 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 8
  %35 = load ptr, ptr %function47, align 8
  %conv48 = trunc nuw nsw i64 %grid to i32
  %threads = getelementptr inbounds nuw i8, ptr %3, i64 24
  %36 = load i32, ptr %threads, align 8
  %shared = getelementptr inbounds nuw i8, ptr %3, i64 28
  %37 = load i32, ptr %shared, align 4
  %stream = getelementptr inbounds nuw i8, ptr %call, i64 40
  %38 = load ptr, ptr %stream, align 8
  %call49 = call i32 %34(ptr noundef %35, i32 noundef %conv48, i32 noundef 1, i32 noundef 1, i32 noundef %36, i32 noundef 1, i32 noundef 1, i32 noundef %37, ptr noundef %38, ptr noundef %parameters, ptr noundef null) #7
  store ptr @.str.2, ptr %function, align 8
  store i32 %call49, ptr %code, align 8
  %tobool.not.i.not = icmp eq i32 %call49, 0
  br i1 %tobool.not.i.not, label %cleanup57, label %if.then52

if.then52:                                        ; preds = %for.end46
  %desc53 = getelementptr inbounds nuw i8, ptr %call, i64 24
  %39 = load ptr, ptr %desc53, align 8
  %call54 = call fastcc ptr @driver_failed(ptr noundef %0, ptr noundef %39, ptr noundef %trouble) #9
  br label %cleanup57.sink.split

cleanup57.sink.split:                             ; preds = %if.then52, %if.then37, %if.then17, %if.then5
  %call20.sink = phi ptr [ %call20, %if.then17 ], [ %call39, %if.then37 ], [ %call54, %if.then52 ], [ %call7, %if.then5 ]
  store ptr %call20.sink, ptr %error, align 8
  br label %cleanup57

cleanup57:                                        ; preds = %cleanup57.sink.split, %for.end46
  call void @llvm.lifetime.end.p0(ptr nonnull %trouble) #8
  br label %cleanup60

cleanup60:                                        ; preds = %cleanup57, %entry
  ret void
}

; Function Attrs: cold noinline nounwind optsize
define internal fastcc ptr @numbered(ptr noundef readonly captures(none) %api, ptr noundef %desc, ptr noundef %label, ptr noundef %between, i64 noundef range(i64 -2147483648, -9223372036854775808) %number, ptr noundef %last) unnamed_addr #5 {
entry:
  %text = alloca %struct.text, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %text) #8
  call fastcc void @begin(ptr noundef %text, ptr noundef %desc, ptr noundef %label) #9
  call void @igniter_text(ptr noundef nonnull %text, ptr noundef %between) #7
  call void @igniter_number(ptr noundef nonnull %text, i64 noundef %number) #7
  %call = call fastcc ptr @finish(ptr noundef %text, ptr noundef %api, ptr noundef %last) #9
  call void @llvm.lifetime.end.p0(ptr nonnull %text) #8
  ret ptr %call
}

; Function Attrs: cold noinline nounwind optsize
define internal fastcc ptr @bad_address(ptr noundef readonly captures(none) %api, ptr noundef %desc, ptr noundef %label, i64 noundef %index, i64 noundef %address) unnamed_addr #5 {
entry:
  %text = alloca %struct.text, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %text) #8
  call fastcc void @begin(ptr noundef %text, ptr noundef %desc, ptr noundef %label) #9
  call void @igniter_text(ptr noundef nonnull %text, ptr noundef nonnull @.str.26) #7
  call void @igniter_number(ptr noundef nonnull %text, i64 noundef %index) #7
  call void @igniter_text(ptr noundef nonnull %text, ptr noundef nonnull @.str.27) #7
  call void @igniter_number(ptr noundef nonnull %text, i64 noundef %address) #7
  %call = call fastcc ptr @finish(ptr noundef %text, ptr noundef %api, ptr noundef nonnull @.str.28) #9
  call void @llvm.lifetime.end.p0(ptr nonnull %text) #8
  ret ptr %call
}

; Function Attrs: cold noinline nounwind optsize
define internal fastcc ptr @driver_failed(ptr noundef readonly captures(none) %api, ptr noundef %desc, ptr noundef nonnull readonly captures(none) %trouble) unnamed_addr #5 {
entry:
  %name = alloca ptr, align 8
  %reason = alloca ptr, align 8
  %text = alloca %struct.text, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %name) #8
  store ptr null, ptr %name, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %reason) #8
  store ptr null, ptr %reason, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %text) #8
  %0 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @driver, i64 8), align 8
  %code = getelementptr inbounds nuw i8, ptr %trouble, i64 16
  %1 = load i32, ptr %code, align 8
  %call = call i32 %0(i32 noundef %1, ptr noundef nonnull %name) #7
  %2 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @driver, i64 16), align 8
  %3 = load i32, ptr %code, align 8
  %call2 = call i32 %2(i32 noundef %3, ptr noundef nonnull %reason) #7
  %4 = load ptr, ptr %trouble, align 8
  call fastcc void @begin(ptr noundef %text, ptr noundef %desc, ptr noundef %4) #9
  call void @igniter_text(ptr noundef nonnull %text, ptr noundef nonnull @.str) #7
  %function = getelementptr inbounds nuw i8, ptr %trouble, i64 8
  %5 = load ptr, ptr %function, align 8
  call void @igniter_text(ptr noundef nonnull %text, ptr noundef %5) #7
  call void @igniter_text(ptr noundef nonnull %text, ptr noundef nonnull @.str.29) #7
  %6 = load ptr, ptr %name, align 8
  %tobool.not = icmp eq ptr %6, null
  %cond = select i1 %tobool.not, ptr @.str.5, ptr %6
  call void @igniter_text(ptr noundef nonnull %text, ptr noundef nonnull %cond) #7
  call void @igniter_text(ptr noundef nonnull %text, ptr noundef nonnull @.str) #7
  %7 = load ptr, ptr %reason, align 8
  %tobool7.not = icmp eq ptr %7, null
  %cond11 = select i1 %tobool7.not, ptr @.str.5, ptr %7
  %call12 = call fastcc ptr @finish(ptr noundef %text, ptr noundef %api, ptr noundef nonnull %cond11) #9
  call void @llvm.lifetime.end.p0(ptr nonnull %text) #8
  call void @llvm.lifetime.end.p0(ptr nonnull %reason) #8
  call void @llvm.lifetime.end.p0(ptr nonnull %name) #8
  ret ptr %call12
}

; Function Attrs: nocallback nofree nounwind willreturn memory(argmem: readwrite)
declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly captures(none), ptr noalias readonly captures(none), i64, i1 immarg) #6

declare ptr @dlopen(ptr noundef, i32 noundef) local_unnamed_addr #4

declare ptr @dlerror() local_unnamed_addr #4

; Function Attrs: cold noinline nounwind optsize
define internal fastcc ptr @simple(ptr noundef readonly captures(none) %api, ptr noundef %desc, ptr noundef %first, ptr noundef %last) unnamed_addr #5 {
entry:
  %text = alloca %struct.text, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %text) #8
  call fastcc void @begin(ptr noundef %text, ptr noundef %desc, ptr noundef %first) #9
  %call = call fastcc ptr @finish(ptr noundef %text, ptr noundef %api, ptr noundef %last) #9
  call void @llvm.lifetime.end.p0(ptr nonnull %text) #8
  ret ptr %call
}

declare ptr @dlsym(ptr noundef, ptr noundef) local_unnamed_addr #4

; Function Attrs: cold noinline nounwind optsize
define internal fastcc void @begin(ptr noundef nonnull %text, ptr noundef %desc, ptr noundef %first) unnamed_addr #5 {
entry:
  %buffer = getelementptr inbounds nuw i8, ptr %text, i64 24
  tail call void @igniter_begin(ptr noundef nonnull %text, ptr noundef nonnull %buffer, i64 noundef 1024, ptr noundef %desc) #7
  tail call void @igniter_text(ptr noundef nonnull %text, ptr noundef %first) #7
  ret void
}

; Function Attrs: cold noinline nounwind optsize
define internal fastcc ptr @finish(ptr noundef nonnull %text, ptr noundef readonly captures(none) %api, ptr noundef %last) unnamed_addr #5 {
entry:
  tail call void @igniter_text(ptr noundef nonnull %text, ptr noundef %last) #7
  %0 = load ptr, ptr %api, align 8
  %buffer = getelementptr inbounds nuw i8, ptr %text, i64 24
  %call = tail call ptr %0(i32 noundef 6, ptr noundef nonnull %buffer) #7
  ret ptr %call
}

declare void @igniter_begin(ptr noundef, ptr noundef, i64 noundef, ptr noundef) local_unnamed_addr #4

declare void @igniter_text(ptr noundef, ptr noundef) local_unnamed_addr #4

declare ptr @igniter_fail(ptr noundef, ptr noundef, i32 noundef, ptr noundef, i64 noundef, i64 noundef, i64 noundef, i64 noundef) local_unnamed_addr #4

declare void @igniter_number(ptr noundef, i64 noundef) local_unnamed_addr #4

attributes #0 = { mustprogress nofree norecurse nosync nounwind willreturn memory(none) "no-builtins" }
attributes #1 = { mustprogress nofree norecurse nosync nounwind willreturn memory(read, inaccessiblemem: none, target_mem0: none, target_mem1: none) "no-builtins" }
attributes #2 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #3 = { nounwind "no-builtins" }
attributes #4 = { "no-builtins" }
attributes #5 = { cold noinline nounwind optsize "no-builtins" }
attributes #6 = { nocallback nofree nounwind willreturn memory(argmem: readwrite) }
attributes #7 = { nobuiltin nounwind "no-builtins" }
attributes #8 = { nounwind }
attributes #9 = { cold nobuiltin "no-builtins" }
attributes #10 = { nobuiltin "no-builtins" }

!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.mustprogress"}
!2 = !{!"llvm.loop.unroll.disable"}
!3 = distinct !{!3, !1, !2}
!4 = distinct !{!4, !1, !2}
!5 = distinct !{!5, !1, !2}
!6 = distinct !{!6, !1, !2}
!7 = distinct !{!7, !1, !2}
!8 = distinct !{!8, !1, !2}
!9 = distinct !{!9, !1, !2}
!10 = distinct !{!10, !1, !2}
