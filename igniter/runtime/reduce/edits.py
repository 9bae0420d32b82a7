"""Edits: small changes that make IR smaller, each tied to an op, so that any set of them can be made on a copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from igniter.errors import IgniterError
from igniter.runtime.reduce.case import Case
from igniter.runtime.reduce.cleanup import clean


class CannotEdit(IgniterError):
    """An edit that leaves nothing to check: the last output would go, say."""


@dataclass(frozen=True)
class Edit:
    """One change: `apply` gets the op of the copy that stands where `op` stands. It holds on to nothing of `op`."""

    op: Operation
    what: str
    apply: Callable[[Operation], None]


@dataclass(frozen=True)
class Reduction:
    """A kind of edits, all that a module offers in the order in which they are tried."""

    name: str
    find: Callable[[ModuleOp], Iterable[Edit]]


def edited(case: Case, edits: Sequence[Edit]) -> Case | None:
    """The case with all of the edits made, and what they leave dead cleared away; `None` where that is no valid IR."""
    places = {op: place for place, op in enumerate(case.module.walk())}
    copy = case.module.clone()
    ops = list(copy.walk())
    try:
        for edit in edits:
            op = ops[places[edit.op]]
            # Another edit may have taken it away.
            if _is_in(op, copy):
                edit.apply(op)
        clean(copy)
        copy.verify()
    except (CannotEdit, VerifyException, ValueError, AssertionError, KeyError, IndexError, ZeroDivisionError):
        # Edits are tried on everything that looks like it; what does not fit is no candidate.
        return None
    return replace(case, module=copy)


def _is_in(op: Operation, module: ModuleOp) -> bool:
    above: Operation | None = op
    while above is not None and above is not module:
        above = above.parent_op()
    return above is module
