"""Units that fail alone: a region that cannot be lowered, a kernel that cannot be scheduled or emitted.

A pass whose work falls into such units does each in `attempt`, which says what to do with one that fails:

    for kernel in kernels:
        attempt(ctx, partial(schedule, kernel), lambda reason: mark_failed(module, kernel.name, reason))

In a context that isolates (the driver's, `igniter-opt --isolate`), the failure costs that unit and nothing else:
the groups of nodes that it stands for are marked with the reason, and `inline-failed-regions` gives their nodes back to
ONNX Runtime. In any other the first failure is the pass's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from igniter.errors import IgniterError

if TYPE_CHECKING:
    from xdsl.context import Context

T = TypeVar("T")


@dataclass
class Isolation:
    """Whether units fail alone, and what was given back to ONNX Runtime because of it."""

    enabled: bool = False
    regions: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """The regions that were taken apart again, each with the reason."""
    nodes: dict[str, str] = field(default_factory=dict[str, str])
    """Their nodes, by what they are called in remarks, with the reason."""


def isolation_of(ctx: Context) -> Isolation:
    """What a context says of units that fail; one that says nothing does not isolate."""
    found = getattr(ctx, "isolation", None)
    return found if isinstance(found, Isolation) else Isolation()


def attempt(ctx: Context, step: Callable[[], T], fail: Callable[[str], None]) -> T | None:
    """What `step` gives. Where it fails in a context that isolates, `fail` is told the reason, and there is no result;
    in any other the error is raised."""
    try:
        return step()
    except Exception as error:
        if not isolation_of(ctx).enabled:
            raise
        # Whatever went wrong with one kernel, the model still compiles: that is what the original nodes are kept for.
        fail(reason_of(error))
        return None


def reason_of(error: Exception) -> str:
    """An error as the reason of a remark."""
    return error.message if isinstance(error, IgniterError) else f"{type(error).__name__}: {error}"
