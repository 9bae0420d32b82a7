"""A schedule with one word changed is refused, or the kernel is still right: nothing is dropped, nothing harmful."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.utils.exceptions import VerifyException

from igniter.context import IgniterContext
from igniter.dialects.loop import ComputeOp, KernelOp
from igniter.dialects.loop.schedule import Loop, Product, ScheduleAttr, Store
from igniter.dialects.loop.storage import MEMORIES
from igniter.dialects.loop.words import TAILS
from igniter.errors import IgniterError
from igniter.registry import load_pass
from igniter.verification.interp.structured import run_kernel
from tests.transforms.scheduled.scheduling import SCHEDULE, kernel_of, parse, random_inputs, run_compiled, schedule
from tests.transforms.scheduled.test_orders import STACK
from tests.transforms.scheduled.test_schedule import KERNELS

EXAMPLES = Path(__file__).parents[3] / "lit_tests" / "examples"
STRUCTURED = ("canonicalize-loop", "split-axes", "inline-nests", "collapse-axes", "canonicalize-loop", "pack-operands")

CASES: dict[str, tuple[str, dict[str, int]]] = {
    **{name: (f"builtin.module {{{text}}}", {"n": 11, "m": 37}) for name, text in KERNELS.items()},
    "attention": ((EXAMPLES / "attention_tiles.mlir").read_text(), {"s": 11, "t": 37}),
    "sums": (STACK, {"n": 11, "m": 37}),
    "stores": ((EXAMPLES / "stores.mlir").read_text(), {"n": 11}),
    "gemm": ((EXAMPLES / "gemm.mlir").read_text(), {"n": 13, "m": 13}),
    "convolution": ((EXAMPLES / "convolution.mlir").read_text(), {"h": 5, "w": 9, "n": 2}),
}
QUICK = 12
"""The mutants of a kernel that are tried unless all are asked for."""


def changed_loops(loop: Loop) -> Iterator[Loop]:
    """A loop with one word changed, added or taken away, or of another axis."""
    counts = (0, 1, 2, 3, 4, 8, -1)
    yield from (replace(loop, by=n) for n in {*counts, loop.by + 1, loop.by * 2, loop.by // 2} - {loop.by})
    yield from (replace(loop, tail=t) for t in ("", *TAILS, "other") if t != loop.tail)  # type: ignore[arg-type]
    yield replace(loop, into_result=not loop.into_result)
    yield from (replace(loop, threads=n) for n in (None, 0, 1, 3, -1) if n != loop.threads)
    yield from (replace(loop, fuse=t) for t in ("", "other", "g0", "g1") if t != loop.fuse)
    yield from (replace(loop, vector=n) for n in {*counts, loop.vector + 1, loop.vector * 2} - {loop.vector})
    yield from (replace(loop, accumulators=n) for n in counts if n != loop.accumulators)
    yield from (replace(loop, unroll=n) for n in (None, *counts) if n != loop.unroll)
    yield replace(loop, axis=f"{loop.axis}s")


def changed_products(product: Product) -> Iterator[Product]:
    """A product with one of its axes or sizes changed."""
    height, panels = product.tile
    yield from (replace(product, tile=(n, panels)) for n in (height + 1, height // 2, 1, 0))
    yield from (replace(product, tile=(height, n)) for n in (panels + 1, panels - 1, 0))
    yield replace(product, rows=product.columns, columns=product.rows)
    yield replace(product, rows="")
    yield replace(product, depth=product.columns)


def changed_stores(store: Store) -> Iterator[Store]:
    """A store in another memory."""
    yield from (Store(memory) for memory in ("", *MEMORIES) if memory != store.memory)


def changed(schedule: ScheduleAttr) -> Iterator[ScheduleAttr]:
    """The schedules with one step changed, taken away, doubled or moved."""
    steps = schedule.data
    for k, step in enumerate(steps):
        others = (
            changed_loops(step)
            if isinstance(step, Loop)
            else changed_products(step)
            if isinstance(step, Product)
            else changed_stores(step)
        )
        yield from (ScheduleAttr([*steps[:k], other, *steps[k + 1 :]]) for other in others)
        yield ScheduleAttr([*steps[:k], *steps[k + 1 :]])
        yield ScheduleAttr([*steps[:k], step, *steps[k:]])
        yield from (ScheduleAttr([*steps[:k], Store(memory), *steps[k:]]) for memory in ("", *MEMORIES))
        rest = [*steps[:k], *steps[k + 1 :]]
        yield from (ScheduleAttr([*rest[:m], step, *rest[m:]]) for m in range(len(steps)) if m != k)
        if isinstance(step, Loop):
            for size in (2, 4, 16):
                yield ScheduleAttr([*steps[:k], Loop(step.axis, by=size), *steps[k:]])
                yield ScheduleAttr([Loop(step.axis, by=size, into_result=True), *steps])


def scheduled(text: str, cpu: int) -> KernelOp:
    """The kernel with the schedules of the default author."""
    module = parse(text)
    for name in STRUCTURED:
        load_pass(name)().apply(IgniterContext(), module)
    load_pass("choose-schedule")(vector_bytes=cpu).apply(IgniterContext(), module)
    module.verify()
    return kernel_of(module)


def mutants(kernel: KernelOp) -> list[tuple[str, ScheduleAttr]]:
    """By the label of a nest, a schedule with one thing changed."""
    found: list[tuple[str, ScheduleAttr]] = []
    for nest in kernel.block.ops:
        if isinstance(nest, ComputeOp) and nest.schedule is not None:
            found += [(nest.label, s) for s in changed(nest.schedule)]
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
