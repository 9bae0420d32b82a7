"""`hoist-selections`: moves a selection of rows above the nodes that compute each row by itself.

    %h = onnx.MatMul(%x, %w)                            %s = onnx.Gather(%x, %i)       // one row of n
    %y = onnx.Add(%h, %r)                    ->         %t = onnx.Gather(%r, %i)
    %z = onnx.Gather(%y, %i) {axis = 1}                 %h = onnx.MatMul(%s, %w)
                                                        %y = onnx.Add(%h, %t)

A decoder computes the logits of the last position of a prompt, and a classifier reads the first token: no other row of
the last layer's products is read. The selection is a Gather with constant indices, or a Slice with constant bounds
along one axis. It moves through products with weights, normalisations of rows and elementwise nodes
(`igniter/analysis/onnx/row_operands.py`), as long as nothing else reads their results, up to the attention, whose keys
come from all rows. Each row is computed from the same numbers as before.

The pass leaves a selection unless a product or a normalisation gets at most half of the rows at typical sizes: more
rows save little, and a product of a view of rows has a batch that cannot be merged with its rows. It runs after
`recompose`, which makes single nodes of normalisations.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.onnx.row_operands import NORMALISATIONS, PRODUCTS, row_operands
from igniter.analysis.typical_sizes import MEMORY, TypicalSizes, sizes_of
from igniter.dialects.onnx.attributes import ints_attr
from igniter.dialects.onnx.base import OnnxOp, constant_value, make_constant
from igniter.dialects.onnx.ops.block_products import MOST_ROWS
from igniter.dialects.onnx.registry import MANY_ROWS_ATTRIBUTE, VALUES_ATTRIBUTE
from igniter.dialects.sym import element_of, tensor_of
from igniter.dialects.sym.expr import Expr, product
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.onnx.onnx_rewriting import known_dims, operand

LEAST_GAIN = 2
"""The least factor by which a selection reduces the rows."""
PAYING = PRODUCTS | NORMALISATIONS | {"Gemm"}
"""Nodes worth a move; elementwise nodes alone are not."""


@dataclass(frozen=True)
class HoistSelections(ModulePass):
    """Moves selections of rows above the nodes that compute each row by itself."""

    name = "hoist-selections"
    one_rewrite = "a selection moved"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrites = budget(ctx, self.name)
        found = [n for n in op.walk() if isinstance(n, OnnxOp) and n.op_type in ("Gather", "Slice") and not n.domain]
        if not found:
            return
        sizes = TypicalSizes(tuple(sizes_of(ctx, op).items()))
        order: dict[Block, dict[Operation, int]] = {}
        for node in reversed(found):
            moved = Selection.of(node, sizes, order)
            if moved is not None and rewrites.take(node.node_name, f"it moves above {len(moved.carriers)} nodes"):
                remark(ctx, self.name, node.node_name, "applied", f"{len(moved.carriers)} nodes compute fewer rows")
                moved.move()


@dataclass
class Selection:
    """A Gather or a Slice, and the nodes that it can move above."""

    node: OnnxOp
    axis: int
    """The axis, counted from the end: 1 is the last one."""
    rows: Expr
    kept: Expr
    """The number of rows that remain."""
    sizes: TypicalSizes
    carriers: dict[OnnxOp, list[int]] = field(default_factory=dict[OnnxOp, list[int]])
    """The nodes, readers first, with their operands that have rows."""

    @staticmethod
    def of(node: OnnxOp, sizes: TypicalSizes, order: dict[Block, dict[Operation, int]]) -> Selection | None:
        """Returns the selection of a node; None if it should not move."""
        dims, axis, source = known_dims(node.operands[0]), selected_axis(node), node.operands[0].owner
        if dims is None or axis is None or not isinstance(source, OnnxOp) or node.parent is None:
            return None
        axis %= len(dims)
        kept = _kept(node, axis)
        if kept is None or LEAST_GAIN * sizes.value(kept, MEMORY) > sizes.value(dims[axis], MEMORY):
            return None
        made = Selection(node, len(dims) - axis, dims[axis], kept, sizes)
        if not made._carries(source):
            return None
        block = node.parent
        if block not in order:
            order[block] = {op: k for k, op in enumerate(block.ops)}
        made._collect(order[block])
        return made if any(op.op_type in PAYING for op in made.carriers) else None

    def _collect(self, order: dict[Operation, int]) -> None:
        """Finds the carriers, from the node upward: every reader of a node is visited before the node."""
        waiting: list[tuple[int, OnnxOp]] = []
        seen: set[Operation] = set()

        def visit(value: SSAValue) -> None:
            owner = value.owner
            if isinstance(owner, OnnxOp) and owner in order and owner not in seen:
                seen.add(owner)
                heapq.heappush(waiting, (-order[owner], owner))

        visit(self.node.operands[0])
        while waiting:
            _, op = heapq.heappop(waiting)
            operands = self._carries(op)
            if operands:
                self.carriers[op] = operands
                for k in operands:
                    visit(op.operands[k])

    def _carries(self, op: OnnxOp) -> list[int]:
        """Returns the operands with rows of a node that only the selection and its carriers read; else none."""
        if op.regions or not op.operands or VALUES_ATTRIBUTE in op.attributes:
            return []
        uses = [use for result in op.results for use in result.uses]
        if not all(
            (use.operation is self.node and use.index == 0) or use.index in self._operands(use.operation)
            for use in uses
        ):
            return []
        for result in op.results:
            dims = known_dims(result)
            if result.first_use is not None and (dims is None or self._at(dims) != self.rows):
                return []
        return row_operands(op, self.axis, self.rows, known_dims)

    def _operands(self, op: Operation) -> list[int]:
        return self.carriers.get(op, []) if isinstance(op, OnnxOp) else []

    def _at(self, dims: tuple[Expr, ...]) -> Expr | None:
        return dims[-self.axis] if len(dims) >= self.axis else None

    # -- the rewrite --------------------------------------------------------------------------------------------------

    def move(self) -> None:
        """Selects rows of the operands of the carriers instead of their results."""
        selected: dict[SSAValue, SSAValue] = {}
        for op, operands in reversed(self.carriers.items()):
            for k in operands:
                value = op.operands[k]
                if value.owner not in self.carriers:
                    if value not in selected:
                        selected[value] = self._select(value, op)
                    op.operands[k] = selected[value]
            for result in op.results:
                self._shorten(result)
            dims = known_dims(op.operands[0])
            if dims and self.sizes.value(product(dims[:-1]), MEMORY) <= MOST_ROWS:
                op.attributes.pop(MANY_ROWS_ATTRIBUTE, None)
        self._finish()

    def _select(self, value: SSAValue, before: Operation) -> SSAValue:
        """Inserts the selection of the rows of a value."""
        block, dims = before.parent, known_dims(value)
        assert block is not None and dims is not None
        copy = self.node.clone()
        for key in ("node_name", "output_names"):
            copy.properties.pop(key, None)
        copy.operands[0] = value
        axis = len(dims) - self.axis
        # Its constants may be defined after this place.
        given = {k: operand(self.node, k) for k in range(1, len(copy.operands))}
        arrays = {k: array for k, v in given.items() if (array := constant_value(v)) is not None}
        if copy.op_type == "Gather":
            copy.attributes["axis"] = IntegerAttr(axis, i64)
            arrays[1] = arrays[1].reshape(-1)
        elif "axes" in copy.attributes:
            copy.attributes["axes"] = ints_attr([axis])
        else:
            arrays[3] = np.array([axis], np.int64)
        for k, array in arrays.items():
            copy.operands[k] = _constant(array, before)
        block.insert_op_before(copy, before)
        result = copy.results[0]
        result._type = value.type
        result.name_hint = None
        self._shorten(result)
        return result

    def _shorten(self, result: OpResult) -> None:
        dims = known_dims(result)
        if dims is not None:
            kept = [*dims[: -self.axis], self.kept, *dims[len(dims) - self.axis + 1 :]]
            result._type = tensor_of(element_of(result.type), kept)

    def _finish(self) -> None:
        """Removes the node; a Gather with one index remains, to remove the dim of the one row."""
        node = self.node
        if node.op_type == "Gather" and len(known_dims(node.operands[1]) or ()) == 0:
            node.operands[1] = _constant(np.array(0, np.int64), node)
            node.attributes.pop(VALUES_ATTRIBUTE, None)
            return
        node.results[0].replace_all_uses_with(node.operands[0])
        assert node.parent is not None
        node.parent.erase_op(node)


def selected_axis(node: OnnxOp) -> int | None:
    """Returns the axis of a Gather with at most one dim of constant indices, or of a Slice with constant bounds along
    one axis; else None."""
    if node.op_type == "Gather":
        index = constant_value(node.operands[1])
        return int(node.attr("axis", 0)) if index is not None and index.ndim < 2 else None
    if "starts" in node.attributes:
        axes = node.attr("axes", None)
        return int(axes[0]) if axes is not None and len(axes) == 1 else None
    bounds = [constant_value(given) for k in range(1, len(node.operands)) if (given := operand(node, k)) is not None]
    axes = constant_value(operand(node, 3))
    if axes is None or axes.size != 1 or any(bound is None for bound in bounds):
        return None
    return int(axes.reshape(-1)[0])


def _kept(node: OnnxOp, axis: int) -> Expr | None:
    if node.op_type == "Gather":
        index = constant_value(node.operands[1])
        return None if index is None else Expr.of(int(index.size))
    dims = known_dims(node.results[0])
    return None if dims is None else dims[axis]


def _constant(array: np.ndarray[Any, Any], before: Operation) -> SSAValue:
    made = make_constant(array)
    assert before.parent is not None
    before.parent.insert_op_before(made, before)
    return made.results[0]


__all__ = ["HoistSelections", "selected_axis"]
