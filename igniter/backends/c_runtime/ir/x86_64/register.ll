target triple = "x86_64-unknown-linux-gnu"

%struct.variant = type { i32, i32, i64 }
%struct.feature = type { ptr, i32, i32, i32, i32 }
%struct.igniter_string = type { ptr, i64, i64 }

@igniter_api_version = external local_unnamed_addr constant i32, align 4
@igniter_too_old = external constant [0 x i8], align 1
@igniter_api = hidden local_unnamed_addr global ptr null, align 8
@igniter_domain_name = external constant [0 x i8], align 1
@domain = internal unnamed_addr global ptr null, align 8
@domain_api = internal global ptr null, align 8
@.str = private unnamed_addr constant [2 x i8] c"1\00", align 1
@igniter_variant = hidden local_unnamed_addr global i32 0, align 4
@igniter_variant_count = external local_unnamed_addr constant i64, align 8
@igniter_variants = external local_unnamed_addr constant [0 x %struct.variant], align 8
@igniter_feature_count = external local_unnamed_addr constant i64, align 8
@igniter_features = external local_unnamed_addr constant [0 x %struct.feature], align 8
@.str.1 = private unnamed_addr constant [10 x i8] c" without \00", align 1
@igniter_refusals = external local_unnamed_addr constant [0 x [2 x ptr]], align 8
@.str.2 = private unnamed_addr constant [3 x i8] c", \00", align 1
@igniter_op_count = external local_unnamed_addr constant i64, align 8
@igniter_ops = external local_unnamed_addr constant [0 x ptr], align 8

; Function Attrs: nounwind
define dso_local ptr @RegisterCustomOps(ptr noundef %options, ptr noundef readonly captures(none) %base) local_unnamed_addr #0 {
entry:
  %words.i = alloca [9 x i32], align 16
  %marked = alloca i32, align 4
  %chosen = alloca ptr, align 8
  %0 = load ptr, ptr %base, align 8
  %1 = load i32, ptr @igniter_api_version, align 4
  %call = tail call ptr %0(i32 noundef %1) #4
  %tobool.not = icmp eq ptr %call, null
  br i1 %tobool.not, label %if.then, label %do.body

if.then:                                          ; preds = %entry
  %2 = load ptr, ptr %base, align 8
  %call2 = tail call ptr %2(i32 noundef 1) #4
  %3 = load ptr, ptr %call2, align 8
  %call3 = tail call ptr %3(i32 noundef 9, ptr noundef nonnull @igniter_too_old) #4
  br label %cleanup51

do.body:                                          ; preds = %entry
  %4 = load i64, ptr @igniter_variant_count, align 8
  %tobool.not.i = icmp eq i64 %4, 0
  br i1 %tobool.not.i, label %choose_variant.exit, label %if.end.i

if.end.i:                                         ; preds = %do.body
  call void @llvm.lifetime.start.p0(ptr nonnull %words.i) #5
  call void @igniter_cpu_words(ptr noundef nonnull %words.i) #4
  %call.i = call i32 @igniter_cpu_level(ptr noundef nonnull %words.i) #4
  %5 = load i64, ptr @igniter_feature_count, align 8
  %cmp13.i.i = icmp sgt i64 %5, 0
  br i1 %cmp13.i.i, label %for.body.lr.ph.i.i, label %present.exit.i

for.body.lr.ph.i.i:                               ; preds = %if.end.i
  %arrayidx2.i.i = getelementptr inbounds nuw i8, ptr %words.i, i64 32
  %6 = load i32, ptr %arrayidx2.i.i, align 16
  %not3.i.i = xor i32 %6, -1
  br label %for.body.i.i

for.body.i.i:                                     ; preds = %if.end.i.i, %for.body.lr.ph.i.i
  %found.015.i.i = phi i64 [ 0, %for.body.lr.ph.i.i ], [ %found.1.i.i, %if.end.i.i ]
  %k.014.i.i = phi i64 [ 0, %for.body.lr.ph.i.i ], [ %inc.i.i, %if.end.i.i ]
  %arrayidx.i.i = getelementptr inbounds nuw %struct.feature, ptr @igniter_features, i64 %k.014.i.i
  %bits.i.i = getelementptr inbounds nuw i8, ptr %arrayidx.i.i, i64 12
  %7 = load i32, ptr %bits.i.i, align 4
  %word.i.i = getelementptr inbounds nuw i8, ptr %arrayidx.i.i, i64 8
  %8 = load i32, ptr %word.i.i, align 8
  %idxprom.i.i = sext i32 %8 to i64
  %arrayidx1.i.i = getelementptr inbounds i32, ptr %words.i, i64 %idxprom.i.i
  %9 = load i32, ptr %arrayidx1.i.i, align 4
  %not.i.i = xor i32 %9, -1
  %and.i.i = and i32 %7, %not.i.i
  %tobool.not.i.i = icmp eq i32 %and.i.i, 0
  br i1 %tobool.not.i.i, label %land.lhs.true.i.i, label %if.end.i.i

land.lhs.true.i.i:                                ; preds = %for.body.i.i
  %saved.i.i = getelementptr inbounds nuw i8, ptr %arrayidx.i.i, i64 16
  %10 = load i32, ptr %saved.i.i, align 8
  %and4.i.i = and i32 %10, %not3.i.i
  %tobool5.not.i.i = icmp eq i32 %and4.i.i, 0
  br i1 %tobool5.not.i.i, label %if.then.i.i, label %if.end.i.i

if.then.i.i:                                      ; preds = %land.lhs.true.i.i
  %shl.i.i = shl nuw i64 1, %k.014.i.i
  %or.i.i = or i64 %shl.i.i, %found.015.i.i
  br label %if.end.i.i

if.end.i.i:                                       ; preds = %if.then.i.i, %land.lhs.true.i.i, %for.body.i.i
  %found.1.i.i = phi i64 [ %found.015.i.i, %for.body.i.i ], [ %found.015.i.i, %land.lhs.true.i.i ], [ %or.i.i, %if.then.i.i ]
  %inc.i.i = add nuw nsw i64 %k.014.i.i, 1
  %exitcond.not.i.i = icmp eq i64 %inc.i.i, %5
  br i1 %exitcond.not.i.i, label %present.exit.loopexit.i, label %for.body.i.i, !llvm.loop !0

present.exit.loopexit.i:                          ; preds = %if.end.i.i
  %11 = xor i64 %found.1.i.i, -1
  br label %present.exit.i

present.exit.i:                                   ; preds = %present.exit.loopexit.i, %if.end.i
  %found.0.lcssa.i.i = phi i64 [ -1, %if.end.i ], [ %11, %present.exit.loopexit.i ]
  %cmp.not25.i = icmp sgt i64 %4, 0
  br i1 %cmp.not25.i, label %for.body.i, label %for.end.i

for.cond.i:                                       ; preds = %for.body.i
  %inc.i = add nuw nsw i64 %k.026.i, 1
  %exitcond.not.i = icmp eq i64 %inc.i, %4
  br i1 %exitcond.not.i, label %for.end.i, label %for.body.i, !llvm.loop !3

for.body.i:                                       ; preds = %for.cond.i, %present.exit.i
  %k.026.i = phi i64 [ %inc.i, %for.cond.i ], [ 0, %present.exit.i ]
  %arrayidx.i = getelementptr inbounds nuw %struct.variant, ptr @igniter_variants, i64 %k.026.i
  %features.i = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 8
  %12 = load i64, ptr %features.i, align 8
  %and.i = and i64 %12, %found.0.lcssa.i.i
  %level5.i = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 4
  %13 = load i32, ptr %level5.i, align 4
  %cmp6.i = icmp slt i32 %call.i, %13
  %tobool7.i = icmp ne i64 %and.i, 0
  %or.cond.i = select i1 %cmp6.i, i1 true, i1 %tobool7.i
  br i1 %or.cond.i, label %for.cond.i, label %if.then8.i

if.then8.i:                                       ; preds = %for.body.i
  %14 = load i32, ptr %arrayidx.i, align 8
  store atomic i32 %14, ptr @igniter_variant release, align 4
  br label %cleanup12.i

for.end.i:                                        ; preds = %for.cond.i, %present.exit.i
  %missing.1.i = phi i64 [ 0, %present.exit.i ], [ %and.i, %for.cond.i ]
  %call11.i = call fastcc ptr @refuse(ptr noundef nonnull readonly %call, i32 noundef %call.i, i64 noundef %missing.1.i) #6
  br label %cleanup12.i

cleanup12.i:                                      ; preds = %for.end.i, %if.then8.i
  %retval.1.i = phi ptr [ %call11.i, %for.end.i ], [ null, %if.then8.i ]
  call void @llvm.lifetime.end.p0(ptr nonnull %words.i) #5
  br label %choose_variant.exit

choose_variant.exit:                              ; preds = %cleanup12.i, %do.body
  %retval.2.i = phi ptr [ %retval.1.i, %cleanup12.i ], [ null, %do.body ]
  %tobool5.not = icmp eq ptr %retval.2.i, null
  br i1 %tobool5.not, label %do.end, label %cleanup51

do.end:                                           ; preds = %choose_variant.exit
  %15 = ptrtoint ptr %call to i64
  store atomic i64 %15, ptr @igniter_api release, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %marked) #5
  store i32 0, ptr %marked, align 4
  %HasSessionConfigEntry = getelementptr inbounds nuw i8, ptr %call, i64 1896
  %16 = load ptr, ptr %HasSessionConfigEntry, align 8
  %call10 = call ptr %16(ptr noundef %options, ptr noundef nonnull @igniter_domain_name, ptr noundef nonnull %marked) #4
  %tobool11.not = icmp eq ptr %call10, null
  br i1 %tobool11.not, label %do.end18, label %cleanup50

do.end18:                                         ; preds = %do.end
  %17 = load i32, ptr %marked, align 4
  %tobool19.not = icmp eq i32 %17, 0
  br i1 %tobool19.not, label %if.end21, label %cleanup50

if.end21:                                         ; preds = %do.end18
  call void @llvm.lifetime.start.p0(ptr nonnull %chosen) #5
  %18 = load atomic i64, ptr @domain acquire, align 8
  %19 = inttoptr i64 %18 to ptr
  store ptr %19, ptr %chosen, align 8
  %tobool22.not = icmp eq i64 %18, 0
  br i1 %tobool22.not, label %do.body25, label %lor.lhs.false

lor.lhs.false:                                    ; preds = %if.end21
  %20 = load atomic i64, ptr @domain_api acquire, align 8
  %21 = inttoptr i64 %20 to ptr
  %cmp.not = icmp eq ptr %call, %21
  br i1 %cmp.not, label %do.body37, label %do.body25

do.body25:                                        ; preds = %lor.lhs.false, %if.end21
  %CreateCustomOpDomain.i = getelementptr inbounds nuw i8, ptr %call, i64 208
  %22 = load ptr, ptr %CreateCustomOpDomain.i, align 8
  %call.i72 = call ptr %22(ptr noundef nonnull @igniter_domain_name, ptr noundef nonnull %chosen) #4
  %tobool.not.not.i = icmp eq ptr %call.i72, null
  br i1 %tobool.not.not.i, label %for.cond.preheader.i, label %make_domain.exit

for.cond.preheader.i:                             ; preds = %do.body25
  %23 = load i64, ptr @igniter_op_count, align 8
  %cmp.not26.i = icmp sgt i64 %23, 0
  br i1 %cmp.not26.i, label %for.body.lr.ph.i, label %cleanup8.i

for.body.lr.ph.i:                                 ; preds = %for.cond.preheader.i
  %CustomOpDomain_Add.i = getelementptr inbounds nuw i8, ptr %call, i64 216
  %ReleaseCustomOpDomain.i = getelementptr inbounds nuw i8, ptr %call, i64 808
  br label %for.body.i74

for.body.i74:                                     ; preds = %cleanup5.i, %for.body.lr.ph.i
  %retval.128.i = phi ptr [ null, %for.body.lr.ph.i ], [ %retval.2.i76, %cleanup5.i ]
  %k.027.i = phi i64 [ 0, %for.body.lr.ph.i ], [ %inc.i77, %cleanup5.i ]
  %24 = load ptr, ptr %CustomOpDomain_Add.i, align 8
  %25 = load ptr, ptr %chosen, align 8
  %arrayidx.i75 = getelementptr inbounds nuw ptr, ptr @igniter_ops, i64 %k.027.i
  %26 = load ptr, ptr %arrayidx.i75, align 8
  %call1.i = call ptr %24(ptr noundef %25, ptr noundef %26) #4
  %tobool2.not.i = icmp ne ptr %call1.i, null
  br i1 %tobool2.not.i, label %if.then3.i, label %cleanup5.i

if.then3.i:                                       ; preds = %for.body.i74
  %27 = load ptr, ptr %ReleaseCustomOpDomain.i, align 8
  %28 = load ptr, ptr %chosen, align 8
  call void %27(ptr noundef %28) #4
  br label %cleanup5.i

cleanup5.i:                                       ; preds = %if.then3.i, %for.body.i74
  %retval.2.i76 = phi ptr [ %call1.i, %if.then3.i ], [ %retval.128.i, %for.body.i74 ]
  %inc.i77 = add nuw nsw i64 %k.027.i, 1
  %exitcond.not.i78 = icmp eq i64 %inc.i77, %23
  %or.cond.i79 = select i1 %tobool2.not.i, i1 true, i1 %exitcond.not.i78
  br i1 %or.cond.i79, label %cleanup8.i, label %for.body.i74, !llvm.loop !4

cleanup8.i:                                       ; preds = %cleanup5.i, %for.cond.preheader.i
  %cmp.not.lcssa.i = phi i1 [ false, %for.cond.preheader.i ], [ %tobool2.not.i, %cleanup5.i ]
  %retval.3.i = phi ptr [ null, %for.cond.preheader.i ], [ %retval.2.i76, %cleanup5.i ]
  br i1 %cmp.not.lcssa.i, label %make_domain.exit, label %for.end.i73

for.end.i73:                                      ; preds = %cleanup8.i
  %29 = cmpxchg ptr @domain_api, i64 0, i64 %15 acq_rel acquire, align 8
  %30 = extractvalue { i64, i1 } %29, 1
  br i1 %30, label %if.then10.i, label %make_domain.exit

if.then10.i:                                      ; preds = %for.end.i73
  %31 = load ptr, ptr %chosen, align 8
  %32 = ptrtoint ptr %31 to i64
  store atomic i64 %32, ptr @domain release, align 8
  br label %make_domain.exit

make_domain.exit:                                 ; preds = %if.then10.i, %for.end.i73, %cleanup8.i, %do.body25
  %retval.4.i = phi ptr [ %call.i72, %do.body25 ], [ %retval.3.i, %cleanup8.i ], [ null, %if.then10.i ], [ null, %for.end.i73 ]
  %tobool28.not = icmp eq ptr %retval.4.i, null
  %call4.call10.call27 = select i1 %tobool28.not, ptr %call10, ptr %retval.4.i
  br i1 %tobool28.not, label %do.body37, label %cleanup49

do.body37:                                        ; preds = %make_domain.exit, %lor.lhs.false
  %retval.3 = phi ptr [ %call4.call10.call27, %make_domain.exit ], [ %call10, %lor.lhs.false ]
  %AddCustomOpDomain = getelementptr inbounds nuw i8, ptr %call, i64 224
  %33 = load ptr, ptr %AddCustomOpDomain, align 8
  %34 = load ptr, ptr %chosen, align 8
  %call39 = call ptr %33(ptr noundef %options, ptr noundef %34) #4
  %tobool40.not = icmp eq ptr %call39, null
  %retval.3.call39 = select i1 %tobool40.not, ptr %retval.3, ptr %call39
  br i1 %tobool40.not, label %do.end47, label %cleanup49

do.end47:                                         ; preds = %do.body37
  %AddSessionConfigEntry = getelementptr inbounds nuw i8, ptr %call, i64 1040
  %35 = load ptr, ptr %AddSessionConfigEntry, align 8
  %call48 = call ptr %35(ptr noundef %options, ptr noundef nonnull @igniter_domain_name, ptr noundef nonnull @.str) #4
  br label %cleanup49

cleanup49:                                        ; preds = %do.end47, %do.body37, %make_domain.exit
  %retval.5 = phi ptr [ %call48, %do.end47 ], [ %retval.3.call39, %do.body37 ], [ %call4.call10.call27, %make_domain.exit ]
  call void @llvm.lifetime.end.p0(ptr nonnull %chosen) #5
  br label %cleanup50

cleanup50:                                        ; preds = %cleanup49, %do.end18, %do.end
  %retval.6 = phi ptr [ %call10, %do.end ], [ %retval.5, %cleanup49 ], [ null, %do.end18 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %marked) #5
  br label %cleanup51

cleanup51:                                        ; preds = %cleanup50, %choose_variant.exit, %if.then
  %retval.7 = phi ptr [ %retval.6, %cleanup50 ], [ %retval.2.i, %choose_variant.exit ], [ %call3, %if.then ]
  ret ptr %retval.7
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #1

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #1

declare void @igniter_cpu_words(ptr noundef) local_unnamed_addr #2

declare i32 @igniter_cpu_level(ptr noundef) local_unnamed_addr #2

; Function Attrs: cold noinline nounwind optsize
define internal fastcc ptr @refuse(ptr noundef nonnull readonly captures(none) %api, i32 noundef %level, i64 noundef %missing) unnamed_addr #3 {
entry:
  %buffer = alloca [1024 x i8], align 16
  %text = alloca %struct.igniter_string, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %buffer) #5
  call void @llvm.lifetime.start.p0(ptr nonnull %text) #5
  store ptr %buffer, ptr %text, align 8
  %capacity = getelementptr inbounds nuw i8, ptr %text, i64 8
  store i64 1024, ptr %capacity, align 8
  %length = getelementptr inbounds nuw i8, ptr %text, i64 16
  store i64 0, ptr %length, align 8
  %idxprom = sext i32 %level to i64
  %arrayidx = getelementptr inbounds [2 x ptr], ptr @igniter_refusals, i64 %idxprom
  %0 = load ptr, ptr %arrayidx, align 8
  call void @igniter_text(ptr noundef nonnull %text, ptr noundef %0) #4
  %1 = load i64, ptr @igniter_feature_count, align 8
  %cmp12 = icmp sgt i64 %1, 0
  br i1 %cmp12, label %for.body, label %for.cond.cleanup

for.cond.cleanup:                                 ; preds = %for.inc, %entry
  %arrayidx6 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 8
  %2 = load ptr, ptr %arrayidx6, align 8
  call void @igniter_text(ptr noundef nonnull %text, ptr noundef %2) #4
  %3 = load ptr, ptr %api, align 8
  %call = call ptr %3(i32 noundef 9, ptr noundef nonnull %buffer) #4
  call void @llvm.lifetime.end.p0(ptr nonnull %text) #5
  call void @llvm.lifetime.end.p0(ptr nonnull %buffer) #5
  ret ptr %call

for.body:                                         ; preds = %for.inc, %entry
  %k.014 = phi i64 [ %inc, %for.inc ], [ 0, %entry ]
  %between.013 = phi ptr [ %between.1, %for.inc ], [ @.str.1, %entry ]
  %4 = shl nuw i64 1, %k.014
  %5 = and i64 %4, %missing
  %tobool.not = icmp eq i64 %5, 0
  br i1 %tobool.not, label %for.inc, label %if.then

if.then:                                          ; preds = %for.body
  call void @igniter_text(ptr noundef nonnull %text, ptr noundef %between.013) #4
  %arrayidx3 = getelementptr inbounds nuw %struct.feature, ptr @igniter_features, i64 %k.014
  %6 = load ptr, ptr %arrayidx3, align 8
  call void @igniter_text(ptr noundef nonnull %text, ptr noundef %6) #4
  br label %for.inc

for.inc:                                          ; preds = %if.then, %for.body
  %between.1 = phi ptr [ @.str.2, %if.then ], [ %between.013, %for.body ]
  %inc = add nuw nsw i64 %k.014, 1
  %exitcond.not = icmp eq i64 %inc, %1
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body, !llvm.loop !5
}

declare void @igniter_text(ptr noundef, ptr noundef) local_unnamed_addr #2

attributes #0 = { nounwind "no-builtins" }
attributes #1 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #2 = { "no-builtins" }
attributes #3 = { cold noinline nounwind optsize "no-builtins" }
attributes #4 = { nobuiltin nounwind "no-builtins" }
attributes #5 = { nounwind }
attributes #6 = { cold nobuiltin "no-builtins" }

!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.mustprogress"}
!2 = !{!"llvm.loop.unroll.disable"}
!3 = distinct !{!3, !1, !2}
!4 = distinct !{!4, !1, !2}
!5 = distinct !{!5, !1, !2}
