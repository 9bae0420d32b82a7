"""`shard-products`: the model of one rank of several that share the products with weights among them.

    %h = MatMul(%x, %w1)                   %h = MatMul(%x, %w1[:, mine])            // columns
    %a = Relu(%h)                 ->       %a = Relu(%h)
    %y = MatMul(%a, %w2)                   %p = MatMul(%a, %w2[mine, :])            // rows
                                           %y = igniter.collective.AllReduce(%p)

    shard-products{ranks=2 rank=0}

Weights are cut by columns where what follows keeps the columns apart until a product that can be cut by rows:
elementwise nodes, Transpose, Softmax over another axis, a Reshape that takes columns apart into heads or joins them
again, products of two such values head by head. This is how a transformer's feed-forward and attention are shared
(Shoeybi et al., Megatron-LM, 2019). A product with no such way is cut by rows alone, each rank taking its part of the
input (`alone`), and one whose weight cannot be cut evenly stays whole. What rows leave are partial sums, which
`AllReduce` of the domain `igniter.collective` adds up over all ranks; it has no kernel, and whoever runs the ranks
computes it. A bias that is added after rows is added by rank 0. Inputs and outputs are those of the whole model, on
every rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, OpResult, SSAValue

from igniter.analysis.onnx.shape_inference import infer_shapes
from igniter.dialects.onnx.attributes import text_attr
from igniter.dialects.onnx.base import OnnxOp, constant_value, constant_weight, make_constant, make_op
from igniter.dialects.onnx.structure import ReturnOp, main_graph
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.expr import Expr, product
from igniter.dialects.sym.tensor_types import known_dims_of, tensor_element
from igniter.errors import IgniterError
from igniter.frontend.opsets import import_domains
from igniter.remarks import remark
from igniter.transforms.edit.edit import Edit
from igniter.transforms.edit.graph_edits import sweep
from igniter.transforms.edit.names import node_text, result_names, set_result_name
from igniter.transforms.edit.shape_conflicts import is_pointwise, typed_by

if TYPE_CHECKING:
    import numpy as np

COLLECTIVES = "igniter.collective"
ALL_REDUCE = "AllReduce"
_MOVES = frozenset(("Concat", "Expand", "Reshape", "Slice", "Unsqueeze"))


@dataclass(frozen=True)
class ShardProducts(Edit):
    """Keep one rank's share of the products with weights."""

    name = "shard-products"
    ranks: int = 2
    """How many ranks share the products."""
    rank: int = 0
    """Which of them this model is for."""
    alone: bool = True
    """Cut products by rows too that no product by columns leads to."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.ranks < 2 or not 0 <= self.rank < self.ranks:
            raise IgniterError(f"rank {self.rank} of {self.ranks}: there are 2 ranks at least, counted from 0")
        graph = main_graph(op)
        products = [p for node in graph.body.ops if (p := _product(node, self.ranks)) is not None]
        facts = infer_shapes(op)
        with typed_by(facts):
            plan = _Plan(self.ranks, products)
            groups = plan.groups()
        done: set[OnnxOp] = set()
        for group in groups:
            _shard_group(group, self.ranks, self.rank, facts.types)
            done |= set(group.columns) | set(group.rows)
            names = ", ".join(node_text(p) for p in group.rows)
            remark(ctx, self.name, node_text(group.columns[0]), "applied", f"by columns, and {names} by rows")
        for found in products:
            if found.node in done:
                continue
            if self.alone and found.can_cut_rows and _shard_alone(found, self.ranks, self.rank, facts.types):
                done.add(found.node)
                how = "by rows, each rank taking its part of the input"
                remark(ctx, self.name, node_text(found.node), "applied", how)
            else:
                remark(ctx, self.name, node_text(found.node), "missed", f"{self.ranks} ranks cannot share its weight")
        if not done:
            raise IgniterError(f"no product of the model has a weight that {self.ranks} ranks can share")
        import_domains(op)


@dataclass(frozen=True)
class _Product:
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


def _product(node: object, ranks: int) -> _Product | None:
    if not isinstance(node, OnnxOp) or node.domain != "" or node.op_type not in ("MatMul", "Gemm"):
        return None
    weight = constant_weight(node.operands[1])
    if weight is None or len(weight.shape) != 2 or constant_weight(node.operands[0]) is not None:
        return None
    if node.op_type == "Gemm" and node.attr("transA", 0):
        return None
    depth = 1 if node.op_type == "Gemm" and node.attr("transB", 0) else 0
    return _Product(node, weight, depth, ranks)


# -- which products go together ---------------------------------------------------------------------------------------


@dataclass
class _Group:
    """Products cut by columns, those by rows that they lead to, and what lies between: the axis of each value that is
    shared out, and the shapes and constants that have to be made smaller."""

    columns: list[OnnxOp] = field(default_factory=list[OnnxOp])
    rows: list[OnnxOp] = field(default_factory=list[OnnxOp])
    axes: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    targets: dict[OnnxOp, _Place] = field(default_factory=dict[OnnxOp, "_Place"])
    constants: list[tuple[OnnxOp, int, int]] = field(default_factory=list[tuple[OnnxOp, int, int]])
    """A node, the operand, and the axis of the constant."""


class _Plan:
    def __init__(self, ranks: int, products: list[_Product]):
        self.ranks = ranks
        self.products = {p.node: p for p in products}
        self.used: set[OnnxOp] = set()

    def groups(self) -> list[_Group]:
        found: list[_Group] = []
        for node, product_ in self.products.items():
            if node in self.used or not product_.can_cut_columns:
                continue
            group = self._grow(node)
            if group is not None and group.rows:
                found.append(group)
                self.used |= set(group.columns) | set(group.rows)
        return found

    def _grow(self, first: OnnxOp) -> _Group | None:
        """All that has to be shared out when one product is cut by columns; `None` where that leads to no rows."""
        group = _Group()
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

    def _begin(self, group: _Group, node: OnnxOp, pending: list[SSAValue]) -> bool:
        """Cuts a product by columns."""
        if node in group.columns:
            return True
        found = self.products.get(node)
        dims = known_dims_of(node.results[0].type)
        if found is None or not found.can_cut_columns or node in self.used or node in group.rows or dims is None:
            return False
        group.columns.append(node)
        return self._mark(group, node.results[0], len(dims) - 1, pending)

    def _mark(self, group: _Group, value: SSAValue, axis: int, pending: list[SSAValue]) -> bool:
        """Shares a value out along an axis; whether that is no contradiction."""
        if value in group.axes:
            return group.axes[value] == axis
        group.axes[value] = axis
        pending.append(value)
        return True

    def _through(self, group: _Group, node: OnnxOp, index: int, pending: list[SSAValue]) -> bool:
        """What a node makes of an operand that is shared out; whether it can be."""
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

    def _move(self, group: _Group, node: OnnxOp, axis: int, pending: list[SSAValue]) -> bool:
        """What moves elements along other axes than the one that is shared out."""
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

    def _rows(self, group: _Group, node: OnnxOp) -> bool:
        if node in group.columns or node in self.used or not self.products[node].can_cut_rows:
            return False
        if node not in group.rows:
            group.rows.append(node)
        return True

    def _elementwise(self, group: _Group, node: OnnxOp, axis: int, pending: list[SSAValue]) -> bool:
        """`axis` is counted from the end. All operands that are long there are shared out too."""
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

    def _wanted(self, group: _Group, value: SSAValue, axis: int, pending: list[SSAValue]) -> bool:
        """Whether an operand is shared out, or can be: by another product cut by columns."""
        if value in group.axes:
            return group.axes[value] == axis
        owner = value.owner
        if not isinstance(owner, OnnxOp):
            return False
        if owner in self.products:
            dims = known_dims_of(value.type)
            return dims is not None and axis == len(dims) - 1 and self._begin(group, owner, pending)
        return self._backwards(group, owner, value, axis, pending)

    def _backwards(self, group: _Group, node: OnnxOp, value: SSAValue, axis: int, pending: list[SSAValue]) -> bool:
        """Shares out what a value is made from, so that it is shared out itself."""
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
        # What was reached backwards is found again forwards, which notes what has to be changed.
        return ok

    def _reshape(self, group: _Group, node: OnnxOp, axis: int, pending: list[SSAValue]) -> bool:
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

    def _by_heads(self, group: _Group, node: OnnxOp, axis: int, pending: list[SSAValue]) -> bool:
        """A product of two values, both shared out along the same axis of the batch."""
        shapes = [known_dims_of(v.type) for v in node.operands]
        if shapes[0] is None or shapes[1] is None or len(shapes[0]) != len(shapes[1]) or axis >= len(shapes[0]) - 2:
            return False
        return all(self._wanted(group, v, axis, pending) for v in node.operands) and self._mark(
            group, node.results[0], axis, pending
        )


def _new_axes(node: OnnxOp, rank: int) -> list[int] | None:
    """Where an Unsqueeze puts dims of 1; `None` where only a run knows."""
    given = node.attr("axes") if node.opset < 13 else None
    found = constant_value(node.operands[1]) if given is None and len(node.operands) > 1 else None
    axes = given if given is not None else found.reshape(-1).tolist() if found is not None else None
    return None if axes is None else [int(a) % rank for a in axes]


Types = Mapping[SSAValue, Attribute]
_Place = tuple[OnnxOp | None, int, int]
"""Where a number of a shape is written: in which operand of which Concat, or `None` for a constant, and where in it."""


def _written_at(target: SSAValue, axis: int) -> _Place | None:
    """Where the target of a Reshape or Expand has its number for an axis; `None` where that is not a constant."""
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
    """The axis in front of a Reshape of which `axis` behind it is the outermost part, or which is the outermost part of
    it; `None` where there is none. The axis has to be a multiple of `ranks` on both sides."""
    outer = product(after[:axis])
    for i in range(len(before)):
        sizes = (before[i].constant, after[axis].constant)
        if product(before[:i]) == outer and all(n is not None and n > 1 and n % ranks == 0 for n in sizes):
            return i
    return None


# -- the rank's part --------------------------------------------------------------------------------------------------


def _part(weight: Weight, axis: int, ranks: int, rank: int) -> Weight:
    array = weight.array()
    size = array.shape[axis] // ranks
    index: list[slice] = [slice(None)] * array.ndim
    index[axis] = slice(rank * size, (rank + 1) * size)
    import numpy as np

    return Weight.of(np.ascontiguousarray(array[tuple(index)]))


def _replace_constant(node: OnnxOp, index: int, made: Weight, ending: str) -> None:
    """Gives a node another constant, with a name of its own: others may read the old one."""

    old = node.operands[index]
    assert isinstance(old, OpResult) and isinstance(old.owner, OnnxOp)
    name = result_names(old.owner)[0] or "constant"
    key = next(n for n in (*node.output_names, node.node_name, "node") if n)
    constant = make_constant(made, f"{name}.{ending}.{key}" if len(list(old.uses)) > 1 else f"{name}.{ending}")
    block = node.parent
    assert block is not None
    block.insert_op_before(constant, old.owner)
    node.operands[index] = constant.results[0]
    sweep([old])


def _smaller(type_: Attribute, axis: int, ranks: int) -> Attribute:
    dims, element = known_dims_of(type_), tensor_element(type_)
    if dims is None or element is None:
        return type_
    size = dims[axis].constant
    made = list(dims)
    made[axis] = Expr.of(size // ranks) if size is not None else dims[axis]
    return tensor_of(element, made)


def _shard_group(group: _Group, ranks: int, rank: int, types: Types) -> None:
    for node in group.columns:
        found = _product(node, ranks)
        assert found is not None
        _replace_constant(node, 1, _part(found.weight, 1 - found.depth, ranks, rank), "columns")
        _cut_bias(node, ranks, rank)
    for node, index, axis in group.constants:
        weight = constant_weight(node.operands[index])
        assert weight is not None
        _replace_constant(node, index, _part(weight, len(weight.shape) + axis, ranks, rank), "part")
    for node, place in group.targets.items():
        _cut_target(node, place, ranks)
    for value, axis in group.axes.items():
        value._type = _smaller(value.type, axis, ranks)
    for node in group.rows:
        found = _product(node, ranks)
        assert found is not None
        _cut_rows(found, ranks, rank, types)


def _cut_target(node: OnnxOp, place: _Place, ranks: int) -> None:
    """Writes a smaller number into the target of a Reshape or Expand, which other nodes may read as it is."""
    concat, index, position = place
    at, holder = (1, node) if concat is None else (index, concat.clone())
    if concat is not None:
        block = node.parent
        assert block is not None
        block.insert_op_before(holder, node)
        before = node.operands[1]
        node.operands[1] = holder.results[0]
        name = next(n for n in (*node.output_names, node.node_name, "node") if n)
        set_result_name(holder.results[0], f"{name}.shape")
        holder.properties["node_name"] = text_attr(f"{name}.shape")
        sweep([before])
    value = constant_value(holder.operands[at])
    assert value is not None
    _replace_constant(holder, at, Weight.of(_reshaped(value, position, ranks)), "part")


def _reshaped(target: np.ndarray[Any, Any], axis: int, ranks: int) -> np.ndarray[Any, Any]:
    made = target.copy()
    if made[axis] > 0:
        made[axis] //= ranks
    return made


def _cut_bias(node: OnnxOp, ranks: int, rank: int) -> None:
    """The bias of a Gemm that is cut by columns."""
    bias = constant_weight(node.operands[2]) if node.op_type == "Gemm" and len(node.operands) > 2 else None
    if bias is not None and bias.shape and bias.shape[-1] > 1:
        _replace_constant(node, 2, _part(bias, len(bias.shape) - 1, ranks, rank), "columns")


def _cut_rows(found: _Product, ranks: int, rank: int, types: Types) -> None:
    """Cuts a weight by rows, and adds up what all ranks make of their rows."""
    node = found.node
    _replace_constant(node, 1, _part(found.weight, found.depth, ranks, rank), "rows")
    if node.op_type == "Gemm" and len(node.operands) > 2 and rank > 0:
        _drop_bias(node)
    result = node.results[0]
    uses = list(result.uses)
    names = node.output_names or [""]
    # It has no shape rule, so that the type is written into the model.
    reduced = make_op(
        ALL_REDUCE,
        [result],
        [types.get(result, result.type)],
        {"reduce": "sum", "ranks": ranks},
        domain=COLLECTIVES,
        output_names=names,
    )
    block = node.parent
    assert block is not None
    block.insert_op_after(reduced, node)

    set_result_name(result, f"{names[0]}.partial" if names[0] else "")
    for use in uses:
        use.operation.operands[use.index] = reduced.results[0]


def _drop_bias(node: OnnxOp) -> None:
    """A Gemm without its bias: rank 0 adds it."""
    import numpy as np

    bias = node.operands[2]
    weight = constant_weight(bias)
    if node.opset >= 11:
        node.operands = node.operands[:2]

        sweep([bias])
    elif weight is not None:
        _replace_constant(node, 2, Weight.of(np.zeros(weight.shape, weight.element.dtype)), "none")
    else:
        raise IgniterError(f"the bias of {node_text(node)} is computed: convert the model to opset 11 or newer first")


def _shard_alone(found: _Product, ranks: int, rank: int, types: Types) -> bool:
    """Cuts a product by rows whose input is whole: the rank takes its columns of it."""
    import numpy as np

    node = found.node
    value = node.operands[0]
    if node.opset < 10:
        return False
    size = found.weight.shape[found.depth] // ranks
    dims = known_dims_of(types.get(value, value.type))
    name = next(n for n in (*node.output_names, node.node_name, "product") if n)
    block = node.parent
    assert block is not None
    limits: list[SSAValue] = []
    for part, number in (("begin", rank * size), ("end", (rank + 1) * size), ("axis", -1)):
        constant = make_constant(np.array([number], np.int64), f"{name}.{part}")
        block.insert_op_before(constant, node)
        limits.append(constant.results[0])
    element = tensor_element(value.type)
    assert element is not None
    type_ = tensor_of(element, [*dims[:-1], size]) if dims is not None else value.type
    cut = make_op("Slice", [value, *limits], [type_], output_names=[f"{name}.part"])
    block.insert_op_before(cut, node)
    node.operands[0] = cut.results[0]
    _cut_rows(found, ranks, rank, types)
    return True
