"""Blocks of rows for micro-kernels that interleave a panel once for many rows (Arm's matrix instructions).

The micro-kernel takes up to `PAIRED_ROWS` rows, a stripe in registers at a time (`backends/cpu/paired_panels.py`). A
block is as high as it can be, unless threads would then be without work.
"""

from __future__ import annotations

from igniter.analysis.structured.contractions import BYTE_KINDS, PAIRED, PAIRED_ROWS, WIDENED_STRIPE, Contraction
from igniter.analysis.typical_sizes import WORK, typical_of
from igniter.dialects.loop import NestOp
from igniter.dialects.loop.panels import panel_lanes
from igniter.dialects.sym import element_of
from igniter.dialects.sym.expr import product
from igniter.schedules.scheduling import Machine

LEAST_ROWS = 48
"""The fewest rows of a block that is smaller than a tile for the sake of threads: interleaving then takes 9% of its
time by LLVM's models."""


def has_pairs(kind: str, machine: Machine) -> bool:
    """True if the machine multiplies factors of a kind two rows by two columns."""
    return kind in PAIRED and (machine.byte_pairs if kind in BYTE_KINDS else machine.half_pairs)


def paired_block(nest: NestOp, contraction: Contraction, machine: Machine) -> int:
    """Returns the rows of a block, a multiple of those in registers. Blocks of a known number of rows are nearly equal,
    and as many as occupy all cores."""
    rows = None if contraction.rows is None else nest.axis(contraction.rows).extent.constant
    if rows is None:
        return PAIRED_ROWS
    others = product(nest.axis(n).extent for n in (*contraction.batch, contraction.columns))
    tasks = max(1, typical_of(nest).value(others, WORK) // panel_lanes(element_of(nest.outputs[0].type)))
    blocks = max(1, -(-rows // PAIRED_ROWS), min(-(-machine.cores // tasks), rows // LEAST_ROWS))
    return -(-rows // (blocks * WIDENED_STRIPE)) * WIDENED_STRIPE
