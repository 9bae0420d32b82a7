"""Matches nodes against a pattern; for a failure, gives the node of the pattern and the reason.

Matching runs backwards from the first output of the pattern, tries commutative operands in all orders, and backtracks.
Constants are compared to the precision of their type (`recompose.matching`), axes are counted from the front, and
attributes have their defaults. Identity-like nodes (Identity, a Cast to the same type, Dropout) may be between the
nodes of an instance, and become part of it. Only the outputs of an instance may have other users.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any

import numpy as np
from xdsl.dialects.builtin import NoneType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from igniter.dialects.onnx.algebra import attribute_text, commutes, said_attributes
from igniter.dialects.onnx.attributes import RefAttr, to_attr, to_python
from igniter.dialects.onnx.base import OnnxOp, constant_value
from igniter.dialects.onnx.structure import GraphOp
from igniter.dialects.onnx.types import BY_ATTR
from igniter.dialects.sym.expr import Expr
from igniter.toolbox.fuse.graph_pattern import Pattern
from igniter.transforms.onnx.canonicalization.arithmetic import is_idle_dropout
from igniter.transforms.onnx.onnx_rewriting import element, ints_of, known_dims, operand
from igniter.transforms.onnx.recompose.matching import EPSILON, is_closed

MOST_STEPS = 20_000
"""The largest number of comparisons per root; patterns of a few dozen nodes need a few hundred."""

AXES = frozenset(("Squeeze", "Unsqueeze"))
"""Ops, besides reductions, whose axes are an operand in later opsets."""


@dataclass(frozen=True)
class Failure:
    """A failed attempt: `matched` nodes matched before `node` of the pattern did not; `root` is the model's node."""

    matched: int
    root: str
    node: str
    reason: str


@dataclass
class Match:
    """An instance: the model's nodes and values by the pattern's, and the values of its parameters."""

    pattern: Pattern
    nodes: dict[OnnxOp, OnnxOp] = field(default_factory=dict[OnnxOp, OnnxOp])
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    parameters: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    dims: dict[str, Expr] = field(default_factory=dict[str, Expr])
    passed: tuple[OnnxOp, ...] = ()
    """Identity-like nodes between those of the instance."""

    @property
    def inside(self) -> list[OnnxOp]:
        """All nodes of the model in the instance."""
        return [*self.nodes.values(), *self.passed]

    def copy(self) -> Match:
        """Copies the state, so that matching can return to this one."""
        return replace(
            self,
            nodes=dict(self.nodes),
            values=dict(self.values),
            parameters=dict(self.parameters),
            dims=dict(self.dims),
        )


Goal = tuple[SSAValue, SSAValue]


class Attempt:
    """Searches for one pattern at one node."""

    def __init__(self, pattern: Pattern, root: OnnxOp):
        self.pattern = pattern
        self.root = root
        self.failure: Failure | None = None
        self._steps = 0
        self._names = {value: name for name, value in pattern.names.items()}

    def run(self) -> Match | None:
        """Returns the instance whose first output the root computes. `failure` has the best failed attempt."""
        output = self.pattern.function.terminator.operands[0]
        assert isinstance(output, OpResult)
        if output.index >= len(self.root.results):
            return None
        return self._solve([(output, self.root.results[output.index])], Match(self.pattern))

    # -- goals --------------------------------------------------------------------------------------------------------

    def _solve(self, goals: list[Goal], state: Match) -> Match | None:
        """Returns a match for all goals, or None."""
        while goals:
            self._steps += 1
            if self._steps > MOST_STEPS:
                self._fail(state, "the pattern", f"{MOST_STEPS} comparisons came to no end")
                return None
            wanted, found = goals.pop()
            found = self._past_identities(wanted, found, state)
            reason = self._bind(wanted, found, state)
            if reason is not None:
                self._fail(state, self._name(wanted), reason)
                return None
            owner = wanted.owner
            if not isinstance(owner, OnnxOp) or owner.name == "onnx.Constant" or state.nodes.get(owner) is found.owner:
                continue
            node = found.owner
            assert isinstance(node, OnnxOp)
            other = state.nodes.get(owner)
            reason = f"its results are of '{_called(other)}' and '{_called(node)}'" if other is not None else None
            reason = reason or self._same_node(owner, node, state)
            if reason is not None:
                self._fail(state, self._name(wanted), reason)
                return None
            state.nodes[owner] = node
            orders = list(_orders(owner, node))
            if len(orders) > 1:
                # Each order of the operands is tried with the remaining goals.
                for order in orders:
                    found_all = self._solve([*goals, *order], state.copy())
                    if found_all is not None:
                        return found_all
                return None
            goals.extend(orders[0])
        reason = self._whole(state)
        if reason is not None:
            self._fail(state, *reason)
            return None
        return state

    def _past_identities(self, wanted: SSAValue, found: SSAValue, state: Match) -> SSAValue:
        """Returns the value behind identity-like nodes, if its op is the pattern's."""
        owner = wanted.owner
        if not isinstance(owner, OnnxOp) or owner.name == "onnx.Constant":
            return found
        passed: list[OnnxOp] = []
        while isinstance(node := found.owner, OnnxOp) and node.qualified_name != owner.qualified_name:
            if node is self.root or node.parent is not self.root.parent or not _hands_on(node, found):
                break
            passed.append(node)
            found = node.operands[0]
        if isinstance(node, OnnxOp) and node.qualified_name == owner.qualified_name:
            state.passed += tuple(op for op in passed if op not in state.passed)
            return found
        # No match: the reason names the existing node.
        return passed[0].results[0] if passed else found

    def _bind(self, wanted: SSAValue, found: SSAValue, state: Match) -> str | None:
        """Records the value for a value of the pattern. Returns the reason if it does not match."""
        if wanted in state.values:
            same = state.values[wanted]
            if same is found or _equal_constants(same, found):
                return None
            return f"it is {_told(same)} at one place and {_told(found)} at another"
        if isinstance(wanted.type, NoneType) or isinstance(found.type, NoneType):
            both = isinstance(wanted.type, NoneType) and isinstance(found.type, NoneType)
            return None if both else "an operand is left out in one of them"
        owner = wanted.owner
        if isinstance(owner, Block):
            reason = self._conditions(wanted, found, state)
        elif isinstance(owner, OnnxOp) and owner.name == "onnx.Constant":
            reason = self._constant(owner, wanted, found, state)
        else:
            reason = self._made_by(wanted, found) or self._conditions(wanted, found, state)
        if reason is None:
            state.values[wanted] = found
        return reason

    def _made_by(self, wanted: SSAValue, found: SSAValue) -> str | None:
        owner, node = wanted.owner, found.owner
        assert isinstance(owner, OnnxOp) and isinstance(wanted, OpResult)
        if not isinstance(node, OnnxOp) or not isinstance(found, OpResult):
            return f"{owner.qualified_name} is wanted, and found is {_told(found)}"
        if node.qualified_name != owner.qualified_name:
            return f"{owner.qualified_name} is wanted, and found is {_told(found)}"
        if node.parent is not self.root.parent:
            return f"{_told(found)} is in another graph"
        return None if wanted.index == found.index else f"it is result {found.index} of {_told(found)}"

    # -- constants, attributes, conditions ----------------------------------------------------------------------------

    def _constant(self, op: OnnxOp, wanted: SSAValue, found: SSAValue, state: Match) -> str | None:
        value = constant_value(found)
        if value is None or value.dtype == object:
            return f"a constant is wanted, and found is {_told(found)}"
        for name in op.attributes:
            parameter = _parameter(op, name)
            if parameter is not None:
                number = value.reshape(-1)
                if number.size != 1 and not name.endswith("s"):
                    return f"one number is wanted, and {_told(found)} has the shape {list(value.shape)}"
                item: Any = number.tolist() if name.endswith("s") else number[0].item()
                return _captured(state, parameter, to_attr(item))
        theirs = constant_value(wanted)
        assert theirs is not None
        if theirs.size == 1:
            if value.size != 1:
                return f"{theirs.reshape(-1)[0]} is wanted, and {_told(found)} has the shape {list(value.shape)}"
        elif theirs.shape != value.shape:
            return f"a constant of shape {list(theirs.shape)} is wanted, and {_told(found)} has {list(value.shape)}"
        relative = self.pattern.tolerance
        if relative is None:
            kind = element(found)
            relative = 4 * EPSILON.get(kind, 0.0) if kind is not None else 0.0
        mine, others = (np.asarray(x).reshape(-1).astype(np.float64) for x in (value, theirs))
        if np.all(np.abs(mine - others) <= relative * np.abs(others)):
            return None
        return f"{others[0]:.9g} is wanted, and found is {mine[0]:.9g}" if theirs.size == 1 else "its values differ"

    def _same_node(self, wanted: OnnxOp, found: OnnxOp, state: Match) -> str | None:
        counts = len(_operands(wanted)), len(_operands(found))
        if counts[0] != counts[1]:
            return f"'{_called(found)}' has {counts[1]} operands, and the pattern's {counts[0]}"
        if self._free(wanted):
            return None
        mine, theirs = _attributes(wanted), _attributes(found)
        for name in sorted({*mine, *theirs}):
            parameter = mine.get(name)
            given = _or_default(theirs.get(name), found, name)
            if isinstance(parameter, RefAttr):
                if given is None:
                    return f"{found.qualified_name} '{_called(found)}' has no {name}"
                reason = _captured(state, parameter.parameter.data, given)
                if reason is not None:
                    return reason
            elif not _same_attribute(_or_default(parameter, wanted, name), given, found):
                return f"its {name} is {attribute_text(given)}, and the pattern's {attribute_text(parameter)}"
        return None

    def _free(self, wanted: OnnxOp) -> bool:
        return any(self._names.get(r) in self.pattern.free for r in wanted.results)

    def _conditions(self, wanted: SSAValue, found: SSAValue, state: Match) -> str | None:
        name, p = self._names.get(wanted, ""), self.pattern
        if name in p.constants and constant_value(found) is None:
            return f"a constant is wanted, and found is {_told(found)}"
        kind, dims = element(found), known_dims(found)
        if name in p.types:
            row = BY_ATTR.get(kind) if kind is not None else None
            if row is None or row.numpy_name != p.types[name]:
                return f"its type is {row.numpy_name if row is not None else 'not known'}, and not {p.types[name]}"
        if name in p.ranks and (dims is None or len(dims) != p.ranks[name]):
            return f"its rank is {'not known' if dims is None else len(dims)}, and not {p.ranks[name]}"
        if name in p.shapes:
            wanted_dims = p.shapes[name]
            if dims is None or len(dims) != len(wanted_dims):
                return f"its rank is {'not known' if dims is None else len(dims)}, and not {len(wanted_dims)}"
            for axis, (text, dim) in enumerate(zip(wanted_dims, dims, strict=True)):
                if text == "_":
                    continue
                needed = Expr.of(int(text)) if text.lstrip("-").isdigit() else state.dims.setdefault(text, dim)
                if needed != dim:
                    return f"its axis {axis} is {dim}, and not {needed}"
        return None

    # -- the whole ----------------------------------------------------------------------------------------------------

    def _whole(self, state: Match) -> tuple[str, str] | None:
        """Returns an error of an instance as a whole, and its place, or None."""
        outputs = {state.values[v] for v in self.pattern.function.terminator.operands}
        nodes = list(state.nodes.values())
        if len(set(nodes)) < len(nodes):
            return "the pattern", "two of its nodes are the same node of the model"
        if len(outputs) == 1 and is_closed(self.root, state.inside):
            return None
        inside = set(state.inside)
        for wanted, op in [*state.nodes.items(), *((op, op) for op in state.passed)]:
            for result in op.results:
                if result in outputs:
                    continue
                for use in result.uses:
                    if use.operation not in inside:
                        reader = use.operation
                        told = _called(reader) if isinstance(reader, OnnxOp) else "an output of the graph"
                        names = [self._names[r] for r in wanted.results if r in self._names]
                        where = names[0] if names else wanted.op_type
                        return where, f"'{told}' outside uses what {_told(result)} makes{_way_out(reader)}"
        return None

    def _fail(self, state: Match, node: str, reason: str) -> None:
        if self.failure is None or len(state.nodes) > self.failure.matched:
            self.failure = Failure(len(state.nodes), _called(self.root), node, reason)

    def _name(self, value: SSAValue) -> str:
        owner = value.owner
        name = self._names.get(value, "")
        if isinstance(owner, OnnxOp):
            return f"{owner.op_type} '{name}'" if name else owner.op_type
        return f"input '{name}'"


def _hands_on(op: OnnxOp, value: SSAValue) -> bool:
    """True if a value equals the first operand of its node."""
    if op.domain or value is not op.results[0]:
        return False
    if op.op_type == "Cast":
        return element(value) is not None and element(value) == element(op.operands[0])
    return op.op_type == "Identity" or (op.op_type == "Dropout" and is_idle_dropout(op))


def _way_out(reader: Operation) -> str:
    asks = isinstance(reader, OnnxOp) and reader.op_type in ("Shape", "Size")
    return ": the model's compute graph has no such node (igniter shapes --compute-graph)" if asks else ""


def _captured(state: Match, parameter: str, value: Attribute) -> str | None:
    before = state.parameters.setdefault(parameter, value)
    if before == value:
        return None
    return f"{parameter} is {attribute_text(before)} at one place and {attribute_text(value)} at another"


def _parameter(op: OnnxOp, name: str) -> str | None:
    attr = op.attributes.get(name)
    return attr.parameter.data if isinstance(attr, RefAttr) else None


def _orders(wanted: OnnxOp, found: OnnxOp) -> Iterator[list[Goal]]:
    """Yields the paired operands, commutative ones in each order; axes that are attributes are omitted."""
    mine, theirs = _operands(wanted), _operands(found)
    if not commutes(wanted) or len(mine) > 4:
        yield list(zip(mine, theirs, strict=True))
        return
    # Constants and nodes first: they are more specific than inputs of the pattern, because these match anything.
    for order in permutations(theirs):
        yield sorted(zip(mine, order, strict=True), key=lambda goal: isinstance(goal[0].owner, OnnxOp))


def _operands(op: OnnxOp) -> Sequence[SSAValue]:
    found = [v for k, v in enumerate(op.operands) if not (k == 1 and _has_axes(op) and ints_of(v) is not None)]
    while found and isinstance(found[-1].type, NoneType):
        found.pop()
    return found


def _has_axes(op: OnnxOp) -> bool:
    return op.domain == "" and (op.op_type in AXES or op.op_type.startswith("Reduce"))


def _attributes(op: OnnxOp) -> dict[str, Attribute]:
    """Returns the attributes of a node, including axes given as an operand."""
    found = said_attributes(op)
    if _has_axes(op) and "axes" not in found:
        axes = ints_of(operand(op, 1))
        if axes is not None:
            found["axes"] = to_attr(axes)
    return found


def _or_default(given: Attribute | None, op: OnnxOp, name: str) -> Attribute | None:
    """Returns a given attribute, or the default of the op's definition."""
    default = op.attr(name) if given is None else None
    return given if default is None else to_attr(default)


def _same_attribute(
    wanted: Attribute | None,
    given: Attribute | None,
    op: OnnxOp,
) -> bool:
    if wanted == given:
        return True
    if wanted is None or given is None:
        return False
    mine, theirs = to_python(wanted), to_python(given)
    dims = known_dims(op.operands[0]) if op.operands else None
    rank = None if dims is None else len(dims) + (len(theirs) if op.op_type == "Unsqueeze" else 0)
    if isinstance(mine, float) and isinstance(theirs, float):
        return abs(mine - theirs) <= 4 * 2.0**-23 * abs(mine)
    if rank and isinstance(mine, int) and isinstance(theirs, int):
        return mine % rank == theirs % rank and -rank <= mine < rank
    if rank and isinstance(mine, list) and isinstance(theirs, list) and _has_axes(op):
        wanted_axes: list[int] = [int(v) % rank for v in mine]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return sorted(wanted_axes) == sorted(int(v) % rank for v in theirs)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return False


def _equal_constants(a: SSAValue, b: SSAValue) -> bool:
    mine, theirs = constant_value(a), constant_value(b)
    return mine is not None and theirs is not None and mine.size <= 64 and np.array_equal(mine, theirs)


def _told(value: SSAValue) -> str:
    if isinstance(value.type, NoneType):
        return "nothing"
    owner = value.owner
    if isinstance(owner, OnnxOp):
        return "a constant" if owner.name == "onnx.Constant" else f"{owner.qualified_name} '{_called(owner)}'"
    graph = value.owner.parent_op() if isinstance(value, BlockArgument) else None
    names = graph.input_names if isinstance(graph, GraphOp) and isinstance(value, BlockArgument) else []
    return f"input '{names[value.index]}'" if names and isinstance(value, BlockArgument) else "an input of the graph"


def _called(op: OnnxOp) -> str:
    return op.node_name or next(iter(op.output_names), "") or op.op_type
