"""Measured points: the time of single regions beside ONNX Runtime's, and the prediction of the ratio for another one.

`python -m benchmark.sweep --calibrate` writes them to `measured/ISA.json`, a file for each instruction set (`isa_of`).
A point is a region of the sweep that stood alone in its graph: its features (`region_features.py`), Igniter's and ONNX
Runtime's microseconds, and the A/A noise. A region of a model is compared with the points *near* it: points of the same
kind with sizes at a distance of at most `RADIUS`, in octaves; a single one has to be `CLOSE`. Without such points there
is no prediction, and the region is compiled.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, log, log2, sqrt
from pathlib import Path
from typing import Any

from igniter.analysis.authors import AuthorError
from igniter.analysis.fusion.region_features import RegionFeatures
from igniter.analysis.machine import ISAS

FOLDER = Path(__file__).parent / "measured"
FORMAT = 1

BEHIND = 1.10
"""A region is slower than ONNX Runtime if it takes more than this part of its time, beyond the noise."""
RADIUS = 2.5
"""The largest distance of a near point: the root of the sum of the squares of the sizes' ratios, in octaves."""
CLOSE = 1.0
"""The largest distance of a point that counts without a second one."""
NEAREST = 4
"""The most points of a prediction."""
FEWEST_OF_KIND = 3
"""The fewest points by which a region of unknown sizes is judged."""


@dataclass(frozen=True)
class Point:
    """One measured region."""

    sizes: tuple[int, ...]
    work: int
    igniter_us: float
    ort_us: float
    noise: float
    """The difference of ONNX Runtime's two runs, relative to the first."""

    @property
    def ratio(self) -> float:
        """Igniter's time by ONNX Runtime's."""
        return self.igniter_us / self.ort_us

    @property
    def is_behind(self) -> bool:
        """True if the region was slower than ONNX Runtime."""
        return self.ratio > BEHIND + self.noise

    def distance(self, sizes: Sequence[int | None]) -> float:
        """Returns the distance of a region's sizes in octaves; unknown sizes do not count."""
        pairs = [(a, b) for a, b in zip(self.sizes, sizes, strict=True) if b is not None]
        return sqrt(sum(log2(max(a, 1) / max(b, 1)) ** 2 for a, b in pairs))


@dataclass(frozen=True)
class Prediction:
    """The expected time of a region."""

    ratio: float
    """Igniter's time by ONNX Runtime's."""
    noise: float
    ort_us: float | None
    """ONNX Runtime's time; `None` for a region of unknown sizes."""
    points: int
    """The number of points that it comes from."""
    least: float
    """The least ratio among them."""

    @property
    def is_behind(self) -> bool:
        """True if ONNX Runtime is faster beyond the noise, and no point speaks against it."""
        return self.ratio > BEHIND + self.noise and self.least > 1


@dataclass(frozen=True)
class Measured:
    """The points of one instruction set."""

    isa: str
    kinds: dict[str, tuple[Point, ...]]
    about: dict[str, Any]
    """The origin of the points: versions, CPU, date, command."""

    def predict(self, features: RegionFeatures, without: Point | None = None) -> Prediction | None:
        """Returns the prediction for a region, from all points but one; `None` if none is near.

        A region of unknown sizes has one only if every point of its kind is behind.
        """
        points = [p for p in self.kinds.get(features.kind, ()) if p is not without]
        if not features.is_known:
            if len(points) < FEWEST_OF_KIND or not all(p.is_behind for p in points):
                return None
            return _predicted([(p, 1.0) for p in points], None)
        distances = sorted(((p.distance(features.sizes), k) for k, p in enumerate(points)))
        near = [(points[k], distance) for distance, k in distances[:NEAREST] if distance <= RADIUS]
        if not near or (len(near) == 1 and near[0][1] > CLOSE):
            return None
        return _predicted(near, features.work)


def _predicted(near: Sequence[tuple[Point, float]], work: int | None) -> Prediction:
    """Returns the mean of points, weighted by nearness: of logarithms, because ratios multiply."""
    exact = [(p, d) for p, d in near if d == 0]
    near = exact or near
    weights = [1 / (0.25 + d) for _, d in near]

    def mean(values: Iterable[float]) -> float:
        return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)

    time = None if work is None else exp(mean(log(p.ort_us * work / max(p.work, 1)) for p, _ in near))
    return Prediction(
        exp(mean(log(p.ratio) for p, _ in near)),
        mean(p.noise for p, _ in near),
        time,
        len(near),
        min(p.ratio for p, _ in near),
    )


# -- the files --------------------------------------------------------------------------------------------------------

OFF = "off"
"""The name of no points, in options."""


@cache
def measured(isa: str) -> Measured | None:
    """Returns the points of an instruction set; `None` if it has no file, for "" and for `off`. Raises `AuthorError` if
    the name is unknown."""
    if isa not in ("", OFF, *ISAS):
        raise AuthorError(f"there are no measured points of '{isa}'; name one of {', '.join([OFF, *ISAS])}")
    file = FOLDER / f"{isa}.json"
    return from_json(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else None


def from_json(said: dict[str, Any]) -> Measured:
    """Reads the points of a file."""
    about = {name: value for name, value in said.items() if name != "kinds"}
    if about.get("format") != FORMAT:
        raise AuthorError(f"the measured points have format {about.get('format')}, not {FORMAT}; calibrate again")
    kinds = {
        kind: tuple(Point(tuple(sizes), work, ours, theirs, noise) for sizes, work, ours, theirs, noise in rows)
        for kind, rows in said["kinds"].items()
    }
    return Measured(about["isa"], kinds, about)


def to_json(points: Measured) -> str:
    """Returns the text of a file: a line for each point, in a fixed order."""
    lines = [f" {json.dumps(name)}: {json.dumps(value)}," for name, value in points.about.items()]
    kinds: list[str] = []
    for kind, of_kind in sorted(points.kinds.items()):
        rows = sorted([list(p.sizes), p.work, p.igniter_us, p.ort_us, p.noise] for p in of_kind)
        kinds.append(f"  {json.dumps(kind)}: [\n" + ",\n".join(f"   {json.dumps(row)}" for row in rows) + "\n  ]")
    return "{\n" + "\n".join(lines) + '\n "kinds": {\n' + ",\n".join(kinds) + "\n }\n}\n"
