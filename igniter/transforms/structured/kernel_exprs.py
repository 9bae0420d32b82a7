"""Lists or replaces the expressions of a kernel, in types, axes, subscripts and guards."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xdsl.dialects.builtin import ArrayAttr, MemRefType
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.loop import AxesAttr, Axis, FuncOp, KernelOp, ProcedureOp
from igniter.dialects.sym import DimsAttr, dims_of, element_of, memref_of, space_of, tensor_of
from igniter.dialects.sym.expr import Expr

ExprRule = Callable[[Expr], Expr]


def map_kernel_exprs(kernel: KernelOp | FuncOp, rule: ExprRule) -> None:
    """Replaces every expression in the body of a kernel. The kernel's own arguments and properties stay."""
    for op in kernel.walk():
        if op is kernel:
            continue
        for result in op.results:
            retype(result, rule)
        if isinstance(op, ProcedureOp):
            for arg in op.block.args:
                retype(arg, rule)
        for key, attr in op.properties.items():
            op.properties[key] = map_attribute(attr, rule)


def exprs_of(kernel: KernelOp) -> Iterator[Expr]:
    """Yields every expression in the body of a kernel."""
    for op in kernel.walk():
        if op is kernel:
            continue
        for value in (*op.results, *(op.block.args if isinstance(op, ProcedureOp) else ())):
            yield from _dims(value)
        for attr in op.properties.values():
            yield from _exprs(attr)


def _dims(value: SSAValue) -> tuple[Expr, ...]:
    try:
        return dims_of(value.type)
    except ValueError:
        return ()


def _exprs(attr: Attribute) -> Iterator[Expr]:
    if isinstance(attr, DimsAttr):
        yield from attr.data
    elif isinstance(attr, AxesAttr):
        yield from (a.extent for a in attr)
    elif isinstance(attr, ArrayAttr):
        for item in attr.data:  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
            yield from _exprs(item)  # pyright: ignore[reportUnknownArgumentType]


def map_attribute(attr: Attribute, rule: ExprRule) -> Attribute:
    """Returns an attribute with every expression in it replaced."""
    if isinstance(attr, DimsAttr):
        return DimsAttr(map(rule, attr.data))
    if isinstance(attr, AxesAttr):
        return AxesAttr(Axis(a.name, rule(a.extent), a.kind) for a in attr)
    if isinstance(attr, ArrayAttr):
        items: list[Attribute] = list(attr.data)  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
        return ArrayAttr([map_attribute(a, rule) for a in items])
    return attr


def retype(value: SSAValue, rule: ExprRule) -> None:
    """Replaces the dims of a tensor or buffer, in place."""
    dims = _dims(value)
    if all(d.constant is not None for d in dims):
        return
    changed = [rule(d) for d in dims]
    kind: Attribute = value.type
    if kind.name == MemRefType.name:
        value._type = memref_of(element_of(kind), changed, space_of(kind) or None)
    else:
        value._type = tensor_of(element_of(kind), changed)
