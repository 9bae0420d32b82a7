"""Subnormal values: kept by default, 0 with `flush-values`; the mode of a thread is as before when a kernel ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.errors import IgniterError
from igniter.runtime.session import make_session
from tests.backends.cpu.float_mode import float_mode
from tests.transforms.onnx.onnx_cases import parse

Array = np.ndarray[Any, Any]

PRODUCTS = "main (float[n, 64] x, float[n, 64] z) => (float[n, 64] y) { a = Mul(x, z)\n y = Tanh(a) }"
"""Pointwise, on every thread of the pool for many rows."""
PROGRAM = """main (float[n, 64] x, float[n, 64] z) => (float[n, 64] y) {
    a = Mul(x, z)
    s = Softmax(a)
    c = CumSum(s, one)
    t = Transpose<perm = [1, 0]>(c)
    b = Mul(t, c0)
    u = Transpose<perm = [1, 0]>(b)
    y = Mul(u, x)
}"""
"""Several kernels, in a program with a team of threads."""


def program() -> onnx.ModelProto:
    model = parse(PROGRAM)
    model.graph.initializer.append(numpy_helper.from_array(np.array(1, np.int64), "one"))
    model.graph.initializer.append(numpy_helper.from_array(np.array(0.5, np.float32), "c0"))
    return model


def tiny_inputs(rows: int) -> dict[str, Array]:
    return {"x": np.full((rows, 64), 1e-39, np.float32), "z": np.full((rows, 64), 0.5, np.float32)}


@pytest.fixture(autouse=True)
def mode_is_restored() -> Any:
    before = float_mode()
    yield
    assert float_mode() == before


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("model", [parse(PRODUCTS), program()], ids=["products", "program"])
def test_values_are_kept_by_default_and_zero_on_request(model: onnx.ModelProto, threads: int) -> None:
    # More rows than fit one task.
    inputs, found = tiny_inputs(4096), dict[str, Array]()
    for mode in ("flush", "flush-values"):
        session = igniter.compile(model, subnormals=mode, verify=False).session(intra_op_num_threads=threads)
        before = float_mode()
        found[mode] = session.run(None, inputs)[0]
        assert float_mode() == before
        rng = np.random.default_rng(0)
        normal = {name: rng.standard_normal((300, 64)).astype(np.float32) for name in inputs}
        found[f"{mode}, normal"] = session.run(None, normal)[0]
    assert (found["flush"] > 0).all()
    assert (found["flush-values"] == 0).all()
    np.testing.assert_array_equal(found["flush, normal"], found["flush-values, normal"])


READERS = """main (float[n, 8] x, float[8, 8] w) => (float[n, 8] double, float[n, 8] root, float[n, 8] log,
    float[n, 8] inverse, float[n, 8] exp, float[n, 8] sigmoid, float[n, 8] softmax, float[n, 8] product,
    float[n, 8] quotient, bool[n, 8] infinite, bool[n, 8] positive) {
    double = Add(x, x)
    root = Sqrt(x)
    log = Log(x)
    inverse = Reciprocal(x)
    exp = Exp(x)
    sigmoid = Sigmoid(x)
    softmax = Softmax(x)
    product = MatMul(x, w)
    quotient = Div(x, x)
    infinite = IsInf(inverse)
    positive = Greater(x, zero)
}"""


def test_ops_read_subnormal_values_as_onnxruntime_does_or_as_zero() -> None:
    model = parse(READERS)
    model.graph.initializer.append(numpy_helper.from_array(np.array(0, np.float32), "zero"))
    inputs = {"x": np.full((9, 8), 1e-40, np.float32), "w": np.ones((8, 8), np.float32)}
    names = [o.name for o in model.graph.output]
    reference = make_session(model.SerializeToString())
    usual, of_zero = (
        dict(zip(names, reference.run(None, given), strict=True))
        for given in (inputs, {**inputs, "x": np.zeros_like(inputs["x"])})
    )
    options = {"fusion_passes": "form-fusion-regions{singletons=all contractions=all}"}
    kept, flushed = (
        dict(
            zip(
                names,
                igniter.compile(model, options=igniter.CompileOptions(subnormals=mode, **options), verify=False)
                .session()
                .run(None, inputs),
                strict=True,
            )
        )
        for mode in ("flush", "flush-values")
    )
    for name in names:
        np.testing.assert_allclose(kept[name], usual[name], rtol=1e-5, atol=0, err_msg=name)
        good = [np.allclose(flushed[name], seen[name], rtol=1e-5, atol=0, equal_nan=True) for seen in (usual, of_zero)]
        assert any(good), (name, flushed[name][0, 0])
    # The nodes that a tolerance does not cover.
    for name in ("double", "root", "product"):
        assert not flushed[name].any(), name
    assert np.isneginf(flushed["log"]).all() or np.allclose(flushed["log"], usual["log"])
    assert not np.array_equal(flushed["quotient"], usual["quotient"])


def test_nodes_of_onnxruntime_behind_a_kernel_keep_subnormal_values(tmp_path: Path) -> None:
    """The threads of the pool have their mode back when the next node runs on them."""
    artifact = igniter.compile(parse(PRODUCTS), tmp_path / "a", subnormals="flush-values", verify=False)
    model = onnx.load(artifact.model_path)
    model.graph.initializer.append(numpy_helper.from_array(np.array(1e-39, np.float32), "tiny"))
    model.graph.node.append(helper.make_node("Mul", ["y", "tiny"], ["w"]))
    model.graph.output.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, None))
    session = make_session(model.SerializeToString(), artifact.libraries, intra_op_num_threads=2)
    inputs = {"x": np.ones((20000, 64), np.float32), "z": np.full((20000, 64), 0.5, np.float32)}
    for _ in range(3):
        y, w = session.run(["y", "w"], inputs)
        assert (y > 0.4).all() and (w > 0).all()


def test_the_mode_is_restored_after_an_error() -> None:
    model = parse("main (float[5] x, int64[n] i) => (float[n] y) { g = Gather(x, i)\n y = Exp(g) }")
    options = igniter.CompileOptions(fusion_passes="form-fusion-regions{singletons=all}", subnormals="flush-values")
    session = igniter.compile(model, options=options, verify=False).session()
    before = float_mode()
    with pytest.raises(Exception, match="out of data bounds"):
        session.run(None, {"x": np.zeros(5, np.float32), "i": np.array([7])})
    assert float_mode() == before


SESSION = """
import sys
import numpy as np, onnx, onnxruntime as ort
import igniter
from tests.backends.cpu.float_mode import FLUSH_BITS, float_mode

folders = sys.argv[1:]
# ONNX Runtime sets the mode of the calling thread for the first session of a process only.
options = ort.SessionOptions()
options.add_session_config_entry("session.set_denormal_as_zero", "1")
options.intra_op_num_threads = 2
x, z = np.full((4096, 64), 1e-39, np.float32), np.full((4096, 64), 0.5, np.float32)
h = np.arange(0x3FF, dtype=np.uint16).view(np.float16)
exact = [int(b) * 2.0**-24 for b in h.view(np.uint16)]
for folder in folders:
    artifact = igniter.Artifact.load(folder)
    for library in artifact.libraries:
        options.register_custom_ops_library(str(library))
    session = ort.InferenceSession(str(artifact.model_path), options, providers=["CPUExecutionProvider"])
    assert float_mode() & FLUSH_BITS == FLUSH_BITS
    y, wide, logarithm = session.run(None, {"x": x, "z": z, "h": h})
    assert float_mode() & FLUSH_BITS == FLUSH_BITS, "a kernel undid the mode of the thread"
    assert not y.view(np.uint32).any(), "a kernel undid the mode of a thread of the pool"
    assert wide.tolist() == exact
    assert np.isneginf(logarithm).all() or np.allclose(logarithm, -130.0, atol=1.0), logarithm[0, 0]
print("honoured")
"""


@pytest.mark.slow
def test_a_session_that_sets_the_mode_is_honoured(tmp_path: Path) -> None:
    """`session.set_denormal_as_zero`: kernels run in the mode of the session, leave it, and are right in it."""
    graph = """main (float[n, 64] x, float[n, 64] z, float16[m] h) => (float[n, 64] y, float[m] w, float[n, 64] l) {
        y = Mul(x, z)
        w = Cast<to = 1>(h)
        e = Log(x)
        l = Div(e, ln2)
    }"""
    model, folders = parse(graph), list[str]()
    model.graph.initializer.append(numpy_helper.from_array(np.array(np.log(2), np.float32), "ln2"))
    for target in ("native", "x86-64") if ort.get_device() == "CPU" and sys.platform == "linux" else ("native",):
        for mode in ("flush", "flush-values"):
            folders.append(str(tmp_path / f"{target}.{mode}"))
            options = igniter.CompileOptions(
                target=target, fusion_passes="form-fusion-regions{singletons=all}", subnormals=mode
            )
            igniter.compile(model, folders[-1], options=options, verify=False, load=False)
    done = subprocess.run([sys.executable, "-c", SESSION, *folders], capture_output=True, text=True, check=False)
    assert done.stdout == "honoured\n", done.stderr


def test_a_gpu_has_no_such_mode() -> None:
    with pytest.raises(IgniterError, match="subnormals=flush-values sets a mode of CPUs, and 'cuda' has none"):
        igniter.compile(parse(PRODUCTS), target="cuda", subnormals="flush-values")
