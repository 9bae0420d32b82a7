"""The base of kernels of procedures: blocks of the dims of an algorithm (`igniter.dialects.loop.algorithms`).

Offsets and masks are as for nests (`launch_body.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import arith, scf
from xdsl.ir import Attribute, Block, Region, SSAValue

from igniter.dialects import triton as tt
from igniter.dialects.loop import ProcedureOp
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import Expr, linearize, symbols_of
from igniter.schedules.launch_groups import LaunchGroup, root_of
from igniter.transforms.conversion.block_builder import BlockBuilder
from igniter.transforms.conversion.launch_body import LaunchBody
from igniter.transforms.conversion.launch_values import Scope

if TYPE_CHECKING:
    from igniter.transforms.conversion.lower_to_triton import Dim

ROWS, STEPS, COLUMNS = Expr.of("rows"), Expr.of("steps"), Expr.of("columns")

MakeDim = Callable[[str, Expr], "Dim"]
"""Returns a dim of the procedure's schedule, by its name and its extent."""
Scratch = Callable[[Attribute, Sequence[Expr]], SSAValue]
"""Allocates a buffer between launches."""


class AlgorithmBody(LaunchBody):
    """The kernel of a launch of a procedure; `made` are scratch buffers that it reads or writes."""

    def __init__(
        self, name: str, group: LaunchGroup, dims: Sequence[Dim], symbols: Sequence[str], made: Sequence[SSAValue] = ()
    ):
        assert group.procedure is not None
        self.procedure: ProcedureOp = group.procedure
        self.made = tuple(made)
        tensors = dict.fromkeys((*(root_of(v) for v in self.procedure.inputs), *made, *self.procedure.outputs))
        super().__init__(name, group, dims, list(tensors), self.procedure.outputs, symbols)

    def _used(self) -> set[str]:
        values = (*self.procedure.inputs, *self.made, *self.procedure.outputs)
        return set(symbols_of(d for v in values for d in dims_of(v.type))) | set(
            symbols_of(d.extent for d in self.dims)
        )

    @property
    def source(self) -> SSAValue:
        """The operand of the algorithm."""
        return self.procedure.inputs[0]

    def masked(self, scope: Scope, *names: str) -> list[SSAValue]:
        """Returns the masks of partial blocks along these dims."""
        return self._mask(scope, frozenset(names))

    def at(self, scope: Scope, tensor: SSAValue, place: Sequence[Expr], **values: SSAValue) -> SSAValue:
        """Returns pointers to the elements of a tensor at subscripts over the dims and the names of `values`."""
        offset = scope.builder.expr(linearize(place, dims_of(tensor.type)), {**scope.index, **values})
        return self._pointers(scope.builder, tensor, offset)

    def load(self, scope: Scope, pointers: SSAValue, conditions: Sequence[SSAValue], otherwise: float = 0) -> SSAValue:
        """Loads elements, and takes a number where a condition fails."""
        builder, mask = scope.builder, scope.builder.all_of(conditions)
        if mask is None:
            return builder.add(tt.LoadOp(pointers))
        element = tt.element_type(pointers.type)
        assert isinstance(element, tt.PointerType)
        pointers, mask, other = builder.together([pointers, mask, builder.const(otherwise, element.pointee)])
        return builder.add(tt.LoadOp(pointers, mask, other))

    def store(self, scope: Scope, pointers: SSAValue, value: SSAValue, conditions: Sequence[SSAValue]) -> None:
        """Stores elements where all conditions hold."""
        builder, mask = scope.builder, scope.builder.all_of(conditions)
        given = builder.together([pointers, value, *([mask] if mask is not None else [])])
        builder.block.add_op(tt.StoreOp(*given))

    def shape(self, *names: str) -> tuple[int, ...]:
        """Returns the shape of blocks along these dims."""
        return self._shape(names)

    def reduced(self, scope: Scope, value: SSAValue, dim: str, combine: Callable[..., SSAValue]) -> SSAValue:
        """Returns a block reduced along a dim, to a dim of one."""
        if dim not in scope.laned or not tt.is_block(value.type):
            return value
        place = scope.laned.index(dim)
        if tt.shape_of(value.type)[place] == 1:
            return value
        element = tt.element_type(value.type)
        body = Block(arg_types=[element, element])
        made = combine(BlockBuilder(body, scope.builder.ranges), *body.args)
        body.add_op(tt.ReduceReturnOp([made]))
        value = scope.builder.add(tt.ReduceOp([value], place, Region(body)))
        return scope.builder.add(tt.ExpandDimsOp(value, place)) if tt.is_block(value.type) else value

    def scanned(
        self, scope: Scope, value: SSAValue, dim: str, combine: Callable[..., SSAValue], *, reverse: bool = False
    ) -> SSAValue:
        """Returns the running combinations of a block along a dim."""
        if dim not in scope.laned:
            return value
        element = tt.element_type(value.type)
        body = Block(arg_types=[element, element])
        made = combine(BlockBuilder(body, scope.builder.ranges), *body.args)
        body.add_op(tt.ScanReturnOp(made))
        return scope.builder.add(tt.ScanOp(value, scope.laned.index(dim), Region(body), reverse=reverse))

    def repeat(
        self,
        scope: Scope,
        count: SSAValue,
        carried: Sequence[SSAValue],
        step: Callable[[Scope, SSAValue, list[SSAValue]], Sequence[SSAValue]],
    ) -> list[SSAValue]:
        """Emits a loop of `count` iterations: `step` takes a scope, the number of the iteration and the carried values,
        and returns their next values."""
        builder = scope.builder
        body = Block(arg_types=[builder.index, *(v.type for v in carried)])
        inner = BlockBuilder(body, builder.ranges, builder.index)
        inside = Scope(inner, dict(scope.index), dict(scope.masks), scope.laned, dict(scope.firsts))
        body.add_op(scf.YieldOp(*step(inside, body.args[0], list(body.args[1:]))))
        first, by = builder.number(0), builder.number(1)
        loop = scf.ForOp(first, count, by, list(carried), Region(body))
        builder.block.add_op(loop)
        return list(loop.results)


def add(builder: BlockBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    """Adds integers."""
    return builder.binary(arith.AddiOp, a, b)
