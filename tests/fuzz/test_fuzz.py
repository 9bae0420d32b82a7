"""A short run of the fuzzer; `python -m tests.fuzz` is the long one."""

from __future__ import annotations

import pytest

from tests.fuzz.run import Outcome, make_case_of, run_seeds
from tests.isolated import Lost, run_isolated


def check(found: list[Outcome]) -> None:
    failed = [f"seed {o.seed}: {o.status}: {o.message}" for o in found if o.failed]
    assert not failed, "\n".join(failed)
    # What fusion lets into a region compiles.
    dropped = [f"seed {o.seed}: {reason}" for o in found for reason in o.dropped]
    assert not dropped, "\n".join(dropped)
    assert sum(o.status == "ok" for o in found) >= 0.9 * len(found)


@pytest.mark.slow
def test_a_few_graphs() -> None:
    check(list(run_seeds(range(10))))


@pytest.mark.slow
def test_a_few_networks_of_images() -> None:
    check(list(run_seeds(range(4), "images")))


@pytest.mark.slow
def test_a_few_graphs_of_codes() -> None:
    check(list(run_seeds(range(6, 12), "codes")))


@pytest.mark.slow
def test_a_few_graphs_on_a_gpu() -> None:
    """In Triton's interpreter, through ONNX Runtime and the stand-in for the driver."""
    pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")
    check(list(run_seeds(range(2), gpu=True)))


@pytest.mark.full
def test_two_hundred_graphs_on_a_gpu() -> None:
    pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")
    found = list(run_seeds([*range(5), *range(10_000, 10_200)], gpu=True))
    # The interpreter takes a millisecond for a block: some graphs take it longer than they get.
    check([o for o in found if o.status != "timeout"])


@pytest.mark.full
def test_five_hundred_networks_of_images() -> None:
    check(list(run_seeds([*range(8), *range(10_000, 10_500)], "images")))


@pytest.mark.full
def test_a_thousand_graphs_of_codes() -> None:
    check(list(run_seeds([*range(12), *range(10_000, 11_000)], "codes")))


@pytest.mark.full
def test_five_hundred_graphs() -> None:
    check(list(run_seeds([*range(20), *range(10_000, 10_500)])))


@pytest.mark.parametrize("kind", ["graphs", "images", "codes"])
def test_a_seed_is_one_case(kind: str) -> None:
    first, second = make_case_of(kind, 7), make_case_of(kind, 7)
    assert first.model == second.model
    assert all((a[k] == b[k]).all() for a, b in zip(first.feeds, second.feeds, strict=True) for k in a)


def crash_on_three(item: int) -> int:
    import os

    if item == 3:
        os.abort()
    return item * item


@pytest.mark.slow
def test_a_crash_costs_one_item() -> None:
    found = dict(run_isolated("tests.fuzz.test_fuzz:crash_on_three", range(5)))
    assert isinstance(found[3], Lost) and found[3].status == "crash"
    assert [found[k] for k in (0, 1, 2, 4)] == [0, 1, 4, 16]
