"""The part of the library that is the same for every op, as LLVM IR with the shorthands of `expand_calls`.

An op is an `OrtCustomOp` followed by a pointer to its `%Desc`. The kernel object that ORT keeps for a node is a
`%State`, written when the node is created and only read afterwards: the op, the API table, and a byte for every
input that says "a constant whose type and dims have been checked", so that weights cost next to nothing in a call.
Counters live in allocas, which LLVM turns into registers.
"""

from __future__ import annotations

STACK_SCRATCH = 4096
"""Scratch memory of up to so many bytes is on the stack; more comes from ORT's allocator."""

TYPES = """
; A formal input or output: its name, its dims as text, the text of every dim, the constant dims (-1 elsewhere),
; element type, mode (0 required, 1 optional, 2 variadic), least number of values, whether every dim is constant,
; rank, where its dims are in the array of all dims, and the kernel symbol that gets its presence or count (or -1).
%Port = type { ptr, ptr, ptr, ptr, i32, i32, i32, i32, i64, i64, i64 }
; Name, inputs, outputs, shape function, kernel, number of inputs, of outputs, of symbols, of dims of the inputs that
; are not variadic, of dims of the outputs, rank of the variadic input (or -1), whether the last output is variadic.
%Desc = type { ptr, ptr, ptr, ptr, ptr, i64, i64, i64, i64, i64, i64, i64 }
%State = type { ptr, ptr, [0 x i8] }
; What went wrong, for the message: the port's number, the value's position, the axis, expected, got.
%Failure = type { i64, i64, i64, i64, i64 }
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
define internal ptr @igniter_check(ptr %api, ptr %desc, ptr %port, i64 %index, ptr %value, ptr %dims) {
  ; Whether a value has the element type, the rank and the constant dims of its port; its dims go to %dims.
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
  %want.at = getelementptr i64, ptr %constants, i64 %axis
  %want = load i64, ptr %want.at
  %dim.at = getelementptr i64, ptr %dims, i64 %axis
  %dim = load i64, ptr %dim.at
  %symbolic = icmp slt i64 %want, 0
  %same = icmp eq i64 %want, %dim
  %fits = or i1 %symbolic, %same
  br i1 %fits, label %next, label %bad.dim
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
  %fail.dim = call ptr @igniter_fail(ptr %api, ptr %desc, i32 5, ptr %port, i64 %index, i64 %axis, i64 %want, i64 %dim)
  store ptr %fail.dim, ptr %status
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
  %size = add i64 %n, 16
  try AllocatorAlloc(ptr %allocator, i64 %size, ptr %state.at) else failed
  %state = load ptr, ptr %state.at
  store ptr %op, ptr %state
  %api.in = getelementptr %State, ptr %state, i64 0, i32 1
  store ptr %api, ptr %api.in
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
  %checked = getelementptr %State, ptr %state, i64 0, i32 2, i64 %index
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
  %bad = call ptr @igniter_check(ptr %api, ptr %desc, ptr %port, i64 %index, ptr %value, ptr %dims)
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

define internal ptr @igniter_run(ptr %desc, ptr %api, ptr %ctx, ptr %buffers, ptr %symbols, i64 %size) {
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

COMPUTE = """
define internal ptr @igniter_compute(ptr %state, ptr %ctx) {
entry:
  %status = alloca ptr
  %given.at = alloca i64
  %asked.at = alloca i64
  %index.at = alloca i64
  %value.at = alloca ptr
  %failure = alloca %Failure
  %size.at = alloca i64
  %op = load ptr, ptr %state
  %api.in = getelementptr %State, ptr %state, i64 0, i32 1
  %api = load ptr, ptr %api.in
  %desc = call ptr @igniter_desc(ptr %op)
  %n.in = call i64 @igniter_input_count(ptr %op)
  %n.out = call i64 @igniter_output_count(ptr %op)
  try KernelContext_GetInputCount(ptr %ctx, ptr %given.at) else failed
  try KernelContext_GetOutputCount(ptr %ctx, ptr %asked.at) else failed
  %given = load i64, ptr %given.at
  %asked = load i64, ptr %asked.at
  %spread.at = getelementptr %Desc, ptr %desc, i64 0, i32 10
  %spread = load i64, ptr %spread.at
  %variadic = icmp sge i64 %spread, 0
  %out.variadic.at = getelementptr %Desc, ptr %desc, i64 0, i32 11
  %out.variadic.n = load i64, ptr %out.variadic.at
  %out.variadic = icmp ne i64 %out.variadic.n, 0
  %in.over = icmp ugt i64 %given, %n.in
  %in.closed = xor i1 %variadic, true
  %in.bad = and i1 %in.over, %in.closed
  br i1 %in.bad, label %bad.in, label %inputs.counted
bad.in:
  %fail.in = call ptr @igniter_fail(ptr %api, ptr %desc, i32 1, ptr null, i64 0, i64 0, i64 %n.in, i64 %given)
  ret ptr %fail.in
inputs.counted:
  %out.over = icmp ugt i64 %asked, %n.out
  %out.closed = xor i1 %out.variadic, true
  %out.bad = and i1 %out.over, %out.closed
  br i1 %out.bad, label %bad.out, label %counted
bad.out:
  %fail.out = call ptr @igniter_fail(ptr %api, ptr %desc, i32 10, ptr null, i64 0, i64 0, i64 %n.out, i64 %asked)
  ret ptr %fail.out
counted:
  ; Every value has a place, whether it is there or not; a variadic port has as many as are given.
  %fixed.in = sub i64 %n.in, 1
  %open.in = call i64 @llvm.umax.i64(i64 %given, i64 %fixed.in)
  %values.in = select i1 %variadic, i64 %open.in, i64 %n.in
  %fixed.out = sub i64 %n.out, 1
  %open.out = call i64 @llvm.umax.i64(i64 %asked, i64 %fixed.out)
  %values.out = select i1 %out.variadic, i64 %open.out, i64 %n.out
  %more.in = sub i64 %values.in, %fixed.in
  %members = select i1 %variadic, i64 %more.in, i64 0
  %values = add i64 %values.in, %values.out
  %buffers = alloca ptr, i64 %values
  %there = alloca i8, i64 %values.in
  %own.dims.at = getelementptr %Desc, ptr %desc, i64 0, i32 8
  %own.dims = load i64, ptr %own.dims.at
  %rank.spread = call i64 @llvm.smax.i64(i64 %spread, i64 0)
  %member.dims = mul i64 %members, %rank.spread
  %all.dims = add i64 %own.dims, %member.dims
  %dims = alloca i64, i64 %all.dims
  %out.dims.at = getelementptr %Desc, ptr %desc, i64 0, i32 9
  %out.dims.n = load i64, ptr %out.dims.at
  %out.dims = alloca i64, i64 %out.dims.n
  %n.symbols.at = getelementptr %Desc, ptr %desc, i64 0, i32 7
  %n.symbols = load i64, ptr %n.symbols.at
  %symbols = alloca i64, i64 %n.symbols
  store i64 0, ptr %index.at
  br label %in.loop

in.loop:
  %i = load i64, ptr %index.at
  %i.more = icmp ult i64 %i, %values.in
  br i1 %i.more, label %in.body, label %shapes
in.body:
  %i.next = add i64 %i, 1
  store i64 %i.next, ptr %index.at
  %i.port = call i64 @llvm.umin.i64(i64 %i, i64 %fixed.in)
  %port = call ptr @igniter_port(ptr %op, i64 1, i64 %i.port)
  %offset.at = getelementptr %Port, ptr %port, i64 0, i32 9
  %offset = load i64, ptr %offset.at
  %member = sub i64 %i, %i.port
  %member.offset = mul i64 %member, %rank.spread
  %place = add i64 %offset, %member.offset
  %dims.here = getelementptr i64, ptr %dims, i64 %place
  %buffer.at = getelementptr ptr, ptr %buffers, i64 %i
  %there.at = getelementptr i8, ptr %there, i64 %i
  store ptr null, ptr %value.at
  %is.given = icmp ult i64 %i, %given
  br i1 %is.given, label %in.get, label %in.got
in.get:
  try KernelContext_GetInput(ptr %ctx, i64 %i, ptr %value.at) else failed
  br label %in.got
in.got:
  %value = load ptr, ptr %value.at
  %absent = icmp eq ptr %value, null
  br i1 %absent, label %in.absent, label %in.present
in.absent:
  store ptr null, ptr %buffer.at
  store i8 0, ptr %there.at
  %mode.at = getelementptr %Port, ptr %port, i64 0, i32 5
  %mode = load i32, ptr %mode.at
  %optional = icmp eq i32 %mode, 1
  br i1 %optional, label %in.loop, label %bad.missing
bad.missing:
  %fail.missing = call ptr @igniter_fail(ptr %api, ptr %desc, i32 2, ptr %port, i64 %i, i64 0, i64 0, i64 0)
  ret ptr %fail.missing
in.present:
  store i8 1, ptr %there.at
  try GetTensorMutableData(ptr %value, ptr %buffer.at) else failed
  %checked.at = getelementptr %State, ptr %state, i64 0, i32 2, i64 %i.port
  %checked = load i8, ptr %checked.at
  %checked.yes = icmp ne i8 %checked, 0
  %is.first = icmp eq i64 %member, 0
  %checked.here = and i1 %checked.yes, %is.first
  br i1 %checked.here, label %in.loop, label %in.check
in.check:
  %check = call ptr @igniter_check(ptr %api, ptr %desc, ptr %port, i64 %i, ptr %value, ptr %dims.here)
  %check.bad = icmp ne ptr %check, null
  br i1 %check.bad, label %bad.input, label %in.loop
bad.input:
  ret ptr %check

shapes:
  %shapes.at = getelementptr %Desc, ptr %desc, i64 0, i32 3
  %shapes.f = load ptr, ptr %shapes.at
  store i64 0, ptr %size.at
  %kind = call i32 %shapes.f(ptr %dims, ptr %there, i64 %members, ptr %symbols, ptr %out.dims,
    ptr %size.at, ptr %failure)
  %fits = icmp eq i32 %kind, 0
  br i1 %fits, label %outputs, label %bad.shapes
bad.shapes:
  %bad.port.at = getelementptr %Failure, ptr %failure, i64 0, i32 0
  %bad.port.n = load i64, ptr %bad.port.at
  %bad.index.at = getelementptr %Failure, ptr %failure, i64 0, i32 1
  %bad.index = load i64, ptr %bad.index.at
  %bad.axis.at = getelementptr %Failure, ptr %failure, i64 0, i32 2
  %bad.axis = load i64, ptr %bad.axis.at
  %bad.want.at = getelementptr %Failure, ptr %failure, i64 0, i32 3
  %bad.want = load i64, ptr %bad.want.at
  %bad.got.at = getelementptr %Failure, ptr %failure, i64 0, i32 4
  %bad.got = load i64, ptr %bad.got.at
  %of.output = icmp eq i32 %kind, 7
  %bad.list = select i1 %of.output, i64 2, i64 1
  %bad.port = call ptr @igniter_port(ptr %op, i64 %bad.list, i64 %bad.port.n)
  %fail.shapes = call ptr @igniter_fail(ptr %api, ptr %desc, i32 %kind, ptr %bad.port,
    i64 %bad.index, i64 %bad.axis, i64 %bad.want, i64 %bad.got)
  ret ptr %fail.shapes

outputs:
  store i64 0, ptr %index.at
  br label %out.loop
out.loop:
  %j = load i64, ptr %index.at
  %j.more = icmp ult i64 %j, %values.out
  br i1 %j.more, label %out.body, label %run
out.body:
  %j.next = add i64 %j, 1
  store i64 %j.next, ptr %index.at
  %j.port = call i64 @llvm.umin.i64(i64 %j, i64 %fixed.out)
  %out.port = call ptr @igniter_port(ptr %op, i64 2, i64 %j.port)
  %out.offset.at = getelementptr %Port, ptr %out.port, i64 0, i32 9
  %out.offset = load i64, ptr %out.offset.at
  %out.rank.at = getelementptr %Port, ptr %out.port, i64 0, i32 8
  %out.rank = load i64, ptr %out.rank.at
  %out.here = getelementptr i64, ptr %out.dims, i64 %out.offset
  %j.place = add i64 %values.in, %j
  %out.buffer.at = getelementptr ptr, ptr %buffers, i64 %j.place
  store ptr null, ptr %value.at
  %is.asked = icmp ult i64 %j, %asked
  br i1 %is.asked, label %out.get, label %out.got
out.get:
  try KernelContext_GetOutput(ptr %ctx, i64 %j, ptr %out.here, i64 %out.rank, ptr %value.at) else failed
  br label %out.got
out.got:
  %out.value = load ptr, ptr %value.at
  %out.present = icmp ne ptr %out.value, null
  %out.mode.at = getelementptr %Port, ptr %out.port, i64 0, i32 5
  %out.mode = load i32, ptr %out.mode.at
  %out.required = icmp ne i32 %out.mode, 1
  %out.missing = xor i1 %out.present, true
  %out.bad.one = and i1 %out.required, %out.missing
  br i1 %out.bad.one, label %bad.output, label %out.mark
bad.output:
  %fail.output = call ptr @igniter_fail(ptr %api, ptr %desc, i32 11, ptr %out.port, i64 %j, i64 0, i64 0, i64 0)
  ret ptr %fail.output
out.mark:
  %slot.at = getelementptr %Port, ptr %out.port, i64 0, i32 10
  %slot = load i64, ptr %slot.at
  %has.slot = icmp sge i64 %slot, 0
  br i1 %has.slot, label %out.symbol, label %out.data
out.symbol:
  %symbol.at = getelementptr i64, ptr %symbols, i64 %slot
  %present.n = zext i1 %out.present to i64
  %j.member = sub i64 %j.next, %fixed.out
  %counts = icmp eq i32 %out.mode, 2
  %symbol = select i1 %counts, i64 %j.member, i64 %present.n
  store i64 %symbol, ptr %symbol.at
  br label %out.data
out.data:
  store ptr null, ptr %out.buffer.at
  br i1 %out.present, label %out.write, label %out.loop
out.write:
  try GetTensorMutableData(ptr %out.value, ptr %out.buffer.at) else failed
  br label %out.loop

run:
  %size = load i64, ptr %size.at
  %done = call ptr @igniter_run(ptr %desc, ptr %api, ptr %ctx, ptr %buffers, ptr %symbols, i64 %size)
  ret ptr %done
failed:
  %result = load ptr, ptr %status
  ret ptr %result
}
"""
