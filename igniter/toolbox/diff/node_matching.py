"""Matching of the nodes of two models, with different names and orders of nodes.

    match_nodes(a, b, pairs) -> NodePairs       of two blocks, with the values known to be equal (inputs by name)

Four kinds of evidence, the surest first:

1. *The same computation*: nodes with the same whole history, with the same constants as far as shape, type and first
   bytes go; then without comparing the values of constants. Histories are numbered, equal ones alike, so this is one
   walk.
2. *The same neighbours*: nodes of one op between matched ones, along operands backwards and along uses forwards.
3. *The same name*, of the node or a result, and the same op.
4. *The same place*: nodes of different ops that feed the same operand of matched nodes: one was replaced by the other.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import NoneType
from xdsl.ir import Block, SSAValue

from igniter.dialects.onnx.algebra import attributes_key, commutes, said_attributes
from igniter.dialects.onnx.base import OnnxOp, constant_value, constant_weight
from igniter.dialects.onnx.structure import ReturnOp
from igniter.dialects.onnx.weights import Weight


@dataclass
class NodePairs:
    """Matched nodes in both directions, and matched values, arguments among them."""

    to_b: dict[OnnxOp, OnnxOp] = field(default_factory=dict[OnnxOp, OnnxOp])
    to_a: dict[OnnxOp, OnnxOp] = field(default_factory=dict[OnnxOp, OnnxOp])
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])


def weight_of(value: SSAValue) -> Weight | None:
    """Returns the weight of a constant of any form."""
    weight = constant_weight(value)
    if weight is not None or not is_constant(value):
        return weight
    array = constant_value(value)
    return None if array is None else Weight.of(array)


def is_constant(value: SSAValue) -> bool:
    """True if the value is the result of an ONNX Constant."""
    return value.owner.name == "onnx.Constant" if isinstance(value.owner, OnnxOp) else False


def nodes_of(block: Block) -> list[OnnxOp]:
    """Returns the nodes of a block without its constants."""
    return [op for op in block.ops if isinstance(op, OnnxOp) and op.name != "onnx.Constant"]


def match_nodes(a: Block, b: Block, values: Mapping[SSAValue, SSAValue]) -> NodePairs:
    """Returns the matching nodes; `values` are the pairs of values from outside the blocks."""
    matcher = _Matcher(a, b, values)
    matcher.by_history(exact=True)
    matcher.propagate()
    matcher.by_history(exact=False)
    matcher.propagate()
    matcher.by_name()
    matcher.propagate()
    matcher.by_place()
    matcher.propagate()
    return matcher.pairs


class _Matcher:
    def __init__(self, a: Block, b: Block, values: Mapping[SSAValue, SSAValue]):
        self.blocks = a, b
        self.pairs = NodePairs(values=dict(values))
        self._queue: deque[tuple[OnnxOp, OnnxOp]] = deque()
        self._keys: dict[OnnxOp, Hashable] = {}
        self._order = {op: k for block in (a, b) for k, op in enumerate(block.ops)}

    def match(self, a: OnnxOp, b: OnnxOp) -> None:
        """Records a match of two nodes."""
        pairs = self.pairs
        pairs.to_b[a], pairs.to_a[b] = b, a
        pairs.values.update(zip(a.results, b.results, strict=False))
        self._queue.append((a, b))

    def is_free(self, a: OnnxOp, b: OnnxOp) -> bool:
        """True if neither is matched yet."""
        return a not in self.pairs.to_b and b not in self.pairs.to_a

    # -- the same computation ----------------------------------------------------------------------------------------

    def by_history(self, exact: bool) -> None:
        """Matches nodes of equal computation."""
        numbers: dict[Hashable, int] = {}
        known: list[dict[SSAValue, int]] = [{}, {}]
        for k, (mine, theirs) in enumerate(self.pairs.values.items()):
            known[0][mine] = known[1][theirs] = numbers.setdefault(("given", k), len(numbers))
        found: list[dict[int, list[OnnxOp]]] = []
        for side, block in enumerate(self.blocks):
            history = _History(numbers, known[side], exact)
            history.block(block)
            found.append(history.nodes)
        for number, mine in found[0].items():
            free = [op for op in mine if op not in self.pairs.to_b]
            others = [op for op in found[1].get(number, ()) if op not in self.pairs.to_a]
            for a, b in zip(free, others, strict=False):
                self.match(a, b)

    # -- the same neighbours -----------------------------------------------------------------------------------------

    def propagate(self) -> None:
        """Matches nodes along the edges of matched ones."""
        ends = [block.last_op for block in self.blocks]
        if all(isinstance(e, ReturnOp) for e in ends) and ends[0] is not None and ends[1] is not None:
            for a, b in zip(ends[0].operands, ends[1].operands, strict=False):
                self._backward(a, b, _same_op)
        for a, b in list(self.pairs.values.items()):
            self._forward(a, b)
        while self._queue:
            a, b = self._queue.popleft()
            for va, vb in operand_pairs(a, b, self.pairs.values):
                self._backward(va, vb, _same_op)
            for va, vb in zip(a.results, b.results, strict=False):
                self._forward(va, vb)

    def _backward(self, a: SSAValue, b: SSAValue, fits: Callable[[OnnxOp, OnnxOp], bool]) -> None:
        one, other = a.owner, b.owner
        if isinstance(one, OnnxOp) and isinstance(other, OnnxOp) and self.is_free(one, other):
            if is_constant(a) or is_constant(b) or one.parent is not self.blocks[0]:
                return
            if fits(one, other) and a.index == b.index:  # pyright: ignore[reportAttributeAccessIssue]
                self.match(one, other)

    def _forward(self, a: SSAValue, b: SSAValue) -> None:
        users = self._users(a, self.blocks[0], self.pairs.to_b)
        others = self._users(b, self.blocks[1], self.pairs.to_a) if users else {}
        for key, mine in users.items():
            theirs = others.get(key, [])
            rest = list(theirs)
            for op in sorted(mine, key=lambda m: all(self._key(m) != self._key(t) for t in theirs)):
                same = [t for t in rest if self._key(t) == self._key(op)] or rest
                if same and op not in self.pairs.to_b:
                    chosen = same[0]
                    rest.remove(chosen)
                    self.match(op, chosen)

    def _users(
        self, value: SSAValue, block: Block, taken: Mapping[OnnxOp, OnnxOp]
    ) -> dict[tuple[str, int], list[OnnxOp]]:
        """Returns the unmatched readers of a value in a block, by op and operand, in order."""
        found: dict[tuple[str, int], dict[OnnxOp, None]] = defaultdict(dict)
        for use in value.uses:
            op = use.operation
            if isinstance(op, OnnxOp) and op not in taken and op.parent is block:
                index = -1 if commutes(op) else use.index
                found[op.qualified_name, index][op] = None
        return {key: sorted(ops, key=self._order.__getitem__) for key, ops in found.items()}

    def _key(self, op: OnnxOp) -> Hashable:
        if op not in self._keys:
            self._keys[op] = attributes_key(said_attributes(op))
        return self._keys[op]

    # -- names and places --------------------------------------------------------------------------------------------

    def by_name(self) -> None:
        """Matches nodes of one op with the same name, or with results of the same name."""
        named: dict[tuple[str, str], OnnxOp] = {}
        for op in nodes_of(self.blocks[1]):
            for name in (op.node_name, *op.output_names):
                if name and op not in self.pairs.to_a:
                    named.setdefault((op.qualified_name, name), op)
        for op in nodes_of(self.blocks[0]):
            for name in (op.node_name, *op.output_names):
                other = named.get((op.qualified_name, name)) if name else None
                if other is not None and self.is_free(op, other):
                    self.match(op, other)

    def by_place(self) -> None:
        """Matches nodes of different ops at the same place before a matched one."""
        for a, b in list(self.pairs.to_b.items()):
            for va, vb in operand_pairs(a, b, self.pairs.values):
                self._backward(va, vb, lambda one, other: True)
        ends = [block.last_op for block in self.blocks]
        if ends[0] is not None and ends[1] is not None:
            for va, vb in zip(ends[0].operands, ends[1].operands, strict=False):
                self._backward(va, vb, lambda one, other: True)


def _same_op(a: OnnxOp, b: OnnxOp) -> bool:
    return a.qualified_name == b.qualified_name


def operand_pairs(a: OnnxOp, b: OnnxOp, values: Mapping[SSAValue, SSAValue]) -> list[tuple[SSAValue, SSAValue]]:
    """Pairs the operands of two matched nodes by position; commutative operands by known equalities."""
    mine, theirs = list(a.operands), list(b.operands)
    if not (commutes(a) and commutes(b)) or len(mine) != len(theirs):
        return list(zip(mine, theirs, strict=False))
    pairs: list[tuple[SSAValue, SSAValue]] = []
    for value in list(mine):
        other = values.get(value)
        if other in theirs and other is not None:
            theirs.remove(other)
            mine.remove(value)
            pairs.append((value, other))
    # The rest: constants with constants, nodes with nodes of the same op.
    for value in list(mine):
        alike = [t for t in theirs if _kind(t) == _kind(value)]
        if alike:
            theirs.remove(alike[0])
            mine.remove(value)
            pairs.append((value, alike[0]))
    return [*pairs, *zip(mine, theirs, strict=True)]


def _kind(value: SSAValue) -> str:
    return value.owner.qualified_name if isinstance(value.owner, OnnxOp) else "argument"


class _History:
    """Numbers for the histories of values."""

    def __init__(self, numbers: dict[Hashable, int], known: dict[SSAValue, int], exact: bool):
        self.numbers = numbers
        self.known = dict(known)
        self.exact = exact
        self.nodes: dict[int, list[OnnxOp]] = defaultdict(list)

    def block(self, block: Block) -> Hashable:
        """Numbers the values of a block; returns a key of the block."""
        for i, arg in enumerate(block.args):
            self.known.setdefault(arg, self._number(("argument", i, str(arg.type))))
        for op in block.ops:
            if isinstance(op, OnnxOp):
                self._node(op)
        end = block.last_op
        return tuple(self._of(v) for v in end.operands) if end is not None else ()

    def _node(self, op: OnnxOp) -> None:
        if op.name == "onnx.Constant":
            number = self._number(("constant", *self._constant(op.results[0])))
            self.known[op.results[0]] = number
            return
        operands = [self._of(v) for v in op.operands]
        if commutes(op):
            operands.sort()
        regions = tuple(_History(self.numbers, self.known, self.exact).block(r.block) for r in op.regions)
        # The number of results distinguishes nodes with and without optional results.
        said = attributes_key(said_attributes(op))
        number = self._number((op.qualified_name, op.overload, said, tuple(operands), regions, len(op.results)))
        self.nodes[number].append(op)
        for i, result in enumerate(op.results):
            self.known[result] = self._number((number, i))

    def _constant(self, value: SSAValue) -> Sequence[Hashable]:
        weight = weight_of(value)
        if weight is None:
            return (str(value.type),)
        return (weight.shape, str(weight.element_type), hash(weight) if self.exact else 0)

    def _of(self, value: SSAValue) -> int:
        if isinstance(value.type, NoneType):
            return self._number("none")
        return self.known.get(value, -1)

    def _number(self, key: Hashable) -> int:
        return self.numbers.setdefault(key, len(self.numbers))
