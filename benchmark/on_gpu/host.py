"""ONNX Runtime's C API as far as a library of GPU kernels calls it, on torch's tensors, for machines without ONNX
Runtime's CUDA provider: a library that is loaded here runs by the driver as it does there, on torch's current stream.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from igniter.backends.ort.api import FUNCTIONS

P, I64, I32 = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
OUT, OUT64, OUT32 = ctypes.POINTER(P), ctypes.POINTER(I64), ctypes.POINTER(I32)

DTYPES: dict[int, torch.dtype] = {
    1: torch.float32,
    2: torch.uint8,
    3: torch.int8,
    4: torch.uint16,
    5: torch.int16,
    6: torch.int32,
    7: torch.int64,
    9: torch.bool,
    10: torch.float16,
    11: torch.float64,
    12: torch.uint32,
    13: torch.uint64,
    16: torch.bfloat16,
}
"""Element types of ONNX, by their numbers, which ONNX Runtime has too."""
CODES = {dtype: code for code, dtype in DTYPES.items()}

TABLE, POINTERS, GET_NAME, DESTROY, CREATE, COMPUTE = 400, 25, 1, 8, 16, 17
"""Entries of the API's table and of an op's, and where in the latter functions are."""
OPTIONS, INFO, CONTEXT, HOST, DEVICE, PLACE = 0x1000, 0x2000, 0x3000, 0x4000, 0x5000, 0x6000
"""Handles of what there is one of."""


class HostError(Exception):
    """A status that a library gave."""


def takes(*kinds: Any) -> Callable[[Any], Any]:
    """The C types of a function's parameters."""

    def mark(method: Any) -> Any:
        method.kinds = kinds
        return method

    return mark


class Host:
    """One process's ONNX Runtime. Memory that kernels ask for stays for the next call, as an arena would have it."""

    def __init__(self) -> None:
        self.inputs: Sequence[torch.Tensor | None] = ()
        self.outputs: list[torch.Tensor] = []
        self.output_types: Sequence[int] = ()
        self.given: Sequence[torch.Tensor] | None = None
        """Where results go, as a caller binds them; else to new memory."""
        self.ops: dict[str, int] = {}
        self._loaded: dict[Path, dict[str, int]] = {}
        self._handles: dict[int, Any] = {}
        self._next = 0x10000
        self._host_memory: dict[int, Any] = {}
        self._free: dict[int, list[torch.Tensor]] = {}
        self._used: dict[int, torch.Tensor] = {}
        self._callbacks: list[Any] = []
        self._table = (P * TABLE)()
        for name, index in FUNCTIONS.items():
            method = getattr(self, name, None)
            if method is not None:
                self._table[index] = self._bound(name, method)
        get_api = ctypes.CFUNCTYPE(P, ctypes.c_uint32)(lambda version: ctypes.addressof(self._table))
        self._callbacks.append(get_api)
        self._base = (P * 2)(ctypes.cast(get_api, P), None)

    def _bound(self, name: str, method: Any) -> int | None:
        gives = name == "CreateStatus"
        void = name.startswith("Release")
        kind: Callable[..., Any] = ctypes.CFUNCTYPE(None if void else P, *method.kinds)

        def call(*args: Any) -> Any:
            found = method(*args)
            return found if gives else None

        callback = kind(call)
        self._callbacks.append(callback)
        return ctypes.cast(callback, P).value

    def _handle(self, value: Any) -> int:
        self._next += 16
        self._handles[self._next] = value
        return self._next

    def check(self, status: int | None) -> None:
        """`HostError` with the message of a status that is an error."""
        if status:
            raise HostError(self._handles.pop(status))

    # -- libraries ----------------------------------------------------------------------------------------------------

    def load(self, path: Path) -> dict[str, int]:
        """Registers the ops of a library, once; gives them by name."""
        if path in self._loaded:
            return self._loaded[path]
        self.ops = self._loaded[path] = {}
        library = ctypes.CDLL(str(path))
        library.RegisterCustomOps.restype, library.RegisterCustomOps.argtypes = P, (P, P)
        self.check(library.RegisterCustomOps(OPTIONS, ctypes.addressof(self._base)))
        return self.ops

    @takes(P, OUT)
    def CreateCustomOpDomain(self, name: int, out: Any) -> None:
        out[0] = self._handle("domain")

    @takes(P, P)
    def CustomOpDomain_Add(self, domain: int, op: int) -> None:
        name = ctypes.CFUNCTYPE(ctypes.c_char_p, P)(_pointer(op, GET_NAME))(op)
        self.ops[name.decode()] = op

    @takes(P, P)
    def AddCustomOpDomain(self, options: int, domain: int) -> None:
        pass

    @takes(P, P, OUT32)
    def HasSessionConfigEntry(self, options: int, key: int, out: Any) -> None:
        out[0] = 0

    @takes(P, P, P)
    def AddSessionConfigEntry(self, options: int, key: int, value: int) -> None:
        pass

    @takes(P)
    def ReleaseCustomOpDomain(self, domain: int) -> None:
        self._handles.pop(domain)

    # -- kernels ------------------------------------------------------------------------------------------------------

    @takes(I32, P)
    def CreateStatus(self, code: int, message: int) -> int:
        return self._handle(ctypes.string_at(message).decode())

    @takes(P)
    def ReleaseStatus(self, status: int) -> None:
        self._handles.pop(status, None)

    @takes(P, OUT64)
    def KernelInfo_GetInputCount(self, info: int, out: Any) -> None:
        out[0] = len(self.inputs)

    @takes(P, I64, OUT32, OUT)
    def KernelInfoGetConstantInput_tensor(self, info: int, index: int, constant: Any, out: Any) -> None:
        constant[0], out[0] = 0, None

    @takes(P, I32, OUT)
    def KernelInfoGetAllocator(self, info: int, kind: int, out: Any) -> None:
        out[0] = DEVICE

    @takes(OUT)
    def GetAllocatorWithDefaultOptions(self, out: Any) -> None:
        out[0] = HOST

    @takes(P)
    def ReleaseAllocator(self, allocator: int) -> None:
        pass

    @takes(P, OUT)
    def AllocatorGetInfo(self, allocator: int, out: Any) -> None:
        out[0] = PLACE

    @takes(P, OUT32)
    def MemoryInfoGetId(self, place: int, out: Any) -> None:
        out[0] = torch.cuda.current_device()

    @takes(P, I64, OUT)
    def AllocatorAlloc(self, allocator: int, size: int, out: Any) -> None:
        if allocator == HOST:
            memory = ctypes.create_string_buffer(size)
            out[0] = ctypes.addressof(memory)
            self._host_memory[ctypes.addressof(memory)] = memory
            return
        waiting = self._free.setdefault(size, [])
        tensor = waiting.pop() if waiting else torch.empty(size, dtype=torch.uint8, device="cuda")
        self._used[tensor.data_ptr()] = tensor
        out[0] = tensor.data_ptr()

    @takes(P, P, I64, OUT)
    def KernelContext_GetScratchBuffer(self, context: int, place: int, size: int, out: Any) -> None:
        # Ops run on torch's current stream, one after the other: all memory is of one stream.
        self.AllocatorAlloc(DEVICE, size, out)

    @takes(P, P)
    def AllocatorFree(self, allocator: int, memory: int) -> None:
        if allocator == HOST:
            del self._host_memory[memory]
            return
        tensor = self._used.pop(memory)
        self._free[tensor.numel()].append(tensor)

    @takes(P, OUT)
    def KernelContext_GetGPUComputeStream(self, context: int, out: Any) -> None:
        out[0] = torch.cuda.current_stream().cuda_stream

    @takes(P, OUT64)
    def KernelContext_GetInputCount(self, context: int, out: Any) -> None:
        out[0] = len(self.inputs)

    @takes(P, OUT64)
    def KernelContext_GetOutputCount(self, context: int, out: Any) -> None:
        out[0] = len(self.output_types)

    @takes(P, I64, OUT)
    def KernelContext_GetInput(self, context: int, index: int, out: Any) -> None:
        given = self.inputs[index]
        out[0] = None if given is None else self._handle(given)

    @takes(P, I64, OUT64, I64, OUT)
    def KernelContext_GetOutput(self, context: int, index: int, dims: Any, rank: int, out: Any) -> None:
        shape = tuple(dims[i] for i in range(rank))
        if self.given is not None:
            made = self.given[index]
            assert tuple(made.shape) == shape, f"result {index} has the shape {shape}, not {tuple(made.shape)}"
        else:
            made = torch.empty(shape, dtype=DTYPES[self.output_types[index]], device="cuda")
        self.outputs.append(made)
        out[0] = self._handle(made)

    @takes(P, OUT)
    def GetTensorMutableData(self, value: int, out: Any) -> None:
        out[0] = self._handles[value].data_ptr()

    @takes(P, OUT)
    def GetTensorTypeAndShape(self, value: int, out: Any) -> None:
        out[0] = self._handle(self._handles[value])

    @takes(P)
    def ReleaseTensorTypeAndShapeInfo(self, info: int) -> None:
        self._handles.pop(info)

    @takes(P, OUT32)
    def GetTensorElementType(self, info: int, out: Any) -> None:
        out[0] = CODES[self._handles[info].dtype]

    @takes(P, OUT64)
    def GetDimensionsCount(self, info: int, out: Any) -> None:
        out[0] = self._handles[info].ndim

    @takes(P, OUT64, I64)
    def GetDimensions(self, info: int, out: Any, count: int) -> None:
        for i, dim in enumerate(self._handles[info].shape[:count]):
            out[i] = dim


class Op:
    """A kernel object of one op of a library. It is called with torch's tensors on the GPU, and gives its results."""

    def __init__(self, host: Host, op: int, inputs: Sequence[torch.Tensor | None], output_types: Sequence[int]):
        self.host, self.output_types = host, tuple(output_types)
        self._op = op
        host.inputs = inputs
        out = P()
        create: Callable[..., Any] = ctypes.CFUNCTYPE(P, P, P, P, OUT)(_pointer(self._op, CREATE))
        host.check(create(self._op, ctypes.addressof(host._table), INFO, ctypes.pointer(out)))
        self._kernel = out.value
        self._compute: Callable[..., Any] = ctypes.CFUNCTYPE(P, P, P)(_pointer(self._op, COMPUTE))

    def __call__(
        self, inputs: Sequence[torch.Tensor | None], outputs: Sequence[torch.Tensor] | None = None
    ) -> list[torch.Tensor]:
        """Runs it on torch's current stream."""
        host = self.host
        host.inputs, host.output_types, host.outputs, host.given = inputs, self.output_types, [], outputs
        before = set(host._handles)
        try:
            host.check(self._compute(self._kernel, CONTEXT))
        finally:
            for handle in host._handles.keys() - before:
                del host._handles[handle]
        return host.outputs

    def close(self) -> None:
        """Gives back what it has of the driver."""
        destroy: Callable[..., Any] = ctypes.CFUNCTYPE(None, P)(_pointer(self._op, DESTROY))
        destroy(self._kernel)


def _pointer(op: int, index: int) -> int:
    found = (P * POINTERS).from_address(op + 8)[index]
    assert found is not None, f"an op has no function {index}"
    return found


def milliseconds(run: Callable[[], Any], rounds: int = 20, warm: int = 3) -> float:
    """The median of so many runs by CUDA events."""
    for _ in range(warm):
        run()
    pairs: list[tuple[Any, Any]] = []
    for _ in range(rounds):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        pairs.append((start, end))
    torch.cuda.synchronize()
    times = sorted(start.elapsed_time(end) for start, end in pairs)
    return times[len(times) // 2]
