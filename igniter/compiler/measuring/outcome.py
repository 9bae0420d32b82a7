"""The outcome of a measurement: the figures of regions, of trials and of the whole model, and the decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from igniter.remarks import remark

PASS = "measure"
"""The pass name of remarks about measured regions."""

Decision = Literal["igniter", "onnxruntime", "differs", "not measured"]
"""The decision about a region: its kernel; its nodes in ONNX Runtime, by the times or because its outputs differ; its
kernel because it could not be measured."""


@dataclass(frozen=True)
class Times:
    """The times of a region, or of a whole model, at one choice of sizes."""

    seconds: float
    """Igniter's median run."""
    ort_seconds: float
    """ONNX Runtime's; 0 for a region without nodes of the model."""
    ratio: float
    """Igniter's time relative to ONNX Runtime's, the median over the rounds; 0 without nodes."""
    noise: float
    """The distance of the ratio from 1 that proves nothing."""
    rounds: int

    @property
    def is_slower(self) -> bool:
        """True if Igniter is slower by more than the noise."""
        return self.ratio > 1 + self.noise

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values, times in milliseconds."""
        return {
            "ms": 1000 * self.seconds,
            "ort_ms": 1000 * self.ort_seconds,
            "ratio": self.ratio,
            "noise": self.noise,
            "rounds": self.rounds,
        }

    @staticmethod
    def from_dict(said: Mapping[str, Any]) -> Times:
        """Restores an object from the result of `to_dict`."""
        return Times(said["ms"] / 1000, said["ort_ms"] / 1000, said["ratio"], said["noise"], said["rounds"])


@dataclass(frozen=True)
class RegionOutcome:
    """The figures of one distinct region. `nodes` are the names of the nodes of all `count` equal regions; a region
    that changes the layout of a tensor has none."""

    region: str
    ops: tuple[str, ...]
    nodes: tuple[str, ...]
    count: int
    times: tuple[Times, ...] = ()
    """The times at each choice of sizes."""
    wrong: str = ""
    """The reason why the kernel's outputs count as different from the nodes'; "" if they agree."""
    unmeasured: str = ""
    """The reason for no times; "" if there are some."""
    decision: Decision = "igniter"

    @property
    def ratio(self) -> float:
        """The ratio to ONNX Runtime's time where it is the largest; 0 if nothing was compared."""
        return max((t.ratio for t in self.times), default=0.0)

    @property
    def is_slower(self) -> bool:
        """True if the kernel is slower than the nodes at some choice of sizes, by more than the noise."""
        return any(t.is_slower for t in self.times)

    @property
    def excess(self) -> tuple[float, ...]:
        """The seconds of all equal regions beyond ONNX Runtime's, at each choice of sizes."""
        return tuple(self.count * (t.seconds - t.ort_seconds) for t in self.times)

    @property
    def message(self) -> str:
        """The figures and the decision in words."""
        what = f"{'+'.join(self.ops) or 'a change of layout'}, {self.count} times" if self.count > 1 else ""
        what = f"{what or '+'.join(self.ops) or 'a change of layout'}: "
        if self.wrong:
            return f"{what}left to ONNX Runtime, because its outputs differ: {self.wrong}"
        if self.unmeasured:
            return f"{what}not measured: {self.unmeasured}"
        slowest = max(self.times, key=lambda t: t.ratio)
        took = f"{1e6 * slowest.seconds:.1f} us"
        if not slowest.ort_seconds:
            return f"{what}{took}, no nodes of the model"
        said = (
            f"{took}, {slowest.ratio:.2f} of ONNX Runtime's time (noise {slowest.noise:.2f}, {slowest.rounds} rounds)"
        )
        if self.decision == "onnxruntime":
            return f"{what}{said}: left to ONNX Runtime"
        return f"{what}{said}: compiled" + (", because the whole model gains too little without it" * self.is_slower)

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values."""
        return {**asdict(self), "times": [t.to_dict() for t in self.times], "ratio": self.ratio}

    @staticmethod
    def from_dict(said: Mapping[str, Any]) -> RegionOutcome:
        """Restores an object from the result of `to_dict`."""
        return RegionOutcome(
            said["region"],
            tuple(said["ops"]),
            tuple(said["nodes"]),
            said["count"],
            tuple(Times.from_dict(t) for t in said["times"]),
            said["wrong"],
            said["unmeasured"],
            said["decision"],
        )


@dataclass(frozen=True)
class TrialOutcome:
    """The whole model without kernels for some nodes, beside the best model before it."""

    what: str
    nodes: tuple[str, ...]
    ratios: tuple[float, ...] = ()
    """The time relative to that of the best model before, at each choice of sizes."""
    accepted: bool = False
    reason: str = ""

    def __str__(self) -> str:
        ratios = ", ".join(f"{r:.2f}" for r in self.ratios)
        took = f" takes {ratios} of the time" if ratios else ""
        return f"the model with {self.what} left to ONNX Runtime{took}: {self.reason}"

    @staticmethod
    def from_dict(said: Mapping[str, Any]) -> TrialOutcome:
        """Restores an object from the result of `asdict`."""
        return TrialOutcome(said["what"], tuple(said["nodes"]), tuple(said["ratios"]), said["accepted"], said["reason"])


@dataclass(frozen=True)
class Outcome:
    """The outcome of the measurement of a model."""

    threads: int
    machine: str
    sizes: tuple[str, ...] = ()
    """The choices of sizes, as texts."""
    left: Mapping[str, str] = field(default_factory=dict[str, str])
    """The nodes left to ONNX Runtime by name, each with the reason."""
    regions: tuple[RegionOutcome, ...] = ()
    trials: tuple[TrialOutcome, ...] = ()
    before: tuple[Times, ...] = ()
    """The whole model with all kernels, beside ONNX Runtime's, at each choice of sizes."""
    after: tuple[Times, ...] = ()
    """The same of the chosen model."""
    cannot: str = ""
    """The reason for no measurement; "" after one."""
    from_cache: bool = False

    def decided(self) -> Outcome:
        """Returns the outcome with the decision of each region, by `left`."""
        return replace(self, regions=tuple(replace(r, decision=self._decision(r)) for r in self.regions))

    def _decision(self, region: RegionOutcome) -> Decision:
        if region.wrong:
            return "differs"
        if region.nodes and set(region.nodes) <= self.left.keys():
            return "onnxruntime"
        return "not measured" if region.unmeasured else "igniter"

    @property
    def wrong(self) -> list[RegionOutcome]:
        """The regions whose outputs differ."""
        return [r for r in self.regions if r.wrong]

    def lines(self, explain: bool) -> list[str]:
        """Returns the outcome for a terminal; `explain` adds each region and each trial."""
        if self.cannot:
            return [f"not measured: {self.cannot}"]
        at = f" at {'; '.join(self.sizes)}" if any(self.sizes) else ""
        known = ", known from the cache" if self.from_cache else ""
        threads = "1 thread" if self.threads == 1 else f"{self.threads or 'all'} threads"
        left = [r for r in self.regions if r.decision in ("onnxruntime", "differs")]
        compared = sum(r.count for r in self.regions if r.nodes)
        found = [
            f"measured beside ONNX Runtime ({threads}{at}{known}): {sum(r.count for r in left)} of {compared} regions "
            f"left to it; the whole model takes {_ratios(self.after)} of its time"
            + (f", {_ratios(self.before)} with all kernels" if left and self.before != self.after else "")
        ]
        found += [f"WRONG RESULT in {r.region} ({', '.join(r.nodes[:3])}): {r.message}" for r in self.wrong]
        if explain:
            found += [f"  {r.region} {r.message}" for r in self.regions]
            found += [f"  {t}" for t in self.trials]
        return found

    def remark_on(self, ctx: Any) -> None:
        """Adds a remark for each region, by its first node, and one for the model."""
        kinds: dict[Decision, Literal["applied", "missed", "note"]]
        kinds = {"igniter": "applied", "onnxruntime": "missed", "differs": "missed", "not measured": "note"}
        for r in self.regions:
            node = r.nodes[0] if r.nodes else r.region
            details = {"region": r.region, "ratio": round(r.ratio, 4), "decision": r.decision}
            remark(ctx, PASS, node, kinds[r.decision], r.message, **details)
        for trial in self.trials:
            remark(ctx, PASS, "", "note", str(trial))
        remark(ctx, PASS, "", "note", self.lines(False)[0])

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values."""
        return {
            "threads": self.threads,
            "machine": self.machine,
            "sizes": list(self.sizes),
            "left": dict(self.left),
            "regions": [r.to_dict() for r in self.regions],
            "trials": [asdict(t) for t in self.trials],
            "before": [t.to_dict() for t in self.before],
            "after": [t.to_dict() for t in self.after],
            "cannot": self.cannot,
            "from_cache": self.from_cache,
            "text": self.lines(False),
            "explanation": self.lines(True)[len(self.lines(False)) :],
        }

    @staticmethod
    def from_dict(said: Mapping[str, Any]) -> Outcome:
        """Restores an object from the result of `to_dict`."""
        return Outcome(
            said["threads"],
            said["machine"],
            tuple(said["sizes"]),
            dict(said["left"]),
            tuple(RegionOutcome.from_dict(r) for r in said["regions"]),
            tuple(TrialOutcome.from_dict(t) for t in said["trials"]),
            tuple(Times.from_dict(t) for t in said["before"]),
            tuple(Times.from_dict(t) for t in said["after"]),
            said["cannot"],
            said["from_cache"],
        )


def _ratios(times: Iterable[Times]) -> str:
    return ", ".join(f"{t.ratio:.2f}" for t in times)
