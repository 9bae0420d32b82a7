"""Small faults are found; `python -m tests.verification.mutants` has many more."""

from __future__ import annotations

import numpy as np
import pytest

from .models import BUILT
from .mutants import FOUND, MISSED, Subject, chosen
from .mutations import flip_bit


@pytest.mark.parametrize("name", ["mlp", "arithmetic", "choices", "movement"])
def test_what_can_be_seen_is_found(name: str) -> None:
    subject = Subject(name, BUILT[name]())
    verdicts = [(m.kind, m.where, subject.judge(m)) for m in chosen(subject.proto, 3, 2, 7)]
    assert [v for v in verdicts if v[2] == MISSED] == []
    assert sum(v[2] == FOUND for v in verdicts) >= 4


@pytest.mark.parametrize("bit", [31, 27, 23])
def test_a_flipped_bit_is_found(bit: int) -> None:
    subject = Subject("mlp", BUILT["mlp"]())
    mutant = flip_bit(subject.proto, np.random.default_rng(bit), bit)
    assert mutant is not None and subject.judge(mutant) == FOUND
