"""`convert-opset`: converts the model to another version of ai.onnx, older or newer.

    opset_import = {"" = 12}                            opset_import = {"" = 13}
    %y = onnx.ReduceSum(%x) {axes = [1]}      ->        %a = onnx.Constant() {value = [1]}
                                                        %y = onnx.ReduceSum(%x, %a)

    convert-opset{version=13}

Nodes with the same meaning in both versions stay. Every other node is converted separately by ONNX's own
`onnx.version_converter`, so that names, metadata, weights, local functions and nested graphs are preserved, and a
weight of any size stays in its file. If ONNX has no conversion, the error names the node. Local functions are converted
with the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx.helper
import onnx.version_converter
from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from igniter.analysis.onnx.shape_inference import infer_shapes
from igniter.dialects.onnx.attributes import entries_of, text_attr, texts_attr, to_attr, to_python
from igniter.dialects.onnx.base import OnnxOp, constant_weight, imported_opset
from igniter.dialects.onnx.schemas import find_schema, latest_opset
from igniter.dialects.onnx.structure import FunctionOp, GraphOp, ReturnOp, main_graph
from igniter.dialects.onnx.types import UNKNOWN
from igniter.dialects.onnx.verify import verify_node
from igniter.errors import IgniterError
from igniter.frontend import export_model, import_model
from igniter.frontend.opsets import means_the_same
from igniter.remarks import remark
from igniter.toolbox.edit.edit import Edit
from igniter.toolbox.edit.graph_edits import is_omitted, reads, restore_order, sweep
from igniter.toolbox.edit.names import node_text

SMALL_BYTES = 4096
"""The largest constant, in bytes, shown to the converter; it makes attributes of them."""


@dataclass(frozen=True)
class ConvertOpset(Edit):
    """Converts the model to another version of ai.onnx."""

    name = "convert-opset"
    version: int = 0
    """The target version of ai.onnx."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        newest = latest_opset("")
        if not 1 <= self.version <= newest:
            raise IgniterError(f"there is no opset {self.version}: the installed onnx has 1 to {newest}")
        types = infer_shapes(op).types
        changed = 0
        owners: list[Operation] = [g for g in op.ops if isinstance(g, (GraphOp, FunctionOp))]
        versions = {owner: _imported(op, owner) for owner in owners}
        if all(v == self.version for v in versions.values()):
            raise IgniterError(f"the model is in opset {self.version}")
        for owner, old in versions.items():
            if old == self.version:
                continue
            nodes = [n for n in owner.walk() if isinstance(n, OnnxOp) and n.domain == "" and n.name != "onnx.NoValue"]
            converted = [n for n in nodes if not keeps(n, old, self.version)]
            for node in converted:
                text = node_text(node)
                _convert(op, node, old, self.version, types)
                remark(ctx, self.name, text, "applied", f"is converted from opset {old}")
            changed += len(converted)
        _import(op, self.version)
        for node in op.walk():
            if isinstance(node, OnnxOp) and node.domain == "":
                _require_valid(node, self.version)
        remark(ctx, self.name, "", "note", f"{changed} nodes are converted to opset {self.version}")


def _imported(module: ModuleOp, owner: Operation) -> int:
    inner = owner.regions[0].block.first_op
    version = imported_opset(inner if inner is not None else owner, "")
    if version is None:
        raise IgniterError("the model does not import ai.onnx")
    return version


def keeps(node: OnnxOp, old: int, new: int) -> bool:
    """True if a node is also valid in the other version, with the same meaning."""
    before, after = find_schema("", node.op_type, old), find_schema("", node.op_type, new)
    if before is None or after is None or after.deprecated:
        return False
    if before.since_version == after.since_version:
        return True
    if new > old:
        return means_the_same(node.op_type, old, new)
    fits = node.attributes.keys() <= after.attributes.keys() and len(node.operands) <= after.max_inputs
    return fits and len(node.results) <= after.max_outputs and means_the_same(node.op_type, new, old)


def _require_valid(node: OnnxOp, version: int) -> None:
    try:
        verify_node(node)
    except VerifyException as error:
        raise IgniterError(f"{node_text(node)} cannot be written in opset {version}: {error}") from error


def _import(module: ModuleOp, version: int) -> None:
    def with_version(imports: Attribute | None) -> DictionaryAttr:
        entries = dict(entries_of(imports))
        key = "ai.onnx" if "ai.onnx" in entries else ""
        return DictionaryAttr({**entries, key: to_attr(version)})

    header = dict(entries_of(module.attributes.get("onnx.model")))
    header["opset_import"] = with_version(header.get("opset_import"))
    least = onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", version)], ignore_unknown=True)
    written = int(to_python(header["ir_version"])) if "ir_version" in header else 0
    header["ir_version"] = to_attr(max(written, least))
    module.attributes["onnx.model"] = DictionaryAttr(header)
    for function in module.ops:
        if isinstance(function, FunctionOp) and "" in entries_of(function.attributes.get("opset_import")):
            function.attributes["opset_import"] = with_version(function.attributes["opset_import"])


# -- one node ---------------------------------------------------------------------------------------------------------


def _convert(module: ModuleOp, node: OnnxOp, old: int, new: int, types: dict[SSAValue, Attribute]) -> None:
    """Replaces a node by the result of ONNX's converter."""
    if node.regions:
        raise IgniterError(f"{node_text(node)} is another op in opset {new}, and a node with graphs is not converted")
    values = [v for v in dict.fromkeys(reads(node)) if not is_omitted(v)]
    small = [v for v in values if (w := constant_weight(v)) is not None and w.nbytes <= SMALL_BYTES]
    given = [v for v in values if v not in small]
    made = _converted(_one_node(node, given, small, old, types), node, new)
    graph = main_graph(made)
    if len(graph.body.args) != len(given):
        raise IgniterError(f"{node_text(node)}: the converted node has other inputs")
    mapping: dict[SSAValue, SSAValue] = dict(zip(graph.body.args, given, strict=True))
    block = node.parent
    assert block is not None
    _splice(node, graph, mapping)
    sweep([*node.results, *small])
    restore_order(block)


def _splice(node: OnnxOp, graph: GraphOp, mapping: dict[SSAValue, SSAValue]) -> None:
    block = node.parent
    assert block is not None
    for op in graph.body.ops:
        if isinstance(op, ReturnOp):
            break
        copy = op.clone(mapping)
        # The one-node model has its own names; the values that it reads keep theirs.
        copy.properties.pop("output_names", None)
        if "initializer_name" in copy.properties:
            del copy.properties["initializer_name"]
        block.insert_op_before(copy, node)
    used = [r for r in node.results if not is_omitted(r)]
    given = node.output_names
    for result, value in zip(used, graph.terminator.operands, strict=True):
        new = mapping[value]
        if new.type == UNKNOWN or isinstance(result.type, type(new.type)):
            new._type = result.type
        owner = new.owner
        if isinstance(owner, OnnxOp) and isinstance(new, OpResult) and given:
            names = owner.output_names or [""] * len(owner.results)
            names[new.index] = given[result.index]
            owner.properties["output_names"] = texts_attr(names)
            if node.node_name:
                owner.properties["node_name"] = text_attr(node.node_name)
            if "metadata" in node.properties:
                owner.properties["metadata"] = node.properties["metadata"]
        new.name_hint = result.name_hint
        result.replace_all_uses_with(new)


def _one_node(
    node: OnnxOp, given: list[SSAValue], small: list[SSAValue], old: int, types: dict[SSAValue, Attribute]
) -> ModuleOp:
    block = Block(arg_types=[types.get(v, v.type) for v in given])
    mapping: dict[SSAValue, SSAValue] = dict(zip(given, block.args, strict=True))
    for i, value in enumerate(small):
        assert isinstance(value, OpResult)
        copy = value.owner.clone()
        copy.properties["initializer_name"] = text_attr(f"small_{i}")
        block.add_op(copy)
        mapping[value] = copy.results[0]
    for operand in node.operands:
        if is_omitted(operand) and operand not in mapping:
            copy = operand.owner.clone()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
            block.add_op(copy)  # pyright: ignore[reportUnknownArgumentType]
            mapping[operand] = copy.results[0]  # pyright: ignore[reportUnknownMemberType]
    copied = node.clone(mapping)
    copied.properties["output_names"] = texts_attr(
        ["" if is_omitted(r) else f"r{i}" for i, r in enumerate(node.results)]
    )
    for result, original in zip(copied.results, node.results, strict=True):
        result._type = types.get(original, original.type)
    block.add_op(copied)
    outputs = [r for r in copied.results if not is_omitted(r)]
    block.add_op(ReturnOp.make(outputs))
    names = {
        "graph_name": text_attr("one"),
        "input_names": texts_attr([f"v{i}" for i in range(len(given))]),
        "output_names": texts_attr([f"r{r.index}" for r in outputs]),
    }
    header = DictionaryAttr({"ir_version": to_attr(8), "opset_import": DictionaryAttr({"": to_attr(old)})})
    return ModuleOp([GraphOp.make("main", Region(block), names)], {"onnx.model": header})


def _converted(module: ModuleOp, node: OnnxOp, new: int) -> ModuleOp:
    try:
        made: Any = onnx.version_converter.convert_version(export_model(module), new)
    except Exception as error:  # of C++, without a common base class
        said = " ".join(str(error).split())
        raise IgniterError(f"ONNX cannot convert {node_text(node)} to opset {new}: {said[:300]}") from error
    return import_model(made)
