"""The learned cost model of a target, fitted from a database of schedules (`igniter tune --learned`)."""

from __future__ import annotations

from igniter.errors import IgniterError
from igniter.schedules.learned_costs import Example, LearnedCosts, require_learning
from igniter.targets import Target
from igniter.transforms.structured.schedule_database import ScheduleDatabase

ENOUGH_KERNELS = 3
"""The fewest kernels to learn from: fewer say nothing about another one."""

ENOUGH_TRIALS = 60
"""The fewest timed candidates to learn from."""


def examples_of(database: ScheduleDatabase, target: str) -> list[Example]:
    """Returns the timed candidates of a target's kernels, by all builds that counted the same features."""
    found = database.examples(target)
    return [
        Example(f"{kernel} {bucket}", trial.features, trial.ratio) for kernel, bucket, trial in found if trial.ratio
    ]


def learned_from(database: ScheduleDatabase, target: Target, seed: int = 0) -> LearnedCosts:
    """Returns the model of a target. Raises `IgniterError` without scikit-learn, and with too few trials."""
    require_learning()
    examples = examples_of(database, target.key)
    kernels = len({each.kernel for each in examples})
    if kernels < ENOUGH_KERNELS or len(examples) < ENOUGH_TRIALS:
        raise IgniterError(
            f"--learned needs {ENOUGH_TRIALS} timed candidates of {ENOUGH_KERNELS} kernels for {target.key}; "
            f"{database.path} has {len(examples)} of {kernels}: tune other kernels without --learned first"
        )
    return LearnedCosts(examples, seed)
