"""Reads of a kernel's inputs, with guards and with subscripts by data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute

from igniter.dialects.loop.attrs import as_integer, is_float, scalar_type
from igniter.dialects.sym.expr import INDIRECT, ONE, Expr, symbols_of
from igniter.verification.prove.bodies import expression_value
from igniter.verification.prove.integers import NotDecided, Points, Relation, Sizes, isl
from igniter.verification.prove.products import refined
from igniter.verification.prove.reshapes import reshape
from igniter.verification.prove.values import Apply, Case, Input, Number, Pick, Pin, Position, Space, Value, Whole


@dataclass(frozen=True, eq=False)
class Reader:
    """An input of a kernel."""

    sizes: Sizes
    number: int
    dims: tuple[Expr, ...]

    def read(
        self,
        dims: tuple[Expr, ...],
        subscripts: Sequence[Expr],
        guards: Sequence[Expr],
        space: Space,
        env: Mapping[str, str],
        data: Mapping[str, Value],
        otherwise: Value | None,
        element: Attribute,
    ) -> Value:
        """Returns the value of a read under a view with `dims`. `data` are the values of indirect names."""
        if any(INDIRECT.fullmatch(n) for n in symbols_of((*subscripts, *guards))):
            return self._by_data(dims, subscripts, guards, space, env, data, otherwise, element)
        active = active_points(self.sizes, space, guards, env) if guards else space.domain
        dims, subscripts = refined(self.sizes, dims, subscripts, env, active, space.text)
        array, access = self._access(dims, subscripts, space, env)
        inner = Input(space, array, access)
        if not guards:
            return inner
        pin = Pin(str(array), access.set_tuple_name(OUT(), "A"), guard_values(self.sizes, space, guards, env))
        return guarded(inner, active, space, element, otherwise, pin)

    def _access(
        self, dims: tuple[Expr, ...], subscripts: Sequence[Expr], space: Space, env: Mapping[str, str]
    ) -> tuple[tuple[object, ...], Relation]:
        texts = ", ".join(self.sizes.text(s, env) for s in subscripts)
        if dims != self.dims:
            try:
                view = reshape(self.sizes, dims, self.dims, "V", f"I{self.number}")
                return (self.number,), self.sizes.relation(space.text, f"V[{texts}]").apply_range(view)
            except NotDecided:
                # Under other dims: equal accesses under equal dims are still the same element.
                array = (self.number, *map(str, dims))
                return array, self.sizes.relation(space.text, f"I{self.number}v[{texts}]")
        return (self.number,), self.sizes.relation(space.text, f"I{self.number}[{texts}]")

    def _by_data(
        self,
        dims: tuple[Expr, ...],
        subscripts: Sequence[Expr],
        guards: Sequence[Expr],
        space: Space,
        env: Mapping[str, str],
        data: Mapping[str, Value],
        otherwise: Value | None,
        element: Attribute,
    ) -> Value:
        """Returns a gather: an uninterpreted function of the subscripts and the guards."""
        array = (self.number, *map(str, dims))
        return by_data(
            self.sizes, array, (), subscripts, guards, space, env, data, otherwise or Number(space, zero(element))
        )


def by_data(
    sizes: Sizes,
    array: tuple[object, ...],
    operands: Sequence[Value],
    subscripts: Sequence[Expr],
    guards: Sequence[Expr],
    space: Space,
    env: Mapping[str, str],
    data: Mapping[str, Value],
    otherwise: Value,
) -> Value:
    """Returns a read at subscripts by data: an uninterpreted function of the array, the subscripts and the guards."""
    here = Space(space.name, space.ids, dict(env), space.domain, space.lane)
    args = [expression_value(e, here, sizes, data) for e in (*subscripts, *guards)]
    return Apply(space, ("gather", *array, len(guards)), (*operands, *args, otherwise))


def viewed(
    sizes: Sizes, whole: Whole, dims: Sequence[Expr], subscripts: Sequence[Expr], space: Space, env: Mapping[str, str]
) -> Value:
    """Returns the element of an array under a view whose strides are sizes: a function of the array and of the
    subscripts. Equal arrays have equal elements under equal dims and subscripts."""
    kept = [(d, s) for d, s in zip(dims, subscripts, strict=True) if d != ONE]
    args = [Position(space, sizes.relation(space.text, f"Z[{sizes.text(s, env)}]")) for _, s in kept]
    return Apply(space, ("view", *(str(d) for d, _ in kept)), (whole, *args))


def guard_values(sizes: Sizes, space: Space, guards: Sequence[Expr], env: Mapping[str, str]) -> tuple[Relation, ...]:
    """Returns the values of guards as relations."""
    return tuple(sizes.relation(space.text, f"Z[{sizes.text(g, env)}]") for g in guards)


def OUT() -> object:
    """Returns isl's name for the second tuple of a relation."""
    return isl().dim_type.out


def active_points(sizes: Sizes, space: Space, guards: Sequence[Expr], env: Mapping[str, str]) -> Points:
    """Returns the instances with all guards >= 0."""
    return space.domain.intersect(sizes.points(space.text, sizes.holds(guards, env)))


def guarded(
    inner: Value,
    active: Points,
    space: Space,
    element: Attribute,
    otherwise: Value | None,
    pin: Pin | None,
) -> Value:
    """Returns `inner` where an access is active, else the other value."""
    rest = space.domain.subtract(active)
    other = otherwise or Number(space, zero(element))
    cases = (Case("active", active.identity(), inner), Case("masked", rest.identity(), other))
    return Pick(space, cases, pin)


def zero(element: Attribute) -> Attribute:
    """Returns the value of a masked read."""
    scalar = scalar_type(element)
    if is_float(scalar):
        return FloatAttr(0.0, scalar)  # pyright: ignore[reportArgumentType, reportCallIssue]
    integer = as_integer(scalar)
    return IntegerAttr(0, IntegerType(64 if integer is None else integer.width.data))
