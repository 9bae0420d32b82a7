"""Edits of sizes, at every level: a symbolic dim becomes a number, a size becomes a smaller one wherever it occurs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, MemRefType, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.dialects.loop import Axis, FuncOp, KernelOp
from igniter.dialects.loop.attrs import AxesAttr
from igniter.dialects.loop.structured import symbols_attr
from igniter.dialects.onnx.base import OnnxOp, constant_weight, make_constant
from igniter.dialects.onnx.registry import VALUES_ATTRIBUTE
from igniter.dialects.onnx.structure import GraphOp
from igniter.dialects.sym import DimsAttr, dims_of, element_of, memref_of, space_of, tensor_of
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.tensor_types import tensor_element, unranked
from igniter.toolbox.reduce.case import values_of
from igniter.toolbox.reduce.edits import Edit, Reduction

SYMBOL_SIZES = (1, 2, 3, 8)
"""The sizes tried for a symbol."""

MOST_SHAPE = 8
"""The limit of elements of an integer constant that may be a shape."""

Change = Callable[[Expr], Expr]


def symbols(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to replace a symbol by a number."""
    found: dict[str, None] = {}
    for value in values_of(module):
        for dim in _dims(value.type):
            found.update(dict.fromkeys(sorted(dim.symbols)))
    for name in found:
        for size in SYMBOL_SIZES:
            yield Edit(module, f"{name} = {size}", partial(_fix, name=name, size=size))


def _fix(module: Operation, name: str, size: int) -> None:
    value = {name: Expr.of(size)}
    for op in module.walk():
        change_types(op, lambda e: e.substitute(value))
        change_exprs(op, lambda e: e.substitute(value))
        if isinstance(op, (KernelOp, FuncOp)):
            op.symbols = symbols_attr(n for n in op.symbol_names if n != name)
            # A requirement on the symbol now holds, or the candidate does not run.
            op.requires_attr = None
        if isinstance(op, GraphOp):
            op.attributes.pop("igniter.assumptions", None)


def extents(module: ModuleOp) -> Iterator[Edit]:
    """Yields edits to replace a size over 1 by a smaller one: as a dim, as the end of an axis, in shapes, in
    weights."""
    sizes = {d.constant for value in values_of(module) for d in _dims(value.type) if d.constant is not None}
    for size in sorted(sizes, reverse=True):
        for smaller in dict.fromkeys((1, 2, size // 4, size // 2, size - 1)):
            if 0 < smaller < size:
                yield Edit(module, f"{size} becomes {smaller}", partial(_shrink, size=size, smaller=smaller))


def _shrink(module: Operation, size: int, smaller: int) -> None:
    was, now = Expr.of(size), Expr.of(smaller)

    def change(e: Expr) -> Expr:
        return now if e == was else e

    for op in module.walk():
        if isinstance(op, OnnxOp) and op.op_type == "Constant":
            _cut_weight(op, size, smaller)
            continue
        change_types(op, change)
        if isinstance(op, OnnxOp):
            # The sizes of results are unknown now: they are inferred again.
            for result in op.results:
                element = tensor_element(result.type)
                if element is not None and not _is_inside_region(op):
                    retype(result, unranked(element))
            op.attributes.pop(VALUES_ATTRIBUTE, None)
        else:
            change_exprs(op, change)
        if isinstance(op, GraphOp):
            op.attributes.pop("igniter.assumptions", None)


def _is_inside_region(op: Operation) -> bool:
    return op.parent_op() is not None and not isinstance(op.parent_op(), GraphOp)


def _cut_weight(op: OnnxOp, size: int, smaller: int) -> None:
    """Cuts a constant to its first elements along dims of this size; in a shape, replaces the size."""
    weight = constant_weight(op.results[0])
    if weight is None or weight.elided or weight.strings is not None:
        return
    array: Any = weight.array()
    cut = array[tuple(slice(smaller) if d == size else slice(None) for d in array.shape)]
    if array.dtype.kind == "i" and array.ndim <= 1 and array.size <= MOST_SHAPE and size in array.reshape(-1).tolist():
        cut = cut.copy()
        cut[cut == size] = smaller
    elif cut.shape == array.shape:
        return
    made = make_constant(cut)
    retype(op.results[0], tensor_of(element_of(op.results[0].type), cut.shape))
    op.attributes["value"] = made.attributes["value"]


# -- types and expressions --------------------------------------------------------------------------------------------


def retype(value: SSAValue, type_: Attribute) -> None:
    """Changes the type of a value, in place."""
    value._type = type_


def change_types(op: Operation, change: Change) -> None:
    """Changes the dims in the types of an op's results and block arguments, and in its declared types."""
    for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)):
        retype(value, _changed(value.type, change))
    declared = op.properties.get("declared_types")
    if isinstance(op, KernelOp) and isinstance(declared, ArrayAttr):
        op.declared_types = ArrayAttr([_changed(t, change) for t in op.declared_types])


def _changed(type_: Attribute, change: Change) -> Attribute:
    dims = _dims(type_)
    new = [change(d) for d in dims]
    if list(dims) == new:
        return type_
    if type_.name == MemRefType.name:
        return memref_of(element_of(type_), new, space_of(type_) or None)
    return tensor_of(element_of(type_), new) if type_.name == TensorType.name else type_


def change_exprs(op: Operation, change: Change) -> None:
    """Changes the expressions of an op: subscripts, guards, bounds, the ends of axes."""
    for where in (op.properties, op.attributes):
        for key, attr in list(where.items()):
            if isinstance(attr, DimsAttr):
                where[key] = DimsAttr([change(e) for e in attr.data])
            elif isinstance(attr, AxesAttr):
                where[key] = AxesAttr([Axis(a.name, change(a.extent), a.kind) for a in attr.data])


def _dims(type_: Attribute) -> tuple[Expr, ...]:
    try:
        return tuple(dims_of(type_))
    except ValueError:
        return ()


REDUCTIONS = (Reduction("fix symbols", symbols), Reduction("shrink sizes", extents))
