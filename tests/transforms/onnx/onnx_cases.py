"""Models written in ONNX's text form, run through passes and compared with ORT running them as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import onnx
import onnx.parser
import onnxruntime as ort
from xdsl.dialects.builtin import ModuleOp

from igniter.context import IgniterContext
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.structure import main_graph
from igniter.frontend import export_model, import_model
from igniter.registry import load_pass

ALL = (
    "infer-shapes",
    "canonicalize-onnx",
    "fold-constants",
    "eliminate-common-nodes",
    "infer-shapes",
    "canonicalize-onnx",
    "recompose",
    "eliminate-dead-nodes",
)


def parse(graph: str, opset: int = 18, microsoft: bool = False) -> onnx.ModelProto:
    """A model around a graph in ONNX's text form."""
    imports = f'"" : {opset}' + (', "com.microsoft" : 1' if microsoft else "")
    return onnx.parser.parse_model(f"<ir_version: 8, opset_import: [{imports}]>\n{graph}")


def run_passes(model: onnx.ModelProto, passes: Sequence[str] = ALL) -> ModuleOp:
    """The module after the passes; verified after each."""
    module = import_model(model)
    for name in passes:
        load_pass(name)().apply(IgniterContext(), module)
        module.verify()
    return module


def run(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, feeds)


def check(
    model: onnx.ModelProto, runs: Sequence[dict[str, np.ndarray]], passes: Sequence[str] = ALL, exact: bool = True
) -> ModuleOp:
    """Asserts that the passes change no result: to the bit, or by a few roundings where `exact` is off."""
    module = run_passes(model, passes)
    exported = export_model(module)
    onnx.checker.check_model(exported)
    for feeds in runs:
        for before, after in zip(run(model, feeds), run(exported, feeds), strict=True):
            assert before.shape == after.shape and before.dtype == after.dtype
            if exact:
                assert before.tobytes() == after.tobytes()
            else:
                np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)
    return module


def counts(module: ModuleOp) -> Counter[str]:
    """The nodes of the main graph by op, constants aside."""
    names = (op.op_type for op in main_graph(module).body.ops if isinstance(op, OnnxOp))
    return Counter(n for n in names if n != "Constant")


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
