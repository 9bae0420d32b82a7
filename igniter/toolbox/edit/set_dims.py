"""`set-dims`: fixes symbolic dims at a number, or makes them equal to another.

    %x: tensor<?x?xf32, #sym.dims<batch, seq>>      set-dims{dims="batch","seq" to=1,128}   ->   %x: tensor<1x128xf32>
    %y: tensor<?x?xf32, #sym.dims<rows, seq>>       set-dims{dims="rows" to="seq"}          ->   #sym.dims<seq, seq>

All types of the model change accordingly, including those of inner values. A dim is set to a number, to the name of an
input's dim, or to an expression over such dims (`past + seq`). A dim of no input is computed by the model and cannot be
set. A value refused by a node is an error (a position table of 512 rows and a sequence of 1024).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from igniter.analysis.onnx.shape_inference import infer_shapes
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.structure import main_graph
from igniter.dialects.sym.expr import Expr
from igniter.errors import IgniterError
from igniter.remarks import remark
from igniter.toolbox.edit.dims import ModelDims, Substitution
from igniter.toolbox.edit.edit import Edit, Interface, paired
from igniter.toolbox.edit.names import node_text
from igniter.toolbox.edit.shape_conflicts import requirements, side_by_side, typed_by


@dataclass(frozen=True)
class SetDims(Edit):
    """Fixes dims at a number, or makes them equal to others."""

    name = "set-dims"
    dims: tuple[str, ...] = ()
    """The dims: names, or INPUT:AXIS."""
    to: tuple[str | int, ...] = ()
    """The value of each: a number, another dim or an expression over dims."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = ModelDims(op)
        values: dict[str, Expr] = {}
        for text, to in paired("set-dims", self.dims, [str(t) for t in self.to]):
            symbol, target = known.symbol(text), _target(known, text, to)
            if target == Expr.of(symbol):
                raise IgniterError(f"dim '{text}' is to be '{to}', which it is")
            if symbol in target.symbols:
                raise IgniterError(f"dim '{text}' cannot be '{to}', which depends on it")
            if values.setdefault(symbol, target) != target:
                raise IgniterError(f"dim '{known.shown(symbol)}' is set twice, to {values[symbol]} and to {target}")
        values = _closed(values)
        Substitution(values).module(op)
        self._require_possible(op)
        for symbol, target in values.items():
            remark(ctx, self.name, known.shown(symbol), "applied", f"is {target}")

    def _require_possible(self, module: ModuleOp) -> None:
        """Raises `IgniterError` if a node can no longer run, because two numbers that must be equal are not."""
        copy = module.clone()
        facts = infer_shapes(copy)
        asked = ", ".join(f"{d}={t}" for d, t in zip(self.dims, self.to, strict=True))
        with typed_by(facts):
            for node in main_graph(copy).body.ops:
                if isinstance(node, OnnxOp):
                    _require_node(node, asked)

    def track(self, interface: Interface) -> None:
        for dim, to in zip(self.dims, self.to, strict=True):
            text = str(to)
            original = interface.original_dim(dim)
            if text.isdigit():
                interface.freed.pop(dim, None)
                interface.sizes[original] = int(text)
            else:
                interface.equal.append((original, text))


def _require_node(node: OnnxOp, asked: str) -> None:
    for one, other in side_by_side(node):
        if one.constant is not None and other.constant is not None:
            raise IgniterError(f"the model does not run with {asked}: {node_text(node)} has {one} beside {other}")
    for r in requirements(node):
        if not r.symbols and not r.holds({}):
            raise IgniterError(f"the model does not run with {asked}: {node_text(node)} needs {r}, else {r.text}")


def _target(known: ModelDims, text: str, to: str) -> Expr:
    try:
        found = Expr.parse(to)
    except ValueError as error:
        raise IgniterError(f"dim '{text}' cannot be '{to}': {error}") from error
    if found.constant is not None and found.constant < 0:
        raise IgniterError(f"dim '{text}' cannot be {to}: a size is not negative")
    for symbol in found.symbols:
        if symbol not in known.of_inputs:
            raise known.unknown(symbol)
    return found


def _closed(values: dict[str, Expr]) -> dict[str, Expr]:
    """Resolves references to other set dims. Raises `IgniterError` for a cycle."""
    for _ in values:
        values = {k: v.substitute(values) for k, v in values.items()}
    circle = next((k for k, v in values.items() if v.symbols & values.keys()), None)
    if circle is not None:
        raise IgniterError(f"dim '{circle}' is set in a circle")
    return values
