"""`hoist-once`: `hoist-zero-points` with a former fault, for `docs/tutorials/find-a-miscompile.md`.

A factor of integer products minus its zero point was cached under the factor alone, so a second product of the
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
    """Moves zero points out of integer products, wrongly assuming a single one for each factor"""

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
    """Returns the same cache key for every zero point."""
    return None
