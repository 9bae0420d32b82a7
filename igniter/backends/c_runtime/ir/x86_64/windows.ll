target triple = "x86_64-unknown-linux-gnu"

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

; Function Attrs: nounwind
define hidden noundef i32 @sched_yield() local_unnamed_addr #1 {
entry:
  %call = tail call i32 @SwitchToThread() #4
  ret i32 0
}

declare i32 @SwitchToThread() local_unnamed_addr #2

; Function Attrs: nounwind
define hidden range(i32 -1, 9) i32 @sched_getaffinity(i32 noundef %process, i64 noundef %size, ptr noundef writeonly captures(none) %mask) local_unnamed_addr #1 {
entry:
  %own = alloca i64, align 8
  %all = alloca i64, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %own) #5
  store i64 0, ptr %own, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %all) #5
  store i64 0, ptr %all, align 8
  %cmp = icmp ult i64 %size, 8
  br i1 %cmp, label %cleanup, label %lor.lhs.false

lor.lhs.false:                                    ; preds = %entry
  %call = tail call ptr @GetCurrentProcess() #4
  %call1 = call i32 @GetProcessAffinityMask(ptr noundef %call, ptr noundef nonnull %own, ptr noundef nonnull %all) #4
  %tobool.not = icmp eq i32 %call1, 0
  br i1 %tobool.not, label %cleanup, label %if.end

if.end:                                           ; preds = %lor.lhs.false
  %0 = load i64, ptr %own, align 8
  store i64 %0, ptr %mask, align 1
  br label %cleanup

cleanup:                                          ; preds = %if.end, %lor.lhs.false, %entry
  %retval.0 = phi i32 [ 8, %if.end ], [ -1, %lor.lhs.false ], [ -1, %entry ]
  call void @llvm.lifetime.end.p0(ptr nonnull %all) #5
  call void @llvm.lifetime.end.p0(ptr nonnull %own) #5
  ret i32 %retval.0
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #3

declare i32 @GetProcessAffinityMask(ptr noundef, ptr noundef, ptr noundef) local_unnamed_addr #2

declare ptr @GetCurrentProcess() local_unnamed_addr #2

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #3

attributes #0 = { mustprogress nofree norecurse nosync nounwind willreturn memory(none) "no-builtins" }
attributes #1 = { nounwind "no-builtins" }
attributes #2 = { "no-builtins" }
attributes #3 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #4 = { nobuiltin nounwind "no-builtins" }
attributes #5 = { nounwind }
