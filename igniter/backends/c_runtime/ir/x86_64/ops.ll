target triple = "x86_64-unknown-linux-gnu"

%struct.igniter_cpus = type { i64, i64, [16 x i64] }
%struct.igniter_port = type { ptr, ptr, ptr, ptr, i32, i32, i32, i32, i64, i64, i64 }
%struct.igniter_call = type { ptr, ptr, ptr, i64 }
%struct.igniter_failure = type { i64, i64, i64, i64, i64, ptr, [8 x i64] }
%struct.values = type { i64, i64, i64, i64, i64, ptr, ptr, ptr, ptr }
%struct.shared = type { ptr, ptr, i64, i64, i64, i32 }

@cpus = internal global %struct.igniter_cpus zeroinitializer, align 8

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(read, inaccessiblemem: none, target_mem0: none, target_mem1: none)
define hidden ptr @igniter_name(ptr noundef readonly captures(none) %op) local_unnamed_addr #0 {
entry:
  %desc = getelementptr inbounds nuw i8, ptr %op, i64 208
  %0 = load ptr, ptr %desc, align 8
  %1 = load ptr, ptr %0, align 8
  ret ptr %1
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(none)
define hidden noalias noundef ptr @igniter_provider(ptr noundef readnone captures(none) %op) local_unnamed_addr #1 {
entry:
  ret ptr null
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(read, inaccessiblemem: none, target_mem0: none, target_mem1: none)
define hidden i64 @igniter_input_count(ptr noundef readonly captures(none) %op) local_unnamed_addr #0 {
entry:
  %desc = getelementptr inbounds nuw i8, ptr %op, i64 208
  %0 = load ptr, ptr %desc, align 8
  %input_count = getelementptr inbounds nuw i8, ptr %0, i64 40
  %1 = load i64, ptr %input_count, align 8
  ret i64 %1
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(read, inaccessiblemem: none, target_mem0: none, target_mem1: none)
define hidden i64 @igniter_output_count(ptr noundef readonly captures(none) %op) local_unnamed_addr #0 {
entry:
  %desc = getelementptr inbounds nuw i8, ptr %op, i64 208
  %0 = load ptr, ptr %desc, align 8
  %output_count = getelementptr inbounds nuw i8, ptr %0, i64 48
  %1 = load i64, ptr %output_count, align 8
  ret i64 %1
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(read, inaccessiblemem: none, target_mem0: none, target_mem1: none)
define hidden i32 @igniter_input_type(ptr noundef readonly captures(none) %op, i64 noundef %k) local_unnamed_addr #0 {
entry:
  %desc = getelementptr inbounds nuw i8, ptr %op, i64 208
  %0 = load ptr, ptr %desc, align 8
  %inputs = getelementptr inbounds nuw i8, ptr %0, i64 8
  %1 = load ptr, ptr %inputs, align 8
  %arrayidx = getelementptr inbounds nuw %struct.igniter_port, ptr %1, i64 %k
  %type = getelementptr inbounds nuw i8, ptr %arrayidx, i64 32
  %2 = load i32, ptr %type, align 8
  ret i32 %2
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(read, inaccessiblemem: none, target_mem0: none, target_mem1: none)
define hidden i32 @igniter_output_type(ptr noundef readonly captures(none) %op, i64 noundef %k) local_unnamed_addr #0 {
entry:
  %desc = getelementptr inbounds nuw i8, ptr %op, i64 208
  %0 = load ptr, ptr %desc, align 8
  %outputs = getelementptr inbounds nuw i8, ptr %0, i64 16
  %1 = load ptr, ptr %outputs, align 8
  %arrayidx = getelementptr inbounds nuw %struct.igniter_port, ptr %1, i64 %k
  %type = getelementptr inbounds nuw i8, ptr %arrayidx, i64 32
  %2 = load i32, ptr %type, align 8
  ret i32 %2
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(read, inaccessiblemem: none, target_mem0: none, target_mem1: none)
define hidden i32 @igniter_input_mode(ptr noundef readonly captures(none) %op, i64 noundef %k) local_unnamed_addr #0 {
entry:
  %desc = getelementptr inbounds nuw i8, ptr %op, i64 208
  %0 = load ptr, ptr %desc, align 8
  %inputs = getelementptr inbounds nuw i8, ptr %0, i64 8
  %1 = load ptr, ptr %inputs, align 8
  %arrayidx = getelementptr inbounds nuw %struct.igniter_port, ptr %1, i64 %k
  %mode = getelementptr inbounds nuw i8, ptr %arrayidx, i64 36
  %2 = load i32, ptr %mode, align 4
  ret i32 %2
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(read, inaccessiblemem: none, target_mem0: none, target_mem1: none)
define hidden i32 @igniter_output_mode(ptr noundef readonly captures(none) %op, i64 noundef %k) local_unnamed_addr #0 {
entry:
  %desc = getelementptr inbounds nuw i8, ptr %op, i64 208
  %0 = load ptr, ptr %desc, align 8
  %outputs = getelementptr inbounds nuw i8, ptr %0, i64 16
  %1 = load ptr, ptr %outputs, align 8
  %arrayidx = getelementptr inbounds nuw %struct.igniter_port, ptr %1, i64 %k
  %mode = getelementptr inbounds nuw i8, ptr %arrayidx, i64 36
  %2 = load i32, ptr %mode, align 4
  ret i32 %2
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(none)
define hidden noundef i32 @igniter_input_memory(ptr noundef readnone captures(none) %op, i64 noundef %k) local_unnamed_addr #1 {
entry:
  ret i32 0
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(read, inaccessiblemem: none, target_mem0: none, target_mem1: none)
define hidden i32 @igniter_input_least(ptr noundef readonly captures(none) %op) local_unnamed_addr #0 {
entry:
  %desc = getelementptr inbounds nuw i8, ptr %op, i64 208
  %0 = load ptr, ptr %desc, align 8
  %inputs = getelementptr inbounds nuw i8, ptr %0, i64 8
  %1 = load ptr, ptr %inputs, align 8
  %input_count = getelementptr inbounds nuw i8, ptr %0, i64 40
  %2 = load i64, ptr %input_count, align 8
  %3 = getelementptr %struct.igniter_port, ptr %1, i64 %2
  %least = getelementptr i8, ptr %3, i64 -32
  %4 = load i32, ptr %least, align 8
  ret i32 %4
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(read, inaccessiblemem: none, target_mem0: none, target_mem1: none)
define hidden i32 @igniter_output_least(ptr noundef readonly captures(none) %op) local_unnamed_addr #0 {
entry:
  %desc = getelementptr inbounds nuw i8, ptr %op, i64 208
  %0 = load ptr, ptr %desc, align 8
  %outputs = getelementptr inbounds nuw i8, ptr %0, i64 16
  %1 = load ptr, ptr %outputs, align 8
  %output_count = getelementptr inbounds nuw i8, ptr %0, i64 48
  %2 = load i64, ptr %output_count, align 8
  %3 = getelementptr %struct.igniter_port, ptr %1, i64 %2
  %least = getelementptr i8, ptr %3, i64 -32
  %4 = load i32, ptr %least, align 8
  ret i32 %4
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(none)
define hidden noundef i32 @igniter_homogeneous(ptr noundef readnone captures(none) %op) local_unnamed_addr #1 {
entry:
  ret i32 1
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(none)
define hidden noundef i32 @igniter_first_version(ptr noundef readnone captures(none) %op) local_unnamed_addr #1 {
entry:
  ret i32 1
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(none)
define hidden noundef i32 @igniter_last_version(ptr noundef readnone captures(none) %op) local_unnamed_addr #1 {
entry:
  ret i32 2147483647
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(none)
define hidden void @igniter_release_inplace(ptr noundef readnone captures(none) %inputs, ptr noundef readnone captures(none) %outputs) local_unnamed_addr #1 {
entry:
  ret void
}

; Function Attrs: nounwind
define hidden ptr @igniter_check(ptr noundef %api, ptr noundef %desc, ptr noundef %port, i64 noundef %index, ptr noundef %value, ptr noundef %dims, ptr noundef captures(none) %symbols) local_unnamed_addr #2 {
entry:
  %type.i = alloca i32, align 4
  %rank.i = alloca i64, align 8
  %shape = alloca ptr, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %shape) #6
  %GetTensorTypeAndShape = getelementptr inbounds nuw i8, ptr %api, i64 520
  %0 = load ptr, ptr %GetTensorTypeAndShape, align 8
  %call = call ptr %0(ptr noundef %value, ptr noundef nonnull %shape) #8
  %tobool.not = icmp eq ptr %call, null
  br i1 %tobool.not, label %do.end, label %cleanup3

do.end:                                           ; preds = %entry
  %1 = load ptr, ptr %shape, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %type.i) #6
  call void @llvm.lifetime.start.p0(ptr nonnull %rank.i) #6
  %GetTensorElementType.i = getelementptr inbounds nuw i8, ptr %api, i64 480
  %2 = load ptr, ptr %GetTensorElementType.i, align 8
  %call.i = call ptr %2(ptr noundef %1, ptr noundef nonnull %type.i) #8
  %tobool.not.i = icmp eq ptr %call.i, null
  br i1 %tobool.not.i, label %do.end.i, label %check_shape.exit

do.end.i:                                         ; preds = %do.end
  %3 = load i32, ptr %type.i, align 4
  %type1.i = getelementptr inbounds nuw i8, ptr %port, i64 32
  %4 = load i32, ptr %type1.i, align 8
  %cmp.not.i = icmp eq i32 %3, %4
  br i1 %cmp.not.i, label %do.body7.i, label %if.then2.i

if.then2.i:                                       ; preds = %do.end.i
  %conv.i = sext i32 %4 to i64
  %conv4.i = sext i32 %3 to i64
  %call5.i = call ptr @igniter_fail(ptr noundef %api, ptr noundef %desc, i32 noundef 3, ptr noundef %port, i64 noundef %index, i64 noundef 0, i64 noundef %conv.i, i64 noundef %conv4.i) #8
  br label %check_shape.exit

do.body7.i:                                       ; preds = %do.end.i
  %GetDimensionsCount.i = getelementptr inbounds nuw i8, ptr %api, i64 488
  %5 = load ptr, ptr %GetDimensionsCount.i, align 8
  %call9.i = call ptr %5(ptr noundef %1, ptr noundef nonnull %rank.i) #8
  %tobool10.not.i = icmp eq ptr %call9.i, null
  br i1 %tobool10.not.i, label %do.end17.i, label %check_shape.exit

do.end17.i:                                       ; preds = %do.body7.i
  %6 = load i64, ptr %rank.i, align 8
  %rank18.i = getelementptr inbounds nuw i8, ptr %port, i64 48
  %7 = load i64, ptr %rank18.i, align 8
  %cmp19.not.i = icmp eq i64 %6, %7
  br i1 %cmp19.not.i, label %do.body25.i, label %if.then21.i

if.then21.i:                                      ; preds = %do.end17.i
  %call23.i = call ptr @igniter_fail(ptr noundef %api, ptr noundef %desc, i32 noundef 4, ptr noundef %port, i64 noundef %index, i64 noundef 0, i64 noundef %7, i64 noundef %6) #8
  br label %check_shape.exit

do.body25.i:                                      ; preds = %do.end17.i
  %GetDimensions.i = getelementptr inbounds nuw i8, ptr %api, i64 496
  %8 = load ptr, ptr %GetDimensions.i, align 8
  %call27.i = call ptr %8(ptr noundef %1, ptr noundef %dims, i64 noundef %6) #8
  %tobool28.not.i = icmp eq ptr %call27.i, null
  br i1 %tobool28.not.i, label %do.end35.i, label %check_shape.exit

do.end35.i:                                       ; preds = %do.body25.i
  %call36.i = call fastcc ptr @match(ptr noundef %api, ptr noundef %desc, ptr noundef %port, i64 noundef %index, ptr noundef %dims, ptr noundef %symbols) #9
  br label %check_shape.exit

check_shape.exit:                                 ; preds = %do.end35.i, %do.body25.i, %if.then21.i, %do.body7.i, %if.then2.i, %do.end
  %retval.3.i = phi ptr [ %call5.i, %if.then2.i ], [ %call23.i, %if.then21.i ], [ %call36.i, %do.end35.i ], [ %call27.i, %do.body25.i ], [ %call9.i, %do.body7.i ], [ %call.i, %do.end ]
  call void @llvm.lifetime.end.p0(ptr nonnull %rank.i) #6
  call void @llvm.lifetime.end.p0(ptr nonnull %type.i) #6
  %ReleaseTensorTypeAndShapeInfo = getelementptr inbounds nuw i8, ptr %api, i64 792
  %9 = load ptr, ptr %ReleaseTensorTypeAndShapeInfo, align 8
  %10 = load ptr, ptr %shape, align 8
  call void %9(ptr noundef %10) #8
  br label %cleanup3

cleanup3:                                         ; preds = %check_shape.exit, %entry
  %retval.1 = phi ptr [ %retval.3.i, %check_shape.exit ], [ %call, %entry ]
  call void @llvm.lifetime.end.p0(ptr nonnull %shape) #6
  ret ptr %retval.1
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #3

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #3

; Function Attrs: nounwind
define hidden ptr @igniter_create(ptr noundef %op, ptr noundef %api, ptr noundef %info, ptr noundef writeonly captures(none) %made) local_unnamed_addr #2 {
entry:
  %given.i = alloca i64, align 8
  %allocator = alloca ptr, align 8
  %memory = alloca ptr, align 8
  %desc1 = getelementptr inbounds nuw i8, ptr %op, i64 208
  %0 = load ptr, ptr %desc1, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %allocator) #6
  call void @llvm.lifetime.start.p0(ptr nonnull %memory) #6
  %GetAllocatorWithDefaultOptions = getelementptr inbounds nuw i8, ptr %api, i64 624
  %1 = load ptr, ptr %GetAllocatorWithDefaultOptions, align 8
  %call = call ptr %1(ptr noundef nonnull %allocator) #8
  %tobool.not = icmp eq ptr %call, null
  br i1 %tobool.not, label %do.body2, label %cleanup29

do.body2:                                         ; preds = %entry
  %AllocatorAlloc = getelementptr inbounds nuw i8, ptr %api, i64 600
  %2 = load ptr, ptr %AllocatorAlloc, align 8
  %3 = load ptr, ptr %allocator, align 8
  %input_count = getelementptr inbounds nuw i8, ptr %0, i64 40
  %4 = load i64, ptr %input_count, align 8
  %add = add i64 %4, 40
  %call4 = call ptr %2(ptr noundef %3, i64 noundef %add, ptr noundef nonnull %memory) #8
  %tobool5.not = icmp eq ptr %call4, null
  br i1 %tobool5.not, label %do.end12, label %cleanup29

do.end12:                                         ; preds = %do.body2
  %5 = load ptr, ptr %memory, align 8
  store ptr %op, ptr %5, align 8
  %api14 = getelementptr inbounds nuw i8, ptr %5, i64 8
  store ptr %api, ptr %api14, align 8
  %device = getelementptr inbounds nuw i8, ptr %5, i64 16
  store ptr null, ptr %device, align 8
  %block = getelementptr inbounds nuw i8, ptr %5, i64 24
  store ptr null, ptr %block, align 8
  %made15 = getelementptr inbounds nuw i8, ptr %5, i64 32
  store ptr null, ptr %made15, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %given.i) #6
  store i64 0, ptr %given.i, align 8
  %KernelInfo_GetInputCount.i = getelementptr inbounds nuw i8, ptr %api, i64 1840
  %6 = load ptr, ptr %KernelInfo_GetInputCount.i, align 8
  %call.i = call ptr %6(ptr noundef %info, ptr noundef nonnull %given.i) #8
  %tobool.not.i = icmp eq ptr %call.i, null
  br i1 %tobool.not.i, label %for.cond.preheader.i, label %check_constants.exit

for.cond.preheader.i:                             ; preds = %do.end12
  %7 = load i64, ptr %input_count, align 8
  %cmp.not39.i = icmp sgt i64 %7, 0
  br i1 %cmp.not39.i, label %for.body.lr.ph.i, label %check_constants.exit

for.body.lr.ph.i:                                 ; preds = %for.cond.preheader.i
  %checked.i = getelementptr inbounds nuw i8, ptr %5, i64 40
  %inputs.i = getelementptr inbounds nuw i8, ptr %0, i64 8
  br label %for.body.i

for.body.i:                                       ; preds = %for.inc.i, %for.body.lr.ph.i
  %retval.141.i = phi ptr [ null, %for.body.lr.ph.i ], [ %retval.3.i, %for.inc.i ]
  %k.040.i = phi i64 [ 0, %for.body.lr.ph.i ], [ %inc.i, %for.inc.i ]
  %arrayidx.i = getelementptr inbounds nuw i8, ptr %checked.i, i64 %k.040.i
  store i8 0, ptr %arrayidx.i, align 1
  %8 = load ptr, ptr %inputs.i, align 8
  %arrayidx1.i = getelementptr inbounds nuw %struct.igniter_port, ptr %8, i64 %k.040.i
  %is_fixed.i = getelementptr inbounds nuw i8, ptr %arrayidx1.i, i64 44
  %9 = load i32, ptr %is_fixed.i, align 4
  %tobool2.not.i = icmp ne i32 %9, 0
  %10 = load i64, ptr %given.i, align 8
  %cmp3.i = icmp ult i64 %k.040.i, %10
  %or.cond.i = select i1 %tobool2.not.i, i1 %cmp3.i, i1 false
  br i1 %or.cond.i, label %do.body5.i, label %for.inc.i

do.body5.i:                                       ; preds = %for.body.i
  %call9.i = call fastcc ptr @check_constant(ptr noundef %api, ptr noundef %0, ptr noundef %info, i64 noundef %k.040.i, ptr noundef nonnull %arrayidx.i) #9
  %tobool10.not.i = icmp eq ptr %call9.i, null
  %retval.1.call9.i = select i1 %tobool10.not.i, ptr %retval.141.i, ptr %call9.i
  br i1 %tobool10.not.i, label %for.inc.i, label %check_constants.exit

for.inc.i:                                        ; preds = %do.body5.i, %for.body.i
  %retval.3.i = phi ptr [ %retval.1.call9.i, %do.body5.i ], [ %retval.141.i, %for.body.i ]
  %inc.i = add nuw nsw i64 %k.040.i, 1
  %11 = load i64, ptr %input_count, align 8
  %cmp.not.i = icmp slt i64 %inc.i, %11
  br i1 %cmp.not.i, label %for.body.i, label %check_constants.exit, !llvm.loop !0

check_constants.exit:                             ; preds = %for.inc.i, %do.body5.i, %for.cond.preheader.i, %do.end12
  %retval.5.i = phi ptr [ %call.i, %do.end12 ], [ null, %for.cond.preheader.i ], [ %retval.1.call9.i, %do.body5.i ], [ null, %for.inc.i ]
  call void @llvm.lifetime.end.p0(ptr nonnull %given.i) #6
  %tobool17.not = icmp eq ptr %retval.5.i, null
  br i1 %tobool17.not, label %land.lhs.true, label %if.end21

land.lhs.true:                                    ; preds = %check_constants.exit
  %made_count = getelementptr inbounds nuw i8, ptr %0, i64 144
  %12 = load i64, ptr %made_count, align 8
  %tobool18.not = icmp eq i64 %12, 0
  br i1 %tobool18.not, label %if.end21, label %if.then19

if.then19:                                        ; preds = %land.lhs.true
  %13 = load ptr, ptr %allocator, align 8
  %call20 = call ptr @igniter_make(ptr noundef %api, ptr noundef %0, ptr noundef %info, ptr noundef %13, ptr noundef nonnull %5) #8
  br label %if.end21

if.end21:                                         ; preds = %if.then19, %land.lhs.true, %check_constants.exit
  %status.0 = phi ptr [ %retval.5.i, %check_constants.exit ], [ %call20, %if.then19 ], [ null, %land.lhs.true ]
  %tobool22.not = icmp eq ptr %status.0, null
  br i1 %tobool22.not, label %if.else, label %if.then23

if.then23:                                        ; preds = %if.end21
  %AllocatorFree = getelementptr inbounds nuw i8, ptr %api, i64 608
  %14 = load ptr, ptr %AllocatorFree, align 8
  %15 = load ptr, ptr %allocator, align 8
  %call24 = call ptr %14(ptr noundef %15, ptr noundef nonnull %5) #8
  %tobool.not.i57 = icmp eq ptr %call24, null
  br i1 %tobool.not.i57, label %cleanup29, label %if.then.i

if.then.i:                                        ; preds = %if.then23
  %ReleaseStatus.i = getelementptr inbounds nuw i8, ptr %api, i64 744
  %16 = load ptr, ptr %ReleaseStatus.i, align 8
  call void %16(ptr noundef nonnull %call24) #8
  br label %cleanup29

if.else:                                          ; preds = %if.end21
  store ptr %5, ptr %made, align 8
  br label %cleanup29

cleanup29:                                        ; preds = %if.else, %if.then.i, %if.then23, %do.body2, %entry
  %retval.2 = phi ptr [ %call, %entry ], [ %call4, %do.body2 ], [ null, %if.else ], [ %status.0, %if.then23 ], [ %status.0, %if.then.i ]
  call void @llvm.lifetime.end.p0(ptr nonnull %memory) #6
  call void @llvm.lifetime.end.p0(ptr nonnull %allocator) #6
  ret ptr %retval.2
}

declare ptr @igniter_make(ptr noundef, ptr noundef, ptr noundef, ptr noundef, ptr noundef) local_unnamed_addr #4

; Function Attrs: nounwind
define hidden void @igniter_destroy(ptr noundef %state) local_unnamed_addr #2 {
entry:
  %allocator = alloca ptr, align 8
  %api1 = getelementptr inbounds nuw i8, ptr %state, i64 8
  %0 = load ptr, ptr %api1, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %allocator) #6
  %GetAllocatorWithDefaultOptions = getelementptr inbounds nuw i8, ptr %0, i64 624
  %1 = load ptr, ptr %GetAllocatorWithDefaultOptions, align 8
  %call = call ptr %1(ptr noundef nonnull %allocator) #8
  %tobool.not.i.not = icmp eq ptr %call, null
  br i1 %tobool.not.i.not, label %if.end, label %cleanup.sink.split

if.end:                                           ; preds = %entry
  %block = getelementptr inbounds nuw i8, ptr %state, i64 24
  %2 = load ptr, ptr %block, align 8
  %tobool3.not = icmp eq ptr %2, null
  br i1 %tobool3.not, label %if.end5, label %if.then4

if.then4:                                         ; preds = %if.end
  %3 = load ptr, ptr %allocator, align 8
  call void @igniter_unmake(ptr noundef %0, ptr noundef %3, ptr noundef %state) #8
  br label %if.end5

if.end5:                                          ; preds = %if.then4, %if.end
  %AllocatorFree = getelementptr inbounds nuw i8, ptr %0, i64 608
  %4 = load ptr, ptr %AllocatorFree, align 8
  %5 = load ptr, ptr %allocator, align 8
  %call6 = call ptr %4(ptr noundef %5, ptr noundef %state) #8
  %tobool.not.i16 = icmp eq ptr %call6, null
  br i1 %tobool.not.i16, label %cleanup, label %cleanup.sink.split

cleanup.sink.split:                               ; preds = %if.end5, %entry
  %call.sink = phi ptr [ %call, %entry ], [ %call6, %if.end5 ]
  %ReleaseStatus.i = getelementptr inbounds nuw i8, ptr %0, i64 744
  %6 = load ptr, ptr %ReleaseStatus.i, align 8
  call void %6(ptr noundef nonnull %call.sink) #8
  br label %cleanup

cleanup:                                          ; preds = %cleanup.sink.split, %if.end5
  call void @llvm.lifetime.end.p0(ptr nonnull %allocator) #6
  ret void
}

declare void @igniter_unmake(ptr noundef, ptr noundef, ptr noundef) local_unnamed_addr #4

; Function Attrs: nounwind
define hidden ptr @igniter_run(ptr noundef readnone captures(none) %state, ptr noundef %desc, ptr noundef %api, ptr noundef %context, ptr noundef %buffers, ptr noundef %symbols, i64 noundef %size) local_unnamed_addr #2 {
entry:
  %tmp.i4.i.i.i = alloca i32, align 4
  %tmp.i.i12.i.i = alloca i32, align 4
  %tmp.i3.i.i.i = alloca i32, align 4
  %tmp.i.i.i.i = alloca i32, align 4
  %memory.i = alloca ptr, align 8
  %tmp.i4.i.i = alloca i32, align 4
  %tmp.i.i12.i = alloca i32, align 4
  %tmp.i3.i.i = alloca i32, align 4
  %tmp.i.i.i = alloca i32, align 4
  %call = alloca %struct.igniter_call, align 8
  %standard = alloca ptr, align 8
  %allocator = alloca ptr, align 8
  %where = alloca ptr, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %call) #6
  store ptr %api, ptr %call, align 8
  %context2 = getelementptr inbounds nuw i8, ptr %call, i64 8
  store ptr %context, ptr %context2, align 8
  %error = getelementptr inbounds nuw i8, ptr %call, i64 16
  store ptr null, ptr %error, align 8
  %flushes = getelementptr inbounds nuw i8, ptr %call, i64 24
  %flushes3 = getelementptr inbounds nuw i8, ptr %desc, i64 128
  %0 = load i64, ptr %flushes3, align 8
  store i64 %0, ptr %flushes, align 8
  %cmp = icmp ult i64 %size, 4097
  br i1 %cmp, label %if.then, label %if.end

if.then:                                          ; preds = %entry
  %1 = alloca i8, i64 %size, align 64
  %tobool.not.i = icmp eq i64 %0, 0
  br i1 %tobool.not.i, label %if.then.i, label %if.end.i

if.then.i:                                        ; preds = %if.then
  %kernel.i = getelementptr inbounds nuw i8, ptr %desc, i64 32
  %2 = load ptr, ptr %kernel.i, align 8
  call void %2(ptr noundef %buffers, ptr noundef %symbols, ptr noundef nonnull %1, ptr noundef nonnull @parallel_for, ptr noundef nonnull %call) #8
  br label %run_with.exit

if.end.i:                                         ; preds = %if.then
  call void @llvm.lifetime.start.p0(ptr nonnull %tmp.i.i.i)
  call void @llvm.x86.sse.stmxcsr(ptr nonnull %tmp.i.i.i)
  %stmxcsr.i.i.i = load i32, ptr %tmp.i.i.i, align 4
  call void @llvm.lifetime.end.p0(ptr nonnull %tmp.i.i.i)
  %3 = and i32 %stmxcsr.i.i.i, 32832
  %cmp.not.i.i = icmp eq i32 %3, 32832
  br i1 %cmp.not.i.i, label %end_flush.exit.critedge.i, label %if.then.i.i

if.then.i.i:                                      ; preds = %if.end.i
  %or.i.i = or i32 %stmxcsr.i.i.i, 32832
  call void @llvm.lifetime.start.p0(ptr nonnull %tmp.i3.i.i)
  store i32 %or.i.i, ptr %tmp.i3.i.i, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr nonnull %tmp.i3.i.i)
  call void @llvm.lifetime.end.p0(ptr nonnull %tmp.i3.i.i)
  %kernel2.i = getelementptr inbounds nuw i8, ptr %desc, i64 32
  %4 = load ptr, ptr %kernel2.i, align 8
  call void %4(ptr noundef %buffers, ptr noundef %symbols, ptr noundef nonnull %1, ptr noundef nonnull @parallel_for, ptr noundef nonnull %call) #8
  call void @llvm.lifetime.start.p0(ptr nonnull %tmp.i.i12.i)
  call void @llvm.x86.sse.stmxcsr(ptr nonnull %tmp.i.i12.i)
  %stmxcsr.i.i16.i = load i32, ptr %tmp.i.i12.i, align 4
  call void @llvm.lifetime.end.p0(ptr nonnull %tmp.i.i12.i)
  %5 = and i32 %stmxcsr.i.i16.i, -32833
  call void @llvm.lifetime.start.p0(ptr nonnull %tmp.i4.i.i)
  %conv.i5.i.i = or disjoint i32 %5, %3
  store i32 %conv.i5.i.i, ptr %tmp.i4.i.i, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr nonnull %tmp.i4.i.i)
  call void @llvm.lifetime.end.p0(ptr nonnull %tmp.i4.i.i)
  br label %run_with.exit

end_flush.exit.critedge.i:                        ; preds = %if.end.i
  %kernel2.c.i = getelementptr inbounds nuw i8, ptr %desc, i64 32
  %6 = load ptr, ptr %kernel2.c.i, align 8
  call void %6(ptr noundef %buffers, ptr noundef %symbols, ptr noundef nonnull %1, ptr noundef nonnull @parallel_for, ptr noundef nonnull %call) #8
  br label %run_with.exit

run_with.exit:                                    ; preds = %end_flush.exit.critedge.i, %if.then.i.i, %if.then.i
  %retval.0.i = load ptr, ptr %error, align 8
  br label %cleanup35

if.end:                                           ; preds = %entry
  call void @llvm.lifetime.start.p0(ptr nonnull %standard) #6
  call void @llvm.lifetime.start.p0(ptr nonnull %allocator) #6
  call void @llvm.lifetime.start.p0(ptr nonnull %where) #6
  %GetAllocatorWithDefaultOptions = getelementptr inbounds nuw i8, ptr %api, i64 624
  %7 = load ptr, ptr %GetAllocatorWithDefaultOptions, align 8
  %call5 = call ptr %7(ptr noundef nonnull %standard) #8
  %tobool.not = icmp eq ptr %call5, null
  br i1 %tobool.not, label %do.body8, label %cleanup32

do.body8:                                         ; preds = %if.end
  %AllocatorGetInfo = getelementptr inbounds nuw i8, ptr %api, i64 616
  %8 = load ptr, ptr %AllocatorGetInfo, align 8
  %9 = load ptr, ptr %standard, align 8
  %call10 = call ptr %8(ptr noundef %9, ptr noundef nonnull %where) #8
  %tobool11.not = icmp eq ptr %call10, null
  br i1 %tobool11.not, label %do.body19, label %cleanup32

do.body19:                                        ; preds = %do.body8
  %KernelContext_GetAllocator = getelementptr inbounds nuw i8, ptr %api, i64 2024
  %10 = load ptr, ptr %KernelContext_GetAllocator, align 8
  %11 = load ptr, ptr %where, align 8
  %call21 = call ptr %10(ptr noundef %context, ptr noundef %11, ptr noundef nonnull %allocator) #8
  %tobool22.not = icmp eq ptr %call21, null
  %call5.call10.call21 = select i1 %tobool22.not, ptr %call10, ptr %call21
  br i1 %tobool22.not, label %do.end29, label %cleanup32

do.end29:                                         ; preds = %do.body19
  %12 = load ptr, ptr %allocator, align 8
  %13 = load ptr, ptr %call, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %memory.i) #6
  store ptr null, ptr %memory.i, align 8
  %AllocatorAlloc.i = getelementptr inbounds nuw i8, ptr %13, i64 600
  %14 = load ptr, ptr %AllocatorAlloc.i, align 8
  %add.i = add i64 %size, 64
  %call2.i = call ptr %14(ptr noundef %12, i64 noundef %add.i, ptr noundef nonnull %memory.i) #8
  %tobool.not.i54 = icmp eq ptr %call2.i, null
  br i1 %tobool.not.i54, label %do.end.i, label %run_on_heap.exit

do.end.i:                                         ; preds = %do.end29
  %15 = load ptr, ptr %memory.i, align 8
  %tobool3.not.i = icmp eq ptr %15, null
  br i1 %tobool3.not.i, label %if.then4.i, label %if.end6.i

if.then4.i:                                       ; preds = %do.end.i
  %call5.i = call ptr @igniter_fail(ptr noundef %13, ptr noundef %desc, i32 noundef 9, ptr noundef null, i64 noundef 0, i64 noundef 0, i64 noundef 0, i64 noundef range(i64 4097, 0) %size) #8
  br label %run_on_heap.exit

if.end6.i:                                        ; preds = %do.end.i
  %16 = ptrtoint ptr %15 to i64
  %sub.i = sub i64 0, %16
  %and.i = and i64 %sub.i, 63
  %add.ptr.i = getelementptr inbounds nuw i8, ptr %15, i64 %and.i
  %17 = load i64, ptr %flushes3, align 8
  %tobool.not.i.i = icmp eq i64 %17, 0
  br i1 %tobool.not.i.i, label %if.then.i.i55, label %if.end.i.i

if.then.i.i55:                                    ; preds = %if.end6.i
  %kernel.i.i = getelementptr inbounds nuw i8, ptr %desc, i64 32
  %18 = load ptr, ptr %kernel.i.i, align 8
  call void %18(ptr noundef %buffers, ptr noundef %symbols, ptr noundef nonnull %add.ptr.i, ptr noundef nonnull @parallel_for, ptr noundef nonnull %call) #8
  br label %run_with.exit.i

if.end.i.i:                                       ; preds = %if.end6.i
  call void @llvm.lifetime.start.p0(ptr nonnull %tmp.i.i.i.i)
  call void @llvm.x86.sse.stmxcsr(ptr nonnull %tmp.i.i.i.i)
  %stmxcsr.i.i.i.i = load i32, ptr %tmp.i.i.i.i, align 4
  call void @llvm.lifetime.end.p0(ptr nonnull %tmp.i.i.i.i)
  %19 = and i32 %stmxcsr.i.i.i.i, 32832
  %cmp.not.i.i.i = icmp eq i32 %19, 32832
  br i1 %cmp.not.i.i.i, label %end_flush.exit.critedge.i.i, label %if.then.i.i.i

if.then.i.i.i:                                    ; preds = %if.end.i.i
  %or.i.i.i = or i32 %stmxcsr.i.i.i.i, 32832
  call void @llvm.lifetime.start.p0(ptr nonnull %tmp.i3.i.i.i)
  store i32 %or.i.i.i, ptr %tmp.i3.i.i.i, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr nonnull %tmp.i3.i.i.i)
  call void @llvm.lifetime.end.p0(ptr nonnull %tmp.i3.i.i.i)
  %kernel2.i.i = getelementptr inbounds nuw i8, ptr %desc, i64 32
  %20 = load ptr, ptr %kernel2.i.i, align 8
  call void %20(ptr noundef %buffers, ptr noundef %symbols, ptr noundef nonnull %add.ptr.i, ptr noundef nonnull @parallel_for, ptr noundef nonnull %call) #8
  call void @llvm.lifetime.start.p0(ptr nonnull %tmp.i.i12.i.i)
  call void @llvm.x86.sse.stmxcsr(ptr nonnull %tmp.i.i12.i.i)
  %stmxcsr.i.i16.i.i = load i32, ptr %tmp.i.i12.i.i, align 4
  call void @llvm.lifetime.end.p0(ptr nonnull %tmp.i.i12.i.i)
  %21 = and i32 %stmxcsr.i.i16.i.i, -32833
  call void @llvm.lifetime.start.p0(ptr nonnull %tmp.i4.i.i.i)
  %conv.i5.i.i.i = or disjoint i32 %21, %19
  store i32 %conv.i5.i.i.i, ptr %tmp.i4.i.i.i, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr nonnull %tmp.i4.i.i.i)
  call void @llvm.lifetime.end.p0(ptr nonnull %tmp.i4.i.i.i)
  br label %run_with.exit.i

end_flush.exit.critedge.i.i:                      ; preds = %if.end.i.i
  %kernel2.c.i.i = getelementptr inbounds nuw i8, ptr %desc, i64 32
  %22 = load ptr, ptr %kernel2.c.i.i, align 8
  call void %22(ptr noundef %buffers, ptr noundef %symbols, ptr noundef nonnull %add.ptr.i, ptr noundef nonnull @parallel_for, ptr noundef nonnull %call) #8
  br label %run_with.exit.i

run_with.exit.i:                                  ; preds = %end_flush.exit.critedge.i.i, %if.then.i.i.i, %if.then.i.i55
  %retval.0.i.i = load ptr, ptr %error, align 8
  %AllocatorFree.i = getelementptr inbounds nuw i8, ptr %13, i64 608
  %23 = load ptr, ptr %AllocatorFree.i, align 8
  %24 = load ptr, ptr %memory.i, align 8
  %call8.i = call ptr %23(ptr noundef %12, ptr noundef %24) #8
  %tobool.not.i22.i = icmp eq ptr %call8.i, null
  br i1 %tobool.not.i22.i, label %run_on_heap.exit, label %if.then.i23.i

if.then.i23.i:                                    ; preds = %run_with.exit.i
  %ReleaseStatus.i.i = getelementptr inbounds nuw i8, ptr %13, i64 744
  %25 = load ptr, ptr %ReleaseStatus.i.i, align 8
  call void %25(ptr noundef nonnull %call8.i) #8
  br label %run_on_heap.exit

run_on_heap.exit:                                 ; preds = %if.then.i23.i, %run_with.exit.i, %if.then4.i, %do.end29
  %retval.1.i = phi ptr [ %call2.i, %do.end29 ], [ %call5.i, %if.then4.i ], [ %retval.0.i.i, %run_with.exit.i ], [ %retval.0.i.i, %if.then.i23.i ]
  call void @llvm.lifetime.end.p0(ptr nonnull %memory.i) #6
  %ReleaseAllocator = getelementptr inbounds nuw i8, ptr %api, i64 1056
  %26 = load ptr, ptr %ReleaseAllocator, align 8
  %27 = load ptr, ptr %allocator, align 8
  call void %26(ptr noundef %27) #8
  br label %cleanup32

cleanup32:                                        ; preds = %run_on_heap.exit, %do.body19, %do.body8, %if.end
  %retval.3 = phi ptr [ %retval.1.i, %run_on_heap.exit ], [ %call5.call10.call21, %do.body19 ], [ %call10, %do.body8 ], [ %call5, %if.end ]
  call void @llvm.lifetime.end.p0(ptr nonnull %where) #6
  call void @llvm.lifetime.end.p0(ptr nonnull %allocator) #6
  call void @llvm.lifetime.end.p0(ptr nonnull %standard) #6
  br label %cleanup35

cleanup35:                                        ; preds = %cleanup32, %run_with.exit
  %retval.4 = phi ptr [ %retval.0.i, %run_with.exit ], [ %retval.3, %cleanup32 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %call) #6
  ret ptr %retval.4
}

; Function Attrs: nounwind
define hidden ptr @igniter_compute(ptr noundef %state, ptr noundef %context) local_unnamed_addr #2 {
entry:
  %value.i203 = alloca ptr, align 8
  %failure.i = alloca %struct.igniter_failure, align 8
  %value.i = alloca ptr, align 8
  %v = alloca %struct.values, align 8
  %size = alloca i64, align 8
  %failure = alloca %struct.igniter_failure, align 8
  %api1 = getelementptr inbounds nuw i8, ptr %state, i64 8
  %0 = load ptr, ptr %api1, align 8
  %1 = load ptr, ptr %state, align 8
  %desc2 = getelementptr inbounds nuw i8, ptr %1, i64 208
  %2 = load ptr, ptr %desc2, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %v) #6
  call void @llvm.lifetime.start.p0(ptr nonnull %size) #6
  %KernelContext_GetInputCount.i = getelementptr inbounds nuw i8, ptr %0, i64 704
  %3 = load ptr, ptr %KernelContext_GetInputCount.i, align 8
  %call.i = call ptr %3(ptr noundef %context, ptr noundef nonnull %v) #8
  %tobool.not.not.i = icmp eq ptr %call.i, null
  br i1 %tobool.not.not.i, label %do.body1.i, label %count_values.exit

do.body1.i:                                       ; preds = %entry
  %KernelContext_GetOutputCount.i = getelementptr inbounds nuw i8, ptr %0, i64 712
  %4 = load ptr, ptr %KernelContext_GetOutputCount.i, align 8
  %asked.i = getelementptr inbounds nuw i8, ptr %v, i64 8
  %call3.i = call ptr %4(ptr noundef %context, ptr noundef nonnull %asked.i) #8
  %tobool4.not.not.i = icmp eq ptr %call3.i, null
  br i1 %tobool4.not.not.i, label %do.end10.i, label %count_values.exit

do.end10.i:                                       ; preds = %do.body1.i
  %5 = load i64, ptr %v, align 8
  %6 = load i64, ptr %asked.i, align 8
  %spread.i = getelementptr inbounds nuw i8, ptr %2, i64 80
  %7 = load i64, ptr %spread.i, align 8
  %cmp.i = icmp sgt i64 %7, -1
  %input_count.i = getelementptr inbounds nuw i8, ptr %2, i64 40
  %8 = load i64, ptr %input_count.i, align 8
  %cmp15.i = icmp sle i64 %5, %8
  %or.cond.i = select i1 %cmp15.i, i1 true, i1 %cmp.i
  br i1 %or.cond.i, label %if.end21.i, label %if.then18.i

if.then18.i:                                      ; preds = %do.end10.i
  %call20.i = call ptr @igniter_fail(ptr noundef %0, ptr noundef %2, i32 noundef 1, ptr noundef null, i64 noundef 0, i64 noundef 0, i64 noundef %8, i64 noundef %5) #8
  br label %count_values.exit

if.end21.i:                                       ; preds = %do.end10.i
  %output_count.i = getelementptr inbounds nuw i8, ptr %2, i64 48
  %9 = load i64, ptr %output_count.i, align 8
  %cmp22.i = icmp sgt i64 %6, %9
  br i1 %cmp22.i, label %land.lhs.true24.i, label %if.end29.i

land.lhs.true24.i:                                ; preds = %if.end21.i
  %is_open.i = getelementptr inbounds nuw i8, ptr %2, i64 88
  %10 = load i64, ptr %is_open.i, align 8
  %tobool25.not.i = icmp eq i64 %10, 0
  br i1 %tobool25.not.i, label %if.then26.i, label %if.end29.i

if.then26.i:                                      ; preds = %land.lhs.true24.i
  %call28.i = call ptr @igniter_fail(ptr noundef %0, ptr noundef %2, i32 noundef 10, ptr noundef null, i64 noundef 0, i64 noundef 0, i64 noundef %9, i64 noundef %6) #8
  br label %count_values.exit

if.end29.i:                                       ; preds = %land.lhs.true24.i, %if.end21.i
  %sub.i = add nsw i64 %8, -1
  %cond.i.i = call i64 @llvm.smax.i64(i64 %5, i64 range(i64 -9223372036854775808, 9223372036854775807) %sub.i)
  %cond.i = select i1 %cmp.i, i64 %cond.i.i, i64 %8
  %inputs.i = getelementptr inbounds nuw i8, ptr %v, i64 16
  store i64 %cond.i, ptr %inputs.i, align 8
  %is_open34.i = getelementptr inbounds nuw i8, ptr %2, i64 88
  %11 = load i64, ptr %is_open34.i, align 8
  %tobool35.not.i = icmp eq i64 %11, 0
  %sub38.i = add nsw i64 %9, -1
  %cond.i92.i = call i64 @llvm.smax.i64(i64 %6, i64 range(i64 -9223372036854775808, 9223372036854775807) %sub38.i)
  %cond43.i = select i1 %tobool35.not.i, i64 %9, i64 %cond.i92.i
  %outputs.i = getelementptr inbounds nuw i8, ptr %v, i64 24
  store i64 %cond43.i, ptr %outputs.i, align 8
  %reass.sub = sub i64 %cond.i, %8
  %sub49.i = add i64 %reass.sub, 1
  %cond52.i = select i1 %cmp.i, i64 %sub49.i, i64 0
  %members.i = getelementptr inbounds nuw i8, ptr %v, i64 32
  store i64 %cond52.i, ptr %members.i, align 8
  br label %count_values.exit

count_values.exit:                                ; preds = %if.end29.i, %if.then26.i, %if.then18.i, %do.body1.i, %entry
  %retval.3.i = phi ptr [ %call.i, %entry ], [ %call3.i, %do.body1.i ], [ null, %if.end29.i ], [ %call28.i, %if.then26.i ], [ %call20.i, %if.then18.i ]
  %tobool.not = icmp eq ptr %retval.3.i, null
  br i1 %tobool.not, label %do.end, label %cleanup121

do.end:                                           ; preds = %count_values.exit
  %inputs = getelementptr inbounds nuw i8, ptr %v, i64 16
  %12 = load i64, ptr %inputs, align 8
  %outputs = getelementptr inbounds nuw i8, ptr %v, i64 24
  %13 = load i64, ptr %outputs, align 8
  %add = add nsw i64 %13, %12
  %check_count = getelementptr inbounds nuw i8, ptr %2, i64 96
  %14 = load i64, ptr %check_count, align 8
  %mul = shl i64 %14, 3
  %15 = alloca i8, i64 %mul, align 16
  %add4 = add nsw i64 %add, %14
  %mul5 = shl i64 %add4, 3
  %16 = alloca i8, i64 %mul5, align 16
  %buffers = getelementptr inbounds nuw i8, ptr %v, i64 40
  store ptr %16, ptr %buffers, align 8
  %input_dims = getelementptr inbounds nuw i8, ptr %2, i64 64
  %17 = load i64, ptr %input_dims, align 8
  %members = getelementptr inbounds nuw i8, ptr %v, i64 32
  %18 = load i64, ptr %members, align 8
  %spread = getelementptr inbounds nuw i8, ptr %2, i64 80
  %19 = load i64, ptr %spread, align 8
  %cond.i183 = call noundef i64 @llvm.smax.i64(i64 %19, i64 0)
  %mul7 = mul nsw i64 %cond.i183, %18
  %add8 = add nsw i64 %mul7, %17
  %mul9 = shl i64 %add8, 3
  %20 = alloca i8, i64 %mul9, align 16
  %dims = getelementptr inbounds nuw i8, ptr %v, i64 48
  store ptr %20, ptr %dims, align 8
  %output_dims = getelementptr inbounds nuw i8, ptr %2, i64 72
  %21 = load i64, ptr %output_dims, align 8
  %mul10 = shl i64 %21, 3
  %22 = alloca i8, i64 %mul10, align 16
  %output_dims11 = getelementptr inbounds nuw i8, ptr %v, i64 56
  store ptr %22, ptr %output_dims11, align 8
  %symbol_count = getelementptr inbounds nuw i8, ptr %2, i64 56
  %23 = load i64, ptr %symbol_count, align 8
  %mul12 = shl i64 %23, 3
  %24 = alloca i8, i64 %mul12, align 16
  %symbols = getelementptr inbounds nuw i8, ptr %v, i64 64
  store ptr %24, ptr %symbols, align 8
  %25 = load i64, ptr %symbol_count, align 8
  %cmp232 = icmp sgt i64 %25, 0
  br i1 %cmp232, label %for.body, label %for.cond.cleanup

for.cond.cleanup:                                 ; preds = %for.body, %do.end
  %26 = load i64, ptr %spread, align 8
  %cmp17 = icmp sgt i64 %26, -1
  br i1 %cmp17, label %if.then18, label %if.end24

for.body:                                         ; preds = %for.body, %do.end
  %k.0233 = phi i64 [ %inc, %for.body ], [ 0, %do.end ]
  %27 = load ptr, ptr %symbols, align 8
  %arrayidx = getelementptr inbounds nuw i64, ptr %27, i64 %k.0233
  store i64 -1, ptr %arrayidx, align 8
  %inc = add nuw nsw i64 %k.0233, 1
  %28 = load i64, ptr %symbol_count, align 8
  %cmp = icmp slt i64 %inc, %28
  br i1 %cmp, label %for.body, label %for.cond.cleanup, !llvm.loop !3

if.then18:                                        ; preds = %for.cond.cleanup
  %29 = load i64, ptr %members, align 8
  %30 = load ptr, ptr %symbols, align 8
  %inputs21 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %31 = load ptr, ptr %inputs21, align 8
  %input_count = getelementptr inbounds nuw i8, ptr %2, i64 40
  %32 = load i64, ptr %input_count, align 8
  %33 = getelementptr %struct.igniter_port, ptr %31, i64 %32
  %symbol = getelementptr i8, ptr %33, i64 -8
  %34 = load i64, ptr %symbol, align 8
  %arrayidx23 = getelementptr inbounds i64, ptr %30, i64 %34
  store i64 %29, ptr %arrayidx23, align 8
  br label %if.end24

if.end24:                                         ; preds = %if.then18, %for.cond.cleanup
  %35 = load i64, ptr %inputs, align 8
  %cmp28.not234 = icmp sgt i64 %35, 0
  br i1 %cmp28.not234, label %do.body31.lr.ph, label %cleanup44

do.body31.lr.ph:                                  ; preds = %if.end24
  %made.i = getelementptr inbounds nuw i8, ptr %state, i64 32
  %checked.i = getelementptr inbounds nuw i8, ptr %state, i64 40
  br label %do.body31

for.cond26:                                       ; preds = %take_input.exit
  %inc43 = add nuw nsw i64 %k25.0235, 1
  %36 = load i64, ptr %inputs, align 8
  %cmp28.not = icmp slt i64 %inc43, %36
  br i1 %cmp28.not, label %do.body31, label %cleanup44, !llvm.loop !4

do.body31:                                        ; preds = %for.cond26, %do.body31.lr.ph
  %retval.1236 = phi ptr [ null, %do.body31.lr.ph ], [ %retval.1.call33, %for.cond26 ]
  %k25.0235 = phi i64 [ 0, %do.body31.lr.ph ], [ %inc43, %for.cond26 ]
  %37 = load ptr, ptr %api1, align 8
  %38 = load ptr, ptr %state, align 8
  %desc2.i = getelementptr inbounds nuw i8, ptr %38, i64 208
  %39 = load ptr, ptr %desc2.i, align 8
  %input_count.i184 = getelementptr inbounds nuw i8, ptr %39, i64 40
  %40 = load i64, ptr %input_count.i184, align 8
  %sub.i185 = add nsw i64 %40, -1
  %cond.i.i186 = call range(i64 -9223372036854775808, 9223372036854775807) i64 @llvm.smin.i64(i64 %k25.0235, i64 range(i64 -9223372036854775808, 9223372036854775807) %sub.i185)
  %inputs.i187 = getelementptr inbounds nuw i8, ptr %39, i64 8
  %41 = load ptr, ptr %inputs.i187, align 8
  %arrayidx.i = getelementptr inbounds %struct.igniter_port, ptr %41, i64 %cond.i.i186
  call void @llvm.lifetime.start.p0(ptr nonnull %value.i) #6
  store ptr null, ptr %value.i, align 8
  %42 = load ptr, ptr %made.i, align 8
  %tobool.not.i = icmp eq ptr %42, null
  br i1 %tobool.not.i, label %if.end.i, label %land.lhs.true.i

land.lhs.true.i:                                  ; preds = %do.body31
  %arrayidx4.i = getelementptr inbounds ptr, ptr %42, i64 %cond.i.i186
  %43 = load ptr, ptr %arrayidx4.i, align 8
  %tobool5.not.i = icmp eq ptr %43, null
  br i1 %tobool5.not.i, label %if.end.i, label %if.then.i

if.then.i:                                        ; preds = %land.lhs.true.i
  %44 = load ptr, ptr %buffers, align 8
  %arrayidx8.i = getelementptr inbounds nuw ptr, ptr %44, i64 %k25.0235
  store ptr %43, ptr %arrayidx8.i, align 8
  br label %take_input.exit

if.end.i:                                         ; preds = %land.lhs.true.i, %do.body31
  %45 = load i64, ptr %v, align 8
  %cmp.i188 = icmp ult i64 %k25.0235, %45
  br i1 %cmp.i188, label %do.body.i, label %if.end14.i

do.body.i:                                        ; preds = %if.end.i
  %KernelContext_GetInput.i = getelementptr inbounds nuw i8, ptr %37, i64 720
  %46 = load ptr, ptr %KernelContext_GetInput.i, align 8
  %call10.i = call ptr %46(ptr noundef %context, i64 noundef %k25.0235, ptr noundef nonnull %value.i) #8
  %tobool11.not.i = icmp eq ptr %call10.i, null
  br i1 %tobool11.not.i, label %if.end14.i, label %take_input.exit

if.end14.i:                                       ; preds = %do.body.i, %if.end.i
  %mode.i = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 36
  %47 = load i32, ptr %mode.i, align 4
  %cmp15.i189 = icmp eq i32 %47, 1
  br i1 %cmp15.i189, label %if.then16.i, label %if.end20.i

if.then16.i:                                      ; preds = %if.end14.i
  %48 = load ptr, ptr %value.i, align 8
  %cmp17.i = icmp ne ptr %48, null
  %conv18.i = zext i1 %cmp17.i to i64
  %49 = load ptr, ptr %symbols, align 8
  %symbol.i = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 64
  %50 = load i64, ptr %symbol.i, align 8
  %arrayidx19.i = getelementptr inbounds i64, ptr %49, i64 %50
  store i64 %conv18.i, ptr %arrayidx19.i, align 8
  br label %if.end20.i

if.end20.i:                                       ; preds = %if.then16.i, %if.end14.i
  %51 = load ptr, ptr %buffers, align 8
  %arrayidx22.i = getelementptr inbounds nuw ptr, ptr %51, i64 %k25.0235
  store ptr null, ptr %arrayidx22.i, align 8
  %52 = load ptr, ptr %value.i, align 8
  %tobool23.not.i = icmp eq ptr %52, null
  br i1 %tobool23.not.i, label %if.then24.i, label %do.body30.i

if.then24.i:                                      ; preds = %if.end20.i
  %53 = load i32, ptr %mode.i, align 4
  %cmp26.i = icmp eq i32 %53, 1
  br i1 %cmp26.i, label %take_input.exit, label %cond.false.i

cond.false.i:                                     ; preds = %if.then24.i
  %call28.i193 = call ptr @igniter_fail(ptr noundef %37, ptr noundef %39, i32 noundef 2, ptr noundef %arrayidx.i, i64 noundef %k25.0235, i64 noundef 0, i64 noundef 0, i64 noundef 0) #8
  br label %take_input.exit

do.body30.i:                                      ; preds = %if.end20.i
  %GetTensorMutableData.i = getelementptr inbounds nuw i8, ptr %37, i64 408
  %54 = load ptr, ptr %GetTensorMutableData.i, align 8
  %55 = load ptr, ptr %buffers, align 8
  %arrayidx33.i = getelementptr inbounds nuw ptr, ptr %55, i64 %k25.0235
  %call34.i = call ptr %54(ptr noundef nonnull %52, ptr noundef %arrayidx33.i) #8
  %tobool35.not.i190 = icmp eq ptr %call34.i, null
  br i1 %tobool35.not.i190, label %do.end42.i, label %take_input.exit

do.end42.i:                                       ; preds = %do.body30.i
  %arrayidx44.i = getelementptr inbounds i8, ptr %checked.i, i64 %cond.i.i186
  %56 = load i8, ptr %arrayidx44.i, align 1
  %tobool46.i = icmp eq i8 %56, 0
  %tobool48.i = icmp sge i64 %k25.0235, %40
  %or.cond.i191 = select i1 %tobool46.i, i1 true, i1 %tobool48.i
  br i1 %or.cond.i191, label %if.end50.i, label %take_input.exit

if.end50.i:                                       ; preds = %do.end42.i
  %sub43.i = sub nsw i64 %k25.0235, %cond.i.i186
  %offset.i = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 56
  %57 = load i64, ptr %offset.i, align 8
  %spread.i192 = getelementptr inbounds nuw i8, ptr %39, i64 80
  %58 = load i64, ptr %spread.i192, align 8
  %cond.i104.i = call noundef i64 @llvm.smax.i64(i64 %58, i64 0)
  %mul.i = mul nsw i64 %cond.i104.i, %sub43.i
  %59 = load ptr, ptr %value.i, align 8
  %60 = load ptr, ptr %dims, align 8
  %61 = getelementptr i64, ptr %60, i64 %57
  %add.ptr.i = getelementptr i64, ptr %61, i64 %mul.i
  %62 = load ptr, ptr %symbols, align 8
  %call53.i = call ptr @igniter_check(ptr noundef %37, ptr noundef %39, ptr noundef %arrayidx.i, i64 noundef %k25.0235, ptr noundef %59, ptr noundef %add.ptr.i, ptr noundef %62) #9
  br label %take_input.exit

take_input.exit:                                  ; preds = %if.end50.i, %do.end42.i, %do.body30.i, %cond.false.i, %if.then24.i, %do.body.i, %if.then.i
  %retval.4.i = phi ptr [ null, %if.then.i ], [ null, %if.then24.i ], [ %call34.i, %do.body30.i ], [ %call10.i, %do.body.i ], [ %call28.i193, %cond.false.i ], [ %call53.i, %if.end50.i ], [ null, %do.end42.i ]
  call void @llvm.lifetime.end.p0(ptr nonnull %value.i) #6
  %tobool34.not.not.not = icmp ne ptr %retval.4.i, null
  %retval.1.call33 = select i1 %tobool34.not.not.not, ptr %retval.4.i, ptr %retval.1236
  br i1 %tobool34.not.not.not, label %cleanup44, label %for.cond26

cleanup44:                                        ; preds = %take_input.exit, %for.cond26, %if.end24
  %cmp28.not.lcssa = phi i1 [ false, %if.end24 ], [ %tobool34.not.not.not, %for.cond26 ], [ %tobool34.not.not.not, %take_input.exit ]
  %retval.3 = phi ptr [ null, %if.end24 ], [ %retval.1.call33, %for.cond26 ], [ %retval.1.call33, %take_input.exit ]
  br i1 %cmp28.not.lcssa, label %cleanup121, label %do.body47

do.body47:                                        ; preds = %cleanup44
  call void @llvm.lifetime.start.p0(ptr nonnull %failure.i) #6
  store i64 0, ptr %size, align 8
  %shapes.i = getelementptr inbounds nuw i8, ptr %2, i64 24
  %63 = load ptr, ptr %shapes.i, align 8
  %64 = load ptr, ptr %dims, align 8
  %65 = load i64, ptr %members, align 8
  %66 = load ptr, ptr %symbols, align 8
  %67 = load ptr, ptr %output_dims11, align 8
  %call.i197 = call i32 %63(ptr noundef %64, i64 noundef %65, ptr noundef %66, ptr noundef %67, ptr noundef nonnull %size, ptr noundef nonnull %failure.i) #8
  switch i32 %call.i197, label %cond.false.i201 [
    i32 0, label %infer_sizes.exit
    i32 13, label %if.then1.i
    i32 7, label %cond.end.i
  ]

if.then1.i:                                       ; preds = %do.body47
  %call2.i = call ptr @igniter_fail(ptr noundef %0, ptr noundef %2, i32 noundef 13, ptr noundef nonnull %failure.i, i64 noundef 0, i64 noundef 0, i64 noundef 0, i64 noundef 0) #8
  br label %infer_sizes.exit

cond.false.i201:                                  ; preds = %do.body47
  br label %cond.end.i

cond.end.i:                                       ; preds = %cond.false.i201, %do.body47
  %.sink = phi i64 [ 8, %cond.false.i201 ], [ 16, %do.body47 ]
  %inputs.i202 = getelementptr inbounds nuw i8, ptr %2, i64 %.sink
  %68 = load ptr, ptr %inputs.i202, align 8
  %69 = load i64, ptr %failure.i, align 8
  %arrayidx7.i = getelementptr inbounds %struct.igniter_port, ptr %68, i64 %69
  %index.i = getelementptr inbounds nuw i8, ptr %failure.i, i64 8
  %70 = load i64, ptr %index.i, align 8
  %axis.i = getelementptr inbounds nuw i8, ptr %failure.i, i64 16
  %71 = load i64, ptr %axis.i, align 8
  %want.i = getelementptr inbounds nuw i8, ptr %failure.i, i64 24
  %72 = load i64, ptr %want.i, align 8
  %got.i = getelementptr inbounds nuw i8, ptr %failure.i, i64 32
  %73 = load i64, ptr %got.i, align 8
  %call8.i = call ptr @igniter_fail(ptr noundef %0, ptr noundef %2, i32 noundef %call.i197, ptr noundef %arrayidx7.i, i64 noundef %70, i64 noundef %71, i64 noundef %72, i64 noundef %73) #8
  br label %infer_sizes.exit

infer_sizes.exit:                                 ; preds = %cond.end.i, %if.then1.i, %do.body47
  %retval.0.i = phi ptr [ %call2.i, %if.then1.i ], [ %call8.i, %cond.end.i ], [ null, %do.body47 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %failure.i) #6
  %tobool50.not = icmp eq ptr %retval.0.i, null
  %retval.3.call49 = select i1 %tobool50.not, ptr %retval.3, ptr %retval.0.i
  br i1 %tobool50.not, label %for.cond59.preheader, label %cleanup121

for.cond59.preheader:                             ; preds = %infer_sizes.exit
  %74 = load i64, ptr %outputs, align 8
  %cmp61.not241 = icmp sgt i64 %74, 0
  br i1 %cmp61.not241, label %do.body64.lr.ph, label %cleanup77

do.body64.lr.ph:                                  ; preds = %for.cond59.preheader
  %output_count.i204 = getelementptr inbounds nuw i8, ptr %2, i64 48
  %outputs.i207 = getelementptr inbounds nuw i8, ptr %2, i64 16
  %asked.i209 = getelementptr inbounds nuw i8, ptr %v, i64 8
  %KernelContext_GetOutput.i = getelementptr inbounds nuw i8, ptr %0, i64 728
  %GetTensorMutableData.i217 = getelementptr inbounds nuw i8, ptr %0, i64 408
  br label %do.body64

for.cond59:                                       ; preds = %make_output.exit
  %inc76 = add nuw nsw i64 %k58.0242, 1
  %75 = load i64, ptr %outputs, align 8
  %cmp61.not = icmp slt i64 %inc76, %75
  br i1 %cmp61.not, label %do.body64, label %cleanup77, !llvm.loop !5

do.body64:                                        ; preds = %for.cond59, %do.body64.lr.ph
  %retval.5245 = phi ptr [ %retval.3.call49, %do.body64.lr.ph ], [ %retval.5.call66, %for.cond59 ]
  %k58.0242 = phi i64 [ 0, %do.body64.lr.ph ], [ %inc76, %for.cond59 ]
  %76 = load i64, ptr %output_count.i204, align 8
  %sub.i205 = add nsw i64 %76, -1
  %cond.i.i206 = call range(i64 -9223372036854775808, 9223372036854775807) i64 @llvm.smin.i64(i64 %k58.0242, i64 range(i64 -9223372036854775808, 9223372036854775807) %sub.i205)
  %77 = load ptr, ptr %outputs.i207, align 8
  %arrayidx.i208 = getelementptr inbounds %struct.igniter_port, ptr %77, i64 %cond.i.i206
  call void @llvm.lifetime.start.p0(ptr nonnull %value.i203) #6
  store ptr null, ptr %value.i203, align 8
  %78 = load i64, ptr %asked.i209, align 8
  %cmp.i210 = icmp ult i64 %k58.0242, %78
  br i1 %cmp.i210, label %do.body.i226, label %if.end3.i

do.body.i226:                                     ; preds = %do.body64
  %79 = load ptr, ptr %KernelContext_GetOutput.i, align 8
  %80 = load ptr, ptr %output_dims11, align 8
  %offset.i228 = getelementptr inbounds nuw i8, ptr %arrayidx.i208, i64 56
  %81 = load i64, ptr %offset.i228, align 8
  %add.ptr.i229 = getelementptr inbounds i64, ptr %80, i64 %81
  %rank.i = getelementptr inbounds nuw i8, ptr %arrayidx.i208, i64 48
  %82 = load i64, ptr %rank.i, align 8
  %call1.i = call ptr %79(ptr noundef %context, i64 noundef %k58.0242, ptr noundef %add.ptr.i229, i64 noundef %82, ptr noundef nonnull %value.i203) #8
  %tobool.not.i230 = icmp eq ptr %call1.i, null
  br i1 %tobool.not.i230, label %if.end3.i, label %make_output.exit

if.end3.i:                                        ; preds = %do.body.i226, %do.body64
  %83 = load ptr, ptr %value.i203, align 8
  %tobool4.not.i = icmp eq ptr %83, null
  br i1 %tobool4.not.i, label %land.lhs.true.i224, label %if.end8.i

land.lhs.true.i224:                               ; preds = %if.end3.i
  %mode.i225 = getelementptr inbounds nuw i8, ptr %arrayidx.i208, i64 36
  %84 = load i32, ptr %mode.i225, align 4
  %cmp5.not.i = icmp eq i32 %84, 1
  br i1 %cmp5.not.i, label %if.end8.i, label %if.then6.i

if.then6.i:                                       ; preds = %land.lhs.true.i224
  %call7.i = call ptr @igniter_fail(ptr noundef %0, ptr noundef %2, i32 noundef 11, ptr noundef %arrayidx.i208, i64 noundef %k58.0242, i64 noundef 0, i64 noundef 0, i64 noundef 0) #8
  br label %make_output.exit

if.end8.i:                                        ; preds = %land.lhs.true.i224, %if.end3.i
  %symbol.i211 = getelementptr inbounds nuw i8, ptr %arrayidx.i208, i64 64
  %85 = load i64, ptr %symbol.i211, align 8
  %cmp9.i = icmp sgt i64 %85, -1
  br i1 %cmp9.i, label %if.then10.i, label %if.end20.i212

if.then10.i:                                      ; preds = %if.end8.i
  %mode11.i = getelementptr inbounds nuw i8, ptr %arrayidx.i208, i64 36
  %86 = load i32, ptr %mode11.i, align 4
  %cmp12.i = icmp eq i32 %86, 2
  br i1 %cmp12.i, label %cond.true.i223, label %cond.false.i218

cond.true.i223:                                   ; preds = %if.then10.i
  %87 = load i64, ptr %output_count.i204, align 8
  %88 = add nuw i64 %k58.0242, 2
  %sub15.i = sub i64 %88, %87
  br label %cond.end.i219

cond.false.i218:                                  ; preds = %if.then10.i
  %cmp16.i = icmp ne ptr %83, null
  %conv17.i = zext i1 %cmp16.i to i64
  br label %cond.end.i219

cond.end.i219:                                    ; preds = %cond.false.i218, %cond.true.i223
  %cond.i220 = phi i64 [ %sub15.i, %cond.true.i223 ], [ %conv17.i, %cond.false.i218 ]
  %89 = load ptr, ptr %symbols, align 8
  %arrayidx19.i222 = getelementptr inbounds nuw i64, ptr %89, i64 %85
  store i64 %cond.i220, ptr %arrayidx19.i222, align 8
  br label %if.end20.i212

if.end20.i212:                                    ; preds = %cond.end.i219, %if.end8.i
  %90 = load ptr, ptr %buffers, align 8
  %91 = load i64, ptr %inputs, align 8
  %92 = getelementptr ptr, ptr %90, i64 %91
  %arrayidx22.i215 = getelementptr ptr, ptr %92, i64 %k58.0242
  store ptr null, ptr %arrayidx22.i215, align 8
  %93 = load ptr, ptr %value.i203, align 8
  %tobool23.not.i216 = icmp eq ptr %93, null
  br i1 %tobool23.not.i216, label %make_output.exit, label %cond.true24.i

cond.true24.i:                                    ; preds = %if.end20.i212
  %94 = load ptr, ptr %GetTensorMutableData.i217, align 8
  %call25.i = call ptr %94(ptr noundef nonnull %93, ptr noundef nonnull %arrayidx22.i215) #8
  br label %make_output.exit

make_output.exit:                                 ; preds = %cond.true24.i, %if.end20.i212, %if.then6.i, %do.body.i226
  %retval.1.i = phi ptr [ %call1.i, %do.body.i226 ], [ %call7.i, %if.then6.i ], [ %call25.i, %cond.true24.i ], [ null, %if.end20.i212 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %value.i203) #6
  %tobool67.not.not.not = icmp ne ptr %retval.1.i, null
  %retval.5.call66 = select i1 %tobool67.not.not.not, ptr %retval.1.i, ptr %retval.5245
  br i1 %tobool67.not.not.not, label %cleanup77, label %for.cond59

cleanup77:                                        ; preds = %make_output.exit, %for.cond59, %for.cond59.preheader
  %cmp61.not.lcssa = phi i1 [ false, %for.cond59.preheader ], [ %tobool67.not.not.not, %for.cond59 ], [ %tobool67.not.not.not, %make_output.exit ]
  %retval.7 = phi ptr [ %retval.3.call49, %for.cond59.preheader ], [ %retval.5.call66, %for.cond59 ], [ %retval.5.call66, %make_output.exit ]
  br i1 %cmp61.not.lcssa, label %cleanup121, label %for.cond81.preheader

for.cond81.preheader:                             ; preds = %cleanup77
  %95 = load i64, ptr %check_count, align 8
  %cmp83251 = icmp sgt i64 %95, 0
  br i1 %cmp83251, label %for.body85, label %for.cond.cleanup84

for.cond.cleanup84:                               ; preds = %for.body85, %for.cond81.preheader
  %run = getelementptr inbounds nuw i8, ptr %2, i64 112
  %96 = load ptr, ptr %run, align 8
  %97 = load ptr, ptr %buffers, align 8
  %98 = load ptr, ptr %symbols, align 8
  %99 = load i64, ptr %size, align 8
  %call98 = call ptr %96(ptr noundef nonnull %state, ptr noundef %2, ptr noundef %0, ptr noundef %context, ptr noundef %97, ptr noundef %98, i64 noundef %99) #8
  %tobool99.not = icmp eq ptr %call98, null
  %retval.7.call98 = select i1 %tobool99.not, ptr %retval.7, ptr %call98
  br i1 %tobool99.not, label %do.end106, label %cleanup121

for.body85:                                       ; preds = %for.body85, %for.cond81.preheader
  %k80.0252 = phi i64 [ %inc91, %for.body85 ], [ 0, %for.cond81.preheader ]
  %arrayidx86 = getelementptr inbounds nuw i64, ptr %15, i64 %k80.0252
  %100 = load ptr, ptr %buffers, align 8
  %101 = getelementptr ptr, ptr %100, i64 %add
  %arrayidx89 = getelementptr ptr, ptr %101, i64 %k80.0252
  store ptr %arrayidx86, ptr %arrayidx89, align 8
  %inc91 = add nuw nsw i64 %k80.0252, 1
  %102 = load i64, ptr %check_count, align 8
  %cmp83 = icmp slt i64 %inc91, %102
  br i1 %cmp83, label %for.body85, label %for.cond.cleanup84, !llvm.loop !6

do.end106:                                        ; preds = %for.cond.cleanup84
  call void @llvm.lifetime.start.p0(ptr nonnull %failure) #6
  %103 = load i64, ptr %check_count, align 8
  %tobool108.not = icmp eq i64 %103, 0
  br i1 %tobool108.not, label %cond.end, label %cond.true

cond.true:                                        ; preds = %do.end106
  %checks = getelementptr inbounds nuw i8, ptr %2, i64 104
  %104 = load ptr, ptr %checks, align 8
  %105 = load ptr, ptr %symbols, align 8
  %call110 = call i32 %104(ptr noundef nonnull %15, ptr noundef %105, ptr noundef nonnull %failure) #8
  br label %cond.end

cond.end:                                         ; preds = %cond.true, %do.end106
  %cond = phi i32 [ %call110, %cond.true ], [ 0, %do.end106 ]
  %tobool111.not = icmp eq i32 %cond, 0
  br i1 %tobool111.not, label %cond.end115, label %cond.true112

cond.true112:                                     ; preds = %cond.end
  %call113 = call ptr @igniter_fail(ptr noundef %0, ptr noundef %2, i32 noundef %cond, ptr noundef nonnull %failure, i64 noundef 0, i64 noundef 0, i64 noundef 0, i64 noundef 0) #8
  br label %cond.end115

cond.end115:                                      ; preds = %cond.true112, %cond.end
  %cond116 = phi ptr [ %call113, %cond.true112 ], [ null, %cond.end ]
  call void @llvm.lifetime.end.p0(ptr nonnull %failure) #6
  br label %cleanup121

cleanup121:                                       ; preds = %cond.end115, %for.cond.cleanup84, %cleanup77, %infer_sizes.exit, %cleanup44, %count_values.exit
  %retval.10 = phi ptr [ %retval.3.i, %count_values.exit ], [ %cond116, %cond.end115 ], [ %retval.7.call98, %for.cond.cleanup84 ], [ %retval.7, %cleanup77 ], [ %retval.3.call49, %infer_sizes.exit ], [ %retval.3, %cleanup44 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %size) #6
  call void @llvm.lifetime.end.p0(ptr nonnull %v) #6
  ret ptr %retval.10
}

declare ptr @igniter_fail(ptr noundef, ptr noundef, i32 noundef, ptr noundef, i64 noundef, i64 noundef, i64 noundef, i64 noundef) local_unnamed_addr #4

; Function Attrs: nounwind
define hidden ptr @igniter_values(ptr noundef readonly captures(none) %state, ptr noundef %context) local_unnamed_addr #2 {
entry:
  %value = alloca ptr, align 8
  %made = alloca ptr, align 8
  %data = alloca ptr, align 8
  %api1 = getelementptr inbounds nuw i8, ptr %state, i64 8
  %0 = load ptr, ptr %api1, align 8
  %1 = load ptr, ptr %state, align 8
  %desc2 = getelementptr inbounds nuw i8, ptr %1, i64 208
  %2 = load ptr, ptr %desc2, align 8
  %inputs = getelementptr inbounds nuw i8, ptr %2, i64 8
  %3 = load ptr, ptr %inputs, align 8
  %outputs = getelementptr inbounds nuw i8, ptr %2, i64 16
  %4 = load ptr, ptr %outputs, align 8
  %rank = getelementptr inbounds nuw i8, ptr %4, i64 48
  %5 = load i64, ptr %rank, align 8
  %mul = shl i64 %5, 3
  %6 = alloca i8, i64 %mul, align 16
  call void @llvm.lifetime.start.p0(ptr nonnull %value) #6
  store ptr null, ptr %value, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %made) #6
  call void @llvm.lifetime.start.p0(ptr nonnull %data) #6
  %KernelContext_GetInput = getelementptr inbounds nuw i8, ptr %0, i64 720
  %7 = load ptr, ptr %KernelContext_GetInput, align 8
  %call = call ptr %7(ptr noundef %context, i64 noundef 0, ptr noundef nonnull %value) #8
  %tobool.not = icmp eq ptr %call, null
  br i1 %tobool.not, label %do.end, label %cleanup44

do.end:                                           ; preds = %entry
  %8 = load ptr, ptr %value, align 8
  %tobool4.not = icmp eq ptr %8, null
  br i1 %tobool4.not, label %if.then5, label %do.body8

if.then5:                                         ; preds = %do.end
  %call6 = call ptr @igniter_fail(ptr noundef %0, ptr noundef %2, i32 noundef 2, ptr noundef %3, i64 noundef 0, i64 noundef 0, i64 noundef 0, i64 noundef 0) #8
  br label %cleanup44

do.body8:                                         ; preds = %do.end
  %call10 = call ptr @igniter_check(ptr noundef %0, ptr noundef %2, ptr noundef %3, i64 noundef 0, ptr noundef nonnull %8, ptr noundef nonnull %6, ptr noundef null) #9
  %tobool11.not = icmp eq ptr %call10, null
  br i1 %tobool11.not, label %do.body19, label %cleanup44

do.body19:                                        ; preds = %do.body8
  %GetTensorMutableData = getelementptr inbounds nuw i8, ptr %0, i64 408
  %9 = load ptr, ptr %GetTensorMutableData, align 8
  %10 = load ptr, ptr %value, align 8
  %call21 = call ptr %9(ptr noundef %10, ptr noundef nonnull %data) #8
  %tobool22.not = icmp eq ptr %call21, null
  %call.call10.call21 = select i1 %tobool22.not, ptr %call10, ptr %call21
  br i1 %tobool22.not, label %do.end29, label %cleanup44

do.end29:                                         ; preds = %do.body19
  store i64 0, ptr %6, align 16
  %11 = load i64, ptr %rank, align 8
  %cmp.not91 = icmp sgt i64 %11, 1
  br i1 %cmp.not91, label %for.body.lr.ph, label %cleanup40

for.body.lr.ph:                                   ; preds = %do.end29
  %12 = load ptr, ptr %data, align 8
  br label %for.body

for.body:                                         ; preds = %for.inc, %for.body.lr.ph
  %k.092 = phi i64 [ 1, %for.body.lr.ph ], [ %inc, %for.inc ]
  %arrayidx32 = getelementptr inbounds nuw i64, ptr %12, i64 %k.092
  %13 = load i64, ptr %arrayidx32, align 8
  %arrayidx33 = getelementptr inbounds nuw i64, ptr %6, i64 %k.092
  store i64 %13, ptr %arrayidx33, align 8
  %cmp35 = icmp slt i64 %13, 0
  br i1 %cmp35, label %if.then36, label %for.inc

if.then36:                                        ; preds = %for.body
  %sub = add nsw i64 %k.092, -1
  %call38 = call ptr @igniter_fail(ptr noundef %0, ptr noundef %2, i32 noundef 14, ptr noundef %4, i64 noundef %sub, i64 noundef 0, i64 noundef 0, i64 noundef %13) #8
  br label %cleanup40

for.inc:                                          ; preds = %for.body
  %inc = add nuw nsw i64 %k.092, 1
  %14 = load i64, ptr %rank, align 8
  %cmp.not = icmp slt i64 %inc, %14
  br i1 %cmp.not, label %for.body, label %cleanup40, !llvm.loop !7

cleanup40:                                        ; preds = %for.inc, %if.then36, %do.end29
  %cmp.not89 = phi i1 [ true, %if.then36 ], [ false, %do.end29 ], [ false, %for.inc ]
  %retval.3 = phi ptr [ %call38, %if.then36 ], [ %call.call10.call21, %do.end29 ], [ %call.call10.call21, %for.inc ]
  br i1 %cmp.not89, label %cleanup44, label %for.end

for.end:                                          ; preds = %cleanup40
  %KernelContext_GetOutput = getelementptr inbounds nuw i8, ptr %0, i64 728
  %15 = load ptr, ptr %KernelContext_GetOutput, align 8
  %16 = load i64, ptr %rank, align 8
  %call43 = call ptr %15(ptr noundef %context, i64 noundef 0, ptr noundef nonnull %6, i64 noundef %16, ptr noundef nonnull %made) #8
  br label %cleanup44

cleanup44:                                        ; preds = %for.end, %cleanup40, %do.body19, %do.body8, %if.then5, %entry
  %retval.4 = phi ptr [ %call43, %for.end ], [ %retval.3, %cleanup40 ], [ %call.call10.call21, %do.body19 ], [ %call10, %do.body8 ], [ %call6, %if.then5 ], [ %call, %entry ]
  call void @llvm.lifetime.end.p0(ptr nonnull %data) #6
  call void @llvm.lifetime.end.p0(ptr nonnull %made) #6
  call void @llvm.lifetime.end.p0(ptr nonnull %value) #6
  ret ptr %retval.4
}

; Function Attrs: nounwind
define internal fastcc ptr @match(ptr noundef %api, ptr noundef %desc, ptr noundef %port, i64 noundef %index, ptr noundef readonly captures(none) %dims, ptr noundef captures(none) %symbols) unnamed_addr #2 {
entry:
  %rank = getelementptr inbounds nuw i8, ptr %port, i64 48
  %0 = load i64, ptr %rank, align 8
  %cmp.not61 = icmp sgt i64 %0, 0
  br i1 %cmp.not61, label %for.body.lr.ph, label %cleanup26

for.body.lr.ph:                                   ; preds = %entry
  %dims1 = getelementptr inbounds nuw i8, ptr %port, i64 24
  br label %for.body

for.cond:                                         ; preds = %cleanup23
  %inc = add nuw nsw i64 %axis.062, 1
  %1 = load i64, ptr %rank, align 8
  %cmp.not = icmp slt i64 %inc, %1
  br i1 %cmp.not, label %for.body, label %cleanup26, !llvm.loop !8

for.body:                                         ; preds = %for.cond, %for.body.lr.ph
  %retval.063 = phi ptr [ undef, %for.body.lr.ph ], [ %retval.3, %for.cond ]
  %axis.062 = phi i64 [ 0, %for.body.lr.ph ], [ %inc, %for.cond ]
  %2 = load ptr, ptr %dims1, align 8
  %arrayidx = getelementptr inbounds nuw i64, ptr %2, i64 %axis.062
  %3 = load i64, ptr %arrayidx, align 8
  %cmp2 = icmp sgt i64 %3, -1
  br i1 %cmp2, label %if.then, label %if.else

if.then:                                          ; preds = %for.body
  %arrayidx3 = getelementptr inbounds nuw i64, ptr %dims, i64 %axis.062
  %4 = load i64, ptr %arrayidx3, align 8
  %cmp4.not = icmp eq i64 %3, %4
  br i1 %cmp4.not, label %cleanup23, label %if.then5

if.then5:                                         ; preds = %if.then
  %call = tail call ptr @igniter_fail(ptr noundef %api, ptr noundef %desc, i32 noundef 5, ptr noundef %port, i64 noundef %index, i64 noundef %axis.062, i64 noundef %3, i64 noundef %4) #8
  br label %cleanup23

if.else:                                          ; preds = %for.body
  %cmp7.not = icmp eq i64 %3, -9223372036854775808
  br i1 %cmp7.not, label %cleanup23, label %if.then8

if.then8:                                         ; preds = %if.else
  %sub = xor i64 %3, -1
  %arrayidx9 = getelementptr inbounds nuw i64, ptr %symbols, i64 %sub
  %5 = load i64, ptr %arrayidx9, align 8
  %cmp10 = icmp slt i64 %5, 0
  %arrayidx12 = getelementptr inbounds nuw i64, ptr %dims, i64 %axis.062
  %6 = load i64, ptr %arrayidx12, align 8
  br i1 %cmp10, label %if.then11, label %if.else13

if.then11:                                        ; preds = %if.then8
  store i64 %6, ptr %arrayidx9, align 8
  br label %cleanup23

if.else13:                                        ; preds = %if.then8
  %cmp15.not = icmp eq i64 %5, %6
  br i1 %cmp15.not, label %cleanup23, label %if.then16

if.then16:                                        ; preds = %if.else13
  %call18 = tail call ptr @igniter_fail(ptr noundef %api, ptr noundef %desc, i32 noundef 6, ptr noundef %port, i64 noundef %index, i64 noundef %axis.062, i64 noundef %5, i64 noundef %6) #8
  br label %cleanup23

cleanup23:                                        ; preds = %if.then16, %if.else13, %if.then11, %if.else, %if.then5, %if.then
  %cond = phi i1 [ false, %if.then5 ], [ true, %if.then ], [ true, %if.else ], [ false, %if.then16 ], [ true, %if.else13 ], [ true, %if.then11 ]
  %retval.3 = phi ptr [ %call, %if.then5 ], [ %retval.063, %if.then ], [ %retval.063, %if.else ], [ %call18, %if.then16 ], [ %retval.063, %if.else13 ], [ %retval.063, %if.then11 ]
  br i1 %cond, label %for.cond, label %cleanup26

cleanup26:                                        ; preds = %cleanup23, %for.cond, %entry
  %spec.select = phi ptr [ null, %entry ], [ %retval.3, %cleanup23 ], [ null, %for.cond ]
  ret ptr %spec.select
}

; Function Attrs: nounwind
define internal fastcc ptr @check_constant(ptr noundef %api, ptr noundef %desc, ptr noundef %info, i64 noundef %index, ptr noundef writeonly captures(none) %checked) unnamed_addr #2 {
entry:
  %constant = alloca i32, align 4
  %value = alloca ptr, align 8
  %inputs = getelementptr inbounds nuw i8, ptr %desc, i64 8
  %0 = load ptr, ptr %inputs, align 8
  %arrayidx = getelementptr inbounds %struct.igniter_port, ptr %0, i64 %index
  call void @llvm.lifetime.start.p0(ptr nonnull %constant) #6
  store i32 0, ptr %constant, align 4
  call void @llvm.lifetime.start.p0(ptr nonnull %value) #6
  store ptr null, ptr %value, align 8
  %KernelInfoGetConstantInput_tensor = getelementptr inbounds nuw i8, ptr %api, i64 1992
  %1 = load ptr, ptr %KernelInfoGetConstantInput_tensor, align 8
  %call = call ptr %1(ptr noundef %info, i64 noundef %index, ptr noundef nonnull %constant, ptr noundef nonnull %value) #8
  %tobool.not.i.not = icmp eq ptr %call, null
  br i1 %tobool.not.i.not, label %if.end, label %if.then.i

if.then.i:                                        ; preds = %entry
  %ReleaseStatus.i = getelementptr inbounds nuw i8, ptr %api, i64 744
  %2 = load ptr, ptr %ReleaseStatus.i, align 8
  call void %2(ptr noundef nonnull %call) #8
  br label %cleanup10

if.end:                                           ; preds = %entry
  %3 = load i32, ptr %constant, align 4
  %tobool2 = icmp ne i32 %3, 0
  %4 = load ptr, ptr %value, align 8
  %tobool3 = icmp ne ptr %4, null
  %or.cond = select i1 %tobool2, i1 %tobool3, i1 false
  br i1 %or.cond, label %do.body, label %cleanup10

do.body:                                          ; preds = %if.end
  %rank = getelementptr inbounds nuw i8, ptr %arrayidx, i64 48
  %5 = load i64, ptr %rank, align 8
  %mul = shl i64 %5, 3
  %6 = alloca i8, i64 %mul, align 16
  %call6 = call ptr @igniter_check(ptr noundef %api, ptr noundef %desc, ptr noundef %arrayidx, i64 noundef %index, ptr noundef nonnull %4, ptr noundef nonnull %6, ptr noundef null) #9
  %tobool7.not = icmp eq ptr %call6, null
  br i1 %tobool7.not, label %do.end, label %cleanup10

do.end:                                           ; preds = %do.body
  store i8 1, ptr %checked, align 1
  br label %cleanup10

cleanup10:                                        ; preds = %do.end, %do.body, %if.end, %if.then.i
  %retval.1 = phi ptr [ null, %do.end ], [ %call6, %do.body ], [ null, %if.then.i ], [ null, %if.end ]
  call void @llvm.lifetime.end.p0(ptr nonnull %value) #6
  call void @llvm.lifetime.end.p0(ptr nonnull %constant) #6
  ret ptr %retval.1
}

; Function Attrs: nounwind
define internal void @parallel_for(ptr noundef captures(none) %context, ptr noundef %task, i64 noundef %count, ptr noundef %data) #2 {
entry:
  %tmp.i4.i.i = alloca i32, align 4
  %tmp.i.i24.i = alloca i32, align 4
  %tmp.i3.i.i = alloca i32, align 4
  %tmp.i.i.i = alloca i32, align 4
  %shared = alloca %struct.shared, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %shared) #6
  store ptr %task, ptr %shared, align 8
  %data2 = getelementptr inbounds nuw i8, ptr %shared, i64 8
  store ptr %data, ptr %data2, align 8
  %count3 = getelementptr inbounds nuw i8, ptr %shared, i64 16
  store i64 %count, ptr %count3, align 8
  %next = getelementptr inbounds nuw i8, ptr %shared, i64 24
  store i64 0, ptr %next, align 8
  %flushes = getelementptr inbounds nuw i8, ptr %shared, i64 32
  %flushes4 = getelementptr inbounds nuw i8, ptr %context, i64 24
  %0 = load i64, ptr %flushes4, align 8
  store i64 %0, ptr %flushes, align 8
  %shows = getelementptr inbounds nuw i8, ptr %shared, i64 40
  store i32 0, ptr %shows, align 8
  %1 = getelementptr inbounds nuw i8, ptr %shared, i64 44
  store i32 0, ptr %1, align 4
  %call6 = call i64 @igniter_cpus_limit(ptr noundef nonnull @cpus, ptr noundef nonnull %shows) #8
  %cmp = icmp ugt i64 %count, 1
  %cmp7 = icmp ugt i64 %call6, 1
  %or.cond = select i1 %cmp, i1 %cmp7, i1 false
  br i1 %or.cond, label %if.then, label %if.end19

if.then:                                          ; preds = %entry
  %2 = load ptr, ptr %context, align 8
  %KernelContext_ParallelFor = getelementptr inbounds nuw i8, ptr %2, i64 2192
  %3 = load ptr, ptr %KernelContext_ParallelFor, align 8
  %context8 = getelementptr inbounds nuw i8, ptr %context, i64 8
  %4 = load ptr, ptr %context8, align 8
  %cmp9 = icmp ult i64 %call6, %count
  %cond = select i1 %cmp9, i64 %call6, i64 0
  %call10 = call ptr %3(ptr noundef %4, ptr noundef nonnull @take_tasks, i64 noundef %count, i64 noundef %cond, ptr noundef nonnull %shared) #8
  %tobool.not.not = icmp eq ptr %call10, null
  br i1 %tobool.not.not, label %cleanup20, label %if.end

if.end:                                           ; preds = %if.then
  %error12 = getelementptr inbounds nuw i8, ptr %context, i64 16
  %5 = load ptr, ptr %error12, align 8
  %tobool13.not = icmp eq ptr %5, null
  br i1 %tobool13.not, label %if.end17, label %if.then14

if.then14:                                        ; preds = %if.end
  %6 = load ptr, ptr %context, align 8
  %ReleaseStatus = getelementptr inbounds nuw i8, ptr %6, i64 744
  %7 = load ptr, ptr %ReleaseStatus, align 8
  call void %7(ptr noundef nonnull %5) #8
  br label %if.end17

if.end17:                                         ; preds = %if.then14, %if.end
  store ptr %call10, ptr %error12, align 8
  br label %if.end19

if.end19:                                         ; preds = %if.end17, %entry
  %8 = atomicrmw add ptr %next, i64 1 monotonic, align 8
  %9 = load i64, ptr %count3, align 8
  %cmp.not.i = icmp ult i64 %8, %9
  br i1 %cmp.not.i, label %if.end.i, label %cleanup20

if.end.i:                                         ; preds = %if.end19
  %10 = load i32, ptr %shows, align 8
  %tobool.not.i = icmp eq i32 %10, 0
  br i1 %tobool.not.i, label %if.end2.i, label %if.then1.i

if.then1.i:                                       ; preds = %if.end.i
  call void @igniter_cpus_seen(ptr noundef nonnull @cpus) #8
  br label %if.end2.i

if.end2.i:                                        ; preds = %if.then1.i, %if.end.i
  %11 = load i64, ptr %flushes, align 8
  %tobool3.not.i = icmp eq i64 %11, 0
  br i1 %tobool3.not.i, label %cond.end.i, label %cond.true.i

cond.true.i:                                      ; preds = %if.end2.i
  call void @llvm.lifetime.start.p0(ptr nonnull %tmp.i.i.i)
  call void @llvm.x86.sse.stmxcsr(ptr nonnull %tmp.i.i.i)
  %stmxcsr.i.i.i = load i32, ptr %tmp.i.i.i, align 4
  %conv.i.i.i = zext i32 %stmxcsr.i.i.i to i64
  call void @llvm.lifetime.end.p0(ptr nonnull %tmp.i.i.i)
  %and.i.i = and i64 %conv.i.i.i, 32832
  %cmp.not.i.i = icmp eq i64 %and.i.i, 32832
  br i1 %cmp.not.i.i, label %cond.end.i, label %if.then.i.i

if.then.i.i:                                      ; preds = %cond.true.i
  %or.i.i = or i32 %stmxcsr.i.i.i, 32832
  call void @llvm.lifetime.start.p0(ptr nonnull %tmp.i3.i.i)
  store i32 %or.i.i, ptr %tmp.i3.i.i, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr nonnull %tmp.i3.i.i)
  call void @llvm.lifetime.end.p0(ptr nonnull %tmp.i3.i.i)
  br label %cond.end.i

cond.end.i:                                       ; preds = %if.then.i.i, %cond.true.i, %if.end2.i
  %cond.i = phi i64 [ 0, %if.end2.i ], [ %conv.i.i.i, %cond.true.i ], [ %conv.i.i.i, %if.then.i.i ]
  br label %do.body.i

do.body.i:                                        ; preds = %do.body.i, %cond.end.i
  %k.0.i = phi i64 [ %8, %cond.end.i ], [ %14, %do.body.i ]
  %12 = load ptr, ptr %shared, align 8
  %13 = load ptr, ptr %data2, align 8
  call void %12(ptr noundef %13, i64 noundef %k.0.i) #8
  %14 = atomicrmw add ptr %next, i64 1 monotonic, align 8
  %15 = load i64, ptr %count3, align 8
  %cmp9.i = icmp ult i64 %14, %15
  br i1 %cmp9.i, label %do.body.i, label %do.end.i, !llvm.loop !9

do.end.i:                                         ; preds = %do.body.i
  %16 = load i64, ptr %flushes, align 8
  %tobool11.not.i = icmp eq i64 %16, 0
  br i1 %tobool11.not.i, label %cleanup20, label %if.then12.i

if.then12.i:                                      ; preds = %do.end.i
  %and.i25.i = and i64 %cond.i, 32832
  %cmp.not.i26.i = icmp eq i64 %and.i25.i, 32832
  br i1 %cmp.not.i26.i, label %cleanup20, label %if.then.i27.i

if.then.i27.i:                                    ; preds = %if.then12.i
  call void @llvm.lifetime.start.p0(ptr nonnull %tmp.i.i24.i)
  call void @llvm.x86.sse.stmxcsr(ptr nonnull %tmp.i.i24.i)
  %stmxcsr.i.i28.i = load i32, ptr %tmp.i.i24.i, align 4
  call void @llvm.lifetime.end.p0(ptr nonnull %tmp.i.i24.i)
  %17 = and i32 %stmxcsr.i.i28.i, -32833
  call void @llvm.lifetime.start.p0(ptr nonnull %tmp.i4.i.i)
  %18 = trunc nuw nsw i64 %and.i25.i to i32
  %conv.i5.i.i = or disjoint i32 %17, %18
  store i32 %conv.i5.i.i, ptr %tmp.i4.i.i, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr nonnull %tmp.i4.i.i)
  call void @llvm.lifetime.end.p0(ptr nonnull %tmp.i4.i.i)
  br label %cleanup20

cleanup20:                                        ; preds = %if.then.i27.i, %if.then12.i, %do.end.i, %if.end19, %if.then
  call void @llvm.lifetime.end.p0(ptr nonnull %shared) #6
  ret void
}

declare i64 @igniter_cpus_limit(ptr noundef, ptr noundef) local_unnamed_addr #4

; Function Attrs: nounwind
define internal void @take_tasks(ptr noundef captures(none) %data, i64 %index) #2 {
entry:
  %tmp.i4.i = alloca i32, align 4
  %tmp.i.i24 = alloca i32, align 4
  %tmp.i3.i = alloca i32, align 4
  %tmp.i.i = alloca i32, align 4
  %next = getelementptr inbounds nuw i8, ptr %data, i64 24
  %0 = atomicrmw add ptr %next, i64 1 monotonic, align 8
  %count = getelementptr inbounds nuw i8, ptr %data, i64 16
  %1 = load i64, ptr %count, align 8
  %cmp.not = icmp ult i64 %0, %1
  br i1 %cmp.not, label %if.end, label %cleanup

if.end:                                           ; preds = %entry
  %shows = getelementptr inbounds nuw i8, ptr %data, i64 40
  %2 = load i32, ptr %shows, align 8
  %tobool.not = icmp eq i32 %2, 0
  br i1 %tobool.not, label %if.end2, label %if.then1

if.then1:                                         ; preds = %if.end
  tail call void @igniter_cpus_seen(ptr noundef nonnull @cpus) #8
  br label %if.end2

if.end2:                                          ; preds = %if.then1, %if.end
  %flushes = getelementptr inbounds nuw i8, ptr %data, i64 32
  %3 = load i64, ptr %flushes, align 8
  %tobool3.not = icmp eq i64 %3, 0
  br i1 %tobool3.not, label %cond.end, label %cond.true

cond.true:                                        ; preds = %if.end2
  call void @llvm.lifetime.start.p0(ptr nonnull %tmp.i.i)
  call void @llvm.x86.sse.stmxcsr(ptr nonnull %tmp.i.i)
  %stmxcsr.i.i = load i32, ptr %tmp.i.i, align 4
  %conv.i.i = zext i32 %stmxcsr.i.i to i64
  call void @llvm.lifetime.end.p0(ptr nonnull %tmp.i.i)
  %and.i = and i64 %conv.i.i, 32832
  %cmp.not.i = icmp eq i64 %and.i, 32832
  br i1 %cmp.not.i, label %cond.end, label %if.then.i

if.then.i:                                        ; preds = %cond.true
  %or.i = or i32 %stmxcsr.i.i, 32832
  call void @llvm.lifetime.start.p0(ptr nonnull %tmp.i3.i)
  store i32 %or.i, ptr %tmp.i3.i, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr nonnull %tmp.i3.i)
  call void @llvm.lifetime.end.p0(ptr nonnull %tmp.i3.i)
  br label %cond.end

cond.end:                                         ; preds = %if.then.i, %cond.true, %if.end2
  %cond = phi i64 [ 0, %if.end2 ], [ %conv.i.i, %cond.true ], [ %conv.i.i, %if.then.i ]
  %data4 = getelementptr inbounds nuw i8, ptr %data, i64 8
  br label %do.body

do.body:                                          ; preds = %do.body, %cond.end
  %k.0 = phi i64 [ %0, %cond.end ], [ %6, %do.body ]
  %4 = load ptr, ptr %data, align 8
  %5 = load ptr, ptr %data4, align 8
  call void %4(ptr noundef %5, i64 noundef %k.0) #8
  %6 = atomicrmw add ptr %next, i64 1 monotonic, align 8
  %7 = load i64, ptr %count, align 8
  %cmp9 = icmp ult i64 %6, %7
  br i1 %cmp9, label %do.body, label %do.end, !llvm.loop !9

do.end:                                           ; preds = %do.body
  %8 = load i64, ptr %flushes, align 8
  %tobool11.not = icmp eq i64 %8, 0
  br i1 %tobool11.not, label %cleanup, label %if.then12

if.then12:                                        ; preds = %do.end
  %and.i25 = and i64 %cond, 32832
  %cmp.not.i26 = icmp eq i64 %and.i25, 32832
  br i1 %cmp.not.i26, label %cleanup, label %if.then.i27

if.then.i27:                                      ; preds = %if.then12
  call void @llvm.lifetime.start.p0(ptr nonnull %tmp.i.i24)
  call void @llvm.x86.sse.stmxcsr(ptr nonnull %tmp.i.i24)
  %stmxcsr.i.i28 = load i32, ptr %tmp.i.i24, align 4
  call void @llvm.lifetime.end.p0(ptr nonnull %tmp.i.i24)
  %9 = and i32 %stmxcsr.i.i28, -32833
  call void @llvm.lifetime.start.p0(ptr nonnull %tmp.i4.i)
  %10 = trunc nuw nsw i64 %and.i25 to i32
  %conv.i5.i = or disjoint i32 %9, %10
  store i32 %conv.i5.i, ptr %tmp.i4.i, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr nonnull %tmp.i4.i)
  call void @llvm.lifetime.end.p0(ptr nonnull %tmp.i4.i)
  br label %cleanup

cleanup:                                          ; preds = %if.then.i27, %if.then12, %do.end, %entry
  ret void
}

declare void @igniter_cpus_seen(ptr noundef) local_unnamed_addr #4

; Function Attrs: nounwind memory(argmem: write)
declare void @llvm.x86.sse.stmxcsr(ptr) #5

; Function Attrs: nounwind
declare void @llvm.x86.sse.ldmxcsr(ptr) #6

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.smax.i64(i64, i64) #7

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.smin.i64(i64, i64) #7

attributes #0 = { mustprogress nofree norecurse nosync nounwind willreturn memory(read, inaccessiblemem: none, target_mem0: none, target_mem1: none) "no-builtins" }
attributes #1 = { mustprogress nofree norecurse nosync nounwind willreturn memory(none) "no-builtins" }
attributes #2 = { nounwind "no-builtins" }
attributes #3 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #4 = { "no-builtins" }
attributes #5 = { nounwind memory(argmem: write) }
attributes #6 = { nounwind }
attributes #7 = { nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #8 = { nobuiltin nounwind "no-builtins" }
attributes #9 = { nobuiltin "no-builtins" }

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
