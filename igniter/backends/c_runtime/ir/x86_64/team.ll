target triple = "x86_64-unknown-linux-gnu"

%struct.igniter_history = type { i64, i64 }
%struct.igniter_job = type { ptr, i64, ptr, [40 x i8] }
%struct.igniter_team = type { i64, [56 x i8], i64, [56 x i8], i64, [56 x i8], i64, [56 x i8], [2 x %struct.igniter_job], ptr, ptr, ptr, ptr, i64, [24 x i8], %struct.igniter_load }
%struct.igniter_load = type { i64, i64, i64, i64, i64, i64, i64, i64 }

@igniter_team_run.history = internal global %struct.igniter_history zeroinitializer, align 8

; Function Attrs: nounwind
define hidden void @igniter_team_for(ptr noundef %context, ptr noundef %task, i64 noundef %count, ptr noundef %data) #0 {
entry:
  %done = getelementptr inbounds nuw i8, ptr %context, i64 192
  %0 = load atomic i64, ptr %done monotonic, align 64
  %tobool.not = icmp eq i64 %0, 0
  br i1 %tobool.not, label %if.end, label %for.cond.preheader

for.cond.preheader:                               ; preds = %entry
  %cmp60.not = icmp eq i64 %count, 0
  br i1 %cmp60.not, label %cleanup, label %for.body

for.body:                                         ; preds = %for.body, %for.cond.preheader
  %index.061 = phi i64 [ %inc, %for.body ], [ 0, %for.cond.preheader ]
  tail call void %task(ptr noundef %data, i64 noundef %index.061) #3
  %inc = add nuw i64 %index.061, 1
  %exitcond.not = icmp eq i64 %inc, %count
  br i1 %exitcond.not, label %cleanup, label %for.body, !llvm.loop !0

if.end:                                           ; preds = %entry
  %ticket = getelementptr inbounds nuw i8, ptr %context, i64 64
  %1 = load atomic i64, ptr %ticket monotonic, align 64
  %shr = and i64 %1, -4294967296
  %shl = add i64 %shr, 4294967296
  %jobs = getelementptr inbounds nuw i8, ptr %context, i64 256
  %shr2 = lshr exact i64 %shl, 32
  %and = and i64 %shr2, 1
  %arrayidx = getelementptr inbounds nuw %struct.igniter_job, ptr %jobs, i64 %and
  %2 = ptrtoint ptr %task to i64
  store atomic i64 %2, ptr %arrayidx release, align 64
  %count4 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 8
  store atomic i64 %count, ptr %count4 release, align 8
  %data6 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 16
  %3 = ptrtoint ptr %data to i64
  store atomic i64 %3, ptr %data6 release, align 16
  %finished = getelementptr inbounds nuw i8, ptr %context, i64 128
  store atomic i64 0, ptr %finished monotonic, align 64
  store atomic i64 %shl, ptr %ticket release, align 64
  %load = getelementptr inbounds nuw i8, ptr %context, i64 448
  tail call void @igniter_load_publish(ptr noundef nonnull %load) #3
  %4 = atomicrmw add ptr %ticket, i64 1 acq_rel, align 64
  %and1662 = and i64 %4, 4294967295
  %cmp1763 = icmp ult i64 %and1662, %count
  br i1 %cmp1763, label %for.body19, label %while.cond.preheader

while.cond.preheader:                             ; preds = %for.body19, %if.end
  %5 = load atomic i64, ptr %finished acquire, align 64
  %cmp2765 = icmp ult i64 %5, %count
  br i1 %cmp2765, label %while.body, label %while.end

for.body19:                                       ; preds = %for.body19, %if.end
  %and1664 = phi i64 [ %and16, %for.body19 ], [ %and1662, %if.end ]
  tail call void %task(ptr noundef %data, i64 noundef %and1664) #3
  %6 = atomicrmw add ptr %finished, i64 1 acq_rel, align 64
  tail call void @igniter_load_task(ptr noundef nonnull %load) #3
  %7 = atomicrmw add ptr %ticket, i64 1 acq_rel, align 64
  %and16 = and i64 %7, 4294967295
  %cmp17 = icmp ult i64 %and16, %count
  br i1 %cmp17, label %for.body19, label %while.cond.preheader, !llvm.loop !3

while.body:                                       ; preds = %while.body, %while.cond.preheader
  tail call void @igniter_load_wait(ptr noundef nonnull %load) #3
  %8 = load atomic i64, ptr %finished acquire, align 64
  %cmp27 = icmp ult i64 %8, %count
  br i1 %cmp27, label %while.body, label %while.end, !llvm.loop !4

while.end:                                        ; preds = %while.body, %while.cond.preheader
  %call = tail call i32 @igniter_load_ended(ptr noundef nonnull %load, i64 noundef %count) #3
  %tobool30.not = icmp eq i32 %call, 0
  br i1 %tobool30.not, label %cleanup, label %if.then31

if.then31:                                        ; preds = %while.end
  store atomic i64 1, ptr %done release, align 64
  br label %cleanup

cleanup:                                          ; preds = %if.then31, %while.end, %for.body, %for.cond.preheader
  ret void
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #1

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #1

declare void @igniter_load_publish(ptr noundef) local_unnamed_addr #2

declare void @igniter_load_task(ptr noundef) local_unnamed_addr #2

declare void @igniter_load_wait(ptr noundef) local_unnamed_addr #2

declare i32 @igniter_load_ended(ptr noundef, i64 noundef) local_unnamed_addr #2

; Function Attrs: nounwind
define hidden void @igniter_team_member(ptr noundef %data, i64 %index) #0 {
entry:
  %0 = atomicrmw xchg ptr %data, i64 1 acq_rel, align 64
  %tobool.not = icmp eq i64 %0, 0
  br i1 %tobool.not, label %if.end, label %if.then

if.then:                                          ; preds = %entry
  %done.i = getelementptr inbounds nuw i8, ptr %data, i64 192
  %1 = load atomic i64, ptr %done.i acquire, align 64
  %tobool.not12.i = icmp eq i64 %1, 0
  br i1 %tobool.not12.i, label %while.body.lr.ph.i, label %cleanup

while.body.lr.ph.i:                               ; preds = %if.then
  %ticket.i.i = getelementptr inbounds nuw i8, ptr %data, i64 64
  %looks.i = getelementptr inbounds nuw i8, ptr %data, i64 416
  %jobs.i.i = getelementptr inbounds nuw i8, ptr %data, i64 256
  %finished.i.i = getelementptr inbounds nuw i8, ptr %data, i64 128
  br label %while.body.i

while.body.i:                                     ; preds = %if.end3.i, %while.body.lr.ph.i
  %idle.013.i = phi i64 [ 0, %while.body.lr.ph.i ], [ %idle.1.i, %if.end3.i ]
  %2 = load atomic i64, ptr %ticket.i.i acquire, align 64
  %and.i.i = and i64 %2, 4294967295
  %shr.i.i = lshr i64 %2, 32
  %and1.i.i = and i64 %shr.i.i, 1
  %arrayidx.i.i = getelementptr inbounds nuw %struct.igniter_job, ptr %data, i64 %and1.i.i
  %count.i.i = getelementptr inbounds nuw i8, ptr %arrayidx.i.i, i64 264
  %3 = load atomic i64, ptr %count.i.i monotonic, align 8
  %cmp.i.not.i = icmp ult i64 %and.i.i, %3
  br i1 %cmp.i.not.i, label %if.then.i, label %if.else.i

if.then.i:                                        ; preds = %while.body.i
  %4 = atomicrmw add ptr %ticket.i.i, i64 1 acq_rel, align 64
  %shr.i8.i = lshr i64 %4, 32
  %and.i9.i = and i64 %shr.i8.i, 1
  %arrayidx.i10.i = getelementptr inbounds nuw %struct.igniter_job, ptr %jobs.i.i, i64 %and.i9.i
  %5 = load atomic i64, ptr %arrayidx.i10.i acquire, align 64
  %6 = inttoptr i64 %5 to ptr
  %count4.i.i = getelementptr inbounds nuw i8, ptr %arrayidx.i10.i, i64 8
  %7 = load atomic i64, ptr %count4.i.i acquire, align 8
  %data6.i.i = getelementptr inbounds nuw i8, ptr %arrayidx.i10.i, i64 16
  %8 = load atomic i64, ptr %data6.i.i acquire, align 16
  %9 = inttoptr i64 %8 to ptr
  %10 = load atomic i64, ptr %ticket.i.i acquire, align 64
  %shr10.i.i = lshr i64 %10, 32
  %cmp.i11.i = icmp eq i64 %shr10.i.i, %shr.i8.i
  br i1 %cmp.i11.i, label %land.lhs.true.i.i, label %if.end3.i

land.lhs.true.i.i:                                ; preds = %if.then.i
  %and12.i.i = and i64 %4, 4294967295
  %cmp13.i.i = icmp ult i64 %and12.i.i, %7
  br i1 %cmp13.i.i, label %if.then.i.i, label %if.end3.i

if.then.i.i:                                      ; preds = %land.lhs.true.i.i
  tail call void %6(ptr noundef %9, i64 noundef %and12.i.i) #3
  %11 = atomicrmw add ptr %finished.i.i, i64 1 acq_rel, align 64
  br label %if.end3.i

if.else.i:                                        ; preds = %while.body.i
  %inc.i = add i64 %idle.013.i, 1
  %12 = load i64, ptr %looks.i, align 32
  %cmp.i = icmp ugt i64 %inc.i, %12
  br i1 %cmp.i, label %cleanup, label %if.end.i

if.end.i:                                         ; preds = %if.else.i
  tail call void @igniter_load_pause(i64 noundef %inc.i) #3
  br label %if.end3.i

if.end3.i:                                        ; preds = %if.end.i, %if.then.i.i, %land.lhs.true.i.i, %if.then.i
  %idle.1.i = phi i64 [ %inc.i, %if.end.i ], [ 0, %if.then.i ], [ 0, %land.lhs.true.i.i ], [ 0, %if.then.i.i ]
  %13 = load atomic i64, ptr %done.i acquire, align 64
  %tobool.not.i = icmp eq i64 %13, 0
  br i1 %tobool.not.i, label %while.body.i, label %cleanup, !llvm.loop !5

if.end:                                           ; preds = %entry
  %load = getelementptr inbounds nuw i8, ptr %data, i64 448
  tail call void @igniter_load_start(ptr noundef nonnull %load) #3
  %program = getelementptr inbounds nuw i8, ptr %data, i64 384
  %14 = load ptr, ptr %program, align 64
  %buffers = getelementptr inbounds nuw i8, ptr %data, i64 392
  %15 = load ptr, ptr %buffers, align 8
  %symbols = getelementptr inbounds nuw i8, ptr %data, i64 400
  %16 = load ptr, ptr %symbols, align 16
  %scratch = getelementptr inbounds nuw i8, ptr %data, i64 408
  %17 = load ptr, ptr %scratch, align 8
  tail call void %14(ptr noundef %15, ptr noundef %16, ptr noundef %17, ptr noundef nonnull @igniter_team_for, ptr noundef %data) #3
  tail call void @igniter_load_stop(ptr noundef nonnull %load) #3
  %done = getelementptr inbounds nuw i8, ptr %data, i64 192
  store atomic i64 1, ptr %done release, align 64
  br label %cleanup

cleanup:                                          ; preds = %if.end, %if.end3.i, %if.else.i, %if.then
  ret void
}

declare void @igniter_load_start(ptr noundef) local_unnamed_addr #2

declare void @igniter_load_stop(ptr noundef) local_unnamed_addr #2

; Function Attrs: nounwind
define hidden void @igniter_team_run(ptr noundef %program, i64 noundef %runs, i64 noundef %looks, ptr noundef %buffers, ptr noundef %symbols, ptr noundef %scratch, ptr noundef readonly captures(address_is_null) %parallel_for, ptr noundef %context) local_unnamed_addr #0 {
entry:
  %team = alloca %struct.igniter_team, align 64
  %tobool.not = icmp eq ptr %parallel_for, null
  br i1 %tobool.not, label %if.then, label %lor.lhs.false

lor.lhs.false:                                    ; preds = %entry
  %call = tail call i32 @igniter_load_alone(ptr noundef nonnull @igniter_team_run.history) #3
  %tobool1.not = icmp eq i32 %call, 0
  br i1 %tobool1.not, label %if.end, label %if.then

if.then:                                          ; preds = %lor.lhs.false, %entry
  tail call void %program(ptr noundef %buffers, ptr noundef %symbols, ptr noundef %scratch, ptr noundef null, ptr noundef null) #3
  br label %return

if.end:                                           ; preds = %lor.lhs.false
  call void @llvm.lifetime.start.p0(ptr nonnull %team) #4
  %done = getelementptr inbounds nuw i8, ptr %team, i64 192
  store i64 0, ptr %done, align 64
  %finished = getelementptr inbounds nuw i8, ptr %team, i64 128
  store i64 0, ptr %finished, align 64
  %ticket = getelementptr inbounds nuw i8, ptr %team, i64 64
  store i64 0, ptr %ticket, align 64
  store i64 0, ptr %team, align 64
  %jobs = getelementptr inbounds nuw i8, ptr %team, i64 256
  store ptr null, ptr %jobs, align 64
  %count.i = getelementptr inbounds nuw i8, ptr %team, i64 264
  store i64 0, ptr %count.i, align 8
  %data.i = getelementptr inbounds nuw i8, ptr %team, i64 272
  store ptr null, ptr %data.i, align 16
  %arrayidx3 = getelementptr inbounds nuw i8, ptr %team, i64 320
  store ptr null, ptr %arrayidx3, align 64
  %count.i14 = getelementptr inbounds nuw i8, ptr %team, i64 328
  store i64 0, ptr %count.i14, align 8
  %data.i15 = getelementptr inbounds nuw i8, ptr %team, i64 336
  store ptr null, ptr %data.i15, align 16
  %program4 = getelementptr inbounds nuw i8, ptr %team, i64 384
  store ptr %program, ptr %program4, align 64
  %buffers5 = getelementptr inbounds nuw i8, ptr %team, i64 392
  store ptr %buffers, ptr %buffers5, align 8
  %symbols6 = getelementptr inbounds nuw i8, ptr %team, i64 400
  store ptr %symbols, ptr %symbols6, align 16
  %scratch7 = getelementptr inbounds nuw i8, ptr %team, i64 408
  store ptr %scratch, ptr %scratch7, align 8
  %looks8 = getelementptr inbounds nuw i8, ptr %team, i64 416
  store i64 %looks, ptr %looks8, align 32
  call void %parallel_for(ptr noundef %context, ptr noundef nonnull @igniter_team_member, i64 noundef %runs, ptr noundef nonnull %team) #3
  %load = getelementptr inbounds nuw i8, ptr %team, i64 448
  call void @igniter_load_record(ptr noundef nonnull @igniter_team_run.history, ptr noundef nonnull %load) #3
  call void @llvm.lifetime.end.p0(ptr nonnull %team) #4
  br label %return

return:                                           ; preds = %if.end, %if.then
  ret void
}

declare i32 @igniter_load_alone(ptr noundef) local_unnamed_addr #2

declare void @igniter_load_record(ptr noundef, ptr noundef) local_unnamed_addr #2

declare void @igniter_load_pause(i64 noundef) local_unnamed_addr #2

attributes #0 = { nounwind "no-builtins" }
attributes #1 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #2 = { "no-builtins" }
attributes #3 = { nobuiltin nounwind "no-builtins" }
attributes #4 = { nounwind }

!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.mustprogress"}
!2 = !{!"llvm.loop.unroll.disable"}
!3 = distinct !{!3, !1, !2}
!4 = distinct !{!4, !1, !2}
!5 = distinct !{!5, !1, !2}
