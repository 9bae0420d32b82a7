"""Speculative decoding: a small model drafts tokens, and the model checks all of them in one run.

Greedy tokens are those of the model alone. Sampled ones have its distribution, by rejection sampling (Leviathan et al.,
ICML 2023): a drafted token is kept with the probability min(1, p / q), where p and q are its probabilities in the two
models; the first that is not kept is replaced by one drawn from max(p - q, 0), and behind the last comes one drawn from
p. Both distributions are those after temperature, top-k, top-p and penalty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from igniter.toolbox.generate.caches import Past
from igniter.toolbox.generate.generation import Clock, GeneratedSequence, Piece
from igniter.toolbox.generate.sampling import Sampling, draw

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]


@dataclass
class Acceptance:
    """How many drafted tokens were kept."""

    rounds: int = 0
    drafted: int = 0
    accepted: int = 0

    @property
    def rate(self) -> float:
        """The share of drafted tokens that were kept."""
        return self.accepted / self.drafted if self.drafted else 0.0

    def to_dict(self) -> dict[str, Any]:
        return {"rounds": self.rounds, "drafted": self.drafted, "accepted": self.accepted, "rate": self.rate}


class Drafter:
    """The draft model of one sequence, with its own past."""

    def __init__(self, past: Past, vocabulary: int | None = None):
        self.past, self._vocabulary = past, vocabulary
        self.tokens: list[int] = []
        """The tokens in its past."""

    def knows(self, tokens: Sequence[int]) -> bool:
        """True if all tokens are in the vocabulary: that of the other model may be larger."""
        return self._vocabulary is None or max(tokens) < self._vocabulary

    def draft(
        self, history: Sequence[int], count: int, sampling: Sampling, random: np.random.Generator, size: int
    ) -> tuple[list[int], list[Array]]:
        """Returns `count` tokens to follow `history`, and the distribution that each was drawn from, of `size`
        tokens; none for greedy ones."""
        common = common_prefix(self.tokens, history)
        common = min(common, len(history) - 1)
        self.past.rewind(common)
        logits = self.past.prefill([history[common:]])[0]
        found: list[int] = []
        spread: list[Array] = []
        while True:
            logits = fitted(logits, size)
            before = [*history, *found]
            if sampling.greedy:
                found.append(int(sampling.penalized(logits, before).argmax()))
            else:
                spread.append(sampling.probabilities(logits, before))
                found.append(draw(spread[-1], random))
            if len(found) == count:
                break
            logits = self.past.step(found[-1:])[0]
        self.tokens = [*history, *found[:-1]]
        return found, spread


def fitted(logits: Array, size: int) -> Array:
    """Returns logits of `size` tokens: vocabularies may be padded to different sizes."""
    if logits.size >= size:
        return logits[:size]
    return np.concatenate([logits, np.full(size - logits.size, -np.inf, logits.dtype)])


def common_prefix(one: Sequence[int], two: Sequence[int]) -> int:
    """Returns the length of the longest common beginning."""
    for place, (a, b) in enumerate(zip(one, two, strict=False)):
        if a != b:
            return place
    return min(len(one), len(two))


def checked(p: Sequence[Array], q: Sequence[Array], drafted: Sequence[int], random: np.random.Generator) -> list[int]:
    """Returns the tokens that follow by rejection sampling: kept ones of `drafted`, and one more.

    `q` has the distribution that each drafted token was drawn from; `p` the model's for each, and one behind the last.
    """
    found: list[int] = []
    for mine, other, token in zip(p, q, drafted, strict=False):
        if random.random() * other[token] >= mine[token]:
            left = np.maximum(mine - other, 0.0)
            # Equal distributions leave nothing but rounding.
            return [*found, draw(left if left.any() else mine, random)]
        found.append(token)
    return [*found, draw(p[len(found)], random)]


def decode_speculatively(
    past: Past,
    drafter: Drafter,
    sequence: GeneratedSequence,
    logits: Array,
    sampling: Sampling,
    most: int,
    clock: Clock,
    acceptance: Acceptance,
) -> Iterator[Piece]:
    """Yields the new tokens of the only sequence, whose prompt is in `past`; `logits` are the last ones. A round drafts
    at most `most` tokens. The last token is not in `past`."""
    (random,) = sampling.generators(1)
    token = sampling.choose(logits, sequence.history, random)
    clock.token(True)
    yield sequence.piece(0, token)
    while sequence.reason is None:
        history, limits = sequence.history, sequence.limits
        count = min(most, limits.new_tokens - len(sequence.tokens) - 1)
        if limits.context is not None:
            count = min(count, limits.context - len(history))
        drafted: list[int] = []
        spread: list[Array] = []
        if count > 0 and drafter.knows(history):
            drafted, spread = drafter.draft(history, count, sampling, random, logits.size)
        rows = past.every([history[-1], *drafted])
        if sampling.greedy:
            tokens = _greedy(rows, history, drafted, sampling)
        else:
            mine = [sampling.probabilities(row, [*history, *drafted[:k]]) for k, row in enumerate(rows)]
            tokens = checked(mine, spread, drafted, random)
        acceptance.rounds += bool(drafted)
        acceptance.drafted += len(drafted)
        acceptance.accepted += len(tokens) - 1
        past.rewind(len(history) + len(tokens) - 1)
        for token in tokens:
            clock.token(False)
            yield sequence.piece(0, token)
            if sequence.reason is not None:
                past.rewind(min(past.lengths[0], len(sequence.history)))
                return


def _greedy(rows: Array, history: Sequence[int], drafted: Sequence[int], sampling: Sampling) -> list[int]:
    """Returns the model's own tokens, as far as the drafted ones are these, and one more."""
    found: list[int] = []
    for place, row in enumerate(rows):
        found.append(int(sampling.penalized(row, [*history, *found]).argmax()))
        if place == len(drafted) or drafted[place] != found[-1]:
            break
    return found


__all__ = ["Acceptance", "Drafter", "checked", "common_prefix", "decode_speculatively"]
