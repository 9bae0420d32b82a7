"""A schedule with one word changed is refused, or the kernel is still right: nothing is dropped, nothing harmful."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from igniter.context import IgniterContext
from igniter.dialects.loop import ComputeOp, KernelOp
from igniter.dialects.loop.schedule import WORDS
from igniter.errors import IgniterError
from igniter.registry import load_pass
from igniter.runtime.interp.structured import run_kernel
from tests.transforms.scheduled.scheduling import SCHEDULE, kernel_of, parse, random_inputs, run_compiled, schedule
from tests.transforms.scheduled.test_schedule import KERNELS

EXAMPLES = Path(__file__).parents[3] / "lit_tests" / "examples"
STRUCTURED = ("canonicalize-loop", "split-axes", "inline-nests", "collapse-axes", "canonicalize-loop", "pack-operands")

CASES: dict[str, tuple[str, dict[str, int]]] = {
    **{name: (f"builtin.module {{{text}}}", {"n": 11, "m": 37}) for name, text in KERNELS.items()},
    "attention": ((EXAMPLES / "attention_tiles.mlir").read_text(), {"s": 11, "t": 37}),
    "gemm": ((EXAMPLES / "gemm.mlir").read_text(), {"n": 13, "m": 13}),
    "convolution": ((EXAMPLES / "convolution.mlir").read_text(), {"h": 5, "w": 9, "n": 2}),
}
QUICK = 10
"""The mutants of a kernel that are tried unless all are asked for."""


def words_of(value: Attribute) -> Iterator[Attribute]:
    """What one word may be instead."""
    if isinstance(value, IntegerAttr):
        number = value.value.data
        yield from (IntegerAttr(n, i64) for n in (number + 1, number * 2, number // 2, 1, 3, 0, -1) if n != number)
        yield from (UnitAttr(), StringAttr("other"))
    elif isinstance(value, UnitAttr):
        yield from (IntegerAttr(1, i64), IntegerAttr(3, i64), StringAttr("loops"), StringAttr("other"))
    elif isinstance(value, StringAttr):
        yield from (StringAttr(t) for t in ("other", "mask", "peel", "rest", "loops", "g0", "g1") if t != value.data)
        yield UnitAttr()


def changed(value: Attribute) -> Iterator[Attribute]:
    """The dictionaries and lists with one entry changed, renamed, taken away, added or moved."""
    if isinstance(value, DictionaryAttr):
        data = dict(value.data)
        for name, inner in data.items():
            rest = {k: v for k, v in data.items() if k != name}
            yield DictionaryAttr(rest)
            yield DictionaryAttr({**rest, f"{name}s": inner})
            yield from (DictionaryAttr({**data, name: other}) for other in changed(inner))
        if data.keys() <= WORDS.keys():
            more: dict[str, Attribute] = {
                **{n: IntegerAttr(c, i64) for n, c in (("tile", 4), ("block", 4), ("vector", 4), ("accumulators", 2))},
                **{n: UnitAttr() for n in ("threads", "unroll", "sink")},
                "fuse": StringAttr("g0"),
                "inner": DictionaryAttr({"unroll": UnitAttr()}),
                "tail": StringAttr("peel"),
            }
            yield from (DictionaryAttr({**data, n: v}) for n, v in more.items() if n not in data)
    elif isinstance(value, ArrayAttr):
        entries: list[Attribute] = list(value)
        for k, entry in enumerate(entries):
            yield ArrayAttr([*entries[:k], *entries[k + 1 :]])
            yield ArrayAttr([*entries[:k], entry, *entries[k:]])
            if k:
                yield ArrayAttr([*entries[: k - 1], entry, entries[k - 1], *entries[k + 1 :]])
            yield from (ArrayAttr([*entries[:k], other, *entries[k + 1 :]]) for other in words_of(entry))
    else:
        yield from words_of(value)


def scheduled(text: str, cpu: int) -> KernelOp:
    """The kernel with the schedules of the default author."""
    module = parse(text)
    for name in STRUCTURED:
        load_pass(name)().apply(IgniterContext(), module)
    load_pass("choose-schedule")(vector_bytes=cpu).apply(IgniterContext(), module)
    module.verify()
    return kernel_of(module)


def mutants(kernel: KernelOp) -> list[tuple[str, DictionaryAttr]]:
    """By the label of a nest, a schedule with one thing changed."""
    found: list[tuple[str, DictionaryAttr]] = []
    for nest in kernel.block.ops:
        if isinstance(nest, ComputeOp) and nest.schedule is not None:
            found += [(nest.label, s) for s in changed(nest.schedule) if isinstance(s, DictionaryAttr)]
    return found


def run(kernel: KernelOp, values: list[Any], sizes: Mapping[str, int]) -> list[Any]:
    module = kernel.parent_op()
    assert module is not None
    return run_compiled(schedule(module, SCHEDULE[1:]), values, sizes)  # type: ignore[arg-type]


def try_mutants(name: str, count: int | None) -> tuple[int, int]:
    """How many mutants are refused, and how many run and are right."""
    text, sizes = CASES[name]
    kernel = scheduled(text, 32)
    sizes = {s: sizes[s] for s in kernel.symbol_names}
    plain = kernel_of(parse(text))
    values = random_inputs(plain, sizes, np.random.default_rng(0))
    expected = run_kernel(plain, values, sizes)
    tried = mutants(kernel)
    if count is not None:
        tried = random.Random(name).sample(tried, min(count, len(tried)))
    refused = right = 0
    for label, other in tried:
        copy = scheduled(text, 32)
        nest = next(n for n in copy.block.ops if isinstance(n, ComputeOp) and n.label == label)
        nest.schedule = other
        try:
            copy.verify()
            got = run(copy, values, sizes)
        except (VerifyException, IgniterError) as error:
            assert str(error)
            refused += 1
            continue
        for want, found in zip(expected, got, strict=True):
            scale = float(np.abs(want[np.isfinite(want)]).max(initial=0)) if want.dtype.kind == "f" else 0.0
            np.testing.assert_allclose(found, want, 1e-5, 1e-5 * scale, err_msg=f"{label}: {other}")
        right += 1
    return refused, right


@pytest.mark.parametrize("name", CASES)
def test_a_changed_schedule_is_refused_or_right(name: str) -> None:
    assert sum(try_mutants(name, QUICK)) > 0


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_every_changed_schedule_is_refused_or_right(name: str) -> None:
    refused, right = try_mutants(name, None)
    print(f"{name}: {refused} refused, {right} right")
    assert refused and right
