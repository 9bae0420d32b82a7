"""Tokens are chosen as transformers does, and drawn from the distribution that is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from igniter.toolbox.generate.sampling import Sampling, draw

LOGITS = np.array([2.0, 1.0, -1.0, 0.5, 3.0, 0.0], np.float32)


def softmax(values: Any) -> Any:
    found = np.exp(np.asarray(values, np.float64) - np.max(values))
    return found / found.sum()


def test_greedy_is_the_default():
    assert Sampling().greedy and Sampling(temperature=0.0, top_p=0.5).greedy and Sampling(top_k=1).greedy
    assert not Sampling(top_k=3).greedy and not Sampling(top_p=0.9).greedy and not Sampling(temperature=1.0).greedy
    assert Sampling().choose(LOGITS, [], np.random.default_rng(0)) == 4
    assert Sampling().probabilities(LOGITS, []).tolist() == [0, 0, 0, 0, 1, 0]


def test_temperature_divides_logits():
    assert Sampling(temperature=0.5).probabilities(LOGITS, []) == pytest.approx(softmax(2 * LOGITS))


def test_top_k_keeps_the_most_likely():
    expected = softmax(np.where(LOGITS >= 1.0, LOGITS, -np.inf))
    assert Sampling(top_k=3).probabilities(LOGITS, []) == pytest.approx(expected)
    assert Sampling(top_k=99).probabilities(LOGITS, []) == pytest.approx(softmax(LOGITS))


def test_top_p_keeps_the_least_set_that_reaches_it():
    whole = softmax(LOGITS)
    first, second = whole[4], whole[0]
    assert np.flatnonzero(Sampling(top_p=first - 1e-6).probabilities(LOGITS, [])).tolist() == [4]
    found = Sampling(top_p=first + 1e-6).probabilities(LOGITS, [])
    assert found[[4, 0]] == pytest.approx(np.array([first, second]) / (first + second)) and found.sum() == 1.0


def test_the_penalty_of_repetition_lowers_tokens_that_occurred():
    found = Sampling(repetition_penalty=2.0).penalized(LOGITS, [2, 4, 4])
    assert found.tolist() == [2.0, 1.0, -2.0, 0.5, 1.5, 0.0]
    assert Sampling(repetition_penalty=2.0).choose(LOGITS, [4], np.random.default_rng(0)) == 0
    assert LOGITS[4] == 3.0


def test_the_choices_are_those_of_transformers():
    torch = pytest.importorskip("torch")
    transformers: Any = pytest.importorskip("transformers")
    random, settings = np.random.default_rng(1), Sampling(temperature=0.7, top_k=20, top_p=0.8, repetition_penalty=1.3)
    chain = transformers.LogitsProcessorList(
        [
            transformers.RepetitionPenaltyLogitsProcessor(1.3),
            transformers.TemperatureLogitsWarper(0.7),
            transformers.TopKLogitsWarper(20),
            transformers.TopPLogitsWarper(0.8),
        ]
    )
    for _ in range(20):
        logits = 3 * random.standard_normal(100).astype(np.float32)
        history = random.integers(0, 100, 10).tolist()
        expected = torch.softmax(chain(torch.tensor([history]), torch.tensor(logits[None])), -1)[0].numpy()
        assert settings.probabilities(logits, history) == pytest.approx(expected, abs=1e-5)


def test_draws_have_the_distribution():
    wanted, random, count = softmax(LOGITS), np.random.default_rng(7), 20_000
    seen = np.bincount([draw(wanted, random) for _ in range(count)], minlength=6)
    # Chi square with 5 degrees of freedom exceeds 20.5 once in a thousand.
    assert ((seen - count * wanted) ** 2 / (count * wanted)).sum() < 20.5


def test_rounding_never_leads_past_the_last_token_with_a_probability():
    class Most:
        def random(self) -> float:
            return 1.0 - 2**-53

    assert draw(np.array([0.3, 0.7, 0.0, 0.0]), Most()) == 1  # type: ignore[arg-type]
    assert draw(np.array([0.0, 0.2, 0.0]), Most()) == 1  # type: ignore[arg-type]


def test_a_seed_gives_each_sequence_numbers_of_its_own():
    first, second = (g.random(4).tolist() for g in Sampling(seed=3).generators(2))
    again = Sampling(seed=3).generators(1)[0].random(4).tolist()
    assert first == again and first != second
