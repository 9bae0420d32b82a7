"""Records of compiled and eager parts, with the reasons, for `igniter.torch.explain()`."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

log = logging.getLogger("igniter.torch")


@dataclass
class PieceReport:
    """One part of a graph. `nodes` counts ATen ops; `reason` explains why the part is eager, if it is."""

    nodes: int
    compiled: bool = False
    reason: str = ""
    pending: bool = False
    """True while a session is made in the background."""
    sessions: int = 0
    """The number of sessions made: one for each set of frozen weights, and one for each change of them."""
    calls: int = 0
    eager_calls: int = 0
    failed_calls: int = 0
    """Calls run in eager after a failure in ONNX Runtime."""
    copied_inputs: int = 0
    """Inputs copied because ONNX Runtime accepts only dense tensors."""
    copied_outputs: int = 0
    exported_from_cache: bool = False
    compiled_from_cache: bool = False
    weight_inputs: int = 0
    """Parameters and buffers passed at each call because they change."""
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    def leave(self, reason: str) -> None:
        """Records that this part stays eager, and logs the reason."""
        self.compiled, self.reason = False, reason
        log.warning("%d ops stay eager: %s", self.nodes, reason)

    def add_seconds(self, step: str, seconds: float) -> None:
        self.seconds[step] = self.seconds.get(step, 0.0) + seconds

    def __str__(self) -> str:
        what = f"{self.nodes} ops"
        if not self.compiled:
            waiting = "compiling in the background" if self.pending else "not called yet"
            return f"{what} eager: {self.reason or waiting}"
        times = ", ".join(f"{step} {s:.2f} s" for step, s in self.seconds.items())
        return (
            f"{what} compiled: {self.sessions} sessions, {self.calls} calls, {self.eager_calls} of them eager, "
            f"{self.copied_inputs} inputs and {self.copied_outputs} outputs copied"
            + (f", {self.weight_inputs} weights given at each call" if self.weight_inputs else "")
            + (f" ({times})" if times else "")
        )


@dataclass
class GraphReport:
    """One graph from Dynamo or `torch.export`."""

    name: str
    nodes: int
    pieces: list[PieceReport] = field(default_factory=list[PieceReport])
    left: dict[str, str] = field(default_factory=dict[str, str])
    """Ops outside all pieces, with the reasons."""
    reason: str = ""
    """The reason why the whole graph is eager, if it is."""

    @property
    def pending(self) -> bool:
        """True while a part is compiled in the background."""
        return any(piece.pending for piece in self.pieces)

    def leave(self, reason: str) -> None:
        self.reason = reason
        log.warning("%s (%d ops) stays eager: %s", self.name, self.nodes, reason)

    def __str__(self) -> str:
        if self.reason:
            return f"{self.name}: {self.nodes} ops eager: {self.reason}"
        lines = [f"{self.name}: {self.nodes} ops, {len(self.pieces)} parts"]
        lines += [f"  {piece}" for piece in self.pieces]
        lines += [f"  {op} eager: {why}" for op, why in self.left.items()]
        return "\n".join(lines)


@dataclass
class Explanation:
    """All graphs since the start of the process or the last `reset()`."""

    graphs: list[GraphReport] = field(default_factory=list[GraphReport])

    @property
    def compiled(self) -> int:
        """The number of parts that run in ONNX Runtime."""
        return sum(piece.compiled for graph in self.graphs for piece in graph.pieces)

    @property
    def sessions(self) -> int:
        return sum(piece.sessions for graph in self.graphs for piece in graph.pieces)

    @property
    def reasons(self) -> list[str]:
        """The distinct reasons why graphs, parts and ops are eager."""
        found: list[str] = []
        for graph in self.graphs:
            found += [graph.reason] if graph.reason else []
            found += [piece.reason for piece in graph.pieces if piece.reason]
            found += [f"{op}: {why}" for op, why in graph.left.items()]
        return list(dict.fromkeys(found))

    def __str__(self) -> str:
        return "\n".join(str(graph) for graph in self.graphs) or "no graph yet"


_seen = Explanation()


def note(name: str, nodes: int) -> GraphReport:
    """Adds and returns a report for a new graph."""
    report = GraphReport(name, nodes)
    _seen.graphs.append(report)
    return report


def forget(report: GraphReport) -> None:
    """Removes the report of an abandoned graph."""
    if report in _seen.graphs:
        _seen.graphs.remove(report)


def explain() -> Explanation:
    """Returns the compiled and eager graphs with the reasons. The object is updated later; it prints as a list."""
    return _seen


def reset() -> None:
    """Clears the result of `explain`. Compiled graphs stay compiled."""
    global _seen
    _seen = Explanation()


def op_name(target: Any) -> str:
    """Returns the name of an op (such as `aten.add.Tensor`) or of a function."""
    return str(target) if hasattr(target, "_schema") else str(getattr(target, "__name__", target))
