"""`rename-dims`: gives symbolic dims other names.

    %x: tensor<?x?xf32, #sym.dims<N, seq + 1>>    rename-dims{old="N","seq" new="batch","past"}
                                             ->   %x: tensor<?x?xf32, #sym.dims<batch, past + 1>>

An unnamed dim is named by its place, `x:0`. The name of another dim would make the two equal; `set-dims` is for this.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from igniter.dialects.sym.expr import Expr
from igniter.errors import IgniterError
from igniter.remarks import remark
from igniter.toolbox.edit.dims import ModelDims, Substitution
from igniter.toolbox.edit.edit import Edit, Interface, paired


def require_name(text: str) -> str:
    """Returns a valid name for expressions. Raises `IgniterError` for other texts."""
    if not text.isascii() or not text.replace(".", "_").isidentifier():
        raise IgniterError(f"'{text}' is no name for a dim: use letters, digits, '_' and '.'")
    return text


@dataclass(frozen=True)
class RenameDims(Edit):
    """Gives symbolic dims other names."""

    name = "rename-dims"
    old: tuple[str, ...] = ()
    """Their names in the model, or INPUT:AXIS."""
    new: tuple[str, ...] = ()
    """Their new names, in the same order."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        dims = ModelDims(op)
        there = dims.everywhere()
        values: dict[str, Expr] = {}
        for old, new in paired("rename-dims", self.old, self.new):
            symbol = dims.any_symbol(old)
            if symbol in values:
                raise IgniterError(f"'{old}' is named twice for rename-dims, by another name")
            if new == symbol:
                raise IgniterError(f"dim '{old}' is to be called '{new}', which it is")
            if require_name(new) in there and new not in self.old:
                raise IgniterError(f"there is a dim called '{new}' already: set-dims makes dims equal")
            if self.new.count(new) > 1:
                raise IgniterError(f"two dims are to be called '{new}': set-dims makes dims equal")
            values[symbol] = Expr.of(new)
            remark(ctx, self.name, new, "applied", f"was '{dims.shown(symbol)}'")
        Substitution(values).module(op)

    def track(self, interface: Interface) -> None:
        renamed = dict(zip(self.old, self.new, strict=True))
        before = dict(interface.dims)
        interface.dims = {renamed.get(k, k): v for k, v in before.items()}
        interface.freed = {renamed.get(k, k): v for k, v in interface.freed.items()}
        for old, new in renamed.items():
            if old not in before and old not in interface.freed:
                interface.dims[new] = old
