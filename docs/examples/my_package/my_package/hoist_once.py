"""`hoist-once`: `hoist-zero-points` with a fault that it once had, for `docs/find-and-shrink-a-miscompile.md`.

A factor of integer products less its zero point was remembered by the factor alone, so that a second product of the
same factor with another zero point got the numbers of the first.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from igniter.transforms.onnx import hoist_zero_points


@dataclass(frozen=True)
class HoistOnce(ModulePass):
    """Takes zero points out of integer products, as if a factor had one only, which is wrong"""

    name = "hoist-once"
    one_rewrite = "a product without its zero points"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        right = hoist_zero_points.identity_of
        hoist_zero_points.identity_of = no_identity
        try:
            hoist_zero_points.HoistZeroPoints(byte_products=False, words="all").apply(ctx, op)
        finally:
            hoist_zero_points.identity_of = right


def no_identity(zero: SSAValue | None) -> Hashable:
    """What every zero point was known by."""
    return None
