"""The error of an op that cannot be lowered."""

from __future__ import annotations

from os.path import basename

from xdsl.ir import Operation

from igniter.dialects.source import line_of
from igniter.errors import IgniterError


class LinalgError(IgniterError):
    """Raised for an op that cannot be lowered; the message has the op, its line, the reason and what to do."""

    code = "IGN0306"


def refused(op: Operation, reason: str) -> LinalgError:
    """Returns the error for `op`; `reason` is a clause, with what to do."""
    where = line_of(op)
    return LinalgError(f"{where}{': ' if where else ''}'{op.name}' cannot be lowered: {reason}")


def place_of(op: Operation) -> str:
    """Returns the name of an op in the messages of checks: `linalg.generic at a.mlir:12`."""
    where = line_of(op)
    return f"{op.name} at {basename(where)}" if where else op.name
