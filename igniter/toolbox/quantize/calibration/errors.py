"""The errors of quantisation: of each node alone, and of a whole model, both over all samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp, f32

from igniter.dialects.onnx.attributes import texts_attr
from igniter.dialects.onnx.base import OnnxOp, make_op
from igniter.dialects.sym import tensor_of
from igniter.toolbox.quantize.quantization_plan import Candidate
from igniter.toolbox.quantize.quantize_model import Ranges, Style, node_quantizer

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

Samples = Callable[[], Iterator[Mapping[str, Any]]]


@dataclass(frozen=True)
class LayerError:
    """The error of one node on quantised factors, with all nodes before it in float."""

    name: str
    op: str
    relative: float
    """The root of the mean square of the error, relative to the result's."""

    @property
    def sqnr(self) -> float:
        """The signal-to-quantisation-noise ratio in decibels."""
        return math.inf if self.relative == 0 else -20.0 * math.log10(self.relative)


def probes(module: ModuleOp, nodes: Sequence[Candidate], ranges: Ranges, style: Style) -> list[tuple[str, str]]:
    """Adds beside each node a copy on quantised factors, and sums of squares of their difference and of the result;
    returns the names of the sums. The module's own results stay the same."""
    quantizer = node_quantizer(module, ranges, style)
    found: list[tuple[str, str]] = []
    for number, candidate in enumerate(nodes):
        op = candidate.op
        copy = op.clone()
        for key in ("node_name", "output_names", "output_info"):
            copy.properties.pop(key, None)
        copy.properties["output_names"] = texts_attr([f"igniter.probe.{number}"])
        assert op.parent is not None
        op.parent.insert_op_after(copy, op)
        assert isinstance(copy, OnnxOp)
        quantizer.node(Candidate(f"igniter.probe.{number}", copy))
        # `copy` comes after the values that it reads now.
        names = f"igniter.error.{number}", f"igniter.power.{number}"
        difference = make_op("Sub", [copy.results[0], op.results[0]], [op.results[0].type])
        op.parent.insert_op_after(difference, copy)
        op.parent.insert_op_after(_power(difference.results[0], names[0]), difference)
        op.parent.insert_op_after(_power(op.results[0], names[1]), difference)
        found.append(names)
    return found


def _power(value: SSAValue, name: str) -> OnnxOp:
    return make_op("ReduceSumSquare", [value], [tensor_of(f32, ())], {"keepdims": 0}, output_names=[name])


def layer_errors(
    session: Any, nodes: Sequence[Candidate], names: Sequence[tuple[str, str]], samples: Samples
) -> list[LayerError]:
    """Returns the errors of nodes, by a session with the outputs of `probes`."""
    wanted = [name for each in names for name in each]
    totals = dict.fromkeys(wanted, 0.0)
    for feed in samples():
        for name, value in zip(wanted, session.run(wanted, dict(feed)), strict=True):
            totals[name] += float(value)
    return [
        LayerError(node.name, node.op.op_type, relative_error(totals[error], totals[power]))
        for node, (error, power) in zip(nodes, names, strict=True)
    ]


def relative_error(error: float, power: float) -> float:
    """Returns the root of the ratio of two sums of squares."""
    if error == 0:
        return 0.0
    return math.sqrt(error / power) if power > 0 else math.inf


@dataclass(frozen=True)
class OutputErrors:
    """The error of each float output: the root of the mean square, relative to the output's."""

    pooled: dict[str, float]
    """The errors over all samples."""
    each: tuple[float, ...]
    """The largest error among the outputs, for each sample."""

    @property
    def largest(self) -> float:
        return max(self.pooled.values(), default=0.0)


def compare_outputs(reference: Any, session: Any, samples: Samples) -> OutputErrors:
    """Returns the errors of a session's outputs relative to those of `reference`."""
    names = [output.name for output in reference.get_outputs()]
    sums: dict[str, list[float]] = {}
    each: list[float] = []
    for feed in samples():
        worst = 0.0
        pairs = zip(names, reference.run(None, dict(feed)), session.run(names, dict(feed)), strict=True)
        for name, wanted, got in pairs:
            if getattr(getattr(wanted, "dtype", None), "kind", "") != "f":
                continue
            off: Any = wanted.astype("float64") - got.astype("float64")
            exact: Any = wanted.astype("float64")
            error, power = float((off * off).sum()), float((exact * exact).sum())
            found = sums.setdefault(name, [0.0, 0.0])
            found[0] += error
            found[1] += power
            worst = max(worst, relative_error(error, power))
        each.append(worst)
    return OutputErrors({name: relative_error(e, p) for name, (e, p) in sums.items()}, tuple(each))


def output_errors(reference: Any, session: Any, samples: Samples) -> dict[str, float]:
    """Returns the error of each float output over all samples."""
    return compare_outputs(reference, session, samples).pooled


__all__ = ["LayerError", "OutputErrors", "compare_outputs", "layer_errors", "output_errors", "probes"]
