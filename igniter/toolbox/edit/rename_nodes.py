"""`rename-nodes`: gives nodes other names.

    %y = onnx.Relu(%x) <{node_name = "n0"}>    rename-nodes{old="n0" new="act"}    ->    <{node_name = "act"}>

An unnamed node is found by the name of a result.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from igniter.dialects.onnx.attributes import text_attr
from igniter.errors import IgniterError
from igniter.remarks import remark
from igniter.toolbox.edit.edit import Edit, paired
from igniter.toolbox.edit.names import Names


@dataclass(frozen=True)
class RenameNodes(Edit):
    """Gives nodes other names."""

    name = "rename-nodes"
    old: tuple[str, ...] = ()
    """Their names in the model, or those of their results."""
    new: tuple[str, ...] = ()
    """Their new names, in the same order."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        names = Names(op)
        pairs = paired("rename-nodes", self.old, self.new)
        nodes = [names.node(old) for old, _ in pairs]
        for (old, new), node in zip(pairs, nodes, strict=True):
            others = [n for n in names.nodes.get(new, []) if n not in nodes]
            if not new or others or self.new.count(new) > 1:
                raise IgniterError(f"node '{old}' cannot be called '{new}': the name is {'taken' if new else 'empty'}")
            if node.node_name == new:
                raise IgniterError(f"node '{old}' is to be called '{new}', which it is")
        for (old, new), node in zip(pairs, nodes, strict=True):
            node.properties["node_name"] = text_attr(new)
            remark(ctx, self.name, new, "applied", f"was '{old}'")
