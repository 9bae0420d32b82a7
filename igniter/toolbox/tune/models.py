"""The distinct kernels of a model: the number of calls, the sizes, and the share of the time of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

from igniter.dialects.fusion import RegionOp
from igniter.dialects.sym import dims_of
from igniter.errors import IgniterError
from igniter.targets import backend_for
from igniter.toolbox.kernel.workbench import kernels_in
from igniter.toolbox.tune.executors import Executor
from igniter.toolbox.tune.measure import Job
from igniter.toolbox.tune.search import Tunable, tunable
from igniter.verification.check_inputs import shape_of, sizes_of

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from igniter.dialects.loop import KernelOp
    from igniter.targets import Target


@dataclass(frozen=True)
class KernelUse:
    """One distinct kernel of a model."""

    what: Tunable
    calls: int
    seconds: float
    """The time of all its calls with the default schedule; 0 if it could not be timed."""
    reason: str = ""
    """The reason why it could not be timed."""
    share: float = 0.0
    """The share of the time of all kernels."""


def kernels_of(
    path: str | PathLike[str],
    target: Target,
    executor: Executor,
    *,
    kernel: str = "",
    sizes: Mapping[str, int] | None = None,
    threads: int = 1,
    device: str = "",
    estimated: bool = False,
    limit: float = 60.0,
    progress: Callable[[str], None] = lambda _: None,
) -> list[KernelUse]:
    """Returns the kernels of a model or of IR, by their share of the time, the largest first: with default schedules,
    each timed alone, or with its expected time (`estimated`). `sizes` are of the model's dims, or of symbols of the
    kernels. Raises `IgniterError` if there is no kernel, or none called `kernel`."""
    given = dict(sizes or {})
    backend = backend_for(target.name)
    # The parts of a sum on a GPU depend on sizes, and a kernel with other parts is another kernel.
    module, kernels = kernels_in(path, backend.machine_for(target), given if backend.provider else None)
    if kernel:
        if kernel not in kernels:
            raise IgniterError(f"{path} has no kernel '{kernel}'; it has: {', '.join(kernels)}")
        kernels = {kernel: kernels[kernel]}
    _require_known(given, module, kernels)
    found: list[KernelUse] = []
    for name, op in kernels.items():
        progress(f"@{name}")
        calls, own = _uses(module, op, given)
        op.detach()
        symbols = {n: s for n, s in {**own, **given}.items() if n in op.symbol_names}
        what = tunable(name, op, target, symbols, threads, device)
        found.append(_timed(what, calls, executor, limit, estimated))
    whole = sum(use.seconds for use in found)
    shared = [
        KernelUse(u.what, u.calls, u.seconds, u.reason, u.seconds / whole if whole else 1 / len(found)) for u in found
    ]
    return sorted(shared, key=lambda use: -use.seconds)


def _timed(what: Tunable, calls: int, executor: Executor, limit: float, estimated: bool) -> KernelUse:
    where, baseline = (what.target.name, what.target.key), "" if estimated else what.default
    job = Job(what.default, baseline, *where, what.sizes, what.threads, rounds=3, limit=limit, device=what.device)
    found = executor.run([job])[0]
    return KernelUse(what, calls, calls * (found.cost if estimated else found.seconds), found.reason)


def _uses(module: ModuleOp, kernel: KernelOp, sizes: Mapping[str, int]) -> tuple[int, dict[str, int]]:
    """Returns the number of regions that call a kernel, and the sizes of its symbols in the first region whose dims
    follow from `sizes`."""
    name = kernel.sym_name.data
    regions = [op for op in module.walk() if isinstance(op, RegionOp) and op.kernel_name == name]
    for region in regions:
        try:
            shapes = [shape_of(value.type, sizes) for value in region.operands]
        except KeyError:
            continue
        return len(regions), sizes_of([a.type for a in kernel.block.args], shapes)
    return max(1, len(regions)), {}


def _require_known(sizes: Mapping[str, int], module: ModuleOp, kernels: Mapping[str, KernelOp]) -> None:
    known = {name for kernel in kernels.values() for name in kernel.symbol_names}
    for op in module.walk():
        for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)):
            try:
                known |= {name for dim in dims_of(value.type) for name in dim.symbols}
            except ValueError:
                continue
    unknown = sorted(set(sizes) - known)
    if unknown:
        raise IgniterError(f"there is no dim '{unknown[0]}' to size; there are: {', '.join(sorted(known)) or 'none'}")
