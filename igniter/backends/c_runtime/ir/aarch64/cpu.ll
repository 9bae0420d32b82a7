target triple = "aarch64-unknown-linux-gnu"

; Function Attrs: nounwind
define hidden void @igniter_cpu_words(ptr noundef writeonly captures(none) %words) local_unnamed_addr #0 {
entry:
  br label %for.body

for.cond.cleanup:                                 ; preds = %for.body
  %call = tail call i64 @getauxval(i64 noundef 16) #3
  %call1 = tail call i64 @getauxval(i64 noundef 26) #3
  %conv = trunc i64 %call to i32
  store i32 %conv, ptr %words, align 4
  %shr = lshr i64 %call, 32
  %conv3 = trunc nuw i64 %shr to i32
  %arrayidx4 = getelementptr inbounds nuw i8, ptr %words, i64 4
  store i32 %conv3, ptr %arrayidx4, align 4
  %conv5 = trunc i64 %call1 to i32
  %arrayidx6 = getelementptr inbounds nuw i8, ptr %words, i64 8
  store i32 %conv5, ptr %arrayidx6, align 4
  %shr7 = lshr i64 %call1, 32
  %conv8 = trunc nuw i64 %shr7 to i32
  %arrayidx9 = getelementptr inbounds nuw i8, ptr %words, i64 12
  store i32 %conv8, ptr %arrayidx9, align 4
  ret void

for.body:                                         ; preds = %for.body, %entry
  %indvars.iv = phi i64 [ 0, %entry ], [ %indvars.iv.next, %for.body ]
  %arrayidx = getelementptr inbounds nuw i32, ptr %words, i64 %indvars.iv
  store i32 0, ptr %arrayidx, align 4
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, 9
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body, !llvm.loop !0
}

declare i64 @getauxval(i64 noundef) local_unnamed_addr #1

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(none)
define hidden noundef i32 @igniter_cpu_level(ptr noundef readnone captures(none) %words) local_unnamed_addr #2 {
entry:
  ret i32 0
}

attributes #0 = { nounwind "no-builtins" }
attributes #1 = { "no-builtins" }
attributes #2 = { mustprogress nofree norecurse nosync nounwind willreturn memory(none) "no-builtins" }
attributes #3 = { nobuiltin nounwind "no-builtins" }

!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.mustprogress"}
!2 = !{!"llvm.loop.unroll.disable"}
