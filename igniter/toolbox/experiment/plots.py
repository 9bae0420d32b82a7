"""Plots of a result, by matplotlib (the extra `experiment`)."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from igniter.distribution import install_command
from igniter.errors import IgniterError

FORMATS = ("svg", "pdf")
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#000000")
"""Okabe and Ito's colours, which people with any colour vision tell apart."""


def can_plot() -> bool:
    """True if matplotlib is installed."""
    return find_spec("matplotlib") is not None


def save_plots(figure: Mapping[str, Any], folder: Path) -> list[Path]:
    """Writes the plot of `ExperimentResult.figure` as `plot.svg` and `plot.pdf`; returns the files. Raises
    `IgniterError` without matplotlib."""
    drawn = draw(figure)
    made: list[Path] = []
    # Without dates and random names, equal data give equal files.
    with import_module("matplotlib").rc_context({"svg.hashsalt": "igniter"}):
        for kind in FORMATS:
            made.append(folder / f"plot.{kind}")
            drawn.savefig(made[-1], metadata={"Date": None} if kind == "svg" else {"CreationDate": None})
    return made


def draw(figure: Mapping[str, Any]) -> Any:
    """Returns a matplotlib figure: a group of bars for each comparison, with intervals; hatched bars are
    inconclusive."""
    if not can_plot():
        raise IgniterError(f"plots need matplotlib: {install_command('experiment')}")
    groups = list(figure["groups"])
    # A variant without a single figure would be an empty place.
    series = [each for each in figure["series"] if any(ratio is not None for ratio in each["ratio"])]
    width = 0.8 / max(1, len(series))
    made = import_module("matplotlib.figure").Figure(
        figsize=(max(5.0, 1.3 * len(groups) + 1), 3.6), layout="constrained"
    )
    axes = made.subplots()
    for number, each in enumerate(series):
        for group, ratio in enumerate(each["ratio"]):
            if ratio is None:
                continue
            x = group + (number - (len(series) - 1) / 2) * width
            errors = [[max(0.0, ratio - each["low"][group])], [max(0.0, each["high"][group] - ratio)]]
            axes.bar(
                x,
                ratio,
                width,
                color=COLOURS[number % len(COLOURS)],
                hatch="////" if each["status"][group] == "inconclusive" else None,
                edgecolor="white",
                label=each["variant"] if group == _first(each["ratio"]) else None,
            )
            axes.errorbar(x, ratio, errors, color="black", linewidth=1, capsize=2)
    axes.axhline(1.0, color="grey", linewidth=1)
    axes.set_xticks(range(len(groups)), groups, rotation=20 if len(groups) > 3 else 0)
    axes.set_ylabel(figure["y"])
    axes.set_title(figure["title"])
    if series:
        axes.legend(fontsize="small")
    return made


def _first(ratios: list[float | None]) -> int:
    return next((k for k, ratio in enumerate(ratios) if ratio is not None), -1)
