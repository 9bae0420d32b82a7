"""The code for symbolic sizes against `Expr.evaluate`, and the plan that binds symbols to dims."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from igniter.backends.cpu.codegen import _llvm, optimize
from igniter.backends.cpu.target import target_of
from igniter.backends.ort.expressions import INTRINSICS, FunctionBuilder, int64
from igniter.dialects.sym.bind_symbols import Bind, Check, Solve, bind_symbols
from igniter.dialects.sym.expr import Expr, call
from igniter.errors import IgniterError
from tests.examples import examples

NAMES = ("a", "b", "c")
MAX = (1 << 63) - 1


def exprs() -> st.SearchStrategy[Expr]:
    leaves = st.one_of(st.sampled_from(NAMES).map(Expr.of), st.integers(-20, 20).map(Expr.of))

    def grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        pairs = st.tuples(inner, inner)
        return st.one_of(
            pairs.map(lambda p: p[0] + p[1]),
            pairs.map(lambda p: p[0] * p[1]),
            pairs.map(lambda p: p[0] - p[1]),
            pairs.map(lambda p: call("min", p)),
            pairs.map(lambda p: call("max", p)),
            st.tuples(inner, st.integers(1, 9)).map(lambda p: p[0] // p[1]),
            st.tuples(inner, st.integers(1, 9)).map(lambda p: p[0] % p[1]),
            st.tuples(inner, st.sampled_from(NAMES)).map(lambda p: call("floordiv", [p[0], Expr.of(p[1])])),
            st.tuples(inner, st.sampled_from(NAMES)).map(lambda p: call("mod", [p[0], Expr.of(p[1])])),
        )

    return st.recursive(leaves, grow, max_leaves=8)


def compiled(expr: Expr):
    """`f(values) -> value, or None when a flag is set`, from the emitted code."""
    f = FunctionBuilder("define i32 @f(ptr %values, ptr %out)")
    values = {name: f.load("i64", f.element("i64", "%values", i)) for i, name in enumerate(NAMES)}
    value, flags = f.expression(expr, values)
    good = f.all_of([f.negate(flag) for flag in flags])
    f.line(f"store i64 {value}, ptr %out")
    f.line(f"%result = zext i1 {good} to i32")
    f.line("ret i32 %result")
    target, llvm = target_of("native"), _llvm()
    module = optimize(INTRINSICS + f.text(), target)
    machine = llvm.Target.from_triple(target.triple).create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(module, machine)
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(engine.get_function_address("f"))

    def run(env: Sequence[int]) -> int | None:
        out = ctypes.c_int64(0)
        good = function((ctypes.c_int64 * len(NAMES))(*env), ctypes.addressof(out))
        return out.value if good else None

    return engine, run


def reference(expr: Expr, env: dict[str, int]) -> int | None:
    """The value, or None where any step leaves 64 bits or divides by what is not positive."""
    total = 0
    for monomial, c in expr.terms:
        if abs(c) > MAX:
            return None
        product = c
        for atom in monomial:
            factor = env[atom.name] if not hasattr(atom, "fn") else _call(atom, env)
            if factor is None:
                return None
            product *= factor
            if not -MAX - 1 <= product <= MAX:
                return None
        total += product
        if not -MAX - 1 <= total <= MAX:
            return None
    return total


def _call(atom, env: dict[str, int]) -> int | None:
    args = [reference(a, env) for a in atom.args]
    if None in args or (atom.fn in ("floordiv", "mod") and args[1] <= 0):
        return None
    fn = {"min": min, "max": max, "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b}[atom.fn]
    return fn(*args)


SIZES = st.one_of(st.integers(0, 70), st.sampled_from([0, 1, 2**31, 2**32, 2**62, MAX]))


@examples(150)
@given(exprs(), st.lists(st.tuples(SIZES, SIZES, SIZES), min_size=1, max_size=8))
def test_the_code_computes_what_the_expression_says(expr: Expr, points) -> None:
    engine, run = compiled(expr)
    for point in [*points, (0, 0, 0), (1, 1, 1), (7, 3, 2)]:
        env = dict(zip(NAMES, point, strict=True))
        expected = reference(expr, env)
        assert run(point) == expected, f"{expr} at {env}"
        if expected is not None:
            assert expected == expr.evaluate(env)
    del engine


def test_constants_over_64_bits_are_refused() -> None:
    with pytest.raises(IgniterError, match="does not fit in a signed 64-bit integer"):
        int64(1 << 63)


# -- binding ----------------------------------------------------------------------------------------------------------


def dims(*texts: str) -> list[Expr]:
    return [Expr.parse(t) for t in texts]


def test_bare_symbols_first_then_what_follows_from_them() -> None:
    plan = bind_symbols([(dims("p + s", "2*s"), True), (dims("s", "4"), True)])
    assert plan.steps == (
        Bind(1, 0, "s"),
        Solve(0, 0, "p", 1, Expr.of("s")),
        Check(0, 1, Expr.parse("2*s")),
    )
    assert plan.bound == {"p", "s"} and not plan.unsolved


def test_equations_may_wait_for_each_other() -> None:
    plan = bind_symbols([(dims("a + b"), True), (dims("b + c"), True), (dims("3*c + 1"), True)])
    assert [s.symbol for s in plan.steps if isinstance(s, Solve)] == ["c", "b", "a"]
    assert not plan.unsolved


@pytest.mark.parametrize("text", ["a*b", "a*a", "a floordiv 2", "min(a, 4)", "a mod 3", "a*n + a"])
def test_what_cannot_be_solved_is_reported(text: str) -> None:
    plan = bind_symbols([(dims(text), True)], known=["n"])
    assert plan.unsolved == ((0, 0),)


def test_optional_inputs_come_last() -> None:
    plan = bind_symbols([(dims("n", "m"), False), (dims("n"), True)])
    assert plan.steps == (Bind(1, 0, "n"), Bind(0, 0, "n"), Bind(0, 1, "m"))


def test_known_symbols_need_no_dim() -> None:
    plan = bind_symbols([(dims("2*k"), True)], known=["k"])
    assert plan.steps == (Check(0, 0, Expr.parse("2*k")),)
