"""Speculative decoding gives the model's tokens if greedy, and the model's distribution if sampled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import igniter
from benchmark.models.decoders import Decoder, Form
from igniter.errors import IgniterError
from igniter.toolbox.generate.sampling import Sampling
from igniter.toolbox.generate.speculation import checked

from .conftest import TINY, Bytes

Models = Callable[[Form], Path]
PROMPT = [3, 9, 27, 5, 1]


def noisy(path: Path, scale: float, target: Path) -> Path:
    """Another model whose weights differ a little: it drafts tokens that are right often."""
    model, random = onnx.load(path), np.random.default_rng(0)
    for tensor in model.graph.initializer:
        if tensor.name.startswith("w"):
            value = onnx.numpy_helper.to_array(tensor)
            value = value + scale * value.std() * random.standard_normal(value.shape, np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(value.astype(np.float32), tensor.name))
    onnx.save(model, target)
    return target


@pytest.mark.parametrize("form", ("shared", "growing", "merged", "whole"))
@pytest.mark.parametrize("count", (1, 3, 6))
def test_greedy_tokens_are_the_models_own(form: Form, count: int, model: Models, tmp_path: Path):
    draft = noisy(model("shared"), 0.05, tmp_path / "draft.onnx")
    generator = igniter.Generator(model(form), draft=draft)
    alone = igniter.Generator(model("shared"))
    kept = 0
    for prompt in (PROMPT, [100], [1, 2, 3, 4, 5, 6, 7]):
        found = generator.generate(prompt, max_new_tokens=40, draft_tokens=count)
        assert found.tokens == alone.generate(prompt, max_new_tokens=40).tokens
        assert found.acceptance is not None and found.acceptance.drafted >= found.acceptance.accepted
        kept += found.acceptance.accepted
    assert kept > 10


def test_a_draft_by_the_model_itself_is_kept(model: Models):
    found = igniter.Generator(model("shared"), draft=model("growing")).generate(PROMPT, max_new_tokens=41)
    assert found.acceptance is not None and found.acceptance.rate == 1.0
    # The first token is the prompt's; a round of four gives five.
    assert found.acceptance.rounds == 8 and found.acceptance.accepted == 32


def test_penalties_and_ends_are_those_of_the_model_alone(model: Models, tmp_path: Path):
    draft = noisy(model("shared"), 0.05, tmp_path / "draft.onnx")
    alone, generator = (igniter.Generator(model("shared"), Bytes(), draft=d) for d in (None, draft))
    settings: Any = {"max_new_tokens": 40, "repetition_penalty": 1.5}
    whole = alone.generate(PROMPT, **settings)
    assert generator.generate(PROMPT, **settings).tokens == whole.tokens
    for eos in whole.tokens[3:20:4]:
        one, two = (g.conversation().generate(PROMPT, eos=eos, **settings) for g in (alone, generator))
        assert one.tokens == two.tokens and one.finish_reason == two.finish_reason == "eos"


def test_a_conversation_goes_on_after_speculation(model: Models, tmp_path: Path):
    draft = noisy(model("shared"), 0.05, tmp_path / "draft.onnx")
    one, two = (igniter.Generator(model("shared"), draft=d).conversation() for d in (None, draft))
    for count in (7, 5, 9):
        found = [c.send([8, 9], max_new_tokens=count) for c in (one, two)]
        assert found[0].tokens == found[1].tokens
    eos = two.send([5], max_new_tokens=9).tokens[4]
    two.rewind(20)
    two.send([5], max_new_tokens=9, eos=eos)
    assert two.cached <= len(two.tokens)


def chi_square(seen: Counter[Any], wanted: dict[Any, float], count: int) -> tuple[float, int]:
    """The statistic over outcomes that are expected five times or more, the rest as one, and its degrees of freedom."""
    often = {k: p for k, p in wanted.items() if p * count >= 5}
    found = sum((seen[k] - count * p) ** 2 / (count * p) for k, p in often.items())
    rest = 1.0 - sum(often.values())
    if rest * count >= 5:
        other = count - sum(seen[k] for k in often)
        return found + (other - count * rest) ** 2 / (count * rest), len(often)
    return found, len(often) - 1


def limit(freedom: int) -> float:
    """What chi square exceeds once in 1,000, by Wilson and Hilferty."""
    return freedom * (1 - 2 / (9 * freedom) + 3.09 * (2 / (9 * freedom)) ** 0.5) ** 3


def test_checked_tokens_have_the_distribution_of_the_model():
    random, count = np.random.default_rng(11), 8_000
    p = [np.array(x) for x in ([0.5, 0.3, 0.2, 0.0], [0.1, 0.1, 0.2, 0.6], [0.25, 0.25, 0.4, 0.1])]
    q = [np.array(x) for x in ([0.2, 0.2, 0.1, 0.5], [0.7, 0.1, 0.1, 0.1])]
    seen: list[Counter[Any]] = [Counter(), Counter(), Counter()]
    for _ in range(count):
        drafted = [int(random.choice(4, p=each)) for each in q]
        tokens = checked(p, q, drafted, random)
        assert tokens[:-1] == drafted[: len(tokens) - 1]
        for place, token in enumerate(tokens):
            seen[place][token] += 1
    for place, wanted in enumerate(p):
        total = sum(seen[place].values())
        found, freedom = chi_square(seen[place], dict(enumerate(wanted)), total)
        assert found < limit(freedom), (place, seen[place])
    # The share of the first token that is kept is the common part of the distributions.
    assert sum(seen[1].values()) / count == pytest.approx(np.minimum(p[0], q[0]).sum(), abs=0.02)


@pytest.mark.slow
def test_sampled_tokens_have_the_distribution_of_the_model(tmp_path: Path):
    """Three tokens of a vocabulary of 8: all 512 outcomes, with their probabilities from runs of all tokens."""
    small = Decoder(layers=1, width=32, heads=2, kv_heads=1, vocabulary=8, sharpness=1.5)
    onnx.save(small.model("shared"), tmp_path / "model.onnx")
    onnx.save(small.model("whole"), tmp_path / "whole.onnx")
    draft = noisy(tmp_path / "model.onnx", 0.3, tmp_path / "draft.onnx")
    settings: Any = {"temperature": 0.8, "top_k": 6, "top_p": 0.95}
    sampling, session = Sampling(**settings), onnxruntime.InferenceSession(str(tmp_path / "whole.onnx"))

    def following(tokens: list[int]) -> Any:
        ids = np.array([tokens], np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "position_ids": np.arange(ids.size)[None]}
        logits: Any = session.run(["logits"], feed)[0]
        return sampling.probabilities(logits[0, -1], tokens)

    prompt = [1, 2]
    wanted: dict[Any, float] = {}
    first = following(prompt)
    seconds = {a: following([*prompt, a]) for a in range(8)}
    for a, b in product(range(8), repeat=2):
        third = following([*prompt, a, b])
        wanted |= {(a, b, c): first[a] * seconds[a][b] * third[c] for c in range(8)}
    generator, count = igniter.Generator(tmp_path / "model.onnx", draft=draft, intra_op_num_threads=1), 1500
    results = [
        generator.generate(prompt, max_new_tokens=3, draft_tokens=2, seed=seed, **settings) for seed in range(count)
    ]
    seen = Counter(tuple(r.tokens) for r in results)
    assert not [k for k in seen if wanted[k] == 0]
    found, freedom = chi_square(seen, wanted, count)
    assert freedom > 20 and found < limit(freedom)
    rates = [r.acceptance.rate for r in results if r.acceptance]
    assert 0.3 < np.mean(rates) < 0.99


def test_speculation_is_for_one_sequence(model: Models):
    generator = igniter.Generator(model("shared"), draft=model("growing"))
    with pytest.raises(IgniterError, match="speculative decoding is for one sequence"):
        generator.generate_batch([[1], [2]])


def test_vocabularies_of_different_sizes(tmp_path: Path, model: Models):
    wide = replace(TINY, vocabulary=300)
    onnx.save(wide.model("shared"), tmp_path / "wide.onnx")
    for target, draft in ((model("shared"), tmp_path / "wide.onnx"), (tmp_path / "wide.onnx", model("shared"))):
        alone = igniter.Generator(target).generate(PROMPT, max_new_tokens=10)
        assert igniter.Generator(target, draft=draft).generate(PROMPT, max_new_tokens=10).tokens == alone.tokens
        igniter.Generator(target, draft=draft).generate(PROMPT, max_new_tokens=10, temperature=2.0, seed=1)
