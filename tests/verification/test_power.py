"""Faults planted in a written folder are found; `python -m tests.verification.power MODELS...` plants more."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import igniter
from igniter.verification.report import CaseResult, Verification

from .models import BUILT
from .power.faults import CODE, WEIGHT, disassembler, faults, linked_copy
from .power.measure import FOUND, MISSED, Subject


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("power")
    onnx.save(BUILT["mlp"](), folder / "m.onnx")
    igniter.compile(folder / "m.onnx", folder / "m", verify=False)
    return folder / "m"


def test_all_faults_with_an_effect_are_found(compiled: Path) -> None:
    found = Subject("mlp", compiled, inputs=10, seconds=2).measure(5, 0)
    assert found.status == "passed" and len(found.verdicts) == 5
    assert found.counts(WEIGHT)[FOUND] >= 2
    assert found.share == 1.0, found.missed


@pytest.mark.slow
def test_a_fault_that_verification_misses_is_named(compiled: Path, tmp_path: Path) -> None:
    class Blind(Subject):
        """A verification that sees nothing."""

        def _verify(self, folder: Path) -> Verification:
            return Verification((CaseResult({"n": 4}, "passed"),))

    found = Blind("mlp", compiled, inputs=3, seconds=20).measure(1, 0)
    assert [v.verdict for v in found.verdicts] == [MISSED] and found.share == 0.0
    assert found.verdicts[0].effect > 1.0 and "bit of a weight" in found.missed[0]


def test_faults_are_the_same_for_a_seed_and_leave_the_model_as_it_is(compiled: Path, tmp_path: Path) -> None:
    before = {p.name: p.read_bytes() for p in compiled.iterdir()}
    made = faults(compiled, 6, 1)
    assert [f.where for f in made] == [f.where for f in faults(compiled, 6, 1)]
    assert disassembler() is None or any(f.kind == CODE for f in made)
    for k, fault in enumerate(made):
        copy = tmp_path / f"copy{k}"
        linked_copy(compiled, copy)
        fault.plant(copy)
        changed = [p.name for p in copy.iterdir() if p.read_bytes() != before[p.name]]
        assert len(changed) == 1, fault
    assert before == {p.name: p.read_bytes() for p in compiled.iterdir()}
