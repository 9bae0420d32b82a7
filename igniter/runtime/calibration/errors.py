"""What quantisation does to results: of each node alone, and of a whole model, both over all samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp, f32

from igniter.analysis.model.quantization_plan import Candidate
from igniter.dialects.onnx.attributes import texts_attr
from igniter.dialects.onnx.base import OnnxOp, make_op
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.tensor_types import unranked
from igniter.transforms.edit.quantize_model import Ranges, Style, node_quantizer

if TYPE_CHECKING:
    import numpy as np
    from xdsl.ir import SSAValue

    Array = np.ndarray[Any, Any]

Samples = Callable[[], Iterator[Mapping[str, Any]]]


@dataclass(frozen=True)
class LayerError:
    """The error of one node on quantised factors, where everything before it is in float."""

    name: str
    op: str
    relative: float
    """The root of the mean square of the error, relative to that of the result."""

    @property
    def sqnr(self) -> float:
        """The ratio of the signal's power to that of the error, in decibels."""
        return math.inf if self.relative == 0 else -20.0 * math.log10(self.relative)


def probes(module: ModuleOp, nodes: Sequence[Candidate], ranges: Ranges, style: Style) -> list[tuple[str, str, str]]:
    """Puts beside each node one on quantised factors, and sums of squares of their difference and of the result, and
    the mean of the difference for each channel where the node can have a bias; the names of these, the last "" where
    there is none. Changes the module: what it computes stays."""
    quantizer = node_quantizer(module, ranges, style)
    found: list[tuple[str, str, str]] = []
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
        # `copy` stands behind what it reads now.
        names = f"igniter.error.{number}", f"igniter.power.{number}"
        difference = make_op("Sub", [copy.results[0], op.results[0]], [op.results[0].type])
        op.parent.insert_op_after(difference, copy)
        power = _power(op.results[0], names[1])
        op.parent.insert_op_after(_power(difference.results[0], names[0]), difference)
        op.parent.insert_op_after(power, difference)
        channels = ""
        if candidate.op.op_type in POOLED or candidate.op.op_type == "Gemm":
            channels = f"igniter.mean.{number}"
            pool = "GlobalAveragePool" if candidate.op.op_type in POOLED else "Identity"
            mean = make_op(pool, [difference.results[0]], [unranked(f32)], output_names=[channels])
            op.parent.insert_op_after(mean, difference)
        found.append((*names, channels))
    return found


POOLED = ("Conv", "ConvTranspose")
"""The ops whose results have channels as their second dim, and places behind it."""


def _power(value: SSAValue, name: str) -> OnnxOp:
    return make_op("ReduceSumSquare", [value], [tensor_of(f32, ())], {"keepdims": 0}, output_names=[name])


def layer_errors(
    session: Any, nodes: Sequence[Candidate], names: Sequence[tuple[str, str, str]], samples: Samples
) -> tuple[list[LayerError], dict[str, Array]]:
    """The errors of nodes, by a session that has the outputs of `probes`; and by node the mean error of each channel,
    over the rows of all samples."""
    wanted = [name for each in names for name in each if name]
    totals: dict[str, Any] = dict.fromkeys(wanted, 0.0)
    rows = 0
    for feed in samples():
        found = dict(zip(wanted, session.run(wanted, dict(feed)), strict=True))
        for error, power, mean in names:
            totals[error] += float(found[error])
            totals[power] += float(found[power])
            if mean:
                totals[mean] = totals[mean] + found[mean].reshape(found[mean].shape[:2]).mean(axis=0, dtype="float64")
        rows += 1
    layers = [
        LayerError(node.name, node.op.op_type, _relative(totals[error], totals[power]))
        for node, (error, power, _) in zip(nodes, names, strict=True)
    ]
    means = zip(nodes, names, strict=True)
    return layers, {node.name: totals[mean] / rows for node, (_, _, mean) in means if mean}


def _relative(error: float, power: float) -> float:
    if error == 0:
        return 0.0
    return math.sqrt(error / power) if power > 0 else math.inf


def output_errors(reference: Any, session: Any, samples: Samples) -> dict[str, float]:
    """The error of each output of floats over all samples: the root of the mean square, relative to the output's."""
    names = [output.name for output in reference.get_outputs()]
    sums: dict[str, list[float]] = {}
    for feed in samples():
        pairs = zip(names, reference.run(None, dict(feed)), session.run(names, dict(feed)), strict=True)
        for name, wanted, got in pairs:
            if getattr(getattr(wanted, "dtype", None), "kind", "") != "f":
                continue
            off: Any = wanted.astype("float64") - got.astype("float64")
            exact: Any = wanted.astype("float64")
            found = sums.setdefault(name, [0.0, 0.0])
            found[0] += float((off * off).sum())
            found[1] += float((exact * exact).sum())
    return {name: _relative(error, power) for name, (error, power) in sums.items()}


__all__ = ["LayerError", "layer_errors", "output_errors", "probes"]
