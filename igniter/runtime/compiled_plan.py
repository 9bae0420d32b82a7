"""The memory of a model as Igniter runs it: a plan of the rewritten graph, and the arena of every program.

The rewritten graph has few nodes: programs, and what stays with ONNX Runtime. Its plan is that of any model
(`igniter/analysis/model/plan.py`), with one value more for each program, its arena, which is there while the program
runs. Inside, a program is a list of kernels, and what passes between these lies in the arena where `plan-buffers` puts
it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from igniter.analysis.fusion.program_steps import Step, region_step
from igniter.analysis.model.plan import Buffer, MemoryPlan, largest, plan_memory
from igniter.compilation import Compilation, CompileOptions
from igniter.dialects.sym.expr import ZERO, Expr
from igniter.errors import IgniterError

if TYPE_CHECKING:
    from igniter.api import Module
    from igniter.dialects.fusion import ProgramOp
    from igniter.dialects.loop import FuncOp


@dataclass(frozen=True)
class ArenaPlan:
    """The arena of one program: the calls of kernels in order, and its buffers, which live in calls by number."""

    program: str
    calls: tuple[Step, ...]
    buffers: tuple[Buffer, ...]
    total: Expr

    @cached_property
    def native(self) -> Expr:
        """The bytes with memory of its own for every buffer."""
        return sum((b.size for b in self.buffers), ZERO)

    def live(self) -> list[Expr]:
        """The bytes in use in each call."""
        return [sum((b.size for b in self.buffers if b.first <= k <= b.last), ZERO) for k in range(len(self.calls))]

    @cached_property
    def lower_bound(self) -> Expr:
        """The most bytes in use in one call. A buffer may be in the place of another that the same call reads for the
        last time, so the total can be less."""
        return largest(self.live())

    def to_dict(self) -> dict[str, Any]:
        """JSON values; expressions are text."""
        return {
            "program": self.program,
            "native": str(self.native),
            "total": str(self.total),
            "lower_bound": str(self.lower_bound),
            "calls": [call.to_dict() for call in self.calls],
            "buffers": [b.to_dict() for b in self.buffers],
        }


@dataclass(frozen=True)
class CompiledPlan:
    """A compiled model: the plan of the graph that ONNX Runtime runs, and the arenas in it by program."""

    graph: MemoryPlan
    arenas: tuple[ArenaPlan, ...]
    target: str

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "target": self.target,
            "graph": self.graph.to_dict(),
            "programs": [arena.to_dict() for arena in self.arenas],
        }


def plan_compiled(module: Module, sizes: Mapping[str, int] | None = None, target: str = "native") -> CompiledPlan:
    """The memory of a model as it is when compiled for a target: a copy of `module` is compiled as far as the calls of
    its programs. A region that could be an op of its own is taken to be a program.

    `sizes` are of symbols. `IgniterError` where a size is of no symbol, or the module has been lowered already.
    """
    return plan_programs(*compiled_programs(module, CompileOptions(target=target)), sizes)


def compiled_programs(module: Module, options: CompileOptions) -> tuple[Compilation, list[tuple[ProgramOp, FuncOp]]]:
    """A copy of a module compiled as far as the calls of its programs, and these."""
    from igniter.api import is_fused
    from igniter.driver import make_fusion, make_loop, make_onnx, make_programs
    from igniter.runtime.cache import default_cache

    if is_fused(module.ir) or not any(op.name == "onnx.graph" for op in module.ir.ops):
        raise IgniterError("the module has been lowered already: give the model, or IR of the onnx level")
    copy = module.clone()
    c = Compilation(copy.ir, options, copy.ctx, cache=default_cache())
    make_onnx(c)
    make_fusion(c)
    make_loop(c)
    return c, make_programs(c)


def plan_programs(
    c: Compilation, programs: Sequence[tuple[ProgramOp, FuncOp]], sizes: Mapping[str, int] | None = None
) -> CompiledPlan:
    """The plan of a compilation whose programs have been made."""
    scratch = {program: func.scratch_bytes or ZERO for program, func in programs}
    plan = plan_memory(c.module, sizes, arenas={p: e for p, e in scratch.items() if e != ZERO})
    arenas = tuple(_arena(program, func, plan.sizes) for program, func in programs)
    return CompiledPlan(plan, arenas, c.options.target)


def _arena(program: ProgramOp, func: FuncOp, sizes: Mapping[str, int]) -> ArenaPlan:
    from igniter.transforms.scheduled.plan_buffers import call_statements, live_buffers

    values = {name: Expr.of(size) for name, size in sizes.items()}
    at = call_statements(func)
    buffers: list[Buffer] = []
    for buffer in live_buffers(func):
        first, last = bisect_left(at, buffer.first), bisect_right(at, buffer.last) - 1
        offset = buffer.alloc.offset
        assert offset is not None
        offset, size = offset.substitute(values), buffer.size.substitute(values)
        buffers.append(Buffer(offset, size, first, max(first, last), (buffer.alloc.label.data,)))
    calls = tuple(region_step(region) for region in program.calls)
    total = (func.scratch_bytes or ZERO).substitute(values)
    return ArenaPlan(program.label, calls, tuple(buffers), total)
