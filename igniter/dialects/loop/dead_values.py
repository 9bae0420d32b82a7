"""Dropping what computes a value that nothing uses."""

from __future__ import annotations

from xdsl.ir import Block, Operation


def is_pure(op: Operation) -> bool:
    """Whether `op` only computes a value: it can move, be copied, or be dropped."""
    return op.name.partition(".")[0] in ("arith", "math", "vector") or op.name in (
        "loop.dot_bytes",
        "loop.index",
        "loop.reduce_lanes",
    )


def erase_dead_values(block: Block) -> None:
    """Drops pure ops and loads without uses, innermost regions first."""
    for op in reversed(list(block.ops)):
        for region in op.regions:
            for inner in region.blocks:
                erase_dead_values(inner)
        if (is_pure(op) or op.name in ("loop.load", "loop.view")) and not any(r.uses for r in op.results):
            op.detach()
            op.erase()
