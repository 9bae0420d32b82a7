"""Expressions of symbols as nodes: the fewest that compute a shape from the shapes of the graph's inputs.

    [batch, 1, 2*seq]    ->    %b = onnx.Shape(%ids) {start = 0, end = 1}
                               %s = onnx.Shape(%ids) {start = 1, end = 2}
                               %d = onnx.Mul(%s, 2)
                               %t = onnx.Concat(%b, 1, %d)

Each symbol, each part of an expression and each list is computed once, before all other nodes of the main graph, to be
visible in every nested graph.
"""

from __future__ import annotations

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.onnx.base import imported_opset
from igniter.dialects.onnx.expr_nodes import ExprNodes
from igniter.dialects.onnx.registry import Dims
from igniter.dialects.onnx.structure import GraphOp
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.expr import Atom, Expr, Sym
from igniter.dialects.sym.ranges import is_nonneg
from igniter.dialects.sym.tensor_types import known_dims_of

OPSETS = {"floordiv": 7, "mod": 10, "min": 12, "max": 12}
"""The first opset that has a call's op on i64."""


class ShapeArithmetic(ExprNodes):
    """Inserts nodes at the head of one graph."""

    named = True

    def __init__(self, graph: GraphOp):
        first = graph.body.first_op
        assert first is not None
        super().__init__(graph.body, first)
        self._opset = _opset(graph)
        self._places: dict[str, tuple[SSAValue, int]] = {}
        self._inputs = [(arg, dims) for arg in graph.body.args if (dims := known_dims_of(arg.type)) is not None]
        for arg, dims in self._inputs:
            for axis, dim in enumerate(dims):
                if dim.symbol is not None:
                    self._places.setdefault(dim.symbol, (arg, axis))

    def of(self, elements: Dims, rank: int, element: Attribute) -> SSAValue | None:
        """Returns a tensor of `element` (i32 or i64) with these elements and one axis, or none; `None` if a symbol is
        no dim of an input, or if the opset lacks an op."""
        if element not in (i32, i64) or not all(self._can(e) for e in elements) or (rank == 0 and len(elements) != 1):
            return None
        key = (elements, rank, element)
        known = self.known(key)
        if known is None:
            whole = self._list(elements)
            if rank == 0:
                whole = self.node("Squeeze", [whole], tensor_of(i64, ()))
            if element != i64:
                whole = self.node("Cast", [whole], tensor_of(element, known_dims_of(whole.type) or ()), to=6)
            self.keep(key, whole)
            return whole
        return known

    def _can(self, e: Expr) -> bool:
        if self._opset < 7:
            return False
        return all(self._can_atom(a) for monomial, _ in e.terms for a in monomial)

    def _can_atom(self, atom: Atom) -> bool:
        if isinstance(atom, Sym):
            return atom.name in self._places
        # A quotient that may be negative takes three nodes, too many for a shape.
        divides = atom.fn in ("floordiv", "mod")
        if divides and not (is_nonneg(atom.args[0]) and is_nonneg(atom.args[1])):
            return False
        return self._opset >= OPSETS[atom.fn] and all(self._can(a) for a in atom.args)

    def _list(self, elements: Dims) -> SSAValue:
        parts: list[SSAValue] = []
        left = elements
        while left:
            count = next((n for n, e in enumerate(left) if e.constant is None), len(left))
            if count:
                parts.append(self.ints([e.constant or 0 for e in left[:count]]))
            else:
                arg, start, count = self._dims_that_begin(left)
                parts.append(self.lower(left[0]) if arg is None else self._shape(arg, start, start + count))
            left = left[count:]
        return parts[0] if len(parts) == 1 else self.node("Concat", parts, tensor_of(i64, (len(elements),)), axis=0)

    def _dims_that_begin(self, elements: Dims) -> tuple[SSAValue | None, int, int]:
        """Returns the input with the longest run of dims at the start of `elements`, the first axis and the length of
        the run; no input, and 1, if there is no run of two."""
        found: tuple[SSAValue | None, int, int] = (None, 0, 1)
        for arg, dims in self._inputs:
            for start in range(len(dims)):
                pairs = zip(dims[start:], elements, strict=False)
                count = next((n for n, (d, e) in enumerate(pairs) if d != e), min(len(dims) - start, len(elements)))
                if count > found[2]:
                    found = arg, start, count
        return found

    def read_symbol(self, name: str) -> SSAValue:
        arg, axis = self._places[name]
        return self._shape(arg, axis, axis + 1)

    def _shape(self, arg: SSAValue, start: int, end: int) -> SSAValue:
        rank = len(known_dims_of(arg.type) or ())
        key = (arg, start, end)
        known = self.known(key)
        if known is not None:
            return known
        type_ = tensor_of(i64, (end - start,))
        if start == 0 and end == rank:
            made = self.node("Shape", [arg], type_)
        elif self._opset >= 15:
            made = self.node("Shape", [arg], type_, start=start, end=end)
        else:
            picked = self.ints(list(range(start, end)))
            made = self.node("Gather", [self._shape(arg, 0, rank), picked], type_, axis=0)
        return self.keep(key, made)


def _opset(graph: GraphOp) -> int:
    return imported_opset(graph, "") or 1
