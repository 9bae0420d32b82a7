"""Every combiner on every element type by every executor: both interpreters, compiled kernels, Triton's interpreter.

Rows of several lengths, none included, of numbers, of negative zeros, with NaN, and with the limits of integers. The
results have the same bits everywhere; only which NaN, and the sign of a zero that is an extreme, are left open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from igniter.backends.triton.target import machine_of_target, target_of
from igniter.context import IgniterContext
from igniter.dialects.loop import FuncOp, KernelOp
from igniter.dialects.loop.combiners import TABLE
from igniter.targets import backend_for
from igniter.transforms.conversion.schedule_kernels import schedule_kernel
from igniter.verification.interp import scheduled
from igniter.verification.interp.structured import run_kernel

Array = np.ndarray[Any, Any]
FLOATS: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
SIGNED: dict[str, Any] = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
UNSIGNED: dict[str, Any] = {"ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64}
TYPES: dict[str, Any] = {**FLOATS, **SIGNED, **UNSIGNED, "i1": np.bool_}
FOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
LENGTHS = (0, 1, 37)


def text_of(element: str, columns: bool, combiners: Sequence[str]) -> str:
    """A kernel that folds the rows of x, or its columns, by each of the combiners."""
    body = element.removeprefix("u")
    at, dims = ("r, i", "n, m") if columns else ("i, r", "m, n")
    result = f"tensor<?x{element}, #sym.dims<m>>"
    nests = "".join(
        f"""
          %{c} = loop.nest "{c}" [i: parallel m, r: reduction n] -> {result} {{
            %v{c} = loop.read %x[{at}] : {body}
            loop.yield {c} %v{c} at [i]
          }}"""
        for c in combiners
    )
    results = ", ".join([result] * len(combiners))
    return f"""
        loop.kernel @k symbols [m, n] (%x: tensor<?x?x{element}, #sym.dims<{dims}>>) -> ({results}) {{{nests}
          loop.return {", ".join(f"%{c}" for c in combiners)} : {results}
        }}"""


def kernel_of(text: str) -> KernelOp:
    module = Parser(IgniterContext(), text).parse_module()
    module.verify()
    return next(op for op in module.ops if isinstance(op, KernelOp))


Executor = Callable[[Array, int, int], "list[Array]"]


def executors(text: str, results: int) -> dict[str, Executor]:
    """A function of x, m and n for each executor."""
    func = schedule_kernel(IgniterContext(), kernel_of(text), "cpu-schedule", "", verify_each=True).func
    compiled: Any = backend_for("native").compile_func(func)
    machine = machine_of_target(target_of("cuda"))
    launching = schedule_kernel(
        IgniterContext().on(machine, None, {}), kernel_of(text), "cuda-schedule", "", verify_each=True
    ).func

    def interpreted(x: Array, m: int, n: int) -> list[Array]:
        found = [np.zeros(m, x.dtype) for _ in range(results)]
        scheduled.run_func(func, [x, *found], {"m": m, "n": n})
        return found

    def native(x: Array, m: int, n: int) -> list[Array]:
        found = [np.zeros(m, x.dtype) for _ in range(results)]
        compiled(x, *found, m=m, n=n)
        return found

    runs: dict[str, Executor] = {
        "structured interpreter": lambda x, m, n: run_kernel(kernel_of(text), [x], {"m": m, "n": n}),
        "scheduled interpreter": interpreted,
        "compiled": native,
    }
    # Kernels for GPUs sum bf16 in f32. Triton's interpreter takes the bits of a bf16 for an integer.
    return runs if "xbf16" in text else {**runs, "Triton": lambda x, m, n: on_triton(launching, x, m, n)}


def on_triton(func: FuncOp, x: Array, m: int, n: int) -> list[Array]:
    from igniter.backends.triton.interpreter import run_func

    module = func.parent_op()
    assert isinstance(module, ModuleOp)
    return run_func(module, func, [x], {"m": m, "n": n})


def rows_of(dtype: Any, n: int) -> Array:
    """Rows that no order of folding rounds: small numbers, the limits, zeros of both signs, NaN and infinities."""
    rng = np.random.default_rng(n)
    if dtype == np.bool_:
        return np.stack([rng.integers(0, 2, n) == 1, np.ones(n, bool), np.zeros(n, bool)])
    if dtype in FLOATS.values():
        place = np.arange(n)
        small = np.where(place < 6, rng.integers(1, 3, n) * rng.choice([-1.0, 1.0], n), 1.0)
        mixed = np.where(place % 2 == 0, 0.0, -0.0)
        nan, infinite = (np.where(place == n - 1, v, 1.0) for v in (np.nan, -np.inf))
        return np.stack([small, np.full(n, -0.0), np.full(n, 0.0), mixed, nan, infinite]).astype(dtype)
    info = np.iinfo(dtype)
    anything = rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
    return np.stack([anything, np.full(n, info.max, dtype), np.full(n, info.min, dtype), (anything % 7).astype(dtype)])


def identity_of(combiner: str, dtype: Any) -> Any:
    whole = dtype not in FLOATS.values()
    if combiner in ("max", "min"):
        if dtype == np.bool_:
            return np.bool_(combiner == "min")
        low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if whole else (-np.inf, np.inf)
        return np.array(low if combiner == "max" else high, dtype)[()]
    if combiner == "and":
        return ~np.array(0, dtype)[()]
    return np.array(combiner == "mul", dtype)[()]


def expected_of(combiner: str, x: Array) -> Array:
    """One value after the other, from the identity."""
    fold = FOLDS[combiner]
    if x.dtype == np.bool_:
        fold = {"add": np.logical_xor, "mul": np.logical_and}.get(combiner, fold)
    start = identity_of(combiner, x.dtype.type)
    with np.errstate(all="ignore"):
        return np.array([reduce(fold, row, start) for row in x], x.dtype)


def same_bits(got: Array, expected: Array, combiner: str) -> bool:
    """Equal to the bit, but for which NaN it is, and for the sign of a zero that is an extreme."""
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return False
    a, b = got.astype(np.float64), expected.astype(np.float64)
    if got.dtype.type not in FLOATS.values():
        return bool((got == expected).all())
    equal = (a == b) | (np.isnan(a) & np.isnan(b))
    signs = (np.signbit(a) == np.signbit(b)) | np.isnan(a)
    return bool((equal if combiner in ("max", "min") else equal & signs).all())


@pytest.mark.slow
@pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("element", TYPES)
def test_every_executor_folds_alike(element: str, columns: bool) -> None:
    dtype = TYPES[element]
    combiners = [c for c in TABLE if element not in FLOATS or c in ("add", "mul", "max", "min")]
    runs = executors(text_of(element, columns, combiners), len(combiners))
    for n in LENGTHS:
        rows = rows_of(dtype, n)
        x = np.ascontiguousarray(rows.T) if columns else rows
        for name, run in runs.items():
            for combiner, got in zip(combiners, run(x, len(rows), n), strict=True):
                expected = expected_of(combiner, rows)
                assert same_bits(got, expected, combiner), (
                    f"{name}, {combiner} of {n} values: {got} instead of {expected}"
                )


@pytest.mark.parametrize("combiner", ["and", "or", "xor"])
def test_bits_of_floats_are_not_combined(combiner: str) -> None:
    with pytest.raises(VerifyException, match=f"'{combiner}' does not combine f32"):
        kernel_of(text_of("f32", False, [combiner]))
