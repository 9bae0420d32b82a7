"""`replace-nodes`: replaces a node by another one, written in ONNX's text form.

    %y = onnx.Gelu(%x) <{node_name = "act"}>     replace-nodes{nodes="act" by="y = com.microsoft.FastGelu (x)"}
                                            ->   %y = onnx.com.microsoft.FastGelu(%x) <{node_name = "act"}>

The new node computes the values of the old one, under their names, and keeps its name unless the text gives one. Nodes
read only by the old one are removed.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, NoneType

from igniter.analysis.onnx.shape_inference import infer_shapes
from igniter.dialects.onnx.attributes import text_attr
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.types import UNKNOWN
from igniter.errors import IgniterError
from igniter.frontend.opsets import import_domains
from igniter.frontend.written_nodes import WrittenNode, parse_node
from igniter.remarks import remark
from igniter.toolbox.edit.drop_nodes import require_same_type
from igniter.toolbox.edit.edit import Edit, Interface, paired
from igniter.toolbox.edit.graph_edits import restore_order, sweep
from igniter.toolbox.edit.insert_nodes import place
from igniter.toolbox.edit.names import Names, node_text, result_names


@dataclass(frozen=True)
class ReplaceNodes(Edit):
    """Replaces nodes by nodes written by the user."""

    name = "replace-nodes"
    nodes: tuple[str, ...] = ()
    """Names of nodes, or of their results."""
    by: tuple[str, ...] = ()
    """The new node for each, in ONNX's text form."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for name, text in paired("replace-nodes", self.nodes, self.by):
            names = Names(op)
            node = names.node(name)
            before = node_text(node)
            made = _replace(names, node, parse_node(text))
            remark(ctx, self.name, name, "applied", f"{node_text(made)} in the place of {before}")
        import_domains(op)

    def track(self, interface: Interface) -> None:
        interface.different.append("nodes are replaced")


def _replace(names: Names, node: OnnxOp, written: WrittenNode) -> OnnxOp:
    block = node.parent
    assert block is not None
    old = result_names(node)
    used = {old[r.index]: r for r in node.results if not isinstance(r.type, NoneType) and r.first_use is not None}
    for name in used:
        if name not in written.outputs:
            raise IgniterError(
                f"`{written.text}` does not compute '{name}', which {node_text(node)} does and nodes read"
            )
    for name in written.outputs:
        if name and name not in old:
            names.require_free(name)
    operands = [names.value(n) if n else None for n in written.inputs]
    made = place(names.module, written, operands, block)
    types = infer_shapes(names.module).types
    for name, result in used.items():
        new = made.results[written.outputs.index(name)]
        require_same_type(result, new, types, f"`{written.text}` cannot take the place of {node_text(node)}")
        if new.type == UNKNOWN:
            new._type = result.type
        for use in list(result.uses):
            if use.operation is not made:
                use.operation.operands[use.index] = new
    if "node_name" not in made.properties and node.node_name:
        made.properties["node_name"] = text_attr(node.node_name)
    sweep(node.results)
    restore_order(block)
    return made
