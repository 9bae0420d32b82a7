"""The count and the limit of the rewrites in a run of passes; bisecting the limit finds the first wrong rewrite.

A rewrite is the smallest optional change of a pass. A pass describes it in `one_rewrite`, an attribute of its class; a
pass without this attribute has no rewrites (it lowers, infers or checks) and runs whole. `run_passes` gives a pass's
name, the context the count:

    rewrites = budget(ctx, self.name)
    for nest in nests:
        if rewrites.take(nest.label, "split its axes"):
            split(nest)

At the limit `take` returns false, and passes leave the rest unchanged: the IR is that of the first N rewrites. Removal
of code left dead by a rewrite does not count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from igniter.observation.logs import log_debug
from igniter.observation.statistics import REWRITES, count
from igniter.remarks import remark

if TYPE_CHECKING:
    from xdsl.context import Context


@dataclass
class Rewrites:
    """The rewrites of one run, and their limit (`None`: unlimited)."""

    limit: int | None = None
    made: dict[str, int] = field(default_factory=dict[str, int])
    """The number of rewrites by pass name."""
    last: str = ""
    """The last rewrite, in words."""
    at_limit: Callable[[], None] | None = None
    """A function called at the last permitted rewrite, just before it is made or just after."""

    @property
    def count(self) -> int:
        """The number of rewrites made."""
        return sum(self.made.values())

    @property
    def is_spent(self) -> bool:
        """True if the limit is reached."""
        return self.limit is not None and self.count >= self.limit


@dataclass(frozen=True)
class Budget:
    """The remaining rewrites of one pass."""

    rewrites: Rewrites
    pass_name: str
    ctx: Context | None = None

    @property
    def is_spent(self) -> bool:
        """True if the pass may make no more rewrites."""
        return self.rewrites.is_spent

    def take(self, node: str, what: str) -> bool:
        """Counts one more rewrite and returns true, or returns false at the limit; `node` and `what` describe the
        rewrite."""
        if self.is_spent:
            return False
        self.count(node, what)
        return True

    def count(self, node: str, what: str) -> None:
        """Counts a rewrite after it was made; the caller has checked `is_spent`."""
        made = self.rewrites
        made.made[self.pass_name] = made.made.get(self.pass_name, 0) + 1
        if self.ctx is not None:
            count(self.ctx, self.pass_name, REWRITES)
        log_debug(self.pass_name, "rewrite %d: '%s' %s", made.made[self.pass_name], node, what)
        about = f" '{node}'" if node else ""
        made.last = f"{self.pass_name}:{about} {what}"
        if made.count != made.limit:
            return
        if made.at_limit is not None:
            made.at_limit()
        if self.ctx is not None:
            remark(self.ctx, self.pass_name, node, "note", f"rewrite {made.count}, the last that may be made: {what}")


def budget(ctx: Context, pass_name: str) -> Budget:
    """Returns the budget of a pass in a context; unlimited if the context does not count."""
    found = getattr(ctx, "rewrites", None)
    return Budget(found if isinstance(found, Rewrites) else Rewrites(), pass_name, ctx)


def unlimited(pass_name: str = "") -> Budget:
    """Returns the budget of a rewrite outside passes."""
    return Budget(Rewrites(), pass_name)


def what_counts(this: object) -> str:
    """Returns the description of one rewrite of a pass; "" for a pass without rewrites."""
    return str(getattr(this, "one_rewrite", ""))
