"""Loop and Scan nodes as loops of a program: their states and slices, and the conditions for a program to hold them.

A program calls the kernels of a body once an iteration, in sequence, on buffers allocated before. So every size in the
body is the same in each iteration and known before the first one. The trip count may be unknown if nothing is stacked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import NoneType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from igniter.analysis.fusion.graph import is_node, node_label, region_nodes
from igniter.analysis.fusion.legality import (
    Reason,
    as_tensor,
    has_dims,
    is_kernel_type,
    is_shape_arithmetic,
    node_reason,
    operand_kind,
    tensor_operands,
    type_symbols,
)
from igniter.analysis.onnx.graph_runs import body_of, truth_of, unchanged
from igniter.dialects.fusion import DimsOp, PackOp, RegionOp
from igniter.dialects.onnx.base import OnnxOp, constant_value
from igniter.dialects.onnx.lowering.context import operand_values
from igniter.dialects.onnx.names import VIEWS, is_loop, op_name
from igniter.dialects.onnx.requirements import node_requirements
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ZERO, Expr, maximum
from igniter.dialects.sym.ranges import is_nonneg
from igniter.dialects.sym.requirements import Requirement, unproven

NodeReason = Callable[[Operation, frozenset[str]], Reason | None]
"""A check of a body's node, given the symbols known around it; its reason if no program can hold the node."""


@dataclass(frozen=True)
class State:
    """A tensor that each iteration passes to the next one."""

    initial: SSAValue
    argument: BlockArgument
    following: SSAValue
    """The body's new value of it."""
    result: SSAValue

    @property
    def unchanged(self) -> bool:
        """True if every iteration passes it on unchanged."""
        return self.following is self.argument


@dataclass(frozen=True)
class Sliced:
    """A tensor with a slice for each iteration: an input of a Scan, with `part` the body's argument, or an output, with
    `part` the body's result."""

    whole: SSAValue
    part: SSAValue
    axis: int
    reverse: bool

    def place(self, step: Expr, count: Expr) -> Expr:
        """Returns the place of an iteration's slice along the axis."""
        return count - 1 - step if self.reverse else step


@dataclass(frozen=True)
class LoopForm:
    """A Loop or a Scan."""

    node: OnnxOp
    body: Block
    count: Expr | None
    """The largest trip count, if it is an expression of symbols."""
    limit: SSAValue | None
    """The same as a tensor, if it is not."""
    start: SSAValue | None
    """The condition before the first iteration, a tensor of one truth value."""
    going: SSAValue | None
    """The condition computed by the body; `None` if it never ends the loop."""
    counter: BlockArgument | None
    """The number of the iteration."""
    condition: BlockArgument | None
    """The body's argument for the condition: true."""
    states: tuple[State, ...]
    inputs: tuple[Sliced, ...]
    outputs: tuple[Sliced, ...]

    @property
    def runs(self) -> bool:
        """True if the body runs at least once in every run: ONNX Runtime rejects an empty Scan."""
        surely = self.node.op_type == "Scan" or (self.count is not None and is_nonneg(self.count - 1))
        return self.start is None and surely


def loop_form(op: OnnxOp) -> LoopForm | Reason:
    """Returns the states and slices of a Loop or a Scan, or the reason why they are unknown."""
    return _scan_form(op) if op.op_type == "Scan" else _loop_form(op)


def loop_reason(op: OnnxOp, outer: frozenset[str], node: NodeReason) -> Reason | None:
    """Returns the reason why a Loop or a Scan cannot be in a program; `outer` are the symbols known around it, and
    `node` decides about the nodes of its body."""
    form = loop_form(op)
    if isinstance(form, Reason):
        return form
    known = outer | {s for v in tensor_operands(op) for s in type_symbols(v.type)}
    for value in _tensors(form):
        free = type_symbols(value.type) - known
        if free:
            return _reason(op, f"the size {min(free)} of a tensor in its body is known only at run time")
    if form.count is not None and not form.count.symbols <= known:
        return _reason(op, "its trip count is unknown")
    for inner in form.body.ops:
        if not is_node(inner) or isinstance(inner, (DimsOp, PackOp)) or is_shape_arithmetic(inner):
            continue
        reason = body_node_reason(inner, known, node)
        if reason is not None:
            return _reason(op, f"its body stays with ONNX Runtime: {reason}")
        if not form.runs and unproven(r for n in _nodes(inner) for r in _requirements(n)):
            # A check at the entry of the op would be wrong if the body never runs.
            return _reason(op, f"{node_label(inner)} in its body has sizes to check, but the body may never run")
    return None


def body_node_reason(op: Operation, known: frozenset[str], node: NodeReason) -> Reason | None:
    """Returns the reason why a node of a body cannot be in a program."""
    if is_loop(op):
        assert isinstance(op, OnnxOp)
        return loop_reason(op, known, node)
    return node(op, known)


def compilable(op: Operation, known: frozenset[str]) -> Reason | None:
    """Returns the reason why a node of a body cannot be in a region or a view; used before regions are formed."""
    return None if isinstance(op, RegionOp) or is_known_view(op) else node_reason(op, known)


def compiled(op: Operation, known: frozenset[str]) -> Reason | None:
    """Returns the reason why a node of a body is no region and no view; used once regions are formed."""
    if isinstance(op, RegionOp) or is_known_view(op):
        return None
    return node_reason(op, known) or Reason("barrier", f"{op_name(op)} is not in a region", (node_label(op),))


def is_known_view(op: Operation) -> bool:
    """True if an op is a view of known shape, which a program can hold."""
    if op_name(op) not in VIEWS or operand_kind(op, 0) != "tensor":
        return False
    values = (op.operands[0], *op.results)
    return all(operand_kind(op, k) != "tensor" for k in range(1, len(op.operands))) and all(
        _is_tensor(value.type) for value in values
    )


# -- forms ------------------------------------------------------------------------------------------------------------


def _reason(op: OnnxOp, message: str) -> Reason:
    return Reason("subgraph", f"{op.qualified_name} stays a loop in ONNX Runtime: {message}")


def _loop_form(op: OnnxOp) -> LoopForm | Reason:
    body, yielded = body_of(op)
    operands, carried = op.inputs, len(op.operands) - 2
    limit, start = (operands[0] if operands else None), (operands[1] if len(operands) > 1 else None)
    known = operand_values(op, 0) if limit is not None else None
    count = _natural(known[0]) if known is not None and len(known) == 1 else None
    given = truth_of(start)
    if given is False:
        count = ZERO
    going = unchanged(yielded[0])
    if constant_value(going) is not None and not truth_of(going):
        return _reason(op, "its condition ends it after one iteration")
    always = going is body.args[1] or truth_of(going) is True
    states = tuple(
        State(op.operands[2 + k], body.args[2 + k], yielded[1 + k], op.results[k]) for k in range(max(carried, 0))
    )
    outputs = tuple(
        Sliced(whole, part, 0, False)
        for whole, part in zip(op.results[carried:], yielded[1 + carried :], strict=True)
        if not isinstance(whole.type, NoneType)
    )
    form = LoopForm(
        op,
        body,
        count,
        None if count is not None else limit,
        None if given is not None else start,
        None if always else yielded[0],
        body.args[0],
        body.args[1],
        states,
        (),
        outputs,
    )
    for value in (form.limit, form.start, form.going):
        if value is not None and (not _is_tensor(value.type) or any(d.constant != 1 for d in dims_of(value.type))):
            return _reason(op, "its trip count or its condition is not a single element")
    if count == ZERO:
        return _reason(op, "its trip count is 0")
    if outputs and (count is None or form.start is not None or form.going is not None):
        return _reason(op, "the number of iterations that it stacks depends on the data")
    return _types_reason(form) or form


def _scan_form(op: OnnxOp) -> LoopForm | Reason:
    if op.opset < 9:
        return _reason(op, "Scan of opset 8 has a batch axis")
    body, yielded = body_of(op)
    inputs: int = op.attr("num_scan_inputs")
    carried = len(op.operands) - inputs
    stacked = len(yielded) - carried
    in_axes, in_ways = _numbers(op, "scan_input_axes", inputs), _numbers(op, "scan_input_directions", inputs)
    out_axes, out_ways = _numbers(op, "scan_output_axes", stacked), _numbers(op, "scan_output_directions", stacked)
    states = tuple(State(op.operands[k], body.args[k], yielded[k], op.results[k]) for k in range(carried))
    for value in (*op.operands[carried:], *op.results[carried:]):
        if not _is_tensor(value.type) and not isinstance(value.type, NoneType):
            return _reason(op, f"the dims of a {value.type} are unknown")
    sliced: list[Sliced] = []
    counts: dict[Expr, None] = {}
    for k, value in enumerate(op.operands[carried:]):
        dims = dims_of(value.type)
        if not -len(dims) <= in_axes[k] < len(dims):
            return _reason(op, "an axis to scan is out of range")
        axis = in_axes[k] % len(dims)
        counts[dims[axis]] = None
        sliced.append(Sliced(value, body.args[carried + k], axis, bool(in_ways[k])))
    if len(counts) != 1:
        return _reason(op, "its scanned inputs are not known to have the same length")
    outputs: list[Sliced] = []
    for k, value in enumerate(op.results[carried:]):
        if isinstance(value.type, NoneType):
            continue
        rank = len(dims_of(value.type))
        if not -rank <= out_axes[k] < rank:
            return _reason(op, "an axis to stack along is out of range")
        outputs.append(Sliced(value, yielded[carried + k], out_axes[k] % rank, bool(out_ways[k])))
    form = LoopForm(op, body, next(iter(counts)), None, None, None, None, None, states, tuple(sliced), tuple(outputs))
    return _types_reason(form) or form


def _types_reason(form: LoopForm) -> Reason | None:
    """Returns the reason if an iteration's types may differ from the first one's, or a stack's from its slices'."""
    for value in _tensors(form):
        if not _is_tensor(value.type):
            return _reason(form.node, f"kernels do not support {value.type}, or its dims are unknown")
    for state in form.states:
        kinds = [state.initial.type, state.argument.type, state.following.type]
        if not isinstance(state.result.type, NoneType):
            kinds.append(state.result.type)
        if len({(element_of(t), dims_of(t)) for t in kinds}) != 1:
            return _reason(form.node, f"the shape of a state may change: {', '.join(map(str, dict.fromkeys(kinds)))}")
    for part in (*form.inputs, *form.outputs):
        dims = dims_of(part.whole.type)
        rest = (*dims[: part.axis], *dims[part.axis + 1 :])
        if rest != dims_of(part.part.type) or element_of(part.whole.type) != element_of(part.part.type):
            return _reason(form.node, f"a slice of {part.whole.type} cannot be a {part.part.type}")
        if dims[part.axis] != form.count:
            return _reason(form.node, "the number of iterations that it stacks is unknown")
    return None


def _tensors(form: LoopForm) -> Iterator[SSAValue]:
    """Yields the tensors that the loop itself reads, passes on and returns."""
    for state in form.states:
        yield from (state.initial, state.argument, state.following)
    for part in (*form.inputs, *form.outputs):
        yield from (part.whole, part.part)


def _natural(count: Expr) -> Expr:
    return count if is_nonneg(count) else maximum(count, ZERO)


def _numbers(op: OnnxOp, name: str, count: int) -> list[int]:
    return list(op.attr(name) or [0] * count)


def _is_tensor(kind: Attribute) -> bool:
    tensor = as_tensor(kind)
    return tensor is not None and has_dims(tensor) and is_kernel_type(tensor.element_type)


def _nodes(op: Operation) -> list[OnnxOp]:
    """Returns the nodes behind one op of a body; none for a loop, which is checked separately."""
    if isinstance(op, RegionOp):
        return region_nodes(op)
    return [op] if isinstance(op, OnnxOp) and not is_loop(op) else []


def _requirements(op: OnnxOp) -> list[Requirement]:
    return node_requirements(op)
