"""`lower-programs`: lowers a program to a scheduled kernel that calls the kernels of its regions.

    %y = fusion.program @p0 (%x = ... : tensor<?x8xf32, #sym.dims<n, 8>>) -> (tensor<?xf32, #sym.dims<8*n>>) {
      %a = fusion.region @r0 (%b = %x : ...) kernel @r0 -> (tensor<?x8xf32, ..>) { .. }
      %v = onnx.Reshape(%a, %s) : ... -> tensor<?xf32, #sym.dims<8*n>>
      %c = fusion.region @r1 (%d = %v : ...) kernel @r1 -> (tensor<?xf32, ..>) { .. }
      fusion.yield %c : ...
    }

adds

    loop.func @p0 symbols [n] (%x : memref<?x8xf32, ..>, %y : memref<?xf32, ..>) outputs 1 {
      %a = loop.alloc "r0" : memref<?x8xf32, .., "scratch">
      %s = loop.alloc "r0.scratch" : memref<?xi8, #sym.dims<64*n>, "scratch">
      loop.call @r0 symbols [n] (%x) -> (%a) scratch %s
      %v = loop.view %a : memref<?x8xf32, .., "scratch"> to memref<?xf32, ..>
      loop.call @r1 symbols [8*n] (%v) -> (%y)
    }

Tensors between kernels are arena buffers, which `plan-buffers` places by live range; the scratch memory of a kernel is
live only during its call. The kernel that computes a result of the program writes it directly. The program takes over
the requirements of kernels and views, in its own symbols and with the names of the nodes; their checks are its last
outputs. The values of a kernel's symbols come from the dims of its inputs, as in the kernel itself.

A Loop or a Scan becomes a sequential loop around the calls of its body (`lower_program_loops.py`). Steps on images
whose batch fits no cache become a loop over the batch (`lower_program_batches.py`); `batches=false` disables this.

The pass requires scheduled and planned kernels in the module (`cpu-schedule`), or for emitted kernels the ops of an
`ort.library`, and programs (`form-programs`). It does not change the program's ops. A program that cannot be lowered
fails alone (`igniter.isolation`). With `profile` each program has an additional output, the time stamps between its
calls, all on whole batches. A program for which the machine keeps threads together is marked (`team`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i8, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import IsTerminator

from igniter.analysis.fusion.graph import node_label, region_nodes
from igniter.analysis.fusion.program_batches import Batch, batches_of
from igniter.analysis.machine import machine_of
from igniter.analysis.scheduled.teams import team_for
from igniter.analysis.typical_sizes import give_sizes, sizes_of
from igniter.dialects.fusion import DimsOp, ProgramOp, RegionOp, is_step
from igniter.dialects.loop import AccumulateOp, AllocOp, CallOp, ClockOp, ForOp, FuncOp, LoadOp, StoreOp, ViewOp
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.requirements import node_requirements
from igniter.dialects.ort import LibraryOp, OpOp
from igniter.dialects.sym import dims_of, element_of, memref_of, space_of
from igniter.dialects.sym.bind_symbols import Bind, Check, bind_symbols
from igniter.dialects.sym.expr import ZERO, Expr, floordiv
from igniter.dialects.sym.requirements import FINE, DataCheck, Requirement, unproven
from igniter.errors import IgniterError
from igniter.isolation import attempt
from igniter.remarks import remark
from igniter.transforms.fusion.inline_failed_regions import mark_group


@dataclass(frozen=True)
class LowerPrograms(ModulePass):
    """Lowers every fusion.program to a loop.func that calls the kernels of its regions."""

    name = "lower-programs"

    profile: bool = False
    """Gives each program an additional output, the time stamps between its calls."""
    batches: bool = True
    """Allows steps to run for one element of a batch at a time."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from igniter.transforms.scheduled.form_ort_library import describe

        funcs = {f.sym_name.data: f for f in op.ops if isinstance(f, FuncOp)}
        programs = [p for p in op.walk() if isinstance(p, ProgramOp) and p.label not in funcs]
        called = {region.kernel_name for program in programs for region in program.calls}
        # An emitted kernel is gone; its op describes the arguments of a call.
        kernels = {o.kernel_name: o for library in op.ops if isinstance(library, LibraryOp) for o in library.ops}
        kernels |= {name: describe(func) for name, func in funcs.items() if name in called}
        sizes = sizes_of(ctx, op)
        for program in programs:
            batches: list[Batch] = []
            step = partial(self._lower, ctx, program, kernels, sizes, batches)
            func = attempt(ctx, step, partial(mark_group, program))
            if func is not None:
                give_sizes(func, sizes)
                func.team = team_for(func, machine_of(ctx))
                op.body.block.add_op(func)
                for batch in batches:
                    count = sum(isinstance(step, RegionOp) for step in batch.ops)
                    message = f"{count} steps run for one element of '{batch.symbol}' at a time"
                    remark(ctx, self.name, program.label, "applied", message)

    def _lower(
        self,
        ctx: Context,
        program: ProgramOp,
        kernels: Mapping[str, OpOp],
        sizes: Mapping[str, int],
        batches: list[Batch],
    ) -> FuncOp:
        """Returns the func of one program; appends its batch loops to `batches`."""
        if self.batches and not self.profile:
            batches += batches_of(program, machine_of(ctx), sizes)
        return lower_program(program, kernels, self.profile, batches)


def lower_program(
    program: ProgramOp, kernels: Mapping[str, OpOp], profile: bool = False, batches: Sequence[Batch] = ()
) -> FuncOp:
    """Returns the scheduled kernel of a program. `kernels` gives the signature of every kernel by name. `batches` are
    steps that run for one element of a batch at a time."""
    return ProgramLowering(program, kernels, profile, batches).run()


def time_stamps(program: ProgramOp) -> int:
    """Returns the number of elements in the time-stamp output of a profiled program."""
    return len(program.steps) + 1


class ProgramLowering:
    """The lowering of one program: statements are added to `block`; `buffers` maps tensors to buffers."""

    def __init__(self, program: ProgramOp, kernels: Mapping[str, OpOp], profile: bool, batches: Sequence[Batch]):
        self.program = program
        self.kernels = kernels
        self.batches = {batch.ops[0]: batch for batch in batches}
        self.fixed: dict[str, Expr] = {}
        """Symbols with a fixed value at the insertion point: a batch inside its loop."""
        self.func_block = self.block = Block()
        self.buffers: dict[SSAValue, SSAValue] = {}
        self.profile = profile
        self.stamps: SSAValue | None = None
        self.stamped = 0
        self.axes = 0
        self.requires: list[Requirement] = []
        self.checks: list[DataCheck] = []
        self.taken = {s for arg in program.block.args for d in dims_of(arg.type) for s in d.symbols}

    def run(self) -> FuncOp:
        from igniter.transforms.conversion.lower_program_batches import lower_batch

        program = self.program
        for arg in program.block.args:
            self.buffers[arg] = self._argument(_memref(arg.type), arg.name_hint)
        outputs = [self._argument(_memref(v.type), v.name_hint) for v in program.yielded]
        copies = [(v, out) for v, out in zip(program.yielded, outputs, strict=True) if not self.compute_into(v, out)]
        if self.profile:
            self.stamps = self._argument(memref_of(i64, [time_stamps(program)]), None)
        self._stamp()
        done: set[Operation] = set()
        for op in (op for op in program.block.ops if op not in done):
            if op in self.batches:
                lower_batch(self, self.batches[op])
                done.update(self.batches[op].ops)
                continue
            self.lower(op)
            if is_step(op):
                self._stamp()
        for value, output in copies:
            self.copy(self.buffers[value], output)
        count = len(outputs) + (self.stamps is not None) + len(self.checks)
        requires, body = unproven(self.requires), Region(self.func_block)
        return FuncOp(program.label, self._symbols(), count, body, requires=requires, checks=self.checks)

    def lower(self, op: Operation) -> None:
        """Adds the statements for one op of the program or of a loop body."""
        from igniter.transforms.conversion.lower_program_loops import lower_loop

        if isinstance(op, RegionOp):
            self._call(op)
        elif is_step(op):
            lower_loop(self, op)
        elif not isinstance(op, DimsOp) and not op.has_trait(IsTerminator) and op.name not in _COMPILE_TIME:
            self._view(op)

    def add(self, op: OpT) -> OpT:
        """Adds a statement."""
        self.block.add_op(op)
        return op

    def axis(self, prefix: str) -> str:
        """Returns a unique name for a loop."""
        self.axes += 1
        while f"{prefix}{self.axes}" in self.taken:
            self.axes += 1
        return f"{prefix}{self.axes}"

    def _argument(self, memref: Attribute, name: str | None) -> SSAValue:
        arg = self.func_block.insert_arg(memref, len(self.func_block.args))
        arg.name_hint = name
        return arg

    def _symbols(self) -> list[str]:
        dims = [dims_of(arg.type) for arg in self.program.block.args]
        bound = bind_symbols([(d, True) for d in dims]).bound
        named = dict.fromkeys(s for of_arg in dims for d in of_arg for s in sorted(d.symbols))
        return [s for s in named if s in bound]

    def compute_into(self, value: SSAValue, output: SSAValue) -> bool:
        """Makes the producer of a value in this block write `output` directly; False if a copy is needed."""
        source = value
        while isinstance(source.owner, Operation) and source not in self.buffers and not is_step(source.owner):
            if source.owner.name in _COMPILE_TIME:
                return False
            source = source.owner.operands[0]
        if source in self.buffers or value in self.buffers or not isinstance(source.owner, Operation):
            return False
        memref = _memref(source.type)
        same = dims_of(memref) == dims_of(output.type)
        self.buffers[source] = output if same else self.view_of(output, memref)
        self.buffers[value] = output
        return True

    def view_of(self, buffer: SSAValue, memref: Attribute) -> SSAValue:
        """Returns the buffer with other dims."""
        return self.add(ViewOp(buffer, memref)).result

    def _view(self, op: Operation) -> None:
        (result,) = op.results
        if isinstance(op, OnnxOp):
            self.requires += [r.at(node_label(op)) for r in node_requirements(op)]
        if result in self.buffers:
            return
        self.buffers[result] = self.view_of(self.buffers[op.operands[0]], self._here(_memref(result.type)))
        self.buffers[result].name_hint = result.name_hint

    def _here(self, memref: Attribute) -> Attribute:
        """Returns the type of a buffer at the insertion point."""
        if not self.fixed:
            return memref
        return memref_of(
            element_of(memref), [d.substitute(self.fixed) for d in dims_of(memref)], space_of(memref) or None
        )

    def alloc(self, label: str, memref: Attribute, name: str | None = None) -> SSAValue:
        """Allocates a buffer, in the arena or in the space of `memref`."""
        alloc = self.add(AllocOp(label, memref))
        alloc.result.name_hint = name
        return alloc.result

    def _call(self, region: RegionOp) -> None:
        name = region.kernel_name
        kernel = None if name is None else self.kernels.get(name)
        if name is None or kernel is None:
            raise IgniterError(
                f"lower-programs: the kernel of region @{region.label} in program @{self.program.label} is not "
                "scheduled; run cpu-loop and cpu-schedule first"
            )
        for result in region.results:
            if result not in self.buffers:
                memref = self._here(_memref(result.type, "scratch"))
                self.buffers[result] = self.alloc(region.label, memref, result.name_hint)
        values = _symbol_values(region, kernel)
        for requirement in (r.substitute(values) for r in with_names(kernel.requires, region)):
            self.requires.append(requirement)
            # A requirement on the batch must also hold for the elements that the kernel is called with.
            if requirement.symbols & self.fixed.keys():
                self.requires.append(requirement.substitute(self.fixed))
        here = {name: value.substitute(self.fixed) for name, value in values.items()}
        size = kernel.scratch.substitute(here)
        scratch = None if size == ZERO else self.alloc(f"{name}.scratch", memref_of(i8, [size], "scratch"))
        inputs, outputs = [self.buffers[v] for v in region.inputs], [self.buffers[v] for v in region.results]
        found: list[tuple[SSAValue, SSAValue]] = []
        for check in with_names(kernel.checks, region):
            total = self._argument(memref_of(i64, []), None)
            self.checks.append(check.substitute(values))
            outputs.append(total)
            if self.block is not self.func_block:
                outputs[-1] = self.alloc("check", memref_of(i64, [], "scratch"))
                found.append((outputs[-1], total))
        self.add(CallOp(name, [here[s] for s in kernel.symbol_names], inputs, outputs, scratch))
        for value, total in found:
            self._note(value, total)

    def _note(self, value: SSAValue, total: SSAValue) -> None:
        """Accumulates the check result of an iteration: the call reports the findings of all iterations."""
        fine = arith.ConstantOp(IntegerAttr(FINE, i64))
        first = self.func_block.first_op
        assert first is not None
        self.func_block.insert_ops_before([fine, StoreOp(fine.result, total, [])], first)
        load = self.add(LoadOp(value, []))
        self.add(AccumulateOp("max", load.result, total, []))

    def _stamp(self) -> None:
        if self.stamps is not None:
            clock = self.add(ClockOp())
            self.add(StoreOp(clock.result, self.stamps, [self.stamped]))
            self.stamped += 1

    def copy(self, source: SSAValue, target: SSAValue) -> None:
        """Copies every element of a buffer to another one with the same dims."""
        self.copy_elements(source, target, dims_of(target.type), lambda at: (at, at))

    def copy_elements(
        self,
        source: SSAValue,
        target: SSAValue,
        dims: Sequence[Expr],
        places: Callable[[list[Expr]], tuple[Sequence[Expr], Sequence[Expr]]],
        **access: Any,
    ) -> None:
        """Copies elements: for every point of `dims`, from the first subscripts of `places` to the second. `access` are
        additional arguments of the loads."""
        if ZERO in dims:
            return
        names: list[str] = []
        block = self.block
        for dim in dims:
            names.append(self.axis("c"))
            body = Block()
            block.add_op(ForOp(names[-1], 0, dim, body))
            block = body
        origin, goal = places([Expr.of(n) for n in names])
        load = LoadOp(source, origin, **access)
        block.add_ops([load, StoreOp(load.result, target, goal)])


_COMPILE_TIME = ("onnx.Constant", "onnx.NoValue")
OpT = TypeVar("OpT", bound=Operation)


Fact = TypeVar("Fact", Requirement, DataCheck)


def with_names(facts: Iterable[Fact], region: RegionOp) -> list[Fact]:
    """Returns the requirements or checks of a region's kernel, with the names of this region's nodes."""
    names = [node_label(op) for op in region_nodes(region)]
    return [f.at(names[f.node]) if isinstance(f.node, int) and f.node < len(names) else f for f in facts]


def _memref(tensor: Attribute, space: str | None = None) -> Attribute:
    return memref_of(element_of(tensor), dims_of(tensor), space)


def _symbol_values(region: RegionOp, kernel: OpOp) -> dict[str, Expr]:
    """Returns the values of the kernel's symbols in terms of the region's."""
    given = [dims_of(value.type) for value in region.inputs]
    values: dict[str, Expr] = {}
    for step in bind_symbols([(p.dims, True) for p in kernel.inputs]).steps:
        if isinstance(step, Check) or step.symbol in values:
            continue
        dim = given[step.input][step.axis]
        if isinstance(step, Bind):
            values[step.symbol] = dim
            continue
        rest = dim - step.rest.substitute(values)
        values[step.symbol] = floordiv(rest if step.coefficient > 0 else -rest, Expr.of(abs(step.coefficient)))
    missing = sorted(set(kernel.symbol_names) - values.keys())
    if missing:
        raise IgniterError(f"lower-programs: '{missing[0]}' is not a dim of any input of region @{region.label}")
    return values
