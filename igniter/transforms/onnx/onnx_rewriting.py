"""The driver of rewrites on the `onnx` level, and what rewrite rules are written with.

A rule is a function of a node and a `Rewriter` that gives the values to take the place of the node's results, or
`None` where it does not apply. Tables map an op's qualified name to its rules. The driver keeps one worklist for all
graphs, nested ones too; a node comes back to it when something it reads, or what reads it, has changed. Each rewrite
costs what it changes, so a run is linear in the graph and the number of rewrites, and nothing that is dead stays.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, NoneType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from igniter.dialects.onnx.base import NoValueOp, OnnxOp, constant_value, constant_weight, make_constant, make_op
from igniter.dialects.onnx.registry import VALUES_ATTRIBUTE, Dims
from igniter.dialects.sym.broadcasting import broadcast_dims
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.tensor_types import known_dims_of, tensor_element
from igniter.rewrites import Budget, unlimited

if TYPE_CHECKING:
    import numpy as np

Replacement = Sequence[SSAValue | None]
Rule = Callable[[OnnxOp, "Rewriter"], "Replacement | None"]
Rules = Mapping[str, Sequence[Rule]]


class Rewriter:
    """Builds nodes in front of the one that is being rewritten, and keeps the worklist."""

    def __init__(self, rules: Rules, rewrites: Budget | None = None):
        self.rules = rules
        self.rewrites = unlimited() if rewrites is None else rewrites
        self.applied: dict[str, int] = {}
        """How often each rule rewrote a node, by the rule's name."""
        self.wanted: set[int] = set()
        """Opsets that a rule would have needed."""
        self._queue: deque[Operation] = deque()
        self._queued: set[Operation] = set()
        self._erased: set[Operation] = set()
        self._root: OnnxOp | None = None
        self._made: list[OnnxOp] = []
        self.memo: dict[Hashable, SSAValue] = {}
        """What rules want to remember of a value, or of several; check with `is_alive`."""

    # -- for rules ---------------------------------------------------------------------------------------------------

    @property
    def root(self) -> OnnxOp:
        """The node that is being rewritten."""
        assert self._root is not None
        return self._root

    def op(
        self,
        name: str,
        inputs: Sequence[SSAValue | None],
        result_types: Sequence[Attribute],
        attrs: Mapping[str, Any] | None = None,
        before: Operation | None = None,
    ) -> OnnxOp:
        """A new node in front of the root, or of `before`. It takes over the root's name when it replaces it."""
        given = list(inputs)
        while given and given[-1] is None:
            given.pop()
        operands = [v if v is not None else self._insert(NoValueOp.make(), before).results[0] for v in given]
        made = make_op(name, operands, result_types, attrs)
        self._insert(made, before)
        self._made.append(made)
        return made

    def constant(self, array: np.ndarray[Any, Any]) -> SSAValue:
        """A new constant in front of the root."""
        return self._insert(make_constant(array)).results[0]

    def insert(self, op: Operation) -> None:
        """Puts a node, a named constant say, in front of the root."""
        self._insert(op)

    def set_operand(self, op: Operation, index: int, value: SSAValue) -> None:
        """Gives a node another operand, of which `infer-shapes` has noted nothing."""
        before = op.operands[index]
        op.operands[index] = value
        noted = op.attributes.get(VALUES_ATTRIBUTE)
        if isinstance(noted, DictionaryAttr):
            kept = {key: values for key, values in noted.data.items() if key != str(index)}
            op.attributes[VALUES_ATTRIBUTE] = DictionaryAttr(kept)
        self.push(op)
        self._release([before])

    def want_opset(self, version: int) -> None:
        """Notes that the rule would apply in a later opset."""
        self.wanted.add(version)

    def push(self, op: Operation) -> None:
        """Puts a node on the worklist."""
        if op not in self._queued and op not in self._erased and isinstance(op, OnnxOp):
            self._queue.append(op)
            self._queued.add(op)

    def is_alive(self, value: SSAValue) -> bool:
        """Whether the node that defines a value is still there."""
        return value.owner not in self._erased

    def _insert(self, op: Operation, before: Operation | None = None) -> Operation:
        place = before if before is not None else self.root
        block = place.parent
        assert block is not None
        block.insert_op_before(op, place)
        return op

    # -- driving -----------------------------------------------------------------------------------------------------

    def run(self, ops: Iterable[Operation]) -> bool:
        """Rewrites until no rule applies; whether any did."""
        for op in ops:
            self.push(op)
        before = sum(self.applied.values())
        while self._queue:
            op = self._queue.popleft()
            self._queued.discard(op)
            if op in self._erased or not isinstance(op, OnnxOp):
                continue
            if is_unused(op):
                self.erase(op)
                continue
            self._rewrite(op)
        return sum(self.applied.values()) > before

    def _rewrite(self, op: OnnxOp) -> None:
        for rule in self.rules.get(op.qualified_name, ()):
            if self.rewrites.is_spent:
                return
            self._root, self._made = op, []
            values = rule(op, self)
            if values is None:
                for made in reversed(self._made):
                    if is_unused(made):
                        self.erase(made)
                continue
            name = getattr(rule, "__name__", "rule").strip("_")
            self.applied[name] = self.applied.get(name, 0) + 1
            self.rewrites.count(op.node_name, f"{op.qualified_name}: {name.replace('_', ' ')}")
            self.replace(op, values)
            return

    def replace(self, op: OnnxOp, values: Replacement) -> None:
        """Puts `values` in the place of the node's results and erases it; an unused result may have `None`."""
        for made in self._made:
            self.push(made)
        if list(values) == list(op.results):
            self.push(op)
            return
        _keep_names(op, values, self._made)
        for result, value in zip(op.results, values, strict=True):
            if result.first_use is None:
                continue
            if value is None:
                raise ValueError(f"{op.qualified_name} {op.node_name!r}: a result that is used was not replaced")
            for use in result.uses:
                self.push(use.operation)
            result.replace_all_uses_with(value)
            if isinstance(value.owner, Operation):
                self.push(value.owner)
        self.erase(op)

    def erase(self, op: Operation) -> None:
        """Erases a node without uses, and what only it used."""
        if op in self._erased:
            return
        operands = [*op.operands, *_captured(op)]
        self._erased.update(op.walk())
        block = op.parent
        assert block is not None
        block.erase_op(op)
        self._release(operands)

    def _release(self, values: Iterable[SSAValue]) -> None:
        for value in values:
            owner = value.owner
            if not isinstance(owner, Operation) or owner in self._erased:
                continue
            if is_unused(owner):
                self.erase(owner)
            else:
                # Patterns ask for single uses: what reads the value may match now.
                use = value.get_unique_use()
                if use is not None:
                    self.push(use.operation)
                self.push(owner)


def run_rules(module: ModuleOp, rules: Rules, rewrites: Budget | None = None) -> Rewriter:
    """Applies a table to every graph and function of the module until nothing changes, or no more may be rewritten."""
    rewriter = Rewriter(rules, rewrites)
    rewriter.run(op for op in module.walk() if isinstance(op, OnnxOp))
    return rewriter


def is_unused(op: Operation) -> bool:
    """Whether a node is dead: none of its results is used. ONNX nodes do nothing but give results."""
    return isinstance(op, (OnnxOp, NoValueOp)) and all(r.first_use is None for r in op.results)


def _captured(op: Operation) -> list[SSAValue]:
    """What the graphs inside a node read from around it."""
    if not op.regions:
        return []
    found: list[SSAValue] = []
    inside = {id(o) for o in op.walk()}
    for inner in op.walk():
        for value in inner.operands if inner is not op else ():
            owner = value.owner
            if isinstance(owner, Operation) and id(owner) not in inside:
                found.append(value)
    return found


def _keep_names(op: OnnxOp, values: Replacement, made: Sequence[OnnxOp]) -> None:
    """The replacement answers to the node's name and its results to their names, where it was made for it."""
    for value in values:
        owner = value.owner if isinstance(value, OpResult) else None
        if owner in made and isinstance(owner, OnnxOp) and owner.op_type != "Constant":
            for key in ("node_name", "output_names"):
                found = op.properties.get(key)
                if found is not None and key not in owner.properties and len(owner.results) == len(op.results):
                    owner.properties[key] = found
    for result, value in zip(op.results, values, strict=True):
        if value is not None and value.name_hint is None and result.name_hint is not None:
            value.name_hint = result.name_hint


# -- what rules ask ---------------------------------------------------------------------------------------------------


def known_dims(value: SSAValue | None) -> Dims | None:
    """The dims of a value; `None` where the rank or a dim's name is not known."""
    return None if value is None else known_dims_of(value.type)


def same_dims(a: SSAValue | None, b: SSAValue | None) -> bool:
    """Whether two values are known to have equal dims in every run."""
    dims = known_dims(a)
    return dims is not None and dims == known_dims(b)


def element(value: SSAValue | None) -> Attribute | None:
    """The element type; `None` for what is no tensor."""
    return None if value is None else tensor_element(value.type)


def broadcast(shapes: Sequence[Dims]) -> Dims | None:
    """The dims that broadcasting gives in every run; `None` where a dim depends on whether a symbol is 1."""
    rank = max(map(len, shapes), default=0)
    result: list[Expr] = []
    for i in range(rank):
        dim = broadcast_dims([s[i - rank + len(s)] for s in shapes if i - rank + len(s) >= 0])
        if dim is None:
            return None
        result.append(dim)
    return tuple(result)


def splat(value: SSAValue | None) -> float | int | bool | None:
    """The one number that a small constant consists of; `None` for anything else."""
    weight = constant_weight(value)
    if weight is not None and (weight.size > 64 or weight.elided or weight.strings is not None):
        return None
    array = constant_value(value)
    if array is None or array.size == 0 or array.dtype.kind not in "fiub":
        return None
    first = array.reshape(-1)[0]
    return first.item() if array.size == 1 or array.tobytes() == first.tobytes() * array.size else None


def defining(value: SSAValue | None, *names: str) -> OnnxOp | None:
    """The node that defines a value, if it is one of the named ops."""
    owner = value.owner if isinstance(value, OpResult) else None
    return owner if isinstance(owner, OnnxOp) and owner.qualified_name in names else None


def operand(op: OnnxOp, index: int) -> SSAValue | None:
    """An operand; `None` when it is omitted."""
    if index >= len(op.operands) or isinstance(op.operands[index].type, NoneType):
        return None
    return op.operands[index]


def ints_of(value: SSAValue | None) -> list[int] | None:
    """The elements of a constant of integers."""
    array = constant_value(value)
    return [int(v) for v in array.reshape(-1).tolist()] if array is not None and array.dtype.kind in "iu" else None


def owning_block(value: SSAValue) -> Block | None:
    """The block that a value is defined in."""
    owner = value.owner
    return owner if isinstance(owner, Block) else owner.parent
