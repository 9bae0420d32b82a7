"""ONNX Runtime's C API as far as a library calls it, in Python: it can fail at any call, and counts what it hands out.

A value is a numpy array, known to the library by a number. Objects that the library must give back (statuses, shape
infos, allocators, memory, domains) are in `live` until it does.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from igniter.backends.ort.api import FUNCTIONS

P, I64, I32 = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
OUT = ctypes.POINTER(P)
OUT64, OUT32 = ctypes.POINTER(I64), ctypes.POINTER(I32)
OPTIONS = 0x1234
"""The one session options that there is; `registered` and `entries` are what is in it."""
CODES = {"float32": 1, "int32": 6, "int64": 7}


def takes(*kinds: Any) -> Callable[[Any], Any]:
    """The C types of a function's parameters."""

    def mark(method: Any) -> Any:
        method.args = kinds
        return method

    return mark


class FakeOrt:
    """One ORT. `fail_at` is the number of the call that returns an error, counted from when it is set."""

    def __init__(self, version: int = 99):
        self.version = version
        self.live: dict[int, str] = {}
        self.fail_at: int | None = None
        self.calls = 0
        self.failed_in = ""
        self.ops: list[int] = []
        self.registered: list[int] = []
        self.entries: dict[str, str] = {}
        self.inputs: list[np.ndarray | None] = []
        self.constants: dict[int, np.ndarray] = {}
        self.outputs: list[np.ndarray] = []
        self.output_count = 1
        self._values: dict[int, Any] = {}
        self._memory: dict[int, Any] = {}
        self._next = 0x1000
        self._callbacks: list[Any] = []
        self.lock = threading.RLock()
        self._table = (P * 400)()
        for name, index in FUNCTIONS.items():
            self._table[index] = self._bind(name)
        get_api = ctypes.CFUNCTYPE(P, ctypes.c_uint32)(
            lambda v: ctypes.addressof(self._table) if v <= self.version else None
        )
        self._callbacks.append(get_api)
        self.base = (P * 2)(ctypes.cast(get_api, P), None)

    # -- the library's side ------------------------------------------------------------------------------------------

    def _bind(self, name: str) -> int | None:
        method = getattr(self, name, None)
        if method is None:
            return None
        void = name in ("ReleaseStatus", "ReleaseTensorTypeAndShapeInfo", "ReleaseAllocator", "ReleaseCustomOpDomain")
        kinds: Callable[..., Any] = ctypes.CFUNCTYPE(None if void else P, *method.args)

        def call(*args: Any) -> int | None:
            with self.lock:
                return locked(*args)

        def locked(*args: Any) -> int | None:
            if name == "CreateStatus" or void:
                return method(*args)
            self.calls += 1
            if self.fail_at is not None and self.calls == self.fail_at:
                self.failed_in = name
                return self.new("status", f"failure in {name}")
            method(*args)
            return None

        callback = kinds(call)
        self._callbacks.append(callback)
        return ctypes.cast(callback, P).value

    def new(self, kind: str, value: Any = None) -> int:
        self._next += 16
        self.live[self._next] = kind
        self._values[self._next] = value
        return self._next

    def drop(self, handle: int, kind: str) -> None:
        assert self.live.pop(handle, None) == kind, f"{kind} {handle} is given back, but is not out"

    def value(self, handle: int | None) -> Any:
        return self._values[handle]

    def message(self, status: int | None) -> str | None:
        """The text of a status, which is given back with this."""
        if not status:
            return None
        self.drop(status, "status")
        return self._values[status]

    # -- the API -----------------------------------------------------------------------------------------------------

    @takes(I32, P)
    def CreateStatus(self, code, message):
        return self.new("status", ctypes.string_at(message).decode())

    @takes(P)
    def ReleaseStatus(self, status):
        self.drop(status, "status")

    @takes(P, OUT)
    def CreateCustomOpDomain(self, name, out):
        out[0] = self.new("domain", ctypes.string_at(name).decode())

    @takes(P, P)
    def CustomOpDomain_Add(self, domain, op):
        self.ops.append(op)

    @takes(P, P)
    def AddCustomOpDomain(self, options, domain):
        assert options == OPTIONS and self.live[domain] == "domain"
        self.registered.append(domain)

    @takes(P, P, OUT32)
    def HasSessionConfigEntry(self, options, key, out):
        out[0] = ctypes.string_at(key).decode() in self.entries

    @takes(P, P, P)
    def AddSessionConfigEntry(self, options, key, value):
        assert options == OPTIONS
        self.entries[ctypes.string_at(key).decode()] = ctypes.string_at(value).decode()

    @takes(P)
    def ReleaseCustomOpDomain(self, domain):
        self.drop(domain, "domain")

    @takes(P, OUT64)
    def KernelInfo_GetInputCount(self, info, out):
        out[0] = len(self.inputs)

    @takes(P, I64, OUT32, OUT)
    def KernelInfoGetConstantInput_tensor(self, info, index, constant, out):
        constant[0] = index in self.constants
        out[0] = self._array(self.constants[index]) if index in self.constants else None

    @takes(P, OUT64)
    def KernelContext_GetInputCount(self, context, out):
        out[0] = len(self.inputs)

    @takes(P, OUT64)
    def KernelContext_GetOutputCount(self, context, out):
        out[0] = self.output_count

    @takes(P, I64, OUT)
    def KernelContext_GetInput(self, context, index, out):
        array = self.inputs[index]
        out[0] = None if array is None else self._array(array)

    @takes(P, I64, OUT64, I64, OUT)
    def KernelContext_GetOutput(self, context, index, dims, rank, out):
        self.outputs.append(np.zeros(tuple(dims[i] for i in range(rank)), np.float32))
        out[0] = self._array(self.outputs[-1])

    @takes(P, OUT)
    def GetTensorMutableData(self, value, out):
        out[0] = self.value(value).ctypes.data

    @takes(P, OUT)
    def GetTensorTypeAndShape(self, value, out):
        out[0] = self.new("info", self.value(value))

    @takes(P)
    def ReleaseTensorTypeAndShapeInfo(self, info):
        self.drop(info, "info")

    @takes(P, OUT32)
    def GetTensorElementType(self, info, out):
        out[0] = CODES[self.value(info).dtype.name]

    @takes(P, OUT64)
    def GetDimensionsCount(self, info, out):
        out[0] = self.value(info).ndim

    @takes(P, OUT64, I64)
    def GetDimensions(self, info, out, count):
        for i, dim in enumerate(self.value(info).shape[:count]):
            out[i] = dim

    @takes(OUT)
    def GetAllocatorWithDefaultOptions(self, out):
        out[0] = 0x77

    @takes(P, OUT)
    def AllocatorGetInfo(self, allocator, out):
        out[0] = 0x88

    @takes(P, P, OUT)
    def KernelContext_GetAllocator(self, context, where, out):
        assert where == 0x88
        out[0] = self.new("allocator")

    @takes(P)
    def ReleaseAllocator(self, allocator):
        self.drop(allocator, "allocator")

    @takes(P, I64, OUT)
    def AllocatorAlloc(self, allocator, size, out):
        # One byte in, so that the alignment is never a gift.
        memory = ctypes.create_string_buffer(size + 1)
        address = ctypes.addressof(memory) + 1
        self._memory[address] = memory
        self.live[address] = "memory"
        out[0] = address

    @takes(P, P)
    def AllocatorFree(self, allocator, memory):
        self.drop(memory, "memory")

    @takes(P, P, I64, I64, P)
    def KernelContext_ParallelFor(self, context, task, count, batches, data):
        run = ctypes.CFUNCTYPE(None, P, I64)(task)
        for i in range(count):
            run(data, i)

    def _array(self, array: np.ndarray) -> int:
        self._next += 16
        self._values[self._next] = array
        return self._next


class LoadedLibrary:
    """A library loaded into this process, called as ORT would call it."""

    def __init__(self, path: Path):
        self.handle = ctypes.CDLL(str(path))
        self.handle.RegisterCustomOps.restype = P
        self.handle.RegisterCustomOps.argtypes = (P, P)

    def register(self, ort: FakeOrt) -> int | None:
        return self.handle.RegisterCustomOps(OPTIONS, ctypes.addressof(ort.base))

    def pointer(self, op: int, index: int) -> int | None:
        return (P * 25).from_address(op + 8)[index]

    def create(self, ort: FakeOrt, op: int) -> tuple[int | None, int | None]:
        """The status and the kernel."""
        out = P()
        function = ctypes.CFUNCTYPE(P, P, P, P, OUT)(self.pointer(op, 16))
        status = function(op, ctypes.addressof(ort._table), 0x55, ctypes.pointer(out))
        return status, out.value

    def compute(self, op: int, kernel: int, context: int = 0x66) -> int | None:
        return ctypes.CFUNCTYPE(P, P, P)(self.pointer(op, 17))(kernel, context)

    def destroy(self, op: int, kernel: int) -> None:
        ctypes.CFUNCTYPE(None, P)(self.pointer(op, 8))(kernel)
