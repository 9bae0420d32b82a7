target triple = "x86_64-unknown-linux-gnu"

%struct.anon = type { i32, i32, i32, i32 }

@NEEDED = internal unnamed_addr constant [3 x %struct.anon] [%struct.anon { i32 9970177, i32 1, i32 0, i32 0 }, %struct.anon { i32 943722496, i32 32, i32 296, i32 6 }, %struct.anon { i32 0, i32 0, i32 -805109760, i32 230 }], align 16

; Function Attrs: nounwind
define hidden range(i32 1, 5) i32 @igniter_cpu_level() local_unnamed_addr #0 {
entry:
  %leaves = alloca [4 x i32], align 16
  %basic = alloca [4 x i32], align 16
  %extended = alloca [4 x i32], align 16
  %seven = alloca [4 x i32], align 16
  call void @llvm.lifetime.start.p0(ptr nonnull %leaves) #3
  call void @llvm.lifetime.start.p0(ptr nonnull %basic) #3
  call void @llvm.lifetime.start.p0(ptr nonnull %extended) #3
  call void @llvm.lifetime.start.p0(ptr nonnull %seven) #3
  call void @igniter_cpuid(i32 noundef 0, ptr noundef nonnull %leaves) #4
  call void @igniter_cpuid(i32 noundef 1, ptr noundef nonnull %basic) #4
  call void @igniter_cpuid(i32 noundef -2147483647, ptr noundef nonnull %extended) #4
  %0 = load i32, ptr %leaves, align 16
  %cmp = icmp ugt i32 %0, 6
  br i1 %cmp, label %land.lhs.true, label %if.end

land.lhs.true:                                    ; preds = %entry
  %arrayidx3 = getelementptr inbounds nuw i8, ptr %basic, i64 8
  %1 = load i32, ptr %arrayidx3, align 8
  %and = and i32 %1, 134217728
  %tobool.not = icmp eq i32 %and, 0
  br i1 %tobool.not, label %if.end, label %if.then

if.then:                                          ; preds = %land.lhs.true
  call void @igniter_cpuid(i32 noundef 7, ptr noundef nonnull %seven) #4
  %arrayidx5 = getelementptr inbounds nuw i8, ptr %seven, i64 4
  %2 = load i32, ptr %arrayidx5, align 4
  %call = call i32 @igniter_xgetbv() #4
  %3 = xor i32 %2, -1
  %4 = xor i32 %call, -1
  br label %if.end

if.end:                                           ; preds = %if.then, %land.lhs.true, %entry
  %features.0 = phi i32 [ %3, %if.then ], [ -1, %land.lhs.true ], [ -1, %entry ]
  %saved.0 = phi i32 [ %4, %if.then ], [ -1, %land.lhs.true ], [ -1, %entry ]
  %arrayidx7 = getelementptr inbounds nuw i8, ptr %basic, i64 8
  %5 = load i32, ptr %arrayidx7, align 8
  %not = xor i32 %5, -1
  %arrayidx12 = getelementptr inbounds nuw i8, ptr %extended, i64 8
  %6 = load i32, ptr %arrayidx12, align 8
  %not13 = xor i32 %6, -1
  br label %for.body

for.body:                                         ; preds = %for.inc, %if.end
  %indvars.iv = phi i64 [ 0, %if.end ], [ %indvars.iv.next, %for.inc ]
  %arrayidx8 = getelementptr inbounds nuw %struct.anon, ptr @NEEDED, i64 %indvars.iv
  %7 = load i32, ptr %arrayidx8, align 16
  %and10 = and i32 %7, %not
  %tobool11.not = icmp eq i32 %and10, 0
  br i1 %tobool11.not, label %lor.lhs.false, label %if.then33

lor.lhs.false:                                    ; preds = %for.body
  %extended16 = getelementptr inbounds nuw i8, ptr %arrayidx8, i64 4
  %8 = load i32, ptr %extended16, align 4
  %and17 = and i32 %8, %not13
  %tobool18.not = icmp eq i32 %and17, 0
  br i1 %tobool18.not, label %lor.lhs.false19, label %if.then33

lor.lhs.false19:                                  ; preds = %lor.lhs.false
  %features23 = getelementptr inbounds nuw i8, ptr %arrayidx8, i64 8
  %9 = load i32, ptr %features23, align 8
  %and24 = and i32 %9, %features.0
  %tobool25.not = icmp eq i32 %and24, 0
  br i1 %tobool25.not, label %lor.lhs.false26, label %if.then33

lor.lhs.false26:                                  ; preds = %lor.lhs.false19
  %saved30 = getelementptr inbounds nuw i8, ptr %arrayidx8, i64 12
  %10 = load i32, ptr %saved30, align 4
  %and31 = and i32 %10, %saved.0
  %tobool32.not = icmp eq i32 %and31, 0
  br i1 %tobool32.not, label %for.inc, label %if.then33

if.then33:                                        ; preds = %lor.lhs.false26, %lor.lhs.false19, %lor.lhs.false, %for.body
  %11 = trunc nuw nsw i64 %indvars.iv to i32
  %add = add nuw nsw i32 %11, 1
  br label %cleanup

for.inc:                                          ; preds = %lor.lhs.false26
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond = icmp eq i64 %indvars.iv.next, 3
  br i1 %exitcond, label %cleanup, label %for.body, !llvm.loop !0

cleanup:                                          ; preds = %for.inc, %if.then33
  %spec.select = phi i32 [ %add, %if.then33 ], [ 4, %for.inc ]
  call void @llvm.lifetime.end.p0(ptr nonnull %seven) #3
  call void @llvm.lifetime.end.p0(ptr nonnull %extended) #3
  call void @llvm.lifetime.end.p0(ptr nonnull %basic) #3
  call void @llvm.lifetime.end.p0(ptr nonnull %leaves) #3
  ret i32 %spec.select
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #1

declare void @igniter_cpuid(i32 noundef, ptr noundef) local_unnamed_addr #2

declare i32 @igniter_xgetbv() local_unnamed_addr #2

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #1

attributes #0 = { nounwind "no-builtins" }
attributes #1 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #2 = { "no-builtins" }
attributes #3 = { nounwind }
attributes #4 = { nobuiltin nounwind "no-builtins" }

!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.mustprogress"}
!2 = !{!"llvm.loop.unroll.disable"}
