target triple = "aarch64-unknown-linux-gnu"

@igniter_violation = external global ptr, align 8

; Function Attrs: nounwind
define hidden ptr @igniter_run_sanitized(ptr noundef %state, ptr noundef %desc, ptr noundef %api, ptr noundef %context, ptr noundef %buffers, ptr noundef %symbols, i64 noundef %size) local_unnamed_addr #0 {
entry:
  %call = tail call ptr @igniter_run(ptr noundef %state, ptr noundef %desc, ptr noundef %api, ptr noundef %context, ptr noundef %buffers, ptr noundef %symbols, i64 noundef %size) #2
  %0 = atomicrmw xchg ptr @igniter_violation, i64 0 acq_rel, align 8
  %1 = inttoptr i64 %0 to ptr
  %tobool.not = icmp eq i64 %0, 0
  br i1 %tobool.not, label %cleanup, label %if.end

if.end:                                           ; preds = %entry
  %tobool1.not = icmp eq ptr %call, null
  br i1 %tobool1.not, label %if.end3, label %if.then2

if.then2:                                         ; preds = %if.end
  %ReleaseStatus = getelementptr inbounds nuw i8, ptr %api, i64 744
  %2 = load ptr, ptr %ReleaseStatus, align 8
  tail call void %2(ptr noundef nonnull %call) #2
  br label %if.end3

if.end3:                                          ; preds = %if.then2, %if.end
  %call4 = tail call ptr @igniter_outside(ptr noundef %api, ptr noundef %desc, ptr noundef nonnull %1) #2
  br label %cleanup

cleanup:                                          ; preds = %if.end3, %entry
  %retval.0 = phi ptr [ %call4, %if.end3 ], [ %call, %entry ]
  ret ptr %retval.0
}

declare ptr @igniter_run(ptr noundef, ptr noundef, ptr noundef, ptr noundef, ptr noundef, ptr noundef, i64 noundef) local_unnamed_addr #1

declare ptr @igniter_outside(ptr noundef, ptr noundef, ptr noundef) local_unnamed_addr #1

attributes #0 = { nounwind "no-builtins" }
attributes #1 = { "no-builtins" }
attributes #2 = { nobuiltin nounwind "no-builtins" }
