"""The frame of a library's module: the types of its tables, and the functions of the run time around them.

The run time is C (docs/explanation/c-runtime.md): `library.h` in `igniter/backends/c_runtime/src` has the same structs,
and a test compares the layouts. An op is an `OrtCustomOp` followed by a pointer to its `%Desc`.
"""

from __future__ import annotations

COMPOUND = -(1 << 63)
"""The code of a dim other than an integer or one symbol."""

TYPES = """
%Port = type { ptr, ptr, ptr, ptr, i32, i32, i32, i32, i64, i64, i64 }
%Desc = type { ptr, ptr, ptr, ptr, ptr, i64, i64, i64, i64, i64, i64, i64, i64, ptr, ptr, ptr, i64, ptr, i64 }
%Made = type { ptr, ptr, i64, i64, i64, i64 }
%Failure = type { i64, i64, i64, i64, i64, ptr, [8 x i64] }
%Message = type { i64, ptr }
%Text = type { ptr, i64, i64 }
"""

STRUCTS = {
    "Port": "igniter_port",
    "Desc": "igniter_desc",
    "Made": "igniter_made",
    "Failure": "igniter_failure",
    "Message": "igniter_message",
    "Text": "igniter_string",
}
"""The struct in C of each type of `TYPES`."""

FUNCTIONS = """
@igniter_api = external hidden global ptr

declare ptr @RegisterCustomOps(ptr, ptr)

declare ptr @igniter_name(ptr)
declare ptr @igniter_provider(ptr)
declare i64 @igniter_input_count(ptr)
declare i64 @igniter_output_count(ptr)
declare i32 @igniter_input_type(ptr, i64)
declare i32 @igniter_output_type(ptr, i64)
declare i32 @igniter_input_mode(ptr, i64)
declare i32 @igniter_output_mode(ptr, i64)
declare i32 @igniter_input_memory(ptr, i64)
declare i32 @igniter_input_least(ptr)
declare i32 @igniter_output_least(ptr)
declare i32 @igniter_homogeneous(ptr)
declare i32 @igniter_first_version(ptr)
declare i32 @igniter_last_version(ptr)
declare void @igniter_release_inplace(ptr, ptr)

declare ptr @igniter_create(ptr, ptr, ptr, ptr)
declare void @igniter_destroy(ptr)
declare ptr @igniter_compute(ptr, ptr)
declare ptr @igniter_values(ptr, ptr)
declare ptr @igniter_run(ptr, ptr, ptr, ptr, ptr, ptr, i64)

declare ptr @igniter_infer(ptr, ptr)
declare void @igniter_infer_inputs(ptr, ptr, ptr, ptr)
declare void @igniter_infer_plain(ptr, ptr, i64, ptr, ptr)
declare zeroext i1 @igniter_infer_input(ptr, ptr, i64, i64, ptr, ptr)
declare void @igniter_infer_output(ptr, ptr, i64, i32, i64, ptr, ptr)
declare zeroext i1 @igniter_infer_text(ptr, i64, ptr)
declare zeroext i1 @igniter_text_fits(ptr)
declare void @igniter_text(ptr, ptr)
"""
"""The run time's functions that tables point to and generated code calls."""

RUN = "igniter_run"
RUN_SANITIZED = "igniter_run_sanitized"
"""The functions that run a kernel; the second one then looks for an access out of bounds."""

DECLARE_SANITIZED = f"declare ptr @{RUN_SANITIZED}(ptr, ptr, ptr, ptr, ptr, ptr, i64)\n"
