"""The choice of a range for a value, and of a model among quantised ones: by error, with a guard against chance.

A choice between models compares the errors sample by sample: the mean of their logarithms relative to the first
model's, and the standard error of this mean. A model replaces the first only if it is better by more than one standard
error; among several, the one with the largest margin wins (the rule of one standard error is from Breiman et al.:
Classification and Regression Trees, 1984).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from igniter.dialects.onnx.structure import GraphOp
from igniter.toolbox.quantize.calibration.errors import LayerError, OutputErrors
from igniter.toolbox.quantize.calibration.histogram import Histogram, Method
from igniter.toolbox.quantize.quantization_plan import Candidate, value_name

Ranges = dict[str, tuple[float, float]]
LEAST_GAIN = 0.95
"""The ratio of errors below which a difference on a single sample counts."""
CUTTING_GAIN = 0.9
"""The square of the error, relative to the full range's, below which a range is cut."""
TINY = 1e-12


def range_by_value(
    graph: GraphOp,
    nodes: Sequence[Candidate],
    histograms: Mapping[str, Histogram],
    ranges: Mapping[Method, Ranges],
    layers: Mapping[Method, Sequence[LayerError]],
) -> Ranges:
    """Returns for each value the range with the least error of its readers; for a value without readers among the
    nodes, the range with the least error over its own distribution. The full range, `min-max`, stays unless another is
    better by much, because future values are likelier outside a cut range."""
    errors: dict[str, dict[Method, float]] = {}
    for method, found in layers.items():
        for node, layer in zip(nodes, found, strict=True):
            for index in node.computed:
                name = value_name(node.op.operands[index], graph)
                each = errors.setdefault(name, {})
                each[method] = each.get(method, 0.0) + layer.relative**2
    chosen: Ranges = {}
    for name, histogram in histograms.items():
        costs = errors.get(name) or {m: histogram.square_error(*found[name]) for m, found in ranges.items()}
        best = min(costs, key=lambda method: costs[method])
        chosen[name] = ranges[best if costs[best] < CUTTING_GAIN * costs["min-max"] else "min-max"][name]
    return chosen


def advantage(first: OutputErrors, other: OutputErrors) -> float:
    """Returns the gain of `other` as a mean logarithm over samples, less one standard error; 0 or less means no
    gain."""
    logs = [
        math.log(max(a, TINY)) - math.log(max(b, TINY))
        for a, b in zip(first.each, other.each, strict=True)
        if math.isfinite(a) and math.isfinite(b)
    ]
    if not logs or len(logs) < len(first.each):
        return 0.0
    mean = sum(logs) / len(logs)
    if len(logs) == 1:
        return mean + math.log(LEAST_GAIN)
    spread = sum((x - mean) ** 2 for x in logs) / (len(logs) - 1)
    return mean - math.sqrt(spread / len(logs))


def choose(found: Sequence[OutputErrors]) -> int:
    """Returns the index of the choice: the first, or the one with the greatest advantage over it and no larger error
    over all samples together."""
    first = found[0]
    gains = [0.0, *(advantage(first, x) if x.largest <= first.largest else 0.0 for x in found[1:])]
    return max(range(len(found)), key=lambda index: gains[index])


__all__ = ["advantage", "choose", "range_by_value"]
