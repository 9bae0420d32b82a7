target triple = "x86_64-unknown-linux-gnu"

%struct.anon = type { i32, i32, i32, i32 }

@NEEDED = internal unnamed_addr constant [3 x %struct.anon] [%struct.anon { i32 9970177, i32 1, i32 0, i32 0 }, %struct.anon { i32 943722496, i32 32, i32 296, i32 6 }, %struct.anon { i32 0, i32 0, i32 -805109760, i32 230 }], align 16

; Function Attrs: nounwind
define hidden void @igniter_cpu_words(ptr noundef captures(none) %words) local_unnamed_addr #0 {
entry:
  %out = alloca [4 x i32], align 16
  call void @llvm.lifetime.start.p0(ptr nonnull %out) #4
  br label %for.body

for.cond.cleanup:                                 ; preds = %for.body
  call void @igniter_cpuid(i32 noundef 0, i32 noundef 0, ptr noundef nonnull %out) #5
  %0 = load i32, ptr %out, align 16
  call void @igniter_cpuid(i32 noundef 1, i32 noundef 0, ptr noundef nonnull %out) #5
  %arrayidx3 = getelementptr inbounds nuw i8, ptr %out, i64 8
  %1 = load i32, ptr %arrayidx3, align 8
  store i32 %1, ptr %words, align 4
  call void @igniter_cpuid(i32 noundef -2147483648, i32 noundef 0, ptr noundef nonnull %out) #5
  %2 = load i32, ptr %out, align 16
  %cmp7 = icmp ugt i32 %2, -2147483648
  br i1 %cmp7, label %if.then, label %if.end

for.body:                                         ; preds = %for.body, %entry
  %indvars.iv = phi i64 [ 0, %entry ], [ %indvars.iv.next, %for.body ]
  %arrayidx = getelementptr inbounds nuw i32, ptr %words, i64 %indvars.iv
  store i32 0, ptr %arrayidx, align 4
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, 9
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body, !llvm.loop !0

if.then:                                          ; preds = %for.cond.cleanup
  call void @igniter_cpuid(i32 noundef -2147483647, i32 noundef 0, ptr noundef nonnull %out) #5
  %3 = load i32, ptr %arrayidx3, align 8
  %arrayidx10 = getelementptr inbounds nuw i8, ptr %words, i64 24
  store i32 %3, ptr %arrayidx10, align 4
  br label %if.end

if.end:                                           ; preds = %if.then, %for.cond.cleanup
  %4 = load i32, ptr %words, align 4
  %and = and i32 %4, 134217728
  %tobool.not = icmp eq i32 %and, 0
  br i1 %tobool.not, label %if.end14, label %if.then12

if.then12:                                        ; preds = %if.end
  %call = call i32 @igniter_xgetbv() #5
  %arrayidx13 = getelementptr inbounds nuw i8, ptr %words, i64 32
  store i32 %call, ptr %arrayidx13, align 4
  br label %if.end14

if.end14:                                         ; preds = %if.then12, %if.end
  %cmp15 = icmp ult i32 %0, 7
  br i1 %cmp15, label %cleanup, label %if.end17

if.end17:                                         ; preds = %if.end14
  call void @igniter_cpuid(i32 noundef 7, i32 noundef 0, ptr noundef nonnull %out) #5
  %arrayidx19 = getelementptr inbounds nuw i8, ptr %out, i64 4
  %5 = load i32, ptr %arrayidx19, align 4
  %arrayidx20 = getelementptr inbounds nuw i8, ptr %words, i64 4
  store i32 %5, ptr %arrayidx20, align 4
  %6 = load i32, ptr %arrayidx3, align 8
  %arrayidx22 = getelementptr inbounds nuw i8, ptr %words, i64 8
  store i32 %6, ptr %arrayidx22, align 4
  %arrayidx23 = getelementptr inbounds nuw i8, ptr %out, i64 12
  %7 = load i32, ptr %arrayidx23, align 4
  %arrayidx24 = getelementptr inbounds nuw i8, ptr %words, i64 12
  store i32 %7, ptr %arrayidx24, align 4
  %8 = load i32, ptr %out, align 16
  %cmp26 = icmp eq i32 %8, 0
  br i1 %cmp26, label %cleanup, label %if.end28

if.end28:                                         ; preds = %if.end17
  call void @igniter_cpuid(i32 noundef 7, i32 noundef 1, ptr noundef nonnull %out) #5
  %9 = load i32, ptr %out, align 16
  %arrayidx31 = getelementptr inbounds nuw i8, ptr %words, i64 16
  store i32 %9, ptr %arrayidx31, align 4
  %10 = load i32, ptr %arrayidx23, align 4
  %arrayidx33 = getelementptr inbounds nuw i8, ptr %words, i64 20
  store i32 %10, ptr %arrayidx33, align 4
  %cmp34 = icmp ult i32 %0, 36
  %and36 = and i32 %10, 524288
  %tobool37.not = icmp eq i32 %and36, 0
  %or.cond = select i1 %cmp34, i1 true, i1 %tobool37.not
  br i1 %or.cond, label %cleanup, label %if.end39

if.end39:                                         ; preds = %if.end28
  call void @igniter_cpuid(i32 noundef 36, i32 noundef 0, ptr noundef nonnull %out) #5
  %11 = load i32, ptr %arrayidx19, align 4
  %and42 = and i32 %11, 255
  %cmp43 = icmp samesign ult i32 %and42, 32
  %notmask = shl nsw i32 -1, %and42
  %sub = xor i32 %notmask, -1
  %cond = select i1 %cmp43, i32 %sub, i32 -1
  %arrayidx44 = getelementptr inbounds nuw i8, ptr %words, i64 28
  store i32 %cond, ptr %arrayidx44, align 4
  br label %cleanup

cleanup:                                          ; preds = %if.end39, %if.end28, %if.end17, %if.end14
  call void @llvm.lifetime.end.p0(ptr nonnull %out) #4
  ret void
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #1

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #1

declare void @igniter_cpuid(i32 noundef, i32 noundef, ptr noundef) local_unnamed_addr #2

declare i32 @igniter_xgetbv() local_unnamed_addr #2

; Function Attrs: nofree norecurse nosync nounwind memory(argmem: read)
define hidden range(i32 1, 5) i32 @igniter_cpu_level(ptr noundef readonly captures(none) %words) local_unnamed_addr #3 {
entry:
  %0 = load i32, ptr %words, align 4
  %not = xor i32 %0, -1
  %arrayidx2 = getelementptr inbounds nuw i8, ptr %words, i64 24
  %arrayidx9 = getelementptr inbounds nuw i8, ptr %words, i64 4
  %arrayidx16 = getelementptr inbounds nuw i8, ptr %words, i64 32
  br label %for.body

for.body:                                         ; preds = %for.inc, %entry
  %indvars.iv = phi i64 [ 0, %entry ], [ %indvars.iv.next, %for.inc ]
  %arrayidx1 = getelementptr inbounds nuw %struct.anon, ptr @NEEDED, i64 %indvars.iv
  %1 = load i32, ptr %arrayidx1, align 16
  %and = and i32 %1, %not
  %tobool.not = icmp eq i32 %and, 0
  br i1 %tobool.not, label %lor.lhs.false, label %if.then

lor.lhs.false:                                    ; preds = %for.body
  %2 = load i32, ptr %arrayidx2, align 4
  %not3 = xor i32 %2, -1
  %extended = getelementptr inbounds nuw i8, ptr %arrayidx1, i64 4
  %3 = load i32, ptr %extended, align 4
  %and6 = and i32 %3, %not3
  %tobool7.not = icmp eq i32 %and6, 0
  br i1 %tobool7.not, label %lor.lhs.false8, label %if.then

lor.lhs.false8:                                   ; preds = %lor.lhs.false
  %4 = load i32, ptr %arrayidx9, align 4
  %not10 = xor i32 %4, -1
  %features = getelementptr inbounds nuw i8, ptr %arrayidx1, i64 8
  %5 = load i32, ptr %features, align 8
  %and13 = and i32 %5, %not10
  %tobool14.not = icmp eq i32 %and13, 0
  br i1 %tobool14.not, label %lor.lhs.false15, label %if.then

lor.lhs.false15:                                  ; preds = %lor.lhs.false8
  %6 = load i32, ptr %arrayidx16, align 4
  %not17 = xor i32 %6, -1
  %saved = getelementptr inbounds nuw i8, ptr %arrayidx1, i64 12
  %7 = load i32, ptr %saved, align 4
  %and20 = and i32 %7, %not17
  %tobool21.not = icmp eq i32 %and20, 0
  br i1 %tobool21.not, label %for.inc, label %if.then

if.then:                                          ; preds = %lor.lhs.false15, %lor.lhs.false8, %lor.lhs.false, %for.body
  %8 = trunc nuw nsw i64 %indvars.iv to i32
  %add = add nuw nsw i32 %8, 1
  br label %cleanup

for.inc:                                          ; preds = %lor.lhs.false15
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond = icmp eq i64 %indvars.iv.next, 3
  br i1 %exitcond, label %cleanup, label %for.body, !llvm.loop !3

cleanup:                                          ; preds = %for.inc, %if.then
  %spec.select = phi i32 [ %add, %if.then ], [ 4, %for.inc ]
  ret i32 %spec.select
}

attributes #0 = { nounwind "no-builtins" }
attributes #1 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #2 = { "no-builtins" }
attributes #3 = { nofree norecurse nosync nounwind memory(argmem: read) "no-builtins" }
attributes #4 = { nounwind }
attributes #5 = { nobuiltin nounwind "no-builtins" }

!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.mustprogress"}
!2 = !{!"llvm.loop.unroll.disable"}
!3 = distinct !{!3, !1, !2}
