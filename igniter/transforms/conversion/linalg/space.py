"""The iteration space of a `linalg` op in a kernel: extents, subscripts, and the axes of nests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, SSAValue

from igniter.dialects.linalg.structure import Structure, StructuredOp, axis_name
from igniter.dialects.loop.attrs import is_float
from igniter.dialects.onnx.lowering.builder import Nest
from igniter.dialects.onnx.lowering.scalar import Scalar
from igniter.dialects.sym import axis_ranges, element_of, tensor_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr
from igniter.transforms.conversion.linalg.bodies import BodyEmitter, Reads
from igniter.transforms.conversion.linalg.bounds import greatest, least
from igniter.transforms.conversion.linalg.errors import refused
from igniter.transforms.conversion.linalg.values import Scope, stored_element


@dataclass
class Space:
    """An op with its structure and the extents of its axes."""

    scope: Scope
    op: StructuredOp
    structure: Structure
    extents: tuple[Expr, ...]

    @property
    def operands(self) -> list[SSAValue]:
        return [*self.op.inputs, *self.op.outputs]

    @property
    def label(self) -> str:
        return self.op.name.partition(".")[2]

    def output_type(self, number: int, element: Attribute | None = None) -> Attribute:
        """Returns the type of an output in the kernel."""
        value = self.op.outputs[number]
        own = stored_element(getattr(value.type, "element_type", value.type))
        return tensor_of(own if element is None else element, self.scope.dims(value, self.op))

    def place(self, number: int, axes: Sequence[Expr]) -> list[Expr]:
        """Returns the subscripts of an operand at a point."""
        values = {axis_name(k): e for k, e in enumerate(axes)}
        return [e.substitute(values) for e in self.structure.maps[number]]

    def emitter(self, nest: Nest, axes: Sequence[Expr]) -> BodyEmitter:
        """Returns the emitter of the body in a nest at a point, with the inputs bound."""
        extents = {e.symbol: x for e, x in zip(axes, self.extents, strict=True) if e.symbol is not None}
        found = BodyEmitter(self.scope, Reads(nest), axes, extents, self.op)
        for number, (value, arg) in enumerate(zip(self.operands, self.structure.body.args, strict=True)):
            if arg.first_use is not None:
                self.bind(found, number, value, arg, axes)
        return found

    def bind(self, emitter: BodyEmitter, number: int, value: SSAValue, arg: SSAValue, axes: Sequence[Expr]) -> None:
        """Gives an argument of the body the element of its operand at a point."""
        known = self.scope.known(value, self.op)
        if known is not None:
            emitter.known[arg] = known
            return
        element = emitter.reads.read(self.scope.tensor(value, self.op), self.place(number, axes))
        emitter.scalars[arg] = BodyEmitter.typed(element)


def extents_of(scope: Scope, op: StructuredOp, structure: Structure) -> tuple[Expr, ...]:
    """Returns the extents of the axes: the dims of operands at bare axes, which must be equal."""
    found: dict[str, Expr] = {}
    operands = [*op.inputs, *op.outputs]
    for value, subscripts in zip(operands, structure.maps, strict=True):
        for subscript, dim in zip(subscripts, scope.dims(value, op), strict=True):
            name = subscript.symbol
            if name is None:
                continue
            if name in found:
                scope.facts.equal(op, found[name], dim, "the dims of the operands differ")
            found.setdefault(name, dim)
    names = [axis_name(k) for k in range(len(structure.kinds))]
    missing = [n for n in names if n not in found]
    if missing:
        raise refused(op, f"no operand has a dim at axis {missing[0]} alone, so its extent is unknown; add one")
    return tuple(found[n] for n in names)


def require_inside(space: Space) -> None:
    """Requires the subscripts that are not bare axes to stay inside of their dims."""
    axes = [(axis_name(k), e) for k, e in enumerate(space.extents)]
    ranges, facts = axis_ranges(axes), space.scope.facts
    for value, subscripts in zip(space.operands, space.structure.maps, strict=True):
        for subscript, dim in zip(subscripts, space.scope.dims(value, space.op), strict=True):
            if subscript.symbol is not None:
                continue
            last, first = greatest(subscript, ranges), least(subscript, ranges)
            if last is None or first is None:
                raise refused(
                    space.op, f"the extent of {subscript} is unknown; use an affine map with constant divisors"
                )
            facts.at_most(space.op, last, dim - 1, "an operand is too small for its windows", space.extents)
            facts.at_most(space.op, ZERO, first, "a subscript is negative", space.extents)


def axes_in(space: Space, nest: Nest, number: int | None) -> list[Expr]:
    """Adds the axes of the op to a nest: those that an output has are parallel."""
    kinds, op = space.structure.kinds, space.op
    own = None if number is None else set(_written(space, number))
    made: dict[int, Expr] = {}
    for wanted in ("parallel", "reduction"):
        for k, (kind, extent) in enumerate(zip(kinds, space.extents, strict=True)):
            if (wanted == kind and number is not None) or (number is None and wanted == "reduction"):
                if kind == "parallel" and own is not None and axis_name(k) not in own and extent != ONE:
                    raise refused(op, f"output {number} has no dim at the parallel axis {k}; make it a reduction")
                made[k] = nest.parallel(extent) if wanted == "parallel" else nest.reduction(extent)
    return [made[k] for k in range(len(kinds))]


def _written(space: Space, number: int) -> list[str]:
    """Returns the axes in the subscripts of an output, which must be distinct bare parallel axes, or 0 in a dim of
    1."""
    op, scope = space.op, space.scope
    place = len(op.inputs) + number
    names: list[str] = []
    for subscript, dim in zip(space.structure.maps[place], scope.dims(op.outputs[number], op), strict=True):
        if subscript == ZERO:
            scope.facts.equal(op, dim, ONE, f"output {number} is written at 0 of a dim that is not 1")
            continue
        name = subscript.symbol
        kind = None if name is None else space.structure.kinds[int(name[1:])]
        if name is None or kind != "parallel" or name in names:
            raise refused(op, f"output {number} is written at {subscript}; use distinct parallel axes")
        names.append(name)
    return names


def finish(nest: Nest, value: Scalar, place: Sequence[Expr], target: Attribute) -> SSAValue:
    """Ends a nest that writes each element once; returns its tensor."""
    element = element_of(target)
    if is_float(element):
        value = value.to(element)
    return nest.finish(("none", Scalar(nest, value.value, element), place, target))[0]


def discard(nest: Nest) -> None:
    """Erases the body of a nest that is not needed: its reads are uses of tensors."""
    for op in reversed(list(nest.block.ops)):
        op.detach()
        op.erase()
