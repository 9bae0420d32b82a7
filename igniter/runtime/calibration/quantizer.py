"""Static quantisation of a model: calibrate, measure each node, choose what stays in float, measure the whole.

All of it goes over the samples one by one. The models that are run on the way are written to a temporary folder with
their weights in a file beside them, which they share.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from xdsl.dialects.builtin import ModuleOp

from igniter.analysis.model.quantization_plan import candidates, value_name
from igniter.dialects.onnx.structure import main_graph
from igniter.errors import IgniterError
from igniter.runtime.calibration.calibrate import Observation, observe
from igniter.runtime.calibration.errors import LayerError, Samples, layer_errors, output_errors, probes
from igniter.runtime.calibration.histogram import METHODS, Method
from igniter.runtime.calibration.samples import samples as samples_of
from igniter.transforms.edit.quantize_model import WITH_RESULTS, Style, quantize

BEST = "best"
"""Of all methods the one with the least error of the outputs over the samples."""

EXACT = {"session.x64quantprecision": "1"}
"""Without it ONNX Runtime multiplies u8 by i8, on x86-64 without VNNI, in 16 bits that saturate."""

FATAL = 4
"""The severity from which on ONNX Runtime logs, where a failure is expected."""


@dataclass(frozen=True)
class Asked:
    """What is to be quantised, and how."""

    calibrate: Method | Literal["best"] = "min-max"
    percentile: float = 99.999
    style: Style = field(default_factory=Style)
    ops: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    leave: tuple[str, ...] = ()
    max_error: float | None = None
    """What the error of an output may be."""
    correct: bool = True
    """Whether biases make up for the mean error of each channel (Nagel et al.: Data-Free Quantization Through Weight
    Equalization and Bias Correction, ICCV 2019, by samples rather than by statistics of the model)."""


@dataclass(frozen=True)
class Quantization:
    """What was done: the ranges, each node's own error, which nodes stay in float, and the error of each output."""

    samples: int
    ranges: dict[str, tuple[float, float]]
    layers: tuple[LayerError, ...]
    floats: frozenset[str]
    errors: dict[str, float]
    strange: int
    """Values that were not finite, and count for no range."""
    tried: tuple[tuple[int, float], ...] = ()
    """How many nodes were left in float, and the largest error of an output then."""
    method: Method = "min-max"
    """What the ranges were found by."""
    corrected: bool = False
    """Whether biases make up for mean errors."""

    @property
    def error(self) -> float:
        """The largest error of an output."""
        return max(self.errors.values(), default=0.0)


def quantize_module(
    module: ModuleOp, data: Any, asked: Asked, progress: Callable[[str], None] = lambda _: None
) -> Quantization:
    """Quantises a module in place; shapes are inferred. `IgniterError` where nothing can be, or no choice meets
    `max_error`."""
    asked.style.checked()
    if asked.calibrate not in (*METHODS, BEST):
        raise IgniterError(f"ranges are found by {', '.join((*METHODS, BEST))}, not by '{asked.calibrate}'")
    if not 50 < asked.percentile <= 100:
        raise IgniterError(f"the percentile is over 50 and up to 100, not {asked.percentile:g}")
    if asked.max_error is not None and not asked.max_error > 0:
        raise IgniterError(f"the largest error that is allowed is positive, not {asked.max_error:g}")
    with tempfile.TemporaryDirectory(prefix="igniter-quantize-") as folder:
        return _Run(module, data, asked, Path(folder), progress).run()


class _Run:
    def __init__(self, module: ModuleOp, data: Any, asked: Asked, folder: Path, progress: Callable[[str], None]):
        self.module, self.asked, self.folder, self.progress = module, asked, folder, progress
        self.chosen = candidates(module, asked.ops, asked.only, asked.leave)
        self.reference = self._session(module, "float")
        names = [value.name for value in self.reference.get_inputs()]
        self.samples: Samples = samples_of(data, names)
        self.shifts: dict[str, Any] = {}
        self.method: Method = "min-max"

    def run(self) -> Quantization:
        """All of it."""
        asked = self.asked
        self.progress("calibrating")
        seen = observe(self._session(self.module, "seen", self._values()), self._values(), self.samples, self.progress)
        ranges, layers = self._best(seen)
        floats, errors, tried = self._choose(ranges, layers)
        kept = [c for c in self.chosen if c.name not in floats]
        quantize(self.module, kept, ranges, asked.style, self.shifts)
        strange = sum(h.strange for h in seen.histograms.values())
        methods = (self.method, bool(self.shifts))
        return Quantization(
            seen.samples, ranges, tuple(layers), frozenset(floats), errors, strange, tuple(tried), *methods
        )

    def _best(self, seen: Observation) -> tuple[dict[str, tuple[float, float]], list[LayerError]]:
        """The ranges of the method, and each node's own error with them. Of several methods, with biases corrected and
        without, what has the least error of the whole."""
        asked = self.asked
        methods: tuple[Method, ...] = METHODS if asked.calibrate == BEST else (asked.calibrate,)
        found: list[tuple[float, Method, dict[str, Any], dict[str, tuple[float, float]], list[LayerError]]] = []
        for method in methods:
            self.progress(f"measuring each node: {method}")
            ranges = {n: h.range(method, asked.percentile) for n, h in seen.histograms.items()}
            layers, shifts = self._layers(ranges)
            for chosen in ({}, shifts) if asked.calibrate == BEST and shifts else (shifts,):
                self.shifts = chosen
                error = 0.0
                if asked.calibrate == BEST:
                    error = max(self._errors(ranges, ()).values(), default=0.0)
                found.append((error, method, chosen, ranges, layers))
        _, self.method, self.shifts, ranges, layers = min(found, key=lambda each: each[0])
        return ranges, layers

    def _values(self) -> list[str]:
        """The values whose ranges are needed: factors, and results of convolutions."""
        graph = main_graph(self.module)
        found: dict[str, None] = {}
        for candidate in self.chosen:
            for index in candidate.computed:
                found[value_name(candidate.op.operands[index], graph)] = None
            if candidate.op.op_type in WITH_RESULTS:
                found[value_name(candidate.op.results[0], graph)] = None
        return list(found)

    def _layers(self, ranges: dict[str, tuple[float, float]]) -> tuple[list[LayerError], dict[str, Any]]:
        copy = self.module.clone()
        nodes = candidates(copy, self.asked.ops, self.asked.only, self.asked.leave)
        names = probes(copy, nodes, ranges, self.asked.style)
        session = self._session(copy, "probes", [n for each in names for n in each if n])
        layers, means = layer_errors(session, nodes, names, self.samples)
        return layers, means if self.asked.correct else {}

    def _choose(
        self, ranges: dict[str, tuple[float, float]], layers: Sequence[LayerError]
    ) -> tuple[set[str], dict[str, float], list[tuple[int, float]]]:
        """The nodes that stay in float: of those with the largest errors the fewest with which the whole is good."""
        order = [layer.name for layer in sorted(layers, key=lambda each: -each.relative)]
        most, tried = self.asked.max_error, list[tuple[int, float]]()

        def errors_with(count: int) -> dict[str, float]:
            self.progress(f"measuring with {count} of {len(order)} nodes in float")
            found = self._errors(ranges, order[:count])
            tried.append((count, max(found.values(), default=0.0)))
            return found

        errors = errors_with(0)
        if most is None or tried[-1][1] <= most:
            return set(), errors, tried
        # Between `bad`, too few, and `good`, enough: with all of them in float there is no error.
        bad, good, best = 0, len(order), dict.fromkeys(errors, 0.0)
        while good - bad > 1:
            middle = (bad + good) // 2
            found = errors_with(middle)
            if tried[-1][1] <= most:
                good, best = middle, found
            else:
                bad = middle
        if good == len(order):
            least = min(error for _, error in tried)
            raise IgniterError(
                f"no choice of nodes meets an error of {most:g}: with one node quantised it is {tried[-1][1]:.2g}, and "
                f"the least that was found is {least:.2g}; give another --calibrate, or a larger --max-error"
            )
        return set(order[:good]), best, tried

    def _errors(self, ranges: dict[str, tuple[float, float]], floats: Collection[str]) -> dict[str, float]:
        copy = self.module.clone()
        nodes = candidates(copy, self.asked.ops, self.asked.only, self.asked.leave)
        quantize(copy, [c for c in nodes if c.name not in floats], ranges, self.asked.style, self.shifts)
        return output_errors(self.reference, self._session(copy, "quantized"), self.samples)

    def _session(self, module: ModuleOp, name: str, outputs: Sequence[str] = ()) -> Any:
        """A session of a module with more outputs."""
        from igniter.frontend import save_model
        from igniter.frontend.surgery import read_proto, with_outputs
        from igniter.runtime.session import SessionError, make_session

        path = self.folder / f"{name}.onnx"
        save_model(module, path, external_data_threshold=1024)
        if outputs:
            proto, _ = read_proto(str(path))
            present = {output.name for output in proto.graph.output}
            with_more = with_outputs(proto, [n for n in outputs if n not in present])
            path.write_bytes(with_more.SerializeToString())
        try:
            return make_session(path, config=EXACT, log_severity_level=FATAL)
        except SessionError:
            # With that, ONNX Runtime 1.32 refuses a weight that two nodes have dequantised: it adds it anew for both.
            return make_session(path, log_severity_level=3)


__all__ = ["Asked", "Quantization", "quantize_module"]
