"""How long a scheduled loop takes, roughly, in cycles: enough to decide what is worth a task for another thread.

The figures are throughputs of one core with one vector unit of the width that the `vector` hints ask for. They decide
grain sizes only, where a factor of two does not matter; they never decide whether a result is right.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, VectorType
from xdsl.ir import Block, Operation

from igniter.analysis.scheduled.loop_accesses import trip_count
from igniter.dialects.loop import AllocOp, ForOp, IfOp, MemoryOp, TileProductOp, ViewOp
from igniter.dialects.sym.expr import ONE, ZERO, Expr, product

CYCLES = {
    "math.exp": 12, "math.exp2": 10, "math.expm1": 20, "math.log": 16, "math.log1p": 20, "math.log2": 16,
    "math.tanh": 16, "math.erf": 22, "math.sin": 24, "math.cos": 24, "math.tan": 40, "math.powf": 50,
    "math.sqrt": 8, "math.rsqrt": 12, "math.asin": 30, "math.acos": 30, "math.atan": 30, "math.sinh": 30,
    "math.cosh": 30, "math.asinh": 40, "math.acosh": 40, "math.atanh": 40, "math.atan2": 40, "math.cbrt": 40,
    "arith.divf": 8, "arith.remf": 30, "arith.divsi": 25, "arith.divui": 25, "arith.remsi": 25, "arith.remui": 25,
}  # fmt: skip
TILE_PRODUCTS = 16
"""The products that a micro-kernel adds up in a cycle."""
MEMORY_CYCLES = 2
"""An access that mostly hits the L1 or is streamed by the prefetcher."""


def body_cycles(block: Block, lanes: int = 1) -> Expr:
    """Cycles of one run of `block`; `lanes` elements share the cost of a vector loop's ops."""
    total = 0
    nested = ZERO
    for op in block.ops:
        if isinstance(op, ForOp):
            hint = op.hint("vector")
            wide = hint.value.data if isinstance(hint, IntegerAttr) else 1
            nested = nested + trip_count(op) * body_cycles(op.block, max(lanes, wide)) + 8
        elif isinstance(op, IfOp):
            nested = nested + body_cycles(op.block, lanes)
        elif isinstance(op, TileProductOp):
            nested = nested + product(op.extents_attr.data).ceildiv(TILE_PRODUCTS)
        else:
            total += _op_cycles(op)
    return nested + max(1, -(-total // lanes)) if total else nested


def _op_cycles(op: Operation) -> int:
    if isinstance(op, MemoryOp):
        return MEMORY_CYCLES * (16 if op.indices and any(isinstance(i.type, VectorType) for i in op.indices) else 1)
    if isinstance(op, (AllocOp, ViewOp)) or op.name == "arith.constant":
        return 0
    return CYCLES.get(op.name, 1)


def iteration_cycles(loop: ForOp) -> Expr:
    """Cycles of one iteration of `loop`, at least 1; symbolic where loops inside are."""
    hint = loop.hint("vector")
    cycles = body_cycles(loop.block, hint.value.data if isinstance(hint, IntegerAttr) else 1)
    return cycles if cycles != ZERO else ONE
