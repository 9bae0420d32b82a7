"""Static quantisation of a model: calibrate, measure each node, choose the nodes in float, measure the whole.

Every step streams the samples one by one. The intermediate models are written to a temporary folder with their weights
in a shared file beside them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from igniter.dialects.onnx.structure import main_graph
from igniter.errors import IgniterError
from igniter.frontend.surgery import read_proto
from igniter.toolbox.quantize.bias_shifts import takes_shift
from igniter.toolbox.quantize.calibration.calibrate import Observation
from igniter.toolbox.quantize.calibration.corrections import channels_of, find_shifts, shift_dims, with_shifts
from igniter.toolbox.quantize.calibration.errors import LayerError, OutputErrors, Samples
from igniter.toolbox.quantize.calibration.folds import best_way, observe_sites, scaled_module
from igniter.toolbox.quantize.calibration.histogram import METHODS, Method
from igniter.toolbox.quantize.calibration.range_choice import advantage, choose, range_by_value
from igniter.toolbox.quantize.calibration.samples import samples as samples_of
from igniter.toolbox.quantize.calibration.workbench import Workbench, open_exactly, save
from igniter.toolbox.quantize.channel_sites import sites
from igniter.toolbox.quantize.quantizable_form import quantizable_form
from igniter.toolbox.quantize.quantization_plan import outside, value_name
from igniter.toolbox.quantize.quantize_model import Parameters, Style, quantize
from igniter.toolbox.quantize.scale_channels import scale_channels

Ranges = dict[str, tuple[float, float]]
BEST = "best"
"""The choice, for each value, of the method with the least error of its readers."""


@dataclass(frozen=True)
class Asked:
    """The options of a quantisation."""

    calibrate: Method | Literal["best"] = "min-max"
    percentile: float = 99.999
    style: Style = field(default_factory=Style)
    ops: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    leave: tuple[str, ...] = ()
    max_error: float | None = None
    """The limit of the error of an output."""
    correct: bool = True
    """True if biases compensate the mean error of each channel."""
    equalize: bool = True
    """True if channels of values are scaled, for an even use of the codes."""
    held: Any = None
    """Samples excluded from all fits; they must satisfy `max_error` too."""


@dataclass(frozen=True)
class Quantization:
    """The outcome of a quantisation: the parameters from calibration, each node's own error, the nodes in float, and
    the error of each output."""

    samples: int
    parameters: Parameters
    layers: tuple[LayerError, ...]
    floats: frozenset[str]
    errors: dict[str, float]
    strange: int
    """The number of non-finite values; ranges ignore them."""
    tried: tuple[tuple[int, float], ...] = ()
    """The numbers of nodes tried in float, each with the largest error of an output."""
    method: Method | Literal["best"] = "min-max"
    """The method for ranges; `best` if each value has its own best method."""
    cut: int = 0
    """The number of values whose range is less than the observed one; for the others the full range has a smaller
    error."""
    wide: bool = False
    """True if ranges have a margin beyond the observed values."""
    held: dict[str, float] | None = None
    """The errors over the held-out samples, if any."""
    outside: tuple[tuple[str, str], ...] = ()
    """The unsuitable nodes of quantised op types, with the reasons."""

    @property
    def ranges(self) -> Ranges:
        """The range of each quantised value."""
        return dict(self.parameters.ranges)

    @property
    def corrected(self) -> bool:
        """True if biases compensate mean errors."""
        return bool(self.parameters.shifts)

    @property
    def error(self) -> float:
        """The largest error of an output."""
        return max(self.errors.values(), default=0.0)


def quantize_module(
    module: ModuleOp, data: Any, asked: Asked, progress: Callable[[str], None] = lambda _: None
) -> Quantization:
    """Quantises a module in place; shapes are inferred. Raises `IgniterError` if no node can be quantised, or no choice
    meets `max_error`."""
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
        self.target, self.asked, self.progress = module, asked, progress
        reference = open_exactly(save(module, folder / "float.onnx"))
        self.bench = Workbench(reference, folder, asked.style, asked.ops, asked.only, asked.leave)
        names = [value.name for value in reference.get_inputs()]
        self.samples: Samples = samples_of(data, names)
        self.judges = [self.samples] if asked.held is None else [self.samples, samples_of(asked.held, names)]
        self.module = module
        self.scales: dict[str, Any] = {}
        self.shifts: dict[str, Any] = {}
        self.cut = 0

    def run(self) -> Quantization:
        """Runs all steps."""
        asked, bench = self.asked, self.bench
        quantizable_form(Context(), self.target)
        bench.candidates(self.target)
        apart = outside(self.target, asked.ops)
        held = observe_sites(bench, self.target, self.samples, self.progress) if asked.equalize else {}
        way = best_way(bench, self.target, held, self.samples, self.progress)
        if way.scaled:
            self.module, self.scales = scaled_module(bench, self.target, held)
        self.progress("calibrating")
        seen = bench.observe(self.module, self.samples, self.progress)
        ranges, layers = self._ranges(seen, way.wide)
        floats, errors, tried = self._choose(ranges, layers)
        self._apply(ranges, floats)
        return Quantization(
            seen.samples,
            Parameters(ranges, self.scales, self.shifts),
            tuple(layers),
            frozenset(floats),
            errors[0].pooled,
            sum(h.strange for h in seen.histograms.values()),
            tuple(tried),
            asked.calibrate,
            self.cut,
            way.wide,
            errors[1].pooled if asked.held is not None else None,
            apart,
        )

    def _apply(self, ranges: Ranges, floats: Collection[str]) -> None:
        """Quantises the given module, with those scales of channels that are still useful."""
        nodes, graph = self.bench.candidates(self.target), main_graph(self.target)
        kept = {node.name for node in nodes} - set(floats)
        served = {site.name for site in sites(graph, nodes) if site.serves(kept)}
        self.scales = {name: scale for name, scale in self.scales.items() if name in served}
        scale_channels(graph, nodes, self.scales)
        taken = [c for c in self.bench.candidates(self.target) if c.name in kept]
        quantize(self.target, taken, ranges, self.asked.style, self.shifts)

    def _ranges(self, seen: Observation, wide: bool) -> tuple[Ranges, list[LayerError]]:
        """Returns the ranges, and each node's own error with them. Ranges proposed by a method are accepted value by
        value if they reduce the errors of nodes, and as a whole, like the corrected biases, if they reduce those of
        outputs beyond chance."""
        asked, bench = self.asked, self.bench
        methods: tuple[Method, ...] = METHODS if asked.calibrate == BEST else ("min-max",)
        if asked.calibrate not in methods and asked.calibrate != BEST:
            methods = (*methods, asked.calibrate)
        ranges: dict[Method, Ranges] = {}
        layers: dict[Method, list[LayerError]] = {}
        for method in methods:
            self.progress(f"measuring each node: {method}")
            ranges[method] = {
                name: h.extent(wide) if method == "min-max" else h.range(method, asked.percentile)
                for name, h in seen.histograms.items()
            }
            layers[method] = bench.layers(self.module, ranges[method], self.samples)
        found = [(ranges["min-max"], layers["min-max"])]
        if len(methods) > 1:
            nodes = bench.candidates(self.module)
            chosen = range_by_value(main_graph(self.module), nodes, seen.histograms, ranges, layers)
            found.append((chosen, bench.layers(self.module, chosen, self.samples)))
        errors = [bench.errors(self.module, each, [self.samples])[0] for each, _ in found]
        taken = choose(errors)
        kept, own = found[taken]
        self.cut = sum(kept[name] != pair for name, pair in found[0][0].items())
        if asked.correct:
            self.shifts = self._corrections(kept)
        corrected = bench.errors(self.module, kept, [self.samples], self.shifts)[0] if self.shifts else errors[taken]
        if corrected.largest > errors[taken].largest or advantage(corrected, errors[taken]) > 0:
            self.shifts = {}
        return kept, own

    def _corrections(self, ranges: Ranges) -> dict[str, Any]:
        """Returns the corrections of the biases."""
        bench, graph = self.bench, main_graph(self.module)
        nodes = [c for c in bench.candidates(self.module) if takes_shift(c) and channels_of(c) is not None]
        if not nodes:
            return {}
        names = [value_name(c.op.results[0], graph) for c in nodes]
        copy = self.module.clone()
        quantize(copy, bench.candidates(copy), ranges, self.asked.style)
        path = save(copy, bench.folder / "shifted.onnx")
        proto, _ = read_proto(str(path))
        with_shifts(proto, {n: shift_dims(c) for n, c in zip(names, nodes, strict=True)})
        path.write_bytes(proto.SerializeToString())
        exact = bench.session(self.module, "seen", names)
        return find_shifts(exact, open_exactly(path), graph, nodes, self.samples, self.progress)

    def _choose(
        self, ranges: Ranges, layers: Sequence[LayerError]
    ) -> tuple[set[str], list[OutputErrors], list[tuple[int, float]]]:
        """Returns the nodes in float: the fewest, of the largest errors, that keep the error of the whole within the
        limit."""
        order = [layer.name for layer in sorted(layers, key=lambda each: -each.relative)]
        most, tried = self.asked.max_error, list[tuple[int, float]]()

        def errors_with(count: int) -> list[OutputErrors]:
            self.progress(f"measuring with {count} of {len(order)} nodes in float")
            found = self.bench.errors(self.module, ranges, self.judges, self.shifts, order[:count])
            tried.append((count, max(each.largest for each in found)))
            return found

        errors = errors_with(0)
        if most is None or tried[-1][1] <= most:
            return set(), errors, tried
        # Between `bad`, too few, and `good`, enough: with all of them in float the error is 0.
        bad, good, best = 0, len(order), errors
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


__all__ = ["Asked", "Quantization", "quantize_module"]
