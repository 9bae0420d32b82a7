"""Scheduled kernels in the memory of this machine's GPU: a func of launches, called with arrays, checked and timed.

The host's part is Python here: it evaluates grids and parameters at the given sizes, as the host code of a library does
(`igniter/backends/launches.py`), and launches through the driver (`driver.py`). Times are those of a CUDA graph of the
launches, so Python's part is not in them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from igniter.backends.launches import NULL_PARAMETERS
from igniter.backends.triton.compiler import signature_of
from igniter.backends.triton.python_source import print_kernel
from igniter.backends.triton.texts import KernelText
from igniter.dialects import triton as tt
from igniter.dialects.loop import AllocOp, FuncOp, IfOp, IfSharedOp, LaunchOp, stored_bytes
from igniter.errors import IgniterError
from igniter.schedules.product_blocks import figures_of

if TYPE_CHECKING:
    from igniter.backends.triton.driver import Function, Gpu, Prepared

    Array: TypeAlias = np.ndarray[Any, Any]

FILLING = 0xFF
"""The bytes of memory before a kernel writes it: NaN, and large numbers."""


def kernel_text(launch: LaunchOp, kernel: tt.FuncOp) -> KernelText:
    """Returns the text of a launch's kernel."""
    source, signature = print_kernel(kernel), signature_of(kernel)
    return KernelText(launch.kernel, launch.kernel, launch.warps, launch.stages, signature, source)


@dataclass
class CompiledLaunches:
    """A func of launches on a GPU. Kernels are loaded once, with the first call."""

    gpu: Gpu
    func: FuncOp
    arch: int
    """The compute capability of the code, times ten."""
    _functions: dict[str, Function] = field(default_factory=dict[str, "Function"])

    def __post_init__(self) -> None:
        module = self.func.parent_op()
        beside = [] if module is None else [op for op in module.regions[0].block.ops if isinstance(op, tt.FuncOp)]
        kernels = {op.sym_name.data: op for op in beside}
        most = figures_of(f"sm_{self.arch}").shared
        for op in self.func.walk():
            if isinstance(op, LaunchOp) and op.kernel not in self._functions:
                made = kernel_text(op, kernels[op.kernel]).compiled(self.arch)
                if made.shared > most:
                    raise IgniterError(
                        f"{op.kernel} needs {made.shared} bytes of shared memory; sm_{self.arch} has {most} a program"
                    )
                self._functions[op.kernel] = self.gpu.load(made, self.arch)

    def __call__(self, *buffers: Array, threads: int = 1, **symbols: int) -> None:
        """Runs once on arrays, inputs then outputs; outputs change in place."""
        run = self.prepared(buffers, symbols, threads)
        run()
        run.read_back()
        run.close()

    def prepared(self, buffers: Sequence[Array], symbols: Mapping[str, int], threads: int = 1) -> PreparedLaunches:
        """Returns the call as a function without arguments, with a copy of the arrays on the GPU."""
        del threads
        return PreparedLaunches(self.gpu, self.func, self._functions, buffers, symbols)


class PreparedLaunches:
    """The launches of a func at given sizes, with their memory on the GPU."""

    def __init__(
        self,
        gpu: Gpu,
        func: FuncOp,
        functions: Mapping[str, Function],
        buffers: Sequence[Array],
        symbols: Mapping[str, int],
    ):
        self._gpu = gpu
        self._arrays = buffers
        self._owned: list[int] = []
        self._graphs: dict[int, int] = {}
        """Runs in sequence, by their number."""
        places: dict[SSAValue, int] = {}
        for value, array in zip(func.block.args, buffers, strict=True):
            places[value] = self._allocate(array.nbytes)
            gpu.write(places[value], array)
        self._places = [places[value] for value in func.block.args]
        self._launches: list[Prepared] = []
        for op in _statements(func.block, symbols):
            if isinstance(op, AllocOp):
                size = stored_bytes(op.result.type).evaluate(dict(symbols))
                places[op.result] = self._allocate(size)
                gpu.write(places[op.result], np.full(size, FILLING, np.uint8))
            elif isinstance(op, LaunchOp):
                self._add(op, functions[op.kernel], places, symbols)
            else:
                raise IgniterError(f"{op.name} of a kernel has no way to run on a GPU alone")

    def _add(
        self, op: LaunchOp, function: Function, places: Mapping[SSAValue, int], symbols: Mapping[str, int]
    ) -> None:
        env = dict(symbols)
        programs = op.grid.evaluate(env)
        if programs < 1:
            return
        values: list[Any] = [ctypes.c_uint64(places[b]) for b in op.addressed]
        values += [ctypes.c_int64(e.evaluate(env)) for e in op.symbols]
        for made, value, sizes in zip(function.maps, op.mapped, op.maps, strict=True):
            values += self._gpu.described(made, places[value], [e.evaluate(env) for e in sizes])
        values += [ctypes.c_uint64(0)] * NULL_PARAMETERS
        self._launches.append(self._gpu.prepare(function, programs, values))

    def _allocate(self, size: int) -> int:
        self._owned.append(self._gpu.allocate(size))
        return self._owned[-1]

    def __call__(self) -> None:
        """Runs the launches once, and waits for them."""
        self._queue()
        self._gpu.synchronize()

    def _queue(self) -> None:
        for each in self._launches:
            self._gpu.launch(each)

    def read_back(self) -> None:
        """Copies the buffers from the GPU to the arrays."""
        for array, place in zip(self._arrays, self._places, strict=True):
            if array.flags.writeable:
                self._gpu.read(array, place)

    def seconds(self, repeats: int) -> float:
        """Returns the seconds of `repeats` runs in sequence, by the GPU's own clock."""

        def queue() -> None:
            for _ in range(repeats):
                self._queue()

        if not self._launches:
            return 0.0
        if repeats not in self._graphs:
            self._graphs[repeats] = self._gpu.captured(queue)
        return self._gpu.seconds(self._graphs[repeats])

    def close(self) -> None:
        """Gives the memory and the graphs back."""
        while self._graphs:
            self._gpu.drop(self._graphs.popitem()[1])
        while self._owned:
            self._gpu.free(self._owned.pop())


def _statements(block: Block, symbols: Mapping[str, int]) -> Iterator[Operation]:
    """Yields the statements that run at the given sizes; no buffers are shared."""
    for op in block.ops:
        if isinstance(op, IfSharedOp):
            yield from _statements(op.apart.block, symbols)
        elif not isinstance(op, IfOp):
            yield op
        elif all(guard.evaluate(dict(symbols)) >= 0 for guard in op.guards):
            yield from _statements(op.block, symbols)
