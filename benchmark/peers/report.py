"""The results of races between models as JSON, as a markdown table and as a plot."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmark.peers.race import CONTROL, REFERENCE, Result
from igniter.toolbox.roofs import roof_text


@dataclass
class Race:
    """One model at one size with one number of threads: what was found of every system, and the roofline time."""

    model: str
    dims: dict[str, int]
    threads: int
    precision: str
    results: list[Result]
    roofline: dict[str, Any] = field(default_factory=dict[str, Any])
    rates: dict[str, Any] = field(default_factory=dict[str, Any])
    """What the machine did at most, sampled between the rounds."""

    @property
    def shape(self) -> str:
        return "x".join(map(str, self.dims.values())) or "fixed"

    def result(self, label: str) -> Result | None:
        """What was found of a system that has times."""
        return next((r for r in self.results if r.label == label and not r.reason), None)

    @property
    def noise(self) -> float:
        """How far the reference's two processes are apart; not a number where one of them did not run."""
        first, second = self.result(REFERENCE), self.result(CONTROL)
        return abs(second.ratio(first) - 1) if first and second else float("nan")

    def to_dict(self) -> dict[str, Any]:
        systems: list[dict[str, Any]] = []
        reference = self.result(REFERENCE)
        for result in self.results:
            found = result.to_dict()
            if not result.reason:
                if reference:
                    found["ratio"] = result.ratio(reference)
                if self.roofline:
                    found["share_of_roofline"] = self.roofline["seconds"] / result.median
            systems.append(found)
        return {
            "model": self.model,
            "dims": self.dims,
            "threads": self.threads,
            "precision": self.precision,
            "noise": self.noise,
            "roofline": self.roofline,
            "rates": self.rates,
            "systems": systems,
        }


def markdown(races: Sequence[Race]) -> str:
    """A row a race: ORT's and the roofline's milliseconds, and each system's time as a multiple of ORT's.

    Below the table, who is missing where and why, and what the systems are.
    """
    labels = list(dict.fromkeys(r.label for race in races for r in race.results if r.label != REFERENCE))
    head = ["model", "shape", "threads", "precision", "roofline ms", f"{REFERENCE} ms", *labels, "noise"]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for race in races:
        lines.append("| " + " | ".join([*_first_cells(race), *(_cell(race, n) for n in labels), _noise(race)]) + " |")
    missing = [line for race in races for line in _missing(race)]
    if missing:
        lines += ["", "Not timed:", "", *dict.fromkeys(missing)]
    versions = {r.peer: r.version for race in races for r in race.results if r.version}
    lines += ["", "Versions: " + ", ".join(f"{peer} {version}" for peer, version in versions.items()) + "."]
    return "\n".join(lines) + "\n"


def _first_cells(race: Race) -> list[str]:
    reference = race.result(REFERENCE)
    bound = f"{1e3 * race.roofline['seconds']:.3g}" if race.roofline else "-"
    time = "-"
    if reference:
        low, high = reference.quartiles
        time = f"{1e3 * reference.median:.3g} ({1e3 * low:.3g}-{1e3 * high:.3g}){_share(race, reference)}"
    return [race.model, race.shape, str(race.threads), race.precision, bound, time]


def _cell(race: Race, label: str) -> str:
    """The ratio to the reference and, in brackets, the share of the roofline."""
    result, reference = race.result(label), race.result(REFERENCE)
    if result is None or reference is None:
        return "-"
    ratio = f"{result.ratio(reference):.2f}"
    return ratio if label == CONTROL else ratio + _share(race, result)


def _share(race: Race, result: Result) -> str:
    return f" [{roof_text(race.roofline['seconds'] / result.median)}]" if race.roofline else ""


def _noise(race: Race) -> str:
    """How far apart the reference's processes are, and the quartiles of the machine's peak."""
    return f"{race.noise:.1%}" + (f", peak {race.rates['spread']:.1%}" if race.rates else "")


def _missing(race: Race) -> list[str]:
    return [f"* {r.label}, {race.model} {race.shape}, {race.precision}: {r.reason}" for r in race.results if r.reason]


def save(races: Sequence[Race], folder: Path, name: str, about: dict[str, Any]) -> list[Path]:
    """Write `name`.json, .md and .svg; without matplotlib there is no plot."""
    folder.mkdir(parents=True, exist_ok=True)
    base = folder / name
    paths = [base.with_suffix(".json"), base.with_suffix(".md")]
    paths[0].write_text(json.dumps({**about, "races": [race.to_dict() for race in races]}, indent=2) + "\n")
    paths[1].write_text(markdown(races))
    try:
        import matplotlib
    except ImportError:
        return paths
    matplotlib.use("Agg")
    paths.append(base.with_suffix(".svg"))
    plot(races, paths[-1])
    return paths


def plot(races: Sequence[Race], path: Path) -> None:
    """Bars of each system's time relative to ORT's, a group a race; a line where the roofline is."""
    import matplotlib.pyplot as plt

    labels = list(dict.fromkeys(r.label for race in races for r in race.results if r.label != CONTROL))
    width = 0.8 / len(labels)
    figure, axes = plt.subplots(figsize=(max(6.0, 0.35 * len(races) * len(labels)), 4.5))
    for k, label in enumerate(labels):
        places, heights, low, high = [], [], [], []
        for x, race in enumerate(races):
            result, reference = race.result(label), race.result(REFERENCE)
            if result and reference:
                first, third = result.quartiles
                places.append(x + (k - (len(labels) - 1) / 2) * width)
                heights.append(result.median / reference.median)
                low.append((result.median - first) / reference.median)
                high.append((third - result.median) / reference.median)
        axes.bar(places, heights, width, yerr=[low, high], label=label, error_kw={"elinewidth": 0.8})
    for x, race in enumerate(races):
        reference = race.result(REFERENCE)
        if race.roofline and reference:
            bound = race.roofline["seconds"] / reference.median
            axes.hlines(bound, x - 0.42, x + 0.42, colors="black", linestyles="dashed", linewidth=1)
    names = [
        f"{r.model}\n{r.shape}, {r.threads} thr" + (f"\n{r.precision}" if r.precision != "f32" else "") for r in races
    ]
    axes.set_xticks(range(len(races)), names, fontsize=7)
    axes.set_ylabel(f"time relative to {REFERENCE}")
    axes.set_title("dashed: roofline", fontsize=8, loc="right")
    axes.legend(fontsize=7, ncols=len(labels))
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
