"""The expected durations of the launches of a func, for the report of a compilation.

The device is the one of the target's compute capability, or the A100; symbols have their given sizes (`--sizes`), or a
typical size. Registers are assumed not to limit occupancy: their number is known only to the assembler, which `python
-m benchmark.gpu` runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.ir import Block

from igniter.analysis.typical_sizes import MEMORY, sizes_with, typical_of
from igniter.backends.triton.compiler import Resources
from igniter.backends.triton.devices import DEVICES, Device
from igniter.backends.triton.estimates import chosen_block, estimate, launches_of, work_of
from igniter.backends.triton.texts import kernels_of
from igniter.dialects import triton as tt
from igniter.dialects.loop import FuncOp, IfOp, IfSharedOp, LaunchOp
from igniter.dialects.sym.expr import Expr, product
from igniter.targets import Expectation
from igniter.transforms.scheduled.loop_rewrites import is_version

DEFAULT = "a100"

USUAL = Resources(registers=64, spills=0, stack=0, shared=0)
"""The assumed resources of a kernel."""


def expected(func: FuncOp, text: str, arch: int) -> list[Expectation]:
    """Returns the expected durations of the launches of a func, in its order, on a device of `sm_<arch>`."""
    device = device_for(arch)
    module = func.parent_op()
    beside = [] if module is None else [op for op in module.regions[0].block.ops if isinstance(op, tt.FuncOp)]
    kernels = {op.sym_name.data: op for op in beside}
    shared = {kernel.label: kernel.compiled(arch).shared for kernel in kernels_of(text)}
    found: list[Expectation] = []
    for sizes, launches in _versions(func):
        said = ", ".join(f"{name}={size}" for name, size in sizes.items())
        for op in launches:
            # Equal kernels are merged in the text, under the first one's name.
            made = estimate(op, kernels[op.kernel], sizes, USUAL, shared.get(op.kernel, 0), device)
            figures = made.seconds * 1e6, made.limit, made.memory_bytes / 1e6, made.operations / 1e9
            found.append(Expectation(op.kernel, *figures, device.name, said))
    return found


def expected_seconds(func: FuncOp, sizes: Mapping[str, int], arch: int) -> float:
    """Returns the expected seconds of a func at given sizes, without compiling its kernels: their shared memory is that
    of the loads in flight."""
    device = device_for(arch)
    module = func.parent_op()
    beside = [] if module is None else [op for op in module.regions[0].block.ops if isinstance(op, tt.FuncOp)]
    kernels = {op.sym_name.data: op for op in beside}
    seconds = 0.0
    for op, env in launches_of({func.sym_name.data: func}, func.sym_name.data, sizes):
        kernel = kernels[op.kernel]
        loaded = work_of(kernel, [s.evaluate(env) for s in op.symbols]).loaded_a_trip
        shared = op.stages * loaded if op.stages > 1 else 0
        seconds += estimate(op, kernel, env, USUAL, shared, device).seconds
    return seconds


def device_for(arch: int) -> Device:
    """Returns the device of a compute capability, times ten; the default one for others."""
    return next((d for d in DEVICES.values() if d.arch == arch), DEVICES[DEFAULT])


def _versions(func: FuncOp) -> Iterator[tuple[dict[str, int], list[LaunchOp]]]:
    """Returns the launches of a func at its typical sizes, and those of each variant at the largest typical sizes with
    its condition."""
    given = dict(typical_of(func).given)
    usual = {name: given.get(name, MEMORY) for name in func.symbol_names}
    versions = [op for op in func.block.ops if is_version(op)]
    yield usual, list(_launches(func.block, usual))
    for op in versions:
        assert isinstance(op, IfOp)
        sizes = _sizes_within(op.guards, func.symbol_names, usual)
        if sizes is not None:
            yield sizes, list(_launches(op.block, sizes))


def _launches(block: Block, sizes: dict[str, int]) -> Iterator[LaunchOp]:
    for op in block.ops:
        if isinstance(op, LaunchOp):
            yield op
        elif isinstance(op, IfSharedOp):
            yield from _launches(chosen_block(op, sizes), sizes)


def _sizes_within(guards: Sequence[Expr], symbols: Sequence[str], usual: dict[str, int]) -> dict[str, int] | None:
    """Returns sizes at which all guards hold: the usual ones, or the largest of a ladder; `None` if there are none."""
    product_of_all = product(Expr.of(s) for s in symbols if any(s in guard.symbols for guard in guards))
    ladder = ({**usual, **sizes_with(product_of_all, 1 << k, {}, symbols)} for k in reversed(range(20)))
    candidates = (sizes for sizes in (usual, *ladder) if all(guard.evaluate(sizes) >= 0 for guard in guards))
    return next(candidates, None)
