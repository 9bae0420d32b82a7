"""Expands `fusion.dims` to ONNX nodes, for an inlined region or program.

    %s = fusion.dims [seq, 64*batch]  ->  %0 = onnx.Shape(%x), %1 = onnx.Gather(%0, [1]), %2 = onnx.Gather(%0, [0])
                                          %3 = onnx.Mul(%2, [64]), %s = onnx.Concat(%1, %3)

The symbols are read from the region's operands, in the same way as its kernel reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from igniter.analysis.fusion.legality import as_tensor
from igniter.dialects.fusion import DimsOp, GroupOp
from igniter.dialects.onnx.base import make_constant, make_op
from igniter.dialects.onnx.names import is_loop
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.bind_symbols import Bind, Solve, bind_symbols
from igniter.dialects.sym.expr import Atom, Call, Expr, Sym
from igniter.errors import IgniterError

_OPS = {"floordiv": "Div", "mod": "Mod", "min": "Min", "max": "Max"}
_CAST_TO_I32 = 6


def expand_dims(region: GroupOp) -> None:
    """Replaces every `fusion.dims` of a region by nodes in the same place that use the region's arguments."""
    for op in _dims_in_bodies(region.block):
        # Its value has other users too, so it must be computed where all of them can use it.
        op.detach()
        first = region.block.first_op
        assert first is not None
        region.block.insert_op_before(op, first)
    found = [op for op in region.block.ops if isinstance(op, DimsOp)]
    if not found:
        return
    symbols = _Symbols(region, found[0])
    for op in found:
        symbols.before = op
        op.result.replace_all_uses_with(symbols.tensor(op))
        op.detach()
        op.erase()


def _dims_in_bodies(block: Block) -> list[DimsOp]:
    """Returns the `fusion.dims` in the bodies of loops, except in regions there; those are inlined on their own."""
    bodies = [inner.block for op in block.ops if is_loop(op) for inner in op.regions]
    own = [op for body in bodies for op in body.ops if isinstance(op, DimsOp)]
    return own + [op for body in bodies for op in _dims_in_bodies(body)]


class _Symbols:
    """Builds nodes for expressions, each once; all are i64 tensors of one element."""

    def __init__(self, region: GroupOp, before: Operation):
        self.region = region
        self.before = before
        self._made: dict[object, SSAValue] = {}
        types = [as_tensor(a.type) for a in region.block.args]
        steps = bind_symbols([(() if t is None else dims_of(t), True) for t in types]).steps
        self._steps: dict[str, Bind | Solve] = {}
        for step in steps:
            if isinstance(step, (Bind, Solve)):
                self._steps.setdefault(step.symbol, step)

    def tensor(self, op: DimsOp) -> SSAValue:
        """Returns the tensor computed by a `fusion.dims`."""
        dims = dims_of(op.result.type)
        elements = [self._expr(e) for e in op.dims]
        if not elements:
            return self._constant([])
        value = elements[0] if len(elements) == 1 else self._node("Concat", elements, len(elements), axis=0)
        if not dims:
            value = self._append("Reshape", [value, self._constant([])], tensor_of(i64, []))
        if element_of(op.result.type) != i64:
            value = self._append("Cast", [value], op.result.type, to=_CAST_TO_I32)
        return value

    def _expr(self, e: Expr) -> SSAValue:
        if e not in self._made:
            terms = [self._term(list(monomial), c) for monomial, c in e.terms]
            self._made[e] = reduce(lambda a, b: self._node("Add", [a, b]), terms) if terms else self._constant([0])
        return self._made[e]

    def _term(self, atoms: Sequence[Atom], coefficient: int) -> SSAValue:
        factors = [self._atom(a) for a in atoms]
        if coefficient != 1 or not factors:
            factors.append(self._constant([coefficient]))
        return reduce(lambda a, b: self._node("Mul", [a, b]), factors)

    def _atom(self, atom: Atom) -> SSAValue:
        if isinstance(atom, Call):
            return reduce(lambda a, b: self._node(_OPS[atom.fn], [a, b]), map(self._expr, atom.args))
        if atom not in self._made:
            self._made[atom] = self._symbol(atom)
        return self._made[atom]

    def _symbol(self, symbol: Sym) -> SSAValue:
        step = self._steps.get(symbol.name)
        if step is None:
            raise IgniterError(f"{self.region.what} @{self.region.label}: no operand has the size {symbol}")
        dim = self._dim(step.input, step.axis)
        if isinstance(step, Bind):
            return dim
        rest = self._node("Sub", [dim, self._expr(step.rest)])
        return self._node("Div", [rest, self._constant([step.coefficient])])

    def _dim(self, argument: int, axis: int) -> SSAValue:
        value = self.region.block.args[argument]
        key = ("shape", argument)
        if key not in self._made:
            self._made[key] = self._node("Shape", [value], len(dims_of(value.type)))
        return self._node("Gather", [self._made[key], self._constant([axis])])

    def _constant(self, values: list[int]) -> SSAValue:
        made = make_constant(np.array(values, np.int64))
        self.region.block.insert_op_before(made, self.before)
        return made.results[0]

    def _node(self, name: str, inputs: Sequence[SSAValue], size: int = 1, **attrs: int) -> SSAValue:
        return self._append(name, inputs, tensor_of(i64, [size]), **attrs)

    def _append(self, name: str, inputs: Sequence[SSAValue], result: Attribute, **attrs: int) -> SSAValue:
        made = make_op(name, inputs, [result], attrs)
        self.region.block.insert_op_before(made, self.before)
        return made.results[0]
