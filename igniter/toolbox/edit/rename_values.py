"""`rename-values`: gives inputs, outputs, weights and inner values other names.

    onnx.graph @main(%x) {input_names = ["x"], output_names = ["y"]}

    rename-values{old="x","y" new="image","scores"}  ->  {input_names = ["image"], output_names = ["scores"]}

Values inside a branch or a loop are found too. The new name must be unused in the whole model: ONNX forbids nested
graphs to reuse a name. Quantization annotations are updated.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import OpResult, SSAValue

from igniter.dialects.onnx.attributes import entries_of, texts_attr
from igniter.dialects.onnx.base import name_hint
from igniter.errors import IgniterError
from igniter.remarks import remark
from igniter.toolbox.edit.edit import Edit, Interface, paired
from igniter.toolbox.edit.graph_edits import rename_annotations, set_defaults
from igniter.toolbox.edit.names import Names, set_result_name


@dataclass(frozen=True)
class RenameValues(Edit):
    """Gives values other names."""

    name = "rename-values"
    old: tuple[str, ...] = ()
    """Their names in the model."""
    new: tuple[str, ...] = ()
    """Their new names, in the same order."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        names = Names(op)
        pairs = paired("rename-values", self.old, self.new)
        leaving = set(self.old)
        found: list[tuple[str, SSAValue, str]] = []
        for old, new in pairs:
            value = names.value(old)
            if new == old:
                raise IgniterError(f"'{old}' is to be called '{new}', which it is")
            if new not in leaving or not new:
                names.require_free(new)
            if self.new.count(new) > 1:
                raise IgniterError(f"two values are to be called '{new}'")
            found.append((old, value, new))
        for old, value, new in found:
            if isinstance(value, OpResult):
                set_result_name(value, new)
            else:
                value.name_hint = name_hint(new)
            remark(ctx, self.name, new, "applied", f"was '{old}'")
        self._lists(names)

    def _lists(self, names: Names) -> None:
        """Updates the lists of names that graphs hold."""
        renamed = dict(zip(self.old, self.new, strict=True))
        for scope in names.scopes:
            for key, given in (("input_names", scope.input_names), ("output_names", scope.output_names)):
                if any(n in renamed for n in given):
                    scope.info[key] = texts_attr([renamed.get(n, n) for n in given])
        defaults = entries_of(names.graph.attributes.get("input_defaults"))
        if defaults:
            set_defaults(names.graph, {renamed.get(k, k): v for k, v in defaults.items()})
        rename_annotations(names, renamed)

    def track(self, interface: Interface) -> None:
        renamed = dict(zip(self.old, self.new, strict=True))
        back = {new: interface.original_value(old) for old, new in renamed.items()}
        interface.values = {k: v for k, v in interface.values.items() if k not in renamed} | back
        interface.inputs = {renamed.get(k, k): v for k, v in interface.inputs.items()}
        interface.outputs = {renamed.get(k, k): v for k, v in interface.outputs.items()}
