"""The values of scalar bodies: ops of `arith`, `math` and `vector` as terms, the same for both levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.dialects.loop import DotBytesOp
from igniter.dialects.loop.attrs import as_integer
from igniter.dialects.loop.bodies import vector_element
from igniter.dialects.sym.expr import INDIRECT, Atom, Call, Expr
from igniter.verification.prove.integers import NotDecided, Points, Relation, Sizes, isl
from igniter.verification.prove.terms import applied
from igniter.verification.prove.values import Apply, Case, Number, Pick, Position, Space, Value

HINTS = frozenset(("fastmath", "overflowFlags"))
"""Properties without an effect on proven values."""

Operand = Callable[[SSAValue], Value]


def body_value(op: Operation, space: Space, operand: Operand) -> Value:
    """Returns the value of an op of a body; raises `NotDecided` for any other op."""
    if isinstance(op, arith.ConstantOp):
        return Number(space, _scalar(op.value))
    if isinstance(op, vector.BroadcastOp):
        return operand(op.operands[0])
    dialect = op.name.partition(".")[0]
    if dialect not in ("arith", "math", "vector") and not isinstance(op, DotBytesOp):
        raise NotDecided(f"'{op.name}' has no comparable value")
    if isinstance(op, arith.SelectOp):
        active = condition(op.cond, space, operand)
        if active is not None:
            return either(space, active, operand(op.lhs), operand(op.rhs))
    args = tuple(operand(v) for v in op.operands)
    kind = _type_of(op.results[0])
    if op.name in ("math.fma", "vector.fma"):
        product = Apply(space, ("arith.mulf", kind), args[:2])
        return Apply(space, ("arith.addf", kind), (product, args[2]))
    properties = tuple(sorted((k, str(v)) for k, v in op.properties.items() if k not in HINTS))
    return applied(op, (op.name, kind, *properties), args, space)


COMPARED = {0: "=", 1: "!=", 2: "<", 3: "<=", 4: ">", 5: ">="}
"""The signed predicates of `arith.cmpi`."""


def condition(ssa: SSAValue, space: Space, operand: Operand) -> Points | None:
    """Returns the instances where a condition on indices holds; None for any other condition."""
    op = ssa.owner
    if isinstance(op, (arith.AndIOp, arith.OrIOp)):
        left, right = (condition(v, space, operand) for v in op.operands)
        if left is None or right is None:
            return None
        return left.intersect(right) if isinstance(op, arith.AndIOp) else left.union(right)
    if not isinstance(op, arith.CmpiOp) or op.predicate.value.data not in COMPARED:
        return None
    left, right = (_index(operand(v)) for v in op.operands)
    if left is None or right is None:
        return None
    holds = isl().Set(f"{{ [Z[v] -> Z[w]] : v {COMPARED[op.predicate.value.data]} w }}")
    return left.range_product(right).intersect_range(holds).domain().intersect(space.domain)


def _index(value: Value) -> Relation | None:
    if isinstance(value, Number) and isinstance(value.attr, IntegerAttr):
        return isl().Map(f"{{ {value.space.text} -> Z[{value.attr.value.data}] }}")
    return value.access if isinstance(value, Position) else None


def either(space: Space, active: Points, one: Value, other: Value) -> Value:
    """Returns one value at the `active` instances and the other at all others."""
    rest = space.domain.subtract(active)
    return Pick(space, (Case("one", active.identity(), one), Case("other", rest.identity(), other)))


def expression_value(e: Expr, space: Space, sizes: Sizes, data: Mapping[str, Value]) -> Value:
    """Returns an expression over axes, sizes and the `data` behind its indirect names, as a value."""
    if not any(INDIRECT.fullmatch(n) for n in e.symbols):
        return position(e, space, sizes)
    terms: list[Value] = []
    rest = Expr({m: c for m, c in e.terms if not _is_data(m)})
    for monomial, c in e.terms:
        if not _is_data(monomial):
            continue
        factors = [_atom_value(a, space, sizes, data) for a in monomial]
        terms.append(Apply(space, ("product", c), tuple(factors)))
    if rest.terms:
        terms.append(position(rest, space, sizes))
    return Apply(space, ("sum",), tuple(terms))


def _is_data(monomial: Sequence[Atom]) -> bool:
    return any(INDIRECT.fullmatch(n) for n in Expr({tuple(monomial): 1}).symbols)


def _atom_value(atom: Atom, space: Space, sizes: Sizes, data: Mapping[str, Value]) -> Value:
    if isinstance(atom, Call):
        return Apply(space, (atom.fn,), tuple(expression_value(a, space, sizes, data) for a in atom.args))
    return data[atom.name] if atom.name in data else position(Expr.of(atom.name), space, sizes)


def position(e: Expr, space: Space, sizes: Sizes) -> Position:
    """Returns the value of an expression over axes and sizes."""
    return Position(space, sizes.relation(space.text, f"Z[{sizes.text(e, space.env)}]"))


def _scalar(attr: Attribute) -> Attribute:
    """Returns the constant of every lane."""
    if not isinstance(attr, DenseIntOrFPElementsAttr):
        return attr
    values: list[float] = list(attr.get_values())
    if any(repr(v) != repr(values[0]) for v in values):
        raise NotDecided("a vector constant with different lanes")
    kind = vector_element(attr.get_type()) or attr.get_type()
    integer = as_integer(kind)
    if integer is not None:
        return IntegerAttr(int(values[0]), integer)
    return FloatAttr(values[0], kind)  # pyright: ignore[reportArgumentType, reportCallIssue]


def _type_of(value: SSAValue) -> str:
    """Returns the scalar type of a value."""
    kind: Attribute = value.type
    return str(vector_element(kind) or kind)
