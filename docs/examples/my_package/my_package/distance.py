"""`my.distance`: a micro-kernel for squares of distances, sum over k of (a[r, k] - b[k, c])**2.

    %d = arith.subf %x, %y : f32
    %v = arith.mulf %d, %d : f32
    loop.yield add %v at [r, p, l]

Igniter provides the loops over rows, panels and the depth; this file provides one step of depth.
"""

from __future__ import annotations

from igniter.backends.cpu.builder import Value
from igniter.backends.cpu.micro_kernels import CpuMicroKernel
from igniter.backends.cpu.target import Target
from igniter.backends.cpu.tile_bodies import Body
from igniter.dialects.loop.instructions import meaning

MEANING = """%d = arith.subf %x, %y : f32
    %v = arith.mulf %d, %d : f32"""


class DistanceBody(Body):
    """The sums of a few rows and panels, in registers."""

    def step(self, a: Value, b: Value, total: Value) -> Value:
        """Returns the sums after one step of depth, from a row's element in every lane and a vector of columns."""
        d = self.binary("fsub", a, b)
        return self.muladd(d, d, total)


def missing(target: Target) -> str | None:
    """Returns the reason why a CPU cannot run the micro-kernel, or None."""
    return None if target.has_fma else "it has no fused multiply-add"


DISTANCE = CpuMicroKernel(
    "my.distance",
    meaning("distance", "f32", "f32", "f32", MEANING, lanes=16),
    code=DistanceBody,
    missing=missing,
)
