"""Calibration: the rows of a sweep as the measured points of an instruction set.

    python -m benchmark.sweep --kernels --out sweep.jsonl      on the machine to measure
    python -m benchmark.sweep --calibrate sweep.jsonl          writes igniter/analysis/fusion/measured/ISA.json

A row is a point if its whole graph is one region. The graph is built again and compiled up to its regions, and
`region_features` reads the region as fusion reads that of a model. Kinds without a point behind ONNX Runtime are left
out: no prediction of theirs leaves a region to ONNX Runtime.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import igniter
from benchmark.sweep.graph import Made
from benchmark.sweep.groups import all_graphs
from benchmark.sweep.measure import OK, Row
from benchmark.sweep.report import noise
from igniter.analysis.fusion.default_author import DefaultAuthor
from igniter.analysis.fusion.finished_regions import FinishedRegion
from igniter.analysis.fusion.measured_points import BEHIND, FOLDER, FORMAT, Measured, Point, to_json
from igniter.analysis.fusion.region_features import Known, RegionFeatures, region_features
from igniter.analysis.machine import ISAS, isa_of
from igniter.analysis.typical_sizes import TypicalSizes
from igniter.targets import Backend, backend_for, described_machines
from igniter.transforms.fusion.form_fusion_regions import FormFusionRegions

BEFORE = "form-half-products"
"""The pass of fusion before its regions."""
ABOUT = ("igniter", "onnxruntime", "cpu", "date")
"""The entries of a row about its origin."""
FAR_AHEAD = 0.8
"""A region with a lower ratio must never be left to ONNX Runtime."""


@dataclass(frozen=True)
class Found:
    """A point with its features."""

    features: RegionFeatures
    point: Point
    row: Row


def calibrate(
    rows: Sequence[Row], target: str, command: Sequence[str], about: Mapping[str, str], without: Sequence[str] = ()
) -> str:
    """Writes the points of the rows to the file of the target's instruction set; returns a report.

    `about` has the origin where the rows do not; graphs with one of `without` in their names give no points.
    """
    (machine,) = described_machines(target, None)
    isa = isa_of(machine)
    if not isa:
        raise SystemExit(f"no points are kept for {target} ({machine.cpu}); they are for {', '.join(ISAS)}")
    found = list(points_of([row for row in rows if not any(part in row["name"] for part in without)], target))
    if not found:
        raise SystemExit(
            "no row of these files is a point: a graph that is one region, without nodes left, measured with --kernels"
        )
    origin: dict[str, Any] = {"format": FORMAT, "isa": isa}
    for name in ABOUT:
        values = sorted({str(f.row[name]) for f in found if name in f.row})
        origin[name] = about.get(name) or ", ".join(values) or "not recorded"
    origin["command"] = shlex.join(["python", "-m", "benchmark.sweep", *command])
    everything = collected(found, isa, origin)
    kept = {kind: points for kind, points in everything.kinds.items() if any(p.ratio > BEHIND for p in points)}
    file = FOLDER / f"{isa}.json"
    file.write_text(to_json(replace(everything, kinds=kept)), encoding="utf-8")
    counted = sum(map(len, kept.values()))
    lines = [
        f"{len(rows)} rows, {len(found)} points of {len(everything.kinds)} kinds on {isa}",
        f"{counted} points of the {len(kept)} kinds with one behind are written to {file} "
        f"({file.stat().st_size / 1000:.0f} kB)",
        str(leave_one_out(everything)),
    ]
    return "\n".join(lines) + "\n"


def collected(found: Iterable[Found], isa: str, about: dict[str, Any]) -> Measured:
    """Returns the points by their kinds."""
    kinds: dict[str, list[Point]] = {}
    for each in found:
        kinds.setdefault(each.features.kind, []).append(each.point)
    return Measured(isa, {kind: tuple(points) for kind, points in sorted(kinds.items())}, about)


def points_of(rows: Iterable[Row], target: str) -> Iterator[Found]:
    """Yields the rows that are points, with the features of their region on a target."""
    graphs = {graph.name: graph for graph in all_graphs()}
    for row in rows:
        # A row without `--kernels` says nothing about regions that measured points left to ONNX Runtime. The rows of
        # sweeps before there were such points do not have the entry. Other graphs are no longer in the sweep.
        if row["name"] not in graphs:
            continue
        if not row.get("kernels", True) or row["status"] != OK or row["regions"] != 1 or row["left"]:
            continue
        made = graphs[row["name"]].make(row["form"], row["seed"])
        features = features_of(made, target)
        if features is not None and features.is_known:
            yield Found(features, point_of(features, row), row)


def point_of(features: RegionFeatures, row: Row) -> Point:
    """Returns the point of a row. Its noise is the A/A difference, or that of medians and minima if it is larger."""
    sizes = tuple(size for size in features.sizes if size is not None)
    unsure = max(noise(row), row["ratio"] - row["least_ratio"])
    return Point(sizes, features.work, row["igniter_us"], row["ort_us"], round(unsure, 4))


def features_of(made: Made, target: str) -> RegionFeatures | None:
    """Returns the features of a graph that becomes one region; `None` for other graphs, and where the compile has
    changed the ops, because ONNX Runtime's time is that of the original ones."""
    backend, (machine,) = backend_for(target), described_machines(target, None)
    levels = backend.pipelines
    module = igniter.load(made.model)
    module.run_passes(",".join(filter(None, [levels.onnx, levels.subnormals, levels.tiles, BEFORE])), target=target)
    known = TypicalSizes(tuple(made.sizes.items())).known
    reader = Reader(byte_products=machine.byte_products, known=known)
    Reading(reader=reader).apply(module.ctx.on(machine), module.ir)
    if len(reader.found) != 1:
        return None
    ((ops, features),) = reader.found
    return None if Counter(ops) - Counter(node.op_type for node in made.model.graph.node) else features


@dataclass(frozen=True)
class Reader(DefaultAuthor):
    """Igniter's own author, which reads the finished regions and refuses none of them."""

    known: Known = lambda _: None
    found: list[tuple[list[str], RegionFeatures | None]] = field(default_factory=list[Any])

    def refuse_finished(self, region: FinishedRegion) -> None:
        # Here, not later: the nodes are moved into regions afterwards.
        ops = [node.op for node in region.nodes]
        self.found.append(([op.op_type for op in ops], region_features(ops, self.known)))


@dataclass(frozen=True)
class Reading(FormFusionRegions):
    """The pass with the author above."""

    reader: Reader = field(default_factory=Reader)

    def _make_author(self, backend: Backend) -> Reader:
        return self.reader


# -- leave-one-out ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LeaveOneOut:
    """The decisions about points, each predicted from the others."""

    decided: int
    """The points with a prediction."""
    right: int
    """Left to ONNX Runtime and behind, or compiled and not behind."""
    behind: int
    """The points behind ONNX Runtime, with a prediction or without."""
    left: int
    """The points that would be left."""
    lost: int
    """The points that would be left and are far ahead."""

    @property
    def share(self) -> float:
        """The share of right decisions among the points with a prediction."""
        return self.right / self.decided if self.decided else 1.0

    def __str__(self) -> str:
        return (
            f"leave-one-out: {self.decided} points with a prediction, {self.share:.1%} of the decisions right; "
            f"{self.behind} points behind, {self.left} left to ONNX Runtime, {self.lost} of them far ahead"
        )


def leave_one_out(points: Measured) -> LeaveOneOut:
    """Predicts each point from the others."""
    decided = right = behind = left = lost = 0
    for kind, of_kind in points.kinds.items():
        for point in of_kind:
            behind += point.is_behind
            found = points.predict(RegionFeatures(kind, point.sizes, point.work), without=point)
            if found is None:
                continue
            decided += 1
            right += found.is_behind == point.is_behind
            left += found.is_behind
            lost += found.is_behind and point.ratio < FAR_AHEAD
    return LeaveOneOut(decided, right, behind, left, lost)
