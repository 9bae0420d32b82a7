"""Isolated failures: a region that cannot be lowered, a kernel that cannot be scheduled or emitted.

A pass runs its work on each unit in `attempt`, with a function to handle a failure:

    for kernel in kernels:
        attempt(ctx, partial(schedule, kernel), lambda reason: mark_failed(module, kernel.name, reason))

In an isolating context (the driver's, `igniter-opt --isolate`), a failure affects only its unit: the groups of nodes in
it are marked with the reason, and `inline-failed-regions` returns the nodes to ONNX Runtime. In other contexts the
first failure is the pass's failure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from igniter.crashes import crash_text
from igniter.errors import IgniterError, reproducer_of

if TYPE_CHECKING:
    from xdsl.context import Context

T = TypeVar("T")


@dataclass
class Isolation:
    """The setting for isolated failures, with the nodes returned to ONNX Runtime because of them."""

    enabled: bool = False
    regions: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """The regions inlined again, each with the reason."""
    nodes: dict[str, str] = field(default_factory=dict[str, str])
    """Their nodes, by their names in remarks, with the reason."""


def isolation_of(ctx: Context) -> Isolation:
    """Returns the isolation of a context; by default a context does not isolate."""
    found = getattr(ctx, "isolation", None)
    return found if isinstance(found, Isolation) else Isolation()


def attempt(ctx: Context, step: Callable[[], T], fail: Callable[[str], None]) -> T | None:
    """Returns the result of `step`. If it fails in an isolating context, calls `fail` with the reason and returns None;
    in other contexts raises the error."""
    try:
        return step()
    except Exception as error:  # in an isolating context any failure costs one kernel
        if not isolation_of(ctx).enabled:
            raise
        # The model compiles in spite of any failed kernel, because the original nodes are kept.
        fail(reason_of(error))
        return None


def reason_of(error: Exception) -> str:
    """Returns an error as the reason of a remark."""
    text = error.message if isinstance(error, IgniterError) else crash_text(error)
    path = reproducer_of(error)
    return f"{text}; reproducer: {path}" if path else text
