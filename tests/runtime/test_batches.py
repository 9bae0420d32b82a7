"""Programs that go through the elements of a batch one after the other: which do, and that results are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper

import igniter
from igniter.analysis.fusion.program_batches import batches_of
from igniter.analysis.machine import MachineModel
from igniter.dialects.fusion import ProgramOp, RegionOp
from igniter.dialects.loop import AllocOp, CallOp, ForOp, FuncOp
from igniter.dialects.sym import dims_of

PASSES = "cpu-onnx,cpu-fusion,cpu-loop,cpu-programs,cpu-schedule,lower-programs"
SIDE = 128


def network(tail: list[onnx.NodeProto], outputs: list[str], batch: str | int = "n", side: int = SIDE) -> bytes:
    """Three convolutions of large images with a residual, then `tail`, from `s` of `[n, 16, side, side]` on."""
    rng = np.random.default_rng(0)
    weights = {
        "w0": rng.standard_normal((16, 3, 3, 3)) / 5,
        "w1": rng.standard_normal((16, 16, 3, 3)) / 12,
        "w2": rng.standard_normal((16, 16, 1, 1)) / 4,
        "wf": rng.standard_normal((16, 5)) / 4,
    }
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w1"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["c", "w2"], ["d"]),
        helper.make_node("Add", ["d", "b"], ["r"]),
        helper.make_node("Conv", ["r", "w1"], ["e"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["e"], ["s"]),
        *tail,
    ]
    graph = helper.make_graph(
        nodes,
        "main",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [batch, 3, side, side])],
        [helper.make_tensor_value_info(o, onnx.TensorProto.FLOAT, None) for o in outputs],
        [numpy_helper.from_array(w.astype(np.float32), name) for name, w in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return onnx.shape_inference.infer_shapes(model).SerializeToString()


POOLED = [
    helper.make_node("GlobalAveragePool", ["s"], ["p"]),
    helper.make_node("Flatten", ["p"], ["f"]),
    helper.make_node("MatMul", ["f", "wf"], ["y"]),
]
TAILS: dict[str, tuple[list[onnx.NodeProto], list[str]]] = {
    "pooled": (POOLED, ["y"]),
    "image": ([], ["s"]),
    # What is inside leaves too, and as a view of itself.
    "several": ([*POOLED, helper.make_node("Flatten", ["r"], ["flat"])], ["y", "c", "flat"]),
    # The elements of a batch meet.
    "mixed": ([*POOLED[:2], helper.make_node("Softmax", ["f"], ["z"], axis=0)], ["z"]),
    "whole": (
        [helper.make_node("ReduceMax", ["s"], ["m"], axes=[0], keepdims=0), helper.make_node("Sub", ["s", "m"], ["t"])],
        ["t"],
    ),
}


def program(model: bytes, **options: Any) -> FuncOp:
    module = igniter.load(model).run_passes(PASSES + "".join(f"{{{k}={v}}}" for k, v in options.items()))
    (found,) = [f for f in module.ir.ops if isinstance(f, FuncOp) and any(isinstance(o, CallOp) for o in f.walk())]
    return found


def loops_of(func: FuncOp) -> list[ForOp]:
    return [op for op in func.block.ops if isinstance(op, ForOp) and op.is_sequential]


@pytest.mark.slow
@pytest.mark.parametrize("batch", (0, 1, 2, 5))
@pytest.mark.parametrize("tail", TAILS)
def test_results_are_those_of_whole_batches(tail: str, batch: int, tmp_path: Path) -> None:
    model = network(*TAILS[tail])
    assert loops_of(program(model))
    artifact = igniter.compile(model, tmp_path / "out", verify=False)
    x = np.random.default_rng(1).standard_normal((batch, 3, SIDE, SIDE)).astype(np.float32)
    expected = ort.InferenceSession(model).run(None, {"x": x})
    for threads in (1, 2):
        found = artifact.session(intra_op_num_threads=threads).run(None, {"x": x})
        for e, f in zip(expected, found, strict=True):
            np.testing.assert_allclose(f, e, rtol=1e-4, atol=1e-4 * np.abs(e).max(initial=0))


@pytest.mark.slow
def test_what_passes_between_steps_is_of_one_image() -> None:
    func = program(network(*TAILS["pooled"]))
    (loop,) = loops_of(func)
    assert str(loop.end) == "n"
    inside = [op for op in loop.block.ops if isinstance(op, AllocOp)]
    assert len(inside) > 2 and all("n" not in d.symbols for op in inside for d in dims_of(op.result.type))
    assert not [
        op
        for op in func.block.ops
        if isinstance(op, AllocOp) and "r" in op.label.data and len(dims_of(op.result.type)) == 4
    ]
    assert not loops_of(program(network(*TAILS["pooled"]), batches="false"))


@pytest.mark.slow
def test_the_steps_in_front_of_a_mixture_have_a_loop() -> None:
    func = program(network(*TAILS["whole"]))
    (loop,) = loops_of(func)
    inside = sum(isinstance(op, CallOp) for op in loop.block.ops)
    assert 0 < inside < sum(isinstance(op, CallOp) for op in func.walk())


@pytest.mark.slow
@pytest.mark.parametrize(("side", "batch"), [(16, "n"), (SIDE, 4)])
def test_small_images_and_fixed_batches_go_as_a_whole(side: int, batch: str | int) -> None:
    assert not loops_of(program(network(*TAILS["pooled"], batch=batch, side=side)))


def test_weights_that_are_larger_than_images_are_read_once() -> None:
    """Of a network the part is taken that saves more than its weights take."""
    module = igniter.load(network(*TAILS["pooled"])).run_passes("cpu-onnx,cpu-fusion,cpu-loop,cpu-programs")
    (found,) = [op for op in module.ir.walk() if isinstance(op, ProgramOp)]
    (batch,) = batches_of(found, MachineModel(), {})
    regions = [op for op in batch.ops if isinstance(op, RegionOp)]
    assert len(regions) >= 4 and batch.symbol == "n"
    assert not batches_of(found, MachineModel(l2_bytes=1 << 30), {})
