"""The roofline of a profile: each kernel by its operations a byte and its rate, under the machine's limits."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from igniter.toolbox.plan.chart import AXIS, GRID, LIMIT
from igniter.toolbox.roofs import CACHED, DISTURBED, is_passed, roof_text

if TYPE_CHECKING:
    from igniter.analysis.machine import MachineModel
    from igniter.toolbox.bench.time_profile import StepTime

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 24, 20, 48
FLOAT_BYTES = 4

LOOKUPS = frozenset({"Gather", "GatherElements", "GatherND"})
"""Ops that read a part of an operand, all of which counts as bytes."""
LOOKED_UP = "reads a part of a table"
ABOVE = "above the machine's figures (see --measure)"
"""The text for a kernel above a roofline that was not measured."""


@dataclass(frozen=True)
class Roof:
    """A machine's peak: 10^9 operations a second on f32, and 10^9 bytes a second from memory."""

    gflops: float
    gbytes: float
    cache_bytes: int = 0
    """The bytes that the caches of the cores hold: a call that moves no more may never wait for memory."""
    measured: bool = False
    """True if the figures were measured, false if they are typical for the machine."""

    @staticmethod
    def of(machine: MachineModel, threads: int, measured: bool = False) -> Roof:
        """Returns the peak of `threads` threads of a machine, each on its own core. The memory bandwidth is one
        thread's times the threads: an upper bound, which the cores of a machine may have to share."""
        lanes = machine.vector_bytes / FLOAT_BYTES
        flops = 2 * lanes * machine.fma_ports * machine.clock_ghz
        caches = machine.l2_bytes * threads + machine.l3_bytes
        return Roof(flops * threads, machine.memory_bytes_us / 1000 * threads, caches, measured)

    def at(self, intensity: float) -> float:
        """Returns the highest rate at an intensity in operations a byte."""
        return min(self.gflops, self.gbytes * intensity)

    @property
    def ridge(self) -> float:
        """The intensity from which arithmetic is the limit."""
        return self.gflops / self.gbytes


@dataclass(frozen=True)
class KernelTime:
    """All calls of one kernel."""

    kernel: str
    what: str
    calls: int
    ms: float
    share: float
    flops: int | None
    bytes: int | None
    ops: tuple[str, ...] = ()

    @property
    def gflops(self) -> float | None:
        return self.flops / self.ms / 1e6 if self.flops is not None and self.ms > 0 else None

    @property
    def gbytes(self) -> float | None:
        return self.bytes / self.ms / 1e6 if self.bytes is not None and self.ms > 0 else None

    def of_roof(self, roof: Roof) -> float | None:
        """Returns the roofline's minimum time as a share of the kernel's time."""
        if self.flops is None or self.bytes is None or self.ms <= 0:
            return None
        return max(self.flops / roof.gflops, self.bytes / roof.gbytes) / 1e6 / self.ms

    def roof_text(self, roof: Roof) -> str:
        """Returns the share of the roofline in percent. For a kernel above the roofline, returns the reason; if only
        the bandwidth is exceeded, the share of the arithmetic rate too."""
        share = self.of_roof(roof)
        if not is_passed(share) or self.flops is None or self.bytes is None:
            return roof_text(share)
        arithmetic = self.flops / roof.gflops / 1e6 / self.ms
        if not is_passed(arithmetic):
            if LOOKUPS & set(self.ops):
                return f"{arithmetic:.0%} of arithmetic; {LOOKED_UP}"
            if self.bytes <= roof.cache_bytes * self.calls:
                return f"{arithmetic:.0%} of arithmetic; {CACHED}"
        return DISTURBED if roof.measured else ABOVE


def by_kernel(steps: Sequence[StepTime], whole: float) -> list[KernelTime]:
    """Groups the steps of a profile by kernel, the longest total first; `whole` is a run in ms."""
    groups: dict[str, list[StepTime]] = {}
    for step in steps:
        groups.setdefault(step.kernel or step.region, []).append(step)
    found: list[KernelTime] = []
    for kernel, calls in groups.items():
        ms = sum(s.ms for s in calls)
        flops, moved = (
            None if any(a is None for a in amounts) else sum(a or 0 for a in amounts)
            for amounts in ([s.flops for s in calls], [s.bytes for s in calls])
        )
        found.append(
            KernelTime(kernel, calls[0].what, len(calls), ms, ms / whole if whole else 0.0, flops, moved, calls[0].ops)
        )
    return sorted(found, key=lambda k: -k.ms)


def roofline(kernels: Sequence[KernelTime], roof: Roof) -> str:
    """Returns a chart with kernels as circles whose areas are their times; axes are logarithmic."""
    shown = [k for k in kernels if k.flops and k.bytes and k.gflops]
    xs = [k.flops / k.bytes for k in shown if k.flops and k.bytes] + [roof.ridge]
    ys = [k.gflops for k in shown if k.gflops] + [roof.gflops]
    low_x, high_x = _decades(xs)
    low_y, high_y = _decades(ys)

    def x(value: float) -> float:
        return LEFT + (math.log10(value) - low_x) / (high_x - low_x) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (math.log10(value) - low_y) / (high_y - low_y) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg class="roofline" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="system-ui, sans-serif" font-size="12" role="img">'
        f"<title>{_summary(shown, roof)}</title>"
    ]
    parts += _grid((low_x, high_x), (low_y, high_y), x, y)
    start = 10.0**low_x
    # A roof below the chart begins at the chart's edge.
    start = max(start, 10.0**low_y / roof.gbytes)
    points = [(start, roof.at(start)), (roof.ridge, roof.gflops), (10.0**high_x, roof.gflops)]
    line = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points if a >= start)
    parts.append(f'<polyline points="{line}" {LIMIT} fill="none" stroke-width="1.6"/>')
    parts.append(
        f'<text x="{WIDTH - RIGHT - 4}" y="{y(roof.gflops) - 6:.1f}" text-anchor="end" class="limit" fill="#b03030">'
        f"{roof.gflops:.0f} GFLOP/s, {roof.gbytes:.0f} GB/s</text>"
    )
    parts += [_circle(k, x, y) for k in shown]
    return "".join([*parts, "</svg>"])


def _summary(shown: Sequence[KernelTime], roof: Roof) -> str:
    """Returns the chart in a sentence, for readers who do not see it."""
    return (
        f"Roofline: {len(shown)} kernels by operations a byte and GFLOP/s, below {roof.gflops:.0f} GFLOP/s and "
        f"{roof.gbytes:.0f} GB/s"
    )


def _circle(k: KernelTime, x: Callable[[float], float], y: Callable[[float], float]) -> str:
    assert k.flops and k.bytes and k.gflops
    radius = 3 + 16 * math.sqrt(max(0.0, k.share))
    told = (
        f"{k.kernel}: {k.what}\n{k.calls} calls, {k.ms:.4f} ms, {k.share:.1%} of a run\n"
        f"{k.gflops:.1f} GFLOP/s at {k.flops / k.bytes:.2f} operations a byte"
    )
    return (
        f'<circle cx="{x(k.flops / k.bytes):.1f}" cy="{y(k.gflops):.1f}" r="{radius:.1f}" class="dot" fill="#4a7fb0" '
        f'fill-opacity="0.55" stroke="#27506f" data-kernel="{html.escape(k.kernel)}">'
        f"<title>{html.escape(told)}</title></circle>"
    )


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """Returns powers of ten around values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _grid(
    across: tuple[int, int], up: tuple[int, int], x: Callable[[float], float], y: Callable[[float], float]
) -> list[str]:
    parts: list[str] = []
    for power in range(across[0], across[1] + 1):
        at = x(10.0**power)
        parts.append(
            f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" {GRID}/>'
            f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle" {AXIS}>{10.0**power:g}</text>'
        )
    for power in range(up[0], up[1] + 1):
        at = y(10.0**power)
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" {GRID}/>'
            f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end" {AXIS}>{10.0**power:g}</text>'
        )
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle" {AXIS}>operations a byte</text>'
    )
    parts.append(f'<text transform="translate(16 {middle}) rotate(-90)" text-anchor="middle" {AXIS}>GFLOP/s</text>')
    return parts
