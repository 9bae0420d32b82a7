"""`drop-nodes`: removes nodes; readers of their results read one of their inputs, or another value.

    %h = onnx.Relu(%x)                    drop-nodes{nodes="relu"}
    %y = onnx.Exp(%h)             ->      %y = onnx.Exp(%x)

Without `by`, the replacement is the only non-constant input with the type of the result. If there are several or none,
the error lists them. Nodes read only by the dropped one are removed too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, NoneType
from xdsl.ir import Attribute, OpResult, SSAValue

from igniter.analysis.onnx.shape_inference import infer_shapes
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.types import UNKNOWN
from igniter.dialects.sym.tensor_types import known_dims_of, tensor_element
from igniter.errors import IgniterError
from igniter.remarks import remark
from igniter.toolbox.edit.edit import Edit, Interface
from igniter.toolbox.edit.graph_edits import restore_order, sweep
from igniter.toolbox.edit.names import Names, block_of, node_text, result_names, set_result_name


@dataclass(frozen=True)
class DropNodes(Edit):
    """Removes nodes; their readers read one of their inputs."""

    name = "drop-nodes"
    nodes: tuple[str, ...] = ()
    """Names of nodes, or of values that they compute."""
    by: tuple[str, ...] = ()
    """The replacement for the result of each; "", or an empty list, to find it automatically."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not self.nodes:
            raise IgniterError("no node is named for drop-nodes")
        if self.by and len(self.by) != len(self.nodes):
            raise IgniterError(f"{len(self.nodes)} nodes and {len(self.by)} values in their places are given")
        for name, by in zip(self.nodes, self.by or [""] * len(self.nodes), strict=True):
            names = Names(op)
            node = names.node(name)
            types = infer_shapes(op).types
            value = names.value(by) if by else _bypass(names, node, types)
            result = _only_result(node)
            require_same_type(result, value, types, f"{node_text(node)} cannot be dropped")
            text = node_text(node)
            replace_value(names, result, value)
            block = block_of(result)
            assert block is not None
            sweep([result])
            restore_order(block)
            remark(ctx, self.name, name, "applied", f"{text} is dropped, '{names.name_of(value)}' in its place")

    def track(self, interface: Interface) -> None:
        interface.different.append("nodes are dropped")


def _only_result(node: OnnxOp) -> OpResult:
    used = [r for r in node.results if not isinstance(r.type, NoneType) and r.first_use is not None]
    if len(used) != 1:
        what = "none of its results is read" if not used else f"{len(used)} of its results are read"
        raise IgniterError(f"{node_text(node)} cannot be dropped: {what}, and one value can take the place of one")
    return used[0]


def _bypass(names: Names, node: OnnxOp, types: Mapping[SSAValue, Attribute]) -> SSAValue:
    result = _only_result(node)
    data = [v for v in node.inputs if v is not None and not _is_constant(v)]
    fitting = [v for v in dict.fromkeys(data) if differs(result, v, types) == ""]
    if len(fitting) == 1:
        return fitting[0]
    listed = ", ".join(f"'{names.name_of(v)}'" for v in fitting or data) or "none"
    if not fitting:
        why = f"no input has the type of its result ({result.type}); its inputs are {listed}"
    else:
        why = f"{len(fitting)} inputs have the type of its result: {listed}"
    raise IgniterError(f"{node_text(node)} cannot be dropped: {why}; name the value that takes its place")


def _is_constant(value: SSAValue) -> bool:
    return isinstance(value, OpResult) and value.owner.name == "onnx.Constant"


def differs(old: SSAValue, new: SSAValue, types: Mapping[SSAValue, Attribute]) -> str:
    """Returns the difference between the types of `new` and `old`; "" if they are equal as far as known."""
    mine, theirs = types.get(old, old.type), types.get(new, new.type)
    a, b = tensor_element(mine), tensor_element(theirs)
    if UNKNOWN in (mine, theirs) or mine == theirs:
        return ""
    if a != b:
        return f"it is {theirs} in the place of {mine}"
    one, two = known_dims_of(mine), known_dims_of(theirs)
    if one is None or two is None:
        return ""
    if len(one) != len(two):
        return f"it has {len(two)} dims in the place of {len(one)}"
    for i, (p, q) in enumerate(zip(one, two, strict=True)):
        if p.constant is not None and q.constant is not None and p != q:
            return f"its dim {i} is {q} in the place of {p}"
    return ""


def require_same_type(old: SSAValue, new: SSAValue, types: Mapping[SSAValue, Attribute], what: str) -> None:
    """Raises `IgniterError` if a replacement has another type."""
    why = differs(old, new, types)
    if why:
        raise IgniterError(f"{what}: of what takes its place, {why}")


def replace_value(names: Names, old: SSAValue, new: SSAValue, only: set[OnnxOp] | None = None) -> None:
    """Makes the readers of `old` read `new`; outputs keep their names."""
    for use in list(old.uses):
        if only is None or use.operation in only:
            use.operation.operands[use.index] = new
    for name, value in zip(names.graph.output_names, names.graph.terminator.operands, strict=True):
        if value is new and isinstance(new, OpResult) and isinstance(new.owner, OnnxOp):
            owned = result_names(new.owner)[new.index]
            if not owned:
                set_result_name(new, name)
