target triple = "x86_64-unknown-linux-gnu"

@.str = private unnamed_addr constant [18 x i8] c"/proc/self/cgroup\00", align 1
@.str.1 = private unnamed_addr constant [15 x i8] c"/sys/fs/cgroup\00", align 1
@.str.2 = private unnamed_addr constant [4 x i8] c"cpu\00", align 1
@.str.3 = private unnamed_addr constant [19 x i8] c"/sys/fs/cgroup/cpu\00", align 1
@.str.4 = private unnamed_addr constant [9 x i8] c"/cpu.max\00", align 1
@.str.5 = private unnamed_addr constant [18 x i8] c"/cpu.cfs_quota_us\00", align 1
@.str.6 = private unnamed_addr constant [19 x i8] c"/cpu.cfs_period_us\00", align 1

; Function Attrs: nounwind
define hidden i64 @igniter_cpu_quota() local_unnamed_addr #0 {
entry:
  %groups = alloca [4096 x i8], align 16
  call void @llvm.lifetime.start.p0(ptr nonnull %groups) #4
  %call.i = tail call i32 (ptr, i32, ...) @open(ptr noundef nonnull @.str, i32 noundef 524288) #5
  %cmp.i = icmp slt i32 %call.i, 0
  br i1 %cmp.i, label %cleanup, label %if.end.i

if.end.i:                                         ; preds = %entry
  %call1.i = call i64 @read(i32 noundef %call.i, ptr noundef nonnull %groups, i64 noundef 4095) #5
  %call2.i = call i32 @close(i32 noundef %call.i) #5
  %cmp3.i = icmp slt i64 %call1.i, 1
  %cond.i = call i64 @llvm.smax.i64(i64 %call1.i, i64 0)
  %arrayidx.i = getelementptr inbounds nuw i8, ptr %groups, i64 %cond.i
  store i8 0, ptr %arrayidx.i, align 1
  br i1 %cmp3.i, label %cleanup, label %for.cond

for.cond:                                         ; preds = %if.end28, %if.end.i
  %line.0 = phi ptr [ %cond35.idx.sroa.sel.idx.sroa.sel.idx.sroa.sel, %if.end28 ], [ %groups, %if.end.i ]
  %least.0 = phi i64 [ %least.1, %if.end28 ], [ -1, %if.end.i ]
  %0 = load i8, ptr %line.0, align 1
  %.fr12.i = freeze i8 %0
  switch i8 %.fr12.i, label %switch.early.test.i [
    i8 0, label %cleanup
    i8 58, label %find.exit
  ]

switch.early.test.i:                              ; preds = %while.body.i, %for.cond
  %.fr15.i = phi i8 [ %.fr.i, %while.body.i ], [ %.fr12.i, %for.cond ]
  %text.addr.014.i = phi ptr [ %incdec.ptr.i, %while.body.i ], [ %line.0, %for.cond ]
  switch i8 %.fr15.i, label %while.body.i [
    i8 10, label %find.exit
    i8 0, label %find.exit
  ]

while.body.i:                                     ; preds = %switch.early.test.i
  %incdec.ptr.i = getelementptr inbounds nuw i8, ptr %text.addr.014.i, i64 1
  %1 = load i8, ptr %incdec.ptr.i, align 1
  %.fr.i = freeze i8 %1
  %cmp.not.i = icmp eq i8 %.fr.i, 58
  br i1 %cmp.not.i, label %find.exit, label %switch.early.test.i, !llvm.loop !0

find.exit:                                        ; preds = %while.body.i, %switch.early.test.i, %switch.early.test.i, %for.cond
  %text.addr.0.lcssa.i = phi ptr [ %line.0, %for.cond ], [ %incdec.ptr.i, %while.body.i ], [ %text.addr.014.i, %switch.early.test.i ], [ %text.addr.014.i, %switch.early.test.i ]
  %cmp.not13.i56 = icmp eq i8 %.fr12.i, 10
  br i1 %cmp.not13.i56, label %find.exit65, label %switch.early.test.i57

switch.early.test.i57:                            ; preds = %while.body.i61, %find.exit
  %.fr15.i58 = phi i8 [ %.fr.i63, %while.body.i61 ], [ %.fr12.i, %find.exit ]
  %text.addr.014.i59 = phi ptr [ %incdec.ptr.i62, %while.body.i61 ], [ %line.0, %find.exit ]
  switch i8 %.fr15.i58, label %while.body.i61 [
    i8 10, label %find.exit65
    i8 0, label %find.exit65
  ]

while.body.i61:                                   ; preds = %switch.early.test.i57
  %incdec.ptr.i62 = getelementptr inbounds nuw i8, ptr %text.addr.014.i59, i64 1
  %2 = load i8, ptr %incdec.ptr.i62, align 1
  %.fr.i63 = freeze i8 %2
  %cmp.not.i64 = icmp eq i8 %.fr.i63, 10
  br i1 %cmp.not.i64, label %find.exit65, label %switch.early.test.i57, !llvm.loop !0

find.exit65:                                      ; preds = %while.body.i61, %switch.early.test.i57, %switch.early.test.i57, %find.exit
  %text.addr.0.lcssa.i60 = phi ptr [ %line.0, %find.exit ], [ %incdec.ptr.i62, %while.body.i61 ], [ %text.addr.014.i59, %switch.early.test.i57 ], [ %text.addr.014.i59, %switch.early.test.i57 ]
  %3 = load i8, ptr %text.addr.0.lcssa.i, align 1
  %cmp = icmp eq i8 %3, 58
  br i1 %cmp, label %cond.true, label %cond.end

cond.true:                                        ; preds = %find.exit65
  %incdec.ptr = getelementptr inbounds nuw i8, ptr %text.addr.0.lcssa.i, i64 1
  %4 = load i8, ptr %incdec.ptr, align 1
  %.fr12.i66 = freeze i8 %4
  %cmp.not13.i67 = icmp eq i8 %.fr12.i66, 58
  br i1 %cmp.not13.i67, label %cond.end, label %switch.early.test.i68

switch.early.test.i68:                            ; preds = %while.body.i72, %cond.true
  %.fr15.i69 = phi i8 [ %.fr.i74, %while.body.i72 ], [ %.fr12.i66, %cond.true ]
  %text.addr.014.i70 = phi ptr [ %incdec.ptr.i73, %while.body.i72 ], [ %incdec.ptr, %cond.true ]
  switch i8 %.fr15.i69, label %while.body.i72 [
    i8 10, label %cond.end
    i8 0, label %cond.end
  ]

while.body.i72:                                   ; preds = %switch.early.test.i68
  %incdec.ptr.i73 = getelementptr inbounds nuw i8, ptr %text.addr.014.i70, i64 1
  %5 = load i8, ptr %incdec.ptr.i73, align 1
  %.fr.i74 = freeze i8 %5
  %cmp.not.i75 = icmp eq i8 %.fr.i74, 58
  br i1 %cmp.not.i75, label %cond.end, label %switch.early.test.i68, !llvm.loop !0

cond.end:                                         ; preds = %while.body.i72, %switch.early.test.i68, %switch.early.test.i68, %cond.true, %find.exit65
  %names.0 = phi ptr [ %text.addr.0.lcssa.i, %find.exit65 ], [ %incdec.ptr, %cond.true ], [ %incdec.ptr, %switch.early.test.i68 ], [ %incdec.ptr, %switch.early.test.i68 ], [ %incdec.ptr, %while.body.i72 ]
  %cond = phi ptr [ %text.addr.0.lcssa.i, %find.exit65 ], [ %incdec.ptr, %cond.true ], [ %incdec.ptr.i73, %while.body.i72 ], [ %text.addr.014.i70, %switch.early.test.i68 ], [ %text.addr.014.i70, %switch.early.test.i68 ]
  %6 = load i8, ptr %cond, align 1
  %cmp8 = icmp eq i8 %6, 58
  br i1 %cmp8, label %if.then10, label %if.end28

if.then10:                                        ; preds = %cond.end
  %cmp11 = icmp eq ptr %cond, %names.0
  br i1 %cmp11, label %if.then13, label %if.else

if.then13:                                        ; preds = %if.then10
  %add.ptr = getelementptr inbounds nuw i8, ptr %cond, i64 1
  %call14 = call fastcc i64 @limit_of(ptr noundef nonnull @.str.1, ptr noundef %add.ptr, ptr noundef %text.addr.0.lcssa.i60, i32 noundef 2) #6
  br label %if.end21

if.else:                                          ; preds = %if.then10
  %stop69.i = ptrtoint ptr %cond to i64
  %scevgep72.i = getelementptr i8, ptr @.str.2, i64 %stop69.i
  br label %for.cond.i

for.cond.i:                                       ; preds = %cleanup.i, %if.else
  %list.addr.0.i = phi ptr [ %names.0, %if.else ], [ %list.addr.3.i, %cleanup.i ]
  %retval.0.i77 = phi i32 [ undef, %if.else ], [ %retval.1.i, %cleanup.i ]
  %cmp.not48.i = icmp eq ptr %list.addr.0.i, %cond
  br i1 %cmp.not48.i, label %while.end.i, label %land.lhs.true.preheader.i

land.lhs.true.preheader.i:                        ; preds = %for.cond.i
  %list.addr.070.i = ptrtoint ptr %list.addr.0.i to i64
  %scevgep.i = getelementptr i8, ptr %list.addr.0.i, i64 %stop69.i
  %7 = sub i64 0, %list.addr.070.i
  %scevgep71.i = getelementptr i8, ptr %scevgep.i, i64 %7
  %scevgep73.i = getelementptr i8, ptr %scevgep72.i, i64 %7
  br label %land.lhs.true.i

land.lhs.true.i:                                  ; preds = %while.body.i79, %land.lhs.true.preheader.i
  %at.050.i = phi ptr [ %incdec.ptr9.i, %while.body.i79 ], [ @.str.2, %land.lhs.true.preheader.i ]
  %list.addr.149.i = phi ptr [ %incdec.ptr.i80, %while.body.i79 ], [ %list.addr.0.i, %land.lhs.true.preheader.i ]
  %8 = load i8, ptr %list.addr.149.i, align 1
  %cmp1.not.i = icmp eq i8 %8, 44
  br i1 %cmp1.not.i, label %while.end.i, label %land.lhs.true3.i

land.lhs.true3.i:                                 ; preds = %land.lhs.true.i
  %9 = load i8, ptr %at.050.i, align 1
  %tobool.not.i = icmp ne i8 %9, 0
  %cmp7.i = icmp eq i8 %8, %9
  %or.cond.i = and i1 %tobool.not.i, %cmp7.i
  br i1 %or.cond.i, label %while.body.i79, label %while.end.i

while.body.i79:                                   ; preds = %land.lhs.true3.i
  %incdec.ptr.i80 = getelementptr inbounds nuw i8, ptr %list.addr.149.i, i64 1
  %incdec.ptr9.i = getelementptr inbounds nuw i8, ptr %at.050.i, i64 1
  %cmp.not.i81 = icmp eq ptr %incdec.ptr.i80, %cond
  br i1 %cmp.not.i81, label %while.end.i, label %land.lhs.true.i, !llvm.loop !3

while.end.i:                                      ; preds = %while.body.i79, %land.lhs.true3.i, %land.lhs.true.i, %for.cond.i
  %list.addr.1.lcssa.i = phi ptr [ %list.addr.0.i, %for.cond.i ], [ %scevgep71.i, %while.body.i79 ], [ %list.addr.149.i, %land.lhs.true.i ], [ %list.addr.149.i, %land.lhs.true3.i ]
  %at.0.lcssa.i = phi ptr [ @.str.2, %for.cond.i ], [ %scevgep73.i, %while.body.i79 ], [ %at.050.i, %land.lhs.true.i ], [ %at.050.i, %land.lhs.true3.i ]
  %cmp.not.lcssa.i = phi i1 [ true, %for.cond.i ], [ true, %while.body.i79 ], [ false, %land.lhs.true.i ], [ false, %land.lhs.true3.i ]
  %list.addr.1.lcssa75.i = ptrtoint ptr %list.addr.1.lcssa.i to i64
  %10 = load i8, ptr %at.0.lcssa.i, align 1
  %tobool10.not.i = icmp eq i8 %10, 0
  br i1 %tobool10.not.i, label %land.lhs.true11.i, label %if.end.i78

land.lhs.true11.i:                                ; preds = %while.end.i
  br i1 %cmp.not.lcssa.i, label %cleanup.i, label %lor.lhs.false.i

lor.lhs.false.i:                                  ; preds = %land.lhs.true11.i
  %11 = load i8, ptr %list.addr.1.lcssa.i, align 1
  %cmp15.i = icmp eq i8 %11, 44
  br i1 %cmp15.i, label %cleanup.i, label %if.end.i78

if.end.i78:                                       ; preds = %lor.lhs.false.i, %while.end.i
  %cmp18.not60.not.i = icmp eq ptr %list.addr.1.lcssa.i, %cond
  br i1 %cmp18.not60.not.i, label %while.end27.i, label %land.rhs20.preheader.i

land.rhs20.preheader.i:                           ; preds = %if.end.i78
  %scevgep74.i = getelementptr i8, ptr %list.addr.1.lcssa.i, i64 %stop69.i
  %12 = sub i64 0, %list.addr.1.lcssa75.i
  %scevgep76.i = getelementptr i8, ptr %scevgep74.i, i64 %12
  br label %land.rhs20.i

land.rhs20.i:                                     ; preds = %while.body25.i, %land.rhs20.preheader.i
  %list.addr.261.i = phi ptr [ %incdec.ptr26.i, %while.body25.i ], [ %list.addr.1.lcssa.i, %land.rhs20.preheader.i ]
  %13 = load i8, ptr %list.addr.261.i, align 1
  %cmp22.not.i = icmp eq i8 %13, 44
  br i1 %cmp22.not.i, label %while.end27.i, label %while.body25.i

while.body25.i:                                   ; preds = %land.rhs20.i
  %incdec.ptr26.i = getelementptr inbounds nuw i8, ptr %list.addr.261.i, i64 1
  %cmp18.not.not.i = icmp eq ptr %incdec.ptr26.i, %cond
  br i1 %cmp18.not.not.i, label %while.end27.i, label %land.rhs20.i, !llvm.loop !4

while.end27.i:                                    ; preds = %while.body25.i, %land.rhs20.i, %if.end.i78
  %list.addr.2.lcssa.i = phi ptr [ %list.addr.1.lcssa.i, %if.end.i78 ], [ %list.addr.261.i, %land.rhs20.i ], [ %scevgep76.i, %while.body25.i ]
  %cmp18.not.lcssa.i = phi i1 [ false, %if.end.i78 ], [ %cmp22.not.i, %land.rhs20.i ], [ %cmp22.not.i, %while.body25.i ]
  %.retval.0.i = phi i32 [ 0, %if.end.i78 ], [ %retval.0.i77, %land.rhs20.i ], [ 0, %while.body25.i ]
  %incdec.ptr28.i = getelementptr inbounds nuw i8, ptr %list.addr.2.lcssa.i, i64 1
  br label %cleanup.i

cleanup.i:                                        ; preds = %while.end27.i, %lor.lhs.false.i, %land.lhs.true11.i
  %list.addr.3.i = phi ptr [ %incdec.ptr28.i, %while.end27.i ], [ %list.addr.1.lcssa.i, %land.lhs.true11.i ], [ %list.addr.1.lcssa.i, %lor.lhs.false.i ]
  %retval.1.i = phi i32 [ %.retval.0.i, %while.end27.i ], [ 1, %land.lhs.true11.i ], [ 1, %lor.lhs.false.i ]
  %cleanup.dest.slot.0.i = phi i1 [ %cmp18.not.lcssa.i, %while.end27.i ], [ false, %land.lhs.true11.i ], [ false, %lor.lhs.false.i ]
  br i1 %cleanup.dest.slot.0.i, label %for.cond.i, label %has.exit

has.exit:                                         ; preds = %cleanup.i
  %tobool16.not = icmp eq i32 %retval.1.i, 0
  br i1 %tobool16.not, label %if.end21, label %if.then17

if.then17:                                        ; preds = %has.exit
  %add.ptr18 = getelementptr inbounds nuw i8, ptr %cond, i64 1
  %call19 = call fastcc i64 @limit_of(ptr noundef nonnull @.str.3, ptr noundef %add.ptr18, ptr noundef %text.addr.0.lcssa.i60, i32 noundef 1) #6
  br label %if.end21

if.end21:                                         ; preds = %if.then17, %has.exit, %if.then13
  %limit.0 = phi i64 [ %call14, %if.then13 ], [ %call19, %if.then17 ], [ -1, %has.exit ]
  %cond27 = call i64 @llvm.umin.i64(i64 %limit.0, i64 %least.0)
  br label %if.end28

if.end28:                                         ; preds = %if.end21, %cond.end
  %least.1 = phi i64 [ %cond27, %if.end21 ], [ %least.0, %cond.end ]
  %14 = load i8, ptr %text.addr.0.lcssa.i60, align 1
  %tobool30.not.not.not.not = icmp ne i8 %14, 0
  %cond35.idx.sroa.sel.idx.sroa.sel.idx.sroa.sel.idx = zext i1 %tobool30.not.not.not.not to i64
  %cond35.idx.sroa.sel.idx.sroa.sel.idx.sroa.sel = getelementptr inbounds nuw i8, ptr %text.addr.0.lcssa.i60, i64 %cond35.idx.sroa.sel.idx.sroa.sel.idx.sroa.sel.idx
  br label %for.cond, !llvm.loop !5

cleanup:                                          ; preds = %for.cond, %if.end.i, %entry
  %retval.0 = phi i64 [ -1, %if.end.i ], [ -1, %entry ], [ %least.0, %for.cond ]
  call void @llvm.lifetime.end.p0(ptr nonnull %groups) #4
  ret i64 %retval.0
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #1

; Function Attrs: nounwind
define internal fastcc i64 @limit_of(ptr noundef readonly captures(address_is_null) %root, ptr noundef nonnull readonly captures(address) %from, ptr noundef nonnull readnone captures(address) %stop, i32 noundef range(i32 1, 3) %version) unnamed_addr #0 {
entry:
  %text.i = alloca [64 x i8], align 16
  %path = alloca [512 x i8], align 16
  call void @llvm.lifetime.start.p0(ptr nonnull %path) #4
  %cmp.not18.i = icmp eq ptr %root, null
  br i1 %cmp.not18.i, label %for.end.i, label %land.rhs.i.preheader

land.rhs.i.preheader:                             ; preds = %entry
  %0 = load i8, ptr %root, align 1
  %tobool.not.i47 = icmp eq i8 %0, 0
  br i1 %tobool.not.i47, label %for.end.i, label %for.body.i

for.body.i:                                       ; preds = %if.end.i, %land.rhs.i.preheader
  %1 = phi i8 [ %2, %if.end.i ], [ %0, %land.rhs.i.preheader ]
  %end.addr.019.i.idx49 = phi i64 [ %end.addr.019.i.add, %if.end.i ], [ 0, %land.rhs.i.preheader ]
  %text.addr.020.i48 = phi ptr [ %incdec.ptr5.i, %if.end.i ], [ %root, %land.rhs.i.preheader ]
  %cmp3.i = icmp eq i64 %end.addr.019.i.idx49, 511
  br i1 %cmp3.i, label %append.exit, label %if.end.i

if.end.i:                                         ; preds = %for.body.i
  %end.addr.019.i.ptr50 = getelementptr inbounds nuw i8, ptr %path, i64 %end.addr.019.i.idx49
  %end.addr.019.i.add = add nuw nsw i64 %end.addr.019.i.idx49, 1
  store i8 %1, ptr %end.addr.019.i.ptr50, align 1
  %incdec.ptr5.i = getelementptr inbounds nuw i8, ptr %text.addr.020.i48, i64 1
  %2 = load i8, ptr %incdec.ptr5.i, align 1
  %tobool.not.i = icmp eq i8 %2, 0
  br i1 %tobool.not.i, label %for.end.i.loopexit, label %for.body.i, !llvm.loop !6

for.end.i.loopexit:                               ; preds = %if.end.i
  %end.addr.019.i.ptr = getelementptr inbounds nuw i8, ptr %path, i64 %end.addr.019.i.add
  br label %for.end.i

for.end.i:                                        ; preds = %for.end.i.loopexit, %land.rhs.i.preheader, %entry
  %end.addr.0.lcssa.i = phi ptr [ %path, %entry ], [ %path, %land.rhs.i.preheader ], [ %end.addr.019.i.ptr, %for.end.i.loopexit ]
  store i8 0, ptr %end.addr.0.lcssa.i, align 1
  br label %append.exit

append.exit:                                      ; preds = %for.end.i, %for.body.i
  %retval.0.i = phi ptr [ %end.addr.0.lcssa.i, %for.end.i ], [ null, %for.body.i ]
  %cmp.not18.i27 = icmp eq ptr %from, %stop
  br i1 %cmp.not18.i27, label %for.end.i39, label %land.rhs.lr.ph.i28

land.rhs.lr.ph.i28:                               ; preds = %append.exit
  %add.ptr2.i29 = getelementptr inbounds nuw i8, ptr %path, i64 511
  br label %land.rhs.i30

land.rhs.i30:                                     ; preds = %if.end.i36, %land.rhs.lr.ph.i28
  %text.addr.020.i31 = phi ptr [ %from, %land.rhs.lr.ph.i28 ], [ %incdec.ptr5.i38, %if.end.i36 ]
  %end.addr.019.i32 = phi ptr [ %retval.0.i, %land.rhs.lr.ph.i28 ], [ %incdec.ptr.i37, %if.end.i36 ]
  %3 = load i8, ptr %text.addr.020.i31, align 1
  %tobool.not.i33 = icmp eq i8 %3, 0
  br i1 %tobool.not.i33, label %for.end.i39, label %for.body.i34

for.body.i34:                                     ; preds = %land.rhs.i30
  %tobool1.not.i = icmp eq ptr %end.addr.019.i32, null
  %cmp3.i35 = icmp eq ptr %end.addr.019.i32, %add.ptr2.i29
  %or.cond.i = select i1 %tobool1.not.i, i1 true, i1 %cmp3.i35
  br i1 %or.cond.i, label %append.exit42, label %if.end.i36

if.end.i36:                                       ; preds = %for.body.i34
  %incdec.ptr.i37 = getelementptr inbounds nuw i8, ptr %end.addr.019.i32, i64 1
  store i8 %3, ptr %end.addr.019.i32, align 1
  %incdec.ptr5.i38 = getelementptr inbounds nuw i8, ptr %text.addr.020.i31, i64 1
  %cmp.not.i = icmp eq ptr %incdec.ptr5.i38, %stop
  br i1 %cmp.not.i, label %for.end.i39, label %land.rhs.i30, !llvm.loop !6

for.end.i39:                                      ; preds = %if.end.i36, %land.rhs.i30, %append.exit
  %end.addr.0.lcssa.i40 = phi ptr [ %retval.0.i, %append.exit ], [ %end.addr.019.i32, %land.rhs.i30 ], [ %incdec.ptr.i37, %if.end.i36 ]
  %tobool6.not.i = icmp eq ptr %end.addr.0.lcssa.i40, null
  br i1 %tobool6.not.i, label %append.exit42, label %if.then7.i

if.then7.i:                                       ; preds = %for.end.i39
  store i8 0, ptr %end.addr.0.lcssa.i40, align 1
  br label %append.exit42

append.exit42:                                    ; preds = %if.then7.i, %for.end.i39, %for.body.i34
  %retval.0.i41 = phi ptr [ null, %for.end.i39 ], [ %end.addr.0.lcssa.i40, %if.then7.i ], [ null, %for.body.i34 ]
  %tobool.not = icmp eq ptr %retval.0.i41, null
  %spec.select = select i1 %tobool.not, ptr %retval.0.i, ptr %retval.0.i41
  %cmp.i = icmp eq i32 %version, 2
  %cond.i = select i1 %cmp.i, ptr @.str.4, ptr @.str.5
  %add.ptr2.i.i = getelementptr inbounds nuw i8, ptr %path, i64 511
  %4 = load i8, ptr %cond.i, align 1
  %tobool.not.i147.i = icmp eq i8 %4, 0
  %sub.ptr.rhs.cast.i.i = ptrtoint ptr %text.i to i64
  br label %for.cond

for.cond:                                         ; preds = %cleanup, %append.exit42
  %end.1 = phi ptr [ %spec.select, %append.exit42 ], [ %end.4, %cleanup ]
  %least.0 = phi i64 [ -1, %append.exit42 ], [ %retval.1.i, %cleanup ]
  %retval.0 = phi i64 [ undef, %append.exit42 ], [ %retval.1, %cleanup ]
  call void @llvm.lifetime.start.p0(ptr nonnull %text.i) #4
  br i1 %tobool.not.i147.i, label %for.end.i.i, label %for.body.i.i

for.body.i.i:                                     ; preds = %if.end.i.i, %for.cond
  %5 = phi i8 [ %6, %if.end.i.i ], [ %4, %for.cond ]
  %end.addr.019.i149.i = phi ptr [ %incdec.ptr.i.i, %if.end.i.i ], [ %end.1, %for.cond ]
  %text.addr.020.i148.i = phi ptr [ %incdec.ptr5.i.i, %if.end.i.i ], [ %cond.i, %for.cond ]
  %tobool1.not.i.i = icmp eq ptr %end.addr.019.i149.i, null
  %cmp3.i.i = icmp eq ptr %end.addr.019.i149.i, %add.ptr2.i.i
  %or.cond.i.i = select i1 %tobool1.not.i.i, i1 true, i1 %cmp3.i.i
  br i1 %or.cond.i.i, label %limit_in.exit, label %if.end.i.i

if.end.i.i:                                       ; preds = %for.body.i.i
  %incdec.ptr.i.i = getelementptr inbounds nuw i8, ptr %end.addr.019.i149.i, i64 1
  store i8 %5, ptr %end.addr.019.i149.i, align 1
  %incdec.ptr5.i.i = getelementptr inbounds nuw i8, ptr %text.addr.020.i148.i, i64 1
  %6 = load i8, ptr %incdec.ptr5.i.i, align 1
  %tobool.not.i.i = icmp eq i8 %6, 0
  br i1 %tobool.not.i.i, label %for.end.i.i, label %for.body.i.i, !llvm.loop !6

for.end.i.i:                                      ; preds = %if.end.i.i, %for.cond
  %end.addr.019.i.lcssa.i = phi ptr [ %end.1, %for.cond ], [ %incdec.ptr.i.i, %if.end.i.i ]
  %tobool6.not.i.i = icmp eq ptr %end.addr.019.i.lcssa.i, null
  br i1 %tobool6.not.i.i, label %limit_in.exit, label %if.then7.i.i

if.then7.i.i:                                     ; preds = %for.end.i.i
  store i8 0, ptr %end.addr.019.i.lcssa.i, align 1
  %call.i.i = call i32 (ptr, i32, ...) @open(ptr noundef nonnull %path, i32 noundef 524288) #5
  %cmp.i.i = icmp slt i32 %call.i.i, 0
  br i1 %cmp.i.i, label %limit_in.exit, label %if.end.i29.i

if.end.i29.i:                                     ; preds = %if.then7.i.i
  %call1.i.i = call i64 @read(i32 noundef %call.i.i, ptr noundef nonnull %text.i, i64 noundef 63) #5
  %call2.i.i = call i32 @close(i32 noundef %call.i.i) #5
  %cmp3.i30.i = icmp slt i64 %call1.i.i, 1
  %cond.i.i = call i64 @llvm.smax.i64(i64 %call1.i.i, i64 0)
  %arrayidx.i.i = getelementptr inbounds nuw i8, ptr %text.i, i64 %cond.i.i
  store i8 0, ptr %arrayidx.i.i, align 1
  br i1 %cmp3.i30.i, label %limit_in.exit, label %if.end.i43

if.end.i43:                                       ; preds = %if.end.i29.i
  %7 = load i8, ptr %text.i, align 16
  %8 = add i8 %7, -48
  %or.cond45.i.i = icmp ult i8 %8, 10
  br i1 %or.cond45.i.i, label %for.body.i33.i, label %while.cond.preheader.i.i

while.cond.preheader.i.i:                         ; preds = %for.body.i33.i, %if.end.i43
  %at.0.lcssa.i.i = phi ptr [ %text.i, %if.end.i43 ], [ %incdec.ptr.i34.i, %for.body.i33.i ]
  %value.0.lcssa.i.i = phi i64 [ 0, %if.end.i43 ], [ %add.i.i, %for.body.i33.i ]
  br label %while.cond.i.i

for.body.i33.i:                                   ; preds = %for.body.i33.i, %if.end.i43
  %9 = phi i8 [ %10, %for.body.i33.i ], [ %7, %if.end.i43 ]
  %value.048.i.i = phi i64 [ %add.i.i, %for.body.i33.i ], [ 0, %if.end.i43 ]
  %at.047.i.i = phi ptr [ %incdec.ptr.i34.i, %for.body.i33.i ], [ %text.i, %if.end.i43 ]
  %mul.i.i = mul nsw i64 %value.048.i.i, 10
  %narrow.i.i = add nsw i8 %9, -48
  %sub.i.i = zext nneg i8 %narrow.i.i to i64
  %add.i.i = add nsw i64 %mul.i.i, %sub.i.i
  %incdec.ptr.i34.i = getelementptr inbounds nuw i8, ptr %at.047.i.i, i64 1
  %10 = load i8, ptr %incdec.ptr.i34.i, align 1
  %11 = add i8 %10, -48
  %or.cond.i35.i = icmp ult i8 %11, 10
  %sub.ptr.lhs.cast.i.i = ptrtoint ptr %incdec.ptr.i34.i to i64
  %sub.ptr.sub.i.i = sub i64 %sub.ptr.lhs.cast.i.i, %sub.ptr.rhs.cast.i.i
  %cmp5.i.i = icmp slt i64 %sub.ptr.sub.i.i, 18
  %or.cond44.i.i = and i1 %or.cond.i35.i, %cmp5.i.i
  br i1 %or.cond44.i.i, label %for.body.i33.i, label %while.cond.preheader.i.i, !llvm.loop !7

while.cond.i.i:                                   ; preds = %while.body.i.i, %while.cond.preheader.i.i
  %at.1.i.i = phi ptr [ %incdec.ptr21.i.i, %while.body.i.i ], [ %at.0.lcssa.i.i, %while.cond.preheader.i.i ]
  %12 = load i8, ptr %at.1.i.i, align 1
  switch i8 %12, label %while.body.i.i [
    i8 0, label %number.exit.i
    i8 32, label %number.exit.i
    i8 10, label %number.exit.i
  ]

while.body.i.i:                                   ; preds = %while.cond.i.i
  %incdec.ptr21.i.i = getelementptr inbounds nuw i8, ptr %at.1.i.i, i64 1
  br label %while.cond.i.i, !llvm.loop !8

number.exit.i:                                    ; preds = %while.cond.i.i, %while.cond.i.i, %while.cond.i.i
  %cmp9.i.i = icmp eq ptr %at.0.lcssa.i.i, %text.i
  %cond.i32.i = select i1 %cmp9.i.i, i64 -1, i64 %value.0.lcssa.i.i
  br i1 %cmp.i, label %if.then6.i, label %for.body.i74.i

if.then6.i:                                       ; preds = %number.exit.i
  %tobool23.not.i.not.not.i.not.not.not = icmp ne i8 %12, 0
  %cond27.idx.i.sroa.sel.idx.sroa.sel.idx.i.sroa.sel.idx.sroa.sel.idx.sroa.sel.idx = zext i1 %tobool23.not.i.not.not.i.not.not.not to i64
  %cond27.idx.i.sroa.sel.idx.sroa.sel.idx.i.sroa.sel.idx.sroa.sel.idx.sroa.sel = getelementptr inbounds nuw i8, ptr %at.1.i.i, i64 %cond27.idx.i.sroa.sel.idx.sroa.sel.idx.i.sroa.sel.idx.sroa.sel.idx.sroa.sel.idx
  %sub.ptr.rhs.cast.i36.i = ptrtoint ptr %cond27.idx.i.sroa.sel.idx.sroa.sel.idx.i.sroa.sel.idx.sroa.sel.idx.sroa.sel to i64
  %13 = load i8, ptr %cond27.idx.i.sroa.sel.idx.sroa.sel.idx.i.sroa.sel.idx.sroa.sel.idx.sroa.sel, align 1
  %14 = add i8 %13, -58
  %or.cond45.i37.i = icmp ult i8 %14, -10
  br i1 %or.cond45.i37.i, label %number.exit63.i, label %for.body.i50.i

for.body.i50.i:                                   ; preds = %for.body.i50.i, %if.then6.i
  %15 = phi i8 [ %16, %for.body.i50.i ], [ %13, %if.then6.i ]
  %value.048.i51.i = phi i64 [ %add.i56.i, %for.body.i50.i ], [ 0, %if.then6.i ]
  %at.047.i52.i = phi ptr [ %incdec.ptr.i57.i, %for.body.i50.i ], [ %cond27.idx.i.sroa.sel.idx.sroa.sel.idx.i.sroa.sel.idx.sroa.sel.idx.sroa.sel, %if.then6.i ]
  %mul.i53.i = mul nsw i64 %value.048.i51.i, 10
  %narrow.i54.i = add nsw i8 %15, -48
  %sub.i55.i = zext nneg i8 %narrow.i54.i to i64
  %add.i56.i = add nsw i64 %mul.i53.i, %sub.i55.i
  %incdec.ptr.i57.i = getelementptr inbounds nuw i8, ptr %at.047.i52.i, i64 1
  %16 = load i8, ptr %incdec.ptr.i57.i, align 1
  %17 = add i8 %16, -48
  %or.cond.i58.i = icmp ult i8 %17, 10
  %sub.ptr.lhs.cast.i59.i = ptrtoint ptr %incdec.ptr.i57.i to i64
  %sub.ptr.sub.i60.i = sub i64 %sub.ptr.lhs.cast.i59.i, %sub.ptr.rhs.cast.i36.i
  %cmp5.i61.i = icmp slt i64 %sub.ptr.sub.i60.i, 18
  %or.cond44.i62.i = and i1 %or.cond.i58.i, %cmp5.i61.i
  br i1 %or.cond44.i62.i, label %for.body.i50.i, label %number.exit63.i, !llvm.loop !7

number.exit63.i:                                  ; preds = %for.body.i50.i, %if.then6.i
  %cond.i44.i = phi i64 [ -1, %if.then6.i ], [ %add.i56.i, %for.body.i50.i ]
  %cmp.i64.i = icmp sgt i64 %cond.i32.i, 0
  %cmp1.i.i = icmp sgt i64 %cond.i44.i, 0
  %or.cond.i65.i = and i1 %cmp.i64.i, %cmp1.i.i
  br i1 %or.cond.i65.i, label %limit_in.exit.sink.split, label %limit_in.exit

for.body.i74.i:                                   ; preds = %if.end.i78.i, %number.exit.i
  %18 = phi i8 [ %19, %if.end.i78.i ], [ 47, %number.exit.i ]
  %end.addr.019.i72151.i = phi ptr [ %incdec.ptr.i79.i, %if.end.i78.i ], [ %end.1, %number.exit.i ]
  %text.addr.020.i71150.idx.i = phi i64 [ %text.addr.020.i71150.add.i, %if.end.i78.i ], [ 0, %number.exit.i ]
  %tobool1.not.i75.i = icmp eq ptr %end.addr.019.i72151.i, null
  %cmp3.i76.i = icmp eq ptr %end.addr.019.i72151.i, %add.ptr2.i.i
  %or.cond.i77.i = select i1 %tobool1.not.i75.i, i1 true, i1 %cmp3.i76.i
  br i1 %or.cond.i77.i, label %limit_in.exit, label %if.end.i78.i

if.end.i78.i:                                     ; preds = %for.body.i74.i
  %incdec.ptr.i79.i = getelementptr inbounds nuw i8, ptr %end.addr.019.i72151.i, i64 1
  store i8 %18, ptr %end.addr.019.i72151.i, align 1
  %text.addr.020.i71150.add.i = add nuw nsw i64 %text.addr.020.i71150.idx.i, 1
  %incdec.ptr5.i80.ptr.i = getelementptr inbounds nuw i8, ptr @.str.6, i64 %text.addr.020.i71150.add.i
  %19 = load i8, ptr %incdec.ptr5.i80.ptr.i, align 1
  %exitcond.i = icmp eq i64 %text.addr.020.i71150.add.i, 18
  br i1 %exitcond.i, label %if.then7.i83.i, label %for.body.i74.i, !llvm.loop !6

if.then7.i83.i:                                   ; preds = %if.end.i78.i
  store i8 0, ptr %incdec.ptr.i79.i, align 1
  %call.i86.i = call i32 (ptr, i32, ...) @open(ptr noundef nonnull %path, i32 noundef 524288) #5
  %cmp.i87.i = icmp slt i32 %call.i86.i, 0
  br i1 %cmp.i87.i, label %limit_in.exit, label %if.end.i88.i

if.end.i88.i:                                     ; preds = %if.then7.i83.i
  %call1.i89.i = call i64 @read(i32 noundef %call.i86.i, ptr noundef nonnull %text.i, i64 noundef 63) #5
  %call2.i90.i = call i32 @close(i32 noundef %call.i86.i) #5
  %cmp3.i91.i = icmp slt i64 %call1.i89.i, 1
  %cond.i92.i = call i64 @llvm.smax.i64(i64 %call1.i89.i, i64 0)
  %arrayidx.i93.i = getelementptr inbounds nuw i8, ptr %text.i, i64 %cond.i92.i
  store i8 0, ptr %arrayidx.i93.i, align 1
  br i1 %cmp3.i91.i, label %limit_in.exit, label %if.end18.i

if.end18.i:                                       ; preds = %if.end.i88.i
  %20 = load i8, ptr %text.i, align 16
  %21 = add i8 %20, -58
  %or.cond45.i98.i = icmp ult i8 %21, -10
  br i1 %or.cond45.i98.i, label %number.exit124.i, label %for.body.i111.i

for.body.i111.i:                                  ; preds = %for.body.i111.i, %if.end18.i
  %22 = phi i8 [ %23, %for.body.i111.i ], [ %20, %if.end18.i ]
  %value.048.i112.i = phi i64 [ %add.i117.i, %for.body.i111.i ], [ 0, %if.end18.i ]
  %at.047.i113.i = phi ptr [ %incdec.ptr.i118.i, %for.body.i111.i ], [ %text.i, %if.end18.i ]
  %mul.i114.i = mul nsw i64 %value.048.i112.i, 10
  %narrow.i115.i = add nsw i8 %22, -48
  %sub.i116.i = zext nneg i8 %narrow.i115.i to i64
  %add.i117.i = add nsw i64 %mul.i114.i, %sub.i116.i
  %incdec.ptr.i118.i = getelementptr inbounds nuw i8, ptr %at.047.i113.i, i64 1
  %23 = load i8, ptr %incdec.ptr.i118.i, align 1
  %24 = add i8 %23, -48
  %or.cond.i119.i = icmp ult i8 %24, 10
  %sub.ptr.lhs.cast.i120.i = ptrtoint ptr %incdec.ptr.i118.i to i64
  %sub.ptr.sub.i121.i = sub i64 %sub.ptr.lhs.cast.i120.i, %sub.ptr.rhs.cast.i.i
  %cmp5.i122.i = icmp slt i64 %sub.ptr.sub.i121.i, 18
  %or.cond44.i123.i = and i1 %or.cond.i119.i, %cmp5.i122.i
  br i1 %or.cond44.i123.i, label %for.body.i111.i, label %number.exit124.i, !llvm.loop !7

number.exit124.i:                                 ; preds = %for.body.i111.i, %if.end18.i
  %cond.i105.i = phi i64 [ -1, %if.end18.i ], [ %add.i117.i, %for.body.i111.i ]
  %cmp.i125.i = icmp sgt i64 %cond.i32.i, 0
  %cmp1.i126.i = icmp sgt i64 %cond.i105.i, 0
  %or.cond.i127.i = and i1 %cmp.i125.i, %cmp1.i126.i
  br i1 %or.cond.i127.i, label %limit_in.exit.sink.split, label %limit_in.exit

limit_in.exit.sink.split:                         ; preds = %number.exit124.i, %number.exit63.i
  %cond.i44.i.sink58 = phi i64 [ %cond.i44.i, %number.exit63.i ], [ %cond.i105.i, %number.exit124.i ]
  %add.i67.i = add nsw i64 %cond.i32.i, -1
  %sub.i68.i = add nuw i64 %add.i67.i, %cond.i44.i.sink58
  %div.i.i = udiv i64 %sub.i68.i, %cond.i44.i.sink58
  %25 = call i64 @llvm.umin.i64(i64 %div.i.i, i64 %least.0)
  br label %limit_in.exit

limit_in.exit:                                    ; preds = %limit_in.exit.sink.split, %number.exit124.i, %if.end.i88.i, %if.then7.i83.i, %for.body.i74.i, %number.exit63.i, %if.end.i29.i, %if.then7.i.i, %for.end.i.i, %for.body.i.i
  %retval.1.i = phi i64 [ %25, %limit_in.exit.sink.split ], [ %least.0, %if.end.i29.i ], [ %least.0, %if.then7.i.i ], [ %least.0, %number.exit63.i ], [ %least.0, %if.end.i88.i ], [ %least.0, %if.then7.i83.i ], [ %least.0, %for.body.i74.i ], [ %least.0, %number.exit124.i ], [ %least.0, %for.end.i.i ], [ %least.0, %for.body.i.i ]
  call void @llvm.lifetime.end.p0(ptr nonnull %text.i) #4
  %cmp6.not = icmp ugt ptr %end.1, %retval.0.i
  br i1 %cmp6.not, label %while.cond, label %cleanup

while.cond:                                       ; preds = %land.rhs, %limit_in.exit
  %end.2 = phi ptr [ %incdec.ptr, %land.rhs ], [ %end.1, %limit_in.exit ]
  %cmp9 = icmp ugt ptr %end.2, %retval.0.i
  br i1 %cmp9, label %land.rhs, label %cleanup

land.rhs:                                         ; preds = %while.cond
  %incdec.ptr = getelementptr inbounds i8, ptr %end.2, i64 -1
  %26 = load i8, ptr %incdec.ptr, align 1
  %cmp10.not = icmp eq i8 %26, 47
  br i1 %cmp10.not, label %cleanup, label %while.cond, !llvm.loop !9

cleanup:                                          ; preds = %land.rhs, %while.cond, %limit_in.exit
  %end.4 = phi ptr [ %end.1, %limit_in.exit ], [ %incdec.ptr, %land.rhs ], [ %end.2, %while.cond ]
  %retval.1 = phi i64 [ %retval.1.i, %limit_in.exit ], [ %retval.0, %while.cond ], [ %retval.0, %land.rhs ]
  br i1 %cmp6.not, label %for.cond, label %cleanup12, !llvm.loop !10

cleanup12:                                        ; preds = %cleanup
  call void @llvm.lifetime.end.p0(ptr nonnull %path) #4
  ret i64 %retval.1
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #1

; Function Attrs: nounwind
define hidden void @igniter_cpus_seen(ptr noundef captures(none) %cpus) local_unnamed_addr #0 {
entry:
  %mask = alloca [16 x i64], align 16
  call void @llvm.lifetime.start.p0(ptr nonnull %mask) #4
  br label %for.body

for.cond.cleanup:                                 ; preds = %for.body
  %call = call i32 @sched_getaffinity(i32 noundef 0, i64 noundef 128, ptr noundef nonnull %mask) #5
  %cmp1 = icmp slt i32 %call, 0
  br i1 %cmp1, label %cleanup, label %for.cond3.preheader

for.cond3.preheader:                              ; preds = %for.cond.cleanup
  %mask9 = getelementptr inbounds nuw i8, ptr %cpus, i64 16
  br label %for.body6

for.body:                                         ; preds = %for.body, %entry
  %indvars.iv = phi i64 [ 0, %entry ], [ %indvars.iv.next, %for.body ]
  %arrayidx = getelementptr inbounds nuw i64, ptr %mask, i64 %indvars.iv
  store i64 0, ptr %arrayidx, align 8
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, 16
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body, !llvm.loop !11

for.body6:                                        ; preds = %for.inc20, %for.cond3.preheader
  %indvars.iv34 = phi i64 [ 0, %for.cond3.preheader ], [ %indvars.iv.next35, %for.inc20 ]
  %arrayidx8 = getelementptr inbounds nuw i64, ptr %mask, i64 %indvars.iv34
  %0 = load i64, ptr %arrayidx8, align 8
  %arrayidx11 = getelementptr inbounds nuw i64, ptr %mask9, i64 %indvars.iv34
  %1 = load atomic i64, ptr %arrayidx11 monotonic, align 8
  %not = xor i64 %1, -1
  %and = and i64 %0, %not
  %tobool.not = icmp eq i64 %and, 0
  br i1 %tobool.not, label %for.inc20, label %if.then12

if.then12:                                        ; preds = %for.body6
  %2 = atomicrmw or ptr %arrayidx11, i64 %0 monotonic, align 8
  br label %for.inc20

for.inc20:                                        ; preds = %if.then12, %for.body6
  %indvars.iv.next35 = add nuw nsw i64 %indvars.iv34, 1
  %exitcond37.not = icmp eq i64 %indvars.iv.next35, 16
  br i1 %exitcond37.not, label %cleanup, label %for.body6, !llvm.loop !12

cleanup:                                          ; preds = %for.inc20, %for.cond.cleanup
  call void @llvm.lifetime.end.p0(ptr nonnull %mask) #4
  ret void
}

declare i32 @sched_getaffinity(i32 noundef, i64 noundef, ptr noundef) local_unnamed_addr #2

; Function Attrs: nounwind
define hidden i64 @igniter_cpus_limit(ptr noundef captures(none) %cpus, ptr noundef writeonly captures(none) initializes((0, 4)) %shows) local_unnamed_addr #0 {
entry:
  %0 = atomicrmw add ptr %cpus, i64 1 monotonic, align 8
  %rem = and i64 %0, 255
  %cmp = icmp eq i64 %rem, 0
  br i1 %cmp, label %if.then, label %if.end

if.then:                                          ; preds = %entry
  %quota = getelementptr inbounds nuw i8, ptr %cpus, i64 8
  %call = tail call i64 @igniter_cpu_quota() #6
  store atomic i64 %call, ptr %quota monotonic, align 8
  br label %if.end

if.end:                                           ; preds = %if.then, %entry
  %quota3 = getelementptr inbounds nuw i8, ptr %cpus, i64 8
  %1 = load atomic i64, ptr %quota3 monotonic, align 8
  %rem5 = and i64 %0, 15
  %cmp6 = icmp eq i64 %rem5, 0
  %conv = zext i1 %cmp6 to i32
  store i32 %conv, ptr %shows, align 4
  br i1 %cmp6, label %cleanup, label %for.cond.preheader

for.cond.preheader:                               ; preds = %if.end
  %mask = getelementptr inbounds nuw i8, ptr %cpus, i64 16
  br label %for.body

for.cond.cleanup:                                 ; preds = %bits.exit
  %tobool13.not.not = icmp eq i64 %add, 0
  %2 = tail call i64 @llvm.umin.i64(i64 %add, i64 %1)
  %cond = select i1 %tobool13.not.not, i64 %1, i64 %2
  br label %cleanup

for.body:                                         ; preds = %bits.exit, %for.cond.preheader
  %indvars.iv = phi i64 [ 0, %for.cond.preheader ], [ %indvars.iv.next, %bits.exit ]
  %count.030 = phi i64 [ 0, %for.cond.preheader ], [ %add, %bits.exit ]
  %arrayidx = getelementptr inbounds nuw i64, ptr %mask, i64 %indvars.iv
  %3 = load atomic i64, ptr %arrayidx monotonic, align 8
  %tobool.not4.i = icmp eq i64 %3, 0
  br i1 %tobool.not4.i, label %bits.exit, label %for.body.i

for.body.i:                                       ; preds = %for.body.i, %for.body
  %count.06.i = phi i64 [ %inc.i, %for.body.i ], [ 0, %for.body ]
  %word.addr.05.i = phi i64 [ %and.i, %for.body.i ], [ %3, %for.body ]
  %inc.i = add i64 %count.06.i, 1
  %sub.i = add i64 %word.addr.05.i, -1
  %and.i = and i64 %sub.i, %word.addr.05.i
  %tobool.not.i = icmp eq i64 %and.i, 0
  br i1 %tobool.not.i, label %bits.exit, label %for.body.i, !llvm.loop !13

bits.exit:                                        ; preds = %for.body.i, %for.body
  %count.0.lcssa.i = phi i64 [ 0, %for.body ], [ %inc.i, %for.body.i ]
  %add = add i64 %count.0.lcssa.i, %count.030
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, 16
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body, !llvm.loop !14

cleanup:                                          ; preds = %for.cond.cleanup, %if.end
  %retval.0 = phi i64 [ %cond, %for.cond.cleanup ], [ %1, %if.end ]
  ret i64 %retval.0
}

declare i32 @open(ptr noundef, i32 noundef, ...) local_unnamed_addr #2

declare i64 @read(i32 noundef, ptr noundef, i64 noundef) local_unnamed_addr #2

declare i32 @close(i32 noundef) local_unnamed_addr #2

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.umin.i64(i64, i64) #3

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.smax.i64(i64, i64) #3

attributes #0 = { nounwind "no-builtins" }
attributes #1 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #2 = { "no-builtins" }
attributes #3 = { nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #4 = { nounwind }
attributes #5 = { nobuiltin nounwind "no-builtins" }
attributes #6 = { nobuiltin "no-builtins" }

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
!10 = distinct !{!10, !2}
!11 = distinct !{!11, !1, !2}
!12 = distinct !{!12, !1, !2}
!13 = distinct !{!13, !1, !2}
!14 = distinct !{!14, !1, !2}
