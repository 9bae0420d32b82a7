"""The choice of a token from logits: repetition penalty, temperature, top-k, top-p, in the order of transformers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.random import Generator as RandomGenerator
from numpy.random import default_rng

from igniter.errors import IgniterError

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen; greedy unless `temperature`, `top_k` or `top_p` is given."""

    temperature: float | None = None
    """Divides the logits; 0 is greedy, and `None` 1 if `top_k` or `top_p` is given."""
    top_k: int = 0
    """Only the k most likely tokens; 0 for all."""
    top_p: float = 1.0
    """Only the most likely tokens whose probabilities first reach this sum."""
    repetition_penalty: float = 1.0
    """Divides the positive logits of tokens that occurred, and multiplies the negative ones."""
    seed: int | None = None
    """Of the random numbers; `None` for other ones in each call."""

    def __post_init__(self) -> None:
        for name, value, fits in (
            ("temperature", self.temperature, self.temperature is None or self.temperature >= 0),
            ("top_k", self.top_k, self.top_k >= 0),
            ("top_p", self.top_p, 0 < self.top_p <= 1),
            ("repetition_penalty", self.repetition_penalty, self.repetition_penalty > 0),
        ):
            if not fits:
                limits = "above 0 and at most 1" if name == "top_p" else "not negative"
                raise IgniterError(f"{name} is {value}: it is {'above 0' if name[0] == 'r' else limits}")

    @property
    def greedy(self) -> bool:
        """True if the most likely token is always taken."""
        if self.temperature is None:
            return self.top_k == 1 or (not self.top_k and self.top_p == 1.0)
        return self.temperature == 0 or self.top_k == 1

    def generators(self, count: int) -> list[RandomGenerator]:
        """Returns random numbers for each of several sequences."""
        if self.seed is None:
            return [default_rng() for _ in range(count)]
        return [default_rng([self.seed, index]) for index in range(count)]

    def penalized(self, logits: Array, history: Sequence[int]) -> Array:
        """Returns logits with the penalty of repetition."""
        if self.repetition_penalty == 1.0 or not history:
            return logits
        found = logits.copy()
        seen = np.unique(np.array(history))
        seen = seen[(seen >= 0) & (seen < found.size)]
        values = found[seen]
        found[seen] = np.where(values > 0, values / self.repetition_penalty, values * self.repetition_penalty)
        return found

    def probabilities(self, logits: Array, history: Sequence[int]) -> Array:
        """Returns the distribution that a token is drawn from, in f64; for a greedy choice, all on one token."""
        scores = self.penalized(logits, history)
        if self.greedy:
            found = np.zeros(scores.shape, np.float64)
            found[int(scores.argmax())] = 1.0
            return found
        scores = scores.astype(np.float64) / (self.temperature or 1.0)
        if self.top_k and self.top_k < scores.size:
            least = np.partition(scores, -self.top_k)[-self.top_k]
            scores = np.where(scores < least, -np.inf, scores)
        found = np.exp(scores - scores.max())
        found /= found.sum()
        if self.top_p < 1.0:
            order = np.argsort(-found, kind="stable")
            before = np.cumsum(found[order]) - found[order]
            found[order[before >= self.top_p]] = 0.0
            found /= found.sum()
        return found

    def choose(self, logits: Array, history: Sequence[int], random: RandomGenerator) -> int:
        """Returns a token."""
        if self.greedy:
            return int(self.penalized(logits, history).argmax())
        return draw(self.probabilities(logits, history), random)


def draw(probabilities: Array, random: RandomGenerator) -> int:
    """Returns an index drawn from a distribution, or from weights that are proportional to one."""
    total: Array = np.cumsum(probabilities)
    # Never past the last index with a probability, should rounding lead there.
    nonzero: Array = np.flatnonzero(probabilities)
    found = cast("int", np.searchsorted(total, random.random() * total[-1], side="right"))
    return min(int(found), int(nonzero[-1]))


__all__ = ["Sampling", "draw"]
