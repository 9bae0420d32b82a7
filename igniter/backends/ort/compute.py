"""`KernelComputeV2`, the same for every op, as LLVM IR with the shorthands of `expand_calls`.

The inputs are fetched and checked one by one, the op's own shape function turns their dims into the kernel's symbols,
the dims of the outputs and the size of the scratch memory, the outputs are allocated, and the kernel runs. A mismatch
ends the call with a status from `@igniter_fail`; at that point the call holds no resources.
"""

from __future__ import annotations

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
  ; The kernel writes what its checks find behind the outputs.
  %n.checks.at = getelementptr %Desc, ptr %desc, i64 0, i32 12
  %n.checks = load i64, ptr %n.checks.at
  %found = alloca i64, i64 %n.checks
  %values.all = add i64 %values, %n.checks
  %buffers = alloca ptr, i64 %values.all
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
  br label %clear.loop
clear.loop:
  ; A symbol without a value is negative.
  %c = load i64, ptr %index.at
  %c.more = icmp ult i64 %c, %n.symbols
  br i1 %c.more, label %clear, label %cleared
clear:
  %clear.at = getelementptr i64, ptr %symbols, i64 %c
  store i64 -1, ptr %clear.at
  %c.next = add i64 %c, 1
  store i64 %c.next, ptr %index.at
  br label %clear.loop
cleared:
  store i64 0, ptr %index.at
  br i1 %variadic, label %counting, label %in.loop
counting:
  %last.port = call ptr @igniter_port(ptr %op, i64 1, i64 %fixed.in)
  %last.slot.at = getelementptr %Port, ptr %last.port, i64 0, i32 10
  %last.slot = load i64, ptr %last.slot.at
  %members.at = getelementptr i64, ptr %symbols, i64 %last.slot
  store i64 %members, ptr %members.at
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
  %mode.at = getelementptr %Port, ptr %port, i64 0, i32 5
  %mode = load i32, ptr %mode.at
  %optional = icmp eq i32 %mode, 1
  store ptr null, ptr %value.at
  %is.given = icmp ult i64 %i, %given
  br i1 %is.given, label %in.get, label %in.got
in.get:
  try KernelContext_GetInput(ptr %ctx, i64 %i, ptr %value.at) else failed
  br label %in.got
in.got:
  %value = load ptr, ptr %value.at
  %absent = icmp eq ptr %value, null
  br i1 %optional, label %in.presence, label %in.known
in.presence:
  %in.slot.at = getelementptr %Port, ptr %port, i64 0, i32 10
  %in.slot = load i64, ptr %in.slot.at
  %in.symbol.at = getelementptr i64, ptr %symbols, i64 %in.slot
  %is.there = xor i1 %absent, true
  %is.there.n = zext i1 %is.there to i64
  store i64 %is.there.n, ptr %in.symbol.at
  br label %in.known
in.known:
  br i1 %absent, label %in.absent, label %in.present
in.absent:
  store ptr null, ptr %buffer.at
  br i1 %optional, label %in.loop, label %bad.missing
bad.missing:
  %fail.missing = call ptr @igniter_fail(ptr %api, ptr %desc, i32 2, ptr %port, i64 %i, i64 0, i64 0, i64 0)
  ret ptr %fail.missing
in.present:
  try GetTensorMutableData(ptr %value, ptr %buffer.at) else failed
  %checked.at = getelementptr %State, ptr %state, i64 0, i32 3, i64 %i.port
  %checked = load i8, ptr %checked.at
  %checked.yes = icmp ne i8 %checked, 0
  %is.first = icmp eq i64 %member, 0
  %checked.here = and i1 %checked.yes, %is.first
  br i1 %checked.here, label %in.loop, label %in.check
in.check:
  %check = call ptr @igniter_check(ptr %api, ptr %desc, ptr %port, i64 %i, ptr %value, ptr %dims.here,
    ptr %symbols)
  %check.bad = icmp ne ptr %check, null
  br i1 %check.bad, label %bad.input, label %in.loop
bad.input:
  ret ptr %check

shapes:
  %shapes.at = getelementptr %Desc, ptr %desc, i64 0, i32 3
  %shapes.f = load ptr, ptr %shapes.at
  store i64 0, ptr %size.at
  %kind = call i32 %shapes.f(ptr %dims, i64 %members, ptr %symbols, ptr %out.dims, ptr %size.at, ptr %failure)
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
  %bad.of.list = call ptr @igniter_port(ptr %op, i64 %bad.list, i64 %bad.port.n)
  ; A requirement is about no port, and the message is in the failure.
  %required = icmp eq i32 %kind, 13
  %bad.port = select i1 %required, ptr %failure, ptr %bad.of.list
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
  store i64 0, ptr %index.at
  br label %found.loop
found.loop:
  %k = load i64, ptr %index.at
  %k.more = icmp ult i64 %k, %n.checks
  br i1 %k.more, label %found.body, label %start
found.body:
  %k.found.at = getelementptr i64, ptr %found, i64 %k
  %k.place = add i64 %values, %k
  %k.buffer.at = getelementptr ptr, ptr %buffers, i64 %k.place
  store ptr %k.found.at, ptr %k.buffer.at
  %k.next = add i64 %k, 1
  store i64 %k.next, ptr %index.at
  br label %found.loop
start:
  %size = load i64, ptr %size.at
  %run.at = getelementptr %Desc, ptr %desc, i64 0, i32 14
  %run.f = load ptr, ptr %run.at
  %done = call ptr %run.f(ptr %state, ptr %desc, ptr %api, ptr %ctx, ptr %buffers, ptr %symbols, i64 %size)
  %ran = icmp eq ptr %done, null
  %checks.some = icmp ne i64 %n.checks, 0
  %checks.now = and i1 %ran, %checks.some
  br i1 %checks.now, label %test, label %end
test:
  %checks.at = getelementptr %Desc, ptr %desc, i64 0, i32 13
  %checks.f = load ptr, ptr %checks.at
  %broken = call i32 %checks.f(ptr %found, ptr %symbols, ptr %failure)
  %sound = icmp eq i32 %broken, 0
  br i1 %sound, label %end, label %bad.data
bad.data:
  %fail.data = call ptr @igniter_fail(ptr %api, ptr %desc, i32 %broken, ptr %failure, i64 0, i64 0, i64 0, i64 0)
  ret ptr %fail.data
end:
  ret ptr %done
failed:
  %result = load ptr, ptr %status
  ret ptr %result
}
"""
