"""`expose-values`: makes inner values of the main graph outputs too, with their types.

    %h = onnx.Exp(%x)                   expose-values{values="h"}      %h = onnx.Exp(%x)
    onnx.return %y                           ->                        onnx.return %y, %h

The values are chosen by name (`values`), by a regular expression that matches in the name (`pattern`), or `all`.
Weights and inputs are excluded unless they are named. A value inside a branch or a loop exists once per iteration, or
not at all, and cannot be an output.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.types import UNKNOWN
from igniter.dialects.sym.tensor_types import ranked
from igniter.errors import IgniterError
from igniter.remarks import remark
from igniter.toolbox.edit.edit import Edit, Interface
from igniter.toolbox.edit.graph_edits import add_outputs, is_omitted
from igniter.toolbox.edit.names import Names, Scope, result_names
from igniter.toolbox.edit.value_types import is_unknown, value_types


@dataclass(frozen=True)
class ExposeValues(Edit):
    """Makes inner values outputs too."""

    name = "expose-values"
    values: tuple[str, ...] = ()
    """Names of values."""
    pattern: str = ""
    """A regular expression; values with a match in their names."""
    all: bool = False
    """Selects the results of all nodes of the main graph."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        names = Names(op)
        present = set(names.graph.output_names)
        chosen: dict[str, SSAValue] = {}
        for name in self.values:
            value = names.main_value(name, "where it is computed once an iteration or not at all: no output")
            if name in present:
                raise IgniterError(f"'{name}' is an output already")
            chosen[name] = value
        found = self._found(names)
        chosen.update({n: v for n, v in found.items() if n not in present})
        if not chosen:
            raise IgniterError("every value of the main graph is an output already" if found else "no value is named")
        types = value_types(op)
        for name, value in list(chosen.items()):
            inferred = types.get(value, value.type)
            if value.type == UNKNOWN or (ranked(value.type) is None and ranked(inferred) is not None):
                value._type = inferred
            if is_unknown(value.type):
                why = f"the type of '{name}' is not known, and an output has one: give it one in the model (value_info)"
                if name in self.values:
                    raise IgniterError(why)
                del chosen[name]
                remark(ctx, self.name, name, "missed", why)
        if not chosen:
            raise IgniterError("of no value that was found is the type known, and an output has one")
        add_outputs(Scope(names.graph.body, names.graph), chosen.items())
        remark(ctx, self.name, "", "applied", f"{len(chosen)} values are outputs too")

    def _found(self, names: Names) -> dict[str, SSAValue]:
        if not self.all and not self.pattern:
            return {}
        try:
            pattern = re.compile(self.pattern)
        except re.error as error:
            raise IgniterError(f"'{self.pattern}' is no regular expression: {error}") from error
        computed: list[tuple[str, SSAValue]] = [
            (name, value)
            for op in names.graph.body.ops
            if isinstance(op, OnnxOp) and op.name != "onnx.Constant"
            for name, value in zip(result_names(op), op.results, strict=True)
            if name and not is_omitted(value)
        ]
        found = {name: value for name, value in computed if pattern.search(name)}
        if not computed:
            raise IgniterError("no node of the main graph computes a value that could be an output")
        if not found:
            raise IgniterError(f"none of the {len(computed)} values of the main graph has '{self.pattern}' in its name")
        return found

    def track(self, interface: Interface) -> None:
        for name in self.values:
            interface.outputs[name] = interface.original_value(name)
