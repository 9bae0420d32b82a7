"""Kernels of ONNX's node cases, of the examples and of models, run by stock MLIR and equal to ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from igniter.runtime.mlir_tools import missing_tools
from tests.backends.mlir.__main__ import run_cases
from tests.backends.mlir.kernel_runs import EXAMPLES, FORMS, GOOD, SCHEDULABLE, KernelRun, run_examples, run_model
from tests.backends.mlir.models import MODELS, model
from tests.conformance.node_cases import node_cases

pytestmark = pytest.mark.skipif(missing_tools() is not None, reason=missing_tools() or "")

LARGER = ("shufflenet_v2", "squeezenet1_1")


def check(runs: Iterable[KernelRun]) -> None:
    """Every kernel is equal, and there is one; what neither reference runs, for its data, does not count."""
    found = [r for r in runs if r.status != "no kernel"]
    bad = [f"{r.source} @{r.kernel}: {r.status}: {r.reason}" for r in found if r.status not in (*GOOD, "not run")]
    assert not bad, "\n".join(bad)
    assert any(r.status in GOOD for r in found)


@pytest.mark.parametrize("form", ["linalg", pytest.param("scf", marks=pytest.mark.full)])
def test_a_model(form: str, tmp_path: Path) -> None:
    """LSTM and GRU, TopK, CumSum; the node cases of ONNX take ten seconds to compute."""
    check(run_model("recurrent", *model("recurrent", tmp_path), FORMS[form]))


@pytest.mark.parametrize("form", FORMS)
def test_some_examples(form: str) -> None:
    check(run_examples([p for p in EXAMPLES if p.stem in ("mask_softmax", "running_sum", "online_softmax")], form))


@pytest.mark.full
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_every_node_case(mode: str, form: str) -> None:
    check(run_cases(node_cases(), [mode], form))


@pytest.mark.full
@pytest.mark.parametrize("form", FORMS)
def test_every_example(form: str) -> None:
    check(run_examples(EXAMPLES, form))


@pytest.mark.full
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [*(m for m in MODELS if m != "recurrent"), *LARGER])
def test_models(name: str, form: str, tmp_path: Path) -> None:
    check(run_model(name, *model(name, tmp_path), FORMS[form]))


@pytest.mark.full
@pytest.mark.parametrize("name", MODELS)
def test_models_after_all_structured_passes(name: str, tmp_path: Path) -> None:
    """Nests inlined, variants by sizes, operands packed, accesses guarded, schedules chosen."""
    check(run_model(name, *model(name, tmp_path), SCHEDULABLE))
