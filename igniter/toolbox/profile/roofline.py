"""Latency by the roofline of a device (Williams, Waterman and Patterson, 2009). The time of a node is that of its
arithmetic at the peak, or of its bytes at the bandwidth of memory, whichever is longer; the time of a model is the
sum.

It is a lower bound where every node passes its results through memory. Fusion does better, kernels below the peak do
worse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from igniter.analysis.devices import Device
from igniter.errors import IgniterError
from igniter.toolbox.profile.profile import NodeProfile, Profile

Bound = Literal["arithmetic", "memory", "launch", ""]


@dataclass(frozen=True)
class NodeTime:
    """The time of a node, all its executions together, and its bound; "" for a node without cost."""

    seconds: float
    bound: Bound


@dataclass(frozen=True)
class Estimate:
    """A model on a device; `nodes` are those of the profile, in order."""

    device: Device
    nodes: tuple[NodeTime, ...]

    @property
    def seconds(self) -> float:
        """The seconds of one run."""
        return sum(n.seconds for n in self.nodes)

    def share(self, bound: Bound) -> float:
        """Returns the share of the time with this bound, 0 to 1."""
        whole = self.seconds
        return sum(n.seconds for n in self.nodes if n.bound == bound) / whole if whole else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Converts the estimate to JSON values."""
        return {
            "device": self.device.name,
            "source": self.device.source,
            "seconds": self.seconds,
            "arithmetic_share": self.share("arithmetic"),
            "memory_share": self.share("memory"),
        }


def estimate(profile: Profile, device: Device) -> Estimate:
    """Returns the time of a run. Raises `IgniterError` where an amount depends on a symbol without a size."""
    left = sorted({s for n in profile.nodes for e in _amounts(n) for s in e.symbols})
    if left:
        listed = ", ".join(f"{s} ({profile.symbols.get(s, 'a size of a value')})" for s in left)
        raise IgniterError(f"a time needs sizes of all symbols, and there is none of {listed}: give them by --sizes")
    return Estimate(device, tuple(node_time(n, device) for n in profile.nodes))


def node_time(node: NodeProfile, device: Device, element: str = "", saved: float = 0.0) -> NodeTime:
    """Returns the time of a node whose amounts are numbers; with products of `element`, and `saved` bytes less of
    weights."""
    macs, flops, moved, times = (e.constant or 0 for e in _amounts(node))
    if not times or not (flops or moved):
        return NodeTime(0.0, "")
    arithmetic = 2 * macs / device.peak(element or node.element) + max(0, flops - 2 * macs) / device.elementwise
    memory = max(0.0, moved - saved) / device.bandwidth
    bound: Bound = "arithmetic" if arithmetic > memory else "memory"
    if device.launch > max(arithmetic, memory):
        bound = "launch"
    return NodeTime(times * (max(arithmetic, memory) + device.launch), bound)


def _amounts(node: NodeProfile) -> tuple[Any, ...]:
    cost = node.cost
    return cost.macs, cost.flops, cost.moved, node.times
