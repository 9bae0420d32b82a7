"""Ops that move elements: every attribute form, odd and empty shapes, ranks 0 to 5, every element type."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import igniter
from igniter.runtime.session import make_session
from igniter.verification.interp.arithmetic import InterpreterError
from tests.ops.single_node import check, kernel_of, model_of, module_of, refusal

DTYPES = (
    "float32",
    "float64",
    "int32",
    "int64",
    "bool",
    "uint8",
    "int8",
    "float16",
    "uint16",
    "int16",
    "uint32",
    "uint64",
)


def ramp(*dims: int, dtype: str = "float32") -> np.ndarray[Any, Any]:
    return (np.arange(int(np.prod(dims))) % 97).reshape(dims).astype(dtype)


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, dtype=np.int64)


X = ramp(2, 3, 4)


@pytest.mark.parametrize("perm", [None, [0, 1, 2], [2, 0, 1], [0, 2, 1], [2, 1, 0]])
@pytest.mark.parametrize("dims", [(2, 3, 4), (1, 3, 1), (0, 2, 3)])
def test_transpose(perm: list[int] | None, dims: tuple[int, ...]) -> None:
    check("Transpose", [ramp(*dims)], {} if perm is None else {"perm": perm})


@pytest.mark.parametrize("dims", [(), (5,), (2, 1, 3, 2, 2)])
def test_transpose_of_other_ranks(dims: tuple[int, ...]) -> None:
    check("Transpose", [ramp(*dims)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_type_moves(dtype: str) -> None:
    x = ramp(3, 4, dtype=dtype)
    check("Transpose", [x])
    check("Concat", [x, x[:1]], {"axis": 0})
    check("Gather", [x, ints(1, -1)], {"axis": 1})
    check("Pad", [x, ints(1, 0, 0, 2)], constant=[1])
    check("Slice", [x, ints(-1), ints(-10), ints(0), ints(-1)], constant=[1, 2, 3, 4])


def test_bfloat16_moves() -> None:
    x = ramp(3, 4).astype(ml_dtypes.bfloat16)
    check("Transpose", [x], expected=[x.T])


@pytest.mark.parametrize("target", [[0, -1], [-1, 2], [2, 3, 2, 2], [24], [1, 2, 3, 4], [-1]])
def test_reshape(target: list[int]) -> None:
    # With dynamic dims nothing says that [n2, n3, n4] has 24 elements.
    known = -1 not in target
    check("Reshape", [X, ints(*target)], constant=[1], dynamic=[False] if known else [False, True])


def test_reshape_of_scalars_and_empty_tensors() -> None:
    check("Reshape", [ramp(), ints(1, 1)], constant=[1])
    check("Reshape", [ramp(1, 1), ints().reshape(0)], constant=[1])
    check("Reshape", [ramp(0, 3), ints(0, 0, 5)[:2]], constant=[1])
    check("Reshape", [ramp(0, 3), ints(3, 0)], {"allowzero": 1}, constant=[1], dynamic=[False])
    check("Reshape", [ramp(0, 3), ints(-1, 3)], constant=[1])
    check("Reshape", [X], {"shape": [4, 6]}, opset=1, dynamic=[False], expected=[X.reshape(4, 6)])


def test_reshape_checks_what_may_not_fit() -> None:
    check("Reshape", [X, ints(4, 6)], constant=[1])
    kernel = kernel_of(module_of(model_of("Reshape", [X, ints(4, 6)], {}, constant=[1], dynamic=True)))
    assert [str(r) for r in kernel.requires] == ["n2*n3*n4 == 24"]


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
def test_flatten(axis: int) -> None:
    check("Flatten", [X], {"axis": axis})


def test_flatten_scalar() -> None:
    check("Flatten", [ramp()], {"axis": 0})


def test_squeeze() -> None:
    check("Squeeze", [ramp(1, 3, 1), ints(0, -1)], constant=[1])
    check("Squeeze", [ramp(1, 3, 1)], {"axes": [2]}, opset=11)
    check("Squeeze", [ramp(1, 3, 1)], dynamic=[False])
    check("Squeeze", [ramp(1), ints(0)], constant=[1])
    # ONNX Runtime takes an empty list for none.
    check("Squeeze", [ramp(1, 3, 1), ints()], constant=[1], dynamic=[False])
    assert refusal("Squeeze", [ramp(1, 3, 1)], dynamic=True) == "tensor<*xf32> is not a tensor of known rank"


def test_unsqueeze() -> None:
    check("Unsqueeze", [X, ints(0, -1)], constant=[1])
    check("Unsqueeze", [X, ints(2)], constant=[1])
    check("Unsqueeze", [ramp(), ints(1, 0)], constant=[1])
    check("Unsqueeze", [X], {"axes": [1, 3]}, opset=11)


@pytest.mark.parametrize(
    ("dims", "target"), [((2, 1, 4), [5, 1, 3, 1]), ((), [2, 3]), ((3, 4), [1, 1]), ((3, 1), [0, 3, 4]), ((1,), [1])]
)
def test_expand(dims: tuple[int, ...], target: list[int]) -> None:
    # Beside a 3, a symbol may be 3 or 1.
    check("Expand", [ramp(*dims), ints(*target)], constant=[1], dynamic=[False, True] if dims != (3, 1) else [False])


def test_expand_refuses_a_dim_that_may_be_one() -> None:
    reason = refusal("Expand", [ramp(3, 4), ints(3, 4)], constant=[1], dynamic=True)
    assert reason == "dim n3 is not known to be 1 or equal to 3"


@pytest.mark.parametrize("repeats", [[2, 1, 3], [1, 1, 1], [0, 1, 2], [1, 4, 1]])
@pytest.mark.parametrize("dims", [(2, 3, 4), (1, 3, 1), (2, 0, 3)])
def test_tile(repeats: list[int], dims: tuple[int, ...]) -> None:
    check("Tile", [ramp(*dims), ints(*repeats)], constant=[1])


BOUNDS = [
    (0, 2, 1), (-2, 100, 1), (5, 0, -1), (-1, -100, -2), (1, 1, 1), (3, 1, 1), (-100, 2**63 - 1, 3),
    (2**31 - 1, -(2**31), -1), (2**63 - 1, -(2**63), -3), (-2, -1, 1), (1, 3, 5), (-(2**31), 2**31 - 1, 2),
]  # fmt: skip


@pytest.mark.parametrize(("start", "end", "step"), BOUNDS)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_slice(start: int, end: int, step: int, dtype: type) -> None:
    limits = np.iinfo(dtype)
    start, end = max(start, limits.min), min(end, limits.max)
    start, end = min(start, limits.max), max(end, limits.min)

    def a(*values: int) -> np.ndarray[Any, Any]:
        return np.array(values, dtype=dtype)

    check("Slice", [X, a(start), a(end), a(2), a(step)], constant=[1, 2, 3, 4])
    check("Slice", [X, a(start, 0), a(end, 3), a(-1, 1), a(step, 2)], constant=[1, 2, 3, 4])


def test_slice_forms() -> None:
    check("Slice", [X], {"starts": [1, 0], "ends": [2, -1], "axes": [0, 2]}, opset=9)
    check("Slice", [X], {"starts": [1], "ends": [2]}, opset=1, expected=[X[1:2]])
    check("Slice", [X, ints(1, 1), ints(2, 5)], constant=[1, 2])
    check("Slice", [X, ints(0), ints(9), None, ints(2)], constant=[1, 2, 4])
    check("Slice", [ramp(0, 3), ints(0), ints(5), ints(0)], constant=[1, 2, 3])


def test_slice_refuses_bounds_that_it_learns_late() -> None:
    assert refusal("Slice", [X, ints(0), ints(1)]) == "its starts and ends are known only at run time"


@pytest.mark.parametrize("sizes", [[3], [3, 2], [1, 4, 1], [2, 0, 2, 1], [0, 3], [0, 0]])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(sizes: list[int], axis: int) -> None:
    dims = [2, 3, 4]
    parts = []
    for size in sizes:
        dims[axis] = size
        parts.append(ramp(*dims) + size)
    check("Concat", parts, {"axis": axis})


def test_split() -> None:
    check("Split", [X, ints(1, 2, 1)], {"axis": 2}, constant=[1], outputs=3)
    check("Split", [X, ints(0, 4)], {"axis": -1}, constant=[1], outputs=2)
    check("Split", [ramp(2, 5)], {"axis": 1, "num_outputs": 3}, outputs=3)
    check("Split", [X], {"axis": 0, "num_outputs": 2}, outputs=2)
    check("Split", [X], {"axis": 1, "split": [1, 2]}, outputs=2, opset=11)
    check("Split", [X], {"axis": 2}, outputs=2, opset=11)
    assert refusal("Split", [X, ints(1, 1)], {"axis": 0}, outputs=2) == "its split is known only at run time"


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_pad(mode: str) -> None:
    attrs = {"mode": mode}
    check("Pad", [X, ints(1, 0, 2, 0, 1, 3)], attrs, constant=[1])
    check("Pad", [X, ints(0, -1, 2, 0, 1, -1)], attrs, constant=[1])
    check("Pad", [X, ints(2, 1), np.float32(7), ints(2)], attrs, constant=[1, 3])
    check("Pad", [X, ints(0, 2), None, ints(-1)], attrs, constant=[1, 3])
    check("Pad", [X, ints(0, 0, 0, 0, 0, 0)], attrs, constant=[1])


def test_pad_forms() -> None:
    check("Pad", [X], {"pads": [1, 0, 0, 0, 0, 2], "value": 2.5}, opset=2)
    check("Pad", [X, ints(1, 0, 0, 0, 0, 2), np.float32(3)], opset=11, constant=[1])
    check("Pad", [ramp(0, 3), ints(1, 0, 2, 0), np.float32(3)], constant=[1])
    check("Pad", [ramp(3, dtype="int64"), ints(1, 1), np.int64(-4)], constant=[1, 2])
    assert refusal("Pad", [X, ints(1, 0, 0, 0, 0, 2)]) == "its pads are known only at run time"


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("shape", [(), (2,), (2, 2), (0,), (1, 3)])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_gather(axis: int, shape: tuple[int, ...], dtype: type) -> None:
    indices = np.random.default_rng(0).integers(-2, 2, shape).astype(dtype)
    check("Gather", [X, indices], {"axis": axis})
    check("Gather", [X, indices], {"axis": axis}, constant=[1])


def test_indices_out_of_range() -> None:
    for wrong in (3, -4):
        with pytest.raises(InterpreterError, match=f"indices element out of data bounds: {wrong}"):
            check("Gather", [ramp(3, 4), ints(0, wrong, -1)], expected=[])


def test_gather_elements() -> None:
    random = np.random.default_rng(0)
    check("GatherElements", [X, random.integers(-4, 4, (2, 3, 4))], {"axis": 2})
    check("GatherElements", [X, random.integers(-3, 3, (2, 5, 4)).astype(np.int32)], {"axis": 1})
    check("GatherElements", [X, random.integers(0, 2, (2, 3, 2))], {"axis": 0})
    check("GatherElements", [ramp(4), ints(3, -1, 0)], {"axis": 0})
    with pytest.raises(InterpreterError, match="more elements than the data along an axis"):
        check("GatherElements", [X, random.integers(0, 2, (2, 4, 2))], {"axis": 0}, dynamic=[True], expected=[])


def test_gather_nd() -> None:
    check("GatherND", [X, ints(0, 1, -1, 2).reshape(2, 2)], dynamic=[False])
    check("GatherND", [X, ints(0, 1, 3, -1, 2, -4).reshape(2, 3)], dynamic=[False])
    check("GatherND", [X, ints(0, 1, -1, 2).reshape(2, 2)], {"batch_dims": 1}, dynamic=[False])
    check("GatherND", [X, ints(0, 1, -1, 2).reshape(2, 2, 1)], {"batch_dims": 1})
    check("GatherND", [X, ints(1).reshape(1, 1, 1)])


@pytest.mark.parametrize("k", [None, -1, 0, 2, 10, -10])
@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("constant", [[], [1]])
def test_trilu(k: int | None, upper: int, constant: list[int]) -> None:
    diagonal = None if k is None else np.array(k)
    check("Trilu", [X, diagonal], {"upper": upper}, constant=constant)
    check("Trilu", [ramp(0, 3), diagonal], {"upper": upper}, constant=constant)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(mode: str) -> None:
    check("DepthToSpace", [ramp(3, 8, 2, 5)], {"blocksize": 2, "mode": mode}, dynamic=[False])


def test_space_to_depth() -> None:
    check("SpaceToDepth", [ramp(2, 3, 4, 6)], {"blocksize": 2})


def test_one_hot() -> None:
    indices = ints(0, 2, -1, 9, 1, -4).reshape(2, 3)
    check("OneHot", [indices, np.array(4), np.array([0.5, 2.0], np.float32)], {"axis": 1}, constant=[1])
    check("OneHot", [ints(0, 2, -1, 7), np.array(4), ints(0, 1)], constant=[1])
    check("OneHot", [ints(0, 2, -1, 7), np.float32(4), ints(0, 1)], constant=[1])
    assert refusal("OneHot", [indices, np.array(4), ints(0, 1)]) == "its depth is known only at run time"


def test_slice_backwards_to_the_greatest_integer() -> None:
    """The greatest i32 and i64 stand for the end in whichever direction, as in ONNX Runtime; others do not."""
    for end in (2**31 - 1, 2**63 - 1, 2**31, 2**40):
        check("Slice", [X, ints(-1), ints(end), ints(2), ints(-1)], constant=[1, 2, 3, 4])


def masked_attention() -> onnx.ModelProto:
    """The masks of onnxruntime-genai's builder for MultiHeadAttention: causal, [new, new] expanded to
    [new, new + past], and of padding, [batch, 1, new, total], of which only a run knows that they broadcast."""
    info, node, kind = helper.make_tensor_value_info, helper.make_node, TensorProto.FLOAT
    nodes = [
        node("Shape", ["x"], ["new"], start=1, end=2),
        node("Shape", ["past"], ["old"], start=1, end=2),
        node("Add", ["new", "old"], ["all"]),
        node("Concat", ["new", "all"], ["shape"], axis=0),
        node("Expand", ["causal", "shape"], ["wide"]),
        node("Add", ["mask", "wide"], ["bias"]),
        node("Concat", ["past", "x"], ["keys"], axis=1),
        node("MultiHeadAttention", ["x", "keys", "keys", "", "", "bias"], ["y"], domain="com.microsoft", num_heads=2),
    ]
    inputs = [
        info("x", kind, ["batch", "seq", 16]),
        info("past", kind, ["batch", "old", 16]),
        info("causal", kind, ["seq", "seq"]),
        info("mask", kind, ["batch", 1, "seq", "total"]),
    ]
    graph = helper.make_graph(nodes, "masks", inputs, [info("y", kind, ["batch", "seq", 16])])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def test_a_dim_that_a_run_knows_to_be_1_or_the_requested_one() -> None:
    """`seq` expanded to `seq + old`: equal without a past, and 1 for a step."""
    artifact = igniter.compile(masked_attention(), verify=False)
    assert artifact.report["nodes_after"] == 1
    rng = np.random.default_rng(0)
    ours, theirs = artifact.session(), make_session(masked_attention().SerializeToString())

    def feeds(seq: int, old: int, total: int) -> dict[str, Any]:
        sizes = {"x": (2, seq, 16), "past": (2, old, 16), "causal": (seq, seq), "mask": (2, 1, seq, total)}
        return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in sizes.items()}

    for seq, old in ((5, 0), (1, 7), (1, 0), (33, 0)):
        given = feeds(seq, old, seq + old)
        (mine,), (wanted,) = (session.run(None, given) for session in (ours, theirs))
        np.testing.assert_allclose(mine, wanted, rtol=2e-6, atol=2e-6)
    for wrong, text in ((feeds(3, 2, 5), "its shape does not broadcast"), (feeds(3, 0, 4), "do not broadcast")):
        with pytest.raises(Exception, match=text):
            ours.run(None, wrong)
