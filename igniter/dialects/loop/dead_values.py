"""Dead code elimination for values of loop bodies."""

from __future__ import annotations

from xdsl.ir import Block, Operation


def is_pure(op: Operation) -> bool:
    """True if `op` only computes a value: it can be moved, copied or erased."""
    return op.name.partition(".")[0] in ("arith", "math", "vector") or op.name in (
        "loop.dot_bytes",
        "loop.index",
        "loop.reduce_lanes",
    )


def erase_dead_values(block: Block) -> None:
    """Erases unused pure ops, loads and views, innermost regions first."""
    for op in reversed(list(block.ops)):
        for region in op.regions:
            for inner in region.blocks:
                erase_dead_values(inner)
        if (is_pure(op) or op.name in ("loop.load", "loop.view")) and not any(r.uses for r in op.results):
            op.detach()
            op.erase()
