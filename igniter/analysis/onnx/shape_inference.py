"""The shape engine: static facts about every value of a model.

    infer_shapes(module) -> ShapeFacts        types with symbolic dims, and the elements of shape arithmetic

One pass over the graph in order, nested graphs included. Late equalities of dims (a MatMul deep in the model equates
those of two inputs) are substituted at the end, and their dependents are inferred again. The rule of an op is its
`OpSpec.infer`; without one, the rule of the onnx package; otherwise the type in the model stays. An unknown dim becomes
a fresh symbol, and so does a dim whose expression has become too long (`Expr.is_small`): products of sums double with
every factor. The engine does not change the IR.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp, NoneType, UnrankedTensorType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from igniter.analysis.onnx.dim_equalities import DimEqualities, symbol_names
from igniter.analysis.onnx.node_context import NodeContext
from igniter.analysis.onnx.node_memo import Interned, NodeMemo
from igniter.analysis.onnx.symbolic_values import (
    MAX_ELEMENTS,
    as_elements,
    elements_of,
    known_elements,
    symbolic_values,
)
from igniter.dialects.onnx import building
from igniter.dialects.onnx.attributes import TensorAttr
from igniter.dialects.onnx.base import OnnxOp, constant_value, constant_weight
from igniter.dialects.onnx.bound import is_carrier
from igniter.dialects.onnx.ops import spec_of
from igniter.dialects.onnx.registry import Dims, OpSpec, TensorInfo
from igniter.dialects.onnx.structure import GraphOp
from igniter.dialects.onnx.types import UNKNOWN, OptionalType, SequenceType
from igniter.dialects.sym import DimsAttr, tensor_of
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.ranges import NO_RANGES, simplify
from igniter.dialects.sym.requirements import Requirement
from igniter.dialects.sym.tensor_types import declared_dims, known_dims_of, ranked, tensor_element, unranked
from igniter.frontend.schema_inference import infer_result_types

if TYPE_CHECKING:
    import numpy as np

    from igniter.dialects.onnx.weights import Weight

    Array = np.ndarray[Any, Any]

MEMO = True
"""True if facts about a node are reused for equal nodes; tests compare both ways."""

SHAPE_ELEMENTS = frozenset(("bool", "int32", "int64"))
"""The element types of shape arithmetic."""

MAX_ROUNDS = 4
"""The most rounds that propagate late equalities. Each round only sharpens the facts of the one before."""


@dataclass(frozen=True)
class ShapeFacts:
    """The results of inference."""

    types: dict[SSAValue, Attribute]
    """The type of each value, in terms of canonical symbols."""
    values: dict[SSAValue, Dims]
    """The elements of small integer tensors, row-major, where they are functions of the symbols."""
    assumptions: dict[GraphOp, list[Requirement]] = field(default_factory=dict[GraphOp, list[Requirement]])
    """Per graph, the equalities of expressions assumed by the types, beyond those visible in the dims of its inputs."""
    equalities: dict[GraphOp, DimEqualities] = field(default_factory=dict[GraphOp, DimEqualities])
    """Per graph, the expressions found for its symbols."""
    failures: list[tuple[OnnxOp, str]] = field(default_factory=list[tuple[OnnxOp, str]])
    """Nodes whose own rule failed, with the reason; the type in the model was kept."""


def infer_shapes(module: ModuleOp, *, optimistic: bool = False) -> ShapeFacts:
    """Returns the facts about every value in the module's graphs. Functions are left out: a call has the type in the
    model.

    With `optimistic`, symbols that broadcast with each other are equal. Most models mean it, but it is not a fact: it
    serves to find valid sizes of a model.
    """
    types: dict[SSAValue, Attribute] = {}
    values: dict[SSAValue, Dims] = {}
    assumptions: dict[GraphOp, list[Requirement]] = {}
    equalities: dict[GraphOp, DimEqualities] = {}
    failures: list[tuple[OnnxOp, str]] = []
    for op in module.ops:
        if isinstance(op, GraphOp):
            engine = ShapeInference(op, optimistic=optimistic)
            engine.run()
            types.update(engine.final_types())
            values.update(engine.final_values())
            assumptions[op], equalities[op] = engine.equalities.assumptions, engine.equalities
            failures.extend(engine.failures.items())
    return ShapeFacts(types, values, assumptions, equalities, failures)


class ShapeInference:
    """Inference over one graph. `infos` holds the tensors, `others` the types of other values."""

    def __init__(self, graph: GraphOp, *, optimistic: bool = False):
        self.graph = graph
        self.optimistic = optimistic
        self.infos: dict[SSAValue, TensorInfo] = {}
        self.others: dict[SSAValue, Attribute] = {}
        self.elements: dict[SSAValue, Array] = {}
        self.failures: dict[OnnxOp, str] = {}
        self.varying: set[SSAValue] = set()
        """Values whose rank differs between iterations, branches or runs. The types in the model for them, and for
        their dependents, are ignored: ONNX Runtime only warns about wrong ones."""
        self.noted = 0
        """The number of facts beyond tensor types: symbols, failures, values of other kinds."""
        self.interned = Interned()
        self.memo: NodeMemo | None = NodeMemo(self) if MEMO else None
        self._fresh: dict[tuple[Operation | Block, str], str] = {}
        self._unfinished: set[str] = set()
        self._weights: dict[tuple[int, tuple[int, ...]], TensorInfo] = {}
        self._canonical: dict[int, TensorInfo] = {}
        self._canonical_at = 0
        """Infos in terms of canonical symbols, by identity, and their version of the equalities."""
        inputs = symbol_names(d for a in graph.body.args for d in declared_dims(a.type) or () if d is not None)
        self._owners: dict[str, tuple[Operation | Block, str] | None] = dict.fromkeys(inputs)
        """The dim that owns each declared symbol; `None` for symbols of inputs, whose names no other dim may take."""
        self.equalities = DimEqualities(inputs, solve_inputs=optimistic)
        self._taken = set(inputs)
        for name in inputs:
            self.equalities.declare(name)
        seen: set[int] = set()
        for op in building.ops_inside(graph):
            self._declare(op, seen)

    def _declare(self, op: Operation, seen: set[int]) -> None:
        """Declares the symbols of an op's types; `seen` holds the identities of visited types."""
        values: list[SSAValue] = list(op.results)
        if op.regions:
            values += [a for r in op.regions for b in r.blocks for a in b.args]
        for value in values:
            type_ = value.type
            if id(type_) in seen:
                continue
            seen.add(id(type_))
            tensor = ranked(type_)
            if tensor is None or not isinstance(tensor.encoding, DimsAttr):
                continue
            for name in symbol_names(d for d in declared_dims(type_) or () if d is not None):
                if name not in self._taken:
                    self._taken.add(name)
                    self.equalities.declare(name)

    # -- the walk ----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Infers until nothing changes."""
        for i, arg in enumerate(self.graph.body.args):
            self.assign_declared(arg, f"input_{i}")
        changed: set[SSAValue] | None = None
        for _ in range(MAX_ROUNDS):
            before = self.equalities.version
            self.infer_block(self.graph.body, changed)
            if self.equalities.version == before:
                return
            changed = self._resolve_all()
            if not changed:
                return

    def infer_block(self, block: Block, changed: set[SSAValue] | None = None) -> None:
        """Infers every node of a block; with `changed`, only the nodes that depend on these values."""
        for op in building.ops_of(block):
            if changed is None and op.name == "onnx.Constant":
                self._constant(op)
                continue
            if not isinstance(op, OnnxOp):
                for i, result in enumerate(op.results):
                    self.assign_declared(result, f"{op.name.rpartition('.')[2]}_{i}")
                continue
            if changed is not None and not op.regions and changed.isdisjoint(op.operands):
                continue
            if changed is None:
                self._infer(op)
                continue
            before = [(self.infos.get(r), self.elements.get(r)) for r in op.results]
            self._infer(op)
            changed.update(
                r
                for r, (info, values) in zip(op.results, before, strict=True)
                if info != self.infos.get(r) or not _same_elements(values, self.elements.get(r))
            )

    def _resolve_all(self) -> set[SSAValue]:
        """Substitutes the equalities in all facts; returns the changed values."""
        changed: set[SSAValue] = set()
        for value, info in self.infos.items():
            resolved = self.resolved(info)
            if resolved is not info:
                self.infos[value] = resolved
                changed.add(value)
        for value, array in self.elements.items():
            resolved = [None if e is None else self.equalities.resolve(e) for e in array.flat]
            if resolved != list(array.flat):
                self.elements[value] = self.interned.elements(resolved, array.shape)
                changed.add(value)
        return changed

    def _infer(self, op: OnnxOp) -> None:
        if op.name == "onnx.Constant":
            self._constant(op)
            return
        if op.attributes and is_carrier(op):
            # The dims of a carrier were written by Igniter itself.
            self.assign_declared(op.results[0], "carrier")
            return
        memo = self.memo
        key = memo.key(op) if memo is not None else None
        if memo is None or key is None:
            self._by_asking(NodeContext(self, op))
        elif not memo.take(key, op):
            before, ctx = memo.state(), NodeContext(self, op)
            memo.keep(key, ctx, before, self._by_asking(ctx))

    def _by_asking(self, ctx: NodeContext) -> list[Array | None]:
        """Infers a node by its rules; returns the elements of its results."""
        op = ctx.op
        self.equalities.node = op.node_name or op.qualified_name
        control = _control_flow(op)
        if control is not None:
            control(self, ctx)
            return []
        infos = self._by_rule(ctx)
        if infos is None:
            self._by_schema(ctx)
        else:
            for i, result in enumerate(op.results):
                self.assign(result, infos[i] if i < len(infos) else None, ctx)
        given = infos or []
        found: list[Array | None] = []
        for i, (result, array) in enumerate(zip(op.results, symbolic_values(ctx), strict=True)):
            values = given[i].values if i < len(given) else None
            if array is None and values is not None:
                array = self._given_elements(result, values)
            if array is not None:
                small = [e if e is None or e.is_small else None for e in array.flat]
                array = self.elements[result] = self.interned.elements(small, array.shape)
            found.append(array)
        return found

    def _given_elements(self, result: OpResult, values: Dims) -> Array | None:
        info = self.infos.get(result)
        dims = [d.constant for d in info.dims] if info is not None and info.dims is not None else None
        if dims is None or any(d is None for d in dims):
            return None
        return as_elements(values, [d for d in dims if d is not None])

    def _constant(self, op: Operation) -> None:
        result = op.results[0]
        value = op.attributes.get("value")
        if type(value) is TensorAttr:
            weight = value.data
            self.infos[result] = self._info_of_weight(weight)
            if weight.element.onnx_name in SHAPE_ELEMENTS and weight.size <= MAX_ELEMENTS and not weight.elided:
                self.elements[result] = self.interned.weight(weight)
            return
        self.assign_declared(result, "constant")
        array = constant_value(result)
        info = self.infos.get(result)
        if array is not None and info is not None:
            # PyTorch's exporter gives lists of one number the type of a scalar.
            self.infos[result] = self.interned.info(TensorInfo(info.element, tuple(map(Expr.of, array.shape))))
        elements = elements_of(array) if array is not None else None
        if elements is not None:
            self.elements[result] = self.interned.elements(list(elements.flat), elements.shape)

    def _info_of_weight(self, weight: Weight) -> TensorInfo:
        key = (weight.element.code, weight.shape)
        found = self._weights.get(key)
        if found is None:
            info = TensorInfo(weight.element_type, tuple(map(Expr.of, weight.shape)))
            found = self._weights[key] = self.interned.info(info)
        return found

    def _by_rule(self, ctx: NodeContext) -> list[TensorInfo] | None:
        """Returns the infos by the op's own rule; `None` without a rule or if it fails."""
        spec = find_spec(ctx.op)
        if spec is None or spec.infer is None:
            return None
        if any(v in self.others and type(v.type) is not NoneType for v in ctx.op.operands):
            # Rules handle tensors only; for sequences, also operands of Identity, the schemas are more precise.
            return None
        try:
            return spec.infer(ctx)
        except (ValueError, IndexError, ArithmeticError) as error:
            # A model without a valid run is reported by ORT.
            self.failures[ctx.op] = f"{type(error).__name__}: {error}"
            self.noted += 1
            return None

    def _by_schema(self, ctx: NodeContext) -> None:
        op = ctx.op
        operands = [None if type(v.type) is NoneType else self.type_of(v) for v in op.operands]
        hint = op.op_type.lower()
        types = infer_result_types(
            op,
            operands,
            [ctx.weight(i) for i in range(len(op.operands))],
            lambda result, dim: ctx.fresh(f"{hint}_{result}_{dim}" if len(op.results) > 1 else f"{hint}_{dim}"),
        )
        for i, result in enumerate(op.results):
            self.assign_type(result, UNKNOWN if types is None else types[i], ctx)

    # -- facts about a value -----------------------------------------------------------------------------------------

    def info(self, value: SSAValue) -> TensorInfo | None:
        """Returns the facts about a tensor; `None` for other values."""
        found = self.infos.get(value)
        return None if found is None else self.resolved(found)

    def type_of(self, value: SSAValue) -> Attribute:
        """Returns the type of any value, as far as it is known."""
        info = self.info(value)
        return self.others.get(value, value.type) if info is None else _type_of(info)

    def resolved(self, info: TensorInfo) -> TensorInfo:
        """Returns `info` in terms of canonical symbols; the same object if it already is."""
        version = self.equalities.version
        if info.dims is None or version == 0:
            return info
        if self._canonical_at != version:
            self._canonical, self._canonical_at = {}, version
        if self._canonical.get(id(info)) is info:
            return info
        resolve = self.equalities.resolve
        dims = tuple([resolve(d) for d in info.dims])
        found = info if dims == info.dims else self.interned.info(TensorInfo(info.element, dims))
        self._canonical[id(found)] = found
        return found

    def fresh(self, owner: Operation | Block, hint: str) -> Expr:
        """Returns an unconstrained symbol, always the same for one owner and hint."""
        key = (owner, hint)
        self.noted += 1
        if key not in self._fresh:
            base = re.sub(r"\W+", "_", hint).strip("_") or "dim"
            name, count = base, 0
            while name in self._taken:
                count += 1
                name = f"{base}_{count}"
            self._taken.add(name)
            self._fresh[key] = name
            self._unfinished.add(name)
            self.equalities.declare(name)
        return self.equalities.resolve(Expr.of(self._fresh[key]))

    # -- setting -----------------------------------------------------------------------------------------------------

    def assign_declared(self, value: SSAValue, hint: str) -> None:
        """Sets a value to its type in the model."""
        element, dims = tensor_element(value.type), declared_dims(value.type)
        if element is None:
            self.others[value] = value.type
            return
        if dims is None:
            self.infos[value] = self.interned.info(TensorInfo(element, None))
            return
        owner = value.owner
        named = tuple(self.fresh(owner, f"{hint}_{i}") if d is None else d for i, d in enumerate(dims))
        self.infos[value] = self.resolved(self.interned.info(TensorInfo(element, named)))

    def assign_type(self, result: SSAValue, type_: Attribute, ctx: NodeContext) -> None:
        """Sets a result to an inferred type of any kind; `!onnx.unknown` adds nothing."""
        element = tensor_element(type_)
        if element is not None:
            self.assign(result, TensorInfo(element, known_dims_of(type_)), ctx)
        elif type_ == UNKNOWN or _says_less(type_, result.type):
            self.assign(result, None, ctx)
        else:
            self.others[result] = type_
            self.noted += 1

    def assign_varying(self, result: SSAValue, type_: Attribute) -> None:
        """Sets a result whose rank is known to vary."""
        self.varying.add(result)
        self.noted += 1
        element = tensor_element(type_)
        if element is None:
            self.others[result] = type_
        else:
            self.infos[result] = self.interned.info(TensorInfo(element, known_dims_of(type_)))

    def assign(self, result: SSAValue, info: TensorInfo | None, ctx: NodeContext) -> None:
        """Sets a result to the info of its rule, completed by the type in the model where the rule knows nothing."""
        if type(result.type) is NoneType:
            return
        type_ = result.type
        op = ctx.op
        if (info is None or info.dims is None) and (_drops_ones(op) or any(v in self.varying for v in op.operands)):
            self.assign_varying(
                result, unranked(info.element if info is not None else tensor_element(type_) or UNKNOWN)
            )
            return
        if info is None or info.dims is None:
            given = declared_dims(type_)
            if given is not None:
                element = info.element if info is not None and info.element != UNKNOWN else tensor_element(type_)
                hint = f"{ctx.op.op_type.lower()}_{_index(result)}"
                info = TensorInfo(element or UNKNOWN, tuple(ctx.fresh(f"{hint}_{i}") for i in range(len(given))))
            elif info is None:
                self.assign_declared(result, "")
                return
        element = info.element
        if element == UNKNOWN:
            element = tensor_element(type_) or UNKNOWN
        if info.dims is None:
            self.infos[result] = self.interned.info(TensorInfo(element, None))
            return
        dims = tuple([d if d.constant is not None else simplify(d, NO_RANGES) for d in info.dims])
        hint = f"{ctx.op.op_type.lower()}_{_index(result)}"
        dims = tuple([d if d.is_small else self.fresh(ctx.op, f"{hint}_{i}") for i, d in enumerate(dims)])
        given = declared_dims(type_)
        if given is not None and len(given) == len(dims):
            for i, (dim, known) in enumerate(zip(dims, given, strict=True)):
                # A dim that the rule leaves open keeps its name in the model, unless another dim of the model has that
                # name.
                if dim.symbol in self._unfinished and known is not None and self._owns(ctx.op, f"{hint}_{i}", known):
                    self.equalities.equate(dim, known)
        if self._unfinished:
            self._unfinished.difference_update(d.symbol for d in dims if d.symbol is not None)
        self.infos[result] = self.resolved(self.interned.info(TensorInfo(element, dims)))

    def _owns(self, owner: Operation, hint: str, name: Expr) -> bool:
        """True if a declared symbol is the name of this dim; the first dim to use a name owns it."""
        return name.symbol is not None and self._owners.setdefault(name.symbol, (owner, hint)) == (owner, hint)

    # -- results -----------------------------------------------------------------------------------------------------

    def final_types(self) -> dict[SSAValue, Attribute]:
        """Returns the type of every value reached by inference."""
        made: dict[int, Attribute] = {}
        types: dict[SSAValue, Attribute] = {}
        for value, info in self.infos.items():
            # Infos are interned, and alive until the end.
            type_ = made.get(id(info))
            if type_ is None:
                type_ = made[id(info)] = _type_of(self.resolved(info))
            types[value] = type_
        types.update(self.others)
        return types

    def final_values(self) -> dict[SSAValue, Dims]:
        """Returns the elements of completely known values."""
        values: dict[SSAValue, Dims] = {}
        for value, array in self.elements.items():
            known = known_elements(array)
            if known is not None:
                values[value] = tuple(self.equalities.resolve(e) for e in known)
        return values


def _type_of(info: TensorInfo) -> Attribute:
    return unranked(info.element) if info.dims is None else tensor_of(info.element, info.dims)


def find_spec(op: OnnxOp) -> OpSpec | None:
    """Returns the op's spec, from the tables of the op families."""
    return spec_of(op)


def _says_less(type_: Attribute, known: Attribute) -> bool:
    """True if an inferred sequence or optional is less precise than the type in the model."""
    if isinstance(type_, (SequenceType, OptionalType)) and isinstance(known, type(type_)):
        return type_.element == UNKNOWN or _says_less(type_.element, known.element)
    return isinstance(type_, UnrankedTensorType) and ranked(known) is not None


def _drops_ones(op: OnnxOp) -> bool:
    """True for a Squeeze without axes: its rank depends on run-time sizes."""
    if op.qualified_name != "Squeeze" or op.attr("axes", None):
        return False
    return len(op.inputs) < 2 or op.inputs[1] is None


def _index(result: SSAValue) -> int:
    return result.index if isinstance(result, OpResult) else 0


def _same_elements(a: Array | None, b: Array | None) -> bool:
    if a is None or b is None:
        return a is b
    return a is b or (a.shape == b.shape and list(a.flat) == list(b.flat))


ControlRule = Callable[[ShapeInference, NodeContext], None]


def _control_flow(op: OnnxOp) -> ControlRule | None:
    if not op.regions or op.domain:
        return None
    from igniter.analysis.onnx.shape_control_flow import RULES

    return RULES.get(op.op_type)


def operand_values(op: Operation, facts: ShapeFacts) -> dict[int, Dims]:
    """Returns the known elements of a node's non-constant operands, unless the node is only shape arithmetic."""
    if op.results and all(r in facts.values for r in op.results):
        return {}
    operands: Sequence[SSAValue] = op.operands
    return {i: facts.values[v] for i, v in enumerate(operands) if v in facts.values and constant_weight(v) is None}
