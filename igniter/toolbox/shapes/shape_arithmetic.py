"""Expressions of symbols as nodes: the fewest that compute a shape from the shapes of the graph's inputs.

    [batch, 1, 2*seq]    ->    %b = onnx.Shape(%ids) {start = 0, end = 1}
                               %s = onnx.Shape(%ids) {start = 1, end = 2}
                               %d = onnx.Mul(%s, 2)
                               %t = onnx.Concat(%b, 1, %d)

Each symbol, each part of an expression and each list is computed once, before all other nodes of the main graph, to be
visible in every nested graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.dialects.onnx.base import OnnxOp, imported_opset, make_constant, make_op
from igniter.dialects.onnx.registry import Dims
from igniter.dialects.onnx.structure import GraphOp
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.expr import Atom, Expr, Monomial, Sym
from igniter.dialects.sym.ranges import is_nonneg
from igniter.dialects.sym.tensor_types import known_dims_of

CALLS = {"floordiv": ("Div", 7), "mod": ("Mod", 10), "min": ("Min", 12), "max": ("Max", 12)}
"""The op of a call, and its first opset with i64."""


class ShapeArithmetic:
    """Inserts nodes at the head of one graph."""

    def __init__(self, graph: GraphOp):
        first = graph.body.first_op
        assert first is not None
        self._graph = graph
        self._before: Operation = first
        self._opset = _opset(graph)
        self._places: dict[str, tuple[SSAValue, int]] = {}
        self._inputs = [(arg, dims) for arg in graph.body.args if (dims := known_dims_of(arg.type)) is not None]
        for arg, dims in self._inputs:
            for axis, dim in enumerate(dims):
                if dim.symbol is not None:
                    self._places.setdefault(dim.symbol, (arg, axis))
        self._made: dict[Any, SSAValue] = {}

    def of(self, elements: Dims, rank: int, element: Attribute) -> SSAValue | None:
        """Returns a tensor of `element` (i32 or i64) with these elements and one axis, or none; `None` if a symbol is
        no dim of an input, or if the opset lacks an op."""
        if element not in (i32, i64) or not all(self._can(e) for e in elements) or (rank == 0 and len(elements) != 1):
            return None
        key = (elements, rank, element)
        known = self._known(key)
        if known is None:
            whole = self._list(elements)
            if rank == 0:
                whole = self._op("Squeeze", [whole], tensor_of(i64, ()))
            if element != i64:
                whole = self._op("Cast", [whole], tensor_of(element, known_dims_of(whole.type) or ()), to=6)
            known = self._made[key] = whole
        return known

    def _known(self, key: object) -> SSAValue | None:
        """Returns an earlier result, unless it was erased with its last reader."""
        value = self._made.get(key)
        erased = value is None or (isinstance(value.owner, Operation) and value.owner.parent is None)
        return None if erased else value

    def _can(self, e: Expr) -> bool:
        if self._opset < 7:
            return False
        return all(self._can_atom(a) for monomial, _ in e.terms for a in monomial)

    def _can_atom(self, atom: Atom) -> bool:
        if isinstance(atom, Sym):
            return atom.name in self._places
        # ONNX's Div rounds towards zero, floordiv downwards: they are equal for nonnegative numbers.
        divides = atom.fn in ("floordiv", "mod")
        if divides and not (is_nonneg(atom.args[0]) and is_nonneg(atom.args[1])):
            return False
        return self._opset >= CALLS[atom.fn][1] and all(self._can(a) for a in atom.args)

    def _list(self, elements: Dims) -> SSAValue:
        parts: list[SSAValue] = []
        left = elements
        while left:
            count = next((n for n, e in enumerate(left) if e.constant is None), len(left))
            if count:
                parts.append(self._ints([e.constant or 0 for e in left[:count]]))
            else:
                arg, start, count = self._dims_that_begin(left)
                parts.append(self._expr(left[0]) if arg is None else self._shape(arg, start, start + count))
            left = left[count:]
        return parts[0] if len(parts) == 1 else self._op("Concat", parts, tensor_of(i64, (len(elements),)), axis=0)

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

    def _expr(self, e: Expr) -> SSAValue:
        """Returns a tensor of one element and one axis."""
        known = self._known(e)
        if known is not None:
            return known
        if e.constant is not None:
            made = self._ints([e.constant])
        else:
            terms = [self._term(monomial, c) for monomial, c in e.terms]
            made = self._fold("Add", terms)
        self._made[e] = made
        return made

    def _term(self, monomial: Monomial, c: int) -> SSAValue:
        factors = [self._atom(a) for a in monomial]
        if c != 1 or not factors:
            factors.append(self._expr(Expr.of(c)))
        return self._fold("Mul", factors)

    def _atom(self, atom: Atom) -> SSAValue:
        known = self._known(atom)
        if known is None:
            if isinstance(atom, Sym):
                arg, axis = self._places[atom.name]
                known = self._shape(arg, axis, axis + 1)
            else:
                known = self._fold(CALLS[atom.fn][0], [self._expr(a) for a in atom.args])
            self._made[atom] = known
        return known

    def _fold(self, name: str, values: Sequence[SSAValue]) -> SSAValue:
        result = values[0]
        for value in values[1:]:
            key = (name, result, value)
            known = self._known(key)
            if known is None:
                known = self._made[key] = self._op(name, [result, value], tensor_of(i64, (1,)))
            result = known
        return result

    def _shape(self, arg: SSAValue, start: int, end: int) -> SSAValue:
        rank = len(known_dims_of(arg.type) or ())
        key = (arg, start, end)
        known = self._known(key)
        if known is not None:
            return known
        type_ = tensor_of(i64, (end - start,))
        if start == 0 and end == rank:
            made = self._op("Shape", [arg], type_)
        elif self._opset >= 15:
            made = self._op("Shape", [arg], type_, start=start, end=end)
        else:
            picked = self._ints(list(range(start, end)))
            made = self._op("Gather", [self._shape(arg, 0, rank), picked], type_, axis=0)
        self._made[key] = made
        return made

    def _ints(self, values: Sequence[int]) -> SSAValue:
        import numpy as np

        key = ("ints", *values)
        known = self._known(key)
        if known is None:
            constant = make_constant(np.array(values, np.int64), f"ints_{'_'.join(map(str, values))}")
            known = self._made[key] = self._insert(constant)
        return known

    def _op(self, name: str, operands: Sequence[SSAValue], type_: Attribute, **attrs: int) -> SSAValue:
        made = make_op(name, list(operands), [type_], attrs)
        made.results[0].name_hint = f"{name.lower()}_of_shape"
        return self._insert(made)

    def _insert(self, op: OnnxOp) -> SSAValue:
        self._graph.body.insert_op_before(op, self._before)
        return op.results[0]


def _opset(graph: GraphOp) -> int:
    return imported_opset(graph, "") or 1
