"""The memory of a model under Igniter: a plan of the rewritten graph, and the arena of every program.

The rewritten graph has few nodes: programs, and nodes left to ONNX Runtime. Its plan is that of any model
(`igniter/toolbox/plan/plan.py`), with one more value for each program, its arena, live during the program. A program
is a list of kernels; `plan-buffers` places the values between them in the arena.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from igniter.analysis.fusion.program_steps import Step, region_step
from igniter.api import is_fused
from igniter.compiler.compilation import Compilation, CompileOptions
from igniter.compiler.driver import make_fusion, make_loop, make_onnx, make_programs
from igniter.dialects.sym.expr import ZERO, Expr
from igniter.errors import IgniterError
from igniter.runtime.cache import default_cache
from igniter.toolbox.plan.plan import Buffer, MemoryPlan, largest, plan_memory
from igniter.transforms.scheduled.plan_buffers import call_statements, live_buffers

if TYPE_CHECKING:
    from igniter.api import Module
    from igniter.dialects.fusion import ProgramOp
    from igniter.dialects.loop import FuncOp


@dataclass(frozen=True)
class ArenaPlan:
    """The arena of one program: the calls of kernels in order, and its buffers, with live ranges in numbers of
    calls."""

    program: str
    calls: tuple[Step, ...]
    buffers: tuple[Buffer, ...]
    total: Expr

    @cached_property
    def native(self) -> Expr:
        """The bytes without sharing: memory of its own for every buffer."""
        return sum((b.size for b in self.buffers), ZERO)

    def live(self) -> list[Expr]:
        """Returns the bytes in use in each call."""
        return [sum((b.size for b in self.buffers if b.first <= k <= b.last), ZERO) for k in range(len(self.calls))]

    @cached_property
    def lower_bound(self) -> Expr:
        """The most bytes in use in one call. A buffer may replace another one at that one's last read in the same call,
        so the total can be less."""
        return largest(self.live())

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values; expressions are text."""
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
    """The plan of a compiled model: the graph run by ONNX Runtime, and its arenas by program."""

    graph: MemoryPlan
    arenas: tuple[ArenaPlan, ...]
    target: str

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values."""
        return {
            "target": self.target,
            "graph": self.graph.to_dict(),
            "programs": [arena.to_dict() for arena in self.arenas],
        }


def plan_compiled(module: Module, sizes: Mapping[str, int] | None = None, target: str = "native") -> CompiledPlan:
    """Plans the memory of a model compiled for a target: a copy of `module` is compiled up to the calls of its
    programs. A region that could be an op of its own counts as a program.

    `sizes` are of symbols. Raises `IgniterError` for a size of an unknown symbol, or if the module is already lowered.
    """
    return plan_programs(*compiled_programs(module, CompileOptions(target=target)), sizes)


def compiled_programs(module: Module, options: CompileOptions) -> tuple[Compilation, list[tuple[ProgramOp, FuncOp]]]:
    """Compiles a copy of a module up to the calls of its programs; returns both."""
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
    """Plans the memory of a compilation whose programs exist."""
    scratch = {program: func.scratch_bytes or ZERO for program, func in programs}
    plan = plan_memory(c.module, sizes, arenas={p: e for p, e in scratch.items() if e != ZERO})
    arenas = tuple(_arena(program, func, plan.sizes) for program, func in programs)
    return CompiledPlan(plan, arenas, c.options.target)


def _arena(program: ProgramOp, func: FuncOp, sizes: Mapping[str, int]) -> ArenaPlan:
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
