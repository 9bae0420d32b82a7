"""`remove-outputs`: removes outputs, and the nodes needed only for them.

onnx.return %y, %h {output_names = ["y", "h"]}    remove-outputs{outputs="h"}   ->   onnx.return %y
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from igniter.errors import IgniterError
from igniter.remarks import remark
from igniter.toolbox.edit.edit import Edit, Interface
from igniter.toolbox.edit.graph_edits import remove_outputs, sweep
from igniter.toolbox.edit.names import Names, Scope


@dataclass(frozen=True)
class RemoveOutputs(Edit):
    """Removes outputs, and the nodes needed only for them."""

    name = "remove-outputs"
    outputs: tuple[str, ...] = ()
    """Names of outputs."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        names = Names(op)
        positions = {names.output(name) for name in self.outputs}
        if not positions:
            raise IgniterError("no output is named for remove-outputs")
        values = [names.graph.terminator.operands[i] for i in positions]
        if len(positions) == len(names.graph.output_names):
            raise IgniterError("these are all outputs of the model: one has to stay")
        remove_outputs(Scope(names.graph.body, names.graph), positions)
        gone = sweep(values)
        for name in self.outputs:
            remark(ctx, self.name, name, "applied", f"is gone, and {len(gone)} nodes and weights with it")

    def track(self, interface: Interface) -> None:
        for name in self.outputs:
            interface.outputs.pop(name, None)
