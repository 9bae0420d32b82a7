target triple = "aarch64-unknown-linux-gnu"

%struct.igniter_port = type { ptr, ptr, ptr, ptr, i32, i32, i32, i32, i64, i64, i64 }

@.str = private unnamed_addr constant [2 x i8] c"(\00", align 1
@.str.1 = private unnamed_addr constant [2 x i8] c")\00", align 1
@.str.2 = private unnamed_addr constant [1 x i8] zeroinitializer, align 1
@igniter_api = external local_unnamed_addr global ptr, align 8

; Function Attrs: cold noinline nounwind optsize
define hidden noundef i1 @igniter_infer_input(ptr noundef readonly captures(none) %api, ptr noundef %context, i64 noundef %index, i64 noundef %rank, ptr noundef %dims, ptr noundef %names) local_unnamed_addr #0 {
entry:
  %shape = alloca ptr, align 8
  %count = alloca i64, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %shape) #5
  call void @llvm.lifetime.start.p0(ptr nonnull %count) #5
  %ShapeInferContext_GetInputTypeShape = getelementptr inbounds nuw i8, ptr %api, i64 2144
  %0 = load ptr, ptr %ShapeInferContext_GetInputTypeShape, align 8
  %call = call ptr %0(ptr noundef %context, i64 noundef %index, ptr noundef nonnull %shape) #6
  %tobool.not.i.not = icmp eq ptr %call, null
  br i1 %tobool.not.i.not, label %land.lhs.true, label %land.end.sink.split

land.lhs.true:                                    ; preds = %entry
  %GetDimensionsCount = getelementptr inbounds nuw i8, ptr %api, i64 488
  %1 = load ptr, ptr %GetDimensionsCount, align 8
  %2 = load ptr, ptr %shape, align 8
  %call2 = call ptr %1(ptr noundef %2, ptr noundef nonnull %count) #6
  %tobool.not.i22 = icmp eq ptr %call2, null
  br i1 %tobool.not.i22, label %succeeds.exit26, label %if.then.i23

if.then.i23:                                      ; preds = %land.lhs.true
  %ReleaseStatus.i24 = getelementptr inbounds nuw i8, ptr %api, i64 744
  %3 = load ptr, ptr %ReleaseStatus.i24, align 8
  call void %3(ptr noundef nonnull %call2) #6
  br label %succeeds.exit26

succeeds.exit26:                                  ; preds = %if.then.i23, %land.lhs.true
  %4 = load i64, ptr %count, align 8
  %cmp = icmp eq i64 %4, %rank
  %or.cond = select i1 %tobool.not.i22, i1 %cmp, i1 false
  br i1 %or.cond, label %land.lhs.true6, label %land.end

land.lhs.true6:                                   ; preds = %succeeds.exit26
  %GetDimensions = getelementptr inbounds nuw i8, ptr %api, i64 496
  %5 = load ptr, ptr %GetDimensions, align 8
  %6 = load ptr, ptr %shape, align 8
  %call7 = call ptr %5(ptr noundef %6, ptr noundef %dims, i64 noundef %rank) #6
  %tobool.not.i27.not = icmp eq ptr %call7, null
  br i1 %tobool.not.i27.not, label %land.rhs, label %land.end.sink.split

land.rhs:                                         ; preds = %land.lhs.true6
  %GetSymbolicDimensions = getelementptr inbounds nuw i8, ptr %api, i64 504
  %7 = load ptr, ptr %GetSymbolicDimensions, align 8
  %8 = load ptr, ptr %shape, align 8
  %call10 = call ptr %7(ptr noundef %8, ptr noundef %names, i64 noundef %rank) #6
  %tobool.not.i32 = icmp eq ptr %call10, null
  br i1 %tobool.not.i32, label %land.end, label %land.end.sink.split

land.end.sink.split:                              ; preds = %land.rhs, %land.lhs.true6, %entry
  %call7.sink = phi ptr [ %call, %entry ], [ %call7, %land.lhs.true6 ], [ %call10, %land.rhs ]
  %ReleaseStatus.i29 = getelementptr inbounds nuw i8, ptr %api, i64 744
  %9 = load ptr, ptr %ReleaseStatus.i29, align 8
  call void %9(ptr noundef nonnull %call7.sink) #6
  br label %land.end

land.end:                                         ; preds = %land.end.sink.split, %land.rhs, %succeeds.exit26
  %10 = phi i1 [ false, %succeeds.exit26 ], [ true, %land.rhs ], [ false, %land.end.sink.split ]
  call void @llvm.lifetime.end.p0(ptr nonnull %count) #5
  call void @llvm.lifetime.end.p0(ptr nonnull %shape) #5
  ret i1 %10
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #1

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #1

; Function Attrs: cold noinline nounwind optsize
define hidden noundef i1 @igniter_infer_text(ptr noundef %string, i64 noundef %value, ptr noundef %name) local_unnamed_addr #0 {
entry:
  %cmp = icmp sgt i64 %value, -1
  br i1 %cmp, label %if.then, label %if.end

if.then:                                          ; preds = %entry
  tail call void @igniter_number(ptr noundef %string, i64 noundef %value) #6
  br label %return

if.end:                                           ; preds = %entry
  %tobool.not = icmp eq ptr %name, null
  br i1 %tobool.not, label %return, label %if.end2

if.end2:                                          ; preds = %if.end
  tail call void @igniter_text(ptr noundef %string, ptr noundef nonnull @.str) #6
  tail call void @igniter_text(ptr noundef %string, ptr noundef nonnull %name) #6
  tail call void @igniter_text(ptr noundef %string, ptr noundef nonnull @.str.1) #6
  br label %return

return:                                           ; preds = %if.end2, %if.end, %if.then
  %retval.0 = phi i1 [ true, %if.then ], [ true, %if.end2 ], [ false, %if.end ]
  ret i1 %retval.0
}

declare void @igniter_number(ptr noundef, i64 noundef) local_unnamed_addr #2

declare void @igniter_text(ptr noundef, ptr noundef) local_unnamed_addr #2

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(argmem: read)
define hidden i1 @igniter_text_fits(ptr noundef readonly captures(none) %string) local_unnamed_addr #3 {
entry:
  %length = getelementptr inbounds nuw i8, ptr %string, i64 16
  %0 = load i64, ptr %length, align 8
  %capacity = getelementptr inbounds nuw i8, ptr %string, i64 8
  %1 = load i64, ptr %capacity, align 8
  %sub = add nsw i64 %1, -1
  %cmp = icmp slt i64 %0, %sub
  ret i1 %cmp
}

; Function Attrs: cold noinline nounwind optsize
define hidden void @igniter_infer_output(ptr noundef readonly captures(none) %api, ptr noundef %context, i64 noundef %index, i32 noundef %type, i64 noundef %rank, ptr noundef %dims, ptr noundef %names) local_unnamed_addr #0 {
entry:
  %shape = alloca ptr, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %shape) #5
  %CreateTensorTypeAndShapeInfo = getelementptr inbounds nuw i8, ptr %api, i64 456
  %0 = load ptr, ptr %CreateTensorTypeAndShapeInfo, align 8
  %call = call ptr %0(ptr noundef nonnull %shape) #6
  %tobool.not.i.not = icmp eq ptr %call, null
  br i1 %tobool.not.i.not, label %if.end, label %if.then.i

if.then.i:                                        ; preds = %entry
  %ReleaseStatus.i = getelementptr inbounds nuw i8, ptr %api, i64 744
  %1 = load ptr, ptr %ReleaseStatus.i, align 8
  call void %1(ptr noundef nonnull %call) #6
  br label %cleanup

if.end:                                           ; preds = %entry
  %2 = load ptr, ptr %shape, align 8
  %SetTensorElementType.i = getelementptr inbounds nuw i8, ptr %api, i64 464
  %3 = load ptr, ptr %SetTensorElementType.i, align 8
  %call.i = call ptr %3(ptr noundef %2, i32 noundef %type) #6
  %tobool.not.not.i = icmp eq ptr %call.i, null
  br i1 %tobool.not.not.i, label %do.body1.i, label %set_output.exit

do.body1.i:                                       ; preds = %if.end
  %SetDimensions.i = getelementptr inbounds nuw i8, ptr %api, i64 472
  %4 = load ptr, ptr %SetDimensions.i, align 8
  %call3.i = call ptr %4(ptr noundef %2, ptr noundef %dims, i64 noundef %rank) #6
  %tobool4.not.not.i = icmp eq ptr %call3.i, null
  br i1 %tobool4.not.not.i, label %do.body11.i, label %set_output.exit

do.body11.i:                                      ; preds = %do.body1.i
  %SetSymbolicDimensions.i = getelementptr inbounds nuw i8, ptr %api, i64 2168
  %5 = load ptr, ptr %SetSymbolicDimensions.i, align 8
  %call13.i = call ptr %5(ptr noundef %2, ptr noundef %names, i64 noundef %rank) #6
  %tobool14.not.not.i = icmp eq ptr %call13.i, null
  br i1 %tobool14.not.not.i, label %do.end20.i, label %set_output.exit

do.end20.i:                                       ; preds = %do.body11.i
  %ShapeInferContext_SetOutputTypeShape.i = getelementptr inbounds nuw i8, ptr %api, i64 2160
  %6 = load ptr, ptr %ShapeInferContext_SetOutputTypeShape.i, align 8
  %call21.i = call ptr %6(ptr noundef %context, i64 noundef %index, ptr noundef %2) #6
  br label %set_output.exit

set_output.exit:                                  ; preds = %do.end20.i, %do.body11.i, %do.body1.i, %if.end
  %retval.3.i = phi ptr [ %call21.i, %do.end20.i ], [ %call13.i, %do.body11.i ], [ %call3.i, %do.body1.i ], [ %call.i, %if.end ]
  %tobool.not.i8 = icmp eq ptr %retval.3.i, null
  br i1 %tobool.not.i8, label %succeeds.exit12, label %if.then.i9

if.then.i9:                                       ; preds = %set_output.exit
  %ReleaseStatus.i10 = getelementptr inbounds nuw i8, ptr %api, i64 744
  %7 = load ptr, ptr %ReleaseStatus.i10, align 8
  call void %7(ptr noundef nonnull %retval.3.i) #6
  br label %succeeds.exit12

succeeds.exit12:                                  ; preds = %if.then.i9, %set_output.exit
  %ReleaseTensorTypeAndShapeInfo = getelementptr inbounds nuw i8, ptr %api, i64 792
  %8 = load ptr, ptr %ReleaseTensorTypeAndShapeInfo, align 8
  %9 = load ptr, ptr %shape, align 8
  call void %8(ptr noundef %9) #6
  br label %cleanup

cleanup:                                          ; preds = %succeeds.exit12, %if.then.i
  call void @llvm.lifetime.end.p0(ptr nonnull %shape) #5
  ret void
}

; Function Attrs: cold noinline nounwind optsize
define hidden void @igniter_infer_inputs(ptr noundef readonly captures(none) %op, ptr noundef %context, ptr noundef captures(none) %values, ptr noundef captures(none) %known) local_unnamed_addr #0 {
entry:
  %count = alloca i64, align 8
  %0 = load atomic i64, ptr @igniter_api acquire, align 8
  %1 = inttoptr i64 %0 to ptr
  %desc1 = getelementptr inbounds nuw i8, ptr %op, i64 208
  %2 = load ptr, ptr %desc1, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %count) #5
  store i64 0, ptr %count, align 8
  %symbol_count = getelementptr inbounds nuw i8, ptr %2, i64 56
  %3 = load i64, ptr %symbol_count, align 8
  %cmp41 = icmp sgt i64 %3, 0
  br i1 %cmp41, label %for.body, label %for.cond.cleanup

for.cond.cleanup:                                 ; preds = %for.body, %entry
  %ShapeInferContext_GetInputCount = getelementptr inbounds nuw i8, ptr %1, i64 2136
  %4 = load ptr, ptr %ShapeInferContext_GetInputCount, align 8
  %call3 = call ptr %4(ptr noundef %context, ptr noundef nonnull %count) #6
  %tobool.not.i.not = icmp eq ptr %call3, null
  br i1 %tobool.not.i.not, label %for.cond6.preheader, label %if.then.i

for.cond6.preheader:                              ; preds = %for.cond.cleanup
  %input_count = getelementptr inbounds nuw i8, ptr %2, i64 40
  %5 = load i64, ptr %input_count, align 8
  %cmp743 = icmp sgt i64 %5, 0
  br i1 %cmp743, label %for.body9.lr.ph, label %cleanup

for.body9.lr.ph:                                  ; preds = %for.cond6.preheader
  %inputs = getelementptr inbounds nuw i8, ptr %2, i64 8
  br label %for.body9

if.then.i:                                        ; preds = %for.cond.cleanup
  %ReleaseStatus.i = getelementptr inbounds nuw i8, ptr %1, i64 744
  %6 = load ptr, ptr %ReleaseStatus.i, align 8
  call void %6(ptr noundef nonnull %call3) #6
  br label %cleanup

for.body:                                         ; preds = %for.body, %entry
  %k.042 = phi i64 [ %inc, %for.body ], [ 0, %entry ]
  %arrayidx = getelementptr inbounds nuw i64, ptr %values, i64 %k.042
  store i64 -1, ptr %arrayidx, align 8
  %arrayidx2 = getelementptr inbounds nuw ptr, ptr %known, i64 %k.042
  store ptr null, ptr %arrayidx2, align 8
  %inc = add nuw nsw i64 %k.042, 1
  %7 = load i64, ptr %symbol_count, align 8
  %cmp = icmp slt i64 %inc, %7
  br i1 %cmp, label %for.body, label %for.cond.cleanup, !llvm.loop !0

for.body9:                                        ; preds = %if.end17, %for.body9.lr.ph
  %k5.044 = phi i64 [ 0, %for.body9.lr.ph ], [ %inc19, %if.end17 ]
  %8 = load ptr, ptr %inputs, align 8
  %arrayidx10 = getelementptr inbounds nuw %struct.igniter_port, ptr %8, i64 %k5.044
  %mode = getelementptr inbounds nuw i8, ptr %arrayidx10, i64 36
  %9 = load i32, ptr %mode, align 4
  %cmp11 = icmp eq i32 %9, 2
  br i1 %cmp11, label %if.then12, label %if.end14

if.then12:                                        ; preds = %for.body9
  %10 = load i64, ptr %count, align 8
  %sub = sub nsw i64 %10, %k5.044
  %symbol = getelementptr inbounds nuw i8, ptr %arrayidx10, i64 64
  %11 = load i64, ptr %symbol, align 8
  %arrayidx13 = getelementptr inbounds i64, ptr %values, i64 %11
  store i64 %sub, ptr %arrayidx13, align 8
  br label %if.end14

if.end14:                                         ; preds = %if.then12, %for.body9
  %12 = load i64, ptr %count, align 8
  %cmp15 = icmp ult i64 %k5.044, %12
  br i1 %cmp15, label %if.then16, label %if.end17

if.then16:                                        ; preds = %if.end14
  call fastcc void @learn(ptr noundef %1, ptr noundef %context, ptr noundef %arrayidx10, i64 noundef %k5.044, ptr noundef %values, ptr noundef %known) #7
  br label %if.end17

if.end17:                                         ; preds = %if.then16, %if.end14
  %inc19 = add nuw nsw i64 %k5.044, 1
  %13 = load i64, ptr %input_count, align 8
  %cmp7 = icmp slt i64 %inc19, %13
  br i1 %cmp7, label %for.body9, label %cleanup, !llvm.loop !3

cleanup:                                          ; preds = %if.end17, %if.then.i, %for.cond6.preheader
  call void @llvm.lifetime.end.p0(ptr nonnull %count) #5
  ret void
}

; Function Attrs: cold nounwind
define internal fastcc void @learn(ptr noundef readonly captures(none) %api, ptr noundef %context, ptr noundef readonly captures(none) %port, i64 noundef %index, ptr noundef captures(none) %values, ptr noundef captures(none) %known) unnamed_addr #4 {
entry:
  %rank = getelementptr inbounds nuw i8, ptr %port, i64 48
  %0 = load i64, ptr %rank, align 8
  %mul = shl i64 %0, 3
  %1 = alloca i8, i64 %mul, align 16
  %2 = alloca i8, i64 %mul, align 16
  %call = call i1 @igniter_infer_input(ptr noundef %api, ptr noundef %context, i64 noundef %index, i64 noundef %0, ptr noundef nonnull %1, ptr noundef nonnull %2) #8
  br i1 %call, label %for.cond.preheader, label %cleanup

for.cond.preheader:                               ; preds = %entry
  %3 = load i64, ptr %rank, align 8
  %cmp55 = icmp sgt i64 %3, 0
  br i1 %cmp55, label %for.body.lr.ph, label %cleanup

for.body.lr.ph:                                   ; preds = %for.cond.preheader
  %dims5 = getelementptr inbounds nuw i8, ptr %port, i64 24
  br label %for.body

for.body:                                         ; preds = %for.inc, %for.body.lr.ph
  %axis.056 = phi i64 [ 0, %for.body.lr.ph ], [ %inc, %for.inc ]
  %4 = load ptr, ptr %dims5, align 8
  %arrayidx = getelementptr inbounds nuw i64, ptr %4, i64 %axis.056
  %5 = load i64, ptr %arrayidx, align 8
  %or.cond = icmp ult i64 %5, -9223372036854775807
  br i1 %or.cond, label %for.inc, label %if.end11

if.end11:                                         ; preds = %for.body
  %sub = xor i64 %5, -1
  %arrayidx14 = getelementptr inbounds nuw i64, ptr %values, i64 %sub
  %6 = load i64, ptr %arrayidx14, align 8
  %cmp15 = icmp slt i64 %6, 0
  br i1 %cmp15, label %if.then16, label %if.end19

if.then16:                                        ; preds = %if.end11
  %arrayidx17 = getelementptr inbounds nuw i64, ptr %1, i64 %axis.056
  %7 = load i64, ptr %arrayidx17, align 8
  store i64 %7, ptr %arrayidx14, align 8
  br label %if.end19

if.end19:                                         ; preds = %if.then16, %if.end11
  %arrayidx20 = getelementptr inbounds nuw ptr, ptr %known, i64 %sub
  %8 = load ptr, ptr %arrayidx20, align 8
  %tobool.not = icmp eq ptr %8, null
  br i1 %tobool.not, label %land.lhs.true, label %for.inc

land.lhs.true:                                    ; preds = %if.end19
  %arrayidx21 = getelementptr inbounds nuw ptr, ptr %2, i64 %axis.056
  %9 = load ptr, ptr %arrayidx21, align 8
  %tobool22.not = icmp eq ptr %9, null
  br i1 %tobool22.not, label %for.inc, label %land.lhs.true23

land.lhs.true23:                                  ; preds = %land.lhs.true
  %10 = load i8, ptr %9, align 1
  %tobool25.not = icmp eq i8 %10, 0
  br i1 %tobool25.not, label %for.inc, label %if.then26

if.then26:                                        ; preds = %land.lhs.true23
  store ptr %9, ptr %arrayidx20, align 8
  br label %for.inc

for.inc:                                          ; preds = %if.then26, %land.lhs.true23, %land.lhs.true, %if.end19, %for.body
  %inc = add nuw nsw i64 %axis.056, 1
  %11 = load i64, ptr %rank, align 8
  %cmp = icmp slt i64 %inc, %11
  br i1 %cmp, label %for.body, label %cleanup, !llvm.loop !4

cleanup:                                          ; preds = %for.inc, %for.cond.preheader, %entry
  ret void
}

; Function Attrs: cold noinline nounwind optsize
define hidden void @igniter_infer_plain(ptr noundef readonly captures(none) %op, ptr noundef %context, i64 noundef %index, ptr noundef readonly captures(none) %values, ptr noundef readonly captures(none) %known) local_unnamed_addr #0 {
entry:
  %desc = getelementptr inbounds nuw i8, ptr %op, i64 208
  %0 = load ptr, ptr %desc, align 8
  %outputs = getelementptr inbounds nuw i8, ptr %0, i64 16
  %1 = load ptr, ptr %outputs, align 8
  %arrayidx = getelementptr inbounds %struct.igniter_port, ptr %1, i64 %index
  %rank = getelementptr inbounds nuw i8, ptr %arrayidx, i64 48
  %2 = load i64, ptr %rank, align 8
  %mul = shl i64 %2, 3
  %3 = alloca i8, i64 %mul, align 16
  %4 = alloca i8, i64 %mul, align 16
  %cmp.not56 = icmp sgt i64 %2, 0
  br i1 %cmp.not56, label %for.body.lr.ph, label %for.end

for.body.lr.ph:                                   ; preds = %entry
  %dims4 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 24
  br label %for.body

for.body:                                         ; preds = %for.inc, %for.body.lr.ph
  %axis.057 = phi i64 [ 0, %for.body.lr.ph ], [ %inc, %for.inc ]
  %5 = load ptr, ptr %dims4, align 8
  %arrayidx5 = getelementptr inbounds nuw i64, ptr %5, i64 %axis.057
  %6 = load i64, ptr %arrayidx5, align 8
  %arrayidx6 = getelementptr inbounds nuw i64, ptr %3, i64 %axis.057
  store i64 %6, ptr %arrayidx6, align 8
  %arrayidx7 = getelementptr inbounds nuw ptr, ptr %4, i64 %axis.057
  store ptr @.str.2, ptr %arrayidx7, align 8
  %cmp9 = icmp sgt i64 %6, -1
  br i1 %cmp9, label %for.inc, label %if.end

if.end:                                           ; preds = %for.body
  %sub = xor i64 %6, -1
  %arrayidx11 = getelementptr inbounds nuw i64, ptr %values, i64 %sub
  %7 = load i64, ptr %arrayidx11, align 8
  store i64 %7, ptr %arrayidx6, align 8
  %cmp14 = icmp sgt i64 %7, -1
  br i1 %cmp14, label %cleanup, label %if.end16

if.end16:                                         ; preds = %if.end
  %arrayidx17 = getelementptr inbounds nuw ptr, ptr %known, i64 %sub
  %8 = load ptr, ptr %arrayidx17, align 8
  store ptr %8, ptr %arrayidx7, align 8
  %tobool.not = icmp eq ptr %8, null
  %. = zext i1 %tobool.not to i32
  br label %cleanup

cleanup:                                          ; preds = %if.end16, %if.end
  %cleanup.dest.slot.0 = phi i32 [ %., %if.end16 ], [ 4, %if.end ]
  switch i32 %cleanup.dest.slot.0, label %cleanup25 [
    i32 0, label %for.inc
    i32 4, label %for.inc
  ]

for.inc:                                          ; preds = %cleanup, %cleanup, %for.body
  %inc = add nuw nsw i64 %axis.057, 1
  %9 = load i64, ptr %rank, align 8
  %cmp.not = icmp slt i64 %inc, %9
  br i1 %cmp.not, label %for.body, label %for.end, !llvm.loop !5

for.end:                                          ; preds = %for.inc, %entry
  %10 = load atomic i64, ptr @igniter_api acquire, align 8
  %11 = inttoptr i64 %10 to ptr
  %type = getelementptr inbounds nuw i8, ptr %arrayidx, i64 32
  %12 = load i32, ptr %type, align 8
  %13 = load i64, ptr %rank, align 8
  call void @igniter_infer_output(ptr noundef %11, ptr noundef %context, i64 noundef %index, i32 noundef %12, i64 noundef %13, ptr noundef nonnull %3, ptr noundef nonnull %4) #8
  br label %cleanup25

cleanup25:                                        ; preds = %for.end, %cleanup
  ret void
}

; Function Attrs: cold nounwind
define hidden noalias noundef ptr @igniter_infer(ptr noundef readonly captures(none) %op, ptr noundef %context) local_unnamed_addr #4 {
entry:
  %desc1 = getelementptr inbounds nuw i8, ptr %op, i64 208
  %0 = load ptr, ptr %desc1, align 8
  %symbol_count = getelementptr inbounds nuw i8, ptr %0, i64 56
  %1 = load i64, ptr %symbol_count, align 8
  %mul = shl i64 %1, 3
  %2 = alloca i8, i64 %mul, align 16
  %3 = alloca i8, i64 %mul, align 16
  call void @igniter_infer_inputs(ptr noundef %op, ptr noundef %context, ptr noundef nonnull %2, ptr noundef nonnull %3) #8
  %output_count = getelementptr inbounds nuw i8, ptr %0, i64 48
  %4 = load i64, ptr %output_count, align 8
  %cmp16 = icmp sgt i64 %4, 0
  br i1 %cmp16, label %for.body.lr.ph, label %for.cond.cleanup

for.body.lr.ph:                                   ; preds = %entry
  %outputs = getelementptr inbounds nuw i8, ptr %0, i64 16
  br label %for.body

for.cond.cleanup:                                 ; preds = %for.inc, %entry
  ret ptr null

for.body:                                         ; preds = %for.inc, %for.body.lr.ph
  %k.017 = phi i64 [ 0, %for.body.lr.ph ], [ %inc, %for.inc ]
  %5 = load ptr, ptr %outputs, align 8
  %arrayidx = getelementptr inbounds nuw %struct.igniter_port, ptr %5, i64 %k.017
  %mode = getelementptr inbounds nuw i8, ptr %arrayidx, i64 36
  %6 = load i32, ptr %mode, align 4
  %cmp4.not = icmp eq i32 %6, 2
  br i1 %cmp4.not, label %for.inc, label %if.then

if.then:                                          ; preds = %for.body
  call void @igniter_infer_plain(ptr noundef %op, ptr noundef %context, i64 noundef %k.017, ptr noundef nonnull %2, ptr noundef nonnull %3) #8
  br label %for.inc

for.inc:                                          ; preds = %if.then, %for.body
  %inc = add nuw nsw i64 %k.017, 1
  %7 = load i64, ptr %output_count, align 8
  %cmp = icmp slt i64 %inc, %7
  br i1 %cmp, label %for.body, label %for.cond.cleanup, !llvm.loop !6
}

attributes #0 = { cold noinline nounwind optsize "no-builtins" }
attributes #1 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #2 = { "no-builtins" }
attributes #3 = { mustprogress nofree norecurse nosync nounwind willreturn memory(argmem: read) "no-builtins" }
attributes #4 = { cold nounwind "no-builtins" }
attributes #5 = { nounwind }
attributes #6 = { nobuiltin nounwind "no-builtins" }
attributes #7 = { nobuiltin "no-builtins" }
attributes #8 = { cold nobuiltin "no-builtins" }

!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.mustprogress"}
!2 = !{!"llvm.loop.unroll.disable"}
!3 = distinct !{!3, !1, !2}
!4 = distinct !{!4, !1, !2}
!5 = distinct !{!5, !1, !2}
!6 = distinct !{!6, !1, !2}
