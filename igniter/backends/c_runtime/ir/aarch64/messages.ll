target triple = "aarch64-unknown-linux-gnu"

%struct.igniter_string = type { ptr, i64, i64 }

@.str = private unnamed_addr constant [12 x i8] c"Igniter op \00", align 1
@.str.1 = private unnamed_addr constant [3 x i8] c": \00", align 1
@.str.2 = private unnamed_addr constant [18 x i8] c"expected at most \00", align 1
@.str.3 = private unnamed_addr constant [14 x i8] c" inputs, got \00", align 1
@.str.4 = private unnamed_addr constant [15 x i8] c" outputs, got \00", align 1
@.str.5 = private unnamed_addr constant [7 x i8] c"input \00", align 1
@.str.6 = private unnamed_addr constant [11 x i8] c"is missing\00", align 1
@.str.7 = private unnamed_addr constant [8 x i8] c"output \00", align 1
@.str.8 = private unnamed_addr constant [38 x i8] c"is left out of the node, but required\00", align 1
@.str.9 = private unnamed_addr constant [18 x i8] c"has element type \00", align 1
@.str.10 = private unnamed_addr constant [12 x i8] c", expected \00", align 1
@.str.11 = private unnamed_addr constant [10 x i8] c"has rank \00", align 1
@.str.12 = private unnamed_addr constant [9 x i8] c"has dim \00", align 1
@.str.13 = private unnamed_addr constant [4 x i8] c" = \00", align 1
@.str.14 = private unnamed_addr constant [9 x i8] c", which \00", align 1
@.str.15 = private unnamed_addr constant [11 x i8] c" cannot be\00", align 1
@.str.16 = private unnamed_addr constant [16 x i8] c"would have dim \00", align 1
@.str.17 = private unnamed_addr constant [53 x i8] c" out of range (negative, over 63 bits, or undefined)\00", align 1
@.str.18 = private unnamed_addr constant [47 x i8] c"the size of its scratch memory is out of range\00", align 1
@.str.19 = private unnamed_addr constant [15 x i8] c"no memory for \00", align 1
@.str.20 = private unnamed_addr constant [18 x i8] c" bytes of scratch\00", align 1
@.str.21 = private unnamed_addr constant [189 x i8] c"must be a constant of the model (an initializer that is no input of the graph): a kernel transforms it when the session is created; compile with --tile-weights=file to store it transformed\00", align 1
@.str.22 = private unnamed_addr constant [135 x i8] c" bytes of constants that it computes when the session is created; compile with --tile-weights=file to map them from the model's folder\00", align 1
@.str.23 = private unnamed_addr constant [9 x i8] c" (value \00", align 1
@.str.24 = private unnamed_addr constant [5 x i8] c" is \00", align 1
@.str.25 = private unnamed_addr constant [2 x i8] c")\00", align 1
@.str.26 = private unnamed_addr constant [4 x i8] c" ('\00", align 1
@.str.27 = private unnamed_addr constant [4 x i8] c"') \00", align 1
@igniter_type_names = external local_unnamed_addr constant [0 x ptr], align 8
@igniter_type_count = external local_unnamed_addr constant i64, align 8

; Function Attrs: cold nofree noinline norecurse nosync nounwind optsize memory(write, argmem: readwrite, inaccessiblemem: none, target_mem0: none, target_mem1: none)
define hidden void @igniter_text(ptr noundef captures(none) %string, ptr noundef readonly captures(none) %text) local_unnamed_addr #0 {
entry:
  %length1 = getelementptr inbounds nuw i8, ptr %string, i64 16
  %0 = load i64, ptr %length1, align 8
  %capacity = getelementptr inbounds nuw i8, ptr %string, i64 8
  %1 = load i8, ptr %text, align 1
  %tobool.not14 = icmp eq i8 %1, 0
  br i1 %tobool.not14, label %while.end, label %land.rhs

land.rhs:                                         ; preds = %while.body, %entry
  %2 = phi i8 [ %5, %while.body ], [ %1, %entry ]
  %length.016 = phi i64 [ %inc, %while.body ], [ %0, %entry ]
  %text.addr.015 = phi ptr [ %incdec.ptr, %while.body ], [ %text, %entry ]
  %3 = load i64, ptr %capacity, align 8
  %sub = add nsw i64 %3, -1
  %cmp = icmp slt i64 %length.016, %sub
  br i1 %cmp, label %while.body, label %while.end

while.body:                                       ; preds = %land.rhs
  %incdec.ptr = getelementptr inbounds nuw i8, ptr %text.addr.015, i64 1
  %4 = load ptr, ptr %string, align 8
  %inc = add nsw i64 %length.016, 1
  %arrayidx = getelementptr inbounds i8, ptr %4, i64 %length.016
  store i8 %2, ptr %arrayidx, align 1
  %5 = load i8, ptr %incdec.ptr, align 1
  %tobool.not = icmp eq i8 %5, 0
  br i1 %tobool.not, label %while.end, label %land.rhs, !llvm.loop !0

while.end:                                        ; preds = %while.body, %land.rhs, %entry
  %length.0.lcssa = phi i64 [ %0, %entry ], [ %length.016, %land.rhs ], [ %inc, %while.body ]
  %6 = load ptr, ptr %string, align 8
  %arrayidx4 = getelementptr inbounds i8, ptr %6, i64 %length.0.lcssa
  store i8 0, ptr %arrayidx4, align 1
  store i64 %length.0.lcssa, ptr %length1, align 8
  ret void
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #1

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #1

; Function Attrs: cold nofree noinline norecurse nosync nounwind optsize memory(write, argmem: readwrite, inaccessiblemem: none, target_mem0: none, target_mem1: none)
define hidden void @igniter_number(ptr noundef captures(none) %string, i64 noundef %value) local_unnamed_addr #0 {
entry:
  %digits = alloca [24 x i8], align 1
  call void @llvm.lifetime.start.p0(ptr nonnull %digits) #5
  %cond = tail call i64 @llvm.abs.i64(i64 %value, i1 false)
  %arrayidx = getelementptr inbounds nuw i8, ptr %digits, i64 23
  store i8 0, ptr %arrayidx, align 1
  br label %do.body

do.body:                                          ; preds = %do.body, %entry
  %indvars.iv = phi i64 [ %indvars.iv.next, %do.body ], [ 23, %entry ]
  %rest.0 = phi i64 [ %div, %do.body ], [ %cond, %entry ]
  %rest.0.frozen = freeze i64 %rest.0
  %div = udiv i64 %rest.0.frozen, 10
  %0 = mul i64 %div, 10
  %rem.decomposed = sub i64 %rest.0.frozen, %0
  %1 = trunc nuw nsw i64 %rem.decomposed to i8
  %conv = or disjoint i8 %1, 48
  %indvars.iv.next = add nsw i64 %indvars.iv, -1
  %arrayidx2 = getelementptr inbounds i8, ptr %digits, i64 %indvars.iv.next
  store i8 %conv, ptr %arrayidx2, align 1
  %tobool.not = icmp ult i64 %rest.0, 10
  br i1 %tobool.not, label %do.end, label %do.body, !llvm.loop !3

do.end:                                           ; preds = %do.body
  %cmp = icmp slt i64 %value, 0
  %2 = trunc nsw i64 %indvars.iv.next to i32
  br i1 %cmp, label %if.then, label %if.end

if.then:                                          ; preds = %do.end
  %3 = trunc nsw i64 %indvars.iv to i32
  %dec5 = add nsw i32 %3, -2
  %idxprom6 = sext i32 %dec5 to i64
  %arrayidx7 = getelementptr inbounds i8, ptr %digits, i64 %idxprom6
  store i8 45, ptr %arrayidx7, align 1
  br label %if.end

if.end:                                           ; preds = %if.then, %do.end
  %place.1 = phi i32 [ %dec5, %if.then ], [ %2, %do.end ]
  %idx.ext = sext i32 %place.1 to i64
  %add.ptr = getelementptr inbounds i8, ptr %digits, i64 %idx.ext
  call void @igniter_text(ptr noundef %string, ptr noundef nonnull %add.ptr) #6
  call void @llvm.lifetime.end.p0(ptr nonnull %digits) #5
  ret void
}

; Function Attrs: cold nofree noinline norecurse nosync nounwind optsize memory(readwrite, inaccessiblemem: none, target_mem0: none, target_mem1: none)
define hidden void @igniter_begin(ptr noundef captures(none) initializes((0, 24)) %string, ptr noundef %buffer, i64 noundef %capacity, ptr noundef readonly captures(none) %desc) local_unnamed_addr #2 {
entry:
  store ptr %buffer, ptr %string, align 8
  %capacity2 = getelementptr inbounds nuw i8, ptr %string, i64 8
  store i64 %capacity, ptr %capacity2, align 8
  %length = getelementptr inbounds nuw i8, ptr %string, i64 16
  store i64 0, ptr %length, align 8
  tail call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str) #6
  %0 = load ptr, ptr %desc, align 8
  tail call void @igniter_text(ptr noundef nonnull %string, ptr noundef %0) #6
  tail call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str.1) #6
  ret void
}

; Function Attrs: cold noinline nounwind optsize
define hidden ptr @igniter_fail(ptr noundef readonly captures(none) %api, ptr noundef readonly captures(none) %desc, i32 noundef %kind, ptr noundef readonly captures(none) %about, i64 noundef %index, i64 noundef %axis, i64 noundef %want, i64 noundef %got) local_unnamed_addr #3 {
entry:
  %buffer = alloca [1024 x i8], align 1
  %string = alloca %struct.igniter_string, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %buffer) #5
  call void @llvm.lifetime.start.p0(ptr nonnull %string) #5
  call void @igniter_begin(ptr noundef nonnull %string, ptr noundef nonnull %buffer, i64 noundef 1024, ptr noundef %desc) #6
  switch i32 %kind, label %describe.exit [
    i32 1, label %sw.bb.i
    i32 10, label %sw.bb1.i
    i32 2, label %sw.bb2.i
    i32 11, label %sw.bb3.i
    i32 3, label %sw.bb4.i
    i32 4, label %sw.bb5.i
    i32 5, label %sw.bb6.i
    i32 6, label %sw.bb7.i
    i32 12, label %sw.bb8.i
    i32 7, label %sw.bb11.i
    i32 8, label %sw.bb14.i
    i32 9, label %sw.bb15.i
    i32 15, label %sw.bb16.i
    i32 16, label %sw.bb17.i
    i32 13, label %sw.bb18.i
    i32 14, label %sw.bb19.i
  ]

sw.bb.i:                                          ; preds = %entry
  call fastcc void @pair(ptr noundef nonnull %string, ptr noundef nonnull @.str.2, i64 noundef %want, ptr noundef nonnull @.str.3, i64 noundef %got) #6
  br label %describe.exit

sw.bb1.i:                                         ; preds = %entry
  call fastcc void @pair(ptr noundef nonnull %string, ptr noundef nonnull @.str.2, i64 noundef %want, ptr noundef nonnull @.str.4, i64 noundef %got) #6
  br label %describe.exit

sw.bb2.i:                                         ; preds = %entry
  call fastcc void @value(ptr noundef nonnull %string, ptr noundef nonnull @.str.5, i64 noundef %index, ptr noundef readonly %about) #6
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str.6) #6
  br label %describe.exit

sw.bb3.i:                                         ; preds = %entry
  call fastcc void @value(ptr noundef nonnull %string, ptr noundef nonnull @.str.7, i64 noundef %index, ptr noundef readonly %about) #6
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str.8) #6
  br label %describe.exit

sw.bb4.i:                                         ; preds = %entry
  call fastcc void @value(ptr noundef nonnull %string, ptr noundef nonnull @.str.5, i64 noundef %index, ptr noundef readonly %about) #6
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str.9) #6
  call fastcc void @type(ptr noundef nonnull %string, i64 noundef %got) #6
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str.10) #6
  call fastcc void @type(ptr noundef nonnull %string, i64 noundef %want) #6
  br label %describe.exit

sw.bb5.i:                                         ; preds = %entry
  call fastcc void @value(ptr noundef nonnull %string, ptr noundef nonnull @.str.5, i64 noundef %index, ptr noundef readonly %about) #6
  call fastcc void @pair(ptr noundef nonnull %string, ptr noundef nonnull @.str.11, i64 noundef %got, ptr noundef nonnull @.str.10, i64 noundef %want) #6
  call fastcc void @shape(ptr noundef nonnull %string, ptr noundef readonly %about) #6
  br label %describe.exit

sw.bb6.i:                                         ; preds = %entry
  call fastcc void @value(ptr noundef nonnull %string, ptr noundef nonnull @.str.5, i64 noundef %index, ptr noundef readonly %about) #6
  call fastcc void @pair(ptr noundef nonnull %string, ptr noundef nonnull @.str.12, i64 noundef %axis, ptr noundef nonnull @.str.13, i64 noundef %got) #6
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str.10) #6
  call void @igniter_number(ptr noundef nonnull %string, i64 noundef %want) #6
  call fastcc void @shape(ptr noundef nonnull %string, ptr noundef readonly %about) #6
  br label %describe.exit

sw.bb7.i:                                         ; preds = %entry
  call fastcc void @value(ptr noundef nonnull %string, ptr noundef nonnull @.str.5, i64 noundef %index, ptr noundef readonly %about) #6
  call fastcc void @pair(ptr noundef nonnull %string, ptr noundef nonnull @.str.12, i64 noundef %axis, ptr noundef nonnull @.str.13, i64 noundef %got) #6
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str.10) #6
  %dim_texts.i = getelementptr inbounds nuw i8, ptr %about, i64 16
  %0 = load ptr, ptr %dim_texts.i, align 8
  %arrayidx.i = getelementptr inbounds ptr, ptr %0, i64 %axis
  %1 = load ptr, ptr %arrayidx.i, align 8
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef %1) #6
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str.13) #6
  call void @igniter_number(ptr noundef nonnull %string, i64 noundef %want) #6
  call fastcc void @shape(ptr noundef nonnull %string, ptr noundef readonly %about) #6
  br label %describe.exit

sw.bb8.i:                                         ; preds = %entry
  call fastcc void @value(ptr noundef nonnull %string, ptr noundef nonnull @.str.5, i64 noundef %index, ptr noundef readonly %about) #6
  call fastcc void @pair(ptr noundef nonnull %string, ptr noundef nonnull @.str.12, i64 noundef %axis, ptr noundef nonnull @.str.13, i64 noundef %got) #6
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str.14) #6
  %dim_texts9.i = getelementptr inbounds nuw i8, ptr %about, i64 16
  %2 = load ptr, ptr %dim_texts9.i, align 8
  %arrayidx10.i = getelementptr inbounds ptr, ptr %2, i64 %axis
  %3 = load ptr, ptr %arrayidx10.i, align 8
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef %3) #6
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str.15) #6
  call fastcc void @shape(ptr noundef nonnull %string, ptr noundef readonly %about) #6
  br label %describe.exit

sw.bb11.i:                                        ; preds = %entry
  call fastcc void @value(ptr noundef nonnull %string, ptr noundef nonnull @.str.7, i64 noundef %index, ptr noundef readonly %about) #6
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str.16) #6
  call void @igniter_number(ptr noundef nonnull %string, i64 noundef %axis) #6
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str.13) #6
  %dim_texts12.i = getelementptr inbounds nuw i8, ptr %about, i64 16
  %4 = load ptr, ptr %dim_texts12.i, align 8
  %arrayidx13.i = getelementptr inbounds ptr, ptr %4, i64 %axis
  %5 = load ptr, ptr %arrayidx13.i, align 8
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef %5) #6
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str.17) #6
  br label %describe.exit

sw.bb14.i:                                        ; preds = %entry
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str.18) #6
  br label %describe.exit

sw.bb15.i:                                        ; preds = %entry
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str.19) #6
  call void @igniter_number(ptr noundef nonnull %string, i64 noundef %got) #6
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str.20) #6
  br label %describe.exit

sw.bb16.i:                                        ; preds = %entry
  call fastcc void @value(ptr noundef nonnull %string, ptr noundef nonnull @.str.5, i64 noundef %index, ptr noundef readonly %about) #6
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str.21) #6
  br label %describe.exit

sw.bb17.i:                                        ; preds = %entry
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str.19) #6
  call void @igniter_number(ptr noundef nonnull %string, i64 noundef %got) #6
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str.22) #6
  br label %describe.exit

sw.bb18.i:                                        ; preds = %entry
  call fastcc void @requirement(ptr noundef nonnull %string, ptr noundef readonly %about) #6
  br label %describe.exit

sw.bb19.i:                                        ; preds = %entry
  %6 = load ptr, ptr %about, align 8
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef %6) #6
  call fastcc void @pair(ptr noundef nonnull %string, ptr noundef nonnull @.str.23, i64 noundef %index, ptr noundef nonnull @.str.24, i64 noundef %got) #6
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str.25) #6
  br label %describe.exit

describe.exit:                                    ; preds = %sw.bb19.i, %sw.bb18.i, %sw.bb17.i, %sw.bb16.i, %sw.bb15.i, %sw.bb14.i, %sw.bb11.i, %sw.bb8.i, %sw.bb7.i, %sw.bb6.i, %sw.bb5.i, %sw.bb4.i, %sw.bb3.i, %sw.bb2.i, %sw.bb1.i, %sw.bb.i, %entry
  %7 = load ptr, ptr %api, align 8
  %cmp = icmp eq i32 %kind, 9
  %cmp1 = icmp eq i32 %kind, 16
  %8 = or i1 %cmp, %cmp1
  %cond = select i1 %8, i32 6, i32 2
  %call = call ptr %7(i32 noundef %cond, ptr noundef nonnull %buffer) #7
  call void @llvm.lifetime.end.p0(ptr nonnull %string) #5
  call void @llvm.lifetime.end.p0(ptr nonnull %buffer) #5
  ret ptr %call
}

; Function Attrs: cold noinline nounwind optsize
define hidden ptr @igniter_outside(ptr noundef readonly captures(none) %api, ptr noundef readonly captures(none) %desc, ptr noundef readonly captures(none) %outside) local_unnamed_addr #3 {
entry:
  %buffer = alloca [1024 x i8], align 1
  %string = alloca %struct.igniter_string, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %buffer) #5
  call void @llvm.lifetime.start.p0(ptr nonnull %string) #5
  call void @igniter_begin(ptr noundef nonnull %string, ptr noundef nonnull %buffer, i64 noundef 1024, ptr noundef %desc) #6
  call void @igniter_text(ptr noundef nonnull %string, ptr noundef %outside) #6
  %0 = load ptr, ptr %api, align 8
  %call = call ptr %0(i32 noundef 6, ptr noundef nonnull %buffer) #7
  call void @llvm.lifetime.end.p0(ptr nonnull %string) #5
  call void @llvm.lifetime.end.p0(ptr nonnull %buffer) #5
  ret ptr %call
}

; Function Attrs: cold nofree noinline norecurse nosync nounwind optsize memory(write, argmem: readwrite, inaccessiblemem: none, target_mem0: none, target_mem1: none)
define internal fastcc void @pair(ptr noundef nonnull captures(none) %string, ptr noundef readonly captures(none) %before, i64 noundef %first, ptr noundef readonly captures(none) %between, i64 noundef %second) unnamed_addr #0 {
entry:
  tail call void @igniter_text(ptr noundef nonnull %string, ptr noundef %before) #6
  tail call void @igniter_number(ptr noundef nonnull %string, i64 noundef %first) #6
  tail call void @igniter_text(ptr noundef nonnull %string, ptr noundef %between) #6
  tail call void @igniter_number(ptr noundef nonnull %string, i64 noundef %second) #6
  ret void
}

; Function Attrs: cold nofree noinline norecurse nosync nounwind optsize memory(readwrite, inaccessiblemem: none, target_mem0: none, target_mem1: none)
define internal fastcc void @value(ptr noundef nonnull captures(none) %string, ptr noundef readonly captures(none) %what, i64 noundef %index, ptr noundef readonly captures(none) %port) unnamed_addr #2 {
entry:
  tail call void @igniter_text(ptr noundef nonnull %string, ptr noundef %what) #6
  tail call void @igniter_number(ptr noundef nonnull %string, i64 noundef %index) #6
  tail call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str.26) #6
  %0 = load ptr, ptr %port, align 8
  tail call void @igniter_text(ptr noundef nonnull %string, ptr noundef %0) #6
  tail call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str.27) #6
  ret void
}

; Function Attrs: cold nofree noinline norecurse nosync nounwind optsize memory(readwrite, inaccessiblemem: none, target_mem0: none, target_mem1: none)
define internal fastcc void @type(ptr noundef nonnull captures(none) %string, i64 noundef %number) unnamed_addr #2 {
entry:
  %0 = load i64, ptr @igniter_type_count, align 8
  %cmp = icmp ult i64 %number, %0
  %cond = select i1 %cmp, i64 %number, i64 0
  %arrayidx = getelementptr inbounds ptr, ptr @igniter_type_names, i64 %cond
  %1 = load ptr, ptr %arrayidx, align 8
  tail call void @igniter_text(ptr noundef nonnull %string, ptr noundef %1) #6
  ret void
}

; Function Attrs: cold nofree noinline norecurse nosync nounwind optsize memory(readwrite, inaccessiblemem: none, target_mem0: none, target_mem1: none)
define internal fastcc void @shape(ptr noundef nonnull captures(none) %string, ptr noundef readonly captures(none) %port) unnamed_addr #2 {
entry:
  tail call void @igniter_text(ptr noundef nonnull %string, ptr noundef nonnull @.str.1) #6
  %shape = getelementptr inbounds nuw i8, ptr %port, i64 8
  %0 = load ptr, ptr %shape, align 8
  tail call void @igniter_text(ptr noundef nonnull %string, ptr noundef %0) #6
  ret void
}

; Function Attrs: cold nofree noinline norecurse nosync nounwind optsize memory(readwrite, inaccessiblemem: none, target_mem0: none, target_mem1: none)
define internal fastcc void @requirement(ptr noundef nonnull captures(none) %string, ptr noundef readonly captures(none) %failure) unnamed_addr #2 {
entry:
  %message1 = getelementptr inbounds nuw i8, ptr %failure, i64 40
  %0 = load ptr, ptr %message1, align 8
  %1 = load i64, ptr %0, align 8
  %cmp16 = icmp sgt i64 %1, 0
  br i1 %cmp16, label %for.body.lr.ph, label %for.cond.cleanup

for.body.lr.ph:                                   ; preds = %entry
  %pieces = getelementptr inbounds nuw i8, ptr %0, i64 8
  %numbers2 = getelementptr inbounds nuw i8, ptr %failure, i64 48
  br label %for.body

for.cond.cleanup:                                 ; preds = %for.body, %entry
  %.lcssa = phi i64 [ %1, %entry ], [ %7, %for.body ]
  %pieces4 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %2 = load ptr, ptr %pieces4, align 8
  %arrayidx6 = getelementptr inbounds ptr, ptr %2, i64 %.lcssa
  %3 = load ptr, ptr %arrayidx6, align 8
  tail call void @igniter_text(ptr noundef nonnull %string, ptr noundef %3) #6
  ret void

for.body:                                         ; preds = %for.body, %for.body.lr.ph
  %k.017 = phi i64 [ 0, %for.body.lr.ph ], [ %inc, %for.body ]
  %4 = load ptr, ptr %pieces, align 8
  %arrayidx = getelementptr inbounds nuw ptr, ptr %4, i64 %k.017
  %5 = load ptr, ptr %arrayidx, align 8
  tail call void @igniter_text(ptr noundef nonnull %string, ptr noundef %5) #6
  %arrayidx3 = getelementptr inbounds nuw i64, ptr %numbers2, i64 %k.017
  %6 = load i64, ptr %arrayidx3, align 8
  tail call void @igniter_number(ptr noundef nonnull %string, i64 noundef %6) #6
  %inc = add nuw nsw i64 %k.017, 1
  %7 = load i64, ptr %0, align 8
  %cmp = icmp slt i64 %inc, %7
  br i1 %cmp, label %for.body, label %for.cond.cleanup, !llvm.loop !4
}

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.abs.i64(i64, i1 immarg) #4

attributes #0 = { cold nofree noinline norecurse nosync nounwind optsize memory(write, argmem: readwrite, inaccessiblemem: none, target_mem0: none, target_mem1: none) "no-builtins" }
attributes #1 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #2 = { cold nofree noinline norecurse nosync nounwind optsize memory(readwrite, inaccessiblemem: none, target_mem0: none, target_mem1: none) "no-builtins" }
attributes #3 = { cold noinline nounwind optsize "no-builtins" }
attributes #4 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #5 = { nounwind }
attributes #6 = { cold nobuiltin "no-builtins" }
attributes #7 = { nobuiltin nounwind "no-builtins" }

!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.mustprogress"}
!2 = !{!"llvm.loop.unroll.disable"}
!3 = distinct !{!3, !1, !2}
!4 = distinct !{!4, !1, !2}
