"""Expands `fusion.dims` to ONNX nodes, for an inlined region or program.

    %s = fusion.dims [seq, 64*batch]  ->  %0 = onnx.Shape(%x), %1 = onnx.Gather(%0, [1]), %2 = onnx.Gather(%0, [0])
                                          %3 = onnx.Mul(%2, [64]), %s = onnx.Concat(%1, %3)

The symbols are read from the region's operands, in the same way as its kernel reads them. A quotient that is a dim of
an operand is read as one: `n floordiv 9`, where no operand has `n`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import i64
from xdsl.ir import Block, Operation, SSAValue

from igniter.analysis.fusion.legality import as_tensor
from igniter.dialects.fusion import DimsOp, GroupOp
from igniter.dialects.onnx.expr_nodes import ExprNodes
from igniter.dialects.onnx.names import is_loop
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.bind_symbols import Bind, Solve, bind_symbols
from igniter.dialects.sym.expr import Atom, Call, Expr, Sym
from igniter.errors import IgniterError

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


class _Symbols(ExprNodes):
    """Builds nodes for expressions from the arguments of a region, each once."""

    def __init__(self, region: GroupOp, before: Operation):
        super().__init__(region.block, before)
        self.region = region
        types = [as_tensor(a.type) for a in region.block.args]
        dims = [() if t is None else dims_of(t) for t in types]
        steps = bind_symbols([(d, True) for d in dims]).steps
        self._places = {dim: (k, axis) for k, of in enumerate(dims) for axis, dim in enumerate(of)}
        self._steps: dict[str, Bind | Solve] = {}
        for step in steps:
            if isinstance(step, (Bind, Solve)):
                self._steps.setdefault(step.symbol, step)

    def tensor(self, op: DimsOp) -> SSAValue:
        """Returns the tensor computed by a `fusion.dims`."""
        dims = dims_of(op.result.type)
        elements = [self.lower(e) for e in op.dims]
        if not elements:
            return self.ints([])
        listed = tensor_of(i64, [len(elements)])
        value = elements[0] if len(elements) == 1 else self.node("Concat", elements, listed, axis=0)
        if not dims:
            value = self.node("Reshape", [value, self.ints([])], tensor_of(i64, []))
        if element_of(op.result.type) != i64:
            value = self.node("Cast", [value], op.result.type, to=_CAST_TO_I32)
        return value

    def atom(self, atom: Atom) -> SSAValue:
        whole = Expr({(atom,): 1})
        if isinstance(atom, Call) and whole in self._places and not whole.symbols <= self._steps.keys():
            return self._dim(*self._places[whole])
        return super().atom(atom)

    def read_symbol(self, name: str) -> SSAValue:
        step = self._steps.get(name)
        if step is None:
            raise IgniterError(f"{self.region.what} @{self.region.label}: no operand has the size {Sym(name)}")
        dim = self._dim(step.input, step.axis)
        if isinstance(step, Bind):
            return dim
        rest = self.node("Sub", [dim, self.lower(step.rest)], tensor_of(i64, [1]))
        return self.node("Div", [rest, self.ints([step.coefficient])], tensor_of(i64, [1]))

    def _dim(self, argument: int, axis: int) -> SSAValue:
        value = self.region.block.args[argument]
        key = ("shape", argument)
        shape = self.known(key)
        if shape is None:
            shape = self.keep(key, self.node("Shape", [value], tensor_of(i64, [len(dims_of(value.type))])))
        return self.node("Gather", [shape, self.ints([axis])], tensor_of(i64, [1]))
