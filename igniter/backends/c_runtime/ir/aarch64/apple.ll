target triple = "aarch64-unknown-linux-gnu"

%struct.anon = type { ptr, i64, i64 }

@FEATURES = internal unnamed_addr constant [11 x %struct.anon] [%struct.anon { ptr @.str, i64 16, i64 8 }, %struct.anon { ptr @.str.1, i64 16, i64 10 }, %struct.anon { ptr @.str.2, i64 16, i64 12 }, %struct.anon { ptr @.str.3, i64 16, i64 14 }, %struct.anon { ptr @.str.4, i64 16, i64 15 }, %struct.anon { ptr @.str.5, i64 16, i64 17 }, %struct.anon { ptr @.str.6, i64 16, i64 20 }, %struct.anon { ptr @.str.7, i64 16, i64 23 }, %struct.anon { ptr @.str.8, i64 16, i64 26 }, %struct.anon { ptr @.str.9, i64 26, i64 13 }, %struct.anon { ptr @.str.10, i64 26, i64 14 }], align 8
@.str = private unnamed_addr constant [25 x i8] c"hw.optional.arm.FEAT_LSE\00", align 1
@.str.1 = private unnamed_addr constant [26 x i8] c"hw.optional.arm.FEAT_FP16\00", align 1
@.str.2 = private unnamed_addr constant [25 x i8] c"hw.optional.arm.FEAT_RDM\00", align 1
@.str.3 = private unnamed_addr constant [26 x i8] c"hw.optional.arm.FEAT_FCMA\00", align 1
@.str.4 = private unnamed_addr constant [27 x i8] c"hw.optional.arm.FEAT_LRCPC\00", align 1
@.str.5 = private unnamed_addr constant [26 x i8] c"hw.optional.arm.FEAT_SHA3\00", align 1
@.str.6 = private unnamed_addr constant [29 x i8] c"hw.optional.arm.FEAT_DotProd\00", align 1
@.str.7 = private unnamed_addr constant [25 x i8] c"hw.optional.arm.FEAT_FHM\00", align 1
@.str.8 = private unnamed_addr constant [28 x i8] c"hw.optional.arm.FEAT_LRCPC2\00", align 1
@.str.9 = private unnamed_addr constant [26 x i8] c"hw.optional.arm.FEAT_I8MM\00", align 1
@.str.10 = private unnamed_addr constant [26 x i8] c"hw.optional.arm.FEAT_BF16\00", align 1

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(none)
define hidden noundef i32 @open(ptr noundef readnone captures(none) %name, i32 noundef %flags, ...) local_unnamed_addr #0 {
entry:
  ret i32 -1
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(none)
define hidden noundef i64 @read(i32 noundef %file, ptr noundef readnone captures(none) %buffer, i64 noundef %size) local_unnamed_addr #0 {
entry:
  ret i64 -1
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(none)
define hidden noundef i32 @close(i32 noundef %file) local_unnamed_addr #0 {
entry:
  ret i32 -1
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(none)
define hidden noundef i32 @madvise(ptr noundef readnone captures(none) %place, i64 noundef %size, i32 noundef %advice) local_unnamed_addr #0 {
entry:
  ret i32 -1
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(none)
define hidden noundef i32 @sched_getaffinity(i32 noundef %process, i64 noundef %size, ptr noundef readnone captures(none) %mask) local_unnamed_addr #0 {
entry:
  ret i32 -1
}

; Function Attrs: nounwind
define hidden i64 @getauxval(i64 noundef %kind) local_unnamed_addr #1 {
entry:
  %value = alloca i32, align 4
  %size = alloca i64, align 8
  br label %for.body

for.cond.cleanup:                                 ; preds = %if.end
  ret i64 %found.1

for.body:                                         ; preds = %if.end, %entry
  %k.013 = phi i64 [ 0, %entry ], [ %inc, %if.end ]
  %found.012 = phi i64 [ -1, %entry ], [ %found.1, %if.end ]
  call void @llvm.lifetime.start.p0(ptr nonnull %value) #4
  store i32 1, ptr %value, align 4
  call void @llvm.lifetime.start.p0(ptr nonnull %size) #4
  store i64 4, ptr %size, align 8
  %arrayidx = getelementptr inbounds nuw %struct.anon, ptr @FEATURES, i64 %k.013
  %kind1 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 8
  %0 = load i64, ptr %kind1, align 8
  %cmp2 = icmp eq i64 %0, %kind
  br i1 %cmp2, label %land.lhs.true, label %if.end

land.lhs.true:                                    ; preds = %for.body
  %1 = load ptr, ptr %arrayidx, align 8
  %call = call i32 @sysctlbyname(ptr noundef %1, ptr noundef nonnull %value, ptr noundef nonnull %size, ptr noundef null, i64 noundef 0) #5
  %tobool = icmp ne i32 %call, 0
  %2 = load i32, ptr %value, align 4
  %tobool5 = icmp ne i32 %2, 0
  %or.cond = select i1 %tobool, i1 true, i1 %tobool5
  br i1 %or.cond, label %if.end, label %if.then

if.then:                                          ; preds = %land.lhs.true
  %bit = getelementptr inbounds nuw i8, ptr %arrayidx, i64 16
  %3 = load i64, ptr %bit, align 8
  %shl = shl nuw i64 1, %3
  %not = xor i64 %shl, -1
  %and = and i64 %found.012, %not
  br label %if.end

if.end:                                           ; preds = %if.then, %land.lhs.true, %for.body
  %found.1 = phi i64 [ %found.012, %land.lhs.true ], [ %and, %if.then ], [ %found.012, %for.body ]
  call void @llvm.lifetime.end.p0(ptr nonnull %size) #4
  call void @llvm.lifetime.end.p0(ptr nonnull %value) #4
  %inc = add nuw nsw i64 %k.013, 1
  %exitcond.not = icmp eq i64 %inc, 11
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body, !llvm.loop !0
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #2

declare i32 @sysctlbyname(ptr noundef, ptr noundef, ptr noundef, ptr noundef, i64 noundef) local_unnamed_addr #3

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #2

attributes #0 = { mustprogress nofree norecurse nosync nounwind willreturn memory(none) "no-builtins" }
attributes #1 = { nounwind "no-builtins" }
attributes #2 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #3 = { "no-builtins" }
attributes #4 = { nounwind }
attributes #5 = { nobuiltin nounwind "no-builtins" }

!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.mustprogress"}
!2 = !{!"llvm.loop.unroll.disable"}
