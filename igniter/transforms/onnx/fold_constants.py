"""`fold-constants`: computes input-independent values at compile time.

    %a = onnx.Transpose(%w) {perm = [1, 0]}    // %w a constant of 4x8            %a = onnx.Constant  // 8x4
    %s = onnx.Shape(%x)                        // x: 3x768                 ->     %s = onnx.Constant  // [3, 768]
    %y = onnx.Reshape(%x, %t) {igniter.values = {"1" = #sym.dims<6, 384>}}        %y = onnx.Reshape(%x, [6, 384])

A node is folded if it is deterministic, all its operands are constant, and its results are small: at most `max_bytes`,
and at most `max_growth` times its operands once they exceed 64 KiB, because an Expand or ConstantOfShape must not add
megabytes to the file. A node of more growth waits until a costly function, such as a logarithm, reads it: then it is
folded together with the function, up to 4 MiB, as are readers of the function's result. A node that only moves or
converts a weight is folded at any size, if its result is no larger than its operands: layouts are chosen at compile
time, not in each run. The nodes run together in one ONNX Runtime session, so the bits are ONNX Runtime's; the `fold` of
an op's spec has precedence if its operands are at hand. Integers found by shape inference become constants as well: so
this pass follows `infer-shapes`, and new constants may let inference find more.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, NoneType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.onnx.stored_weights import transposed, turned, widened
from igniter.dialects.onnx.base import (
    NoValueOp,
    OnnxOp,
    constant_value,
    constant_weight,
    imported_opset,
    make_constant,
)
from igniter.dialects.onnx.draws import RANDOM_OPS
from igniter.dialects.onnx.ops import spec_of
from igniter.dialects.onnx.registry import VALUES_ATTRIBUTE
from igniter.dialects.onnx.rule_guards import NoAnswer, say_failed_rules
from igniter.dialects.onnx.structure import GraphOp
from igniter.dialects.onnx.types import BY_ATTR
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym import DimsAttr
from igniter.dialects.sym.expr import product
from igniter.frontend.evaluate import CannotEvaluate, evaluate_nodes
from igniter.remarks import remark
from igniter.rewrite_budget import Budget, budget
from igniter.transforms.onnx.foldable import bytes_of, is_costly, is_weight, keeps_bytes
from igniter.transforms.onnx.onnx_rewriting import element, is_unused, known_dims, operand

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

_LAYOUT = frozenset(("Cast", "Flatten", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"))
SMALL = 64 * 1024
"""Results of fewer bytes are always folded."""
GROWN = 4 << 20
"""The largest result of a node that is folded because a costly function reads it, and of the function."""
LARGE = 16 << 20
"""The least bytes of a weight for a Transpose that is computed at each access."""


@dataclass(frozen=True)
class FoldConstants(ModulePass):
    """Computes input-independent values at compile time."""

    name = "fold-constants"
    one_rewrite = "a node folded, or an operand replaced by integers known from shape inference"
    max_bytes: int = 32 << 20
    """The largest size of a node's results in bytes; layouts and conversions may also have the size of their
    operands."""
    max_growth: int = 2
    """The largest ratio of results over 64 KiB to the operands."""
    weights: bool = True
    """Folds results over 64 KiB."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for graph in op.ops:
            # The body of a function may read attributes of its caller.
            if isinstance(graph, GraphOp):
                folder = _Folder(self, ctx)
                folder.known_integers(graph.body)
                folder.collect(graph.body)
                folder.finish()
        say_failed_rules(ctx, op, self.name)


@dataclass(frozen=True)
class _Waiting:
    """A node that is folded only together with a costly one: its constants, the reason why it is not alone, and its
    place in the order of waiting nodes."""

    weights: dict[SSAValue, Weight]
    reason: str
    number: int


@dataclass
class _Folder:
    options: FoldConstants
    ctx: Context
    constants: dict[SSAValue, Weight] = field(default_factory=dict["SSAValue", "Weight"])
    """The model's constants read by folded nodes."""
    values: dict[SSAValue, Array] = field(default_factory=dict["SSAValue", "Array"])
    """The results already computed by specs."""
    derived: dict[SSAValue, Weight] = field(default_factory=dict["SSAValue", "Weight"])
    """The results with widened 16-bit floats of the model."""
    pending: dict[OnnxOp, None] = field(default_factory=dict["OnnxOp", None])
    """The nodes to run, in order."""
    sizes: dict[SSAValue, int] = field(default_factory=dict["SSAValue", int])
    waiting: dict[Operation, _Waiting] = field(default_factory=dict["Operation", "_Waiting"])
    """The nodes with results too large for their operands, and the readers of such results."""
    numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def rewrites(self) -> Budget:
        return budget(self.ctx, self.options.name)

    # -- integers known to inference ----------------------------------------------------------------------------------

    def known_integers(self, block: Block) -> None:
        """Replaces operands by integers recorded by `infer-shapes`, and shapes of static tensors by constants."""
        made: dict[tuple[SSAValue, Block], SSAValue] = {}
        for op in list(block.ops):
            for region in op.regions:
                for inner in region.blocks:
                    self.known_integers(inner)
            if not isinstance(op, OnnxOp):
                continue
            if op.qualified_name in ("Shape", "Size"):
                self._fold_shape(op)
                continue
            self._use_noted(op, block, made)

    def _use_noted(self, op: OnnxOp, block: Block, made: dict[tuple[SSAValue, Block], SSAValue]) -> None:
        noted = op.attributes.get(VALUES_ATTRIBUTE)
        if not isinstance(noted, DictionaryAttr):
            return
        kept = dict(noted.data)
        for key, dims in noted.data.items():
            value = op.operands[int(key)]
            array = _integers(dims, value) if isinstance(dims, DimsAttr) else None
            if array is None or not self.rewrites.take(op.node_name, f"operand {key} of {op.qualified_name} is known"):
                continue
            where = (value, block)
            if where not in made:
                constant = make_constant(array)
                first = block.first_op
                assert first is not None
                block.insert_op_before(constant, first)
                made[where] = constant.results[0]
            op.operands[int(key)] = made[where]
            del kept[key]
            erase_dead([value])
        if kept:
            op.attributes[VALUES_ATTRIBUTE] = DictionaryAttr(kept)
        else:
            del op.attributes[VALUES_ATTRIBUTE]

    def _fold_shape(self, op: OnnxOp) -> None:
        dims = known_dims(operand(op, 0))
        if dims is None or op.parent is None:
            return
        if op.op_type == "Size":
            size = product(dims).constant
            ints = None if size is None else [size]
        else:
            picked = dims[slice(op.attr("start", 0), op.attr("end", len(dims)))]
            found = [d.constant for d in picked]
            ints = [v for v in found if v is not None] if None not in found else None
        if ints is None or not self.rewrites.take(op.node_name, f"{op.qualified_name} is known"):
            return
        array = np.array(ints if op.op_type == "Shape" else ints[0], dtype=np.int64)
        self._replace(op, [array])

    # -- nodes on constants -------------------------------------------------------------------------------------------

    def collect(self, block: Block) -> None:
        """Finds the nodes to fold, in order."""
        for op in list(block.ops):
            for region in op.regions:
                for inner in region.blocks:
                    self.collect(inner)
            if isinstance(op, OnnxOp) and op.op_type != "Constant" and not is_unused(op):
                self._consider(op)

    def _consider(self, op: OnnxOp) -> None:
        if op.regions or (not op.operands and op.op_type in RANDOM_OPS):
            return
        weights: dict[SSAValue, Weight] = {}
        for value in op.operands:
            if isinstance(value.owner, NoValueOp) or value in self.sizes or value.owner in self.waiting:
                continue
            weight = constant_weight(value)
            if weight is None:
                array = constant_value(value)
                weight = _weight_of(array) if array is not None else None
            if weight is None or weight.elided:
                return
            weights[value] = weight
        reason = self._refusal(op, weights)
        if reason is not None:
            self._missed(op, reason)
            return
        growth = self._growth(op, weights)
        if growth is not None and _total(op) > GROWN:
            if growth:
                self._missed(op, growth)
        elif growth is not None and not self._pays(op):
            self.waiting[op] = _Waiting(weights, growth, next(self.numbers))
        elif self.rewrites.take(op.node_name, f"{op.qualified_name} is folded"):
            self._fold(op, weights)

    def _missed(self, op: Operation, reason: str) -> None:
        assert isinstance(op, OnnxOp)
        remark(self.ctx, self.options.name, op.node_name, "missed", f"{op.qualified_name} is not folded: {reason}")

    def _refusal(self, op: OnnxOp, weights: dict[SSAValue, Weight]) -> str | None:
        schema = op.schema
        if schema is None:
            return "its op has no schema"
        if not schema.deterministic or op.op_type in RANDOM_OPS:
            return "it is random"
        if any(a.name == "onnx.ref" for a in op.attributes.values()):
            return "it reads an attribute of its function"
        if keeps_bytes(op):
            return "its reader multiplies integers"
        if self._as_stored(op, weights) is not None:
            # It needs no bytes of its own.
            return None
        sizes = [bytes_of(r) for r in op.results if not isinstance(r.type, NoneType)]
        known = [s for s in sizes if s is not None]
        if len(known) != len(sizes):
            return "the size of a result is unknown"
        total, read = sum(known), self._read(op, weights)
        if total > SMALL and not self.options.weights:
            return f"{total} bytes of results are a weight, and weights are not folded"
        # A node that only moves or converts a weight is always folded: layouts are chosen at compile time, not in each
        # run.
        if total > self.options.max_bytes and not (op.op_type in _LAYOUT and total <= read):
            return f"{total} bytes of results are more than max_bytes"
        return None

    def _read(self, op: OnnxOp, weights: dict[SSAValue, Weight]) -> int:
        """Returns the bytes of a node's operands: constants, and results of folded nodes."""
        return sum(w.nbytes for w in weights.values()) + sum(self.sizes.get(v, 0) for v in op.operands)

    def _growth(self, op: OnnxOp, weights: dict[SSAValue, Weight]) -> str | None:
        """Returns the reason why a node is not folded alone, "" if only an operand is not: it waits for one that
        pays."""
        total, read = _total(op), self._read(op, weights)
        if self._as_stored(op, weights) is not None:
            return None
        if total > SMALL and total > self.options.max_growth * read and not is_weight(op):
            return f"{total} bytes of results are too many for its {read} bytes of operands"
        if any(v.owner in self.waiting for v in op.operands):
            return ""
        return None

    def _pays(self, op: OnnxOp) -> bool:
        """True if a node of much growth is folded: it is costly, or reads the result of such a node."""
        folded = sum(size for v in op.operands if (size := self.sizes.get(v, 0)) > SMALL)
        return self.options.weights and (is_costly(op) or _total(op) <= self.options.max_growth * folded)

    def _fold(self, op: OnnxOp, weights: dict[SSAValue, Weight]) -> None:
        for earlier in self._awaited(op):
            self._fold(earlier, self.waiting.pop(earlier).weights)
        for result in op.results:
            self.sizes[result] = bytes_of(result) or 0
        derived = self._as_stored(op, weights)
        if derived is not None:
            self.derived[op.results[0]] = derived
            return
        arrays = self._by_spec(op, weights)
        if arrays is None:
            self.pending[op] = None
            self.constants.update(weights)
        else:
            self.values.update(zip(op.results, arrays, strict=True))

    def _awaited(self, op: OnnxOp) -> list[OnnxOp]:
        """Returns the waiting nodes whose results a node needs, in order."""
        found: dict[OnnxOp, None] = {}
        pending = [op]
        while pending:
            for value in pending.pop().operands:
                owner = value.owner
                if isinstance(owner, OnnxOp) and owner in self.waiting and owner not in found:
                    found[owner] = None
                    pending.append(owner)
        return sorted(found, key=lambda each: self.waiting[each].number)

    def _as_stored(self, op: OnnxOp, weights: dict[SSAValue, Weight]) -> Weight | None:
        """Returns a derived weight for a Cast of 16-bit floats to f32, or a Transpose of one: the stored form stays
        available. A large Transpose of a stored weight is derived too, so that no copy of it stays in memory."""
        if op.op_type not in ("Cast", "Transpose"):
            return None
        source, kind = op.operands[0], element(op.results[0])
        weight = self.derived.get(source, weights.get(source))
        if weight is None or kind is None:
            return None
        if op.op_type == "Cast":
            return widened(weight, kind)
        order = op.attr("perm") or range(len(weight.shape))[::-1]
        found = transposed(weight, order)
        if found is None and weight.nbytes >= LARGE and weight.strings is None and weight.derivation is None:
            return turned(weight, order)
        return found

    def _by_spec(self, op: OnnxOp, weights: dict[SSAValue, Weight]) -> list[Array] | None:
        spec = spec_of(op)
        if spec is None or spec.fold is None:
            return None
        arrays: list[Array | None] = []
        for value in op.operands:
            if isinstance(value.type, NoneType):
                arrays.append(None)
            elif value in self.values:
                arrays.append(self.values[value])
            elif value in self.derived:
                arrays.append(self.derived[value].array())
            elif value in weights:
                arrays.append(weights[value].array())
            else:
                return None
        try:
            return spec.fold(op, arrays)
        except NoAnswer:  # It is noted on the node.
            return None

    # -- running ------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Runs the pending nodes and replaces all folded results by constants."""
        for op, node in self.waiting.items():
            if node.reason:
                self._missed(op, node.reason)
        if self.pending:
            self._run(list(self.pending))
        folded: dict[OnnxOp, None] = {}
        for value in (*self.values, *self.derived):
            if isinstance(value.owner, OnnxOp) and value.owner.parent is not None:
                folded[value.owner] = None
        for op in folded:
            self._replace(op, [self.derived.get(r, self.values.get(r)) for r in op.results])

    def _run(self, ops: Sequence[OnnxOp]) -> None:
        wanted = [r for op in ops for r in op.results if any(u.operation not in self.pending for u in r.uses)]
        constants = dict(self.constants)
        for op in ops:
            for value in op.operands:
                if value in self.values:
                    constants[value] = _weight_of(self.values[value])
                elif value in self.derived:
                    constants[value] = self.derived[value]
        try:
            arrays = evaluate_nodes(ops, constants, wanted, _opsets(ops[0]))
        except CannotEvaluate as error:
            self._one_by_one(ops, str(error))
            return
        self.values.update(zip(wanted, arrays, strict=True))

    def _one_by_one(self, ops: Sequence[OnnxOp], reason: str) -> None:
        """Runs the nodes of a failed batch one by one, so that only the failing ones stay."""
        if len(ops) == 1:
            remark(self.ctx, self.options.name, ops[0].node_name, "missed", f"{ops[0].qualified_name}: {reason}")
            return
        for op in ops:
            ready = all(
                v in self.values or v in self.derived or v in self.constants or isinstance(v.type, NoneType)
                for v in op.operands
            )
            if ready:
                self.pending = {op: None}
                self._run([op])

    def _replace(self, op: OnnxOp, arrays: Sequence[Array | Weight | None]) -> None:
        block = op.parent
        if block is None:
            # A node read only by folded nodes was removed with them.
            return
        for result, array in zip(op.results, arrays, strict=True):
            if result.first_use is None:
                continue
            if array is None:
                # Only other folded nodes read it.
                continue
            weight = array if isinstance(array, Weight) else _weight_of(array)
            names = op.output_names
            constant = make_constant(weight, names[result.index] if result.index < len(names) else "")
            block.insert_op_before(constant, op)
            result.replace_all_uses_with(constant.results[0])
        erase_dead(op.results)


def _integers(dims: DimsAttr, value: SSAValue) -> Array | None:
    """Returns the elements as an array of the operand's type, if all are integers."""
    shape, kind = known_dims(value), element(value)
    constants = [d.constant for d in dims.data]
    if shape is None or kind is None or any(c is None for c in constants) or any(d.constant is None for d in shape):
        return None

    return np.array(constants, dtype=BY_ATTR[kind].dtype).reshape([d.constant or 0 for d in shape])


def _weight_of(array: Array) -> Weight:
    return Weight.of(array)


def _total(op: OnnxOp) -> int:
    """Returns the bytes of the results of a node, which are known."""
    return sum(bytes_of(r) or 0 for r in op.results if not isinstance(r.type, NoneType))


def _opsets(op: OnnxOp) -> dict[str, int]:
    domains = ("", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training", "com.microsoft")
    return {d: v for d in domains if (v := imported_opset(op, d)) is not None}


def erase_dead(values: Iterable[SSAValue]) -> None:
    """Erases the nodes that define these values if they are unused, and then their operands in turn."""
    queue = [v.owner for v in values]
    while queue:
        op = queue.pop()
        if isinstance(op, Operation) and op.parent is not None and is_unused(op):
            queue.extend(v.owner for v in op.operands)
            op.parent.erase_op(op)
