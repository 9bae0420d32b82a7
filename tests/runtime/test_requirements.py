"""Sizes that a model did not promise: where ONNX Runtime refuses a run the compiled model refuses it, and names the
node; where it runs, the compiled model runs, with the same result. Nothing is read or written outside of a buffer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter

ort.set_default_logger_severity(4)
EVERY = "form-fusion-regions{contractions=all singletons=all},pack-weights"
Array = np.ndarray[Any, Any]


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int | str]],
    outputs: Sequence[str] = ("y",),
    constants: Mapping[str, Any] | None = None,
    opset: int = 17,
    types: Mapping[str, int] | None = None,
) -> onnx.ModelProto:
    """A model of inputs of floats (or of `types`), whose outputs have no declared dims."""
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info(k, (types or {}).get(k, TensorProto.FLOAT), d) for k, d in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def session_of(model: onnx.ModelProto, fusion: str = EVERY) -> Any:
    """The compiled model; nothing in it may be left to ONNX Runtime because it failed to compile."""
    options = igniter.CompileOptions(fusion_passes=fusion)
    return igniter.compile(model, options=options, verify=False).session(intra_op_num_threads=1)


def agree(model: onnx.ModelProto, feeds: Iterable[Mapping[str, Array]], fusion: str = EVERY) -> list[str | None]:
    """Runs both; for each feed the message of the compiled model where both refuse, `None` where both run."""
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    session = session_of(model, fusion)
    messages: list[str | None] = []
    for feed in feeds:
        shapes = {k: v.shape for k, v in feed.items()}
        try:
            wanted = reference.run(None, dict(feed))
        except Exception:
            messages.append(refusal(session, feed))
            assert messages[-1] is not None, f"ONNX Runtime refuses {shapes}, the compiled model runs"
            continue
        for want, got in zip(wanted, session.run(None, dict(feed)), strict=True):
            assert want.dtype == got.dtype
            assert want.shape == got.shape, shapes
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6, err_msg=str(shapes))
        messages.append(None)
    return messages


def refusal(session: Any, feed: Mapping[str, Array]) -> str | None:
    """The error of the compiled model; `None` where it runs. An op of Igniter's says INVALID_ARGUMENT."""
    try:
        session.run(None, dict(feed))
    except Exception as error:
        assert "Igniter op" not in str(error) or "INVALID_ARGUMENT" in str(error), error
        return str(error)
    return None


def floats(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs, outputs, name=f"{op.lower()}_{outputs[0]}", **attributes)


@pytest.mark.parametrize("fusion", ["cpu-fusion", EVERY])
def test_reshape(fusion: str) -> None:
    nodes = [node("Mul", ["x", "x"], ["a"]), node("Reshape", ["a", "t"], ["y"])]
    model = model_of(nodes, {"x": ["n", 16]}, constants={"t": [64, -1, 1]})
    sizes = (4, 1003, 3, 1, 0, 8)
    messages = agree(model, [{"x": floats(n, 16)} for n in sizes], fusion)
    assert [m is None for m in messages] == [n % 4 == 0 for n in sizes]
    if fusion == EVERY:
        assert "node 'reshape_y': the input cannot be reshaped to the requested shape: 16*" in str(messages[2])
        assert "= 48, expected" in str(messages[2])


def test_reshape_of_nothing() -> None:
    """-1 stands for one number: beside a dim of 0 it stands for none."""
    nodes = [node("Neg", ["x"], ["a"]), node("Reshape", ["a", "t"], ["y"])]
    assert agree(model_of(nodes, {"x": ["n", 16]}, constants={"t": [0, -1, 4]}), [{"x": floats(0, 16)}]) != [None]
    model = model_of(nodes, {"x": ["n", 16]}, constants={"t": [-1, 4]})
    assert agree(model, [{"x": floats(n, 16)} for n in (0, 1, 3)]) == [None] * 3


def test_requirements_of_a_program() -> None:
    """Kernels that are called one after the other, of which two are equal: each error names its own node."""
    nodes: list[onnx.NodeProto] = []
    for k in range(2):
        nodes += [
            helper.make_node("Softmax", [f"x{k}"], [f"s{k}"], name=f"soft{k}"),
            helper.make_node("Reshape", [f"s{k}", "t"], [f"r{k}"], name=f"reshape{k}"),
            helper.make_node("ReduceSum", [f"r{k}", "axes"], [f"y{k}"], name=f"sum{k}", keepdims=1),
        ]
    constants = {"t": [8, -1], "axes": [1]}
    model = model_of(nodes, {"x0": ["n", 4], "x1": ["m", 4]}, ["y0", "y1"], constants)
    for fusion in ("cpu-fusion", EVERY, "form-fusion-regions{singletons=all max-nodes=1}"):
        sizes = ((2, 2), (3, 2), (2, 3))
        messages = agree(model, [{"x0": floats(n, 4), "x1": floats(m, 4)} for n, m in sizes], fusion)
        assert messages[0] is None
        assert "'reshape0'" in str(messages[1])
        assert "'reshape1'" in str(messages[2])


def test_split() -> None:
    nodes = [node("Split", ["x", "s"], ["a", "b"], axis=0), node("Tanh", ["a"], ["y"]), node("Tanh", ["b"], ["z"])]
    for sizes in ([4, 4], [4, 60000], [0, 8]):
        model = model_of(nodes, {"x": ["m", 3]}, ["y", "z"], {"s": sizes})
        messages = agree(model, [{"x": floats(m, 3)} for m in (8, 20, 3, 0)])
        assert [m is None for m in messages] == [sum(sizes) == 8, False, False, False]
        assert "node 'split_a': the sizes of its split do not add up to the dim: " in str(messages[1])


@pytest.mark.parametrize("opset", [13, 18])
def test_even_split(opset: int) -> None:
    attributes = {"num_outputs": 4} if opset >= 18 else {}
    outputs = [f"y{k}" for k in range(4)]
    split = node("Split", ["a"], outputs, axis=0, **attributes)
    model = model_of([node("Neg", ["x"], ["a"]), split], {"x": ["m"]}, outputs, opset=opset)
    agree(model, [{"x": floats(m)} for m in (0, 1, 3, 4, 5, 7, 8, 9, 10, 11, 12)])


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", [(0, 3), (3, 0), (-1, 0), (-2, 3), (3, -2), (1, 1)])
def test_pad(mode: str, pads: tuple[int, int]) -> None:
    padded = node("Pad", ["a", "p"], ["y"], mode=mode)
    constants = {"p": np.array([0, pads[0], 0, pads[1]])}
    model = model_of([node("Neg", ["x"], ["a"]), padded], {"x": [2, "m"]}, constants=constants, opset=19)
    agree(model, [{"x": floats(2, m)} for m in range(6)])


@pytest.mark.parametrize("op", ["DepthToSpace", "SpaceToDepth"])
def test_blocks(op: str) -> None:
    nodes = [node("Neg", ["x"], ["a"]), node(op, ["a"], ["y"], blocksize=2)]
    model = model_of(nodes, {"x": ["n", "c", "h", "w"]})
    shapes = [(1, 4, 2, 2), (1, 6, 2, 2), (2, 8, 3, 2), (1, 4, 2, 3), (1, 5, 4, 4), (0, 4, 2, 2)]
    agree(model, [{"x": floats(*shape)} for shape in shapes])


def test_sizes_that_a_sum_takes_for_granted() -> None:
    """A table of 12 rows, cut to the sequence and added to it: longer sequences fail at the sum."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"], start=1, end=2),
        node("Slice", ["table", "zero", "shape", "zero"], ["cut"]),
        node("Add", ["x", "cut"], ["y"]),
    ]
    table = floats(12)
    model = model_of(nodes, {"x": ["n", "seq"]}, constants={"table": table, "zero": [0]})
    messages = agree(model, [{"x": floats(2, n)} for n in (12, 5, 13, 4000, 1, 0)])
    assert [m is None for m in messages] == [True, True, False, False, True, True]


def test_sizes_below_nothing() -> None:
    """A dim of an inner value that would be negative."""
    nodes = [node("Neg", ["x"], ["a"]), node("Pad", ["a", "p"], ["b"]), node("Pad", ["b", "q"], ["y"])]
    model = model_of(nodes, {"x": ["m"]}, constants={"p": [-3, -2], "q": [4, 4]})
    agree(model, [{"x": floats(m)} for m in (5, 8, 4, 0)])


def test_sizes_that_overflow() -> None:
    """What a size is computed from does not fit in 63 bits: an error, not a small number."""
    nodes = [node("Shape", ["x"], ["s"]), node("Mul", ["s", "big"], ["t"]), node("Expand", ["one", "t"], ["y"])]
    model = model_of(nodes, {"x": ["m"]}, constants={"one": floats(1), "big": [1 << 62]})
    session = session_of(model)
    for m in (2, 3, 4):
        with pytest.raises(Exception, match=r"INVALID_ARGUMENT|out of range|overflow|memory"):
            session.run(None, {"x": floats(m)})


def test_einsum_broadcasts_a_dim_of_one() -> None:
    model = model_of([node("Einsum", ["x", "w"], ["y"], equation="ij,jk->ik")], {"x": ["i", "j"], "w": ["k", "l"]})
    shapes = [((3, 4), (4, 2)), ((3, 1), (4, 2)), ((3, 4), (1, 2)), ((3, 2), (4, 2)), ((0, 4), (4, 2))]
    agree(model, [{"x": floats(*a), "w": floats(*b)} for a, b in shapes])


def test_convolution_of_nothing() -> None:
    conv = node("Conv", ["x", "w"], ["y"])
    model = model_of([conv], {"x": ["n", "c", "t"]}, constants={"w": floats(4, 8, 1)})
    agree(model, [{"x": floats(*shape)} for shape in ((2, 8, 3), (2, 8, 0), (0, 8, 3), (2, 7, 3))])


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("fusion", ["cpu-fusion", EVERY])
def test_pools_of_less_than_a_window(op: str, fusion: str) -> None:
    """ONNX Runtime's pools give one place where the formula gives none; what follows takes what it is given."""
    for attributes in ({"strides": [2]}, {"strides": [2], "ceil_mode": 1}, {"strides": [3], "pads": [1, 0]}):
        pool = node(op, ["x"], ["a"], kernel_shape=[3], **attributes)
        nodes = [pool, node("Neg", ["a"], ["b"]), node("Softmax", ["b"], ["y"], axis=1)]
        shapes = [*((2, 3, n) for n in range(1, 6)), (0, 3, 4), (2, 0, 4), (2, 3, 0)]
        agree(model_of(nodes, {"x": ["b", "c", "n"]}, opset=19), [{"x": floats(*s)} for s in shapes], fusion)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_extremes_of_nothing(op: str, keepdims: int) -> None:
    model = model_of([node("Neg", ["x"], ["a"]), node(op, ["a"], ["y"], axis=1, keepdims=keepdims)], {"x": ["n", "m"]})
    messages = agree(model, [{"x": floats(*s)} for s in ((3, 4), (3, 0), (0, 4), (0, 0), (2, 1))])
    assert [m is None for m in messages] == [True, False, True, True, True]
    assert "it has no elements to find an extreme among" in str(messages[1])


@pytest.mark.parametrize("op", ["Max", "Mean", "Min", "Sum"])
def test_operands_of_one_shape_before_opset_8(op: str) -> None:
    feeds = [{"x": floats(*a), "z": floats(*b)} for a, b in (((3, 4), (3, 4)), ((3, 4), (1, 4)), ((1, 1), (2, 1)))]
    for opset, fine in ((7, [True, False, False]), (8, [True, True, True])):
        nodes = [node("Neg", ["x"], ["a"]), node(op, ["a", "z"], ["y"])]
        messages = agree(model_of(nodes, {"x": ["n", "m"], "z": ["k", "m"]}, opset=opset), feeds)
        assert [m is None for m in messages] == fine
