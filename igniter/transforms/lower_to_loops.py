"""`lower-to-loops`: from the structured to the scheduled level.

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

Every tensor gets a buffer: an output of the kernel its argument, any other an arena allocation. Reductions run in an
accumulator of their own, so that whatever happens to the loops around it, the sum is never in memory. The schedule of
a nest, if it has one, decides the order of its loops (`order`) and leaves hints on them (`loops`), which the passes
that follow consume. It stands first on the scheduled level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    DictionaryAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.expr import ZERO, Expr
from igniter.dialects.loop import (
    AccumulateOp,
    AllocOp,
    Axis,
    Clause,
    Combiner,
    ForOp,
    FuncOp,
    IndexOp,
    KernelOp,
    LoadOp,
    NestOp,
    ReadOp,
    ReturnOp,
    StoreOp,
    ViewOp,
    YieldOp,
    is_unsigned,
    scalar_type,
)
from igniter.dialects.loop.attrs import as_integer
from igniter.dialects.sym import dims_of, element_of, memref_of
from igniter.errors import IgniterError


@dataclass(frozen=True)
class LowerToLoops(ModulePass):
    """Lowers every loop.kernel to a loop.func: tensors to buffers, nests to loops."""

    name = "lower-to-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            func = lower_kernel(kernel)
            op.body.block.insert_op_before(func, kernel)
            kernel.detach()
            kernel.erase()


def identity(combiner: Combiner, element: Attribute) -> arith.ConstantOp:
    """What leaves any value unchanged under `combiner`, as a constant of the body's type for `element`."""
    scalar = scalar_type(element)
    if isinstance(scalar, (Float16Type, BFloat16Type, Float32Type, Float64Type)):
        number = {"add": 0.0, "mul": 1.0, "max": -math.inf, "min": math.inf, "none": 0.0}.get(combiner)
        if number is None:
            raise IgniterError(f"lower-to-loops: '{combiner}' does not combine {element}")
        return arith.ConstantOp(FloatAttr(number, scalar))
    integer = as_integer(scalar)
    if integer is None:
        raise IgniterError(f"lower-to-loops: no reduction of elements of type {element}")
    width = integer.width.data
    low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
    if is_unsigned(element) or width == 1:
        low, high = 0, (1 << width) - 1
    ones = 1 if width == 1 else -1
    value = {"add": 0, "mul": 1, "max": low, "min": high, "and": ones, "or": 0, "xor": 0, "none": 0}[combiner]
    return arith.ConstantOp(IntegerAttr(value, IntegerType(width), truncate_bits=True))


def lower_kernel(kernel: KernelOp) -> FuncOp:
    """The loop.func that does what `kernel` means, one loop nest after the other."""
    return _Lowering(kernel).run()


class _Lowering:
    def __init__(self, kernel: KernelOp):
        self.kernel = kernel
        self.buffers: dict[SSAValue, SSAValue] = {}
        self.names: set[str] = set(kernel.symbol_names)
        self.block = Block()

    def run(self) -> FuncOp:
        kernel = self.kernel
        for arg in kernel.block.args:
            buffer = self.block.insert_arg(memref_of(element_of(arg.type), dims_of(arg.type)), len(self.block.args))
            buffer.name_hint = arg.name_hint
            self.buffers[arg] = buffer
        returned = kernel.returned
        outputs = [self.block.insert_arg(self._memref(v), len(self.block.args)) for v in returned]
        copies: list[tuple[SSAValue, SSAValue]] = []
        for value, output in zip(returned, outputs, strict=True):
            if not self._produce_into(value, output):
                copies.append((value, output))
        for op in kernel.block.ops:
            if isinstance(op, NestOp):
                self._nest(op)
            elif isinstance(op, ViewOp):
                self._view(op)
        for value, output in copies:
            self._copy(self.buffers[value], output)
        attributes = dict(kernel.attributes.items())
        return FuncOp(kernel.sym_name.data, kernel.symbol_names, len(outputs), Region(self.block), None, attributes)

    def _memref(self, value: SSAValue, space: str | None = None) -> Attribute:
        return memref_of(element_of(value.type), dims_of(value.type), space)

    def _produce_into(self, value: SSAValue, output: SSAValue) -> bool:
        """Makes the nest behind a returned value write the caller's buffer; False when it needs a copy."""
        source = value
        while isinstance(source.owner, ViewOp):
            source = source.owner.source
        if not isinstance(source.owner, NestOp) or source in self.buffers:
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

    def _nest(self, nest: NestOp) -> None:
        for result in nest.outputs:
            if result not in self.buffers:
                alloc = AllocOp(nest.label, self._memref(result, "scratch"))
                alloc.result.name_hint = result.name_hint
                self.block.add_op(alloc)
                self.buffers[result] = alloc.result
        axes = _ordered(nest)
        if any(a.kind == "parallel" and a.extent == ZERO for a in axes):
            return  # nothing to compute; the buffers are there, and empty
        rename = {a.name: self._axis(a.name) for a in axes}
        self._loops(nest, axes, rename, self.block)

    def _loops(self, nest: NestOp, axes: Sequence[Axis], rename: dict[str, str], block: Block) -> None:
        values = {old: Expr.of(new) for old, new in rename.items()}
        for axis in (a for a in axes if a.kind == "parallel"):
            block = self._open(nest, axis, rename[axis.name], block)
        clauses = nest.yield_op.clauses
        reductions = [a for a in axes if a.kind == "reduction"]
        accumulators: dict[int, SSAValue] = {}
        inner = block
        if reductions or any(c.combiner != "none" for c in clauses):
            for k, clause in enumerate(clauses):
                accumulators[k] = self._accumulator(nest, k, clause, block)
            for axis in reductions:
                inner = self._open(nest, axis, rename[axis.name], inner)
        mapping = self._body(nest, values, inner)
        for k, clause in enumerate(clauses):
            value = mapping.get(clause.value, clause.value)
            subscripts = [s.substitute(values) for s in clause.subscripts]
            target = self.buffers[nest.outputs[k]]
            if k in accumulators:
                inner.add_op(AccumulateOp(clause.combiner, value, accumulators[k], []))
                total = LoadOp(accumulators[k], [])
                block.add_op(total)
                value = total.result
            block.add_op(StoreOp(value, target, subscripts))

    def _accumulator(self, nest: NestOp, k: int, clause: Clause, block: Block) -> SSAValue:
        element = element_of(nest.outputs[k].type)
        alloc = AllocOp(nest.label, memref_of(element, [], "register"))
        zero = identity(clause.combiner, element)
        block.add_ops([alloc, zero, StoreOp(zero.result, alloc.result, [])])
        return alloc.result

    def _open(self, nest: NestOp, axis: Axis, name: str, block: Block) -> Block:
        body = Block()
        hints = _hints(nest, axis.name)
        block.add_op(ForOp(name, 0, axis.extent, body, reduction=axis.kind == "reduction", hints=hints))
        return body

    def _body(self, nest: NestOp, values: dict[str, Expr], block: Block) -> dict[SSAValue, SSAValue]:
        mapping: dict[SSAValue, SSAValue] = {}
        for op in nest.block.ops:
            if isinstance(op, YieldOp):
                continue
            copy: Operation
            if isinstance(op, ReadOp):
                copy = LoadOp(
                    self.buffers[op.source],
                    [s.substitute(values) for s in op.subscripts],
                    indices=[mapping[i] for i in op.indices],
                    guards=[g.substitute(values) for g in op.guards],
                    otherwise=None if op.otherwise is None else mapping[op.otherwise],
                )
            elif isinstance(op, IndexOp):
                copy = IndexOp(op.value.substitute(values))
            else:
                copy = op.clone(mapping)
            block.add_op(copy)
            for old, new in zip(op.results, copy.results, strict=True):
                new.name_hint = old.name_hint
                mapping[old] = new
        return mapping

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


def _ordered(nest: NestOp) -> list[Axis]:
    """The axes in the order that the schedule gives, else as written, parallel ones first."""
    order = nest.schedule.data.get("order") if nest.schedule is not None else None
    if not isinstance(order, ArrayAttr):
        return sorted(nest.axes, key=lambda a: a.kind == "reduction")
    names = [n.data for n in cast("ArrayAttr[Attribute]", order) if isinstance(n, StringAttr)]
    if sorted(names) != sorted(a.name for a in nest.axes):
        raise IgniterError(
            f"lower-to-loops: nest '{nest.label}': order {names} is no permutation of its axes "
            f"{[a.name for a in nest.axes]}"
        )
    by_name = {a.name: a for a in nest.axes}
    ordered = [by_name[n] for n in names]
    kinds = [a.kind for a in ordered]
    if kinds != sorted(kinds):
        raise IgniterError(
            f"lower-to-loops: nest '{nest.label}': order {names} puts a parallel axis inside a reduction; "
            "use the hint 'sink' on that axis, which sinks its loop after tiling"
        )
    return ordered


def _hints(nest: NestOp, axis: str) -> DictionaryAttr | None:
    loops = nest.schedule.data.get("loops") if nest.schedule is not None else None
    if not isinstance(loops, DictionaryAttr):
        return None
    unknown = loops.data.keys() - {a.name for a in nest.axes}
    if unknown:
        raise IgniterError(f"lower-to-loops: nest '{nest.label}': the schedule names {sorted(unknown)}, no axes of it")
    hints = loops.data.get(axis)
    return hints if isinstance(hints, DictionaryAttr) else None


__all__ = ["LowerToLoops", "ReturnOp", "identity", "lower_kernel"]
