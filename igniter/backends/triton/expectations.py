"""The expected durations of the launches of a func, for the report of a compilation.

The device is the one of the target's compute capability, or the A100; symbols have their given sizes (`--sizes`), or a
typical size. Registers are assumed not to limit occupancy: their number is known only to the assembler, which `python
-m benchmark.gpu` runs.
"""

from __future__ import annotations

from igniter.analysis.typical_sizes import MEMORY, typical_of
from igniter.backends.triton.compiler import Resources
from igniter.backends.triton.devices import DEVICES
from igniter.backends.triton.estimates import estimate
from igniter.backends.triton.texts import kernels_of
from igniter.dialects import triton as tt
from igniter.dialects.loop import FuncOp, LaunchOp
from igniter.targets import Expectation

DEFAULT = "a100"

USUAL = Resources(registers=64, spills=0, stack=0, shared=0)
"""The assumed resources of a kernel."""


def expected(func: FuncOp, text: str, arch: int) -> list[Expectation]:
    """Returns the expected durations of the launches of a func, in its order, on a device of `sm_<arch>`."""
    device = next((d for d in DEVICES.values() if d.arch == arch), DEVICES[DEFAULT])
    module = func.parent_op()
    beside = [] if module is None else [op for op in module.regions[0].block.ops if isinstance(op, tt.FuncOp)]
    kernels = {op.sym_name.data: op for op in beside}
    shared = {kernel.label: kernel.compiled(arch).shared for kernel in kernels_of(text)}
    typical = dict(typical_of(func).given)
    sizes = {name: typical.get(name, MEMORY) for name in func.symbol_names}
    said = ", ".join(f"{name}={size}" for name, size in sizes.items())
    found: list[Expectation] = []
    for op in func.block.ops:
        if isinstance(op, LaunchOp):
            # Equal kernels are merged in the text, under the first one's name.
            made = estimate(op, kernels[op.kernel], sizes, USUAL, shared.get(op.kernel, 0), device)
            figures = made.seconds * 1e6, made.limit, made.memory_bytes / 1e6, made.operations / 1e9
            found.append(Expectation(op.kernel, *figures, device.name, said))
    return found
