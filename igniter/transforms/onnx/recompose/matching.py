"""Helpers of the patterns of `recompose`: constants to the precision of their type, polynomials, closure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import bf16, f16, f32, f64
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.dialects.onnx.base import OnnxOp, constant_value
from igniter.transforms.onnx.onnx_rewriting import defining, element, ints_of, known_dims, operand, splat

EPSILON: dict[Attribute, float] = {bf16: 2.0**-7, f16: 2.0**-10, f32: 2.0**-23, f64: 2.0**-52}
"""The distance from 1 to the next number of a type."""

DEPTH = 8
"""The depth of a pattern below its root, at most."""


def number(value: SSAValue | None) -> float | None:
    """Returns the value of a constant with one repeated float or integer; else None."""
    found = splat(value)
    return None if found is None or isinstance(found, bool) else float(found)


def is_close(found: float | None, wanted: float, kind: Attribute | None) -> bool:
    """True if a constant is `wanted` to the precision of the type: within 4 units in the last place, because constants
    are often products rounded twice."""
    epsilon = EPSILON.get(kind) if kind is not None else None
    return found is not None and epsilon is not None and abs(found - wanted) <= 4 * epsilon * abs(wanted)


def is_number(value: SSAValue | None, wanted: float) -> bool:
    """True if a value is the constant `wanted`, to the precision of its type."""
    return is_close(number(value), wanted, element(value))


def either_way(op: OnnxOp) -> Iterator[tuple[SSAValue, SSAValue]]:
    """Yields the operands of a commutative node in both orders."""
    a, b = op.operands
    yield a, b
    yield b, a


def is_closed(root: OnnxOp, inner: Iterable[Operation]) -> bool:
    """True if only the pattern uses the results of its inner nodes."""
    nodes = {*inner, root}
    return all(use.operation in nodes for op in nodes if op is not root for r in op.results for use in r.uses)


# -- reductions -------------------------------------------------------------------------------------------------------


def reduced_axes(op: OnnxOp) -> list[int] | None:
    """Returns the reduced axes, counted from the front and sorted; `None` if they are unknown, or if the result does
    not keep them as 1."""
    dims = known_dims(op.operands[0])
    if dims is None or not op.attr("keepdims", 1):
        return None
    given = list(op.attr("axes")) if "axes" in op.attributes else None
    if given is None and operand(op, 1) is not None:
        given = ints_of(operand(op, 1))
        if given is None:
            return None
    if not given:
        return None if op.attr("noop_with_empty_axes", 0) else list(range(len(dims)))
    return sorted(a % len(dims) for a in given)


def trailing(op: OnnxOp) -> int | None:
    """Returns the number of reduced trailing axes; `None` for other axes, or none."""
    axes, dims = reduced_axes(op), known_dims(op.operands[0])
    if axes is None or dims is None or not axes:
        return None
    return len(axes) if axes == list(range(len(dims) - len(axes), len(dims))) else None


# -- polynomials ------------------------------------------------------------------------------------------------------

Monomial = tuple[int, ...]
Coefficients = dict[Monomial, float]


@dataclass
class Polynomial:
    """A value as a polynomial over some leaves; `nodes` are the nodes that compute it."""

    terms: Coefficients
    nodes: dict[OnnxOp, None] = field(default_factory=dict[OnnxOp, None])

    def matches(self, wanted: Mapping[Monomial, float], kind: Attribute | None) -> bool:
        """True if the terms are the wanted ones, to the precision of the type."""
        return self.terms.keys() == wanted.keys() and all(is_close(self.terms[m], c, kind) for m, c in wanted.items())


def polynomial(value: SSAValue, leaves: tuple[SSAValue, ...], depth: int = DEPTH) -> Polynomial | None:
    """Returns `value` as a polynomial over `leaves`, through Add, Sub, Mul, Neg, Div by a constant and Pow by a small
    integer; `None` if it is none. Other constants must be scalars, to exclude broadcasting."""
    nodes: dict[OnnxOp, None] = {}
    terms = _terms(value, leaves, depth, nodes)
    return None if terms is None else Polynomial({m: c for m, c in terms.items() if c != 0}, nodes)


def _terms(value: SSAValue, leaves: tuple[SSAValue, ...], depth: int, nodes: dict[OnnxOp, None]) -> Coefficients | None:
    if value in leaves:
        return {tuple(int(v is value) for v in leaves): 1.0}
    constant = number(value)
    if constant is not None:
        dims = known_dims(value)
        return {(0,) * len(leaves): constant} if dims is not None and all(d == 1 for d in dims) else None
    op = defining(value, "Add", "Sub", "Mul", "Div", "Neg", "Pow")
    if op is None or depth == 0:
        return None
    nodes[op] = None
    a = _terms(op.operands[0], leaves, depth - 1, nodes)
    if a is None:
        return None
    if op.op_type == "Neg":
        return {m: -c for m, c in a.items()}
    if op.op_type in ("Div", "Pow"):
        return _by_constant(op, a, len(leaves))
    b = _terms(op.operands[1], leaves, depth - 1, nodes)
    if b is None:
        return None
    if op.op_type == "Mul":
        return _times(a, b)
    sign = 1.0 if op.op_type == "Add" else -1.0
    result = dict(a)
    for monomial, c in b.items():
        result[monomial] = result.get(monomial, 0.0) + sign * c
    return result


def _by_constant(op: OnnxOp, a: Coefficients, count: int) -> Coefficients | None:
    by = number(op.operands[1])
    dims = known_dims(op.operands[1])
    if by is None or by == 0 or dims is None or any(d != 1 for d in dims):
        return None
    if op.op_type == "Div":
        return {m: c / by for m, c in a.items()}
    if by not in (1.0, 2.0, 3.0):
        return None
    result: Coefficients = {(0,) * count: 1.0}
    for _ in range(int(by)):
        result = _times(result, a)
    return result


def _times(a: Coefficients, b: Coefficients) -> Coefficients:
    result: Coefficients = {}
    for m1, c1 in a.items():
        for m2, c2 in b.items():
            monomial = tuple(x + y for x, y in zip(m1, m2, strict=True))
            result[monomial] = result.get(monomial, 0.0) + c1 * c2
    return result


def find_below(value: SSAValue, names: tuple[str, ...], depth: int = 4) -> OnnxOp | None:
    """Returns the nearest node of one of the named ops in the arithmetic that computes `value`."""
    level = [value]
    for _ in range(depth + 1):
        following: list[SSAValue] = []
        for v in level:
            found = defining(v, *names)
            if found is not None:
                return found
            op = defining(v, "Add", "Sub", "Mul", "Div", "Neg")
            if op is not None:
                following.extend(op.operands)
        level = following
    return None


def sources(value: SSAValue, limit: int = 16) -> list[SSAValue]:
    """Returns candidates of which a value may be a polynomial: itself, and its arithmetic operands, nearest first."""
    found: dict[SSAValue, None] = {value: None}
    queue = [value]
    while queue and len(found) < limit:
        op = defining(queue.pop(0), "Add", "Sub", "Mul", "Div", "Neg", "Pow")
        for v in op.operands if op is not None else ():
            if v not in found and constant_value(v) is None:
                found[v] = None
                queue.append(v)
    return list(found)
