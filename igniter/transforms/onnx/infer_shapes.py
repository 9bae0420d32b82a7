"""`infer-shapes`: types every value with symbolic dims, and records the shape arithmetic of operands on their readers.

    func: %s = onnx.Shape(%x) : (tensor<?x8xf32, #sym.dims<batch, 8>>) -> tensor<*xi64>
          %y = onnx.Reshape(%x, %t) : (...) -> tensor<*xf32>              // %t = Concat(batch, 2, 4), by Gather of %s

    ->    %y = onnx.Reshape(%x, %t) {igniter.values = {"1" = #sym.dims<batch, 2, 4>}}
                 : (...) -> tensor<?x2x4xf32, #sym.dims<batch, 2, 4>>

A node whose integer operand is a function of the model's symbols has its elements in `igniter.values`. Later levels
then need not look at the shape arithmetic, and it may become dead. The types may assume more than the dims of the
inputs say: adding a position table of 512 rows implies `min(512, seq) == seq`. Such assumptions are recorded on the
graph, as requirements in `igniter.assumptions`, for kernels to check. `igniter.analysis.onnx.shape_inference` has the
algorithm and its guarantees. The pass may run again at any time: it replaces the results of an earlier run.

The pass runs first, because all later passes need ranks and dims.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, NoneType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from igniter.activity import note_largest
from igniter.analysis.onnx.assumptions import ASSUMPTIONS_ATTRIBUTE, graph_assumptions
from igniter.analysis.onnx.shape_inference import ShapeFacts, infer_shapes, operand_values
from igniter.dialects.onnx import building
from igniter.dialects.onnx.base import OnnxOp, constant_weight
from igniter.dialects.onnx.registry import SIGNATURE_ATTRIBUTE, VALUES_ATTRIBUTE, Dims
from igniter.dialects.onnx.rule_guards import failures_of, say_failed_rules
from igniter.dialects.onnx.structure import GraphOp
from igniter.dialects.sym import DimsAttr, requirements_attr, tensor_of
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.requirements import Requirement, equal, unproven
from igniter.dialects.sym.tensor_types import declared_dims, known_dims_of, tensor_element
from igniter.memory import bound, bytes_text
from igniter.remarks import remark
from igniter.transforms.onnx.foldable import bytes_of


@dataclass(frozen=True)
class InferShapes(ModulePass):
    """Types every value with symbolic dims."""

    name = "infer-shapes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        told = {graph: forget_narrowing(graph) for graph in op.ops if SIGNATURE_ATTRIBUTE in graph.attributes}
        facts = infer_shapes(op)
        for graph, dims in told.items():
            resolve = facts.equalities[cast("GraphOp", graph)].resolve
            text = "its dims are inconsistent"
            assume(graph, [equal(resolve(given), resolve(found), text) for given, found in dims])
        for node, reason in facts.failures:
            if failures_of(node):
                continue  # Those of plug-ins are said below.
            message = f"the shape rule of {node.qualified_name} failed: {reason}"
            remark(ctx, self.name, node.node_name, "missed", message)
        apply_facts(op, facts)
        say_failed_rules(ctx, op, self.name)
        if bound() is not None:
            note_largest(partial(largest_value, op))


def largest_value(module: ModuleOp) -> str:
    """Returns the largest value of known size, with its node and its bytes; "" if no size is known."""
    sized = ((bytes_of(r) or 0, r) for op in building.ops_inside(module) for r in op.results if isinstance(op, OnnxOp))
    found = max(sized, key=itemgetter(0), default=None)
    if found is None or found[0] == 0:
        return ""
    size, result = found
    node = cast("OnnxOp", result.owner)
    name = node.output_names[result.index] if result.index < len(node.output_names) else ""
    called = f" '{node.node_name}'" if node.node_name else ""
    return f"'{name}' of the node{called} ({node.qualified_name}), {bytes_text(size)}"


def apply_facts(module: ModuleOp, facts: ShapeFacts) -> None:
    """Writes the inferred facts into the types and the `igniter.values` attributes."""
    for graph in facts.assumptions:
        keep_signature(graph, facts.types)
    for value, type_ in facts.types.items():
        set_type(value, type_)
    for graph, pairs in facts.assumptions.items():
        resolve = facts.equalities[graph].resolve
        noted = [replace(r, left=resolve(r.left), right=resolve(r.right)) for r in graph_assumptions(graph)]
        note_assumptions(graph, [*noted, *pairs])
    told = {use.operation for v in facts.values if constant_weight(v) is None for use in v.uses}
    made: dict[tuple[tuple[int, Dims], ...], DictionaryAttr] = {}
    for op in building.ops_inside(module):
        if op in told or VALUES_ATTRIBUTE in op.attributes:
            set_operand_values(op, operand_values(op, facts) if isinstance(op, OnnxOp) else {}, made)


def forget_narrowing(graph: Operation) -> list[tuple[Expr, Expr]]:
    """Restores the model's own dims of a graph's inputs. Returns these with the dims found by an earlier run.

    Later passes may have removed nodes because of those facts: a Reshape of `n` to 4 is removed if another reader
    implies `n == 4`. Facts not found again become assumptions, for kernels to check.
    """
    found: list[tuple[Expr, Expr]] = []
    signature = cast("ArrayAttr[Attribute]", graph.attributes[SIGNATURE_ATTRIBUTE])
    for arg, given in zip(graph.regions[0].block.args, signature, strict=True):
        before, declared = known_dims_of(arg.type), declared_dims(given)
        element = tensor_element(arg.type)
        if before is None or declared is None or element is None or len(before) != len(declared):
            continue
        dims = [b if d is None else d for b, d in zip(before, declared, strict=True)]
        found += [(d, b) for d, b in zip(dims, before, strict=True) if d != b]
        set_type(arg, tensor_of(element, dims))
    return found


def keep_signature(graph: Operation, types: Mapping[SSAValue, Attribute]) -> None:
    """Records the model's own types of its inputs if inference narrows them. The narrower types are for kernels; the
    node with the requirement refuses other runs, as in the original."""
    inputs = graph.regions[0].block.args
    if SIGNATURE_ATTRIBUTE not in graph.attributes and any(types.get(a, a.type) != a.type for a in inputs):
        graph.attributes[SIGNATURE_ATTRIBUTE] = ArrayAttr([a.type for a in inputs])


def assume(graph: Operation, requirements: Iterable[Requirement]) -> None:
    """Adds requirements to check in a run of the graph, because no remaining node checks them."""
    note_assumptions(graph, [*graph_assumptions(graph), *requirements])


def note_assumptions(graph: Operation, requirements: Iterable[Requirement]) -> None:
    """Replaces the recorded requirements of a graph by the unproven ones of `requirements`."""
    found = requirements_attr(unproven(requirements))
    if found is not None:
        graph.attributes[ASSUMPTIONS_ATTRIBUTE] = found
    else:
        graph.attributes.pop(ASSUMPTIONS_ATTRIBUTE, None)


def set_operand_values(
    op: Operation, values: dict[int, Dims], made: dict[tuple[tuple[int, Dims], ...], DictionaryAttr] | None = None
) -> None:
    """Replaces the node's `igniter.values`, reusing an equal attribute in `made`."""
    if values:
        made = {} if made is None else made
        key = tuple(sorted(values.items(), key=lambda item: item[0]))
        if key not in made:
            made[key] = DictionaryAttr({str(i): DimsAttr(v) for i, v in key})
        op.attributes[VALUES_ATTRIBUTE] = made[key]
    else:
        op.attributes.pop(VALUES_ATTRIBUTE, None)


def set_type(value: SSAValue, type_: Attribute) -> None:
    """Gives a value another type, in place: replacing the value would cost a walk over its uses."""
    if type_ is not value.type and not isinstance(value.type, NoneType):
        value._type = type_
