"""The additional parts of a library of GPU kernels: the driver, loaded and called through its own API, as LLVM IR.

    igniter_gpu_create    loads the modules of an op's func, in the context of the device that ORT chose
    igniter_gpu_run       runs the func on ORT's stream, with an arena that belongs to that stream; nothing waits
    igniter_launch        called by the func, once for each launch
    igniter_gpu_destroy   unloads them

`libcuda.so.1` is loaded with the first kernel object, so the library itself also loads on machines without it. A kernel
object has its own modules. They belong to the current context if this is on the device of ORT's allocator, otherwise to
the device's primary context, which is then retained. A failure of the driver becomes a status with the names of the op,
the kernel and the function.

The arena is freed while its kernels are still queued. This is safe only because the arena belongs to the stream of the
run: `KernelContext_GetScratchBuffer` records the stream with the memory, and ONNX Runtime does not give it to another
stream before the two are synchronised. Memory of plain `AllocatorAlloc` has no stream, and would be reused by another
run at once. A run without a stream (a provider with host memory) has nothing queued, and takes plain memory:
`GetScratchBuffer` reads the stream without a check.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from igniter.backends.launches import KERNEL_TYPE, LAUNCH, kernel_symbol, slot_symbol
from igniter.backends.ort.api import expand_calls
from igniter.backends.ort.driver_calls import DRIVER, DRIVER_FUNCTIONS, expand_driver_calls
from igniter.backends.ort.messages import (
    BAD_ADDRESS,
    BAD_GRID,
    DRIVER_FAILED,
    NO_DRIVER,
    NO_MEMORY,
    OLD_DRIVER,
    OTHER_GPU,
    StringPool,
)
from igniter.dialects.ort import OpOp
from igniter.dialects.triton import ALIGNMENT

_LAUNCHED = (
    "ptr %function, i32 %programs, i32 1, i32 1, i32 %threads, i32 1, i32 1, i32 %shared, ptr %stream, ptr %parameters,"
    " ptr null"
)
"""The arguments of `cuLaunchKernel`, as text: a shorthand is one line."""

MOST_PROGRAMS = (1 << 31) - 1
"""The limit of a grid along its first dim."""

SHARED_WITHOUT_ASKING = 48 << 10
"""The bytes of shared memory available without `cuFuncSetAttribute`."""

MAX_DYNAMIC_SHARED = 8
"""`CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`."""


CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76
"""`CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR`, `_MINOR`."""


@dataclass(frozen=True)
class GpuCode:
    """The GPU kernels of a library, in the order of their numbers."""

    provider: str
    """The execution provider of the ops."""
    ops: Sequence[OpOp]
    """The ops whose funcs launch the kernels."""
    kernels: Sequence[str]
    launched: Mapping[str, Sequence[str]]
    """The kernels launched by each func of the host, directly or through callees."""
    suffix: str = ""
    """The suffix of the funcs' names, appended to the names in the ops."""


def emit_launches(code: GpuCode, strings: StringPool) -> str:
    """Returns the parts shared by all ops of a library of GPU kernels."""
    count = len(code.kernels)
    names = ", ".join(f"ptr {strings(name)}" for name in DRIVER_FUNCTIONS)
    lines = [
        *(f"{kernel_symbol(kernel)} = external hidden constant {KERNEL_TYPE}" for kernel in code.kernels),
        f"@igniter_kernels = internal constant [{count} x ptr] "
        f"[{', '.join(f'ptr {kernel_symbol(k)}' for k in code.kernels)}]",
        *(f"{slot_symbol(kernel)} = hidden constant i64 {k}" for k, kernel in enumerate(code.kernels)),
        f"@igniter_driver = internal global [{len(DRIVER_FUNCTIONS)} x ptr] zeroinitializer",
        f"@igniter_driver_names = internal constant [{len(DRIVER_FUNCTIONS)} x ptr] [{names}]",
        "define internal ptr @igniter_gpu_provider(ptr %op) {",
        f"  ret ptr {strings(code.provider)}",
        "}",
    ]
    text = _TEXT
    for key, value in {
        "$DRIVER_NAME": strings(DRIVER),
        "$DRIVERS": str(len(DRIVER_FUNCTIONS)),
        "$KERNELS": str(count),
        "$LAUNCH": LAUNCH,
        "$LAUNCHED": _LAUNCHED,
        "$KERNEL": KERNEL_TYPE,
        "$NO_DRIVER": str(NO_DRIVER),
        "$OLD_DRIVER": str(OLD_DRIVER),
        "$FAILED": str(DRIVER_FAILED),
        "$BAD_GRID": str(BAD_GRID),
        "$BAD_ADDRESS": str(BAD_ADDRESS),
        "$OTHER_GPU": str(OTHER_GPU),
        "$MAJOR": str(CAPABILITY_MAJOR),
        "$MINOR": str(CAPABILITY_MINOR),
        "$LOW_BITS": str(ALIGNMENT - 1),
        "$NO_MEMORY": str(NO_MEMORY),
        "$MOST_PROGRAMS": str(MOST_PROGRAMS),
        "$SHARED": str(SHARED_WITHOUT_ASKING),
        "$ATTRIBUTE": str(MAX_DYNAMIC_SHARED),
    }.items():
        text = text.replace(key + "$", value)
    return "\n".join(lines) + expand_calls(expand_driver_calls(text, strings))


def emit_launched(name: str, kernels: Sequence[str], code: GpuCode) -> str:
    """Returns the global `@launched.NAME`: the number of an op's kernels, and their numbers."""
    numbers = {kernel: k for k, kernel in enumerate(code.kernels)}
    listed = ", ".join(f"i64 {numbers[k]}" for k in kernels)
    count = len(kernels)
    kind = f"{{ i64, [{count} x i64] }}"
    return f"@launched.{name} = internal constant {kind} {{ i64 {count}, [{count} x i64] [{listed}] }}"


_TEXT = """
; ORT's allocator of the device, the context, the device's number, whether the context is kept by this kernel object,
; and a module, a function and the description of its code for each kernel of the library, null for those that the op
; does not launch.
%Device = type { ptr, ptr, i32, i32, [0 x { ptr, ptr, ptr }] }
; What a func on the host is given as its context: a %Call, the op, its device, and the stream.
%Launches = type { ptr, ptr, ptr, ptr, ptr, ptr }

@igniter_driver_ready = internal global ptr null, align 8

declare ptr @dlopen(ptr, i32)
declare ptr @dlsym(ptr, ptr)
declare ptr @dlerror()

define internal i32 @igniter_gpu_input_memory(ptr %op, i64 %index) {
  ; A carrier has no bytes, and its dims are known on the host: there is nothing to copy to the device.
  %port = call ptr @igniter_port(ptr %op, i64 1, i64 %index)
  %rank.at = getelementptr %Port, ptr %port, i64 0, i32 8
  %rank = load i64, ptr %rank.at
  %constants.at = getelementptr %Port, ptr %port, i64 0, i32 3
  %constants = load ptr, ptr %constants.at
  %some = icmp ne i64 %rank, 0
  br i1 %some, label %look, label %default
look:
  %first = load i64, ptr %constants
  %empty = icmp eq i64 %first, 0
  %memory = select i1 %empty, i32 -2, i32 0
  ret i32 %memory
default:
  ret i32 0
}

define internal ptr @igniter_gpu_fail(ptr %api, ptr %desc, i32 %kind, ptr %a, ptr %b, ptr %c, ptr %d) noinline cold {
  ; A status with texts: they stand where a port has its own.
  %port = alloca %Port
  store ptr %a, ptr %port
  %b.at = getelementptr %Port, ptr %port, i64 0, i32 1
  store ptr %b, ptr %b.at
  %c.at = getelementptr %Port, ptr %port, i64 0, i32 2
  store ptr %c, ptr %c.at
  %d.at = getelementptr %Port, ptr %port, i64 0, i32 3
  store ptr %d, ptr %d.at
  %made = call ptr @igniter_fail(ptr %api, ptr %desc, i32 %kind, ptr %port, i64 0, i64 0, i64 0, i64 0)
  ret ptr %made
}

define internal ptr @igniter_gpu_error(ptr %api, ptr %desc, ptr %kernel, ptr %what, i32 %code) noinline cold {
entry:
  %name.at = alloca ptr
  %text.at = alloca ptr
  store ptr null, ptr %name.at
  store ptr null, ptr %text.at
  drop driver cuGetErrorName(i32 %code, ptr %name.at)
  drop driver cuGetErrorString(i32 %code, ptr %text.at)
  %name.found = load ptr, ptr %name.at
  %text.found = load ptr, ptr %text.at
  %no.name = icmp eq ptr %name.found, null
  %no.text = icmp eq ptr %text.found, null
  %name = select i1 %no.name, ptr @igniter_unknown, ptr %name.found
  %text = select i1 %no.text, ptr @igniter_unknown, ptr %text.found
  %status = call ptr @igniter_gpu_fail(ptr %api, ptr %desc, i32 $FAILED$, ptr %kernel, ptr %what, ptr %name, ptr %text)
  ret ptr %status
}
@igniter_unknown = private unnamed_addr constant [17 x i8] c"an unknown error\\00"
@igniter_no_kernel = private unnamed_addr constant [20 x i8] c"loading its kernels\\00"

define internal ptr @igniter_driver_open(ptr %api, ptr %desc) {
  ; Two threads that come here at once find the same functions.
entry:
  %code.at = alloca i32
  %what.at = alloca ptr
  %index.at = alloca i64
  %ready = load atomic ptr, ptr @igniter_driver_ready acquire, align 8
  %is.ready = icmp ne ptr %ready, null
  br i1 %is.ready, label %done, label %open
open:
  %library = call ptr @dlopen(ptr $DRIVER_NAME$, i32 2)
  %missing = icmp eq ptr %library, null
  br i1 %missing, label %none, label %start
none:
  %why.found = call ptr @dlerror()
  %no.why = icmp eq ptr %why.found, null
  %why = select i1 %no.why, ptr @igniter_unknown, ptr %why.found
  %fail.none = call ptr @igniter_gpu_fail(ptr %api, ptr %desc, i32 $NO_DRIVER$, ptr %why, ptr null, ptr null, ptr null)
  ret ptr %fail.none
start:
  store i64 0, ptr %index.at
  br label %loop
loop:
  %index = load i64, ptr %index.at
  %more = icmp ult i64 %index, $DRIVERS$
  br i1 %more, label %body, label %init
body:
  %name.at = getelementptr ptr, ptr @igniter_driver_names, i64 %index
  %name = load ptr, ptr %name.at
  %found = call ptr @dlsym(ptr %library, ptr %name)
  %lacks = icmp eq ptr %found, null
  br i1 %lacks, label %old, label %keep
old:
  %fail.old = call ptr @igniter_gpu_fail(ptr %api, ptr %desc, i32 $OLD_DRIVER$, ptr %name, ptr null, ptr null, ptr null)
  ret ptr %fail.old
keep:
  %place = getelementptr ptr, ptr @igniter_driver, i64 %index
  store ptr %found, ptr %place
  %next = add i64 %index, 1
  store i64 %next, ptr %index.at
  br label %loop
init:
  driver cuInit(i32 0) else failed
  store atomic ptr %library, ptr @igniter_driver_ready release, align 8
  br label %done
done:
  ret ptr null
failed:
  %code = load i32, ptr %code.at
  %what = load ptr, ptr %what.at
  %fail = call ptr @igniter_gpu_error(ptr %api, ptr %desc, ptr @igniter_no_kernel, ptr %what, i32 %code)
  ret ptr %fail
}

define internal void @igniter_device_close(ptr %api, ptr %device) {
  ; Gives back all that a device has, as far as it has it.
entry:
  %index.at = alloca i64
  %popped.at = alloca ptr
  %default.at = alloca ptr
  %context.at = getelementptr %Device, ptr %device, i64 0, i32 1
  %context = load ptr, ptr %context.at
  %there = icmp ne ptr %context, null
  br i1 %there, label %push, label %give.back
push:
  drop driver cuCtxPushCurrent_v2(ptr %context)
  store i64 0, ptr %index.at
  br label %loop
loop:
  %index = load i64, ptr %index.at
  %more = icmp ult i64 %index, $KERNELS$
  br i1 %more, label %body, label %pop
body:
  %next = add i64 %index, 1
  store i64 %next, ptr %index.at
  %module.at = getelementptr %Device, ptr %device, i64 0, i32 4, i64 %index, i32 0
  %module = load ptr, ptr %module.at
  %loaded = icmp ne ptr %module, null
  br i1 %loaded, label %unload, label %loop
unload:
  drop driver cuModuleUnload(ptr %module)
  br label %loop
pop:
  drop driver cuCtxPopCurrent_v2(ptr %popped.at)
  br label %give.back
give.back:
  %kept.at = getelementptr %Device, ptr %device, i64 0, i32 3
  %kept = load i32, ptr %kept.at
  %is.kept = icmp ne i32 %kept, 0
  br i1 %is.kept, label %release, label %memory
release:
  %number.at = getelementptr %Device, ptr %device, i64 0, i32 2
  %number = load i32, ptr %number.at
  drop driver cuDevicePrimaryCtxRelease_v2(i32 %number)
  br label %memory
memory:
  %allocator = load ptr, ptr %device
  api ReleaseAllocator(ptr %allocator)
  drop GetAllocatorWithDefaultOptions(ptr %default.at) else done
  %default = load ptr, ptr %default.at
  drop AllocatorFree(ptr %default, ptr %device) else done
  br label %done
done:
  ret void
}

define internal ptr @igniter_gpu_create(ptr %op, ptr %api, ptr %info, ptr %out) {
entry:
  %status = alloca ptr
  %code.at = alloca i32
  %what.at = alloca ptr
  %label.at = alloca ptr
  %allocator.at = alloca ptr
  %default.at = alloca ptr
  %where.at = alloca ptr
  %id.at = alloca i32
  %device.at = alloca ptr
  %number.at = alloca i32
  %its.at = alloca i32
  %context.at = alloca ptr
  %popped.at = alloca ptr
  %index.at = alloca i64
  %major.at = alloca i32
  %minor.at = alloca i32
  %found.at = alloca ptr
  store ptr @igniter_no_kernel, ptr %label.at
  %made = call ptr @igniter_create(ptr %op, ptr %api, ptr %info, ptr %out)
  %unmade = icmp ne ptr %made, null
  br i1 %unmade, label %refused, label %made.now
refused:
  ret ptr %made
made.now:
  %state = load ptr, ptr %out
  %desc = call ptr @igniter_desc(ptr %op)
  %opened = call ptr @igniter_driver_open(ptr %api, ptr %desc)
  store ptr %opened, ptr %status
  %unopened = icmp ne ptr %opened, null
  br i1 %unopened, label %broken, label %where
where:
  try KernelInfoGetAllocator(ptr %info, i32 0, ptr %allocator.at) else broken
  %allocator = load ptr, ptr %allocator.at
  try AllocatorGetInfo(ptr %allocator, ptr %where.at) else broken.allocator
  %place = load ptr, ptr %where.at
  try MemoryInfoGetId(ptr %place, ptr %id.at) else broken.allocator
  try GetAllocatorWithDefaultOptions(ptr %default.at) else broken.allocator
  %default = load ptr, ptr %default.at
  %entries = mul i64 $KERNELS$, 24
  %size = add i64 %entries, 32
  try AllocatorAlloc(ptr %default, i64 %size, ptr %device.at) else broken.allocator
  %device = load ptr, ptr %device.at
  store ptr %allocator, ptr %device
  %context.in = getelementptr %Device, ptr %device, i64 0, i32 1
  store ptr null, ptr %context.in
  %kept.in = getelementptr %Device, ptr %device, i64 0, i32 3
  store i32 0, ptr %kept.in
  store i64 0, ptr %index.at
  br label %clear
clear:
  %c = load i64, ptr %index.at
  %c.more = icmp ult i64 %c, $KERNELS$
  br i1 %c.more, label %clear.body, label %choose
clear.body:
  %c.at = getelementptr %Device, ptr %device, i64 0, i32 4, i64 %c, i32 0
  store ptr null, ptr %c.at
  %c.next = add i64 %c, 1
  store i64 %c.next, ptr %index.at
  br label %clear
choose:
  %id = load i32, ptr %id.at
  driver cuDeviceGet(ptr %number.at, i32 %id) else failed
  %number = load i32, ptr %number.at
  %number.in = getelementptr %Device, ptr %device, i64 0, i32 2
  store i32 %number, ptr %number.in
  driver cuDeviceGetAttribute(ptr %major.at, i32 $MAJOR$, i32 %number) else failed
  driver cuDeviceGetAttribute(ptr %minor.at, i32 $MINOR$, i32 %number) else failed
  %major = load i32, ptr %major.at
  %minor = load i32, ptr %minor.at
  %tens = mul i32 %major, 10
  %capability = add i32 %tens, %minor
  store ptr null, ptr %context.at
  driver cuCtxGetCurrent(ptr %context.at) else failed
  %current = load ptr, ptr %context.at
  %is.current = icmp ne ptr %current, null
  br i1 %is.current, label %compare, label %primary
compare:
  driver cuCtxGetDevice(ptr %its.at) else failed
  %its = load i32, ptr %its.at
  %same = icmp eq i32 %its, %number
  br i1 %same, label %push, label %primary
primary:
  driver cuDevicePrimaryCtxRetain(ptr %context.at, i32 %number) else failed
  store i32 1, ptr %kept.in
  br label %push
push:
  %context = load ptr, ptr %context.at
  driver cuCtxPushCurrent_v2(ptr %context) else failed
  store ptr %context, ptr %context.in
  %launched.at = getelementptr %Desc, ptr %desc, i64 0, i32 15
  %launched = load ptr, ptr %launched.at
  %count = load i64, ptr %launched
  store i64 0, ptr %index.at
  br label %loop
loop:
  %index = load i64, ptr %index.at
  %more = icmp ult i64 %index, %count
  br i1 %more, label %body, label %loaded
body:
  %slot.at = getelementptr { i64, [0 x i64] }, ptr %launched, i64 0, i32 1, i64 %index
  %slot = load i64, ptr %slot.at
  %kernel.at = getelementptr ptr, ptr @igniter_kernels, i64 %slot
  %first = load ptr, ptr %kernel.at
  %label = load ptr, ptr %first
  store ptr %label, ptr %label.at
  store ptr %first, ptr %found.at
  br label %choice
choice:
  %kernel = load ptr, ptr %found.at
  %least.in = getelementptr $KERNEL$, ptr %kernel, i64 0, i32 6
  %least = load i32, ptr %least.in
  %most.in = getelementptr $KERNEL$, ptr %kernel, i64 0, i32 7
  %most = load i32, ptr %most.in
  %old.enough = icmp sge i32 %capability, %least
  %young.enough = icmp sle i32 %capability, %most
  %fits = and i1 %old.enough, %young.enough
  br i1 %fits, label %load.it, label %other
other:
  %others.in = getelementptr $KERNEL$, ptr %kernel, i64 0, i32 8
  %others = load ptr, ptr %others.in
  store ptr %others, ptr %found.at
  %no.code = icmp eq ptr %others, null
  br i1 %no.code, label %other.gpu, label %choice
other.gpu:
  drop driver cuCtxPopCurrent_v2(ptr %popped.at)
  %names = alloca %Port
  store ptr %label, ptr %names
  %wide = sext i32 %capability to i64
  %fail.gpu = call ptr @igniter_fail(ptr %api, ptr %desc, i32 $OTHER_GPU$, ptr %names, i64 0, i64 0, i64 0, i64 %wide)
  store ptr %fail.gpu, ptr %status
  call void @igniter_device_close(ptr %api, ptr %device)
  br label %broken
load.it:
  %kernel.in = getelementptr %Device, ptr %device, i64 0, i32 4, i64 %slot, i32 2
  store ptr %kernel, ptr %kernel.in
  %code.in = getelementptr $KERNEL$, ptr %kernel, i64 0, i32 1
  %ptx = load ptr, ptr %code.in
  %module.in = getelementptr %Device, ptr %device, i64 0, i32 4, i64 %slot, i32 0
  driver cuModuleLoadData(ptr %module.in, ptr %ptx) else failed.inside
  %module = load ptr, ptr %module.in
  %entry.in = getelementptr $KERNEL$, ptr %kernel, i64 0, i32 2
  %entry.name = load ptr, ptr %entry.in
  %function.in = getelementptr %Device, ptr %device, i64 0, i32 4, i64 %slot, i32 1
  driver cuModuleGetFunction(ptr %function.in, ptr %module, ptr %entry.name) else failed.inside
  %shared.in = getelementptr $KERNEL$, ptr %kernel, i64 0, i32 4
  %shared = load i32, ptr %shared.in
  %index.next = add i64 %index, 1
  store i64 %index.next, ptr %index.at
  %large = icmp ugt i32 %shared, $SHARED$
  br i1 %large, label %ask, label %loop
ask:
  %function = load ptr, ptr %function.in
  driver cuFuncSetAttribute(ptr %function, i32 $ATTRIBUTE$, i32 %shared) else failed.inside
  br label %loop
loaded:
  drop driver cuCtxPopCurrent_v2(ptr %popped.at)
  %device.in = getelementptr %State, ptr %state, i64 0, i32 2
  store ptr %device, ptr %device.in
  ret ptr null
failed.inside:
  drop driver cuCtxPopCurrent_v2(ptr %popped.at)
  br label %failed
failed:
  %code = load i32, ptr %code.at
  %what = load ptr, ptr %what.at
  %label.now = load ptr, ptr %label.at
  %fail = call ptr @igniter_gpu_error(ptr %api, ptr %desc, ptr %label.now, ptr %what, i32 %code)
  store ptr %fail, ptr %status
  call void @igniter_device_close(ptr %api, ptr %device)
  br label %broken
broken.allocator:
  api ReleaseAllocator(ptr %allocator)
  br label %broken
broken:
  call void @igniter_destroy(ptr %state)
  store ptr null, ptr %out
  %result = load ptr, ptr %status
  ret ptr %result
}

define internal void @igniter_gpu_destroy(ptr %state) {
  %api.in = getelementptr %State, ptr %state, i64 0, i32 1
  %api = load ptr, ptr %api.in
  %device.in = getelementptr %State, ptr %state, i64 0, i32 2
  %device = load ptr, ptr %device.in
  call void @igniter_device_close(ptr %api, ptr %device)
  call void @igniter_destroy(ptr %state)
  ret void
}

define internal ptr @igniter_gpu_run(ptr %state, ptr %desc, ptr %api, ptr %ctx, ptr %buffers, ptr %symbols,
    i64 %size) {
entry:
  %status = alloca ptr
  %code.at = alloca i32
  %what.at = alloca ptr
  %memory.at = alloca ptr
  %stream.at = alloca ptr
  %where.at = alloca ptr
  %popped.at = alloca ptr
  %call = alloca %Launches
  %device.in = getelementptr %State, ptr %state, i64 0, i32 2
  %device = load ptr, ptr %device.in
  %allocator = load ptr, ptr %device
  %context.in = getelementptr %Device, ptr %device, i64 0, i32 1
  %context = load ptr, ptr %context.in
  store ptr null, ptr %stream.at
  try KernelContext_GetGPUComputeStream(ptr %ctx, ptr %stream.at) else failed
  %stream = load ptr, ptr %stream.at
  store ptr %api, ptr %call
  %call.ctx = getelementptr %Launches, ptr %call, i64 0, i32 1
  store ptr %ctx, ptr %call.ctx
  %call.error = getelementptr %Launches, ptr %call, i64 0, i32 2
  store ptr null, ptr %call.error
  %call.desc = getelementptr %Launches, ptr %call, i64 0, i32 3
  store ptr %desc, ptr %call.desc
  %call.device = getelementptr %Launches, ptr %call, i64 0, i32 4
  store ptr %device, ptr %call.device
  %call.stream = getelementptr %Launches, ptr %call, i64 0, i32 5
  store ptr %stream, ptr %call.stream
  store ptr null, ptr %memory.at
  %none = icmp eq i64 %size, 0
  br i1 %none, label %enter, label %allocate
allocate:
  %padded = add nuw i64 %size, 64
  %streams = icmp ne ptr %stream, null
  br i1 %streams, label %of.stream, label %of.host
of.stream:
  try AllocatorGetInfo(ptr %allocator, ptr %where.at) else failed
  %where = load ptr, ptr %where.at
  try KernelContext_GetScratchBuffer(ptr %ctx, ptr %where, i64 %padded, ptr %memory.at) else failed
  br label %allocated
of.host:
  try AllocatorAlloc(ptr %allocator, i64 %padded, ptr %memory.at) else failed
  br label %allocated
allocated:
  %got = load ptr, ptr %memory.at
  %exhausted = icmp eq ptr %got, null
  br i1 %exhausted, label %no.memory, label %enter
no.memory:
  %fail.memory = call ptr @igniter_fail(ptr %api, ptr %desc, i32 $NO_MEMORY$, ptr null, i64 0, i64 0, i64 0, i64 %size)
  ret ptr %fail.memory
enter:
  driver cuCtxPushCurrent_v2(ptr %context) else refused
  %memory = load ptr, ptr %memory.at
  %address = ptrtoint ptr %memory to i64
  %up = add i64 %address, 63
  %down = and i64 %up, -64
  %arena = inttoptr i64 %down to ptr
  %func.at = getelementptr %Desc, ptr %desc, i64 0, i32 4
  %func = load ptr, ptr %func.at
  call void %func(ptr %buffers, ptr %symbols, ptr %arena, ptr null, ptr %call)
  drop driver cuCtxPopCurrent_v2(ptr %popped.at)
  %error = load ptr, ptr %call.error
  store ptr %error, ptr %status
  br label %free
refused:
  %code = load i32, ptr %code.at
  %what = load ptr, ptr %what.at
  %fail = call ptr @igniter_gpu_error(ptr %api, ptr %desc, ptr @igniter_no_kernel, ptr %what, i32 %code)
  store ptr %fail, ptr %status
  br label %free
free:
  ; What was launched may still run: the memory is the stream's, so ORT gives it to later work of this stream alone.
  %used = load ptr, ptr %memory.at
  %has = icmp ne ptr %used, null
  br i1 %has, label %give.back, label %failed
give.back:
  drop AllocatorFree(ptr %allocator, ptr %used) else failed
  br label %failed
failed:
  %result = load ptr, ptr %status
  ret ptr %result
}

define hidden void @$LAUNCH$(ptr %call, i64 %slot, i64 %grid, ptr %parameters) {
  ; Once a launch has failed, nothing more of the op is launched.
entry:
  %code.at = alloca i32
  %what.at = alloca ptr
  %index.at = alloca i64
  store i64 0, ptr %index.at
  %error.at = getelementptr %Launches, ptr %call, i64 0, i32 2
  %error = load ptr, ptr %error.at
  %broken = icmp ne ptr %error, null
  %empty = icmp slt i64 %grid, 1
  %skip = or i1 %broken, %empty
  br i1 %skip, label %done, label %check
check:
  %desc.at = getelementptr %Launches, ptr %call, i64 0, i32 3
  %desc = load ptr, ptr %desc.at
  %device.at = getelementptr %Launches, ptr %call, i64 0, i32 4
  %device = load ptr, ptr %device.at
  %kernel.at = getelementptr %Device, ptr %device, i64 0, i32 4, i64 %slot, i32 2
  %kernel = load ptr, ptr %kernel.at
  %label = load ptr, ptr %kernel
  %api = load ptr, ptr %call
  %over = icmp sgt i64 %grid, $MOST_PROGRAMS$
  br i1 %over, label %too.many, label %addresses
addresses:
  %addresses.at = getelementptr $KERNEL$, ptr %kernel, i64 0, i32 5
  %count = load i64, ptr %addresses.at
  br label %look
look:
  %index = load i64, ptr %index.at
  %more = icmp ult i64 %index, %count
  br i1 %more, label %one, label %launch
one:
  %next = add i64 %index, 1
  store i64 %next, ptr %index.at
  %place.at = getelementptr ptr, ptr %parameters, i64 %index
  %place = load ptr, ptr %place.at
  %address = load i64, ptr %place
  %low = and i64 %address, $LOW_BITS$
  %aligned = icmp eq i64 %low, 0
  br i1 %aligned, label %look, label %bad.address
bad.address:
  %names = alloca %Port
  store ptr %label, ptr %names
  %fail.address = call ptr @igniter_fail(ptr %api, ptr %desc, i32 $BAD_ADDRESS$, ptr %names, i64 %index, i64 0, i64 0,
    i64 %address)
  store ptr %fail.address, ptr %error.at
  br label %done
too.many:
  %texts = alloca %Port
  store ptr %label, ptr %texts
  %fail.grid = call ptr @igniter_fail(ptr %api, ptr %desc, i32 $BAD_GRID$, ptr %texts, i64 0, i64 0, i64 0, i64 %grid)
  store ptr %fail.grid, ptr %error.at
  br label %done
launch:
  %stream.at = getelementptr %Launches, ptr %call, i64 0, i32 5
  %stream = load ptr, ptr %stream.at
  %function.at = getelementptr %Device, ptr %device, i64 0, i32 4, i64 %slot, i32 1
  %function = load ptr, ptr %function.at
  %threads.at = getelementptr $KERNEL$, ptr %kernel, i64 0, i32 3
  %threads = load i32, ptr %threads.at
  %shared.at = getelementptr $KERNEL$, ptr %kernel, i64 0, i32 4
  %shared = load i32, ptr %shared.at
  %programs = trunc i64 %grid to i32
  driver cuLaunchKernel($LAUNCHED$) else failed
  br label %done
failed:
  %code = load i32, ptr %code.at
  %what = load ptr, ptr %what.at
  %fail = call ptr @igniter_gpu_error(ptr %api, ptr %desc, ptr %label, ptr %what, i32 %code)
  store ptr %fail, ptr %error.at
  br label %done
done:
  ret void
}
"""
