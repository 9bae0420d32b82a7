"""`remove-inputs`: removes unused inputs, and turns inputs with a default into constants.

    graph(%x, %unused)                  remove-inputs{inputs="unused"}     ->     graph(%x)

An input with readers and without a default is refused; the error names the readers.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from igniter.dialects.onnx.attributes import SparseTensorAttr, TensorAttr, entries_of, text_attr
from igniter.dialects.onnx.base import make_constant, op_class
from igniter.dialects.onnx.structure import ReturnOp
from igniter.errors import IgniterError
from igniter.remarks import remark
from igniter.toolbox.edit.edit import Edit, Interface
from igniter.toolbox.edit.graph_edits import remove_input
from igniter.toolbox.edit.names import Names, node_text, readers


@dataclass(frozen=True)
class RemoveInputs(Edit):
    """Removes unneeded inputs."""

    name = "remove-inputs"
    inputs: tuple[str, ...] = ()
    """Names of inputs."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not self.inputs:
            raise IgniterError("no input is named for remove-inputs")
        for name in self.inputs:
            names = Names(op)
            position = names.input(name)
            value = names.graph.body.args[position]
            default = entries_of(names.graph.attributes.get("input_defaults")).get(name)
            if default is not None:
                _make_constant(names, value, name)
            elif value.first_use is not None:
                who = [node_text(o) for o in readers(value) if not isinstance(o, ReturnOp)] or ["an output"]
                more = f" and {len(who) - 3} others" if len(who) > 3 else ""
                raise IgniterError(f"the input '{name}' is read by {', '.join(who[:3])}{more}: take these away first")
            remove_input(names.graph, position)
            what = "is a weight now" if default is not None else "is gone; nothing read it"
            remark(ctx, self.name, name, "applied", what)

    def track(self, interface: Interface) -> None:
        for name in self.inputs:
            interface.inputs.pop(name, None)


def _make_constant(names: Names, value: SSAValue, name: str) -> None:
    default = entries_of(names.graph.attributes["input_defaults"])[name]
    if isinstance(default, TensorAttr):
        made = make_constant(default.data, name)
    else:
        assert isinstance(default, SparseTensorAttr)
        made = op_class("", "Constant").create(
            result_types=[value.type],
            attributes={"sparse_value": default},
            properties={"initializer_name": text_attr(name)},
        )
    first = names.graph.body.first_op
    assert first is not None
    names.graph.body.insert_op_before(made, first)
    value.replace_all_uses_with(made.results[0])
