"""`lower-to-loops`: lowers the structured to the scheduled level.

    %s = loop.nest "sum" [i: parallel n, k: reduction 768] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i, k] : f32
      loop.yield add %a at [i]
    }
becomes
    loop.for i = 0 to n {
      %acc = loop.alloc "sum" : memref<f32, "register">
      loop.store %zero, %acc[]
      loop.for k = 0 to 768 reduction {
        %a = loop.load %x[i, k] : f32
        loop.accumulate add %a, %acc[]
      }
      %v = loop.load %acc[] : f32
      loop.store %v, %s[i]
    }

Every tensor gets a buffer: an output of the kernel uses its argument, any other tensor an arena allocation. A reduction
has its own accumulator, so that the running sum is never in memory, whatever later passes do to the loops around it.
The schedule of a nest, if any, sets the loops and their order; its words stay on the loops, which later
passes consume. The pass is the first on the scheduled level.

A nest that updates some rows of an argument becomes a `loop.if_shared`: in place only these rows are written
(`update_loops.py`).

A kernel with variants becomes a `loop.if` on the sizes for each variant and one for the rest; later passes treat the
loops inside like any others.

The body of a `loop.procedure` is copied between loops over its axes; its schedule also covers its own loops.
`nest_loops.py` makes the loops of a nest from its schedule, `product_loops.py` those around a micro-kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ModuleOp,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.structured.updates import UpdateEnd, end_of_rows
from igniter.dialects.locations import name_added, name_of
from igniter.dialects.loop import (
    AllocOp,
    ComputeOp,
    ForOp,
    FuncOp,
    IfOp,
    IfSharedOp,
    KernelOp,
    LoadOp,
    NestOp,
    ProcedureOp,
    ReturnOp,
    StoreOp,
    ViewOp,
)
from igniter.dialects.loop.sharing import IN_PLACE
from igniter.dialects.loop.variants import guards_of
from igniter.dialects.loop.words import merged
from igniter.dialects.sym import dims_of, element_of, memref_of
from igniter.dialects.sym.expr import ZERO, Expr
from igniter.errors import IgniterError
from igniter.observation.statistics import Statistic
from igniter.transforms.conversion.nest_loops import levels_of
from igniter.transforms.conversion.nest_surroundings import surround
from igniter.transforms.conversion.product_loops import loops_of
from igniter.transforms.conversion.schedule_words import storage_of, words_inside
from igniter.transforms.conversion.update_loops import RowLoops, update_in_place
from igniter.transforms.scheduled.loop_rewrites import substitute_axes


@dataclass(frozen=True)
class LowerToLoops(ModulePass):
    """Lowers every loop.kernel to a loop.func: tensors to buffers, nests to loops."""

    name = "lower-to-loops"
    lowered = Statistic("nests lowered to loops")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            self.lowered.add(ctx, sum(isinstance(each, NestOp) for each in kernel.walk()))
            func = lower_kernel(kernel)
            op.body.block.insert_op_before(func, kernel)
            kernel.detach()
            kernel.erase()


def lower_kernel(kernel: KernelOp) -> FuncOp:
    """Returns the loop.func of `kernel`, one loop nest after another."""
    return _Lowering(kernel).run()


class _Lowering:
    def __init__(self, kernel: KernelOp):
        self.kernel = kernel
        self.buffers: dict[SSAValue, SSAValue] = {}
        self.ends: dict[SSAValue, UpdateEnd] = {}
        """The ends of the rows of tensors that may be updated in place."""
        self.names: set[str] = set(kernel.symbol_names)
        self.block = Block()

    def run(self) -> FuncOp:
        kernel, whole = self.kernel, self.block
        inputs: list[SSAValue] = []
        for arg in kernel.block.args:
            buffer = whole.insert_arg(memref_of(element_of(arg.type), dims_of(arg.type)), len(whole.args))
            buffer.name_hint = arg.name_hint
            inputs.append(buffer)
        outputs = [whole.insert_arg(self._memref(v), len(whole.args)) for v in kernel.returned]
        for version, guards in guards_of(kernel):
            if guards:
                self.block = Block()
                whole.add_op(IfOp(guards, self.block))
            self._version(version, inputs, outputs)
        attributes = dict(kernel.attributes.items())
        if any(isinstance(op, IfSharedOp) for op in whole.walk()):
            attributes[IN_PLACE] = UnitAttr()
        name, body = kernel.sym_name.data, Region(whole)
        facts = kernel.requires, kernel.checks, kernel.typical
        return FuncOp(name, kernel.symbol_names, len(outputs), body, None, attributes, *facts)

    def _version(self, kernel: KernelOp, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> None:
        """Adds the statements of the kernel or of one of its variants to the block."""
        self.buffers = dict(zip(kernel.block.args, inputs, strict=True))
        copies: list[tuple[SSAValue, SSAValue]] = []
        for value, output in zip(kernel.returned, outputs, strict=True):
            if not self._produce_into(value, output):
                copies.append((value, output))
        for nest in kernel.nests:
            if any(clause.otherwise is not None for clause in nest.yield_op.clauses):
                # Before all nests, so that nests with shared loops stay adjacent.
                self._allocate(nest)
                surround(nest, self.buffers, self._axis, self.block)
        for op in kernel.block.ops:
            if isinstance(op, NestOp):
                self._nest(op)
            elif isinstance(op, ProcedureOp):
                self._procedure(op)
            elif isinstance(op, ViewOp):
                self._view(op)
        for value, output in copies:
            self._copy(self.buffers[value], output)

    def _memref(self, value: SSAValue, space: str | None = None) -> Attribute:
        return memref_of(element_of(value.type), dims_of(value.type), space)

    def _produce_into(self, value: SSAValue, output: SSAValue) -> bool:
        """Makes the nest of a returned value write the caller's buffer; False if a copy is needed."""
        source = value
        while isinstance(source.owner, ViewOp):
            source = source.owner.source
        if not isinstance(source.owner, ComputeOp) or source in self.buffers:
            return False
        if source.type == value.type:
            self.buffers[source] = output
        else:
            view = ViewOp(output, self._memref(source))
            self.block.add_op(view)
            self.buffers[source] = view.result
        return True

    def _view(self, op: ViewOp) -> None:
        view = ViewOp(self.buffers[op.source], self._memref(op.result))
        self.block.add_op(view)
        self.buffers[op.result] = view.result

    def _axis(self, base: str) -> str:
        name, k = base, 1
        while name in self.names:
            name = f"{base}{k}" if not base[-1:].isdigit() else f"{base}_{k}"
            k += 1
        self.names.add(name)
        return name

    def _allocate(self, op: ComputeOp) -> None:
        storage = storage_of(op)
        for result in op.outputs:
            if result in self.buffers and storage is not None and not isinstance(self.buffers[result].owner, AllocOp):
                raise IgniterError(
                    f"{LowerToLoops.name}: nest '{op.label}' cannot have 'store': its result is a result of the "
                    "kernel, in the caller's memory"
                )
            if result not in self.buffers:
                alloc = AllocOp(op.label, self._memref(result, "scratch"), storage=storage)
                alloc.result.name_hint = result.name_hint
                self.block.add_op(alloc)
                self.buffers[result] = alloc.result

    def _procedure(self, op: ProcedureOp) -> None:
        """Emits the loops over the axes with the body inside; renames its loops and replaces its buffers."""
        self._allocate(op)
        mapping = dict(zip(op.read_buffers, (self.buffers[v] for v in op.inputs), strict=True))
        mapping |= zip(op.written_buffers, (self.buffers[r] for r in op.outputs), strict=True)
        values: dict[str, Expr] = {}
        block = self.block
        for level in levels_of(op):
            block = level.open(values, block, self._axis)
        copies = [statement.clone(mapping) for statement in op.block.ops]
        block.add_ops(copies)
        for loop in [inner for copy in copies for inner in copy.walk() if isinstance(inner, ForOp)]:
            loop.words = merged(words_inside(op, loop.axis), loop.words)
            name = self._axis(loop.axis)
            values[loop.axis] = Expr.of(name)
            loop.axis_attr = StringAttr(name)
        substitute_axes(copies, values)

    def _nest(self, nest: NestOp) -> None:
        self._allocate(nest)
        levels = levels_of(nest)
        if any(level.axis.kind == "parallel" and level.axis.extent == ZERO for level in levels):
            return  # nothing to compute; the buffers exist and are empty
        last = self.block.last_op
        update = update_in_place(nest, self.buffers)
        if update is None:
            loops_of(nest, levels, self.buffers, self._axis, self.ends).lower(self.block)
        else:
            shared, apart = Block(), Block()
            RowLoops(nest, self.buffers, self._axis, update).lower(shared)
            loops_of(nest, levels, self.buffers, self._axis, {}).lower(apart)
            self.block.add_op(IfSharedOp(self.buffers[update.past], self.buffers[nest.outputs[0]], shared, apart))
            end = end_of_rows(nest, update)
            if end is not None:
                self.ends[nest.outputs[0]] = end
        name_added(self.block, last, name_of(nest.yield_op))

    def _copy(self, source: SSAValue, target: SSAValue) -> None:
        if ZERO in dims_of(target.type):
            return
        block = self.block
        names = [self._axis("c") for _ in dims_of(target.type)]
        for name, dim in zip(names, dims_of(target.type), strict=True):
            body = Block()
            block.add_op(ForOp(name, 0, dim, body))
            block = body
        load = LoadOp(source, names)
        block.add_ops([load, StoreOp(load.result, target, names)])


__all__ = ["LowerToLoops", "ReturnOp", "lower_kernel"]
