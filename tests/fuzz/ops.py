"""One rule for each kind of node: takes operands that fit from the graph, or makes them, and appends the node.

A rule returns whether it found a way to apply. Dims are symbolic throughout, so that a rule only does what is valid
for every size of the symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from igniter.dialects.sym.expr import ONE, Expr
from tests.fuzz.graph import FLOATS, GraphBuilder, Value

Rule = Callable[[GraphBuilder], bool]
RULES: list[tuple[Rule, int]] = []
LARGEST = 4000
"""No tensor gets more elements than this at typical sizes."""


def rule(weight: int) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        RULES.append((function, weight))
        return function

    return register


def pick(
    b: GraphBuilder, types: Sequence[str], ranks: Sequence[int] = (0, 1, 2, 3, 4, 5), exact: bool = False
) -> Value | None:
    """A value that fits; recent ones more often, so that chains grow."""
    found = [v for v in b.values if v.type in types and v.rank in ranks and (v.exact or not exact)]
    if not found:
        return None
    return b.rng.choice(found[-4:] if b.rng.random() < 0.6 else found)


# -- elementwise ------------------------------------------------------------------------------------------------------

SMOOTH = {
    "Atan": 1.6, "Cos": 1.0, "Erf": 1.0, "Sigmoid": 1.0, "Sin": 1.0, "Softsign": 1.0, "Tanh": 1.0,
}  # fmt: skip
GROWING = ("Elu", "LeakyRelu", "Relu", "Selu", "Softplus", "HardSigmoid", "HardSwish", "ThresholdedRelu", "Celu")
ONLY_F32 = frozenset((*SMOOTH, *GROWING)) - {"Cos", "Relu", "Sigmoid", "Sin", "Tanh"}
"""Ops without an f64 kernel in ONNX Runtime."""
ROUNDING = ("Ceil", "Floor", "Round", "Sign")


@rule(10)
def unary(b: GraphBuilder) -> bool:
    x = pick(b, FLOATS)
    if x is None:
        return False
    kind = b.rng.random()
    if kind < 0.3:
        op = b.rng.choice(sorted(SMOOTH))
        # Implementations reduce large arguments of sin and cos differently.
        if op in ("Sin", "Cos") and x.bound > 100:
            return False
        bound, exact = SMOOTH[op], False
    elif kind < 0.6:
        op = b.rng.choice(GROWING)
        bound, exact = 1.8 * x.bound + 1, op == "Relu" and x.exact
    elif kind < 0.8:
        op, bound, exact = b.rng.choice(("Abs", "Neg")), x.bound, x.exact
    elif kind < 0.9 and x.exact:
        op, bound, exact = b.rng.choice(ROUNDING), x.bound, True
    elif x.bound <= 20:
        op, bound, exact = "Exp", float(np.exp(x.bound)), False
    else:
        return False
    if (x.type == "f64" and op in ONLY_F32) or (op == "HardSwish" and b.opset < 14):
        return False
    b.node(op, [x.name], [(x.type, x.dims, exact, bound)])
    return True


@rule(2)
def guarded(b: GraphBuilder) -> bool:
    """Functions with a pole or an edge, kept away from it."""
    x = pick(b, ("f32",))
    if x is None:
        return False
    (positive,) = b.node("Abs", [x.name], [(x.type, x.dims, x.exact, x.bound)])
    one = b.scalar(0.5, x.type)
    (shifted,) = b.node("Add", [positive.name, one], [(x.type, x.dims, False, x.bound + 1)])
    op = b.rng.choice(("Log", "Sqrt", "Reciprocal"))
    b.node(op, [shifted.name], [(x.type, x.dims, False, x.bound + 2)])
    return True


@rule(1)
def special_functions(b: GraphBuilder) -> bool:
    """IsNaN, IsInf, and the functions whose NaN and infinity are part of the answer."""
    x = pick(b, ("f32",))
    if x is None:
        return False
    op = b.rng.choice(("IsNaN", "IsInf", "Sqrt", "Log"))
    if op in ("Sqrt", "Log"):
        if not x.exact:
            return False
        b.node(op, [x.name], [(x.type, x.dims, False, x.bound + 40)])
    else:
        b.node(op, [x.name], [("b", x.dims, True, 1.0)])
    return True


@rule(2)
def integer_unary(b: GraphBuilder) -> bool:
    x = pick(b, ("i32", "i64", "i8", "b"))
    if x is None:
        return False
    if x.type == "b":
        b.node("Not", [x.name], [("b", x.dims, True, 1.0)])
    else:
        b.node(b.rng.choice(("Abs", "Neg", "Sign")), [x.name], [(x.type, x.dims, True, x.bound)])
    return True


def broadcast(b: GraphBuilder, x: Value) -> Value:
    """A value or a weight that broadcasts against `x` to the dims of `x` or larger ones."""
    fitting = [v for v in b.values if v.type == x.type and _fits(x, v) is not None]
    if fitting and b.rng.random() < 0.7:
        return b.rng.choice(fitting[-6:])
    dims: list[int] = []
    for axis in range(b.rng.randint(0, x.rank), x.rank):
        known = x.static(axis)
        dims.append(known if known is not None and b.rng.random() < 0.7 else 1)
    while dims and b.rng.random() < 0.1 and len(dims) < 5:
        dims.insert(0, 1)
    return _random_weight(b, dims, x.type)


def _random_weight(b: GraphBuilder, dims: Sequence[int], type_: str) -> Value:
    if type_ == "b":
        return b.weight(np.asarray(b.data.random(dims) < 0.5), type_)
    if type_ in FLOATS and b.rng.random() < 0.7:
        return b.weight(np.asarray(b.data.standard_normal(dims)), type_)
    return b.weight(np.asarray(b.data.integers(0 if type_ == "u8" else -4, 5, dims)), type_)


def _fits(x: Value, y: Value) -> tuple[Expr, ...] | None:
    """The broadcast dims of two values, where they are the same for all sizes of the symbols."""
    rank = max(x.rank, y.rank)
    a = (ONE,) * (rank - x.rank) + x.dims
    c = (ONE,) * (rank - y.rank) + y.dims
    found: list[Expr] = []
    for p, q in zip(a, c, strict=True):
        if p != q and p != ONE and q != ONE:
            return None
        found.append(q if p == ONE else p)
    total = 1
    for d in found:
        total *= d.evaluate({"n": 3, "m": 5})
    return tuple(found) if total <= LARGEST else None


@rule(12)
def binary(b: GraphBuilder) -> bool:
    x = pick(b, (*FLOATS, "i32", "i64"))
    if x is None:
        return False
    y = broadcast(b, x)
    dims = _fits(x, y)
    op = b.rng.choice(("Add", "Sub", "Mul", "Max", "Min", "Add", "Mul"))
    if dims is None or (op == "Mul" and x.bound * y.bound > 1e6) or x.bound + y.bound > 1e8:
        return False
    exact = x.type not in FLOATS or (x.exact and y.exact and x.bound * y.bound < 1e6)
    bound = {"Add": x.bound + y.bound, "Sub": x.bound + y.bound, "Mul": x.bound * y.bound}.get(op)
    names = [x.name, y.name]
    if b.rng.random() < 0.5:
        names.reverse()
    b.node(op, names, [(x.type, dims, exact, max(x.bound, y.bound) if bound is None else bound)])
    return True


@rule(3)
def division(b: GraphBuilder) -> bool:
    x = pick(b, (*FLOATS, "i32", "i64"))
    if x is None:
        return False
    shape = [x.dims[-1].constant] if x.rank and x.dims[-1].constant and b.rng.random() < 0.5 else []
    divisor = np.asarray(b.data.integers(1, 6, shape)) * np.asarray(b.data.choice([-1, 1], shape))
    y = b.weight(divisor, x.type)
    if x.type in FLOATS:
        op, attrs = "Div", {}
    else:
        op, attrs = b.rng.choice((("Div", {}), ("Mod", {}), ("Mod", {"fmod": 1})))
    b.node(op, [x.name, y.name], [(x.type, x.dims, x.type not in FLOATS, x.bound)], **attrs)
    return True


@rule(3)
def power(b: GraphBuilder) -> bool:
    x = pick(b, ("f32",))
    if x is None or x.bound > 100:
        return False
    exponent = b.rng.choice((2.0, 3.0, 1.0, 0.0))
    b.node("Pow", [x.name, b.scalar(exponent, "f32")], [(x.type, x.dims, False, x.bound**exponent + 1)])
    return True


@rule(4)
def comparison(b: GraphBuilder) -> bool:
    x = pick(b, ("f32", "i32", "i64"), exact=True)
    if x is None:
        return False
    y = broadcast(b, x)
    dims = _fits(x, y)
    if dims is None or not y.exact:
        return False
    op = b.rng.choice(("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"))
    b.node(op, [x.name, y.name], [("b", dims, True, 1.0)])
    return True


@rule(2)
def logical(b: GraphBuilder) -> bool:
    x = pick(b, ("b",))
    if x is None:
        return False
    y = broadcast(b, x)
    dims = _fits(x, y)
    if dims is None:
        return False
    b.node(b.rng.choice(("And", "Or", "Xor")), [x.name, y.name], [("b", dims, True, 1.0)])
    return True


@rule(4)
def select(b: GraphBuilder) -> bool:
    condition = pick(b, ("b",))
    x = pick(b, (*FLOATS, "i32", "i64"))
    if condition is None or x is None:
        return False
    dims = _fits(condition, x)
    if dims is None:
        return False
    grown = Value("", x.type, dims, x.exact)
    y = broadcast(b, grown)
    final = _fits(grown, y)
    if final is None:
        return False
    names = [x.name, y.name] if b.rng.random() < 0.5 else [y.name, x.name]
    b.node("Where", [condition.name, *names], [(x.type, final, x.exact and y.exact, max(x.bound, y.bound))])
    return True


@rule(4)
def cast(b: GraphBuilder) -> bool:
    from tests.fuzz.graph import TYPES

    x = pick(b, ("f32", "f64", "i32", "i64", "u8", "i8", "b"))
    if x is None:
        return False
    target = b.rng.choice(("f32", "f64", "i32", "i64", "b", "u8", "i8"))
    small = {"u8": x.type in ("b",) or False, "i8": x.bound < 100}.get(target, True)
    # What does not fit into an integer, and what sign rounding leaves to a bool, is for other tests.
    to_discrete = target not in FLOATS and x.type in FLOATS
    if (to_discrete and (not x.exact or b.special)) or not small or (target != "b" and x.bound > 1e6):
        return False
    exact = x.exact and (target != "f32" or x.bound < 1e6)
    b.node("Cast", [x.name], [(target, x.dims, exact, 1.0 if target == "b" else x.bound)], to=TYPES[target])
    return True


@rule(2)
def clip(b: GraphBuilder) -> bool:
    x = pick(b, ("f32", "f64", "i32", "i64"))
    if x is None:
        return False
    low = b.scalar(-2, x.type) if b.rng.random() < 0.7 else ""
    high = b.scalar(3, x.type) if b.rng.random() < 0.7 else ""
    inputs = [x.name, low, high] if high else [x.name, low] if low else [x.name]
    b.node("Clip", inputs, [(x.type, x.dims, x.exact, x.bound)])
    return True


@rule(1)
def variadic(b: GraphBuilder) -> bool:
    x = pick(b, ("f32",))
    if x is None or x.bound > 1e6:
        return False
    others = [v for v in b.values if v.type == x.type and v.dims == x.dims and v.bound < 1e6]
    chosen = [b.rng.choice(others) for _ in range(b.rng.randint(1, 4))]
    op = b.rng.choice(("Sum", "Mean", "Max", "Min"))
    bound = x.bound + sum(v.bound for v in chosen)
    exact = op in ("Max", "Min") and x.exact and all(v.exact for v in chosen)
    b.node(op, [x.name, *(v.name for v in chosen)], [("f32", x.dims, exact, bound)])
    return True
