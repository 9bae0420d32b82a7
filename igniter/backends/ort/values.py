"""`KernelComputeV2` of the op for carriers (docs/explanation/values.md), with the shorthands of `expand_calls`.

The elements of its input, except the first, become the dims of an output without bytes: its first dim is 0. The
descriptor's `%Port` of the output has the error message for a negative element in place of its name.
"""

from __future__ import annotations

VALUES = """
define internal ptr @igniter_values(ptr %state, ptr %ctx) {
entry:
  %status = alloca ptr
  %value.at = alloca ptr
  %data.at = alloca ptr
  %index.at = alloca i64
  %op = load ptr, ptr %state
  %api.in = getelementptr %State, ptr %state, i64 0, i32 1
  %api = load ptr, ptr %api.in
  %desc = call ptr @igniter_desc(ptr %op)
  %in = call ptr @igniter_port(ptr %op, i64 1, i64 0)
  %out = call ptr @igniter_port(ptr %op, i64 2, i64 0)
  %rank.at = getelementptr %Port, ptr %out, i64 0, i32 8
  %rank = load i64, ptr %rank.at
  %dims = alloca i64, i64 %rank
  store ptr null, ptr %value.at
  try KernelContext_GetInput(ptr %ctx, i64 0, ptr %value.at) else failed
  %value = load ptr, ptr %value.at
  %absent = icmp eq ptr %value, null
  br i1 %absent, label %missing, label %present
missing:
  %fail.missing = call ptr @igniter_fail(ptr %api, ptr %desc, i32 2, ptr %in, i64 0, i64 0, i64 0, i64 0)
  ret ptr %fail.missing
present:
  %bad = call ptr @igniter_check(ptr %api, ptr %desc, ptr %in, i64 0, ptr %value, ptr %dims, ptr null)
  %fits = icmp eq ptr %bad, null
  br i1 %fits, label %read, label %misfit
misfit:
  ret ptr %bad
read:
  try GetTensorMutableData(ptr %value, ptr %data.at) else failed
  %data = load ptr, ptr %data.at
  store i64 0, ptr %dims
  store i64 1, ptr %index.at
  br label %loop
loop:
  %index = load i64, ptr %index.at
  %more = icmp ult i64 %index, %rank
  br i1 %more, label %body, label %give
body:
  %element.at = getelementptr i64, ptr %data, i64 %index
  %element = load i64, ptr %element.at
  %negative = icmp slt i64 %element, 0
  br i1 %negative, label %refuse, label %keep
refuse:
  %number = sub i64 %index, 1
  %fail = call ptr @igniter_fail(ptr %api, ptr %desc, i32 14, ptr %out, i64 %number, i64 0, i64 0, i64 %element)
  ret ptr %fail
keep:
  %dim.at = getelementptr i64, ptr %dims, i64 %index
  store i64 %element, ptr %dim.at
  %next = add i64 %index, 1
  store i64 %next, ptr %index.at
  br label %loop
give:
  try KernelContext_GetOutput(ptr %ctx, i64 0, ptr %dims, i64 %rank, ptr %value.at) else failed
  ret ptr null
failed:
  %result = load ptr, ptr %status
  ret ptr %result
}
"""
