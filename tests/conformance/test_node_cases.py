"""Some of ONNX's node cases in every mode; `python -m tests.conformance` and `make test-full` run all of them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.conformance.__main__ import run_cases
from tests.conformance.attribute_cases import variants
from tests.conformance.ledger import ledger
from tests.conformance.node_cases import FAILURES, MODES, CaseResult, node_cases, run_named

NATIVE = ("test_add_bcast", "test_softmax_axis_1", "test_transpose_all_permutations_3", "test_where_example")
"""Cases that have to compile whole."""


def check(results: list[CaseResult]) -> None:
    failed = [f"{r.name} ({r.mode}): {r.status}: {r.reason}" for r in results if r.status in FAILURES]
    assert not failed, "\n".join(failed)


def run_here(names: Iterable[str], mode: str, gpu: bool = False) -> list[CaseResult]:
    """The results of cases in this process, which computes the cases of ONNX once: another one takes ten seconds."""
    return [run_named((name, mode, gpu)) for name in names]


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_some_cases(mode: str) -> None:
    results = run_here(NATIVE, mode)
    check(results)
    assert [r.status for r in results] == ["native"] * len(NATIVE)


def test_constants_are_folded() -> None:
    results = run_here(["test_add", "test_softmax_axis_1"], "constant")
    check(results)
    assert {r.status for r in results} == {"folded"}


@pytest.mark.slow
def test_attributes_vary() -> None:
    results = run_here(["test_softmax_axis_1", "test_add"], "attributes")
    check(results)
    assert [r.status for r in results] == ["native", "skipped"]
    assert len(variants(node_cases()["test_softmax_axis_1"])) >= 3


def test_ledger_counts_and_gives_reasons() -> None:
    left = CaseResult("b", "static", "Foo", "fallback", "Foo: it is too | long")
    page = ledger([CaseResult("a", "static", "Foo", "native"), left, CaseResult("c", "static", "Bar", "mismatch")])
    assert "| static | 3 | 2 | 1 | 0 | 1 | 0 | 1 |" in page
    assert "| Foo | 2 | 1 |  |  | 1 |  | Foo: it is too \\| long (1) |" in page


@pytest.mark.slow
def test_some_cases_compiled_for_gpus() -> None:
    pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")
    names = ["test_where_example", "test_layer_normalization_2d_axis1", "test_reduce_sum_default_axes_keepdims_random"]
    results = run_here(names, "static", gpu=True)
    check(results)
    assert [r.status for r in results] == ["native"] * len(names)
    # A Scan's slices are at any address.
    check(run_here(["test_scan9_sum"], "static", gpu=True))


@pytest.mark.full
def test_every_case_compiled_for_gpus() -> None:
    pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")
    check(run_cases(list(node_cases()), "static", gpu=True))


@pytest.mark.full
@pytest.mark.parametrize("mode", MODES)
def test_every_case(mode: str) -> None:
    check(run_cases(list(node_cases()), mode))
