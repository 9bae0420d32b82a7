"""`lower-programs`: a program as a scheduled kernel that calls those of its regions.

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

What passes between kernels is a buffer of the arena, which `plan-buffers` places by liveness; the memory that a kernel
itself works in is one that lives during its call only. A result of the program is written by the kernel that computes
it. What the kernels and the views require, the program does, in its own symbols and with the names of the nodes; their
checks are its last outputs. The
values of a kernel's symbols are found where the kernel would find them: in the dims of its inputs.

It requires scheduled and planned kernels in the module (`cpu-schedule`) and programs (`form-programs`), and leaves the
program's ops as they are. With `profile` each program has one more output, the time stamps between its calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i8, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.bind_symbols import Bind, Check, bind_symbols
from igniter.analysis.expr import ZERO, Expr, floordiv
from igniter.analysis.fusion_graph import node_label, region_nodes
from igniter.analysis.requirements import DataCheck, Requirement, unproven
from igniter.dialects.fusion import DimsOp, ProgramOp, RegionOp
from igniter.dialects.loop import AllocOp, CallOp, ClockOp, ForOp, FuncOp, LoadOp, StoreOp, ViewOp
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.requirements import node_requirements
from igniter.dialects.ort import OpOp
from igniter.dialects.sym import dims_of, element_of, memref_of
from igniter.errors import IgniterError


@dataclass(frozen=True)
class LowerPrograms(ModulePass):
    """Lowers every fusion.program to a loop.func that calls the kernels of its regions."""

    name = "lower-programs"

    profile: bool = False
    """Whether each program has one more output, the time stamps between its calls."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from igniter.transforms.form_ort_library import describe

        funcs = {f.sym_name.data: f for f in op.ops if isinstance(f, FuncOp)}
        programs = [p for p in op.walk() if isinstance(p, ProgramOp) and p.label not in funcs]
        called = {region.kernel_name for program in programs for region in program.calls}
        kernels = {name: describe(func) for name, func in funcs.items() if name in called}
        for program in programs:
            op.body.block.add_op(lower_program(program, kernels, self.profile))


def lower_program(program: ProgramOp, kernels: Mapping[str, OpOp], profile: bool = False) -> FuncOp:
    """The scheduled kernel of a program; `kernels` says of every kernel by name what it takes and gives."""
    return _Lowering(program, kernels, profile).run()


def time_stamps(program: ProgramOp) -> int:
    """How many elements the last output of a program has that is compiled for a profile."""
    return len(program.calls) + 1


class _Lowering:
    def __init__(self, program: ProgramOp, kernels: Mapping[str, OpOp], profile: bool):
        self.program = program
        self.kernels = kernels
        self.block = Block()
        self.buffers: dict[SSAValue, SSAValue] = {}
        self.profile = profile
        self.stamps: SSAValue | None = None
        self.calls = 0
        self.axes = 0
        self.requires: list[Requirement] = []
        self.checks: list[DataCheck] = []

    def run(self) -> FuncOp:
        program = self.program
        for arg in program.block.args:
            self.buffers[arg] = self._argument(_memref(arg.type), arg.name_hint)
        outputs = [self._argument(_memref(v.type), v.name_hint) for v in program.yielded]
        copies = [(v, out) for v, out in zip(program.yielded, outputs, strict=True) if not self._compute_into(v, out)]
        if self.profile:
            self.stamps = self._argument(memref_of(i64, [time_stamps(program)]), None)
        self._stamp(0)
        for op in program.block.ops:
            if isinstance(op, RegionOp):
                self._call(op)
            elif op is not program.yield_op and not isinstance(op, DimsOp) and op.name != "onnx.Constant":
                self._view(op)
        for value, output in copies:
            self._copy(self.buffers[value], output)
        count = len(outputs) + (self.stamps is not None) + len(self.checks)
        requires, body = unproven(self.requires), Region(self.block)
        return FuncOp(program.label, self._symbols(), count, body, requires=requires, checks=self.checks)

    def _argument(self, memref: Attribute, name: str | None) -> SSAValue:
        arg = self.block.insert_arg(memref, len(self.block.args))
        arg.name_hint = name
        return arg

    def _symbols(self) -> list[str]:
        dims = [dims_of(arg.type) for arg in self.program.block.args]
        bound = bind_symbols([(d, True) for d in dims]).bound
        named = dict.fromkeys(s for of_arg in dims for d in of_arg for s in sorted(d.symbols))
        return [s for s in named if s in bound]

    def _compute_into(self, value: SSAValue, output: SSAValue) -> bool:
        """Makes the kernel behind a result write the caller's buffer; False where it needs a copy."""
        source = value
        while isinstance(source.owner, Operation) and not isinstance(source.owner, RegionOp):
            source = source.owner.operands[0]
        if not isinstance(source.owner, RegionOp) or source in self.buffers or value in self.buffers:
            return False
        memref = _memref(source.type)
        self.buffers[source] = output if memref == output.type else self._view_of(output, memref)
        self.buffers[value] = output
        return True

    def _view_of(self, buffer: SSAValue, memref: Attribute) -> SSAValue:
        view = ViewOp(buffer, memref)
        self.block.add_op(view)
        return view.result

    def _view(self, op: Operation) -> None:
        (result,) = op.results
        if isinstance(op, OnnxOp):
            self.requires += [r.at(node_label(op)) for r in node_requirements(op)]
        if result in self.buffers:
            return
        self.buffers[result] = self._view_of(self.buffers[op.operands[0]], _memref(result.type))
        self.buffers[result].name_hint = result.name_hint

    def _alloc(self, label: str, memref: Attribute, name: str | None = None) -> SSAValue:
        alloc = AllocOp(label, memref)
        alloc.result.name_hint = name
        self.block.add_op(alloc)
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
                self.buffers[result] = self._alloc(region.label, _memref(result.type, "scratch"), result.name_hint)
        values = _symbol_values(region, kernel)
        self.requires += [r.substitute(values) for r in with_names(kernel.requires, region)]
        size = kernel.scratch.substitute(values)
        scratch = None if size == ZERO else self._alloc(f"{name}.scratch", memref_of(i8, [size], "scratch"))
        inputs, outputs = [self.buffers[v] for v in region.inputs], [self.buffers[v] for v in region.results]
        for check in with_names(kernel.checks, region):
            outputs.append(self._argument(memref_of(i64, []), None))
            self.checks.append(check.substitute(values))
        self.block.add_op(CallOp(name, [values[s] for s in kernel.symbol_names], inputs, outputs, scratch))
        self.calls += 1
        self._stamp(self.calls)

    def _stamp(self, index: int) -> None:
        if self.stamps is not None:
            clock = ClockOp()
            self.block.add_ops([clock, StoreOp(clock.result, self.stamps, [index])])

    def _copy(self, source: SSAValue, target: SSAValue) -> None:
        """A result that another one shares its memory with, or an input has: views `form-programs` leaves outside."""
        if ZERO in dims_of(target.type):
            return
        taken = {s for arg in self.program.block.args for d in dims_of(arg.type) for s in d.symbols}
        names: list[str] = []
        block = self.block
        for dim in dims_of(target.type):
            self.axes += 1
            while f"c{self.axes}" in taken:
                self.axes += 1
            names.append(f"c{self.axes}")
            body = Block()
            block.add_op(ForOp(names[-1], 0, dim, body))
            block = body
        load = LoadOp(source, names)
        block.add_ops([load, StoreOp(load.result, target, names)])


Fact = TypeVar("Fact", Requirement, DataCheck)


def with_names(facts: Iterable[Fact], region: RegionOp) -> list[Fact]:
    """What the kernel of a region requires or checks, with the nodes of this region by name."""
    names = [node_label(op) for op in region_nodes(region)]
    return [f.at(names[f.node]) if isinstance(f.node, int) and f.node < len(names) else f for f in facts]


def _memref(tensor: Attribute, space: str | None = None) -> Attribute:
    return memref_of(element_of(tensor), dims_of(tensor), space)


def _symbol_values(region: RegionOp, kernel: OpOp) -> dict[str, Expr]:
    """The kernel's symbols in terms of the region's."""
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
        raise IgniterError(f"lower-programs: no dim of an input of region @{region.label} gives '{missing[0]}'")
    return values
