target triple = "x86_64-unknown-linux-gnu"

%struct.variant = type { i32, i32 }

@igniter_api_version = external local_unnamed_addr constant i32, align 4
@igniter_too_old = external constant [0 x i8], align 1
@igniter_api = hidden local_unnamed_addr global ptr null, align 8
@igniter_domain_name = external constant [0 x i8], align 1
@domain = internal unnamed_addr global ptr null, align 8
@domain_api = internal global ptr null, align 8
@.str = private unnamed_addr constant [2 x i8] c"1\00", align 1
@igniter_variant = hidden local_unnamed_addr global i32 0, align 4
@igniter_variant_count = external local_unnamed_addr constant i64, align 8
@igniter_variants = external local_unnamed_addr constant [0 x %struct.variant], align 4
@igniter_refusals = external local_unnamed_addr constant [0 x ptr], align 8
@igniter_op_count = external local_unnamed_addr constant i64, align 8
@igniter_ops = external local_unnamed_addr constant [0 x ptr], align 8

; Function Attrs: nounwind
define dso_local ptr @RegisterCustomOps(ptr noundef %options, ptr noundef readonly captures(none) %base) local_unnamed_addr #0 {
entry:
  %marked = alloca i32, align 4
  %chosen = alloca ptr, align 8
  %0 = load ptr, ptr %base, align 8
  %1 = load i32, ptr @igniter_api_version, align 4
  %call = tail call ptr %0(i32 noundef %1) #3
  %tobool.not = icmp eq ptr %call, null
  br i1 %tobool.not, label %if.then, label %if.end

if.then:                                          ; preds = %entry
  %2 = load ptr, ptr %base, align 8
  %call2 = tail call ptr %2(i32 noundef 1) #3
  %3 = load ptr, ptr %call2, align 8
  %call3 = tail call ptr %3(i32 noundef 9, ptr noundef nonnull @igniter_too_old) #3
  br label %cleanup47

if.end:                                           ; preds = %entry
  %4 = load i64, ptr @igniter_variant_count, align 8
  %tobool.not.i = icmp eq i64 %4, 0
  br i1 %tobool.not.i, label %choose_variant.exit, label %if.end.i

if.end.i:                                         ; preds = %if.end
  %call.i = tail call i32 @igniter_cpu_level() #3
  %cmp.not12.i = icmp sgt i64 %4, 0
  br i1 %cmp.not12.i, label %for.body.i, label %for.end.i

for.cond.i:                                       ; preds = %for.body.i
  %inc.i = add nuw nsw i64 %k.013.i, 1
  %exitcond.not.i = icmp eq i64 %inc.i, %4
  br i1 %exitcond.not.i, label %for.end.i, label %for.body.i, !llvm.loop !0

for.body.i:                                       ; preds = %for.cond.i, %if.end.i
  %k.013.i = phi i64 [ %inc.i, %for.cond.i ], [ 0, %if.end.i ]
  %arrayidx.i = getelementptr inbounds nuw %struct.variant, ptr @igniter_variants, i64 %k.013.i
  %level1.i = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 4
  %5 = load i32, ptr %level1.i, align 4
  %cmp2.not.i = icmp slt i32 %call.i, %5
  br i1 %cmp2.not.i, label %for.cond.i, label %if.then3.i

if.then3.i:                                       ; preds = %for.body.i
  %6 = load i32, ptr %arrayidx.i, align 4
  store atomic i32 %6, ptr @igniter_variant release, align 4
  br label %choose_variant.exit

for.end.i:                                        ; preds = %for.cond.i, %if.end.i
  %idxprom.i = sext i32 %call.i to i64
  %arrayidx6.i = getelementptr inbounds ptr, ptr @igniter_refusals, i64 %idxprom.i
  %7 = load ptr, ptr %arrayidx6.i, align 8
  br label %choose_variant.exit

choose_variant.exit:                              ; preds = %for.end.i, %if.then3.i, %if.end
  %retval.2.i = phi ptr [ null, %if.end ], [ %7, %for.end.i ], [ null, %if.then3.i ]
  %tobool5.not = icmp eq ptr %retval.2.i, null
  br i1 %tobool5.not, label %if.end9, label %if.then6

if.then6:                                         ; preds = %choose_variant.exit
  %8 = load ptr, ptr %call, align 8
  %call8 = tail call ptr %8(i32 noundef 9, ptr noundef nonnull %retval.2.i) #3
  br label %cleanup47

if.end9:                                          ; preds = %choose_variant.exit
  %9 = ptrtoint ptr %call to i64
  store atomic i64 %9, ptr @igniter_api release, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %marked) #4
  store i32 0, ptr %marked, align 4
  %HasSessionConfigEntry = getelementptr inbounds nuw i8, ptr %call, i64 1896
  %10 = load ptr, ptr %HasSessionConfigEntry, align 8
  %call10 = call ptr %10(ptr noundef %options, ptr noundef nonnull @igniter_domain_name, ptr noundef nonnull %marked) #3
  %tobool11.not = icmp eq ptr %call10, null
  br i1 %tobool11.not, label %do.end, label %cleanup45

do.end:                                           ; preds = %if.end9
  %11 = load i32, ptr %marked, align 4
  %tobool14.not = icmp eq i32 %11, 0
  br i1 %tobool14.not, label %if.end16, label %cleanup45

if.end16:                                         ; preds = %do.end
  call void @llvm.lifetime.start.p0(ptr nonnull %chosen) #4
  %12 = load atomic i64, ptr @domain acquire, align 8
  %13 = inttoptr i64 %12 to ptr
  store ptr %13, ptr %chosen, align 8
  %tobool17.not = icmp eq i64 %12, 0
  br i1 %tobool17.not, label %do.body20, label %lor.lhs.false

lor.lhs.false:                                    ; preds = %if.end16
  %14 = load atomic i64, ptr @domain_api acquire, align 8
  %15 = inttoptr i64 %14 to ptr
  %cmp.not = icmp eq ptr %call, %15
  br i1 %cmp.not, label %do.body32, label %do.body20

do.body20:                                        ; preds = %lor.lhs.false, %if.end16
  %CreateCustomOpDomain.i = getelementptr inbounds nuw i8, ptr %call, i64 208
  %16 = load ptr, ptr %CreateCustomOpDomain.i, align 8
  %call.i66 = call ptr %16(ptr noundef nonnull @igniter_domain_name, ptr noundef nonnull %chosen) #3
  %tobool.not.not.i = icmp eq ptr %call.i66, null
  br i1 %tobool.not.not.i, label %for.cond.preheader.i, label %make_domain.exit

for.cond.preheader.i:                             ; preds = %do.body20
  %17 = load i64, ptr @igniter_op_count, align 8
  %cmp.not26.i = icmp sgt i64 %17, 0
  br i1 %cmp.not26.i, label %for.body.lr.ph.i, label %cleanup8.i

for.body.lr.ph.i:                                 ; preds = %for.cond.preheader.i
  %CustomOpDomain_Add.i = getelementptr inbounds nuw i8, ptr %call, i64 216
  %ReleaseCustomOpDomain.i = getelementptr inbounds nuw i8, ptr %call, i64 808
  br label %for.body.i68

for.body.i68:                                     ; preds = %cleanup5.i, %for.body.lr.ph.i
  %retval.128.i = phi ptr [ null, %for.body.lr.ph.i ], [ %retval.2.i70, %cleanup5.i ]
  %k.027.i = phi i64 [ 0, %for.body.lr.ph.i ], [ %inc.i71, %cleanup5.i ]
  %18 = load ptr, ptr %CustomOpDomain_Add.i, align 8
  %19 = load ptr, ptr %chosen, align 8
  %arrayidx.i69 = getelementptr inbounds nuw ptr, ptr @igniter_ops, i64 %k.027.i
  %20 = load ptr, ptr %arrayidx.i69, align 8
  %call1.i = call ptr %18(ptr noundef %19, ptr noundef %20) #3
  %tobool2.not.i = icmp ne ptr %call1.i, null
  br i1 %tobool2.not.i, label %if.then3.i73, label %cleanup5.i

if.then3.i73:                                     ; preds = %for.body.i68
  %21 = load ptr, ptr %ReleaseCustomOpDomain.i, align 8
  %22 = load ptr, ptr %chosen, align 8
  call void %21(ptr noundef %22) #3
  br label %cleanup5.i

cleanup5.i:                                       ; preds = %if.then3.i73, %for.body.i68
  %retval.2.i70 = phi ptr [ %call1.i, %if.then3.i73 ], [ %retval.128.i, %for.body.i68 ]
  %inc.i71 = add nuw nsw i64 %k.027.i, 1
  %exitcond.not.i72 = icmp eq i64 %inc.i71, %17
  %or.cond.i = select i1 %tobool2.not.i, i1 true, i1 %exitcond.not.i72
  br i1 %or.cond.i, label %cleanup8.i, label %for.body.i68, !llvm.loop !3

cleanup8.i:                                       ; preds = %cleanup5.i, %for.cond.preheader.i
  %cmp.not.lcssa.i = phi i1 [ false, %for.cond.preheader.i ], [ %tobool2.not.i, %cleanup5.i ]
  %retval.3.i = phi ptr [ null, %for.cond.preheader.i ], [ %retval.2.i70, %cleanup5.i ]
  br i1 %cmp.not.lcssa.i, label %make_domain.exit, label %for.end.i67

for.end.i67:                                      ; preds = %cleanup8.i
  %23 = cmpxchg ptr @domain_api, i64 0, i64 %9 acq_rel acquire, align 8
  %24 = extractvalue { i64, i1 } %23, 1
  br i1 %24, label %if.then10.i, label %make_domain.exit

if.then10.i:                                      ; preds = %for.end.i67
  %25 = load ptr, ptr %chosen, align 8
  %26 = ptrtoint ptr %25 to i64
  store atomic i64 %26, ptr @domain release, align 8
  br label %make_domain.exit

make_domain.exit:                                 ; preds = %if.then10.i, %for.end.i67, %cleanup8.i, %do.body20
  %retval.4.i = phi ptr [ %call.i66, %do.body20 ], [ %retval.3.i, %cleanup8.i ], [ null, %if.then10.i ], [ null, %for.end.i67 ]
  %tobool23.not = icmp eq ptr %retval.4.i, null
  br i1 %tobool23.not, label %do.body32, label %cleanup44

do.body32:                                        ; preds = %make_domain.exit, %lor.lhs.false
  %retval.2 = phi ptr [ %retval.4.i, %make_domain.exit ], [ null, %lor.lhs.false ]
  %AddCustomOpDomain = getelementptr inbounds nuw i8, ptr %call, i64 224
  %27 = load ptr, ptr %AddCustomOpDomain, align 8
  %28 = load ptr, ptr %chosen, align 8
  %call34 = call ptr %27(ptr noundef %options, ptr noundef %28) #3
  %tobool35.not = icmp eq ptr %call34, null
  %retval.2.call34 = select i1 %tobool35.not, ptr %retval.2, ptr %call34
  br i1 %tobool35.not, label %do.end42, label %cleanup44

do.end42:                                         ; preds = %do.body32
  %AddSessionConfigEntry = getelementptr inbounds nuw i8, ptr %call, i64 1040
  %29 = load ptr, ptr %AddSessionConfigEntry, align 8
  %call43 = call ptr %29(ptr noundef %options, ptr noundef nonnull @igniter_domain_name, ptr noundef nonnull @.str) #3
  br label %cleanup44

cleanup44:                                        ; preds = %do.end42, %do.body32, %make_domain.exit
  %retval.4 = phi ptr [ %call43, %do.end42 ], [ %retval.2.call34, %do.body32 ], [ %retval.4.i, %make_domain.exit ]
  call void @llvm.lifetime.end.p0(ptr nonnull %chosen) #4
  br label %cleanup45

cleanup45:                                        ; preds = %cleanup44, %do.end, %if.end9
  %retval.5 = phi ptr [ %call10, %if.end9 ], [ %retval.4, %cleanup44 ], [ null, %do.end ]
  call void @llvm.lifetime.end.p0(ptr nonnull %marked) #4
  br label %cleanup47

cleanup47:                                        ; preds = %cleanup45, %if.then6, %if.then
  %retval.7 = phi ptr [ %call3, %if.then ], [ %call8, %if.then6 ], [ %retval.5, %cleanup45 ]
  ret ptr %retval.7
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #1

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #1

declare i32 @igniter_cpu_level() local_unnamed_addr #2

attributes #0 = { nounwind "no-builtins" }
attributes #1 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #2 = { "no-builtins" }
attributes #3 = { nobuiltin nounwind "no-builtins" }
attributes #4 = { nounwind }

!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.mustprogress"}
!2 = !{!"llvm.loop.unroll.disable"}
!3 = distinct !{!3, !1, !2}
