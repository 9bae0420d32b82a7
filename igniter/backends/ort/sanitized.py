"""The check of a library of sanitized kernels after each run: an access out of bounds ends the call with an error.

The kernels store the text of such an access in a cell shared by the whole library (`igniter.backends.violations`). Of
two concurrent sessions, either may report an access of the other's kernel.
"""

from __future__ import annotations

from igniter.backends.ort.api import RUNTIME_EXCEPTION
from igniter.backends.ort.messages import CAPACITY, StringPool
from igniter.backends.violations import DEFINITION, VIOLATION

RUN = "igniter_run_sanitized"
"""The replacement of `igniter_run`."""


def emit_sanitized(strings: StringPool) -> str:
    """Returns the function that runs a kernel and then reads the cell."""
    return f"""
{DEFINITION}

define internal ptr @{RUN}(ptr %state, ptr %desc, ptr %api, ptr %ctx, ptr %buffers, ptr %symbols, i64 %size) {{
entry:
  %status = call ptr @igniter_run(ptr %state, ptr %desc, ptr %api, ptr %ctx, ptr %buffers, ptr %symbols, i64 %size)
  %outside = atomicrmw xchg ptr @{VIOLATION}, ptr null acq_rel
  %found = icmp ne ptr %outside, null
  br i1 %found, label %report, label %done
report:
  %held = icmp ne ptr %status, null
  br i1 %held, label %release, label %write
release:
  api ReleaseStatus(ptr %status)
  br label %write
write:
  %buffer = alloca [{CAPACITY} x i8]
  %text = alloca %Text
  store ptr %buffer, ptr %text
  %capacity.at = getelementptr %Text, ptr %text, i64 0, i32 1
  store i64 {CAPACITY}, ptr %capacity.at
  %length.at = getelementptr %Text, ptr %text, i64 0, i32 2
  store i64 0, ptr %length.at
  %name = load ptr, ptr %desc
  call void @igniter_text(ptr %text, ptr {strings("Igniter op ")})
  call void @igniter_text(ptr %text, ptr %name)
  call void @igniter_text(ptr %text, ptr {strings(": ")})
  call void @igniter_text(ptr %text, ptr %outside)
  %failed = api CreateStatus(i32 {RUNTIME_EXCEPTION}, ptr %buffer)
  ret ptr %failed
done:
  ret ptr %status
}}
"""
