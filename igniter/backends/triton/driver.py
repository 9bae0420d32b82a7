"""A GPU of this machine through CUDA's driver API (`libcuda.so.1`, by `ctypes`): memory, modules, launches and events.

It serves to run and time single kernels, without torch and without ONNX Runtime. Libraries of models have the run time
in `igniter/backends/c_runtime/src/gpu.c` instead.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from igniter.backends.launches import MAP_ALIGNMENT, MAP_BYTES
from igniter.errors import IgniterError

if TYPE_CHECKING:
    from igniter.backends.triton.compiler import Kernel, TensorMap

    Array: TypeAlias = np.ndarray[Any, Any]

LIBRARY = "libcuda.so.1"

FUNCTIONS = (
    "cuInit",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuCtxPushCurrent_v2",
    "cuCtxSynchronize",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemcpyHtoD_v2",
    "cuMemcpyDtoH_v2",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuModuleGetFunction",
    "cuFuncSetAttribute",
    "cuLaunchKernel",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuEventElapsedTime",
    "cuEventDestroy_v2",
    "cuStreamCreate",
    "cuStreamBeginCapture_v2",
    "cuStreamEndCapture",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuGraphExecDestroy",
    "cuGraphDestroy",
    "cuTensorMapEncodeTiled",
)
"""The driver functions called here; drivers have all of them since CUDA 12."""

MAJOR, MINOR = 75, 76
"""`CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`."""

MAX_DYNAMIC_SHARED = 8
"""`CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`."""

FREE_SHARED = 48 << 10
"""The bytes of shared memory that a kernel may have without `cuFuncSetAttribute`."""

PROMOTION_128 = 2
"""`CU_TENSOR_MAP_L2_PROMOTION_L2_128B`."""

NON_BLOCKING, RELAXED = 1, 2
"""`CU_STREAM_NON_BLOCKING` and `CU_STREAM_CAPTURE_MODE_RELAXED`."""

_NAME_BYTES = 256


@dataclass(frozen=True)
class Function:
    """A kernel on the GPU."""

    module: int
    handle: int
    threads: int
    shared: int
    maps: tuple[TensorMap, ...]


@dataclass(frozen=True)
class Prepared:
    """A launch with its parameters in memory, in the format of `cuLaunchKernel`."""

    function: Function
    programs: int
    values: tuple[Any, ...]
    """The parameters; `addresses` points at them."""
    addresses: Any


class Gpu:
    """The first GPU of this machine, in its primary context, which stays current for the thread. Raises `IgniterError`
    if there is none."""

    def __init__(self) -> None:
        try:
            library = ctypes.CDLL(LIBRARY)
            self._driver = {name: getattr(library, name) for name in FUNCTIONS}
        except OSError as error:
            raise IgniterError(f"the driver of NVIDIA cannot be loaded: {error}") from error
        except AttributeError as error:
            raise IgniterError(f"the driver of NVIDIA is too old: {error}") from error
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuInit", ctypes.c_uint(0))
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        name = ctypes.create_string_buffer(_NAME_BYTES)
        self._call("cuDeviceGetName", name, _NAME_BYTES, device)
        self.name = name.value.decode(errors="replace")
        """The name of the GPU, as the driver gives it."""
        major, minor = (self._attribute(which, device) for which in (MAJOR, MINOR))
        self.capability = 10 * major + minor
        """The compute capability, times ten."""
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxPushCurrent_v2", context)
        self._stream = ctypes.c_void_p()
        self._call("cuStreamCreate", ctypes.byref(self._stream), ctypes.c_uint(NON_BLOCKING))

    def _call(self, name: str, *args: Any) -> None:
        code = int(self._driver[name](*args))
        if code:
            raise IgniterError(f"{name} gives {self._told(code)}")

    def _told(self, code: int) -> str:
        found: list[str] = []
        for name in ("cuGetErrorName", "cuGetErrorString"):
            text = ctypes.c_char_p()
            self._driver[name](code, ctypes.byref(text))
            found.append((text.value or b"an unknown error").decode(errors="replace"))
        return ": ".join(found)

    def _attribute(self, which: int, device: ctypes.c_int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), which, device)
        return value.value

    # -- memory -------------------------------------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        """Returns the address of new memory of `size` bytes."""
        place = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(max(1, size)))
        return place.value

    def free(self, place: int) -> None:
        """Gives memory back."""
        self._call("cuMemFree_v2", ctypes.c_uint64(place))

    def write(self, place: int, array: Array) -> None:
        """Copies a contiguous array to memory."""
        if array.nbytes:
            data = ctypes.c_void_p(array.ctypes.data)
            self._call("cuMemcpyHtoD_v2", ctypes.c_uint64(place), data, ctypes.c_size_t(array.nbytes))

    def read(self, array: Array, place: int) -> None:
        """Copies memory to a contiguous array."""
        if array.nbytes:
            data = ctypes.c_void_p(array.ctypes.data)
            self._call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(place), ctypes.c_size_t(array.nbytes))

    # -- kernels ------------------------------------------------------------------------------------------------------

    def load(self, kernel: Kernel, arch: int) -> Function:
        """Loads a kernel compiled for `sm_<arch>`: its machine code on a GPU of exactly this capability, otherwise its
        PTX."""
        code = kernel.machine_code if self.capability == arch else kernel.ptx.encode() + b"\0"
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), code)
        self._call("cuModuleGetFunction", ctypes.byref(function), module, kernel.entry.encode())
        if kernel.shared > FREE_SHARED:
            self._call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED, kernel.shared)
        return Function(module.value or 0, function.value or 0, kernel.threads, kernel.shared, kernel.maps)

    def unload(self, function: Function) -> None:
        """Unloads a kernel."""
        self._call("cuModuleUnload", ctypes.c_void_p(function.module))

    def prepare(self, function: Function, programs: int, values: Sequence[Any]) -> Prepared:
        """Returns a launch of `programs` programs; `values` are `ctypes` numbers, in the order of the parameters."""
        addresses = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
        return Prepared(function, programs, tuple(values), addresses)

    def described(self, made: TensorMap, address: int, sizes: Sequence[int]) -> list[Any]:
        """Returns the parameters of a descriptor of a tensor whose elements lie row after row: its map, sizes and
        strides."""
        strides = [prod(sizes[k + 1 :]) for k in range(made.rank)]
        room = (ctypes.c_char * (MAP_BYTES + MAP_ALIGNMENT))()
        skipped = -ctypes.addressof(room) % MAP_ALIGNMENT
        encoded = (ctypes.c_char * MAP_BYTES).from_buffer(room, skipped)
        # CUDA's first dim is the last one.
        dims = (ctypes.c_uint64 * made.rank)(*reversed(sizes))
        steps = (ctypes.c_uint64 * made.rank)(*(n * made.bytes for n in reversed(strides[:-1])))
        box = (ctypes.c_uint32 * made.rank)(*reversed(made.box))
        ones = (ctypes.c_uint32 * made.rank)(*[1] * made.rank)
        kind = ctypes.c_uint(made.type), ctypes.c_uint(made.rank), ctypes.c_uint64(address)
        zero, swizzle = ctypes.c_uint(0), ctypes.c_uint(made.swizzle)
        promotion = ctypes.c_uint(PROMOTION_128)
        self._call("cuTensorMapEncodeTiled", encoded, *kind, dims, steps, box, ones, zero, swizzle, promotion, zero)
        return [encoded, *map(ctypes.c_int32, sizes), *map(ctypes.c_int64, strides)]

    def launch(self, what: Prepared) -> None:
        """Queues a launch."""
        function, one = what.function, ctypes.c_uint(1)
        grid, block = (ctypes.c_uint(what.programs), one, one), (ctypes.c_uint(function.threads), one, one)
        shared, handle = ctypes.c_uint(function.shared), ctypes.c_void_p(function.handle)
        self._call("cuLaunchKernel", handle, *grid, *block, shared, self._stream, what.addresses, ctypes.c_void_p())

    # -- time ---------------------------------------------------------------------------------------------------------

    def synchronize(self) -> None:
        """Waits for all launches; raises the error of one that failed."""
        self._call("cuCtxSynchronize")

    def captured(self, queue: Callable[[], None]) -> int:
        """Returns the launches that `queue` makes as a graph, which the GPU runs without waiting for the host."""
        graph, made = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuStreamBeginCapture_v2", self._stream, RELAXED)
        try:
            queue()
        finally:
            self._call("cuStreamEndCapture", self._stream, ctypes.byref(graph))
        self._call("cuGraphInstantiateWithFlags", ctypes.byref(made), graph, ctypes.c_uint64(0))
        self._call("cuGraphDestroy", graph)
        return made.value or 0

    def seconds(self, graph: int) -> float:
        """Returns the seconds of one run of a graph, between two events."""
        first, last, taken = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float()
        for event in (first, last):
            self._call("cuEventCreate", ctypes.byref(event), ctypes.c_uint(0))
        try:
            self._call("cuEventRecord", first, self._stream)
            self._call("cuGraphLaunch", ctypes.c_void_p(graph), self._stream)
            self._call("cuEventRecord", last, self._stream)
            self._call("cuEventSynchronize", last)
            self._call("cuEventElapsedTime", ctypes.byref(taken), first, last)
        finally:
            for event in (first, last):
                self._call("cuEventDestroy_v2", event)
        return taken.value * 1e-3

    def drop(self, graph: int) -> None:
        """Gives a graph back."""
        self._call("cuGraphExecDestroy", ctypes.c_void_p(graph))


@cache
def gpu() -> Gpu:
    """Returns the GPU of this process, opened once."""
    return Gpu()
