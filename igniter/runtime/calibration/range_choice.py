"""Which of several ranges a value gets, and which of several quantised models is taken: by error, guarded by chance.

A choice between models is made by the errors of samples one by one: the mean of their logarithms relative to the first
model's, and the standard error of that mean. A model takes the place of the first only where it is better by more than
one such error, and of several that are the one for which that is most (Breiman et al.: Classification and Regression
Trees, 1984, have the rule of one standard error).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from igniter.analysis.model.quantization_plan import Candidate, value_name
from igniter.dialects.onnx.structure import GraphOp
from igniter.runtime.calibration.errors import LayerError, OutputErrors
from igniter.runtime.calibration.histogram import Histogram, Method

Ranges = dict[str, tuple[float, float]]
LEAST_GAIN = 0.95
"""Of one sample, the ratio of errors from which on a difference is none."""
CUTTING_GAIN = 0.9
"""The square of the error, relative to that with all of the values, from which on a range is cut."""
TINY = 1e-12


def range_by_value(
    graph: GraphOp,
    nodes: Sequence[Candidate],
    histograms: Mapping[str, Histogram],
    ranges: Mapping[Method, Ranges],
    layers: Mapping[Method, Sequence[LayerError]],
) -> Ranges:
    """For each value the range with which the nodes that read it err least; a value that none of them reads has what
    its own distribution errs least with. Where that is not less by much than with the range of all values, `min-max`,
    it is this: values to come are likelier outside of a range that was cut."""
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
    """By how much, as a logarithm, samples err less with `other`, less one standard error; 0 or less is none."""
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
    """The index of what is taken: the first, or what has the greatest advantage over it, and no larger error over all
    samples together."""
    first = found[0]
    gains = [0.0, *(advantage(first, x) if x.largest <= first.largest else 0.0 for x in found[1:])]
    return max(range(len(found)), key=lambda index: gains[index])


__all__ = ["advantage", "choose", "range_by_value"]
