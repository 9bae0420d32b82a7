"""`attention`: single GroupQueryAttention nodes with each form of cache, beside ONNX Runtime's, in turns.

Past and present are one buffer, as in onnxruntime-genai. Each form has a step (one new token) and a prompt of 256.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HEADS, SIZE = 8, 64
WINDOW = 1024
ROWS = 2048
"""The rows of a buffer without a window."""
STEP_KEYS, PROMPT = 1500, 256
FORMS: dict[str, dict[str, Any]] = {
    "f32": {},
    "window": {"local_window_size": WINDOW, "sliding_window_cache": 1},
    "8-bit": {"k_quant_type": "PER_CHANNEL", "v_quant_type": "PER_CHANNEL", "kv_cache_bit_width": 8},
    "4-bit": {"k_quant_type": "PER_CHANNEL", "v_quant_type": "PER_CHANNEL", "kv_cache_bit_width": 4},
    "8-bit-tensor": {"k_quant_type": "PER_TENSOR", "v_quant_type": "PER_TENSOR", "kv_cache_bit_width": 8},
}
"""The attributes of each form of cache: floats, floats of a window, codes of 8 or 4 bits."""


@dataclass(frozen=True)
class Case:
    """One form, at one size."""

    form: str
    kv_heads: int
    new: int

    @property
    def keys(self) -> int:
        """The keys after the run; more than a window has."""
        return self.new if self.new > 1 else STEP_KEYS

    @property
    def rows(self) -> int:
        return WINDOW if self.form == "window" else ROWS

    def cache_type(self) -> tuple[int, int]:
        """Returns the element type of the cache, and the elements of a row."""
        bits = FORMS[self.form].get("kv_cache_bit_width")
        if bits is None:
            return TensorProto.FLOAT, SIZE
        return (TensorProto.INT8, SIZE) if bits == 8 else (TensorProto.UINT8, SIZE // 2)


def node_model(form: str, kv_heads: int) -> onnx.ModelProto:
    """Returns one attention of a form, with symbolic sizes; its total length is the number of columns of a mask."""
    attributes, case = FORMS[form], Case(form, kv_heads, 1)
    element, row = case.cache_type()
    quantized = element != TensorProto.FLOAT
    scales = ["k_scale", "v_scale"] if quantized else []
    operands = ["q", "k", "v", "past_key", "past_value", "lengths", "total", *[""] * 5, *scales]
    results = ["y", "present_key", "present_value"]
    node, info = helper.make_node, helper.make_tensor_value_info
    nodes = [
        node("Shape", ["mask"], ["dims"], start=1),
        node("Squeeze", ["dims"], ["count"]),
        node("Cast", ["count"], ["total"], to=TensorProto.INT32),
        node(
            "GroupQueryAttention",
            operands if scales else operands[:7],
            results,
            domain="com.microsoft",
            num_heads=HEADS,
            kv_num_heads=kv_heads,
            **attributes,
        ),
    ]
    floats, cache = TensorProto.FLOAT, [1, kv_heads, "rows", row]
    inputs = [info("q", floats, [1, "new", HEADS * SIZE])]
    inputs += [info(name, floats, [1, "new", kv_heads * SIZE]) for name in "kv"]
    inputs += [info(f"past_{part}", element, cache) for part in ("key", "value")]
    inputs += [info("lengths", TensorProto.INT32, [1]), info("mask", TensorProto.INT64, [1, "keys"])]
    outputs = [info("y", floats, [1, "new", HEADS * SIZE])]
    outputs += [info(name, element, cache) for name in results[1:]]
    dims = (1, kv_heads, 1, SIZE) if attributes.get("k_quant_type") == "PER_CHANNEL" else (1,)
    width = 4.0 / (7 if attributes.get("kv_cache_bit_width") == 4 else 127)
    stored = [numpy_helper.from_array(np.full(dims, width, np.float32), name) for name in scales]
    graph = helper.make_graph(nodes, "attention", inputs, outputs, stored)
    imports = [helper.make_opsetid("", 22), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def bound_run(session: Any, case: Case) -> Callable[[], np.ndarray[Any, Any]]:
    """Returns a function that runs a session once and returns its result. Past and present are one buffer."""
    import onnxruntime as ort

    rng, (element, row) = np.random.default_rng(case.new), case.cache_type()
    arrays: dict[str, np.ndarray[Any, Any]] = {"q": rng.standard_normal((1, case.new, HEADS * SIZE), np.float32)}
    arrays |= {name: rng.standard_normal((1, case.new, case.kv_heads * SIZE), np.float32) for name in "kv"}
    for name in ("past_key", "past_value"):
        cache = rng.standard_normal((1, case.kv_heads, case.rows, row), np.float32)
        codes = (40 * cache).astype(np.int8)
        arrays[name] = (
            cache if element == TensorProto.FLOAT else codes if element == TensorProto.INT8 else codes.view(np.uint8)
        )
    arrays["lengths"] = np.array([case.keys - 1], np.int32)
    arrays["mask"] = np.ones((1, case.keys), np.int64)
    values: dict[str, Any] = {name: ort.OrtValue.ortvalue_from_numpy(array) for name, array in arrays.items()}
    result = ort.OrtValue.ortvalue_from_numpy(np.zeros((1, case.new, HEADS * SIZE), np.float32))
    binding = session.io_binding()
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_ortvalue_output("y", result)
    for part in ("key", "value"):
        binding.bind_ortvalue_output(f"present_{part}", values[f"past_{part}"])

    def run() -> np.ndarray[Any, Any]:
        session.run_with_iobinding(binding)
        return result.numpy()

    return run


def timed(runs: Sequence[Callable[[], Any]], rounds: int, seconds: float) -> list[list[float]]:
    """Returns the seconds of a run of each, in rounds of turns."""
    counts: list[int] = []
    for run in runs:
        run()
        start = time.perf_counter()
        run()
        counts.append(max(1, int(seconds / (time.perf_counter() - start))))
    found: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for times, run, count in zip(found, runs, counts, strict=True):
            start = time.perf_counter()
            for _ in range(count):
                run()
            times.append((time.perf_counter() - start) / count)
    return found


def run_attention(forms: Sequence[str], kv_heads: Sequence[int], threads: Sequence[int], rounds: int) -> int:
    """Prints microseconds of steps and prompts and the speed over ONNX Runtime: medians over the rounds."""
    import igniter
    from igniter.runtime.session import make_session

    print("cache | heads of keys | threads | new | keys | ORT us | Igniter us | speed over ORT | largest difference")
    for form in forms:
        for shared in kv_heads:
            model = node_model(form, shared)
            artifact = igniter.load(model).compile(verify=False)
            for count in threads:
                sessions = [
                    make_session(model.SerializeToString(), intra_op_num_threads=count),
                    artifact.session(intra_op_num_threads=count),
                ]
                for new in (1, PROMPT):
                    case = Case(form, shared, new)
                    runs = [bound_run(session, case) for session in sessions]
                    error = float(np.abs(runs[0]() - runs[1]()).max())
                    theirs, ours = timed(runs, rounds, 0.05)
                    ratio = statistics.median(a / b for a, b in zip(theirs, ours, strict=True))
                    first = f"{form} | {shared} | {count} | {new} | {min(case.keys, case.rows)}"
                    times = " | ".join(f"{1e6 * statistics.median(t):.0f}" for t in (theirs, ours))
                    print(f"{first} | {times} | {ratio:.2f} | {error:.1e}", flush=True)
    return 0
