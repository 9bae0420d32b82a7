"""ONNX Runtime and a driver with streams, without a GPU: launches wait in queues, and memory has owners.

`StreamOrt` is one session. Its arena does what ONNX Runtime's does: a chunk is free again when it is given back, even
while kernels that use it are queued; a chunk that was taken for a stream goes to that stream alone until the stream is
synchronised; one that was taken without a stream goes to anybody. `QueueingDriver` computes a launch when its stream is
synchronised, and `Ledger` knows which memory queued launches use. Until their stream is synchronised, that memory may
not pass to another stream, be read by the host, or go back to the device. Each of these is a violation, which names
the op and its kernel.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx
from onnx import numpy_helper

from tests.backends.triton.recording_driver import RecordingDriver
from tests.runtime.fake_ort import I32, I64, OUT, OUT32, FakeOrt, LoadedLibrary, P, takes

DEVICE, PLACE, GET_NAME = 0x99, 0x9A, 1
"""Handles of the device's allocator and of its place, and the index of an op's function that gives its name."""


@dataclass
class Ledger:
    """The blocks of the device's memory in use by queued launches. Blocks never overlap."""

    blocks: dict[int, int] = field(default_factory=dict[int, int])
    """Sizes by address."""
    uses: dict[int, dict[int, str]] = field(default_factory=dict[int, dict[int, str]])
    """By address of a block, the last launch of each stream that uses it."""
    violations: list[str] = field(default_factory=list[str])
    lock: Any = field(default_factory=threading.RLock)

    def add(self, address: int, size: int) -> None:
        with self.lock:
            self.blocks[address] = size

    def block_of(self, address: int) -> int | None:
        with self.lock:
            return next((start for start, size in self.blocks.items() if start <= address < start + size), None)

    def use(self, address: int, stream: int, launch: str) -> None:
        """A launch on a stream is queued that has the address."""
        block = self.block_of(address)
        if block is None:
            return
        with self.lock:
            users = self.uses.setdefault(block, {})
            for other, earlier in users.items():
                if other != stream:
                    self.violations.append(
                        f"{launch} on stream {stream} is given memory that {earlier} on stream {other} still uses"
                    )
            users[stream] = launch

    def read(self, address: int) -> None:
        """The host reads a block."""
        self._refuse(address, "the host reads memory")

    def leave(self, address: int) -> None:
        """A block goes back to the device."""
        self._refuse(address, "memory goes back to the device")
        with self.lock:
            self.blocks.pop(address)
            self.uses.pop(address, None)

    def synchronise(self, stream: int) -> None:
        with self.lock:
            for users in self.uses.values():
                users.pop(stream, None)

    def _refuse(self, address: int, what: str) -> None:
        with self.lock:
            for stream, launch in self.uses.get(address, {}).items():
                self.violations.append(f"{what} that {launch} on stream {stream} still uses")


@dataclass
class QueueingDriver(RecordingDriver):
    """A launch is computed when its stream is synchronised. `running` is the op that each thread is in."""

    ledger: Ledger = field(default_factory=Ledger)
    queues: dict[int, list[Callable[[], None]]] = field(default_factory=dict[int, list[Callable[[], None]]])
    running: threading.local = field(default_factory=threading.local)

    def compute(self, launch: Any, pointers: Sequence[int], run: Callable[[], None]) -> None:
        name = f"kernel '{launch.kernel}' of op {getattr(self.running, 'op', '?')}"
        for address in pointers:
            self.ledger.use(address, launch.stream, name)
        self.queues.setdefault(launch.stream, []).append(run)

    def synchronise(self, stream: int) -> None:
        """Computes what is queued on a stream."""
        with self.lock:
            for run in self.queues.pop(stream, []):
                run()
            self.ledger.synchronise(stream)


@dataclass(eq=False)
class Chunk:
    """A piece of an arena."""

    memory: Any
    address: int
    size: int
    stream: int | None = None
    used: bool = True


class Arena:
    """Memory of the device that a session keeps. The chunk that was given back last is taken first."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.chunks: list[Chunk] = []

    def take(self, size: int, stream: int | None) -> int:
        """Memory of which the last byte that anybody wrote may still be wanted by the chunk's own stream."""
        for chunk in reversed(self.chunks):
            if not chunk.used and chunk.size >= size and chunk.stream in (None, stream):
                chunk.used, chunk.stream = True, stream
                self.chunks.remove(chunk)
                self.chunks.append(chunk)
                return chunk.address
        memory = np.full(size + 256, 0xFF, np.uint8)
        address = -(-memory.ctypes.data // 256) * 256
        self.chunks.append(Chunk(memory, address, size, stream))
        self.ledger.add(address, size)
        return address

    def give_back(self, address: int) -> None:
        chunk = next(c for c in self.chunks if c.address == address)
        assert chunk.used, "memory is given back twice"
        chunk.used = False

    def release(self, stream: int) -> None:
        """A synchronised stream has no chunks of its own."""
        for chunk in self.chunks:
            if chunk.stream == stream:
                chunk.stream = None

    def close(self) -> None:
        for chunk in self.chunks:
            self.ledger.leave(chunk.address)
        self.chunks.clear()


@dataclass
class Run:
    """One run of a session: a context of ONNX Runtime's with its stream. Values are on the device."""

    session: StreamOrt
    context: int
    stream: int
    values: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    inputs: list[np.ndarray] = field(default_factory=list[np.ndarray])
    made: list[np.ndarray] = field(default_factory=list[np.ndarray])

    def fetch(self) -> np.ndarray:
        """The model's first output, copied to the host as it is now. `finish` comes first where that matters."""
        value = self.values[self.session.model.graph.output[0].name]
        self.session.driver.ledger.read(value.ctypes.data)
        return value.copy()

    def synchronise(self) -> None:
        self.session.driver.synchronise(self.stream)

    def finish(self) -> np.ndarray:
        """Synchronises, reads the output, and gives back what the run has."""
        self.synchronise()
        found = self.fetch()
        with self.session.lock:
            for value in self.values.values():
                if self.session.is_device(value):
                    self.session.arena.give_back(value.ctypes.data)
            self.session.arena.release(self.stream)
            del self.session.runs[self.context]
        return found


class StreamOrt(FakeOrt):
    """A session of a compiled folder whose nodes are all ops of its library.

    With `scratch_of_stream` false, scratch memory is taken without its stream, as by `AllocatorAlloc`.
    """

    streams = itertools.count(1)
    made: ClassVar[list[StreamOrt]] = []
    """All that were made: a library knows an ORT by the address of its table, which must not be another's later."""

    def __init__(self, folder: Path, driver: QueueingDriver, scratch_of_stream: bool = True) -> None:
        super().__init__()
        self.made.append(self)
        self.driver, self.scratch_of_stream = driver, scratch_of_stream
        self.arena = Arena(driver.ledger)
        self.runs: dict[int, Run] = {}
        self.plain = 0
        """The number of times that memory of the device was taken without a stream."""
        self.model = onnx.load(str(folder / "model.onnx"))
        self.weights = {t.name: numpy_helper.to_array(t).copy() for t in self.model.graph.initializer}
        self.library = LoadedLibrary(next(iter(sorted(folder.glob("*.so")))))
        assert self.message(self.library.register(self)) is None
        by_name = {self._name_of(op): op for op in self.ops}
        self.kernels: list[tuple[int, int]] = []
        for node in self.model.graph.node:
            op = by_name[node.op_type]
            self.inputs = [self.weights.get(name, np.zeros(0, np.float32)) for name in node.input]
            status, kernel = self.library.create(self, op)
            assert self.message(status) is None and kernel is not None
            self.kernels.append((op, kernel))

    def _name_of(self, op: int) -> str:
        give: Any = ctypes.CFUNCTYPE(ctypes.c_char_p, P)(self.library.pointer(op, GET_NAME) or 0)
        return give(op).decode()

    def start(self, feed: dict[str, np.ndarray], stream: int | None = None) -> Run:
        """Queues a run on a stream of its own; 0 is none."""
        with self.lock:
            number = next(self.streams)
            stream = number if stream is None else stream
            run = Run(self, 0x10000 + number, stream)
            self.runs[run.context] = run
            run.values.update(self.weights)
            for name, value in feed.items():
                run.values[name] = self.on_device(value.shape, value.dtype, stream)
                run.values[name][...] = value
        for node, (op, kernel) in zip(self.model.graph.node, self.kernels, strict=True):
            run.inputs, run.made = [run.values[name] for name in node.input], []
            self.driver.running.op = node.name
            assert self.message(self.library.compute(op, kernel, run.context)) is None
            run.values.update(zip(node.output, run.made, strict=True))
        return run

    def run(self, feed: dict[str, np.ndarray]) -> np.ndarray:
        return self.start(feed).finish()

    def close(self) -> None:
        for op, kernel in self.kernels:
            self.library.destroy(op, kernel)
        self.kernels.clear()
        self.arena.close()

    def on_device(self, shape: Sequence[int], dtype: Any, stream: int) -> np.ndarray:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        address = self.arena.take(max(size, 1), stream)
        return np.ndarray(shape, dtype, (ctypes.c_char * max(size, 1)).from_address(address))

    def is_device(self, value: np.ndarray) -> bool:
        return self.driver.ledger.block_of(value.ctypes.data) is not None

    # -- the API ------------------------------------------------------------------------------------------------------

    @takes(P, I32, OUT)
    def KernelInfoGetAllocator(self, info, kind, out):
        out[0] = DEVICE

    @takes(P, OUT)
    def AllocatorGetInfo(self, allocator, out):
        out[0] = PLACE if allocator == DEVICE else 0x88

    @takes(P, OUT32)
    def MemoryInfoGetId(self, place, out):
        assert place == PLACE
        out[0] = 0

    @takes(P)
    def ReleaseAllocator(self, allocator):
        if allocator != DEVICE:
            super().ReleaseAllocator(allocator)

    @takes(P, P, OUT)
    def AllocatorAlloc(self, allocator, size, out):
        if allocator == DEVICE:
            self.plain += 1
            out[0] = self.arena.take(size, None)
        else:
            super().AllocatorAlloc(allocator, size, out)

    @takes(P, P)
    def AllocatorFree(self, allocator, memory):
        if allocator == DEVICE:
            self.arena.give_back(memory)
        else:
            super().AllocatorFree(allocator, memory)

    @takes(P, P, I64, OUT)
    def KernelContext_GetScratchBuffer(self, context, place, size, out):
        assert place == PLACE
        assert self.runs[context].stream, "ONNX Runtime reads the stream without a check"
        out[0] = self.arena.take(size, self.runs[context].stream if self.scratch_of_stream else None)

    @takes(P, OUT)
    def KernelContext_GetGPUComputeStream(self, context, out):
        out[0] = self.runs[context].stream or None

    @takes(P, P)
    def KernelContext_GetInputCount(self, context, out):
        ctypes.c_int64.from_address(out).value = len(self.runs[context].inputs)

    @takes(P, P)
    def KernelContext_GetOutputCount(self, context, out):
        ctypes.c_int64.from_address(out).value = self.output_count

    @takes(P, I64, OUT)
    def KernelContext_GetInput(self, context, index, out):
        out[0] = self._array(self.runs[context].inputs[index])

    @takes(P, I64, P, I64, OUT)
    def KernelContext_GetOutput(self, context, index, dims, rank, out):
        run = self.runs[context]
        shape = [ctypes.c_int64.from_address(dims + 8 * k).value for k in range(rank)]
        run.made.append(self.on_device(shape, np.float32, run.stream))
        out[0] = self._array(run.made[-1])
