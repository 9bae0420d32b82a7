"""The choice of fits by cross-validation: with or without scales of channels, and ranges with or without a margin.

Ranges and scales fitted to the samples may not fit other inputs: values outside a range are clipped, and a channel has
fewer elements than a tensor to estimate its range from. The error over the samples cannot show this, because the fit
used them. So each of the four ways is fitted twice to one half of the samples, and measured on the other half
(cross-validation with two folds). The way with the least error there is chosen; the plain one stays unless another is
better by much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from math import inf, sqrt
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from igniter.dialects.onnx.structure import main_graph
from igniter.toolbox.quantize.calibration.channels import observe_channels
from igniter.toolbox.quantize.calibration.errors import Samples
from igniter.toolbox.quantize.calibration.workbench import Workbench
from igniter.toolbox.quantize.channel_scales import Channels, scales_of
from igniter.toolbox.quantize.channel_sites import producer_of, reader_of, sites
from igniter.toolbox.quantize.scale_channels import scale_channels

MOST_SAMPLES = 64
"""The limit of samples for the folds; more change the choice little."""
GAIN = 0.95
"""The error, relative to the plain way's, up to which another way is better by much."""


@dataclass(frozen=True)
class Way:
    """One of the ways: with or without scaled channels, with or without a margin of the ranges."""

    scaled: bool = False
    wide: bool = False


def observe_sites(
    bench: Workbench, module: ModuleOp, samples: Samples, progress: Callable[[str], None]
) -> dict[str, Channels]:
    """Returns the channels of all values that can be scaled."""
    axes = {site.name: site.axis for site in sites(main_graph(module), bench.candidates(module))}
    if not axes:
        return {}
    progress("calibrating channels")
    return observe_channels(bench.session(module, "seen", list(axes)), axes, samples, progress)


def scaled_module(bench: Workbench, module: ModuleOp, held: Mapping[str, Channels]) -> tuple[ModuleOp, dict[str, Any]]:
    """Returns a copy with scaled channels, and the scales."""
    copy = module.clone()
    graph, nodes = main_graph(copy), bench.candidates(copy)
    whole, scales = bench.style.granularity == "tensor", dict[str, Any]()
    for site in sites(graph, nodes):
        if site.name not in held:
            continue
        producer = producer_of(site.producer, graph, held) if whole and site.producer is not None else None
        readers = [reader_of(node, whole) for node in site.readers]
        scale = scales_of(held[site.name], readers, producer, bench.style.symmetric, site.is_free)
        if scale is not None:
            scales[site.name] = scale
    done = scale_channels(graph, nodes, scales)
    return copy, {name: scales[name] for name in done}


def half(samples: Samples, parity: int) -> Samples:
    """Returns every other one of the first samples."""

    def found() -> Iterator[Mapping[str, Any]]:
        return islice(samples(), parity, MOST_SAMPLES, 2)

    return found


def best_way(
    bench: Workbench,
    module: ModuleOp,
    held: Mapping[str, Channels],
    samples: Samples,
    progress: Callable[[str], None] = lambda _: None,
) -> Way:
    """Returns the way with the least error on held-out samples; the plain one if there are too few samples."""
    if len(list(islice(samples(), 4))) < 4:
        return Way()
    squares: dict[Way, list[float]] = {}
    for scaled in (False, True) if held else (False,):
        for parity in range(2):
            progress(f"leaving out half of the samples: {2 * scaled + parity + 1} of 4")
            used, scales = module, {}
            if scaled:
                used, scales = scaled_module(bench, module, {n: _part(c, parity) for n, c in held.items()})
            seen = bench.observe(used, half(samples, parity))
            for wide in (False, True) if scales or not scaled else ():
                ranges = {name: h.extent(wide) for name, h in seen.histograms.items()}
                found = bench.errors(used, ranges, [half(samples, 1 - parity)])[0]
                squares.setdefault(Way(scaled, wide), []).extend(e * e for e in found.each)
    count = len(squares[Way()])
    errors = {way: sqrt(sum(each) / count) if len(each) == count else inf for way, each in squares.items()}
    best = min(errors, key=lambda way: errors[way])
    return best if errors[best] < GAIN * errors[Way()] else Way()


def _part(channels: Channels, parity: int) -> Channels:
    return replace(channels, lows=channels.lows[parity::2], highs=channels.highs[parity::2])


__all__ = ["Way", "best_way", "observe_sites", "scaled_module"]
