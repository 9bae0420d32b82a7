"""The order of the learned cost model beside that of the analytic one, on kernels held out.

    python -m benchmark.learned_costs --collect trials.sqlite     time candidates of ten kernels (minutes)
    python -m benchmark.learned_costs trials.sqlite               the table of the docs, from these times

Each kernel's candidates are the first `CANDIDATES` points of its schedule space, as `igniter tune` ranks them. Each is
timed in turns with the default, checked as in a search, and stored in a database of schedules. For each kernel a model
learns from the trials of the others. A column has the number
of measurements until a candidate within 2% of the fastest of all is measured: in the order of the cost model's cycles
(`igniter/schedules/loop_cost.py`), in the learned order, and the exact expectation over random orders. Measuring the
default is not counted. Candidates with equal code are one.
"""

from __future__ import annotations

import argparse
import math
import platform
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import geometric_mean

import onnx

from igniter.schedules.learned_costs import Example, LearnedCosts, beside
from igniter.targets import Target, backend_for
from igniter.toolbox.experiment.networks import NETWORKS
from igniter.toolbox.kernel.workbench import find_kernel
from igniter.toolbox.tune.executors import LocalExecutor
from igniter.toolbox.tune.learned import examples_of
from igniter.toolbox.tune.measure import Job
from igniter.toolbox.tune.search import Tunable, space_of, tunable, with_schedules
from igniter.transforms.structured.schedule_database import ScheduleDatabase, Trial, opened

CANDIDATES = 40
"""The candidates of a kernel."""

NEAR = 1.02
"""A time within 2% of the best."""

KERNELS = {
    "encoder r1": {"d0": 1, "d1": 64},
    "encoder r4": {"d0": 1, "d1": 64},
    "encoder r5": {"d0": 1, "d1": 64},
    "encoder r10": {"d0": 1, "d1": 64},
    "mixer r2": {"d0": 1},
    "mixer r4": {"d0": 1},
    "mobilenet r1": {"d0": 1},
    "mobilenet r2": {"d0": 1},
    "mobilenet r10": {"d0": 1},
    "unet r2": {"d0": 1},
    "unet r6": {"d0": 1},
    "unet r9": {"d0": 1},
}
"""The kernels: networks of `igniter.toolbox.experiment.networks`, kernels in them, sizes of symbols."""


@dataclass(frozen=True)
class Row:
    """The measurements of one kernel until a candidate within 2% of the best."""

    kernel: str
    candidates: int
    best: float
    """The time of the best candidate in units of the default's."""
    near: int
    """The candidates within 2% of it."""
    analytic: int
    learned: int

    @property
    def random(self) -> float:
        """The expectation over all orders."""
        return (self.candidates + 1) / (self.near + 1)


def subjects(target: Target, only: int = len(KERNELS)) -> dict[str, Tunable]:
    """Returns the first `only` kernels, ready to be tuned."""
    found: dict[str, Tunable] = {}
    machine = backend_for(target.name).machine_for(target)
    with tempfile.TemporaryDirectory() as folder:
        for name, sizes in list(KERNELS.items())[:only]:
            network, kernel = name.split()
            path = Path(folder) / f"{network}.onnx"
            if not path.is_file():
                onnx.save(NETWORKS[network](), str(path))
            found[name] = tunable(name, find_kernel(path, kernel, machine), target, sizes)
    return found


def collect(database: ScheduleDatabase, target: Target, kernels: int, rounds: int, seconds: float) -> None:
    """Times the candidates of all kernels that the database does not have."""
    executor = LocalExecutor()
    for name, what in subjects(target, kernels).items():
        start, space = time.monotonic(), space_of(what)
        where = target.name, target.key, what.sizes
        (default,) = executor.run([Job(what.default, "", *where)])
        known = {trial.digest for trial in database.trials(what.subject)}
        tried = [trial.point for trial in database.trials(what.subject)]
        for point in islice(space.points(0), CANDIDATES):
            if point in tried:
                continue
            text = with_schedules(what.kernel, space.schedules(point))
            job = Job(text, what.default, *where, rounds=rounds, seconds=seconds, known=frozenset(known))
            (found,) = executor.run([job])
            features = beside(found.features, default.features) if found.features else {}
            ratio = found.ratio if found.outcome == "timed" else None
            trial = Trial(point, found.outcome, found.reason, ratio, found.seconds or None, found.digest, features)
            database.note(what.subject, trial)
            known.add(found.digest)
        timed = sum(trial.outcome == "timed" for trial in database.trials(what.subject))
        print(f"{name}: {timed} timed, {time.monotonic() - start:.0f} s", flush=True)


def until_near(ratios: Sequence[float], costs: Sequence[float]) -> int:
    """Returns the number of measurements in the order of costs until one is within 2% of the best; equal costs are in
    the order of the space."""
    order = sorted(range(len(ratios)), key=lambda k: costs[k])
    best = min(ratios)
    return next(n for n, k in enumerate(order, 1) if ratios[k] <= NEAR * best)


def rows_of(examples: dict[str, list[Example]]) -> list[Row]:
    """Returns the row of each kernel, held out."""
    rows: list[Row] = []
    for name, own in examples.items():
        others = [e for other, each in examples.items() if other != name for e in each]
        ratios = [e.ratio for e in own]
        learned = LearnedCosts(others).ratios([e.features for e in own])
        analytic = [e.features["cycles change"] for e in own]
        near = sum(ratio <= NEAR * min(ratios) for ratio in ratios)
        row = Row(name, len(own), min(ratios), near, until_near(ratios, analytic), until_near(ratios, learned))
        rows.append(row)
    return rows


def table(rows: Sequence[Row]) -> str:
    """Returns the table of the docs."""
    lines = ["| kernel | candidates | within 2% | best / default | analytic | learned | random |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    for r in rows:
        lines.append(
            f"| {r.kernel} | {r.candidates} | {r.near} | {r.best:.2f} | {r.analytic} | {r.learned} | {r.random:.1f} |"
        )
    means = [geometric_mean(x) for x in zip(*((r.analytic, r.learned, r.random) for r in rows), strict=True)]
    sums = [math.fsum(x) for x in zip(*((r.analytic, r.learned, r.random) for r in rows), strict=True)]
    lines.append(f"| all, sum | | | | {sums[0]:.0f} | {sums[1]:.0f} | {sums[2]:.1f} |")
    lines.append(f"| all, geometric mean | | | | {means[0]:.1f} | {means[1]:.1f} | {means[2]:.1f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database", help="the database of the trials")
    parser.add_argument("--collect", action="store_true", help="time the candidates that it lacks, first")
    parser.add_argument("--kernels", type=int, default=len(KERNELS), help="the first kernels of the list only")
    parser.add_argument("--rounds", type=int, default=9, help="turns of a candidate and the default")
    parser.add_argument("--seconds", type=float, default=0.3, help="seconds for these turns")
    given = parser.parse_args()
    target = backend_for("native").target_of("native")
    with opened(given.database, create=given.collect) as database:
        if given.collect:
            collect(database, target, given.kernels, given.rounds, given.seconds)
        found = examples_of(database, target.key)
    names = {f"{w.subject.kernel} {w.subject.bucket}": name for name, w in subjects(target, given.kernels).items()}
    examples: dict[str, list[Example]] = {}
    for each in found:
        if each.kernel in names:
            examples.setdefault(names[each.kernel], []).append(each)
    print(f"{platform.processor() or platform.machine()}, {target.key}, one thread")
    print(table(rows_of(examples)))


if __name__ == "__main__":
    main()
