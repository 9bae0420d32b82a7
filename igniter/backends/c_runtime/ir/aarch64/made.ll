target triple = "aarch64-unknown-linux-gnu"

%struct.igniter_made = type { ptr, ptr, i64, i64, i64, i64 }
%struct.igniter_port = type { ptr, ptr, ptr, ptr, i32, i32, i32, i32, i64, i64, i64 }

@blocks = internal unnamed_addr global ptr null, align 8
@lock = internal global i32 0, align 4

; Function Attrs: nounwind
define hidden ptr @igniter_make(ptr noundef %api, ptr noundef %desc, ptr noundef %info, ptr noundef %allocator, ptr noundef captures(none) %state) local_unnamed_addr #0 {
entry:
  %memory.i.i = alloca ptr, align 8
  %buffers.i.i = alloca [2 x ptr], align 8
  %memory.i = alloca ptr, align 8
  %constant.i.i = alloca i32, align 4
  %value.i.i = alloca ptr, align 8
  %made_count = getelementptr inbounds nuw i8, ptr %desc, i64 144
  %0 = load i64, ptr %made_count, align 8
  %mul = shl i64 %0, 3
  %1 = alloca i8, i64 %mul, align 16
  %2 = alloca i8, i64 %mul, align 16
  %cmp.not70.i = icmp sgt i64 %0, 0
  br i1 %cmp.not70.i, label %for.body.lr.ph.i, label %take_constants.exit

for.body.lr.ph.i:                                 ; preds = %entry
  %checked.i.i = getelementptr inbounds nuw i8, ptr %state, i64 40
  %made4.i = getelementptr inbounds nuw i8, ptr %desc, i64 136
  %KernelInfoGetConstantInput_tensor.i.i = getelementptr inbounds nuw i8, ptr %api, i64 1992
  %inputs.i.i = getelementptr inbounds nuw i8, ptr %desc, i64 8
  %GetTensorMutableData.i.i = getelementptr inbounds nuw i8, ptr %api, i64 408
  br label %for.body.i

for.body.i:                                       ; preds = %if.end21.i, %for.body.lr.ph.i
  %m.sroa.39.0 = phi i64 [ 0, %for.body.lr.ph.i ], [ %add.i66.i, %if.end21.i ]
  %m.sroa.50.0 = phi i64 [ 0, %for.body.lr.ph.i ], [ %add10.i.i, %if.end21.i ]
  %retval.072.i = phi ptr [ undef, %for.body.lr.ph.i ], [ %retval.0.call.i, %if.end21.i ]
  %k.071.i = phi i64 [ 0, %for.body.lr.ph.i ], [ %inc29.i, %if.end21.i ]
  %3 = load ptr, ptr %made4.i, align 8
  %arrayidx5.i = getelementptr inbounds nuw %struct.igniter_made, ptr %3, i64 %k.071.i
  %input.i = getelementptr inbounds nuw i8, ptr %arrayidx5.i, i64 16
  %4 = load i64, ptr %input.i, align 8
  %arrayidx6.i = getelementptr inbounds nuw ptr, ptr %1, i64 %k.071.i
  call void @llvm.lifetime.start.p0(ptr nonnull %constant.i.i) #3
  store i32 0, ptr %constant.i.i, align 4
  call void @llvm.lifetime.start.p0(ptr nonnull %value.i.i) #3
  store ptr null, ptr %value.i.i, align 8
  %arrayidx.i.i = getelementptr inbounds i8, ptr %checked.i.i, i64 %4
  %5 = load i8, ptr %arrayidx.i.i, align 1
  %tobool.not.i.i = icmp eq i8 %5, 0
  br i1 %tobool.not.i.i, label %if.end3.i.i, label %do.body.i.i

do.body.i.i:                                      ; preds = %for.body.i
  %6 = load ptr, ptr %KernelInfoGetConstantInput_tensor.i.i, align 8
  %call.i.i = call ptr %6(ptr noundef %info, i64 noundef %4, ptr noundef nonnull %constant.i.i, ptr noundef nonnull %value.i.i) #6
  %tobool1.not.i.i = icmp eq ptr %call.i.i, null
  br i1 %tobool1.not.i.i, label %if.end3.i.i, label %constant_of.exit.i

if.end3.i.i:                                      ; preds = %do.body.i.i, %for.body.i
  %7 = load i32, ptr %constant.i.i, align 4
  %tobool4.i.i = icmp ne i32 %7, 0
  %8 = load ptr, ptr %value.i.i, align 8
  %tobool5.i.i = icmp ne ptr %8, null
  %or.cond.i.i = select i1 %tobool4.i.i, i1 %tobool5.i.i, i1 false
  br i1 %or.cond.i.i, label %if.end11.i.i, label %if.then6.i.i

if.then6.i.i:                                     ; preds = %if.end3.i.i
  %9 = load ptr, ptr %inputs.i.i, align 8
  %arrayidx9.i.i = getelementptr inbounds %struct.igniter_port, ptr %9, i64 %4
  %call10.i.i = call ptr @igniter_fail(ptr noundef %api, ptr noundef %desc, i32 noundef 15, ptr noundef %arrayidx9.i.i, i64 noundef %4, i64 noundef 0, i64 noundef 0, i64 noundef 0) #6
  br label %constant_of.exit.i

if.end11.i.i:                                     ; preds = %if.end3.i.i
  %10 = load ptr, ptr %GetTensorMutableData.i.i, align 8
  %call13.i.i = call ptr %10(ptr noundef nonnull %8, ptr noundef nonnull %arrayidx6.i) #6
  br label %constant_of.exit.i

constant_of.exit.i:                               ; preds = %if.end11.i.i, %if.then6.i.i, %do.body.i.i
  %retval.1.i.i = phi ptr [ %call13.i.i, %if.end11.i.i ], [ %call10.i.i, %if.then6.i.i ], [ %call.i.i, %do.body.i.i ]
  call void @llvm.lifetime.end.p0(ptr nonnull %value.i.i) #3
  call void @llvm.lifetime.end.p0(ptr nonnull %constant.i.i) #3
  %tobool.not.i = icmp eq ptr %retval.1.i.i, null
  %retval.0.call.i = select i1 %tobool.not.i, ptr %retval.072.i, ptr %retval.1.i.i
  br i1 %tobool.not.i, label %do.end.i, label %take_constants.exit

do.end.i:                                         ; preds = %constant_of.exit.i
  %11 = load ptr, ptr %made4.i, align 8
  %arrayidx3.i.i = getelementptr inbounds nuw %struct.igniter_made, ptr %11, i64 %k.071.i
  %12 = load ptr, ptr %arrayidx6.i, align 8
  %source_bytes9.i.i = getelementptr inbounds nuw i8, ptr %arrayidx3.i.i, i64 24
  br label %while.cond.i

while.cond.i:                                     ; preds = %while.body.i, %do.end.i
  %storemerge122 = phi i64 [ 0, %do.end.i ], [ %inc.i, %while.body.i ]
  %arrayidx.i63.i = getelementptr inbounds nuw %struct.igniter_made, ptr %11, i64 %storemerge122
  %arrayidx4.i.i = getelementptr inbounds nuw ptr, ptr %1, i64 %storemerge122
  %13 = load ptr, ptr %arrayidx4.i.i, align 8
  %cmp.i.i = icmp eq ptr %13, %12
  br i1 %cmp.i.i, label %land.lhs.true.i.i, label %while.body.i

land.lhs.true.i.i:                                ; preds = %while.cond.i
  %14 = load ptr, ptr %arrayidx.i63.i, align 8
  %15 = load ptr, ptr %arrayidx3.i.i, align 8
  %cmp8.i.i = icmp eq ptr %14, %15
  br i1 %cmp8.i.i, label %land.rhs.i.i, label %while.body.i

land.rhs.i.i:                                     ; preds = %land.lhs.true.i.i
  %source_bytes.i.i = getelementptr inbounds nuw i8, ptr %arrayidx.i63.i, i64 24
  %16 = load i64, ptr %source_bytes.i.i, align 8
  %17 = load i64, ptr %source_bytes9.i.i, align 8
  %cmp10.i.not.i = icmp eq i64 %16, %17
  br i1 %cmp10.i.not.i, label %while.end.i, label %while.body.i

while.body.i:                                     ; preds = %land.rhs.i.i, %land.lhs.true.i.i, %while.cond.i
  %inc.i = add nuw nsw i64 %storemerge122, 1
  br label %while.cond.i, !llvm.loop !0

while.end.i:                                      ; preds = %land.rhs.i.i
  %arrayidx7.i = getelementptr inbounds nuw i64, ptr %2, i64 %k.071.i
  store i64 %storemerge122, ptr %arrayidx7.i, align 8
  %cmp16.i = icmp eq i64 %storemerge122, %k.071.i
  br i1 %cmp16.i, label %if.then17.i, label %if.end21.i

if.then17.i:                                      ; preds = %while.end.i
  %source_bytes.i = getelementptr inbounds nuw i8, ptr %arrayidx5.i, i64 24
  %18 = load i64, ptr %source_bytes.i, align 8
  %cmp.not85.i.i = icmp ult i64 %18, 16
  br i1 %cmp.not85.i.i, label %for.end.i.i, label %for.body.i.i

for.body.i.i:                                     ; preds = %for.body.i.i, %if.then17.i
  %add10.i89.i.i = phi i64 [ %add10.i.i.i, %for.body.i.i ], [ %m.sroa.50.0, %if.then17.i ]
  %add.i88.i.i = phi i64 [ %add.i.i.i, %for.body.i.i ], [ %m.sroa.39.0, %if.then17.i ]
  %add87.i.i = phi i64 [ %add.i.i, %for.body.i.i ], [ 16, %if.then17.i ]
  %k.086.i.i = phi i64 [ %add87.i.i, %for.body.i.i ], [ 0, %if.then17.i ]
  %add.ptr.i.i = getelementptr inbounds nuw i8, ptr %12, i64 %k.086.i.i
  %found.0.copyload.i.i.i = load i64, ptr %add.ptr.i.i, align 1
  %add.ptr2.i.i = getelementptr inbounds nuw i8, ptr %add.ptr.i.i, i64 8
  %found.0.copyload.i29.i.i = load i64, ptr %add.ptr2.i.i, align 1
  %19 = xor i64 %add.i88.i.i, %found.0.copyload.i.i.i
  %xor1.i.i.i = xor i64 %19, -7046029254386353131
  %xor2.i.i.i = xor i64 %found.0.copyload.i29.i.i, -4658895280553007687
  %conv.i.i.i.i = zext i64 %xor1.i.i.i to i128
  %conv1.i.i.i.i = zext i64 %xor2.i.i.i to i128
  %mul.i.i.i.i = mul nuw i128 %conv1.i.i.i.i, %conv.i.i.i.i
  %shr.i.i.i.i = lshr i128 %mul.i.i.i.i, 64
  %xor5.i.i.i.i = xor i128 %shr.i.i.i.i, %mul.i.i.i.i
  %xor.i.i.i.i = trunc i128 %xor5.i.i.i.i to i64
  %xor3.i.i.i = xor i64 %found.0.copyload.i29.i.i, %found.0.copyload.i.i.i
  %add.i.i.i = add i64 %xor3.i.i.i, %xor.i.i.i.i
  %20 = xor i64 %add10.i89.i.i, %found.0.copyload.i29.i.i
  %xor7.i.i.i = xor i64 %20, -7723592293110705685
  %xor8.i.i.i = xor i64 %found.0.copyload.i.i.i, -2960836687051489901
  %conv.i21.i.i.i = zext i64 %xor7.i.i.i to i128
  %conv1.i22.i.i.i = zext i64 %xor8.i.i.i to i128
  %mul.i23.i.i.i = mul nuw i128 %conv.i21.i.i.i, %conv1.i22.i.i.i
  %shr.i24.i.i.i = lshr i128 %mul.i23.i.i.i, 64
  %xor5.i25.i.i.i = xor i128 %shr.i24.i.i.i, %mul.i23.i.i.i
  %xor.i26.i.i.i = trunc i128 %xor5.i25.i.i.i to i64
  %sub.i.i.i = sub i64 %found.0.copyload.i.i.i, %found.0.copyload.i29.i.i
  %add10.i.i.i = add i64 %sub.i.i.i, %xor.i26.i.i.i
  %add.i.i = add i64 %add87.i.i, 16
  %cmp.not.i.i = icmp ugt i64 %add.i.i, %18
  br i1 %cmp.not.i.i, label %for.end.i.i, label %for.body.i.i, !llvm.loop !3

for.end.i.i:                                      ; preds = %for.body.i.i, %if.then17.i
  %m.sroa.39.2 = phi i64 [ %m.sroa.39.0, %if.then17.i ], [ %add.i.i.i, %for.body.i.i ]
  %m.sroa.50.2 = phi i64 [ %m.sroa.50.0, %if.then17.i ], [ %add10.i.i.i, %for.body.i.i ]
  %k.0.lcssa.i.i = phi i64 [ 0, %if.then17.i ], [ %add87.i.i, %for.body.i.i ]
  %sub.i.i = sub i64 %18, %k.0.lcssa.i.i
  %cond.i.i = call i64 @llvm.umin.i64(i64 %sub.i.i, i64 8)
  %add.ptr6.i.i = getelementptr inbounds nuw i8, ptr %12, i64 %k.0.lcssa.i.i
  switch i64 %cond.i.i, label %for.body.i.i.i [
    i64 8, label %if.then.i.i.i
    i64 0, label %word.exit.i.i
  ]

if.then.i.i.i:                                    ; preds = %for.end.i.i
  %found.0.copyload.i30.i.i = load i64, ptr %add.ptr6.i.i, align 1
  br label %word.exit.i.i

for.body.i.i.i:                                   ; preds = %for.body.i.i.i, %for.end.i.i
  %k.011.i.i.i = phi i64 [ %inc.i.i.i, %for.body.i.i.i ], [ 0, %for.end.i.i ]
  %found.010.i.i.i = phi i64 [ %or.i.i.i, %for.body.i.i.i ], [ 0, %for.end.i.i ]
  %arrayidx.i.i.i = getelementptr inbounds nuw i8, ptr %add.ptr6.i.i, i64 %k.011.i.i.i
  %21 = load i8, ptr %arrayidx.i.i.i, align 1
  %conv.i.i.i = zext i8 %21 to i64
  %mul.i.i.i = shl i64 %k.011.i.i.i, 3
  %shl.i.i.i = shl i64 %conv.i.i.i, %mul.i.i.i
  %or.i.i.i = or i64 %shl.i.i.i, %found.010.i.i.i
  %inc.i.i.i = add nuw i64 %k.011.i.i.i, 1
  %exitcond.not.i.i.i = icmp eq i64 %inc.i.i.i, %cond.i.i
  br i1 %exitcond.not.i.i.i, label %word.exit.i.i, label %for.body.i.i.i, !llvm.loop !4

word.exit.i.i:                                    ; preds = %for.body.i.i.i, %if.then.i.i.i, %for.end.i.i
  %retval.0.i.i.i = phi i64 [ %found.0.copyload.i30.i.i, %if.then.i.i.i ], [ %cond.i.i, %for.end.i.i ], [ %or.i.i.i, %for.body.i.i.i ]
  %add.ptr9.i.i = getelementptr inbounds nuw i8, ptr %add.ptr6.i.i, i64 %cond.i.i
  %sub10.i.i = sub i64 %sub.i.i, %cond.i.i
  switch i64 %sub10.i.i, label %for.body.i34.i.i [
    i64 8, label %if.then.i32.i.i
    i64 0, label %add_bytes.exit.i
  ]

if.then.i32.i.i:                                  ; preds = %word.exit.i.i
  %found.0.copyload.i33.i.i = load i64, ptr %add.ptr9.i.i, align 1
  br label %add_bytes.exit.i

for.body.i34.i.i:                                 ; preds = %for.body.i34.i.i, %word.exit.i.i
  %k.011.i35.i.i = phi i64 [ %inc.i42.i.i, %for.body.i34.i.i ], [ 0, %word.exit.i.i ]
  %found.010.i36.i.i = phi i64 [ %or.i41.i.i, %for.body.i34.i.i ], [ 0, %word.exit.i.i ]
  %arrayidx.i37.i.i = getelementptr inbounds nuw i8, ptr %add.ptr9.i.i, i64 %k.011.i35.i.i
  %22 = load i8, ptr %arrayidx.i37.i.i, align 1
  %conv.i38.i.i = zext i8 %22 to i64
  %mul.i39.i.i = shl i64 %k.011.i35.i.i, 3
  %shl.i40.i.i = shl i64 %conv.i38.i.i, %mul.i39.i.i
  %or.i41.i.i = or i64 %shl.i40.i.i, %found.010.i36.i.i
  %inc.i42.i.i = add nuw i64 %k.011.i35.i.i, 1
  %exitcond.not.i43.i.i = icmp eq i64 %inc.i42.i.i, %sub10.i.i
  br i1 %exitcond.not.i43.i.i, label %add_bytes.exit.i, label %for.body.i34.i.i, !llvm.loop !4

add_bytes.exit.i:                                 ; preds = %for.body.i34.i.i, %if.then.i32.i.i, %word.exit.i.i
  %retval.0.i31.i.i = phi i64 [ %found.0.copyload.i33.i.i, %if.then.i32.i.i ], [ %sub10.i.i, %word.exit.i.i ], [ %or.i41.i.i, %for.body.i34.i.i ]
  %23 = xor i64 %m.sroa.39.2, %retval.0.i.i.i
  %xor1.i45.i.i = xor i64 %23, -7046029254386353131
  %xor2.i46.i.i = xor i64 %retval.0.i31.i.i, -4658895280553007687
  %conv.i.i47.i.i = zext i64 %xor1.i45.i.i to i128
  %conv1.i.i48.i.i = zext i64 %xor2.i46.i.i to i128
  %mul.i.i49.i.i = mul nuw i128 %conv1.i.i48.i.i, %conv.i.i47.i.i
  %shr.i.i50.i.i = lshr i128 %mul.i.i49.i.i, 64
  %xor5.i.i51.i.i = xor i128 %shr.i.i50.i.i, %mul.i.i49.i.i
  %xor.i.i52.i.i = trunc i128 %xor5.i.i51.i.i to i64
  %xor3.i53.i.i = xor i64 %retval.0.i31.i.i, %retval.0.i.i.i
  %add.i54.i.i = add i64 %xor3.i53.i.i, %xor.i.i52.i.i
  %24 = xor i64 %m.sroa.50.2, %retval.0.i31.i.i
  %xor7.i56.i.i = xor i64 %24, -7723592293110705685
  %xor8.i57.i.i = xor i64 %retval.0.i.i.i, -2960836687051489901
  %conv.i21.i58.i.i = zext i64 %xor7.i56.i.i to i128
  %conv1.i22.i59.i.i = zext i64 %xor8.i57.i.i to i128
  %mul.i23.i60.i.i = mul nuw i128 %conv.i21.i58.i.i, %conv1.i22.i59.i.i
  %shr.i24.i61.i.i = lshr i128 %mul.i23.i60.i.i, 64
  %xor5.i25.i62.i.i = xor i128 %shr.i24.i61.i.i, %mul.i23.i60.i.i
  %xor.i26.i63.i.i = trunc i128 %xor5.i25.i62.i.i to i64
  %sub.i64.i.i = sub i64 %retval.0.i.i.i, %retval.0.i31.i.i
  %add10.i65.i.i = add i64 %sub.i64.i.i, %xor.i26.i63.i.i
  %25 = xor i64 %18, %add.i54.i.i
  %xor1.i66.i.i = xor i64 %25, -7046029254386353131
  %conv.i.i67.i.i = zext i64 %xor1.i66.i.i to i128
  %mul.i.i68.i.i = mul nuw i128 %conv.i.i67.i.i, 13787848793156543929
  %shr.i.i69.i.i = lshr i128 %mul.i.i68.i.i, 64
  %xor5.i.i70.i.i = xor i128 %shr.i.i69.i.i, %mul.i.i68.i.i
  %xor.i.i71.i.i = trunc i128 %xor5.i.i70.i.i to i64
  %add.i73.i.i = add i64 %18, %xor.i.i71.i.i
  %xor7.i75.i.i = xor i64 %add10.i65.i.i, -7723592293110705685
  %xor8.i76.i.i = xor i64 %18, -2960836687051489901
  %conv.i21.i77.i.i = zext i64 %xor7.i75.i.i to i128
  %conv1.i22.i78.i.i = zext i64 %xor8.i76.i.i to i128
  %mul.i23.i79.i.i = mul nuw i128 %conv.i21.i77.i.i, %conv1.i22.i78.i.i
  %shr.i24.i80.i.i = lshr i128 %mul.i23.i79.i.i, 64
  %xor5.i25.i81.i.i = xor i128 %shr.i24.i80.i.i, %mul.i23.i79.i.i
  %xor.i26.i82.i.i = trunc i128 %xor5.i25.i81.i.i to i64
  %add10.i84.i.i = add i64 %18, %xor.i26.i82.i.i
  br label %if.end21.i

if.end21.i:                                       ; preds = %add_bytes.exit.i, %while.end.i
  %m.sroa.39.1 = phi i64 [ %add.i73.i.i, %add_bytes.exit.i ], [ %m.sroa.39.0, %while.end.i ]
  %m.sroa.50.1 = phi i64 [ %add10.i84.i.i, %add_bytes.exit.i ], [ %m.sroa.50.0, %while.end.i ]
  %26 = xor i64 %storemerge122, %m.sroa.39.1
  %xor1.i.i = xor i64 %26, -7046029254386353131
  %conv.i.i64.i = zext i64 %xor1.i.i to i128
  %mul.i.i65.i = mul nuw i128 %conv.i.i64.i, 13787848793156543929
  %shr.i.i.i = lshr i128 %mul.i.i65.i, 64
  %xor5.i.i.i = xor i128 %shr.i.i.i, %mul.i.i65.i
  %xor.i.i.i = trunc i128 %xor5.i.i.i to i64
  %add.i66.i = add i64 %storemerge122, %xor.i.i.i
  %xor7.i.i = xor i64 %m.sroa.50.1, -7723592293110705685
  %xor8.i.i = xor i64 %storemerge122, -2960836687051489901
  %conv.i21.i.i = zext i64 %xor7.i.i to i128
  %conv1.i22.i.i = zext i64 %xor8.i.i to i128
  %mul.i23.i.i = mul nuw i128 %conv.i21.i.i, %conv1.i22.i.i
  %shr.i24.i.i = lshr i128 %mul.i23.i.i, 64
  %xor5.i25.i.i = xor i128 %shr.i24.i.i, %mul.i23.i.i
  %xor.i26.i.i = trunc i128 %xor5.i25.i.i to i64
  %add10.i.i = add i64 %storemerge122, %xor.i26.i.i
  %inc29.i = add nuw nsw i64 %k.071.i, 1
  %27 = load i64, ptr %made_count, align 8
  %cmp.not.i = icmp slt i64 %inc29.i, %27
  br i1 %cmp.not.i, label %for.body.i, label %take_constants.exit, !llvm.loop !5

take_constants.exit:                              ; preds = %if.end21.i, %constant_of.exit.i, %entry
  %m.sroa.39.3 = phi i64 [ 0, %entry ], [ %add.i66.i, %if.end21.i ], [ %m.sroa.39.0, %constant_of.exit.i ]
  %m.sroa.50.3 = phi i64 [ 0, %entry ], [ %add10.i.i, %if.end21.i ], [ %m.sroa.50.0, %constant_of.exit.i ]
  %spec.select.i = phi ptr [ null, %entry ], [ null, %if.end21.i ], [ %retval.0.call.i, %constant_of.exit.i ]
  %tobool.not = icmp eq ptr %spec.select.i, null
  br i1 %tobool.not, label %do.end, label %cleanup41

do.end:                                           ; preds = %take_constants.exit
  %28 = atomicrmw xchg ptr @lock, i32 1 acquire, align 4
  %tobool.not1.i = icmp eq i32 %28, 0
  br i1 %tobool.not1.i, label %enter.exit, label %while.body.i51

while.body.i51:                                   ; preds = %while.body.i51, %do.end
  %call.i = call i32 @sched_yield() #6
  %29 = atomicrmw xchg ptr @lock, i32 1 acquire, align 4
  %tobool.not.i52 = icmp eq i32 %29, 0
  br i1 %tobool.not.i52, label %enter.exit, label %while.body.i51, !llvm.loop !6

enter.exit:                                       ; preds = %while.body.i51, %do.end
  %storemerge125 = load ptr, ptr @blocks, align 8
  %tobool6.not126 = icmp eq ptr %storemerge125, null
  br i1 %tobool6.not126, label %if.then18, label %land.rhs

land.rhs:                                         ; preds = %while.body, %enter.exit
  %storemerge127 = phi ptr [ %storemerge, %while.body ], [ %storemerge125, %enter.exit ]
  %desc7 = getelementptr inbounds nuw i8, ptr %storemerge127, i64 8
  %30 = load ptr, ptr %desc7, align 8
  %cmp.not = icmp eq ptr %30, %desc
  br i1 %cmp.not, label %lor.lhs.false, label %while.body

lor.lhs.false:                                    ; preds = %land.rhs
  %hash8 = getelementptr inbounds nuw i8, ptr %storemerge127, i64 16
  %31 = load i64, ptr %hash8, align 8
  %cmp11.not = icmp eq i64 %31, %m.sroa.39.3
  br i1 %cmp11.not, label %lor.rhs, label %while.body

lor.rhs:                                          ; preds = %lor.lhs.false
  %arrayidx13 = getelementptr inbounds nuw i8, ptr %storemerge127, i64 24
  %32 = load i64, ptr %arrayidx13, align 8
  %cmp16.not = icmp eq i64 %32, %m.sroa.50.3
  br i1 %cmp16.not, label %if.end33, label %while.body

while.body:                                       ; preds = %lor.rhs, %lor.lhs.false, %land.rhs
  %storemerge = load ptr, ptr %storemerge127, align 8
  %tobool6.not = icmp eq ptr %storemerge, null
  br i1 %tobool6.not, label %if.then18, label %land.rhs, !llvm.loop !7

if.then18:                                        ; preds = %while.body, %enter.exit
  %storemerge.lcssa = phi ptr [ null, %enter.exit ], [ %storemerge, %while.body ]
  %input_count.i = getelementptr inbounds nuw i8, ptr %desc, i64 40
  %33 = load i64, ptr %input_count.i, align 8
  %mul.i = shl i64 %33, 3
  %add2.i = add i64 %mul.i, 104
  %34 = load i64, ptr %made_count, align 8
  %cmp123.i = icmp sgt i64 %34, 0
  br i1 %cmp123.i, label %for.body.lr.ph.i75, label %for.cond.cleanup.i

for.body.lr.ph.i75:                               ; preds = %if.then18
  %made.i = getelementptr inbounds nuw i8, ptr %desc, i64 136
  br label %for.body.i77

for.cond.cleanup.i:                               ; preds = %for.inc.i, %if.then18
  %size.0.lcssa.i = phi i64 [ %add2.i, %if.then18 ], [ %size.1.i, %for.inc.i ]
  call void @llvm.lifetime.start.p0(ptr nonnull %memory.i) #3
  store ptr null, ptr %memory.i, align 8
  %AllocatorAlloc.i.i = getelementptr inbounds nuw i8, ptr %api, i64 600
  %35 = load ptr, ptr %AllocatorAlloc.i.i, align 8
  %call.i.i55 = call ptr %35(ptr noundef %allocator, i64 noundef %size.0.lcssa.i, ptr noundef nonnull %memory.i) #6
  %tobool.not.i.not.i.i = icmp eq ptr %call.i.i55, null
  br i1 %tobool.not.i.not.i.i, label %lor.lhs.false.i.i, label %if.then.i.i.i56

if.then.i.i.i56:                                  ; preds = %for.cond.cleanup.i
  %ReleaseStatus.i.i.i = getelementptr inbounds nuw i8, ptr %api, i64 744
  %36 = load ptr, ptr %ReleaseStatus.i.i.i, align 8
  call void %36(ptr noundef nonnull %call.i.i55) #6
  br label %if.then.i.i

lor.lhs.false.i.i:                                ; preds = %for.cond.cleanup.i
  %37 = load ptr, ptr %memory.i, align 8
  %tobool3.not.i.i = icmp eq ptr %37, null
  br i1 %tobool3.not.i.i, label %if.then.i.i, label %allocate.exit.i

if.then.i.i:                                      ; preds = %lor.lhs.false.i.i, %if.then.i.i.i56
  %call5.i.i = call ptr @igniter_fail(ptr noundef %api, ptr noundef %desc, i32 noundef 16, ptr noundef null, i64 noundef 0, i64 noundef 0, i64 noundef 0, i64 noundef %size.0.lcssa.i) #6
  br label %allocate.exit.i

allocate.exit.i:                                  ; preds = %if.then.i.i, %lor.lhs.false.i.i
  %retval.0.i.i = phi ptr [ %call5.i.i, %if.then.i.i ], [ null, %lor.lhs.false.i.i ]
  %tobool.not.i57 = icmp eq ptr %retval.0.i.i, null
  br i1 %tobool.not.i57, label %do.end.i58, label %make_block.exit

for.body.i77:                                     ; preds = %for.inc.i, %for.body.lr.ph.i75
  %size.0125.i = phi i64 [ %add2.i, %for.body.lr.ph.i75 ], [ %size.1.i, %for.inc.i ]
  %k.0124.i = phi i64 [ 0, %for.body.lr.ph.i75 ], [ %inc.i79, %for.inc.i ]
  %arrayidx.i78 = getelementptr inbounds nuw i64, ptr %2, i64 %k.0124.i
  %38 = load i64, ptr %arrayidx.i78, align 8
  %cmp3.i = icmp eq i64 %38, %k.0124.i
  br i1 %cmp3.i, label %if.then.i, label %for.inc.i

if.then.i:                                        ; preds = %for.body.i77
  %39 = load ptr, ptr %made.i, align 8
  %arrayidx4.i = getelementptr inbounds nuw %struct.igniter_made, ptr %39, i64 %k.0124.i
  %bytes.i = getelementptr inbounds nuw i8, ptr %arrayidx4.i, i64 32
  %40 = load i64, ptr %bytes.i, align 8
  %add.i.i80 = add i64 %40, 63
  %and.i.i = and i64 %add.i.i80, -64
  %add5.i = add i64 %and.i.i, %size.0125.i
  br label %for.inc.i

for.inc.i:                                        ; preds = %if.then.i, %for.body.i77
  %size.1.i = phi i64 [ %add5.i, %if.then.i ], [ %size.0125.i, %for.body.i77 ]
  %inc.i79 = add nuw nsw i64 %k.0124.i, 1
  %exitcond.not.i = icmp eq i64 %inc.i79, %34
  br i1 %exitcond.not.i, label %for.cond.cleanup.i, label %for.body.i77, !llvm.loop !8

do.end.i58:                                       ; preds = %allocate.exit.i
  %41 = load ptr, ptr %memory.i, align 8
  %42 = ptrtoint ptr %41 to i64
  %add.i108.i = add i64 %42, 2097151
  %and.i109.i = and i64 %add.i108.i, -2097152
  %add1.i.i = add i64 %size.0.lcssa.i, %42
  %and2.i.i = and i64 %add1.i.i, -2097152
  %cmp.i.i59 = icmp ult i64 %and.i109.i, %and2.i.i
  br i1 %cmp.i.i59, label %if.then.i110.i, label %use_large_pages.exit.i

if.then.i110.i:                                   ; preds = %do.end.i58
  %43 = inttoptr i64 %and.i109.i to ptr
  %sub.i.i74 = sub nuw i64 %and2.i.i, %and.i109.i
  %call.i111.i = call i32 @madvise(ptr noundef %43, i64 noundef %sub.i.i74, i32 noundef 14) #6
  br label %use_large_pages.exit.i

use_large_pages.exit.i:                           ; preds = %if.then.i110.i, %do.end.i58
  %44 = load ptr, ptr %memory.i, align 8
  %45 = getelementptr i8, ptr %44, i64 %mul.i
  %add.ptr.i = getelementptr i8, ptr %45, i64 40
  %46 = ptrtoint ptr %add.ptr.i to i64
  %sub.i112.i = sub i64 0, %46
  %and.i113.i = and i64 %sub.i112.i, 63
  %add.ptr.i.i60 = getelementptr inbounds nuw i8, ptr %add.ptr.i, i64 %and.i113.i
  %47 = load i64, ptr %input_count.i, align 8
  %cmp13126.i = icmp sgt i64 %47, 0
  br i1 %cmp13126.i, label %for.body15.lr.ph.i, label %for.cond22.preheader.i

for.body15.lr.ph.i:                               ; preds = %use_large_pages.exit.i
  %buffers.i = getelementptr inbounds nuw i8, ptr %44, i64 40
  br label %for.body15.i

for.cond22.preheader.i:                           ; preds = %for.body15.i, %use_large_pages.exit.i
  %48 = load i64, ptr %made_count, align 8
  %cmp24128.i = icmp sgt i64 %48, 0
  br i1 %cmp24128.i, label %for.body26.lr.ph.i, label %for.cond.cleanup25.i

for.body26.lr.ph.i:                               ; preds = %for.cond22.preheader.i
  %made28.i = getelementptr inbounds nuw i8, ptr %desc, i64 136
  %buffers33.i = getelementptr inbounds nuw i8, ptr %44, i64 40
  br label %for.body26.i

for.body15.i:                                     ; preds = %for.body15.i, %for.body15.lr.ph.i
  %k10.0127.i = phi i64 [ 0, %for.body15.lr.ph.i ], [ %inc18.i, %for.body15.i ]
  %arrayidx16.i = getelementptr inbounds nuw ptr, ptr %buffers.i, i64 %k10.0127.i
  store ptr null, ptr %arrayidx16.i, align 8
  %inc18.i = add nuw nsw i64 %k10.0127.i, 1
  %49 = load i64, ptr %input_count.i, align 8
  %cmp13.i = icmp slt i64 %inc18.i, %49
  br i1 %cmp13.i, label %for.body15.i, label %for.cond22.preheader.i, !llvm.loop !9

for.cond.cleanup25.i:                             ; preds = %if.end49.i, %for.cond22.preheader.i
  call void @llvm.lifetime.start.p0(ptr nonnull %memory.i.i) #3
  store ptr null, ptr %memory.i.i, align 8
  %50 = load i64, ptr %made_count, align 8
  %cmp79.i.i = icmp sgt i64 %50, 0
  br i1 %cmp79.i.i, label %for.body.lr.ph.i.i69, label %for.cond.cleanup.i.i

for.body.lr.ph.i.i69:                             ; preds = %for.cond.cleanup25.i
  %made.i.i70 = getelementptr inbounds nuw i8, ptr %desc, i64 136
  %51 = load ptr, ptr %made.i.i70, align 8
  br label %for.body.i.i71

for.cond.cleanup.i.i:                             ; preds = %for.body.i.i71, %for.cond.cleanup25.i
  %most.0.lcssa.i.i = phi i64 [ 0, %for.cond.cleanup25.i ], [ %spec.select.i.i, %for.body.i.i71 ]
  %tobool.not.i.i61 = icmp eq i64 %most.0.lcssa.i.i, 0
  br i1 %tobool.not.i.i61, label %if.end11.i.i65, label %do.body.i.i62

for.body.i.i71:                                   ; preds = %for.body.i.i71, %for.body.lr.ph.i.i69
  %most.081.i.i = phi i64 [ 0, %for.body.lr.ph.i.i69 ], [ %spec.select.i.i, %for.body.i.i71 ]
  %k.080.i.i = phi i64 [ 0, %for.body.lr.ph.i.i69 ], [ %inc.i.i, %for.body.i.i71 ]
  %arrayidx.i.i72 = getelementptr inbounds nuw %struct.igniter_made, ptr %51, i64 %k.080.i.i
  %scratch.i.i = getelementptr inbounds nuw i8, ptr %arrayidx.i.i72, i64 40
  %52 = load i64, ptr %scratch.i.i, align 8
  %spec.select.i.i = call i64 @llvm.umax.i64(i64 %52, i64 %most.081.i.i)
  %inc.i.i = add nuw nsw i64 %k.080.i.i, 1
  %exitcond.not.i.i = icmp eq i64 %inc.i.i, %50
  br i1 %exitcond.not.i.i, label %for.cond.cleanup.i.i, label %for.body.i.i71, !llvm.loop !10

do.body.i.i62:                                    ; preds = %for.cond.cleanup.i.i
  %add.i115.i = add i64 %most.0.lcssa.i.i, 64
  store ptr null, ptr %memory.i.i, align 8
  %53 = load ptr, ptr %AllocatorAlloc.i.i, align 8
  %call.i.i.i = call ptr %53(ptr noundef %allocator, i64 noundef %add.i115.i, ptr noundef nonnull %memory.i.i) #6
  %tobool.not.i.not.i.i.i = icmp eq ptr %call.i.i.i, null
  br i1 %tobool.not.i.not.i.i.i, label %lor.lhs.false.i.i.i, label %if.then.i.i.i.i

if.then.i.i.i.i:                                  ; preds = %do.body.i.i62
  %ReleaseStatus.i.i.i.i = getelementptr inbounds nuw i8, ptr %api, i64 744
  %54 = load ptr, ptr %ReleaseStatus.i.i.i.i, align 8
  call void %54(ptr noundef nonnull %call.i.i.i) #6
  br label %if.then.i.i116.i

lor.lhs.false.i.i.i:                              ; preds = %do.body.i.i62
  %55 = load ptr, ptr %memory.i.i, align 8
  %tobool3.not.i.i.i = icmp eq ptr %55, null
  br i1 %tobool3.not.i.i.i, label %if.then.i.i116.i, label %allocate.exit.i.i

if.then.i.i116.i:                                 ; preds = %lor.lhs.false.i.i.i, %if.then.i.i.i.i
  %call5.i.i.i = call ptr @igniter_fail(ptr noundef %api, ptr noundef %desc, i32 noundef 16, ptr noundef null, i64 noundef 0, i64 noundef 0, i64 noundef 0, i64 noundef %add.i115.i) #6
  br label %allocate.exit.i.i

allocate.exit.i.i:                                ; preds = %if.then.i.i116.i, %lor.lhs.false.i.i.i
  %retval.0.i.i.i63 = phi ptr [ %call5.i.i.i, %if.then.i.i116.i ], [ null, %lor.lhs.false.i.i.i ]
  %tobool8.not.i.i = icmp eq ptr %retval.0.i.i.i63, null
  br i1 %tobool8.not.i.i, label %if.end11.i.i65, label %fill.exit.i

if.end11.i.i65:                                   ; preds = %allocate.exit.i.i, %for.cond.cleanup.i.i
  %56 = call i64 @llvm.read_volatile_register.i64(metadata !11)
  %and.i.i.i = and i64 %56, 16777216
  %tobool.not.i.i.i = icmp eq i64 %and.i.i.i, 0
  br i1 %tobool.not.i.i.i, label %begin_exact.exit.i.i, label %if.then.i72.i.i

if.then.i72.i.i:                                  ; preds = %if.end11.i.i65
  %and1.i.i.i = and i64 %56, -16777217
  call void @llvm.write_register.i64(metadata !11, i64 %and1.i.i.i)
  br label %begin_exact.exit.i.i

begin_exact.exit.i.i:                             ; preds = %if.then.i72.i.i, %if.end11.i.i65
  %57 = load i64, ptr %made_count, align 8
  %cmp1783.i.i = icmp sgt i64 %57, 0
  br i1 %cmp1783.i.i, label %for.body19.lr.ph.i.i, label %for.cond.cleanup18.i.i

for.body19.lr.ph.i.i:                             ; preds = %begin_exact.exit.i.i
  %arrayinit.element.i.i = getelementptr inbounds nuw i8, ptr %buffers.i.i, i64 8
  %buffers25.i.i = getelementptr inbounds nuw i8, ptr %44, i64 40
  %made22.i.i = getelementptr inbounds nuw i8, ptr %desc, i64 136
  br label %for.body19.i.i

for.cond.cleanup18.i.i:                           ; preds = %if.end32.i.i, %begin_exact.exit.i.i
  br i1 %tobool.not.i.i.i, label %end_exact.exit.i.i, label %if.then.i75.i.i

if.then.i75.i.i:                                  ; preds = %for.cond.cleanup18.i.i
  %58 = call i64 @llvm.read_volatile_register.i64(metadata !11)
  %or.i.i.i66 = or i64 %58, 16777216
  call void @llvm.write_register.i64(metadata !11, i64 %or.i.i.i66)
  br label %end_exact.exit.i.i

end_exact.exit.i.i:                               ; preds = %if.then.i75.i.i, %for.cond.cleanup18.i.i
  %59 = load ptr, ptr %memory.i.i, align 8
  %tobool37.not.i.i = icmp eq ptr %59, null
  br i1 %tobool37.not.i.i, label %fill.exit.i, label %if.then38.i.i

for.body19.i.i:                                   ; preds = %if.end32.i.i, %for.body19.lr.ph.i.i
  %k13.084.i.i = phi i64 [ 0, %for.body19.lr.ph.i.i ], [ %inc34.i.i, %if.end32.i.i ]
  %60 = load ptr, ptr %made22.i.i, align 8
  %arrayidx23.i.i = getelementptr inbounds nuw %struct.igniter_made, ptr %60, i64 %k13.084.i.i
  call void @llvm.lifetime.start.p0(ptr nonnull %buffers.i.i) #3
  %arrayidx24.i.i = getelementptr inbounds nuw ptr, ptr %1, i64 %k13.084.i.i
  %61 = load ptr, ptr %arrayidx24.i.i, align 8
  store ptr %61, ptr %buffers.i.i, align 8
  %input.i.i = getelementptr inbounds nuw i8, ptr %arrayidx23.i.i, i64 16
  %62 = load i64, ptr %input.i.i, align 8
  %arrayidx26.i.i = getelementptr inbounds ptr, ptr %buffers25.i.i, i64 %62
  %63 = load ptr, ptr %arrayidx26.i.i, align 8
  store ptr %63, ptr %arrayinit.element.i.i, align 8
  %arrayidx27.i.i = getelementptr inbounds nuw i64, ptr %2, i64 %k13.084.i.i
  %64 = load i64, ptr %arrayidx27.i.i, align 8
  %cmp28.i.i = icmp eq i64 %64, %k13.084.i.i
  br i1 %cmp28.i.i, label %if.then29.i.i, label %if.end32.i.i

if.then29.i.i:                                    ; preds = %for.body19.i.i
  %65 = load ptr, ptr %arrayidx23.i.i, align 8
  %symbols.i.i = getelementptr inbounds nuw i8, ptr %arrayidx23.i.i, i64 8
  %66 = load ptr, ptr %symbols.i.i, align 8
  %67 = load ptr, ptr %memory.i.i, align 8
  %tobool30.not.i.i = icmp eq ptr %67, null
  %68 = ptrtoint ptr %67 to i64
  %sub.i.i.i67 = sub i64 0, %68
  %and.i76.i.i = and i64 %sub.i.i.i67, 63
  %add.ptr.i.i.i = getelementptr inbounds nuw i8, ptr %67, i64 %and.i76.i.i
  %cond.i.i68 = select i1 %tobool30.not.i.i, ptr null, ptr %add.ptr.i.i.i
  call void %65(ptr noundef nonnull %buffers.i.i, ptr noundef %66, ptr noundef %cond.i.i68, ptr noundef null, ptr noundef null) #6
  br label %if.end32.i.i

if.end32.i.i:                                     ; preds = %if.then29.i.i, %for.body19.i.i
  call void @llvm.lifetime.end.p0(ptr nonnull %buffers.i.i) #3
  %inc34.i.i = add nuw nsw i64 %k13.084.i.i, 1
  %69 = load i64, ptr %made_count, align 8
  %cmp17.i.i = icmp slt i64 %inc34.i.i, %69
  br i1 %cmp17.i.i, label %for.body19.i.i, label %for.cond.cleanup18.i.i, !llvm.loop !12

if.then38.i.i:                                    ; preds = %end_exact.exit.i.i
  %AllocatorFree.i.i = getelementptr inbounds nuw i8, ptr %api, i64 608
  %70 = load ptr, ptr %AllocatorFree.i.i, align 8
  %call40.i.i = call ptr %70(ptr noundef %allocator, ptr noundef nonnull %59) #6
  %tobool.not.i77.i.i = icmp eq ptr %call40.i.i, null
  br i1 %tobool.not.i77.i.i, label %fill.exit.i, label %if.then.i78.i.i

if.then.i78.i.i:                                  ; preds = %if.then38.i.i
  %ReleaseStatus.i.i118.i = getelementptr inbounds nuw i8, ptr %api, i64 744
  %71 = load ptr, ptr %ReleaseStatus.i.i118.i, align 8
  call void %71(ptr noundef nonnull %call40.i.i) #6
  br label %fill.exit.i

fill.exit.i:                                      ; preds = %if.then.i78.i.i, %if.then38.i.i, %end_exact.exit.i.i, %allocate.exit.i.i
  %retval.1.i.i64 = phi ptr [ %retval.0.i.i.i63, %allocate.exit.i.i ], [ null, %end_exact.exit.i.i ], [ null, %if.then38.i.i ], [ null, %if.then.i78.i.i ]
  call void @llvm.lifetime.end.p0(ptr nonnull %memory.i.i) #3
  %tobool55.not.i = icmp eq ptr %retval.1.i.i64, null
  br i1 %tobool55.not.i, label %make_block.exit, label %if.then56.i

for.body26.i:                                     ; preds = %if.end49.i, %for.body26.lr.ph.i
  %k21.0130.i = phi i64 [ 0, %for.body26.lr.ph.i ], [ %inc51.i, %if.end49.i ]
  %place.0129.i = phi ptr [ %add.ptr.i.i60, %for.body26.lr.ph.i ], [ %place.1.i, %if.end49.i ]
  %72 = load ptr, ptr %made28.i, align 8
  %arrayidx29.i = getelementptr inbounds nuw %struct.igniter_made, ptr %72, i64 %k21.0130.i
  %arrayidx31.i = getelementptr inbounds nuw i64, ptr %2, i64 %k21.0130.i
  %73 = load i64, ptr %arrayidx31.i, align 8
  %cmp32.i = icmp eq i64 %73, %k21.0130.i
  br i1 %cmp32.i, label %if.then45.i.critedge, label %cond.false.i

cond.false.i:                                     ; preds = %for.body26.i
  %arrayidx37.i = getelementptr inbounds %struct.igniter_made, ptr %72, i64 %73
  %input.i73 = getelementptr inbounds nuw i8, ptr %arrayidx37.i, i64 16
  %74 = load i64, ptr %input.i73, align 8
  %arrayidx38.i = getelementptr inbounds ptr, ptr %buffers33.i, i64 %74
  %75 = load ptr, ptr %arrayidx38.i, align 8
  %input40.i = getelementptr inbounds nuw i8, ptr %arrayidx29.i, i64 16
  %76 = load i64, ptr %input40.i, align 8
  %arrayidx41.i = getelementptr inbounds ptr, ptr %buffers33.i, i64 %76
  store ptr %75, ptr %arrayidx41.i, align 8
  br label %if.end49.i

if.then45.i.critedge:                             ; preds = %for.body26.i
  %input40.i.c = getelementptr inbounds nuw i8, ptr %arrayidx29.i, i64 16
  %77 = load i64, ptr %input40.i.c, align 8
  %arrayidx41.i.c = getelementptr inbounds ptr, ptr %buffers33.i, i64 %77
  store ptr %place.0129.i, ptr %arrayidx41.i.c, align 8
  %bytes46.i = getelementptr inbounds nuw i8, ptr %arrayidx29.i, i64 32
  %78 = load i64, ptr %bytes46.i, align 8
  %add.i119.i = add i64 %78, 63
  %and.i120.i = and i64 %add.i119.i, -64
  %add.ptr48.i = getelementptr inbounds nuw i8, ptr %place.0129.i, i64 %and.i120.i
  br label %if.end49.i

if.end49.i:                                       ; preds = %if.then45.i.critedge, %cond.false.i
  %place.1.i = phi ptr [ %add.ptr48.i, %if.then45.i.critedge ], [ %place.0129.i, %cond.false.i ]
  %inc51.i = add nuw nsw i64 %k21.0130.i, 1
  %79 = load i64, ptr %made_count, align 8
  %cmp24.i = icmp slt i64 %inc51.i, %79
  br i1 %cmp24.i, label %for.body26.i, label %for.cond.cleanup25.i, !llvm.loop !13

if.then56.i:                                      ; preds = %fill.exit.i
  %AllocatorFree.i = getelementptr inbounds nuw i8, ptr %api, i64 608
  %80 = load ptr, ptr %AllocatorFree.i, align 8
  %81 = load ptr, ptr %memory.i, align 8
  %call58.i = call ptr %80(ptr noundef %allocator, ptr noundef %81) #6
  %tobool.not.i121.i = icmp eq ptr %call58.i, null
  br i1 %tobool.not.i121.i, label %make_block.exit, label %if.then.i122.i

if.then.i122.i:                                   ; preds = %if.then56.i
  %ReleaseStatus.i.i = getelementptr inbounds nuw i8, ptr %api, i64 744
  %82 = load ptr, ptr %ReleaseStatus.i.i, align 8
  call void %82(ptr noundef nonnull %call58.i) #6
  br label %make_block.exit

make_block.exit:                                  ; preds = %if.then.i122.i, %if.then56.i, %fill.exit.i, %allocate.exit.i
  %block.1 = phi ptr [ %storemerge.lcssa, %allocate.exit.i ], [ %storemerge.lcssa, %if.then56.i ], [ %storemerge.lcssa, %if.then.i122.i ], [ %44, %fill.exit.i ]
  %retval.1.i = phi ptr [ %retval.0.i.i, %allocate.exit.i ], [ %retval.1.i.i64, %if.then56.i ], [ %retval.1.i.i64, %if.then.i122.i ], [ null, %fill.exit.i ]
  call void @llvm.lifetime.end.p0(ptr nonnull %memory.i) #3
  %tobool20.not = icmp eq ptr %retval.1.i, null
  br i1 %tobool20.not, label %if.then21, label %if.end33

if.then21:                                        ; preds = %make_block.exit
  %desc22 = getelementptr inbounds nuw i8, ptr %block.1, i64 8
  store ptr %desc, ptr %desc22, align 8
  %hash25 = getelementptr inbounds nuw i8, ptr %block.1, i64 16
  store i64 %m.sroa.39.3, ptr %hash25, align 8
  %arrayidx30 = getelementptr inbounds nuw i8, ptr %block.1, i64 24
  store i64 %m.sroa.50.3, ptr %arrayidx30, align 8
  %users = getelementptr inbounds nuw i8, ptr %block.1, i64 32
  store i64 0, ptr %users, align 8
  %83 = load ptr, ptr @blocks, align 8
  store ptr %83, ptr %block.1, align 8
  store ptr %block.1, ptr @blocks, align 8
  br label %if.end33

if.end33:                                         ; preds = %if.then21, %make_block.exit, %lor.rhs
  %block.0 = phi ptr [ %block.1, %if.then21 ], [ %block.1, %make_block.exit ], [ %storemerge127, %lor.rhs ]
  %status.0 = phi ptr [ null, %if.then21 ], [ %retval.1.i, %make_block.exit ], [ null, %lor.rhs ]
  %tobool34.not = icmp eq ptr %status.0, null
  br i1 %tobool34.not, label %if.then35, label %if.end38

if.then35:                                        ; preds = %if.end33
  %users36 = getelementptr inbounds nuw i8, ptr %block.0, i64 32
  %84 = load i64, ptr %users36, align 8
  %inc = add nsw i64 %84, 1
  store i64 %inc, ptr %users36, align 8
  %block37 = getelementptr inbounds nuw i8, ptr %state, i64 24
  store ptr %block.0, ptr %block37, align 8
  %buffers = getelementptr inbounds nuw i8, ptr %block.0, i64 40
  %made = getelementptr inbounds nuw i8, ptr %state, i64 32
  store ptr %buffers, ptr %made, align 8
  br label %if.end38

if.end38:                                         ; preds = %if.then35, %if.end33
  store atomic i32 0, ptr @lock release, align 4
  br label %cleanup41

cleanup41:                                        ; preds = %if.end38, %take_constants.exit
  %retval.1 = phi ptr [ %status.0, %if.end38 ], [ %spec.select.i, %take_constants.exit ]
  ret ptr %retval.1
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #1

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #1

; Function Attrs: nounwind
define hidden void @igniter_unmake(ptr noundef readonly captures(none) %api, ptr noundef %allocator, ptr noundef readonly captures(none) %state) local_unnamed_addr #0 {
entry:
  %block1 = getelementptr inbounds nuw i8, ptr %state, i64 24
  %0 = load ptr, ptr %block1, align 8
  %1 = atomicrmw xchg ptr @lock, i32 1 acquire, align 4
  %tobool.not1.i = icmp eq i32 %1, 0
  br i1 %tobool.not1.i, label %enter.exit, label %while.body.i

while.body.i:                                     ; preds = %while.body.i, %entry
  %call.i = tail call i32 @sched_yield() #6
  %2 = atomicrmw xchg ptr @lock, i32 1 acquire, align 4
  %tobool.not.i = icmp eq i32 %2, 0
  br i1 %tobool.not.i, label %enter.exit, label %while.body.i, !llvm.loop !6

enter.exit:                                       ; preds = %while.body.i, %entry
  %users = getelementptr inbounds nuw i8, ptr %0, i64 32
  %3 = load i64, ptr %users, align 8
  %dec = add nsw i64 %3, -1
  store i64 %dec, ptr %users, align 8
  %cmp = icmp eq i64 %dec, 0
  br i1 %cmp, label %while.cond, label %if.end8.critedge

while.cond:                                       ; preds = %while.cond, %enter.exit
  %link.0 = phi ptr [ %4, %while.cond ], [ @blocks, %enter.exit ]
  %4 = load ptr, ptr %link.0, align 8
  %cmp2.not = icmp eq ptr %4, %0
  br i1 %cmp2.not, label %while.end, label %while.cond, !llvm.loop !14

while.end:                                        ; preds = %while.cond
  %5 = load ptr, ptr %0, align 8
  store ptr %5, ptr %link.0, align 8
  store atomic i32 0, ptr @lock release, align 4
  %AllocatorFree = getelementptr inbounds nuw i8, ptr %api, i64 608
  %6 = load ptr, ptr %AllocatorFree, align 8
  %call = tail call ptr %6(ptr noundef %allocator, ptr noundef nonnull %0) #6
  %tobool.not.i17 = icmp eq ptr %call, null
  br i1 %tobool.not.i17, label %if.end8, label %if.then.i

if.then.i:                                        ; preds = %while.end
  %ReleaseStatus.i = getelementptr inbounds nuw i8, ptr %api, i64 744
  %7 = load ptr, ptr %ReleaseStatus.i, align 8
  tail call void %7(ptr noundef nonnull %call) #6
  br label %if.end8

if.end8.critedge:                                 ; preds = %enter.exit
  store atomic i32 0, ptr @lock release, align 4
  br label %if.end8

if.end8:                                          ; preds = %if.end8.critedge, %if.then.i, %while.end
  ret void
}

declare ptr @igniter_fail(ptr noundef, ptr noundef, i32 noundef, ptr noundef, i64 noundef, i64 noundef, i64 noundef, i64 noundef) local_unnamed_addr #2

declare i32 @sched_yield() local_unnamed_addr #2

declare i32 @madvise(ptr noundef, i64 noundef, i32 noundef) local_unnamed_addr #2

; Function Attrs: nounwind
declare i64 @llvm.read_volatile_register.i64(metadata) #3

; Function Attrs: nocallback nounwind
declare void @llvm.write_register.i64(metadata, i64) #4

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.umin.i64(i64, i64) #5

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.umax.i64(i64, i64) #5

attributes #0 = { nounwind "no-builtins" }
attributes #1 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #2 = { "no-builtins" }
attributes #3 = { nounwind }
attributes #4 = { nocallback nounwind }
attributes #5 = { nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #6 = { nobuiltin nounwind "no-builtins" }

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
!10 = distinct !{!10, !1, !2}
!11 = !{!"fpcr"}
!12 = distinct !{!12, !1, !2}
!13 = distinct !{!13, !1, !2}
!14 = distinct !{!14, !1, !2}
