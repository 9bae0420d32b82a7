"""Edits: small reductions of IR, each tied to an op, so that any subset can be made on a copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from igniter.errors import IgniterError
from igniter.toolbox.reduce.case import Case
from igniter.toolbox.reduce.cleanup import clean


class CannotEdit(IgniterError):
    """Raised for an edit without anything left to check, such as the removal of the last output."""

    code = "IGN0105"


@dataclass(frozen=True)
class Edit:
    """One change: `apply` gets the op of the copy at the place of `op`. It keeps no reference to `op`."""

    op: Operation
    what: str
    apply: Callable[[Operation], None]


@dataclass(frozen=True)
class Reduction:
    """A kind of edits: yields all edits for a module, in the order of the attempts."""

    name: str
    find: Callable[[ModuleOp], Iterable[Edit]]


def edited(case: Case, edits: Sequence[Edit]) -> Case | None:
    """Returns the case with all of the edits made, and without dead code; `None` if the IR is then invalid."""
    places = {op: place for place, op in enumerate(case.module.walk())}
    copy = case.module.clone()
    ops = list(copy.walk())
    try:
        for edit in edits:
            op = ops[places[edit.op]]
            # Another edit may have removed it.
            if _is_in(op, copy):
                edit.apply(op)
        clean(copy)
        copy.verify()
    except (CannotEdit, VerifyException, ValueError, AssertionError, KeyError, IndexError, ZeroDivisionError):
        # Edits are tried on every op of a similar form; a failed one gives no candidate.
        return None
    return replace(case, module=copy)


def _is_in(op: Operation, module: ModuleOp) -> bool:
    above: Operation | None = op
    while above is not None and above is not module:
        above = above.parent_op()
    return above is module
