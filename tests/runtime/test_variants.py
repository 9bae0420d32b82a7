"""Variants of a kernel: the sizes of a call choose one, and what it computes does not depend on which."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper

import igniter
from igniter.api import parse
from igniter.dialects.loop import FuncOp, IfOp, KernelOp
from igniter.errors import IgniterError
from igniter.schedules.citation import structure_hash
from igniter.verification.interp.arithmetic import InterpreterError
from igniter.verification.interp.structured import run_kernel

FLOAT = onnx.TensorProto.FLOAT
HEADS, DEPTH = 8, 32


def decoder_model() -> onnx.ModelProto:
    """Attention of `rows` queries to `keys` keys, and a product of two inputs in the same row count."""
    nodes = [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "kt"], ["s"]),
        helper.make_node("Mul", ["s", "scale"], ["scaled"]),
        helper.make_node("Softmax", ["scaled"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["o"]),
        helper.make_node("MatMul", ["x", "y"], ["z"]),
    ]
    inputs = {
        "q": [HEADS, "rows", DEPTH],
        "k": [HEADS, "keys", DEPTH],
        "v": [HEADS, "keys", DEPTH],
        "x": ["rows", "inner"],
        "y": ["inner", 300],
    }
    outputs = {"o": [HEADS, "rows", DEPTH], "z": ["rows", 300]}
    graph = helper.make_graph(
        nodes,
        "main",
        [helper.make_tensor_value_info(n, FLOAT, dims) for n, dims in inputs.items()],
        [helper.make_tensor_value_info(n, FLOAT, dims) for n, dims in outputs.items()],
        [numpy_helper.from_array(np.float32(DEPTH**-0.5), "scale")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def feed(rows: int, keys: int, inner: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(rows + 100 * keys)
    shapes = {
        "q": (HEADS, rows, DEPTH),
        "k": (HEADS, keys, DEPTH),
        "v": (HEADS, keys, DEPTH),
        "x": (rows, inner),
        "y": (inner, 300),
    }
    return {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}


@pytest.fixture(scope="module")
def kernels() -> list[KernelOp]:
    """Those of the model, as `form-variants` leaves them."""
    module = igniter.load(decoder_model()).run_passes("cpu-onnx,cpu-fusion,cpu-loop,canonicalize-loop,split-axes")
    module.run_passes("inline-nests,collapse-axes,canonicalize-loop,postpone-scales,form-variants")
    return [op for op in module.ir.ops if isinstance(op, KernelOp)]


def test_the_author_gives_variants_to_products_of_what_a_run_computes(kernels: list[KernelOp]) -> None:
    limits = sorted(v.when.data[1].constant for k in kernels for v in k.variants if v.when is not None)
    # One row of keys, which lie across memory, and three of columns side by side; one where a kernel has both.
    assert limits in ([1, 3], [1]), limits


SIZES = [(0, 5, 3), (1, 1, 1), (1, 33, 77), (2, 17, 5), (3, 64, 70), (4, 3, 64), (5, 40, 1), (37, 19, 33)]


@pytest.mark.slow
@pytest.mark.parametrize("sanitize", [False, True])
def test_both_sides_of_the_threshold_are_what_onnxruntime_computes(sanitize: bool) -> None:
    model = decoder_model()
    artifact = igniter.compile(model, cache=False, sanitize=sanitize, shapes=[{"rows": 1, "keys": 9, "inner": 5}])
    assert any("variant @few_rows" in r["message"] for r in artifact.report["remarks"]), "no kernel has a variant"
    original = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for threads in (1, 3):
        session = artifact.session(intra_op_num_threads=threads)
        # In turns, so that a call follows one of another variant.
        for sizes in SIZES:
            given = feed(*sizes)
            for got, wanted in zip(session.run(None, given), original.run(None, given), strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4, err_msg=f"{sizes} {threads}")


TEXT = """
loop.kernel @k symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) {
  %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
    %a = loop.read %x[i] : f32
    %b = arith.addf %a, %a : f32
    loop.yield none %b at [i]
  }
  loop.return %y : tensor<?xf32, #sym.dims<n>>
} variants {
  loop.kernel @few symbols [n] (%x: tensor<?xf32, #sym.dims<n>>) -> (tensor<?xf32, #sym.dims<n>>) when n <= 3 {
    %y = loop.nest "y" [i: parallel n] -> tensor<?xf32, #sym.dims<n>> {
      %a = loop.read %x[i] : f32
      %b = arith.mulf %a, %a : f32
      loop.yield none %b at [i]
    }
    loop.return %y : tensor<?xf32, #sym.dims<n>>
  }
}
"""
"""Of different meaning, so that it shows which ran. No kernel may be like that."""


@pytest.mark.parametrize("sanitize", [False, True], ids=["plain", "sanitized"])
def test_rows_by_a_matrix_whose_lines_crowd_the_caches(sanitize: bool) -> None:
    """Streamed on end for up to three rows, packed for more; with what reads the sums, and rows of two axes."""
    nodes = [
        helper.make_node("MatMul", ["x", "y"], ["s"]),
        helper.make_node("Relu", ["s"], ["r"]),
        helper.make_node("Add", ["r", "b"], ["z"]),
    ]
    graph = helper.make_graph(
        nodes,
        "main",
        [
            helper.make_tensor_value_info("x", FLOAT, ["batch", "seq", 520]),
            helper.make_tensor_value_info("y", FLOAT, [520, 528]),
            helper.make_tensor_value_info("b", FLOAT, [528]),
        ],
        [helper.make_tensor_value_info("z", FLOAT, ["batch", "seq", 528])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    artifact = igniter.compile(model, sanitize=sanitize, verify=False)
    ours, theirs = artifact.session(), ort.InferenceSession(model.SerializeToString())
    rng = np.random.default_rng(3)
    y, b = rng.standard_normal((520, 528)).astype("f"), rng.standard_normal(528).astype("f")
    for batch, seq in ((1, 1), (2, 1), (1, 3), (2, 2), (1, 7), (3, 11), (0, 4), (1, 0)):
        feed = {"x": rng.standard_normal((batch, seq, 520)).astype("f"), "y": y, "b": b}
        np.testing.assert_allclose(ours.run(None, feed)[0], theirs.run(None, feed)[0], rtol=1e-4, atol=1e-4)


def test_which_one_runs_is_the_same_on_every_level() -> None:
    kernel = next(op for op in parse(TEXT).ir.ops if isinstance(op, KernelOp))
    schedule = igniter.Schedule(kernel)
    func = schedule.apply()
    assert isinstance(func, FuncOp) and sum(isinstance(op, IfOp) for op in func.block.ops) == 2
    from igniter.toolbox.kernel.workbench import loop_tree
    from igniter.verification.check import run_scheduled

    assert [[loop.text for loop in loop_tree(func, {"n": n})] for n in (3, 4)] == [["i = 0 to n"], ["i1 = 0 to n"]]
    # Were both counted, neither would be half of it.
    assert all(loop.share > 0.5 for n in (3, 4) for loop in loop_tree(func, {"n": n}))
    for n in (0, 1, 3, 4, 33):
        x = np.arange(5, 5 + n, dtype=np.float32)
        wanted = x * x if n <= 3 else x + x
        (structured,) = run_kernel(kernel, [x])
        interpreted = run_scheduled(func, [x], {"n": n})
        assert interpreted is not None
        (compiled,) = schedule.run(x)
        for found in (structured, interpreted[0], compiled):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.slow
def test_a_person_can_ask_for_one_in_python() -> None:
    path = Path(__file__).parents[2] / "lit_tests/examples/softmax.mlir"
    whole, few = igniter.Schedule(path), igniter.Schedule(path)
    for label in few.nests:
        few.vectorize(label, "j", 8)
    assert whole.variant("few", "n <= 2", few) == "@few when n <= 2"
    assert "variants {" in whole.text() and "loop.kernel @few" in whole.text() and "when n <= 2 {" in whole.text()
    for n in (1, 2, 3, 40):
        x = np.random.default_rng(n).standard_normal((n, 21)).astype(np.float32)
        (found,) = whole.run(x)
        e = np.exp(x - x.max(1, keepdims=True))
        np.testing.assert_allclose(found, e / e.sum(1, keepdims=True), rtol=1e-5)
    before = whole.text()
    other = igniter.Schedule(next(op for op in parse(TEXT).ir.ops if isinstance(op, KernelOp)))
    for name, when, which, said in (
        ("few", "n <= 3", few, "two variants are named @few"),
        ("more", "rows <= 3", few, "names 'rows', which is not one of its symbols"),
        ("more", "n < 3", few, "'n < 3' is no condition: write m <= 8"),
        ("more", "n <= 3 4", few, "'n <= 3 4' is no condition: write m <= 8"),
        ("more", "n <= 3", other, "cannot have variants of its own"),
    ):
        with pytest.raises(IgniterError, match=said):
            whole.variant(name, when, which)
        assert whole.text() == before


def test_what_is_tuned_is_one_schedule() -> None:
    kernel = next(op for op in parse(TEXT).ir.ops if isinstance(op, KernelOp))
    key = structure_hash(kernel)
    kernel.set_variants([])
    assert structure_hash(kernel) == key


def test_a_variant_takes_what_its_kernel_takes() -> None:
    kernel = next(op for op in parse(TEXT).ir.ops if isinstance(op, KernelOp))
    with pytest.raises(InterpreterError, match="has rank 2, not 1"):
        run_kernel(kernel, [np.zeros((2, 2), np.float32)])


def sizes_model() -> onnx.ModelProto:
    """A product of inputs and a transpose, all of whose sizes are symbols."""
    nodes = [helper.make_node("MatMul", ["x", "y"], ["z"]), helper.make_node("Transpose", ["t"], ["u"], perm=[1, 0])]
    inputs = {"x": ["rows", "depth"], "y": ["depth", "columns"], "t": ["a", "b"]}
    outputs = {"z": ["rows", "columns"], "u": ["b", "a"]}
    graph = helper.make_graph(
        nodes,
        "main",
        [helper.make_tensor_value_info(n, FLOAT, dims) for n, dims in inputs.items()],
        [helper.make_tensor_value_info(n, FLOAT, dims) for n, dims in outputs.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def test_few_columns_and_narrow_matrices(tmp_path: Path) -> None:
    """Random sizes on both sides of the thresholds of all variants, and none at all."""
    artifact = igniter.compile(sizes_model(), tmp_path / "sizes", verify=False, sanitize=True)
    remarks = [r["message"] for r in artifact.report["remarks"]]
    for name in ("few_rows", "few_columns", "narrow_i0", "narrow_i1"):
        assert any(f"variant @{name}" in text for text in remarks), name
    session, rng = artifact.session(), np.random.default_rng(3)
    for _ in range(60):
        m, k, n, a, b = (int(v) for v in rng.choice([0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 40, 131], 5))
        x, y, t = (rng.standard_normal(dims, np.float32) for dims in ((m, k), (k, n), (a, b)))
        z, u = session.run(["z", "u"], {"x": x, "y": y, "t": t})
        np.testing.assert_allclose(z, x @ y, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(u, t.T)


@pytest.mark.full
def test_small_images_of_a_convolution_in_tiles(tmp_path: Path) -> None:
    """Images on both sides of the threshold, with an infinity in some, beside ONNX Runtime."""
    rng = np.random.default_rng(4)
    weight = (rng.standard_normal((256, 256, 3, 3), np.float32) / 48).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["c"], ["y"]),
        ],
        "main",
        [helper.make_tensor_value_info("x", FLOAT, ["n", 256, "h", "w_"])],
        [helper.make_tensor_value_info("y", FLOAT, ["n", 256, "h", "w_"])],
        [numpy_helper.from_array(weight, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    artifact = igniter.compile(model, tmp_path / "small", verify=False, fusion_author="default{points=off}")
    ours, theirs = artifact.session(), ort.InferenceSession(model.SerializeToString())
    for n, h, w in ((1, 1, 1), (1, 1, 2), (2, 2, 2), (1, 2, 3), (1, 2, 4), (1, 3, 3), (1, 8, 1), (1, 1, 9), (3, 5, 2)):
        for value in (0.5, np.inf):
            x = rng.standard_normal((n, 256, h, w), np.float32)
            x[0, 3, 0, 0] = value
            want, got = (s.run(None, {"x": x})[0] for s in (theirs, ours))
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)
