"""Groups the shared products with weights: products cut by columns, followed by products cut by rows.

`ShardingPlan(ranks, products).groups()` grows a group from each product with divisible columns. The readers of its
result must keep the columns apart until products with divisible rows, and their other operands must be cut in the same
way. The types of the values must be inferred.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from igniter.dialects.onnx.base import OnnxOp, constant_value, constant_weight
from igniter.dialects.onnx.structure import ReturnOp
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym.expr import Expr, product
from igniter.dialects.sym.tensor_types import known_dims_of
from igniter.toolbox.edit.shape_conflicts import is_pointwise

_MOVES = frozenset(("Concat", "Expand", "Reshape", "Slice", "Unsqueeze"))


Place = tuple[OnnxOp | None, int, int]
"""The place of a number in a shape: the Concat, or `None` for a constant, its operand, and the index there."""


@dataclass(frozen=True)
class ShardedProduct:
    """A MatMul or Gemm with a weight: its depth is dim `depth` of the weight, its columns dim `1 - depth`."""

    node: OnnxOp
    weight: Weight
    depth: int
    ranks: int

    @property
    def can_cut_rows(self) -> bool:
        return self.weight.shape[self.depth] % self.ranks == 0

    @property
    def can_cut_columns(self) -> bool:
        return self.weight.shape[1 - self.depth] % self.ranks == 0


def product_of(node: object, ranks: int) -> ShardedProduct | None:
    if not isinstance(node, OnnxOp) or node.domain != "" or node.op_type not in ("MatMul", "Gemm"):
        return None
    weight = constant_weight(node.operands[1])
    if weight is None or len(weight.shape) != 2 or constant_weight(node.operands[0]) is not None:
        return None
    if node.op_type == "Gemm" and node.attr("transA", 0):
        return None
    depth = 1 if node.op_type == "Gemm" and node.attr("transB", 0) else 0
    return ShardedProduct(node, weight, depth, ranks)


# -- groups -----------------------------------------------------------------------------------------------------------


@dataclass
class Group:
    """Products cut by columns, the following ones cut by rows, and the values between them: the cut axis of each value,
    and the shapes and constants to make smaller."""

    columns: list[OnnxOp] = field(default_factory=list[OnnxOp])
    rows: list[OnnxOp] = field(default_factory=list[OnnxOp])
    axes: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    targets: dict[OnnxOp, Place] = field(default_factory=dict[OnnxOp, "Place"])
    constants: list[tuple[OnnxOp, int, int]] = field(default_factory=list[tuple[OnnxOp, int, int]])
    """A node, the operand, and the axis of the constant."""


class ShardingPlan:
    def __init__(self, ranks: int, products: list[ShardedProduct]):
        self.ranks = ranks
        self.products = {p.node: p for p in products}
        self.used: set[OnnxOp] = set()

    def groups(self) -> list[Group]:
        found: list[Group] = []
        for node, product_ in self.products.items():
            if node in self.used or not product_.can_cut_columns:
                continue
            group = self._grow(node)
            if group is not None and group.rows:
                found.append(group)
                self.used |= set(group.columns) | set(group.rows)
        return found

    def _grow(self, first: OnnxOp) -> Group | None:
        """Returns the group of one product cut by columns; `None` if it leads to no rows."""
        group = Group()
        pending: list[SSAValue] = []
        if not self._begin(group, first, pending):
            return None
        while pending:
            value = pending.pop()
            for use in list(value.uses):
                reader = use.operation
                if not isinstance(reader, OnnxOp) or isinstance(reader, ReturnOp):
                    return None
                if not self._through(group, reader, use.index, pending):
                    return None
        return group

    def _begin(self, group: Group, node: OnnxOp, pending: list[SSAValue]) -> bool:
        """Cuts a product by columns."""
        if node in group.columns:
            return True
        found = self.products.get(node)
        dims = known_dims_of(node.results[0].type)
        if found is None or not found.can_cut_columns or node in self.used or node in group.rows or dims is None:
            return False
        group.columns.append(node)
        return self._mark(group, node.results[0], len(dims) - 1, pending)

    def _mark(self, group: Group, value: SSAValue, axis: int, pending: list[SSAValue]) -> bool:
        """Cuts a value along an axis. False if it contradicts an earlier cut."""
        if value in group.axes:
            return group.axes[value] == axis
        group.axes[value] = axis
        pending.append(value)
        return True

    def _through(self, group: Group, node: OnnxOp, index: int, pending: list[SSAValue]) -> bool:
        """Propagates the cut of an operand through a node. False if it cannot."""
        axis = group.axes[node.operands[index]]
        dims = known_dims_of(node.operands[index].type)
        if dims is None or node.regions:
            return False
        if node in self.products:
            return index == 0 and axis == len(dims) - 1 and self._rows(group, node)
        if node.op_type == "Transpose" and node.domain == "":
            perm = node.attr("perm") or list(reversed(range(len(dims))))
            return self._mark(group, node.results[0], list(perm).index(axis), pending)
        if node.op_type == "Softmax" and node.domain == "":
            at = int(node.attr("axis", -1)) % len(dims)
            return node.opset >= 13 and at != axis and self._mark(group, node.results[0], axis, pending)
        if node.domain == "" and node.op_type in _MOVES:
            return (index == 0 or node.op_type == "Concat") and self._move(group, node, axis, pending)
        if node.op_type == "MatMul" and node.domain == "":
            return self._by_heads(group, node, axis, pending)
        if is_pointwise(node):
            return self._elementwise(group, node, axis - len(dims), pending)
        return False

    def _move(self, group: Group, node: OnnxOp, axis: int, pending: list[SSAValue]) -> bool:
        """Propagates a cut through a movement along other axes."""
        before, after = known_dims_of(node.operands[0].type), known_dims_of(node.results[0].type)
        if before is None or after is None:
            return False
        if node.op_type in ("Reshape", "Expand"):
            return self._reshape(group, node, axis, pending)
        if node.op_type == "Slice":
            axes = constant_value(node.operands[3]) if len(node.operands) > 3 and node.inputs[3] is not None else None
            cut = [int(a) % len(before) for a in axes.reshape(-1)] if axes is not None else [axis]
            return node.opset >= 10 and axis not in cut and self._mark(group, node.results[0], axis, pending)
        if node.op_type == "Concat":
            if int(node.attr("axis")) % len(after) == axis:
                return False
            whole = all(self._wanted(group, v, axis, pending) for v in node.operands)
            return whole and self._mark(group, node.results[0], axis, pending)
        new = _new_axes(node, len(after))
        if new is None:
            return False
        left = [i for i in range(len(after)) if i not in new]
        return self._mark(group, node.results[0], left[axis], pending)

    def _rows(self, group: Group, node: OnnxOp) -> bool:
        if node in group.columns or node in self.used or not self.products[node].can_cut_rows:
            return False
        if node not in group.rows:
            group.rows.append(node)
        return True

    def _elementwise(self, group: Group, node: OnnxOp, axis: int, pending: list[SSAValue]) -> bool:
        """Propagates a cut through an elementwise node. `axis` is counted from the end; all operands with that dim are
        cut too."""
        for i, value in enumerate(node.operands):
            dims = known_dims_of(value.type)
            if node.inputs[i] is None:
                continue
            if dims is None:
                return False
            if len(dims) < -axis or dims[axis] == Expr.of(1):
                continue
            if constant_weight(value) is not None:
                if (node, i, axis) not in group.constants:
                    group.constants.append((node, i, axis))
            elif not self._wanted(group, value, len(dims) + axis, pending):
                return False
        used = [r for r in node.results if r.first_use is not None]
        found = known_dims_of(node.results[0].type)
        return len(used) <= 1 and found is not None and self._mark(group, node.results[0], len(found) + axis, pending)

    def _wanted(self, group: Group, value: SSAValue, axis: int, pending: list[SSAValue]) -> bool:
        """True if an operand is cut, or can be by cutting another product by columns."""
        if value in group.axes:
            return group.axes[value] == axis
        owner = value.owner
        if not isinstance(owner, OnnxOp):
            return False
        if owner in self.products:
            dims = known_dims_of(value.type)
            return dims is not None and axis == len(dims) - 1 and self._begin(group, owner, pending)
        return self._backwards(group, owner, value, axis, pending)

    def _backwards(self, group: Group, node: OnnxOp, value: SSAValue, axis: int, pending: list[SSAValue]) -> bool:
        """Cuts a value by cutting its operands."""
        dims = known_dims_of(value.type)
        if dims is None or node.regions or not node.operands:
            return False
        if node.domain == "" and node.op_type in ("Slice", "Concat"):
            ok = all(
                self._wanted(group, v, axis, pending) for v in node.operands[: None if node.op_type == "Concat" else 1]
            )
        elif node.op_type == "Expand" and node.domain == "":
            before = known_dims_of(node.operands[0].type)
            ok = before is not None and self._wanted(group, node.operands[0], axis + len(before) - len(dims), pending)
        elif node.op_type == "Unsqueeze" and node.domain == "":
            new = _new_axes(node, len(dims))
            left = [i for i in range(len(dims)) if new is not None and i not in new]
            ok = axis in left and self._wanted(group, node.operands[0], left.index(axis), pending)
        elif node.op_type == "Transpose" and node.domain == "":
            perm = node.attr("perm") or list(reversed(range(len(dims))))
            ok = self._wanted(group, node.operands[0], int(perm[axis]), pending)
        elif node.op_type == "Reshape" and node.domain == "":
            before = known_dims_of(node.operands[0].type)
            source = _origin(before, dims, axis, self.ranks) if before is not None else None
            ok = source is not None and self._wanted(group, node.operands[0], source, pending)
        else:
            if not is_pointwise(node):
                return False
            return self._elementwise(group, node, axis - len(dims), pending)
        # Nodes reached backwards are reached again forwards; then the changes are recorded.
        return ok

    def _reshape(self, group: Group, node: OnnxOp, axis: int, pending: list[SSAValue]) -> bool:
        before, after = known_dims_of(node.operands[0].type), known_dims_of(node.results[0].type)
        if before is None or after is None:
            return False
        if node.op_type == "Expand":
            target = axis + len(after) - len(before) if before[axis] == after[axis + len(after) - len(before)] else None
        else:
            target = next((j for j in range(len(after)) if _origin(before, after, j, self.ranks) == axis), None)
        place = None if target is None else _written_at(node.operands[1], target)
        if target is None or place is None:
            return False
        group.targets[node] = place
        return self._mark(group, node.results[0], target, pending)

    def _by_heads(self, group: Group, node: OnnxOp, axis: int, pending: list[SSAValue]) -> bool:
        """Propagates a cut through a product of two values, both cut along the same axis of the batch."""
        shapes = [known_dims_of(v.type) for v in node.operands]
        if shapes[0] is None or shapes[1] is None or len(shapes[0]) != len(shapes[1]) or axis >= len(shapes[0]) - 2:
            return False
        return all(self._wanted(group, v, axis, pending) for v in node.operands) and self._mark(
            group, node.results[0], axis, pending
        )


def _new_axes(node: OnnxOp, rank: int) -> list[int] | None:
    """Returns the new axes of an Unsqueeze; `None` if they are known only at run time."""
    given = node.attr("axes") if node.opset < 13 else None
    found = constant_value(node.operands[1]) if given is None and len(node.operands) > 1 else None
    axes = given if given is not None else found.reshape(-1).tolist() if found is not None else None
    return None if axes is None else [int(a) % rank for a in axes]


def _written_at(target: SSAValue, axis: int) -> Place | None:
    """Returns the place of an axis's number in the target of a Reshape or Expand; `None` if it is not constant."""
    if constant_value(target) is not None:
        return None, 0, axis
    owner = target.owner
    if not isinstance(owner, OnnxOp) or (owner.domain, owner.op_type) != ("", "Concat"):
        return None
    begin = 0
    for i, piece in enumerate(owner.operands):
        dims = known_dims_of(piece.type)
        length = dims[0].constant if dims is not None and len(dims) == 1 else None
        if length is None:
            return None
        if axis < begin + length:
            return (owner, i, axis - begin) if constant_value(piece) is not None else None
        begin += length
    return None


def _origin(before: tuple[Expr, ...], after: tuple[Expr, ...], axis: int, ranks: int) -> int | None:
    """Returns the axis before a Reshape that has `axis` after it as its outermost part, or the reverse; `None` for any
    other axis. The axis must be a multiple of `ranks` on both sides."""
    outer = product(after[:axis])
    for i in range(len(before)):
        sizes = (before[i].constant, after[axis].constant)
        if product(before[:i]) == outer and all(n is not None and n > 1 and n % ranks == 0 for n in sizes):
            return i
    return None
