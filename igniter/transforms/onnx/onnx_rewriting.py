"""The driver of rewrites on the `onnx` level, and the helpers of rewrite rules.

A rule is a function of a node and a `Rewriter`. It returns the values that replace the node's results, or `None` if it
does not apply. Tables map an op's qualified name to its rules. The driver has one worklist for all graphs, including
nested ones; a node returns to it when its operands or readers change. The cost of a rewrite is proportional to its
changes, so a run is linear in the graph and the number of rewrites. Dead nodes are erased.
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
from igniter.rewrite_budget import Budget, unlimited

if TYPE_CHECKING:
    import numpy as np

Replacement = Sequence[SSAValue | None]
Rule = Callable[[OnnxOp, "Rewriter"], "Replacement | None"]
Rules = Mapping[str, Sequence[Rule]]


class Rewriter:
    """Builds nodes before the rewritten one, and keeps the worklist."""

    def __init__(self, rules: Rules, rewrites: Budget | None = None):
        self.rules = rules
        self.rewrites = unlimited() if rewrites is None else rewrites
        self.applied: dict[str, int] = {}
        """The number of rewrites by each rule, by the rule's name."""
        self.wanted: set[int] = set()
        """The opsets needed by rules, but not available."""
        self._queue: deque[Operation] = deque()
        self._queued: set[Operation] = set()
        self._erased: set[Operation] = set()
        self._root: OnnxOp | None = None
        self._made: list[OnnxOp] = []
        self.memo: dict[Hashable, SSAValue] = {}
        """A memo of rules, for a value or several; check entries with `is_alive`."""

    # -- for rules ----------------------------------------------------------------------------------------------------

    @property
    def root(self) -> OnnxOp:
        """The rewritten node."""
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
        """Inserts a new node before the root, or before `before`. If it replaces the root, it takes over the root's
        name."""
        given = list(inputs)
        while given and given[-1] is None:
            given.pop()
        operands = [v if v is not None else self._insert(NoValueOp.make(), before).results[0] for v in given]
        made = make_op(name, operands, result_types, attrs)
        self._insert(made, before)
        self._made.append(made)
        return made

    def constant(self, array: np.ndarray[Any, Any]) -> SSAValue:
        """Inserts a new constant before the root."""
        return self._insert(make_constant(array)).results[0]

    def insert(self, op: Operation) -> None:
        """Inserts a node, such as a named constant, before the root."""
        self._insert(op)

    def set_operand(self, op: Operation, index: int, value: SSAValue) -> None:
        """Gives a node another operand, without the recorded values of the old one."""
        before = op.operands[index]
        op.operands[index] = value
        noted = op.attributes.get(VALUES_ATTRIBUTE)
        if isinstance(noted, DictionaryAttr):
            kept = {key: values for key, values in noted.data.items() if key != str(index)}
            op.attributes[VALUES_ATTRIBUTE] = DictionaryAttr(kept)
        self.push(op)
        self._release([before])

    def want_opset(self, version: int) -> None:
        """Records that the rule would apply in a later opset."""
        self.wanted.add(version)

    def push(self, op: Operation) -> None:
        """Puts a node on the worklist."""
        if op not in self._queued and op not in self._erased and isinstance(op, OnnxOp):
            self._queue.append(op)
            self._queued.add(op)

    def is_alive(self, value: SSAValue) -> bool:
        """True if the node that defines a value still exists."""
        return value.owner not in self._erased

    def _insert(self, op: Operation, before: Operation | None = None) -> Operation:
        place = before if before is not None else self.root
        block = place.parent
        assert block is not None
        block.insert_op_before(op, place)
        return op

    # -- driving ------------------------------------------------------------------------------------------------------

    def run(self, ops: Iterable[Operation]) -> bool:
        """Rewrites until no rule applies. True if any did."""
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
        """Replaces the node's results by `values` and erases it; an unused result may have `None`."""
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
                raise ValueError(f"{op.qualified_name} {op.node_name!r}: the rewrite did not replace a used result")
            for use in result.uses:
                self.push(use.operation)
            result.replace_all_uses_with(value)
            if isinstance(value.owner, Operation):
                self.push(value.owner)
        self.erase(op)

    def erase(self, op: Operation) -> None:
        """Erases a node without uses, and nodes used only by it."""
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
                # Patterns require single uses: the remaining reader of the value may match now.
                use = value.get_unique_use()
                if use is not None:
                    self.push(use.operation)
                self.push(owner)


def run_rules(module: ModuleOp, rules: Rules, rewrites: Budget | None = None) -> Rewriter:
    """Applies a table to every graph and function of the module until nothing changes or the budget is spent."""
    rewriter = Rewriter(rules, rewrites)
    rewriter.run(op for op in module.walk() if isinstance(op, OnnxOp))
    return rewriter


def is_unused(op: Operation) -> bool:
    """True if a node is dead: none of its results is used. ONNX nodes have no other effect."""
    return isinstance(op, (OnnxOp, NoValueOp)) and all(r.first_use is None for r in op.results)


def _captured(op: Operation) -> list[SSAValue]:
    """Returns the outer values read by the graphs inside a node."""
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
    """Gives a new replacement node the node's name, and its results their names."""
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


# -- queries of rules -------------------------------------------------------------------------------------------------


def known_dims(value: SSAValue | None) -> Dims | None:
    """Returns the dims of a value; `None` if the rank or a dim's name is unknown."""
    return None if value is None else known_dims_of(value.type)


def same_dims(a: SSAValue | None, b: SSAValue | None) -> bool:
    """True if two values are known to have equal dims in every run."""
    dims = known_dims(a)
    return dims is not None and dims == known_dims(b)


def element(value: SSAValue | None) -> Attribute | None:
    """Returns the element type; `None` if the value is no tensor."""
    return None if value is None else tensor_element(value.type)


def broadcast(shapes: Sequence[Dims]) -> Dims | None:
    """Returns the dims of broadcasting in every run; `None` if a dim depends on a symbol being 1 or not."""
    rank = max(map(len, shapes), default=0)
    result: list[Expr] = []
    for i in range(rank):
        dim = broadcast_dims([s[i - rank + len(s)] for s in shapes if i - rank + len(s) >= 0])
        if dim is None:
            return None
        result.append(dim)
    return tuple(result)


def splat(value: SSAValue | None) -> float | int | bool | None:
    """Returns the repeated number of a small constant; `None` for anything else."""
    weight = constant_weight(value)
    if weight is not None and (weight.size > 64 or weight.elided or weight.strings is not None):
        return None
    array = constant_value(value)
    if array is None or array.size == 0 or array.dtype.kind not in "fiub":
        return None
    first = array.reshape(-1)[0]
    return first.item() if array.size == 1 or array.tobytes() == first.tobytes() * array.size else None


def defining(value: SSAValue | None, *names: str) -> OnnxOp | None:
    """Returns the node that defines a value, if it is one of the named ops."""
    owner = value.owner if isinstance(value, OpResult) else None
    return owner if isinstance(owner, OnnxOp) and owner.qualified_name in names else None


def operand(op: OnnxOp, index: int) -> SSAValue | None:
    """Returns an operand; `None` if it is omitted."""
    if index >= len(op.operands) or isinstance(op.operands[index].type, NoneType):
        return None
    return op.operands[index]


def ints_of(value: SSAValue | None) -> list[int] | None:
    """Returns the elements of a constant of integers; else None."""
    array = constant_value(value)
    return [int(v) for v in array.reshape(-1).tolist()] if array is not None and array.dtype.kind in "iu" else None


def owning_block(value: SSAValue) -> Block | None:
    """Returns the block that defines a value."""
    owner = value.owner
    return owner if isinstance(owner, Block) else owner.parent
