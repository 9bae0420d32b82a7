"""What a model imports: raising its opset, and importing the domains that its nodes have."""

from __future__ import annotations

from functools import cache

import onnx
import onnx.helper
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp

from igniter.dialects.onnx.attributes import to_attr, to_python
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.structure import FunctionOp, GraphOp
from igniter.frontend.schemas import OpSchema, find_schema

_CHANGED = {
    ("Hardmax", 13),
    ("LogSoftmax", 13),
    ("Softmax", 13),
    ("GroupNormalization", 21),
    ("BatchNormalization", 9),
    ("BatchNormalization", 14),
    ("Dropout", 12),
    ("Upsample", 9),
    ("Resize", 11),
    ("Resize", 19),
    ("Split", 18),
    ("Scan", 9),
}
"""Ops and versions whose meaning changed without the schema's parameters showing it, or which are not worth proving."""


def raise_opset(module: ModuleOp, version: int) -> str | None:
    """Makes the model import `version` of ai.onnx. Why not, where a node would mean something else in it."""
    model = module.attributes.get("onnx.model")
    imports = model.data.get("opset_import") if isinstance(model, DictionaryAttr) else None
    if not isinstance(model, DictionaryAttr) or not isinstance(imports, DictionaryAttr):
        return "the model does not say what it imports"
    key = "" if "" in imports.data else "ai.onnx"
    if key not in imports.data:
        return "the model does not import ai.onnx"
    current = int(to_python(imports.data[key]))
    if current >= version:
        return None
    for graph in module.ops:
        if isinstance(graph, FunctionOp):
            return "functions of the model import opsets of their own"
        for op in graph.walk() if isinstance(graph, GraphOp) else ():
            if isinstance(op, OnnxOp) and op.domain == "" and not means_the_same(op.op_type, current, version):
                return f"{op.op_type} '{op.node_name}' is another op in opset {version} than in opset {current}"
    opset = onnx.helper.make_opsetid("", version)
    least = onnx.helper.find_min_ir_version_for([opset], ignore_unknown=True)
    header = dict(model.data)
    header["opset_import"] = DictionaryAttr({**imports.data, key: to_attr(version)})
    written = int(to_python(header["ir_version"])) if "ir_version" in header else 0
    header["ir_version"] = to_attr(max(written, least))
    module.attributes["onnx.model"] = DictionaryAttr(header)
    return None


@cache
def means_the_same(op_type: str, old: int, new: int) -> bool:
    """Whether every node of an op that is valid in one opset is valid in the other and computes the same."""
    before = find_schema("", op_type, old)
    for version in range(old + 1, new + 1):
        after = find_schema("", op_type, version)
        if before is None or after is None or after.deprecated:
            return False
        if after.since_version == before.since_version:
            continue
        if (op_type, after.since_version) in _CHANGED or not _extends(before, after):
            return False
        before = after
    return True


def _extends(before: OpSchema, after: OpSchema) -> bool:
    """Whether a schema takes all that an older one takes: more types, more optional inputs, more attributes."""
    for old, new in ((before.inputs, after.inputs), (before.outputs, after.outputs)):
        if len(new) < len(old):
            return False
        for a, b in zip(old, new, strict=False):
            if a.variadic != b.variadic or (a.optional and not b.optional) or not a.types <= b.types:
                return False
        if any(not p.optional for p in new[len(old) :]):
            return False
    for name, attribute in before.attributes.items():
        later = after.attributes.get(name)
        if later is None or later.kind != attribute.kind or later.default != attribute.default:
            return False
    return not any(a.required for name, a in after.attributes.items() if name not in before.attributes)


def import_domains(module: ModuleOp) -> None:
    """Imports, at version 1, the domains that nodes of the model's graph have and the model does not import yet."""
    model = module.attributes.get("onnx.model")
    if not isinstance(model, DictionaryAttr):
        return
    imports = model.data.get("opset_import")
    known = dict(imports.data) if isinstance(imports, DictionaryAttr) else {}
    nodes = (op for graph in module.ops if isinstance(graph, GraphOp) for op in graph.walk())
    missing = {op.domain for op in nodes if isinstance(op, OnnxOp)} - known.keys() - {"", "ai.onnx"}
    if missing:
        header = {**model.data, "opset_import": DictionaryAttr({**known, **{d: to_attr(1) for d in sorted(missing)}})}
        module.attributes["onnx.model"] = DictionaryAttr(header)
