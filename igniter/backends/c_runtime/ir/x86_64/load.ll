target triple = "x86_64-unknown-linux-gnu"

; Function Attrs: nounwind
define hidden void @igniter_load_pause(i64 noundef %polls) local_unnamed_addr #0 {
entry:
  %rem = and i64 %polls, 63
  %cmp = icmp eq i64 %rem, 63
  br i1 %cmp, label %if.then, label %if.else

if.then:                                          ; preds = %entry
  %call = tail call i32 @sched_yield() #9
  br label %if.end

if.else:                                          ; preds = %entry
  tail call void @llvm.x86.sse2.pause()
  br label %if.end

if.end:                                           ; preds = %if.else, %if.then
  ret void
}

declare i32 @sched_yield() local_unnamed_addr #1

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn
define hidden void @igniter_load_start(ptr noundef writeonly captures(none) initializes((0, 8), (48, 64)) %load) local_unnamed_addr #2 {
entry:
  %0 = tail call i64 @llvm.readcyclecounter()
  store i64 %0, ptr %load, align 8
  %saved = getelementptr inbounds nuw i8, ptr %load, i64 56
  store i64 0, ptr %saved, align 8
  %lost = getelementptr inbounds nuw i8, ptr %load, i64 48
  store i64 0, ptr %lost, align 8
  ret void
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn
define hidden void @igniter_load_publish(ptr noundef writeonly captures(none) initializes((8, 16), (32, 48)) %load) local_unnamed_addr #2 {
entry:
  %0 = tail call i64 @llvm.readcyclecounter()
  %published = getelementptr inbounds nuw i8, ptr %load, i64 8
  store i64 %0, ptr %published, align 8
  %own = getelementptr inbounds nuw i8, ptr %load, i64 40
  store i64 0, ptr %own, align 8
  %polls = getelementptr inbounds nuw i8, ptr %load, i64 32
  store i64 0, ptr %polls, align 8
  ret void
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(argmem: readwrite)
define hidden void @igniter_load_task(ptr noundef captures(none) %load) local_unnamed_addr #3 {
entry:
  %own = getelementptr inbounds nuw i8, ptr %load, i64 40
  %0 = load i64, ptr %own, align 8
  %inc = add i64 %0, 1
  store i64 %inc, ptr %own, align 8
  ret void
}

; Function Attrs: nounwind
define hidden void @igniter_load_wait(ptr noundef captures(none) %load) local_unnamed_addr #0 {
entry:
  %polls = getelementptr inbounds nuw i8, ptr %load, i64 32
  %0 = load i64, ptr %polls, align 8
  %tobool.not = icmp eq i64 %0, 0
  br i1 %tobool.not, label %if.then, label %if.end

if.then:                                          ; preds = %entry
  %1 = tail call i64 @llvm.readcyclecounter()
  %waiting = getelementptr inbounds nuw i8, ptr %load, i64 16
  store i64 %1, ptr %waiting, align 8
  br label %if.end

if.end:                                           ; preds = %if.then, %entry
  %2 = load i64, ptr %polls, align 8
  %inc = add i64 %2, 1
  store i64 %inc, ptr %polls, align 8
  %rem.i = and i64 %2, 63
  %cmp.i = icmp eq i64 %rem.i, 63
  br i1 %cmp.i, label %if.then.i, label %if.else.i

if.then.i:                                        ; preds = %if.end
  %call.i = tail call i32 @sched_yield() #9
  br label %igniter_load_pause.exit

if.else.i:                                        ; preds = %if.end
  tail call void @llvm.x86.sse2.pause()
  br label %igniter_load_pause.exit

igniter_load_pause.exit:                          ; preds = %if.else.i, %if.then.i
  ret void
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn
define hidden range(i32 0, 2) i32 @igniter_load_ended(ptr noundef captures(none) %load, i64 noundef %count) local_unnamed_addr #2 {
entry:
  %0 = tail call i64 @llvm.readcyclecounter()
  %polls = getelementptr inbounds nuw i8, ptr %load, i64 32
  %1 = load i64, ptr %polls, align 8
  %tobool.not = icmp eq i64 %1, 0
  br i1 %tobool.not, label %if.then, label %if.end

if.then:                                          ; preds = %entry
  %waiting = getelementptr inbounds nuw i8, ptr %load, i64 16
  store i64 %0, ptr %waiting, align 8
  br label %if.end

if.end:                                           ; preds = %if.then, %entry
  %waiting1 = getelementptr inbounds nuw i8, ptr %load, i64 16
  %2 = load i64, ptr %waiting1, align 8
  %cond.i = tail call noundef i64 @llvm.usub.sat.i64(i64 %0, i64 %2)
  %lost = getelementptr inbounds nuw i8, ptr %load, i64 48
  %3 = load i64, ptr %lost, align 8
  %add = add i64 %3, %cond.i
  store i64 %add, ptr %lost, align 8
  %own = getelementptr inbounds nuw i8, ptr %load, i64 40
  %4 = load i64, ptr %own, align 8
  %tobool3.not = icmp eq i64 %4, 0
  br i1 %tobool3.not, label %if.end10, label %if.then4

if.then4:                                         ; preds = %if.end
  %published = getelementptr inbounds nuw i8, ptr %load, i64 8
  %5 = load i64, ptr %published, align 8
  %cond.i24 = tail call noundef i64 @llvm.usub.sat.i64(i64 %2, i64 %5)
  %div = udiv i64 %cond.i24, %4
  %sub = sub i64 %count, %4
  %mul = mul i64 %div, %sub
  %saved = getelementptr inbounds nuw i8, ptr %load, i64 56
  %6 = load i64, ptr %saved, align 8
  %add9 = add i64 %6, %mul
  store i64 %add9, ptr %saved, align 8
  br label %if.end10

if.end10:                                         ; preds = %if.then4, %if.end
  %saved.i = getelementptr inbounds nuw i8, ptr %load, i64 56
  %7 = load i64, ptr %saved.i, align 8
  %div4.i = lshr i64 %7, 1
  %8 = load i64, ptr %load, align 8
  %cond.i.i = tail call noundef i64 @llvm.usub.sat.i64(i64 %0, i64 %8)
  %div15.i = lshr i64 %cond.i.i, 4
  %add.i = add nuw i64 %div15.i, %div4.i
  %cmp.i = icmp ugt i64 %add, %add.i
  %conv.i = zext i1 %cmp.i to i32
  ret i32 %conv.i
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn
define hidden void @igniter_load_stop(ptr noundef writeonly captures(none) initializes((24, 32)) %load) local_unnamed_addr #2 {
entry:
  %0 = tail call i64 @llvm.readcyclecounter()
  %stopped = getelementptr inbounds nuw i8, ptr %load, i64 24
  store i64 %0, ptr %stopped, align 8
  ret void
}

; Function Attrs: mustprogress nofree norecurse nounwind willreturn memory(argmem: readwrite)
define hidden range(i32 0, 2) i32 @igniter_load_alone(ptr noundef captures(none) %history) local_unnamed_addr #4 {
entry:
  %0 = load atomic i64, ptr %history monotonic, align 8
  %tobool = icmp ne i64 %0, 0
  br i1 %tobool, label %if.then, label %if.end

if.then:                                          ; preds = %entry
  %sub = add i64 %0, -1
  store atomic i64 %sub, ptr %history monotonic, align 8
  br label %if.end

if.end:                                           ; preds = %if.then, %entry
  %conv = zext i1 %tobool to i32
  ret i32 %conv
}

; Function Attrs: mustprogress nofree norecurse nounwind willreturn
define hidden void @igniter_load_record(ptr noundef captures(none) %history, ptr noundef captures(none) %load) local_unnamed_addr #5 {
entry:
  %0 = tail call i64 @llvm.readcyclecounter()
  %penalty1 = getelementptr inbounds nuw i8, ptr %history, i64 8
  %1 = load atomic i64, ptr %penalty1 monotonic, align 8
  %stopped = getelementptr inbounds nuw i8, ptr %load, i64 24
  %2 = load i64, ptr %stopped, align 8
  %cond.i = tail call noundef i64 @llvm.usub.sat.i64(i64 %0, i64 %2)
  %lost = getelementptr inbounds nuw i8, ptr %load, i64 48
  %3 = load i64, ptr %lost, align 8
  %add = add i64 %3, %cond.i
  store i64 %add, ptr %lost, align 8
  %saved.i = getelementptr inbounds nuw i8, ptr %load, i64 56
  %4 = load i64, ptr %saved.i, align 8
  %div4.i = lshr i64 %4, 1
  %5 = load i64, ptr %load, align 8
  %cond.i.i = tail call noundef i64 @llvm.usub.sat.i64(i64 %0, i64 %5)
  %div15.i = lshr i64 %cond.i.i, 4
  %add.i = add nuw i64 %div15.i, %div4.i
  %cmp.i.not = icmp ugt i64 %add, %add.i
  br i1 %cmp.i.not, label %if.then, label %if.else

if.then:                                          ; preds = %entry
  %tobool4.not = icmp eq i64 %1, 0
  %mul = shl i64 %1, 1
  %6 = tail call i64 @llvm.umin.i64(i64 %mul, i64 32)
  %spec.store.select = select i1 %tobool4.not, i64 1, i64 %6
  store atomic i64 %spec.store.select, ptr %history monotonic, align 8
  br label %if.end6

if.else:                                          ; preds = %entry
  %div19 = lshr i64 %1, 1
  br label %if.end6

if.end6:                                          ; preds = %if.else, %if.then
  %penalty.0 = phi i64 [ %spec.store.select, %if.then ], [ %div19, %if.else ]
  store atomic i64 %penalty.0, ptr %penalty1 monotonic, align 8
  ret void
}

; Function Attrs: nounwind
declare void @llvm.x86.sse2.pause() #6

; Function Attrs: nocallback nofree nosync nounwind willreturn
declare i64 @llvm.readcyclecounter() #7

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.usub.sat.i64(i64, i64) #8

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.umin.i64(i64, i64) #8

attributes #0 = { nounwind "no-builtins" }
attributes #1 = { "no-builtins" }
attributes #2 = { mustprogress nofree norecurse nosync nounwind willreturn "no-builtins" }
attributes #3 = { mustprogress nofree norecurse nosync nounwind willreturn memory(argmem: readwrite) "no-builtins" }
attributes #4 = { mustprogress nofree norecurse nounwind willreturn memory(argmem: readwrite) "no-builtins" }
attributes #5 = { mustprogress nofree norecurse nounwind willreturn "no-builtins" }
attributes #6 = { nounwind }
attributes #7 = { nocallback nofree nosync nounwind willreturn }
attributes #8 = { nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #9 = { nobuiltin nounwind "no-builtins" }
