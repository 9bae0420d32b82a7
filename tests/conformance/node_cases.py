"""One backend node case of ONNX in one of five modes, compiled and compared with what the case expects.

static     as the onnx package has it
dynamic    every dim but 1 a symbol, equal sizes the same one
parameters integer inputs of rank 0 and 1 (axes, shapes, sizes) initializers
constant   every tensor input an initializer
attributes the attributes varied, one at a time, compared with what ONNX Runtime computes
"""

from __future__ import annotations

import contextlib
import os
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.test_case import TestCase

from igniter.frontend.ort_values import run
from tests.conformance.wide import DIGITS, widened, within_units

MODES = ("static", "dynamic", "parameters", "constant", "attributes")
BOUND = "cpu-onnx,bind-values"
"""Parameters that only a run knows are bound, too."""
GPU_BOUND = "cuda-onnx,bind-values"
GPU_EVERYTHING = "form-fusion-regions{contractions=all singletons=all views=all},lift-constants"
EVERYTHING = "form-fusion-regions{contractions=all singletons=all views=all},pack-weights"
AS_ORT = frozenset(
    (
        "test_maxunpool_export_with_output_shape",
        "test_resize_downsample_scales_linear_align_corners",
        "test_resize_downsample_scales_cubic_align_corners",
    )
)
"""Cases in which ONNX Runtime departs from ONNX (its indices count in the shape that is given, it aligns corners by the
size that it rounded), and kernels do as it does, to its digits: what takes its place in a model has to."""
GPU_UNITS = 2
"""In the last place of 16-bit floats, as ONNX's own runner allows them: an attention's weights are rounded to 16 bits
before they are divided by their sum, and so is what is divided."""
ORT_IR_VERSION = 11
# And in its newest opset, which ORT otherwise refuses as unreleased.
os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"
FAILURES = ("mismatch", "error", "crash", "timeout")


@dataclass(frozen=True)
class CaseResult:
    """The outcome of a case."""

    name: str
    mode: str
    op: str
    """The op of a case of one node; `(function body)` for an op written out in others."""
    status: str
    """native (no node left to ORT) | partly | fallback (ORT runs all) | folded (nothing left to run)
    | no-ort (a node is left, and this ORT cannot run it) | skipped (the mode does not apply)
    | mismatch | error (Igniter raised) | crash | timeout"""
    reason: str = ""


@cache
def node_cases() -> dict[str, TestCase]:
    """The cases by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        return {case.name: case for case in load_model_tests(kind="node")}


def run_named(key: tuple[str, str, bool]) -> CaseResult:
    """The case of a name in a mode, compiled for GPUs or not."""
    name, mode, gpu = key
    return run_node_case(node_cases()[name], mode, gpu)


def run_node_case(case: TestCase, mode: str, gpu: bool = False) -> CaseResult:
    """Compiles and compares in this process; what is compiled for GPUs is computed in Triton's interpreter."""
    nodes = case.model.graph.node
    op = nodes[0].op_type if len(nodes) == 1 else "(function body)"
    if mode == "attributes":
        return _run_variants(case, op, gpu)

    inputs, expected = case.data_sets[0]
    model, feed = prepared(case.model, list(inputs), mode)
    if model is None:
        return CaseResult(case.name, mode, op, "skipped")
    return _compile_and_compare(model, feed, [fed(e) for e in expected], case, op, mode, gpu)


def _compiled(model: onnx.ModelProto, gpu: bool) -> tuple[Any, Any]:
    """The module and the compiled model."""
    import igniter

    module = igniter.load(model)
    if not gpu:
        options = igniter.CompileOptions(onnx_passes=BOUND, fusion_passes=EVERYTHING)
        return module, module.compile(options=options, verify=False)
    from tests.backends.triton.recording_driver import knowing, standing_driver

    with knowing(standing_driver()):
        options = igniter.CompileOptions(
            target="cuda", provider="CPUExecutionProvider", onnx_passes=GPU_BOUND, fusion_passes=GPU_EVERYTHING
        )
        # What the driver computes it has to have seen.
        return module, module.compile(options=options, verify=False, cache=False)


def _compile_and_compare(
    model: onnx.ModelProto,
    feed: dict[str, Any],
    expected: list[Any],
    case: TestCase,
    op: str,
    mode: str,
    gpu: bool = False,
) -> CaseResult:
    try:
        module, artifact = _compiled(model, gpu)
    except Exception as error:
        return CaseResult(case.name, mode, op, "error", f"{type(error).__name__}: {_first_line(error)}"[:600])
    compiled = compiled_case(case, mode, op, model, feed, expected, (module, artifact))
    try:
        found = run(artifact.session(intra_op_num_threads=1, log_severity_level=4), feed)
    except Exception as error:
        return compiled.failed(error)
    return compiled.judged(found, GPU_UNITS if gpu else 1)


@dataclass(frozen=True)
class CompiledCase:
    """A compiled case, to be judged by what it computes, here or on another machine."""

    case: TestCase
    mode: str
    op: str
    model: onnx.ModelProto
    feed: dict[str, Any]
    expected: list[Any]
    status: str
    reason: str
    """Why nodes are left to ONNX Runtime."""
    left: int
    """The number of these nodes."""

    @property
    def ort_computes(self) -> bool:
        """True if ONNX Runtime computes a part: nodes that are left, or constants, which it folds too."""
        return self.left > 0 or self.status == "folded"

    def _result(self, status: str, reason: str = "") -> CaseResult:
        return CaseResult(self.case.name, self.mode, self.op, status, reason[:600])

    def failed(self, error: Exception) -> CaseResult:
        """The result of a run that raised an error."""
        if self.ort_computes and _ort_fails(self.model, self.feed):
            return self._result("no-ort", self.reason or _first_line(error))
        return self._result("error", f"running: {_first_line(error)}")

    def judged(self, found: list[Any], units: int = 1) -> CaseResult:
        """The result of a run with outputs; `units` in the last place are allowed for 16-bit floats."""
        names = (o.name for o in self.model.graph.output)
        for name, e, a in zip(names, self.expected, found, strict=True):
            difference = _difference(e, a, self.case.rtol, self.case.atol)
            if difference and self.ort_computes and _ort_fails(self.model, self.feed):
                return self._result("no-ort", f"{name}: {difference}")
            if difference and not self._is_right(name, e, a, units):
                return self._result("mismatch", f"{name}: {difference}")
        return self._result(self.status, self.reason)

    def _is_right(self, name: str, expected: Any, actual: Any, units: int) -> bool:
        """True if an output is right though it differs from what the case expects."""
        model, feed, varied = self.model, self.feed, self.mode == "attributes"
        if not self.ort_computes and _ort_is_no_nearer(model, feed, name, expected, actual):
            return True
        if _is_exact_in_16_bits(model, feed, name, actual, units):
            return True
        if varied and self.status == "fallback" and len(model.graph.node) == self.left:
            # The model is as it was: ONNX Runtime left memory as it found it, as RotaryEmbedding does of an odd width.
            return True
        if varied and _evaluator_agrees(model, feed, name, actual, self.case):
            return True
        follows = self.ort_computes or self.case.name in AS_ORT
        return follows and _ort_agrees(model, feed, name, actual)


def compiled_case(
    case: TestCase,
    mode: str,
    op: str,
    model: onnx.ModelProto,
    feed: dict[str, Any],
    expected: list[Any],
    compiled: tuple[Any, Any],
) -> CompiledCase:
    """A case with its outcome; `compiled` are the module and the compiled model."""
    module, report = compiled[0], compiled[1].report
    left, regions = report["nodes_after"] - report["regions"], report["regions"]
    status = "native" if not left and regions else "partly" if regions else "fallback" if left else "folded"
    reason = _why_left(module, report) if left else ""
    return CompiledCase(case, mode, op, model, feed, expected, status, reason, left)


RANKS = ("skipped", "no-ort", "folded", "native", "partly", "fallback", "mismatch", "error")
"""Of several variants the worst counts."""


def _run_variants(case: TestCase, op: str, gpu: bool) -> CaseResult:
    """The worst of a case's variants in its attributes; ONNX Runtime says what is right."""
    from tests.conformance.attribute_cases import variants

    worst = CaseResult(case.name, "attributes", op, "skipped")
    opset = _newest_opset(case.model)
    for changed, model in variants(case):
        model.ir_version = min(model.ir_version, ORT_IR_VERSION)
        _set_opset(model, opset)
        names = [i.name for i in model.graph.input]
        feed = {n: fed(v) for n, v in zip(names, case.data_sets[0][0], strict=False) if v is not None}
        if not _ort_survives(model, feed):
            continue
        try:
            expected = _run_ort(model, feed)
        except Exception:  # whatever ORT does not run is no variant
            continue
        if any(a is None for a in expected):
            continue
        found = _compile_and_compare(model, feed, expected, case, op, "attributes", gpu)
        if RANKS.index(found.status) > RANKS.index(worst.status):
            worst = CaseResult(
                case.name, "attributes", op, found.status, f"{changed}: {found.reason}" if found.reason else ""
            )
    return worst


OLDEST = 21
"""Attributes of quantisation came to be what they are then."""


def _newest_opset(original: onnx.ModelProto) -> int:
    """The newest opset up to a model's own of which ONNX Runtime knows its ops: the onnx package may be ahead."""
    model = onnx.ModelProto()
    model.CopyFrom(original)
    model.ir_version = min(model.ir_version, ORT_IR_VERSION)
    own = next((o.version for o in model.opset_import if not o.domain), 0)
    for version in range(own, OLDEST - 1, -1):
        _set_opset(model, version)
        try:
            _session(model)
        except Exception as error:
            if "No Op registered" in str(error):
                continue
        return version
    return own


def _set_opset(model: onnx.ModelProto, version: int) -> None:
    for entry in model.opset_import:
        if not entry.domain:
            entry.version = version


def _ort_survives(model: onnx.ModelProto, feed: dict[str, Any]) -> bool:
    """True if ONNX Runtime ends by itself, in a process of its own: some attributes make it abort."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(Exception):
            _run_ort(model, feed)
        os._exit(0)
    return not os.WIFSIGNALED(os.waitpid(child, 0)[1])


def prepared(original: onnx.ModelProto, inputs: list[Any], mode: str) -> tuple[onnx.ModelProto | None, dict[str, Any]]:
    model = onnx.ModelProto()
    model.CopyFrom(original)
    # The onnx package may be ahead of ORT in the format's version, which says nothing of the op.
    model.ir_version = min(model.ir_version, ORT_IR_VERSION)
    graph = model.graph
    names = [i.name for i in graph.input]
    feed = {name: fed(value) for name, value in zip(names, inputs, strict=False) if value is not None}
    if mode == "dynamic":
        for info in graph.input:
            if info.type.HasField("tensor_type"):
                for d in info.type.tensor_type.shape.dim:
                    if d.HasField("dim_value") and d.dim_value != 1:
                        d.dim_param = f"n{d.dim_value}"
        for info in (*graph.output, *graph.value_info):
            if info.type.HasField("tensor_type"):
                for d in info.type.tensor_type.shape.dim:
                    d.ClearField("dim_value")
    if mode in ("parameters", "constant"):
        fixed = {k: v for k, v in feed.items() if mode == "constant" or (k != names[0] and _is_parameter(v))}
        if not fixed or not all(isinstance(v, np.ndarray) for v in fixed.values()):
            return None, {}
        graph.initializer.extend(numpy_helper.from_array(np.asarray(v), k) for k, v in fixed.items())
        kept = [i for i in graph.input if i.name not in fixed]
        del graph.input[:]
        graph.input.extend(kept)
        feed = {k: v for k, v in feed.items() if k not in fixed}
    return model, feed


def fed(value: Any) -> Any:
    """An input as ORT takes it: some cases hold scalars and protos."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


def _is_parameter(value: Any) -> bool:
    if isinstance(value, list):
        return False
    array = np.asarray(value)
    return array.dtype.kind in "iu" and array.dtype.itemsize >= 4 and array.ndim <= 1


def _why_left(module: Any, report: dict[str, Any]) -> str:
    reasons = [r.message for r in module.remarks.of("form-fusion-regions", "missed")]
    return "; ".join(dict.fromkeys([*(d["reason"] for d in report["left_to_onnxruntime"]), *reasons]))


def _ort_fails(model: onnx.ModelProto, feed: dict[str, Any]) -> bool:
    try:
        _run_ort(model, feed)
    except Exception:
        return True
    return False


def _ort_agrees(model: onnx.ModelProto, feed: dict[str, Any], name: str, actual: Any) -> bool:
    """True if ORT alone gives what the compiled model gives, different from what the case expects though it is."""
    index = [o.name for o in model.graph.output].index(name)
    return not _difference(_run_ort(model, feed)[index], actual, 1e-3, 1e-6)


def _ort_is_no_nearer(model: onnx.ModelProto, feed: dict[str, Any], name: str, expected: Any, actual: Any) -> bool:
    """True if a result is within rounding of what the case expects, and ORT's own at least as far from it.

    Some cases ask for more digits than a float has: an imaginary part of 1.9e-7 where it is 0.
    """
    if np.asarray(actual).dtype.kind != "f" or np.shape(actual) != np.shape(expected):
        return False
    index = [o.name for o in model.graph.output].index(name)
    try:
        own = _run_ort(model, feed)[index]
    except Exception:
        return False
    gap, scale = np.abs(actual - expected).max(), np.abs(expected).max()
    return bool(gap <= 1e-6 * scale and gap <= np.abs(own - expected).max())


def _is_exact_in_16_bits(model: onnx.ModelProto, feed: dict[str, Any], name: str, actual: Any, units: int) -> bool:
    """True if a result in 16-bit floats is within so many units in the last place of the case's in f32."""
    if np.asarray(actual).dtype.name not in DIGITS:
        return False
    from onnx.reference import ReferenceEvaluator

    wide, given = widened(model, feed)
    exact = ReferenceEvaluator(wide).run([name], given)[0]
    return within_units(actual, exact, units)


def _evaluator_agrees(model: onnx.ModelProto, feed: dict[str, Any], name: str, actual: Any, case: TestCase) -> bool:
    """True if ONNX's evaluator gives what the compiled model gives: of the discrete Fourier transform, say, of which
    ONNX Runtime's error is 1e-4 where the result is 0. The evaluator's own, in f32, is a unit in the last place of the
    largest value there."""
    from onnx.reference import ReferenceEvaluator

    try:
        (own,) = ReferenceEvaluator(model).run([name], feed)
    except Exception:  # an op or an attribute that the evaluator has not
        return False
    numbers = np.abs(own[np.isfinite(own)]) if isinstance(own, np.ndarray) and own.dtype == np.float32 else np.zeros(0)
    return not _difference(own, actual, case.rtol, max(case.atol, 2.0**-23 * float(numbers.max(initial=0))))


def _run_ort(model: onnx.ModelProto, feed: dict[str, Any]) -> list[Any]:
    return run(_session(model), feed)


def _session(model: onnx.ModelProto) -> Any:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _difference(expected: Any, actual: Any, rtol: float, atol: float) -> str:
    """Returns the difference of two results; empty if there is none, within the tolerances of the case."""
    if isinstance(expected, (list, tuple)) or isinstance(actual, (list, tuple)):
        if len(expected) != len(actual):
            return f"{len(actual)} elements, expected {len(expected)}"
        found = (_difference(e, a, rtol, atol) for e, a in zip(expected, actual, strict=True))
        return next((d for d in found if d), "")
    if expected is None or actual is None:
        return "" if expected is actual else "one of the two is absent"
    e, a = np.asarray(expected), np.asarray(actual)
    if e.shape != a.shape:
        return f"shape {list(a.shape)}, expected {list(e.shape)}"
    if e.dtype.kind in "OUS":
        return "" if (e.astype(str) == a.astype(str)).all() else "text differs"
    if a.dtype == np.uint8 and e.dtype.kind == "V" and e.dtype.itemsize == 1:
        # How ORT hands out types that numpy has no name for.
        a = a.view(e.dtype)
    if e.dtype != a.dtype:
        return f"type {a.dtype}, expected {e.dtype}"
    wide = np.complex128 if e.dtype.kind == "c" else np.float64
    same = np.isclose(a.astype(wide), e.astype(wide), rtol=rtol, atol=atol, equal_nan=True)
    return "" if same.all() else f"{np.count_nonzero(~same)} of {e.size} elements differ"


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0]
