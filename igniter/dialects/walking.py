"""The walk of large ops: xDSL's visits an op through three generators for each level of nesting; this one has a stack.

Passes walk a kernel or a func some fifty times. The order, and the effect of a change during the walk, are xDSL's: the
next op of a block is known when an op is visited, and its regions are entered after that.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation
from xdsl.irdl import IRDLOperation


class Walked(IRDLOperation):
    """A base of ops with bodies of many ops."""

    def walk(self, *, reverse: bool = False, region_first: bool = False) -> Iterator[Operation]:
        """Yields this op and all ops below it, as xDSL does."""
        return super().walk(reverse=reverse, region_first=region_first) if reverse or region_first else preorder(self)


def preorder(root: Operation) -> Iterator[Operation]:
    """Yields an op and all ops below it, each before those below it."""
    yield root
    # For each level: the blocks to visit, and the op after the one with these blocks.
    levels, after = [_blocks(root)], list[Operation | None]()
    op: Operation | None = None
    while True:
        if op is not None:
            following = op.next_op
            yield op
            if not op.regions:
                op = following
                continue
            levels.append(_blocks(op))
            after.append(following)
        block = next(levels[-1], None)
        while block is None:
            levels.pop()
            if not levels:
                return
            op = after.pop()
            if op is not None:
                break
            block = next(levels[-1], None)
        else:
            op = block.first_op


def _blocks(op: Operation) -> Iterator[Block]:
    return (block for region in op.regions for block in region.blocks)
