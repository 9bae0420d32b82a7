"""A driver of NVIDIA's that has no GPU: it notes what is called, and computes launches in Triton's interpreter.

It is a shared library called `libcuda.so.1`. The loader knows libraries that are there by that name, so once it is
loaded, whoever asks for the driver gets it. Its functions call Python. "Device memory" is the host's.
"""

from __future__ import annotations

import ctypes
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from igniter.backends.ort.driver_calls import DRIVER, DRIVER_FUNCTIONS
from igniter.backends.triton import texts as emitted
from igniter.backends.triton.driver import FUNCTIONS
from igniter.backends.triton.interpreter import run_source
from igniter.backends.triton.texts import KernelText, kernels_of
from igniter.runtime.linker import find_linker
from igniter.targets import backend_for
from tests.backends.triton import tensor_maps

_P, _I, _U, _L = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_uint64
_TYPES: dict[str, tuple[Any, ...]] = {
    "cuInit": (_U,),
    "cuGetErrorName": (_I, _P),
    "cuGetErrorString": (_I, _P),
    "cuDeviceGet": (_P, _I),
    "cuDeviceGetAttribute": (_P, _I, _I),
    "cuDevicePrimaryCtxRetain": (_P, _I),
    "cuDevicePrimaryCtxRelease_v2": (_I,),
    "cuCtxGetCurrent": (_P,),
    "cuCtxGetDevice": (_P,),
    "cuCtxPushCurrent_v2": (_P,),
    "cuCtxPopCurrent_v2": (_P,),
    "cuModuleLoadData": (_P, _P),
    "cuModuleUnload": (_P,),
    "cuModuleGetFunction": (_P, _P, ctypes.c_char_p),
    "cuFuncSetAttribute": (_P, _I, _I),
    "cuLaunchKernel": (_P, _U, _U, _U, _U, _U, _U, _U, _P, _P, _P),
    "cuTensorMapEncodeTiled": (_P, _U, _U, _P, _P, _P, _P, _P, _U, _U, _U, _U),
    "cuDeviceGetName": (_P, _I, _I),
    "cuCtxSynchronize": (),
    "cuMemAlloc_v2": (_P, _L),
    "cuMemFree_v2": (_L,),
    "cuMemcpyHtoD_v2": (_L, _P, _L),
    "cuMemcpyDtoH_v2": (_P, _L, _L),
    "cuEventCreate": (_P, _U),
    "cuEventRecord": (_P, _P),
    "cuEventSynchronize": (_P,),
    "cuEventElapsedTime": (_P, _P, _P),
    "cuEventDestroy_v2": (_P,),
    "cuStreamCreate": (_P, _U),
    "cuStreamBeginCapture_v2": (_P, _I),
    "cuStreamEndCapture": (_P, _P),
    "cuGraphInstantiateWithFlags": (_P, _P, _L),
    "cuGraphLaunch": (_P, _P),
    "cuGraphExecDestroy": (_P,),
    "cuGraphDestroy": (_P,),
}
_LLVM = {_P: "ptr", ctypes.c_char_p: "ptr", _I: "i32", _U: "i32", _L: "i64"}
_ERRORS = {
    1: ("CUDA_ERROR_INVALID_VALUE", "invalid argument"),
    2: ("CUDA_ERROR_OUT_OF_MEMORY", "out of memory"),
    100: ("CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"),
    209: ("CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"),
    222: ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."),
    719: ("CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"),
}


@dataclass(frozen=True)
class Launch:
    """One launch, as the driver was asked for it."""

    kernel: str
    grid: int
    threads: int
    shared: int
    stream: int
    context: int


@dataclass
class RecordingDriver:
    """The driver as the library sees it. `fails` has the codes that functions give instead of doing their work."""

    capability: int = 80
    """Of the GPU that there seems to be, by ten."""
    kernels: dict[bytes, tuple[KernelText, int]] = field(default_factory=dict[bytes, tuple[KernelText, int]])
    """What computes, and the capability that it was compiled for, by PTX and by machine code."""
    refuses_machine_code: bool = False
    """As a driver older than the assembler does."""
    images: list[str] = field(default_factory=list[str])
    """The kinds of the codes that were loaded: `ptx` or `cubin`."""
    fails: dict[str, int] = field(default_factory=dict[str, int])
    calls: list[str] = field(default_factory=list[str])
    launches: list[Launch] = field(default_factory=list[Launch])
    modules: dict[int, tuple[KernelText, int]] = field(default_factory=dict[int, tuple[KernelText, int]])
    """Those that are loaded."""
    retained: dict[int, int] = field(default_factory=dict[int, int])
    """The number of times that the primary context of a device is kept."""
    attributes: dict[int, int] = field(default_factory=dict[int, int])
    lock: Any = field(default_factory=threading.RLock)
    """Triton's interpreter is for one thread at a time."""
    name: str = "Recording GPU"
    seconds: Callable[[Launch], float] = lambda _: 1e-6
    """The time that a launch takes on this GPU, by its events."""
    clock: float = 0.0
    memory: dict[int, Any] = field(default_factory=dict[int, Any])
    """What is allocated, by address."""
    graphs: dict[int, list[Launch]] = field(default_factory=dict[int, list[Launch]])
    events: dict[int, float] = field(default_factory=dict[int, float])
    capturing: list[Launch] | None = None
    _current: threading.local = field(default_factory=threading.local)
    _kept: list[Any] = field(default_factory=list[Any])
    _next: int = 1000

    @property
    def contexts(self) -> list[int]:
        """The calling thread's stack of current contexts."""
        if not hasattr(self._current, "contexts"):
            self._current.contexts = []
        return self._current.contexts

    def know(self, texts: Sequence[str], arch: int = 80) -> None:
        """Makes the kernels of compiled funcs known, for computing."""
        for text in texts:
            for kernel in kernels_of(text):
                made = kernel.compiled(arch)
                self.kernels[made.ptx.encode()] = self.kernels[made.machine_code] = kernel, arch

    def reset(self) -> None:
        """As new, but for the kernels that it knows."""
        self.refuses_machine_code = False
        for each in (self.fails, self.calls, self.launches, self.modules, self.contexts, self.retained, self.images):
            each.clear()

    # -- the driver ---------------------------------------------------------------------------------------------------

    def answer(self, name: str, *args: Any) -> int:
        """The result of a function of the driver."""
        if name in ("cuGetErrorName", "cuGetErrorString"):
            found = _ERRORS.get(args[0])
            text = ctypes.create_string_buffer((found or ("", ""))[name == "cuGetErrorString"].encode())
            self._kept.append(text)
            _store(args[1], ctypes.addressof(text) if found else 0)
            return 0 if found else 1
        with self.lock:
            self.calls.append(name)
            if name in self.fails:
                return self.fails[name]
            return int(getattr(self, f"_{name.partition('_v2')[0]}")(*args) or 0)

    def _cuInit(self, flags: int) -> int:
        return 0 if flags == 0 else 1

    def _cuDeviceGet(self, out: int, ordinal: int) -> int:
        if ordinal != 0:
            return 1
        ctypes.c_int.from_address(out).value = 0
        return 0

    def _cuDeviceGetAttribute(self, out: int, attribute: int, device: int) -> int:
        digits = divmod(self.capability, 10)
        if attribute not in (75, 76) or device != 0:
            return 1
        ctypes.c_int.from_address(out).value = digits[attribute - 75]
        return 0

    def _cuDevicePrimaryCtxRetain(self, out: int, device: int) -> None:
        self.retained[device] = self.retained.get(device, 0) + 1
        _store(out, 500 + device)

    def _cuDevicePrimaryCtxRelease(self, device: int) -> None:
        assert self.retained[device] > 0, "a context is given back that was not kept"
        self.retained[device] -= 1

    def _cuCtxGetCurrent(self, out: int) -> None:
        _store(out, self.contexts[-1] if self.contexts else 0)

    def _cuCtxGetDevice(self, out: int) -> int:
        if not self.contexts:
            return 201
        ctypes.c_int.from_address(out).value = self.contexts[-1] - 500
        return 0

    def _cuCtxPushCurrent(self, context: int) -> None:
        self.contexts.append(context)

    def _cuCtxPopCurrent(self, out: int) -> None:
        _store(out, self.contexts.pop())

    def _cuModuleLoadData(self, out: int, image: int) -> int:
        assert self.contexts, "a module is loaded without a context"
        size = _elf_size(image)
        kernel = self.kernels.get(ctypes.string_at(image, size) if size else ctypes.string_at(image))
        if kernel is None:
            return 222
        if size and self.refuses_machine_code:
            return 209
        if size and kernel[1] != self.capability:
            return 209
        self.images.append("cubin" if size else "ptx")
        self._next += 1
        self.modules[self._next] = kernel
        _store(out, self._next)
        return 0

    def _cuModuleUnload(self, module: int) -> None:
        assert self.contexts, "a module is unloaded without a context"
        del self.modules[module]

    def _cuModuleGetFunction(self, out: int, module: int, name: bytes) -> int:
        kernel, arch = self.modules[module]
        if name != kernel.compiled(arch).entry.encode():
            return 500
        _store(out, module)
        return 0

    def _cuFuncSetAttribute(self, function: int, attribute: int, value: int) -> int:
        if attribute != 8:
            return 1
        self.attributes[function] = value
        return 0

    def _cuLaunchKernel(self, function: int, *rest: Any) -> int:
        gx, gy, gz, bx, by, bz, shared, stream, parameters, extra = rest
        kernel, arch = self.modules[function]
        made = kernel.compiled(arch)
        assert self.contexts, "a kernel is launched without a context"
        assert (gy, gz, by, bz, extra) == (1, 1, 1, 1, None)
        assert gx > 0, "the driver refuses empty grids"
        assert bx == made.threads, f"{bx} threads, where .reqntid says {made.threads}"
        assert shared == made.shared
        assert shared <= max(48 << 10, self.attributes.get(function, 0))
        places = [ctypes.c_void_p.from_address(parameters + 8 * k).value or 0 for k in range(made.parameters)]
        plain = len(kernel.signature) - len(made.maps)
        assert made.parameters == plain + sum(1 + 2 * m.rank for m in made.maps) + 2
        given: list[Any] = [ctypes.c_int64.from_address(place).value for place in places[:plain]]
        null = [ctypes.c_int64.from_address(place).value for place in places[-2:]]
        assert null == [0, 0], "Triton's own pointers are null"
        given += [tensor_maps.decode(each, places) for each in made.maps]
        launch = Launch(kernel.label, gx, bx, shared, stream or 0, self.contexts[-1])
        if self.capturing is not None:
            self.capturing.append(launch)
            return 0
        self.launches.append(launch)
        self.clock += self.seconds(launch)
        pointers = [g for g, kind in zip(given, kernel.signature, strict=False) if kind.startswith("*")]
        pointers += [address for address, _ in given[plain:]]
        self.compute(launch, pointers, lambda: run_source(kernel.source, kernel.signature, (gx,), given))
        return 0

    def _cuTensorMapEncodeTiled(self, out: int, *given: int) -> int:
        reason = tensor_maps.encode(out, *given)
        if reason is not None:
            self.calls.append(f"cuTensorMapEncodeTiled: {reason}")
        return 0 if reason is None else 1

    # -- for kernels that are run and timed alone: `igniter.backends.triton.driver` ------------------------------------

    def _new(self, out: int) -> int:
        self._next += 1
        _store(out, self._next)
        return self._next

    def _cuDeviceGetName(self, out: int, size: int, device: int) -> None:
        text = self.name.encode() + b"\0"
        ctypes.memmove(out, text, min(size, len(text)))

    def _cuCtxSynchronize(self) -> None:
        assert self.capturing is None, "a stream is waited for while it is captured"

    def _cuMemAlloc(self, out: int, size: int) -> None:
        memory = np.zeros(size + 64, np.uint8)
        place = memory.ctypes.data + -memory.ctypes.data % 64
        self.memory[place] = memory
        _store(out, place)

    def _cuMemFree(self, place: int) -> None:
        del self.memory[place]

    def _cuMemcpyHtoD(self, place: int, data: int, size: int) -> None:
        assert size <= len(self.memory[place])
        ctypes.memmove(place, data, size)

    def _cuMemcpyDtoH(self, data: int, place: int, size: int) -> None:
        assert size <= len(self.memory[place])
        ctypes.memmove(data, place, size)

    def _cuEventCreate(self, out: int, flags: int) -> None:
        self.events[self._new(out)] = -1.0

    def _cuEventRecord(self, event: int, stream: int) -> None:
        self.events[event] = self.clock

    def _cuEventSynchronize(self, event: int) -> None:
        assert self.events[event] >= 0, "an event is waited for that was not recorded"

    def _cuEventElapsedTime(self, out: int, first: int, last: int) -> None:
        ctypes.c_float.from_address(out).value = (self.events[last] - self.events[first]) * 1e3

    def _cuEventDestroy(self, event: int) -> None:
        del self.events[event]

    def _cuStreamCreate(self, out: int, flags: int) -> None:
        self._new(out)

    def _cuStreamBeginCapture(self, stream: int, mode: int) -> None:
        assert stream, "the default stream cannot be captured"
        self.capturing = []

    def _cuStreamEndCapture(self, stream: int, out: int) -> None:
        assert self.capturing is not None
        self.graphs[self._new(out)], self.capturing = self.capturing, None

    def _cuGraphInstantiateWithFlags(self, out: int, graph: int, flags: int) -> None:
        self.graphs[self._new(out)] = self.graphs[graph]

    def _cuGraphLaunch(self, graph: int, stream: int) -> None:
        self.clock += sum(map(self.seconds, self.graphs[graph]))

    def _cuGraphExecDestroy(self, graph: int) -> None:
        del self.graphs[graph]

    def _cuGraphDestroy(self, graph: int) -> None:
        del self.graphs[graph]

    def compute(self, launch: Launch, pointers: Sequence[int], run: Callable[[], None]) -> None:
        """What becomes of a launch that is right; `pointers` are the addresses among its parameters."""
        run()


def _elf_size(place: int) -> int:
    """The bytes of an ELF file of 64 bits in memory, which ends with a table of sections or segments; 0 for others."""
    if ctypes.string_at(place, 4) != b"\x7fELF":
        return 0
    head = ctypes.string_at(place, 64)
    segments, sections = struct.unpack_from("<QQ", head, 32)
    segment_size, segment_count, section_size, section_count = struct.unpack_from("<HHHH", head, 54)
    return max(segments + segment_size * segment_count, sections + section_size * section_count)


def _store(place: int, value: int) -> None:
    ctypes.c_void_p.from_address(place).value = value


_ACTIVE: list[RecordingDriver] = []
"""The driver that this process's `libcuda.so.1` calls, once that is installed."""
_KEPT: list[Any] = []
"""The library and its callbacks, which live as long as the process."""


def activate(driver: RecordingDriver, without: Sequence[str] = ()) -> None:
    """Makes a driver the one that this process's `libcuda.so.1` calls; `without` are functions that it lacks.

    The library is made once, by the first call: the loader finds the first one of its name, whatever is loaded later.
    """
    _ACTIVE[:] = [driver]
    if not _KEPT:
        _KEPT.append(_library(Path(tempfile.mkdtemp()), without))


def _library(folder: Path, without: Sequence[str]) -> Any:
    """A loaded `libcuda.so.1` that calls the active driver, and what keeps it alive."""
    names = [name for name in dict.fromkeys((*DRIVER_FUNCTIONS, *FUNCTIONS)) if name not in without]
    lines = [f"@table = global [{len(names)} x ptr] zeroinitializer"]
    for k, name in enumerate(names):
        types = [_LLVM[t] for t in _TYPES[name]]
        parameters = ", ".join(f"{t} %a{i}" for i, t in enumerate(types))
        lines += [
            f"define i32 @{name}({parameters}) {{",
            f"  %at = getelementptr ptr, ptr @table, i64 {k}",
            "  %f = load ptr, ptr %at",
            f"  %r = call i32 %f({parameters})",
            "  ret i32 %r",
            "}",
        ]
    cpu = backend_for("native")
    target = cpu.least(cpu.target_of("native"))
    code = f'target triple = "{target.triple}"\n' + "\n".join(lines) + "\n"
    (folder / "driver.o").write_bytes(cpu.object_code(code, target))
    linker = find_linker(target.triple)
    shared = ["-shared", "-nostdlib", f"-Wl,-soname,{DRIVER}"] if linker.driver else ["-shared", "-soname", DRIVER]
    subprocess.run([*linker.command, *shared, "-o", DRIVER, "driver.o"], cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / DRIVER))
    table = (ctypes.c_void_p * len(names)).in_dll(library, "table")
    functions = [ctypes.CFUNCTYPE(ctypes.c_int, *_TYPES[name])(_guarded(name)) for name in names]
    for k, function in enumerate(functions):
        table[k] = ctypes.cast(function, ctypes.c_void_p).value
    return library, functions


@cache
def standing_driver() -> RecordingDriver:
    """The driver of this process, for all that is compiled in it."""
    return RecordingDriver()


@contextmanager
def knowing(driver: RecordingDriver) -> Generator[None]:
    """The driver, which becomes the process's, can compute what is compiled in here."""
    activate(driver)
    original = emitted.host_module

    def noted(text: str, archs: Sequence[int]) -> str:
        for arch in archs:
            driver.know([text], arch)
        return original(text, archs)

    with mock.patch.object(emitted, "host_module", noted):
        yield


def _guarded(name: str) -> Callable[..., int]:
    def call(*args: Any) -> int:
        driver = _ACTIVE[0]
        try:
            return driver.answer(name, *args)
        except BaseException as error:  # what a callback raises would be printed and lost
            driver.calls.append(f"{name}: {type(error).__name__}: {error}")
            return 999

    return call
