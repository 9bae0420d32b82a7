"""`inline-functions`: replaces calls of model-local functions by the functions' nodes.

    onnx.function @f(%a) attributes {domain = "local", function_name = "Scale", attribute_names = ["factor"]} {
      %k = onnx.Constant() {value_float = #onnx.ref<"factor", 1>}
      %b = onnx.Mul(%a, %k)
      onnx.return %b
    }
    %y = onnx.custom(%x) <{domain = "local", op_type = "Scale"}> {factor = 2.0 : f32}

becomes

    %k = onnx.Constant() {value_float = 2.0 : f32}
    %y = onnx.Mul(%x, %k)

The pass runs first, because no later pass looks into a function. A call stays if inlining would change its meaning: the
function imports another version of a domain than the model does, and one of its ops differs between the two. Functions
without remaining calls are dropped.

With functions that call one another, a small file can be a large graph: ten calls over eight levels are 10^8 nodes. The
pass counts before it copies, and refuses a model with more than `max_nodes` resulting nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, NoneType
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from igniter.dialects.onnx.attributes import (
    ProtoAttr,
    RefAttr,
    entries_of,
    text_attr,
    texts_attr,
    texts_of,
    to_python,
)
from igniter.dialects.onnx.base import NoValueOp, OnnxOp
from igniter.dialects.onnx.function_sizes import Key, inlined_sizes
from igniter.dialects.onnx.schemas import find_schema
from igniter.dialects.onnx.structure import FunctionOp, functions
from igniter.dialects.onnx.types import UNKNOWN
from igniter.errors import IgniterError
from igniter.frontend.attributes import read_attribute
from igniter.remarks import remark
from igniter.rewrite_budget import budget

_GRAPH_KIND = 5


@dataclass(frozen=True)
class InlineFunctions(ModulePass):
    """Replaces calls of model-local functions by their nodes."""

    name = "inline-functions"
    one_rewrite = "a call replaced by the nodes of its function"

    max_nodes: int = 500_000
    """The largest number of nodes of a model after inlining."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = functions(op)
        if not known:
            return
        self._check_size(op, known)
        refused: set[OnnxOp] = set()
        count = 0
        rewrites = budget(ctx, self.name)
        while not rewrites.is_spent and (calls := _calls(op, known, refused)):
            for call in calls:
                function = known[_key(call)]
                if rewrites.is_spent:
                    break
                if _encloses(function, call):
                    raise IgniterError(f"function {'.'.join(function.key[:2])} calls itself, which ONNX forbids")
                reason = _import_opsets(op, function)
                if reason is None:
                    count += 1
                    rewrites.count(call.node_name, f"{call.op_type} is inlined")
                    _inline(call, function, call.node_name or f"{call.op_type}_{count}")
                    continue
                refused.add(call)
                remark(ctx, self.name, call.node_name, "missed", reason)
        _drop_uncalled(op, known)

    def _check_size(self, module: ModuleOp, known: Mapping[Key, FunctionOp]) -> None:
        """Refuses a model that inlining would make larger than `max_nodes`."""
        graphs = [graph for graph in module.ops if not isinstance(graph, FunctionOp)]
        calls = _counted(graphs)
        sizes = inlined_sizes({key: lambda f=function: _counted([f]) for key, function in known.items()}, calls)
        plain = calls.total()
        total = sum(times * sizes.get(key, 1) for key, times in calls.items())
        if total > max(self.max_nodes, plain):
            largest = max((key for key in calls if key in known), key=sizes.__getitem__)
            raise IgniterError(
                f"the model's functions call one another until it has {total:,} nodes, more than {self.max_nodes:,} "
                f"(one call of {'.'.join(largest[:2])} is {sizes[largest]:,} nodes); export it with less nesting of "
                "functions, or raise the option max-nodes of inline-functions"
            )


def _counted(graphs: Iterable[Operation]) -> Counter[Key]:
    """Counts the nodes in graphs or functions, by the key of a possible callee."""
    return Counter(_key(op) for graph in graphs for op in graph.walk() if isinstance(op, OnnxOp))


def _drop_uncalled(module: ModuleOp, known: Mapping[Key, FunctionOp]) -> None:
    called: set[Key] = set()
    pending: list[Operation] = [op for op in module.ops if not isinstance(op, FunctionOp)]
    while pending:
        for inner in pending.pop().walk():
            if isinstance(inner, OnnxOp) and _key(inner) in known and _key(inner) not in called:
                called.add(_key(inner))
                pending.append(known[_key(inner)])
    for key, function in known.items():
        if key not in called:
            function.detach()
            function.erase()


def _key(op: OnnxOp) -> Key:
    return op.domain, op.op_type, op.overload


def _calls(module: ModuleOp, known: Mapping[Key, FunctionOp], refused: set[OnnxOp]) -> list[OnnxOp]:
    """Returns the calls outside functions, because a function is copied once its own calls are at their final place."""
    return [
        op
        for graph in module.ops
        if not isinstance(graph, FunctionOp)
        for op in graph.walk()
        if isinstance(op, OnnxOp) and op not in refused and _key(op) in known
    ]


def _encloses(function: FunctionOp, call: OnnxOp) -> bool:
    """True if the call comes from inlining the same function: `inlined_from` on a call lists its origins."""
    return "/".join(function.key) in texts_of(call.properties.get("inlined_from"))


def _import_opsets(module: ModuleOp, function: FunctionOp) -> str | None:
    """Makes the model import the function's opsets. Returns the reason if this would change a node's meaning."""
    header = dict(entries_of(module.attributes.get("onnx.model")))
    model_imports = dict(entries_of(header.get("opset_import")))
    for domain, version in entries_of(function.attributes.get("opset_import")).items():
        present = model_imports.setdefault(domain, version)
        if present == version:
            continue
        for op in function.walk():
            if isinstance(op, OnnxOp) and op.domain == domain:
                mine = find_schema(domain, op.op_type, to_python(version))
                theirs = find_schema(domain, op.op_type, to_python(present))
                if mine is None or theirs is None or mine.since_version != theirs.since_version:
                    return (
                        f"{op.qualified_name} differs between opset {to_python(version)}, which the function "
                        f"{'.'.join(function.key[:2])} imports, and opset {to_python(present)} of the model"
                    )
    header["opset_import"] = DictionaryAttr(model_imports)
    module.attributes["onnx.model"] = DictionaryAttr(header)
    return None


def _inline(call: OnnxOp, function: FunctionOp, prefix: str) -> None:
    block = call.parent
    assert block is not None
    values: dict[SSAValue, SSAValue] = {}
    for index, argument in enumerate(function.body.args):
        if index < len(call.operands):
            values[argument] = call.operands[index]
        else:
            omitted = NoValueOp.make()
            block.insert_op_before(omitted, call)
            values[argument] = omitted.results[0]
    position = 0
    given = {**_defaults(function), **call.attributes}
    for op in function.body.ops:
        if op is function.terminator:
            break
        copy = op.clone(values)
        block.insert_op_before(copy, call)
        for inner in copy.walk():
            if isinstance(inner, OnnxOp):
                _bind_attributes(inner, given, call)
                position += 1
                _rename(inner, f"{prefix}/{inner.node_name or f'{inner.op_type}_{position}'}")
                if inner.name == "onnx.custom":
                    came_from = [*texts_of(call.properties.get("inlined_from")), "/".join(function.key)]
                    inner.properties["inlined_from"] = texts_attr(came_from)
    names = call.output_names
    for index, result in enumerate(call.results):
        if isinstance(result.type, NoneType):
            continue
        value = values[function.terminator.operands[index]]
        if index < len(names):
            _name_result(value, names[index])
        if value.type == UNKNOWN:
            # The function is untyped, so the type of the call's result applies to the value.
            value._type = result.type
        result.replace_all_uses_with(value)
    block.erase_op(call)


def _defaults(function: FunctionOp) -> dict[str, Attribute]:
    """Returns the default values of optional attributes."""
    attr = function.attributes.get("attribute_defaults")
    if not isinstance(attr, ArrayAttr):
        return {}

    found = [read_attribute(cast(ProtoAttr, item).bytes) for item in cast("ArrayAttr[Attribute]", attr).data]
    return dict(found)


def _bind_attributes(op: OnnxOp, given: Mapping[str, Attribute], call: OnnxOp) -> None:
    """Resolves attributes that refer to the caller's; an attribute omitted by the caller is omitted."""
    for name, attr in list(op.attributes.items()):
        if not isinstance(attr, RefAttr):
            continue
        parameter = attr.parameter.data
        del op.attributes[name]
        if attr.code.value.data == _GRAPH_KIND and parameter in call.graph_names:
            op.properties["graphs"] = texts_attr([*op.graph_names, name])
            op.add_region(call.regions[call.graph_names.index(parameter)].clone())
        elif parameter in given:
            op.attributes[name] = given[parameter]


def _rename(op: OnnxOp, name: str) -> None:
    """Makes the names of a copy unique: value names are dropped, and the node is named after the call."""
    op.properties.pop("output_names", None)
    if op.name != "onnx.Constant":
        op.properties["node_name"] = text_attr(name)


def _name_result(value: SSAValue, name: str) -> None:
    owner: Operation | None = value.owner if isinstance(value, OpResult) and isinstance(value.owner, OnnxOp) else None
    if owner is None or not name:
        return
    names = texts_of(owner.properties.get("output_names")) or [""] * len(owner.results)
    index = cast(OpResult, value).index
    if not names[index]:
        names[index] = name
        owner.properties["output_names"] = texts_attr(names)
