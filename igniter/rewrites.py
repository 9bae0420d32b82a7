"""How many rewrites the passes of a run may make, counted in one place: the first that is wrong is found by halving.

A rewrite is the smallest thing that a pass does and could as well leave. What that is, a pass says in `one_rewrite`, an
attribute of its class; a pass without it has none (it lowers, infers or checks) and runs whole. `run_passes` gives a
pass's name, the context the count:

    rewrites = budget(ctx, self.name)
    for nest in nests:
        if rewrites.take(nest.label, "split its axes"):
            split(nest)

Once the limit is reached `take` says no, and the passes leave what they find as it is: the IR is that of the first N
rewrites. Clearing away what a rewrite left dead is no rewrite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from igniter.remarks import remark

if TYPE_CHECKING:
    from xdsl.context import Context


@dataclass
class Rewrites:
    """The rewrites of one run: those made, and how many there may be (`None`: all)."""

    limit: int | None = None
    made: dict[str, int] = field(default_factory=dict[str, int])
    """How many each pass made, by its name."""
    last: str = ""
    """The latest, in words."""
    at_limit: Callable[[], None] | None = None
    """Called when the last rewrite that may be made is about to be made, or has been."""

    @property
    def count(self) -> int:
        """All that were made."""
        return sum(self.made.values())

    @property
    def is_spent(self) -> bool:
        """Whether no more may be made."""
        return self.limit is not None and self.count >= self.limit


@dataclass(frozen=True)
class Budget:
    """What one pass may still do."""

    rewrites: Rewrites
    pass_name: str
    ctx: Context | None = None

    @property
    def is_spent(self) -> bool:
        """Whether the pass may make no more rewrites."""
        return self.rewrites.is_spent

    def take(self, node: str, what: str) -> bool:
        """Whether the pass may make one more rewrite, which is counted; `node` and `what` say which it is."""
        if self.is_spent:
            return False
        self.count(node, what)
        return True

    def count(self, node: str, what: str) -> None:
        """Counts a rewrite that was made, after `is_spent` was asked."""
        made = self.rewrites
        made.made[self.pass_name] = made.made.get(self.pass_name, 0) + 1
        about = f" '{node}'" if node else ""
        made.last = f"{self.pass_name}:{about} {what}"
        if made.count != made.limit:
            return
        if made.at_limit is not None:
            made.at_limit()
        if self.ctx is not None:
            remark(self.ctx, self.pass_name, node, "note", f"rewrite {made.count}, the last that may be made: {what}")


def budget(ctx: Context, pass_name: str) -> Budget:
    """What a pass may do in a context; all that it likes in one that does not count."""
    found = getattr(ctx, "rewrites", None)
    return Budget(found if isinstance(found, Rewrites) else Rewrites(), pass_name, ctx)


def unlimited(pass_name: str = "") -> Budget:
    """The budget of a rewriting that is not part of a pass."""
    return Budget(Rewrites(), pass_name)


def what_counts(this: object) -> str:
    """What one rewrite of a pass is; "" for a pass that has none."""
    return str(getattr(this, "one_rewrite", ""))
