"""The first rewrite responsible for a failure, found by bisection (`igniter.rewrite_budget`)."""

from __future__ import annotations

from dataclasses import dataclass

from igniter.errors import IgniterError
from igniter.toolbox.reduce.case import Case
from igniter.toolbox.reduce.checks import Interest

MOST_REWRITES = 1 << 24


@dataclass(frozen=True)
class FirstRewrite:
    """The rewrite behind the failure: the first `number` rewrites fail, one fewer do not."""

    number: int
    """The number of the rewrite; 0 if the case fails without any."""
    what: str
    runs: int

    def __str__(self) -> str:
        if self.number == 0:
            return "it fails without any rewrite that counts: the fault is in a pass that makes none, or in the input"
        return f"rewrite {self.number} makes it fail: {self.what}"


def first_rewrite(interest: Interest, case: Case) -> FirstRewrite:
    """Finds it by bisection. If the failure is not monotonic in the number of rewrites, it is one of several."""
    runs = 0

    def fails(count: int) -> bool:
        nonlocal runs
        runs += 1
        return interest.is_same(interest.check.run(case, stop_after=count))

    good, bad = -1, 0
    while not fails(bad):
        good, bad = bad, max(1, 2 * bad)
        if bad > MOST_REWRITES:
            raise IgniterError("the case does not fail under any number of rewrites: it fails by chance, or by time")
    while bad - good > 1:
        middle = (good + bad) // 2
        if fails(middle):
            bad = middle
        else:
            good = middle
    last = interest.check.run(case, stop_after=bad)
    return FirstRewrite(bad, last.last_rewrite if bad else "", runs + 1)
