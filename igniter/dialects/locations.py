"""Locations of ops: the ONNX node that an op comes from, as MLIR's `loc("softmax")`.

Lowering gives every op of a nest the location of its node. A clone has the location of the original, and passes that
make a new op in the place of another pass it on, as far as they can: an op without a location belongs to the ops
around it. Locations are no part of the printed IR, unless it is printed with `--print-debuginfo`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import NameLoc, NoneAttr, StringAttr
from xdsl.ir import Block, Operation


def name_of(op: Operation) -> str:
    """Returns the name in the location of an op; empty if it has none."""
    return op.location.desc.data if isinstance(op.location, NameLoc) else ""


def set_name(op: Operation, name: str) -> None:
    """Sets the location of an op and of all ops in it that have none."""
    location = NameLoc(StringAttr(name), NoneAttr())
    for inner in op.walk():
        if not isinstance(inner.location, NameLoc):
            inner.location = location


def name_added(block: Block, last: Operation | None, name: str) -> None:
    """Sets the location of the ops of a block after `last` (None: of all)."""
    op = block.first_op if last is None else last.next_op
    while op is not None:
        if name:
            set_name(op, name)
        op = op.next_op
