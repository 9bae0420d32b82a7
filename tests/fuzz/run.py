"""Running cases: Igniter's compiled model beside ONNX Runtime, in a process of its own, since native code may crash."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx

import igniter
from tests.fuzz.graph import Array, Case
from tests.isolated import Lost, run_isolated

TOLERANCE = {"float32": 1e-4, "float64": 1e-9}


@dataclass(frozen=True)
class Outcome:
    """The outcome of one case."""

    seed: int
    status: str
    """ok | mismatch | error (Igniter raised) | crash | timeout | invalid (ORT does not run the model)
    | ort (ORT differs, and ONNX's own evaluator agrees with Igniter: as it is with many reductions of nothing)"""
    message: str = ""
    kernels: int = 0
    nodes: int = 0
    left: int = 0
    """Nodes that ONNX Runtime runs."""
    dropped: tuple[str, ...] = ()
    """Why regions went back to ONNX Runtime after they were formed."""

    @property
    def failed(self) -> bool:
        return self.status not in ("ok", "invalid", "ort")


def run_case(case: Case) -> Outcome:
    """Compiles and compares one case in this process."""
    try:
        expected = reference(case.model, case.feeds)
    except Exception as error:
        return Outcome(case.seed, "invalid", _first_line(error))
    try:
        return _compare(case, expected)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome(case.seed, "error", f"{type(error).__name__}: {_first_line(error)} ({where.name})")


def _compare(case: Case, expected: Sequence[Sequence[Array]]) -> Outcome:
    from igniter.verification.verify import compare_output

    artifact = compiled(case)
    report: dict[str, Any] = artifact.report
    names = [o.name for o in case.model.graph.output]
    session = artifact.session(intra_op_num_threads=case.threads)
    dropped = tuple(entry["reason"] for entry in report["left_to_onnxruntime"] if entry["kind"] == "failed")
    left = report["nodes_after"] - report["regions"]
    counts = (report["kernels"], len(case.model.graph.node), left, dropped)
    for feed, wanted, sizes in zip(case.feeds, expected, case.shapes, strict=True):
        for name, e, a in zip(names, wanted, session.run(None, feed), strict=True):
            result = compare_output(name, e, a, tolerance(case, name, np.asarray(e).dtype.name))
            if result.ok or explained_by_rounding(case, feed, name, e, result.max_difference):
                continue
            message = f"{name} with {sizes}: {result.reason}"
            opinion = second_opinion(case.model, feed, names.index(name))
            if opinion is not None and compare_output(name, opinion, a).ok:
                return Outcome(case.seed, "ort", message, *counts)
            return Outcome(case.seed, "mismatch", message, *counts)
    return Outcome(case.seed, "ok", "", *counts)


def compiled(case: Case) -> igniter.Artifact:
    """The model of a case, compiled for this machine, or for a GPU that the driver of `tests.backends.triton` is."""
    if not case.gpu:
        # Tiles where they are faster, and wherever they can be.
        tiles = ("auto", "on")[case.seed % 2]
        options = igniter.CompileOptions(fusion_passes=case.fusion, winograd=tiles)
        return igniter.compile(case.model, options=options, verify=False)
    from tests.backends.triton.recording_driver import knowing, standing_driver

    fusion = ",".join(each for each in case.fusion.split(",") if each.startswith(("form-fusion-regions", "lift")))
    options = igniter.CompileOptions(
        target="cuda", provider="CPUExecutionProvider", fusion_passes=fusion or "cuda-fusion"
    )
    with knowing(standing_driver()):
        return igniter.compile(case.model, options=options, verify=False, cache=False)


def tolerance(case: Case, name: str, dtype: str) -> float | None:
    """A double that a cast made of something has the precision of that."""
    wanted, dtypes = {name}, {dtype}
    for node in reversed(case.model.graph.node):
        if wanted.intersection(node.output):
            wanted.update(node.input)
            if node.op_type in ("Cast", "CastLike"):
                dtypes.add("float32")
    return max((TOLERANCE[d] for d in dtypes if d in TOLERANCE), default=None) if dtype in TOLERANCE else None


def reference(model: onnx.ModelProto, feeds: Sequence[dict[str, Array]]) -> list[list[Array]]:
    """The outputs that ORT computes, without its own rewriting of the graph, and with exact integers."""
    import onnxruntime as ort

    from igniter.frontend.exact_integers import exact_bytes

    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(exact_bytes(model), options, providers=["CPUExecutionProvider"])
    return [session.run(None, feed) for feed in feeds]


def second_opinion(model: onnx.ModelProto, feed: dict[str, Array], index: int) -> Array | None:
    """The result of ONNX's own evaluator for an output, node by node; None if a node cannot be evaluated.

    A node on which it fails (numpy has no maximum of nothing) is ORT's, alone.
    """
    from onnx.reference import ReferenceEvaluator

    graph, name = model.graph, model.graph.output[index].name
    values = {**feed, **{w.name: onnx.numpy_helper.to_array(w) for w in graph.initializer}}
    for node in _ancestors(model, name):
        alone = _one_node(model, node, values)
        inputs = {i: values[i] for i in node.input if i}
        try:
            results = ReferenceEvaluator(alone).run(None, inputs)
        except Exception:
            try:
                ((*results,),) = reference(alone, [inputs])
            except Exception:
                return None
        values.update(zip([o for o in node.output if o], map(np.asarray, results), strict=True))
    return values[name]


def _ancestors(model: onnx.ModelProto, name: str) -> list[onnx.NodeProto]:
    """The nodes that `name` depends on, in order."""
    wanted, found = {name}, []
    for node in reversed(model.graph.node):
        if wanted.intersection(node.output):
            wanted.update(node.input)
            found.append(node)
    return found[::-1]


def _one_node(model: onnx.ModelProto, node: onnx.NodeProto, values: dict[str, Array]) -> onnx.ModelProto:
    inputs = [
        onnx.helper.make_tensor_value_info(i, onnx.helper.np_dtype_to_tensor_dtype(values[i].dtype), values[i].shape)
        for i in dict.fromkeys(node.input)
        if i
    ]
    outputs = [onnx.ValueInfoProto(name=o) for o in node.output if o]
    graph = onnx.helper.make_graph([node], "alone", inputs, outputs)
    return onnx.helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def explained_by_rounding(case: Case, feed: dict[str, Array], name: str, expected: Array, difference: float) -> bool:
    """True if ORT's own result moves as much when inputs that are no integers change in their last bits."""
    if np.asarray(expected).dtype.kind != "f" or not np.isfinite(difference):
        return False
    rng = np.random.default_rng(0)
    index = [o.name for o in case.model.graph.output].index(name)
    moved = 0.0
    for _ in range(6):
        noisy = {k: _perturbed(rng, v) for k, v in feed.items()}
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        for weight in model.graph.initializer:
            array = _perturbed(rng, onnx.numpy_helper.to_array(weight))
            weight.CopyFrom(onnx.numpy_helper.from_array(array, weight.name))
        ((*outputs,),) = reference(model, [noisy])
        both = np.isfinite(outputs[index]) & np.isfinite(expected)
        with np.errstate(invalid="ignore"):
            moved = max(moved, float(np.max(np.abs(outputs[index] - expected), initial=0.0, where=both)))
    return difference <= 16 * moved


def _perturbed(rng: np.random.Generator, array: Array) -> Array:
    if array.dtype.kind != "f":
        return array
    ulp = float(np.finfo(array.dtype).eps)
    with np.errstate(all="ignore"):
        moved = array * (1 + ulp * rng.choice([-2, 2], array.shape))
        return np.asarray(np.where(array == np.round(array), array, moved), array.dtype)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0][:300]


def make_case_of(kind: str, seed: int, gpu: bool = False) -> Case:
    """The case of a seed: `graphs` of anything, networks of `images`, or quantised ops whose `codes` are equal."""
    from tests.fuzz.codes import make_codes_case
    from tests.fuzz.generator import make_case
    from tests.fuzz.images import make_image_case

    case = {"graphs": make_case, "images": make_image_case, "codes": make_codes_case}[kind](seed)
    return replace(case, gpu=gpu)


def run_item(item: tuple[str, int, bool]) -> Outcome:
    """Makes and runs a case in this process, given its kind, its seed and whether it is for a GPU."""
    return run_case(make_case_of(*item))


def run_seeds(seeds: Sequence[int], kind: str = "graphs", gpu: bool = False) -> Iterator[Outcome]:
    """The outcome of every seed, each safe from crashes of the others."""
    for (_, seed, _), found in run_isolated("tests.fuzz.run:run_item", [(kind, seed, gpu) for seed in seeds]):
        yield Outcome(seed, found.status, found.message) if isinstance(found, Lost) else found
