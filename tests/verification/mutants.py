"""How many of the small faults that a compiler could make does verification find?

    python -m tests.verification.mutants [--seconds 600] [--bits 10] [--packages FOLDER ...] [--json FILE]

Each mutant of each model is run by ONNX Runtime in the place of the compiled model and verified against the original.
What is not found is run on more inputs: a mutant whose outputs never differ by more than the tolerance is one that no
comparison of outputs can find (`not observable`), and is not counted.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from igniter.errors import IgniterError
from igniter.frontend import import_model
from igniter.runtime.session import make_session
from igniter.verification.graph_facts import GraphFacts, facts_of
from igniter.verification.judgement import compare_output
from igniter.verification.original import Original
from igniter.verification.verify import Candidate, VerifyOptions, typical_inputs, verify_models

from .models import BUILT, trained
from .mutations import Mutant, mutants

FOUND, MISSED, UNSEEN, REFUSED = "found", "missed", "not observable", "does not load"
MORE_INPUTS = 6
BITS = {"sign": range(31, 32), "exponent": range(23, 31), "mantissa, top 8": range(15, 23), "mantissa, rest": range(15)}


@dataclass
class Tally:
    """What became of the mutants, by kind and by model."""

    by_kind: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    by_model: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    missed: list[str] = field(default_factory=list[str])

    def add(self, model: str, mutant: Mutant, verdict: str) -> None:
        kind = mutant.kind if mutant.bit is None else f"flipped bit: {_part(mutant.bit)}"
        for table, key in ((self.by_kind, kind), (self.by_model, model)):
            table.setdefault(key, Counter())[verdict] += 1
        if verdict == MISSED:
            self.missed.append(f"{model}: {kind}: {mutant.where}")

    @property
    def total(self) -> Counter[str]:
        return sum(self.by_kind.values(), Counter())

    def share(self) -> float:
        """Of the mutants that can be seen, how many are found."""
        total = self.total
        return total[FOUND] / max(total[FOUND] + total[MISSED], 1)


def _part(bit: int) -> str:
    return next(name for name, bits in BITS.items() if bit in bits)


@dataclass
class Subject:
    """A model to mutate, with what its mutants share."""

    name: str
    proto: onnx.ModelProto
    budget: float = 20.0

    def __post_init__(self) -> None:
        data = self.proto.SerializeToString()
        self.original = Original(data, options={"intra_op_num_threads": 1})
        self.facts: GraphFacts = facts_of(import_model(data))

    def judge(self, mutant: Mutant) -> str:
        """What verification says of a mutant."""
        try:
            session = make_session(mutant.proto.SerializeToString(), log_severity_level=4, intra_op_num_threads=1)
            candidate = Candidate(lambda _threads, _cut: session)
            result = verify_models(self.original, candidate, self.facts, VerifyOptions(budget=self.budget))
        except IgniterError:
            return REFUSED
        if result.status == "differs":
            return FOUND
        return MISSED if self._is_seen(session) else UNSEEN

    def _is_seen(self, session: Any) -> bool:
        """True if the mutant's outputs differ on any of more inputs by more than the tolerance of its output."""
        for seed in range(MORE_INPUTS):
            _, feed = typical_inputs(self.original, self.facts, {}, 1000 * (seed + 1), self.budget)
            if self._differs(session, feed):
                return True
        return False

    def _differs(self, session: Any, feed: Mapping[str, Any]) -> bool:
        names = self.original.output_names
        expected, _ = self.original.run(feed)
        actual = session.run(names, dict(feed))
        return not all(compare_output(n, e, a).ok for n, e, a in zip(names, expected, actual, strict=True))


def subjects(folders: list[Path]) -> Iterator[Subject]:
    """All models."""
    for name, make in BUILT.items():
        yield Subject(name, make())
    for name, path in trained(folders).items():
        yield Subject(name, onnx.load(path))


def chosen(proto: onnx.ModelProto, seed: int, bits: int, most: int) -> list[Mutant]:
    """At most so many mutants of a model, of all kinds, the same for the same seed."""
    rng = np.random.default_rng(seed)
    made = list(mutants(proto, rng, bits))
    structural = [m for m in made if m.bit is None]
    if len(structural) > most:
        structural = [structural[i] for i in sorted(rng.choice(len(structural), most, replace=False))]
    return structural + [m for m in made if m.bit is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0, help="stop after this long")
    parser.add_argument("--bits", type=int, default=10, help="flipped bits of each model")
    parser.add_argument("--most", type=int, default=20, help="other mutants of each model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--packages", type=Path, nargs="*", default=[Path(p) for p in sys.path if "site-packages" in p])
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    tally, end = Tally(), time.monotonic() + given.seconds
    for subject in subjects(given.packages):
        # Each model gets its share of what time is left, so that the last is not left out.
        for mutant in chosen(subject.proto, given.seed, given.bits, given.most):
            if time.monotonic() > end:
                break
            tally.add(subject.name, mutant, subject.judge(mutant))
        print(f"{subject.name:48} {dict(tally.by_model.get(subject.name, {}))}", flush=True)
    _print(tally)
    if given.json:
        given.json.write_text(json.dumps({"kinds": tally.by_kind, "models": tally.by_model, "missed": tally.missed}))


def _print(tally: Tally) -> None:
    print(f"\n{'kind':32}{FOUND:>8}{MISSED:>8}{UNSEEN:>16}{REFUSED:>15}")
    for kind, counts in sorted(tally.by_kind.items()):
        print(f"{kind:32}{counts[FOUND]:8}{counts[MISSED]:8}{counts[UNSEEN]:16}{counts[REFUSED]:15}")
    total = tally.total
    print(f"{'all':32}{total[FOUND]:8}{total[MISSED]:8}{total[UNSEEN]:16}{total[REFUSED]:15}")
    print(
        f"\n{sum(total.values())} mutants of {len(tally.by_model)} models; {tally.share():.1%} of the observable found"
    )
    for line in tally.missed:
        print(f"missed: {line}")


if __name__ == "__main__":
    main()
