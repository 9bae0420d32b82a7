target triple = "aarch64-unknown-linux-gnu"

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(none)
define hidden noundef i32 @sched_getaffinity(i32 noundef %process, i64 noundef %size, ptr noundef readnone captures(none) %mask) local_unnamed_addr #0 {
entry:
  ret i32 -1
}

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

attributes #0 = { mustprogress nofree norecurse nosync nounwind willreturn memory(none) "no-builtins" }
