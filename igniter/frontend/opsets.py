"""The imports of a model: raising its opset, importing the domains of its nodes, and the required IR version."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import onnx
import onnx.helper
from onnx import version_converter
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp

from igniter.dialects.library_names import is_library_domain
from igniter.dialects.onnx.attributes import to_attr, to_python
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.schemas import OpSchema, find_schema
from igniter.dialects.onnx.structure import FunctionOp, GraphOp
from igniter.errors import IgniterError
from igniter.frontend.exporter import export_module
from igniter.frontend.importer import import_proto
from igniter.frontend.reading import read_model

CONTRIB = "com.microsoft"
OPSET_OF_IR = {3: 8, 4: 9, 5: 10, 6: 11}
OPSET = 13
"""The default version of ai.onnx for a model without imports, and for newer IR versions."""

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
    ("Max", 8),
    ("Mean", 8),
    ("Min", 8),
    ("Sum", 8),
}
"""The ops and versions with a changed meaning but the same parameters in the schema, or not worth a proof."""


def raise_opset(module: ModuleOp, version: int) -> str | None:
    """Makes the model and its functions import `version` of ai.onnx. If a node would have another meaning in it,
    returns the reason and changes nothing."""
    model = module.attributes.get("onnx.model")
    imports = model.data.get("opset_import") if isinstance(model, DictionaryAttr) else None
    if not isinstance(model, DictionaryAttr) or not isinstance(imports, DictionaryAttr):
        return "the model has no opset imports"
    key = "" if "" in imports.data else "ai.onnx"
    if key not in imports.data:
        return "the model does not import ai.onnx"
    current = int(to_python(imports.data[key]))
    if current >= version:
        return None
    owners = [op for op in module.ops if isinstance(op, (FunctionOp, GraphOp))]
    for owner in owners:
        refused = _changes(owner, _own_opset(owner, current), version)
        if refused is not None:
            return refused
    for owner in owners:
        own = owner.attributes.get("opset_import")
        if isinstance(own, DictionaryAttr) and _own_opset(owner, current) < version:
            name = "ai.onnx" if "ai.onnx" in own.data else ""
            owner.attributes["opset_import"] = DictionaryAttr({**own.data, name: to_attr(version)})
    opset = onnx.helper.make_opsetid("", version)
    least = onnx.helper.find_min_ir_version_for([opset], ignore_unknown=True)
    header = dict(model.data)
    header["opset_import"] = DictionaryAttr({**imports.data, key: to_attr(version)})
    written = int(to_python(header["ir_version"])) if "ir_version" in header else 0
    header["ir_version"] = to_attr(max(written, least))
    module.attributes["onnx.model"] = DictionaryAttr(header)
    return None


def convert_opset(module: ModuleOp, version: int) -> str | None:
    """Makes the model import `version` of ai.onnx, in place, and runs ONNX's version converter for nodes whose meaning
    differs in it. Returns the reason if this fails."""
    refused = raise_opset(module, version)
    if refused is None:
        return None

    try:
        converted = version_converter.convert_version(export_module(module), version)
        made = import_proto(*read_model(converted, ""))
    except (RuntimeError, ValueError, IgniterError) as error:
        return (
            f"{refused}; message of ONNX's converter:  "
            f"{str(error).splitlines()[0] if str(error) else type(error).__name__}"
        )
    for op in list(module.ops):
        op.detach()
        op.erase(safe_erase=False)
    for op in list(made.ops):
        op.detach()
        module.body.block.add_op(op)
    module.attributes = dict(made.attributes)
    return None


def _own_opset(owner: FunctionOp | GraphOp, current: int) -> int:
    """Returns a function's own version of ai.onnx, or the version of the model."""
    own = owner.attributes.get("opset_import")
    if isinstance(owner, GraphOp) or not isinstance(own, DictionaryAttr):
        return current
    found = own.data.get("", own.data.get("ai.onnx"))
    return current if found is None else int(to_python(found))


def _changes(owner: FunctionOp | GraphOp, current: int, version: int) -> str | None:
    """Describes a node of a graph or function with another meaning in `version`; None if there is no such node."""
    if current >= version:
        return None
    for op in owner.walk():
        if isinstance(op, OnnxOp) and op.domain == "" and not means_the_same(op.op_type, current, version):
            return f"{op.op_type} '{op.node_name}' differs between opset {version} and opset {current}"
    return None


_IR_OF_TYPES = {17: 9, 18: 9, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12, 25: 13, 26: 13}
"""The first IR version with an element type: 8-bit floats, 4-bit integers and floats, 2-bit integers."""
_IR_OF_CONSTANTS = 4
"""The last IR version with every initializer also an input."""
_IR_OF_FUNCTIONS = 8
_IR_OF_OVERLOADS = 10


def oldest_ir_version(model: onnx.ModelProto) -> int:
    """Returns the oldest IR version in which a model can be run, at most its own.

    Content skipped by older readers without loss, as metadata, needs no newer version. Models of an IR version below 4
    keep theirs: there an initializer is an input.
    """
    if model.ir_version <= _IR_OF_CONSTANTS:
        return model.ir_version
    known = [entry for entry in model.opset_import if not _is_own(entry.domain)]
    needed = [_IR_OF_CONSTANTS, onnx.helper.find_min_ir_version_for(known, ignore_unknown=True)]
    if len(model.functions):
        needed.append(_IR_OF_OVERLOADS if any(f.overload for f in model.functions) else _IR_OF_FUNCTIONS)
    needed += [_IR_OF_TYPES.get(code, 0) for code in _element_types(model.graph)]
    for function in model.functions:
        needed += [_IR_OF_TYPES.get(code, 0) for node in function.node for code in _node_types(node)]
    return min(model.ir_version, max(needed))


def _is_own(domain: str) -> bool:
    """True if a domain is Igniter's; all work in any IR version."""
    return domain.startswith("igniter.") or is_library_domain(domain)


def _element_types(graph: onnx.GraphProto) -> Iterator[int]:
    """Yields the codes of the element types in a graph."""
    yield from (t.data_type for t in graph.initializer)
    yield from (t.values.data_type for t in graph.sparse_initializer)
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield value.type.tensor_type.elem_type
    for node in graph.node:
        yield from _node_types(node)


def _node_types(node: onnx.NodeProto) -> Iterator[int]:
    for attribute in node.attribute:
        if attribute.name in ("to", "dtype", "output_dtype"):
            yield attribute.i
        yield attribute.t.data_type
        for graph in (attribute.g, *attribute.graphs):
            yield from _element_types(graph)


@cache
def means_the_same(op_type: str, old: int, new: int) -> bool:
    """True if every valid node of an op in one opset is valid in the other and computes the same."""
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
    """True if a schema accepts everything accepted by an older one: more types, more optional inputs, more
    attributes."""
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
    """Imports, at version 1, the missing domains of the nodes of the model's graph, and in each function those of
    com.microsoft. ONNX's own domain may be missing in a model of trees alone; it is imported at the version of the
    model's IR."""
    model = module.attributes.get("onnx.model")
    if not isinstance(model, DictionaryAttr):
        return
    imports = model.data.get("opset_import")
    known = dict(imports.data) if isinstance(imports, DictionaryAttr) else {}
    nodes = (op for graph in module.ops if isinstance(graph, GraphOp) for op in graph.walk())
    # Constants become initializers, without a domain.
    used = {op.domain for op in nodes if isinstance(op, OnnxOp) and op.op_type != "Constant"}
    missing = dict.fromkeys(used - known.keys() - {"", "ai.onnx"}, 1)
    if used & {"", "ai.onnx"} and not known.keys() & {"", "ai.onnx"}:
        missing[""] = OPSET_OF_IR.get(int(to_python(model.data["ir_version"])), OPSET)
    for function in (op for op in module.ops if isinstance(op, FunctionOp)):
        own = function.attributes.get("opset_import")
        if not isinstance(own, DictionaryAttr) or CONTRIB in own.data:
            continue
        if any(isinstance(op, OnnxOp) and op.domain == CONTRIB for op in function.walk()):
            function.attributes["opset_import"] = DictionaryAttr({**own.data, CONTRIB: to_attr(1)})
            missing |= {} if CONTRIB in known else {CONTRIB: 1}
    if missing:
        added = {domain: to_attr(version) for domain, version in sorted(missing.items())}
        header = {**model.data, "opset_import": DictionaryAttr({**known, **added})}
        module.attributes["onnx.model"] = DictionaryAttr(header)
