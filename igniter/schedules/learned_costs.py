"""A cost model learned from timed candidates: it orders the candidates of `igniter tune`.

The model predicts the logarithm of a candidate's time in units of the default's time. Its input is a pair of feature
vectors (`cost_features.py`): those of the candidate as differences from the default's, and the default's own, which
tell kinds of kernels apart. Differences of logarithms are ratios, so kernels of different sizes are comparable. The
regression is the mean of many randomised trees (Geurts, Ernst and Wehenkel, "Extremely randomized trees", 2006), with a
seed: equal examples give an equal model. Kernels count equally, however many candidates of each were timed.

A model is never stored: it is fitted again from the database, in about a second. It orders candidates only, so a bad
model costs measurements, never correctness.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from math import log2
from typing import Any

from igniter.distribution import install_command
from igniter.errors import IgniterError

TREES = 200
"""The trees of a model; more change its order little."""

LEAF = 3
"""The fewest examples in a leaf: a single time may be noise."""


@dataclass(frozen=True)
class Example:
    """A timed candidate."""

    kernel: str
    features: Mapping[str, float]
    """`beside` of the candidate and its default."""
    ratio: float
    """Its time in units of the default's."""


def beside(candidate: Mapping[str, float], default: Mapping[str, float]) -> dict[str, float]:
    """Returns the input of the model: the candidate's features as differences from the default's, and the default's."""
    changes = {f"{name} change": round(value - default[name], 6) for name, value in candidate.items()}
    return {**changes, **{name: round(value, 6) for name, value in default.items()}}


def require_learning() -> None:
    """Raises `IgniterError` without scikit-learn."""
    if find_spec("sklearn") is None:
        raise IgniterError(f"the learned cost model needs scikit-learn: {install_command('learn')}")


class LearnedCosts:
    """A fitted model. Raises `IgniterError` without examples, or without scikit-learn."""

    def __init__(self, examples: Sequence[Example], seed: int = 0):
        require_learning()
        if not examples:
            raise IgniterError("the learned cost model has no timed candidates to learn from")
        self.names = tuple(sorted(examples[0].features))
        self.kernels = len({each.kernel for each in examples})
        self.examples = len(examples)
        ensemble: Any = import_module("sklearn.ensemble")
        self._model: Any = ensemble.ExtraTreesRegressor(
            TREES, min_samples_leaf=LEAF, max_features=0.5, random_state=seed, n_jobs=1
        )
        counts = Counter(each.kernel for each in examples)
        weights = [1 / counts[each.kernel] for each in examples]
        self._model.fit([self._row(e.features) for e in examples], [log2(e.ratio) for e in examples], weights)

    def __str__(self) -> str:
        """The model, in words."""
        return f"a cost model learned from {self.examples} candidates of {self.kernels} kernels"

    def _row(self, features: Mapping[str, float]) -> list[float]:
        return [features[name] for name in self.names]

    def ratios(self, features: Sequence[Mapping[str, float]]) -> list[float]:
        """Returns the predicted time of candidates in units of the default's."""
        if not features:
            return []
        return [2.0 ** float(value) for value in self._model.predict([self._row(f) for f in features])]
