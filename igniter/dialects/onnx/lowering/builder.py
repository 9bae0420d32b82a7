"""Builders of `loop.kernel`s: a `KernelBuilder` holds the nests, a `Nest` the axes and the body of one.

kernel = KernelBuilder([x.type]) nest = kernel.nest("softmax.max") i, k = nest.parallel(rows), nest.reduction(columns)
(top,) = nest.finish(("max", nest.read(x, [i, k]), [i], tensor_of(f32, [rows])))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias, cast

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, TensorType, UnitAttr, i8, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from igniter.dialects.loop import (
    Axis,
    AxisKind,
    Clause,
    Combiner,
    ComputeOp,
    IndexOp,
    KernelOp,
    NestOp,
    ProcedureOp,
    ReadOp,
    ReturnOp,
    ViewOp,
    YieldOp,
    is_float,
)
from igniter.dialects.loop.attrs import SMALL_FLOATS
from igniter.dialects.loop.func import free_names
from igniter.dialects.loop.sharing import IN_PLACE
from igniter.dialects.onnx.lowering.scalar import Number, Scalar, compute_type, float_bits, int_bits, signless
from igniter.dialects.onnx.types import element_type
from igniter.dialects.sym import axis_ranges, dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ZERO, Expr, ExprLike, product
from igniter.dialects.sym.proofs import proven
from igniter.dialects.sym.requirements import DataCheck, Requirement, unproven

Subscript: TypeAlias = Expr | int | Scalar
"""A subscript of a read: an expression over axes and symbols, or an integer computed in the body."""


class KernelBuilder:
    """A `loop.kernel` under construction. `reserved` are names forbidden for axes: the kernel's symbols."""

    def __init__(self, arg_types: Sequence[Attribute], reserved: Iterable[str] = ()):
        self.block = Block(arg_types=arg_types)
        self.reserved = frozenset(reserved) | symbols_of_types(arg_types)
        self.constants: dict[SSAValue, Number] = {}
        """The tensors with a single repeated number. Reading one gives an `arith.constant`, without a nest."""
        self.requires: list[Requirement] = []
        """The requirements of the nests on the symbols, each with the index of its node in the region."""
        self.checks: list[tuple[DataCheck, SSAValue]] = []
        """The data checks, each with a tensor of one i64 that holds its value."""
        self.blocks = False
        """True for programs on blocks of elements, those of a GPU: rules with a choice use nests instead of procedures,
        and one nest instead of several with a tensor between them."""
        self.in_place = False
        """True if a caller may pass one buffer as an input and as a result: all reads of the input come before."""
        self.one_token = False
        """True for a variant of the kernel for runs of at most one token."""
        self._labels: dict[str, int] = {}

    @property
    def args(self) -> tuple[SSAValue, ...]:
        return tuple(self.block.args)

    def nest(self, label: str) -> Nest:
        """Creates a nest; a number makes `label` unique in the kernel."""
        return Nest(self, label)

    def view(self, tensor: SSAValue, dims: Iterable[ExprLike]) -> SSAValue:
        """Returns `tensor` with other dims and the same elements in the same order."""
        target = tensor_of(element_of(tensor.type), dims)
        if target == tensor.type:
            return tensor
        if tensor in self.constants:
            return self.splat(self.constants[tensor], target)
        if isinstance(tensor.owner, ViewOp):
            return self.view(tensor.owner.source, dims)
        op = ViewOp(tensor, target)
        self.block.add_op(op)
        return op.result

    def splat(self, number: Number, tensor_type: Attribute) -> SSAValue:
        """Returns a tensor of one repeated number. Nests read it at no cost; other readers use the nest."""
        nest = self.nest("constant")
        axes = nest.axes(dims_of(tensor_type))
        (made,) = nest.finish(("none", nest.const(number, element_of(tensor_type)), axes, tensor_type))
        self.constants[made] = number
        return made

    def copy(self, tensor: SSAValue) -> SSAValue:
        """Creates a nest that copies `tensor`."""
        nest = self.nest("copy")
        axes = nest.axes(dims_of(tensor.type))
        return nest.finish(("none", nest.read(tensor, axes), axes, tensor.type))[0]

    def finish(self, name: str, results: Sequence[SSAValue]) -> KernelOp:
        """Returns the kernel. Each result is produced by its own nest (or a view of one), so that no output shares
        storage with an input or another output. Unread nests are dropped; the symbols are the names in use."""
        roots: set[SSAValue] = set()
        own: list[SSAValue] = []
        for value in (*results, *(value for _, value in self.checks)):
            root = _root(value)
            if root in roots or not isinstance(root.owner, ComputeOp):
                value = root = self.copy(value)
            roots.add(root)
            own.append(value)
        self.block.add_op(ReturnOp(own))
        _drop_dead(self.block)
        requires, checks = unproven(self.requires), [check for check, _ in self.checks]
        taken = [e for r in requires for e in (r.left, r.right)] + [e for c in checks for e in c.bounds or ()]
        symbols = _used_symbols(self.block, taken)
        made = KernelOp(name, symbols, [v.type for v in own], Region(self.block), None, requires, checks)
        if self.in_place:
            made.attributes[IN_PLACE] = UnitAttr()
        return made

    def unique(self, label: str) -> str:
        """Returns `label`, with a number if the kernel already has it."""
        count = self._labels.get(label, 0)
        self._labels[label] = count + 1
        return f"{label}_{count}" if count else label


class Nest:
    """A `loop.nest` under construction: first its axes, then its body, then `finish`."""

    def __init__(self, kernel: KernelBuilder, label: str):
        self.kernel = kernel
        self.label = label
        self.block = Block()
        self._axes: list[Axis] = []
        self._values: dict[tuple[object, ...], Operation] = {}

    # -- axes ----------------------------------------------------------------------------------------------------------

    def parallel(self, extent: ExprLike) -> Expr:
        """Adds a parallel axis; for extent 1 returns the subscript 0 instead."""
        return self._axis("parallel", extent)

    def reduction(self, extent: ExprLike) -> Expr:
        """Adds a reduction axis; for extent 1 returns the subscript 0 instead."""
        return self._axis("reduction", extent)

    def axes(self, extents: Iterable[ExprLike]) -> tuple[Expr, ...]:
        """Adds a parallel axis for each extent."""
        return tuple(self.parallel(e) for e in extents)

    def _axis(self, kind: AxisKind, extent: ExprLike) -> Expr:
        size = Expr.of(extent)
        if size == 1:
            return ZERO
        prefix = "i" if kind == "parallel" else "r"
        name = f"{prefix}{sum(a.kind == kind for a in self._axes)}"
        while name in self.kernel.reserved:
            name += "_"
        self._axes.append(Axis(name, size, kind))
        return Expr.of(name)

    # -- body ----------------------------------------------------------------------------------------------------------

    def const(self, value: Number, element: Attribute) -> Scalar:
        """Returns a constant."""
        return self.append(constant_op(value, element), element)

    def index(self, value: ExprLike) -> Scalar:
        """Returns the value of an expression over axes and symbols, as an i64."""
        value = Expr.of(value)
        return self.const(value.constant, i64) if value.constant is not None else self.append(IndexOp(value), i64)

    def read(
        self,
        tensor: SSAValue,
        subscripts: Sequence[Subscript],
        *,
        guards: Sequence[Expr] = (),
        otherwise: Scalar | Number | None = None,
        indices: Sequence[Scalar] = (),
    ) -> Scalar:
        """Reads the element of `tensor` at `subscripts`; if a guard is negative, gives `otherwise` (default 0).

        Expressions may name the i64 scalars of `indices` as `_0`, `_1`, ...; a `Scalar` may be used as a subscript
        directly.
        """
        element = element_of(tensor.type)
        if tensor in self.kernel.constants and not guards:
            return self.const(self.kernel.constants[tensor], element)
        used = [s.to(i64).value for s in indices]
        plain: list[Expr] = []
        for subscript in subscripts:
            if isinstance(subscript, Scalar):
                plain.append(Expr.of(f"_{len(used)}"))
                used.append(subscript.to(i64).value)
            else:
                plain.append(Expr.of(subscript))
        if otherwise is not None and not isinstance(otherwise, Scalar):
            otherwise = self.const(otherwise, element)
        fallback = None if otherwise is None else otherwise.value
        return self.append(ReadOp(tensor, plain, used, guards, fallback), element)

    def read_inside(
        self,
        tensor: SSAValue,
        subscripts: Sequence[Subscript],
        *,
        otherwise: Scalar | Number | None = None,
        guards: Sequence[Expr] = (),
        indices: Sequence[Scalar] = (),
    ) -> Scalar:
        """Reads the element of `tensor` at `subscripts`, or gives `otherwise` (default 0) if one of them is out of
        bounds.

        Bounds proven from the axes of the nest get no guard, so axes must be added first. `guards` are further
        conditions, and `indices` are as in `read`.
        """
        used = list(indices)
        plain: list[Expr] = []
        for subscript in subscripts:
            if isinstance(subscript, Scalar):
                plain.append(Expr.of(f"_{len(used)}"))
                used.append(subscript)
            else:
                plain.append(Expr.of(subscript))
        ranges = axis_ranges((a.name, a.extent) for a in self._axes)
        facts = list(guards)
        for at, dim in zip(plain, dims_of(tensor.type), strict=True):
            facts += [fact for fact in (at, dim - 1 - at) if not proven(fact, ranges, facts)]
        return self.read(tensor, plain, guards=facts, otherwise=otherwise if facts else None, indices=used)

    def unproven(self, facts: Sequence[Expr]) -> list[Expr]:
        """Returns those of the expressions that the axes of the nest do not prove to be nonnegative."""
        ranges = axis_ranges((a.name, a.extent) for a in self._axes)
        return [fact for fact in facts if not proven(fact, ranges, [])]

    def append(self, op: Operation, element: Attribute) -> Scalar:
        """Adds an op with one result to the body; reuses an equal op of the body, because bodies are pure."""
        key = (op.name, *op.operands, *op.properties.values(), op.results[0].type)
        known = self._values.setdefault(key, op)
        if known is op:
            self.block.add_op(op)
        else:
            op.erase()
        return Scalar(self, known.results[0], element)

    # -- end -----------------------------------------------------------------------------------------------------------

    def finish(self, *clauses: tuple[Combiner, Scalar, Sequence[Expr], Attribute]) -> tuple[SSAValue, ...]:
        """Ends the body and appends the nest to the kernel. A clause is a combiner, a value, its access map and the
        type of the result tensor; an f32 value is narrowed to a 16-bit result."""
        made: list[Clause] = []
        for combiner, value, subscripts, tensor_type in clauses:
            element = element_of(tensor_type)
            if value.element != element:
                if compute_type(element) != value.element:
                    raise TypeError(f"nest '{self.label}' yields {value.element} for elements of {tensor_type}")
                value = value.to(element)
            made.append(Clause(combiner, value.value, subscripts))
        self.block.add_op(YieldOp(made))
        drop_unused(self.block)
        label = self.kernel.unique(self.label)
        op = NestOp(label, self._axes, [c[3] for c in clauses], Region(self.block))
        self.kernel.block.add_op(op)
        return tuple(op.outputs)


def constant_op(value: Number, element: Attribute) -> arith.ConstantOp:
    """Returns an `arith.constant` of the scalar type of `element`, rounded to it."""
    if isinstance(element, SMALL_FLOATS):
        return arith.ConstantOp(IntegerAttr(_code(value, element), i8, truncate_bits=True))
    if is_float(element):
        return arith.ConstantOp(FloatAttr(round_float(float(value), element), element))  # pyright: ignore
    return arith.ConstantOp(IntegerAttr(int(value), signless(element), truncate_bits=True))


def round_float(value: float, element: Attribute) -> float:
    """Returns `value` rounded to nearest in the float type; infinite if it overflows."""
    if float_bits(element) == 64 or value != value:
        return value

    with np.errstate(over="ignore"):
        return float(np.asarray(value, dtype=element_type(element).dtype))


def _code(value: Number, element: Attribute) -> int:
    """Returns the bits of an 8-bit float."""
    return int(np.asarray(float(value)).astype(element_type(element).dtype).view(np.uint8))


def symbols_of_types(types: Iterable[Attribute]) -> frozenset[str]:
    """Returns the symbols in the dims of the tensors among `types`."""
    found: set[str] = set()
    for each in types:
        if isinstance(each, TensorType):
            for dim in dims_of(cast("Attribute", each)):
                found |= dim.symbols
    return frozenset(found)


def element_count(tensor: Attribute) -> Expr:
    """Returns the number of elements."""
    return product(dims_of(tensor))


def _root(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, ViewOp):
        value = value.owner.source
    return value


def drop_unused(body: Block) -> None:
    """Erases unused ops in the body of a nest, mainly constants that were only inspected."""
    for op in reversed(list(body.ops)):
        if not isinstance(op, YieldOp) and op.results[0].first_use is None:
            op.detach()
            op.erase()


def _drop_dead(block: Block) -> None:
    for op in reversed(list(block.ops)):
        if isinstance(op, (ComputeOp, ViewOp)) and all(r.first_use is None for r in op.results):
            op.detach()
            op.erase()


def _used_symbols(block: Block, more: Iterable[Expr]) -> list[str]:
    """Returns the symbols in the kernel's types, extents, expressions and `more`, those of the arguments first."""
    found: dict[str, None] = {}

    def note(exprs: Iterable[Expr], hidden: frozenset[str] = frozenset()) -> None:
        for e in exprs:
            found.update(dict.fromkeys(sorted(e.symbols - hidden)))

    for arg in block.args:
        note(dims_of(arg.type))
    for op in block.ops:
        for result in op.results:
            note(dims_of(result.type))
        if not isinstance(op, ComputeOp):
            continue
        note(a.extent for a in op.axes)
        if isinstance(op, ProcedureOp):
            note(map(Expr.of, sorted(free_names(op) - {a.name for a in op.axes})))
            continue
        axes = frozenset(a.name for a in op.axes)
        for inner in op.block.ops:
            if isinstance(inner, ReadOp):
                local = axes | {f"_{k}" for k in range(len(inner.indices))}
                note((*inner.subscripts, *inner.guards), local)
            elif isinstance(inner, IndexOp):
                note([inner.value], axes)
            elif isinstance(inner, YieldOp):
                note((s for c in inner.clauses for s in c.subscripts), axes)
    note(more)
    return list(found)


__all__ = ["KernelBuilder", "Nest", "Subscript", "constant_op", "element_count", "int_bits", "symbols_of_types"]
