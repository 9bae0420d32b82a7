"""The part of the library common to all ops, as LLVM IR with the shorthands of `expand_calls`.

It contains the types, the callbacks for the description of an op, and the life of a kernel; `compute` has the call.

An op is an `OrtCustomOp` followed by a pointer to its `%Desc`. ORT keeps a kernel object for each node, here a
`%State`, written when the node is created and only read afterwards: the op, the API table, and a byte for every input.
The byte marks a constant with checked type and dims, so that weights cost almost nothing in a call. Counters live in
allocas; LLVM turns them into registers.
"""

from __future__ import annotations

STACK_SCRATCH = 4096
"""The limit in bytes of scratch memory on the stack; larger blocks come from ORT's allocator."""

COMPOUND = -(1 << 63)
"""The code of a dim other than an integer or one symbol."""

TYPES = """
; A formal input or output: its name, its dims as text, the text of every dim, every dim as a number (below), element
; type, mode (0 required, 1 optional, 2 variadic), least number of values, whether every dim is constant, rank, where
; its dims are in the array of all dims, and the symbol that gets its presence or count (or -1).
; A dim as a number: the dim itself, or -1 - n for the symbol n, or the least of all integers for what is neither.
%Port = type { ptr, ptr, ptr, ptr, i32, i32, i32, i32, i64, i64, i64 }
; Name, inputs, outputs, shape function, kernel, number of inputs, of outputs, of symbols (those of the kernel come
; first, so that one array serves both), of dims of the inputs that
; are not variadic, of dims of the outputs, rank of the variadic input (or -1), whether the last output is variadic,
; number of checks on the data, the function that tests them (or null), the one that runs the kernel, and which GPU
; kernels that launches (or null).
%Desc = type { ptr, ptr, ptr, ptr, ptr, i64, i64, i64, i64, i64, i64, i64, i64, ptr, ptr, ptr }
; The op, the API table, what the kernel object has on a GPU (or null), and which inputs have been checked.
%State = type { ptr, ptr, ptr, [0 x i8] }
; What went wrong, for the message: the port's number, the value's position, the axis, expected, got; of a requirement
; its message, and the numbers to put between its pieces.
%Failure = type { i64, i64, i64, i64, i64, ptr, [8 x i64] }
; A message with numbers: how many, and the pieces of text around them, one more.
%Message = type { i64, ptr }
; The API table, ORT's context, and the first error.
%Call = type { ptr, ptr, ptr }
; A bounded string: buffer, capacity with the terminator, length.
%Text = type { ptr, i64, i64 }

@igniter_api = internal global ptr null, align 8
@igniter_domain_api = internal global ptr null, align 8
@igniter_domain = internal global ptr null, align 8
"""

SCHEMA = """
define internal ptr @igniter_desc(ptr %op) alwaysinline {
  %at = getelementptr i8, ptr %op, i64 208
  %desc = load ptr, ptr %at
  ret ptr %desc
}

define internal ptr @igniter_port(ptr %op, i64 %list, i64 %index) alwaysinline {
  %desc = call ptr @igniter_desc(ptr %op)
  %offset = mul i64 %list, 8
  %at = getelementptr i8, ptr %desc, i64 %offset
  %ports = load ptr, ptr %at
  %port = getelementptr %Port, ptr %ports, i64 %index
  ret ptr %port
}

define internal ptr @igniter_name(ptr %op) {
  %desc = call ptr @igniter_desc(ptr %op)
  %name = load ptr, ptr %desc
  ret ptr %name
}

define internal ptr @igniter_provider(ptr %op) {
  ret ptr null
}

define internal i64 @igniter_input_count(ptr %op) {
  %desc = call ptr @igniter_desc(ptr %op)
  %at = getelementptr %Desc, ptr %desc, i64 0, i32 5
  %n = load i64, ptr %at
  ret i64 %n
}

define internal i64 @igniter_output_count(ptr %op) {
  %desc = call ptr @igniter_desc(ptr %op)
  %at = getelementptr %Desc, ptr %desc, i64 0, i32 6
  %n = load i64, ptr %at
  ret i64 %n
}

define internal i32 @igniter_input_type(ptr %op, i64 %index) {
  %port = call ptr @igniter_port(ptr %op, i64 1, i64 %index)
  %at = getelementptr %Port, ptr %port, i64 0, i32 4
  %type = load i32, ptr %at
  ret i32 %type
}

define internal i32 @igniter_output_type(ptr %op, i64 %index) {
  %port = call ptr @igniter_port(ptr %op, i64 2, i64 %index)
  %at = getelementptr %Port, ptr %port, i64 0, i32 4
  %type = load i32, ptr %at
  ret i32 %type
}

define internal i32 @igniter_input_mode(ptr %op, i64 %index) {
  %port = call ptr @igniter_port(ptr %op, i64 1, i64 %index)
  %at = getelementptr %Port, ptr %port, i64 0, i32 5
  %mode = load i32, ptr %at
  ret i32 %mode
}

define internal i32 @igniter_output_mode(ptr %op, i64 %index) {
  %port = call ptr @igniter_port(ptr %op, i64 2, i64 %index)
  %at = getelementptr %Port, ptr %port, i64 0, i32 5
  %mode = load i32, ptr %at
  ret i32 %mode
}

define internal i32 @igniter_input_memory(ptr %op, i64 %index) {
  ret i32 0
}

define internal i32 @igniter_input_least(ptr %op) {
  %n = call i64 @igniter_input_count(ptr %op)
  %last = sub i64 %n, 1
  %port = call ptr @igniter_port(ptr %op, i64 1, i64 %last)
  %at = getelementptr %Port, ptr %port, i64 0, i32 6
  %least = load i32, ptr %at
  ret i32 %least
}

define internal i32 @igniter_output_least(ptr %op) {
  %n = call i64 @igniter_output_count(ptr %op)
  %last = sub i64 %n, 1
  %port = call ptr @igniter_port(ptr %op, i64 2, i64 %last)
  %at = getelementptr %Port, ptr %port, i64 0, i32 6
  %least = load i32, ptr %at
  ret i32 %least
}

define internal i32 @igniter_homogeneous(ptr %op) {
  ret i32 1
}

define internal i32 @igniter_first_version(ptr %op) {
  ret i32 1
}

define internal i32 @igniter_last_version(ptr %op) {
  ret i32 2147483647
}

define internal void @igniter_release_inplace(ptr %inputs, ptr %outputs) {
  ret void
}
"""

KERNEL = """
define internal ptr @igniter_check(ptr %api, ptr %desc, ptr %port, i64 %index, ptr %value, ptr %dims, ptr %symbols) {
  ; Whether a value has the element type, the rank and the dims of its port, as far as they are integers or symbols.
  ; A symbol gets the first value that it meets. All dims go to %dims.
entry:
  %status = alloca ptr
  %info.at = alloca ptr
  %number = alloca i32
  %count = alloca i64
  %axis.at = alloca i64
  try GetTensorTypeAndShape(ptr %value, ptr %info.at) else failed
  %info = load ptr, ptr %info.at
  try GetTensorElementType(ptr %info, ptr %number) else release
  %got = load i32, ptr %number
  %type.at = getelementptr %Port, ptr %port, i64 0, i32 4
  %type = load i32, ptr %type.at
  %type.same = icmp eq i32 %got, %type
  br i1 %type.same, label %rank, label %bad.type
rank:
  try GetDimensionsCount(ptr %info, ptr %count) else release
  %rank.got = load i64, ptr %count
  %rank.at = getelementptr %Port, ptr %port, i64 0, i32 8
  %rank.want = load i64, ptr %rank.at
  %rank.same = icmp eq i64 %rank.got, %rank.want
  br i1 %rank.same, label %dims.get, label %bad.rank
dims.get:
  try GetDimensions(ptr %info, ptr %dims, i64 %rank.want) else release
  %constants.at = getelementptr %Port, ptr %port, i64 0, i32 3
  %constants = load ptr, ptr %constants.at
  store i64 0, ptr %axis.at
  br label %loop
loop:
  %axis = load i64, ptr %axis.at
  %more = icmp ult i64 %axis, %rank.want
  br i1 %more, label %compare, label %good
compare:
  %code.at = getelementptr i64, ptr %constants, i64 %axis
  %code = load i64, ptr %code.at
  %dim.at = getelementptr i64, ptr %dims, i64 %axis
  %dim = load i64, ptr %dim.at
  %is.constant = icmp sge i64 %code, 0
  br i1 %is.constant, label %constant, label %symbolic
constant:
  %same = icmp eq i64 %code, %dim
  br i1 %same, label %next, label %bad.dim
symbolic:
  %is.other = icmp eq i64 %code, $COMPOUND
  br i1 %is.other, label %next, label %bind
bind:
  %slot = xor i64 %code, -1
  %symbol.at = getelementptr i64, ptr %symbols, i64 %slot
  %bound = load i64, ptr %symbol.at
  %open = icmp slt i64 %bound, 0
  br i1 %open, label %take, label %match
take:
  store i64 %dim, ptr %symbol.at
  br label %next
match:
  %agrees = icmp eq i64 %bound, %dim
  br i1 %agrees, label %next, label %bad.symbol
next:
  %axis.next = add i64 %axis, 1
  store i64 %axis.next, ptr %axis.at
  br label %loop
bad.type:
  %type.wide = zext i32 %type to i64
  %got.wide = zext i32 %got to i64
  %fail.type = call ptr @igniter_fail(ptr %api, ptr %desc, i32 3, ptr %port, i64 %index, i64 0,
    i64 %type.wide, i64 %got.wide)
  store ptr %fail.type, ptr %status
  br label %release
bad.rank:
  %fail.rank = call ptr @igniter_fail(ptr %api, ptr %desc, i32 4, ptr %port, i64 %index, i64 0,
    i64 %rank.want, i64 %rank.got)
  store ptr %fail.rank, ptr %status
  br label %release
bad.dim:
  %fail.dim = call ptr @igniter_fail(ptr %api, ptr %desc, i32 5, ptr %port, i64 %index, i64 %axis,
    i64 %code, i64 %dim)
  store ptr %fail.dim, ptr %status
  br label %release
bad.symbol:
  %fail.symbol = call ptr @igniter_fail(ptr %api, ptr %desc, i32 6, ptr %port, i64 %index, i64 %axis,
    i64 %bound, i64 %dim)
  store ptr %fail.symbol, ptr %status
  br label %release
good:
  store ptr null, ptr %status
  br label %release
release:
  api ReleaseTensorTypeAndShapeInfo(ptr %info)
  br label %failed
failed:
  %result = load ptr, ptr %status
  ret ptr %result
}

define internal ptr @igniter_create(ptr %op, ptr %api, ptr %info, ptr %out) {
  ; The kernel object of a node. Constant inputs are checked here, once.
entry:
  %status = alloca ptr
  %allocator.at = alloca ptr
  %state.at = alloca ptr
  %index.at = alloca i64
  %count.at = alloca i64
  %constant.at = alloca i32
  %value.at = alloca ptr
  %desc = call ptr @igniter_desc(ptr %op)
  %n = call i64 @igniter_input_count(ptr %op)
  try GetAllocatorWithDefaultOptions(ptr %allocator.at) else failed
  %allocator = load ptr, ptr %allocator.at
  %size = add i64 %n, 24
  try AllocatorAlloc(ptr %allocator, i64 %size, ptr %state.at) else failed
  %state = load ptr, ptr %state.at
  store ptr %op, ptr %state
  %api.in = getelementptr %State, ptr %state, i64 0, i32 1
  store ptr %api, ptr %api.in
  %device.in = getelementptr %State, ptr %state, i64 0, i32 2
  store ptr null, ptr %device.in
  store i64 0, ptr %count.at
  try KernelInfo_GetInputCount(ptr %info, ptr %count.at) else broken
  %count = load i64, ptr %count.at
  store i64 0, ptr %index.at
  br label %loop
loop:
  %index = load i64, ptr %index.at
  %more = icmp ult i64 %index, %n
  br i1 %more, label %body, label %good
body:
  %index.next = add i64 %index, 1
  store i64 %index.next, ptr %index.at
  %checked = getelementptr %State, ptr %state, i64 0, i32 3, i64 %index
  store i8 0, ptr %checked
  %port = call ptr @igniter_port(ptr %op, i64 1, i64 %index)
  %static.at = getelementptr %Port, ptr %port, i64 0, i32 7
  %static = load i32, ptr %static.at
  %is.static = icmp ne i32 %static, 0
  %given = icmp ult i64 %index, %count
  %can = and i1 %is.static, %given
  br i1 %can, label %ask, label %loop
ask:
  store i32 0, ptr %constant.at
  store ptr null, ptr %value.at
  drop KernelInfoGetConstantInput_tensor(ptr %info, i64 %index, ptr %constant.at, ptr %value.at) else loop
  %constant = load i32, ptr %constant.at
  %value = load ptr, ptr %value.at
  %yes = icmp ne i32 %constant, 0
  %there = icmp ne ptr %value, null
  %both = and i1 %yes, %there
  br i1 %both, label %check, label %loop
check:
  %rank.at = getelementptr %Port, ptr %port, i64 0, i32 8
  %rank = load i64, ptr %rank.at
  %stack = call ptr @llvm.stacksave()
  %dims = alloca i64, i64 %rank
  %bad = call ptr @igniter_check(ptr %api, ptr %desc, ptr %port, i64 %index, ptr %value, ptr %dims,
    ptr null)
  call void @llvm.stackrestore(ptr %stack)
  store ptr %bad, ptr %status
  %is.bad = icmp ne ptr %bad, null
  br i1 %is.bad, label %broken, label %mark
mark:
  store i8 1, ptr %checked
  br label %loop
good:
  store ptr %state, ptr %out
  ret ptr null
broken:
  drop AllocatorFree(ptr %allocator, ptr %state) else failed
  br label %failed
failed:
  %result = load ptr, ptr %status
  ret ptr %result
}

define internal void @igniter_destroy(ptr %state) {
entry:
  %allocator.at = alloca ptr
  %api.in = getelementptr %State, ptr %state, i64 0, i32 1
  %api = load ptr, ptr %api.in
  drop GetAllocatorWithDefaultOptions(ptr %allocator.at) else done
  %allocator = load ptr, ptr %allocator.at
  drop AllocatorFree(ptr %allocator, ptr %state) else done
  br label %done
done:
  ret void
}

define internal void @igniter_parallel_for(ptr %call, ptr %task, i64 %count, ptr %data) {
  ; ORT's thread pool. Should ORT refuse, the tasks still run, so that no later step reads what was never written.
entry:
  %index.at = alloca i64
  store i64 0, ptr %index.at
  %several = icmp sgt i64 %count, 1
  br i1 %several, label %parallel, label %loop
parallel:
  %api = load ptr, ptr %call
  %ctx.at = getelementptr %Call, ptr %call, i64 0, i32 1
  %ctx = load ptr, ptr %ctx.at
  %s = api KernelContext_ParallelFor(ptr %ctx, ptr %task, i64 %count, i64 0, ptr %data)
  %bad = icmp ne ptr %s, null
  br i1 %bad, label %refused, label %done
refused:
  %error.at = getelementptr %Call, ptr %call, i64 0, i32 2
  %old = load ptr, ptr %error.at
  store ptr %s, ptr %error.at
  %first = icmp eq ptr %old, null
  br i1 %first, label %loop, label %release
release:
  api ReleaseStatus(ptr %old)
  br label %loop
loop:
  %index = load i64, ptr %index.at
  %more = icmp slt i64 %index, %count
  br i1 %more, label %body, label %done
body:
  call void %task(ptr %data, i64 %index)
  %next = add i64 %index, 1
  store i64 %next, ptr %index.at
  br label %loop
done:
  ret void
}

define internal ptr @igniter_run(ptr %state, ptr %desc, ptr %api, ptr %ctx, ptr %buffers, ptr %symbols, i64 %size) {
  ; Runs the kernel with %size bytes of scratch memory, aligned to 64 bytes.
entry:
  %status = alloca ptr
  %call = alloca %Call
  %default.at = alloca ptr
  %where.at = alloca ptr
  %allocator.at = alloca ptr
  %memory.at = alloca ptr
  %kernel.at = getelementptr %Desc, ptr %desc, i64 0, i32 4
  %kernel = load ptr, ptr %kernel.at
  store ptr %api, ptr %call
  %call.ctx = getelementptr %Call, ptr %call, i64 0, i32 1
  store ptr %ctx, ptr %call.ctx
  %call.error = getelementptr %Call, ptr %call, i64 0, i32 2
  store ptr null, ptr %call.error
  %small = icmp ule i64 %size, $STACK_SCRATCH
  br i1 %small, label %stack, label %heap
stack:
  %local = alloca i8, i64 %size, align 64
  call void %kernel(ptr %buffers, ptr %symbols, ptr %local, ptr @igniter_parallel_for, ptr %call)
  %stack.error = load ptr, ptr %call.error
  ret ptr %stack.error
heap:
  %padded = add nuw i64 %size, 64
  try GetAllocatorWithDefaultOptions(ptr %default.at) else failed
  %default = load ptr, ptr %default.at
  try AllocatorGetInfo(ptr %default, ptr %where.at) else failed
  %where = load ptr, ptr %where.at
  try KernelContext_GetAllocator(ptr %ctx, ptr %where, ptr %allocator.at) else failed
  %allocator = load ptr, ptr %allocator.at
  store ptr null, ptr %memory.at
  try AllocatorAlloc(ptr %allocator, i64 %padded, ptr %memory.at) else release
  %memory = load ptr, ptr %memory.at
  %got = icmp ne ptr %memory, null
  br i1 %got, label %run, label %exhausted
run:
  %address = ptrtoint ptr %memory to i64
  %up = add i64 %address, 63
  %down = and i64 %up, -64
  %skip = sub i64 %down, %address
  %arena = getelementptr i8, ptr %memory, i64 %skip
  call void %kernel(ptr %buffers, ptr %symbols, ptr %arena, ptr @igniter_parallel_for, ptr %call)
  %error = load ptr, ptr %call.error
  store ptr %error, ptr %status
  drop AllocatorFree(ptr %allocator, ptr %memory) else release
  br label %release
exhausted:
  %fail = call ptr @igniter_fail(ptr %api, ptr %desc, i32 9, ptr null, i64 0, i64 0, i64 0, i64 %size)
  store ptr %fail, ptr %status
  br label %release
release:
  api ReleaseAllocator(ptr %allocator)
  br label %failed
failed:
  %result = load ptr, ptr %status
  ret ptr %result
}
"""
