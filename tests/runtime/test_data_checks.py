"""Indices out of range, divisions by zero: an error that names the node, as in ONNX Runtime, and never a silent 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.runtime.test_requirements import EVERY, agree, floats, model_of, node

I64 = TensorProto.INT64
FUSIONS = ("cpu-fusion", EVERY, "form-fusion-regions{singletons=all max-nodes=1}")


def indexed(op: str, data: Sequence[int | str], index: Sequence[int | str], **attributes: Any) -> onnx.ModelProto:
    nodes = [node("Neg", ["x"], ["a"]), node(op, ["a", "i"], ["b"], **attributes), node("Exp", ["b"], ["y"])]
    return model_of(nodes, {"x": data, "i": index}, types={"i": I64})


@pytest.mark.parametrize("fusion", FUSIONS)
def test_gather(fusion: str) -> None:
    model = indexed("Gather", ["n", 5], ["k"], axis=0)
    cases = ([0, 2, 1], [-3, 2], [3], [-4], [0, 700, 0], [], [np.iinfo(np.int64).min], [np.iinfo(np.int64).max])
    messages = agree(model, [{"x": floats(3, 5), "i": np.array(i, np.int64)} for i in cases], fusion)
    assert [m is None for m in messages] == [True, True, False, False, False, True, False, False]
    said = "node 'gather_b': indices element out of data bounds, idx=700 must be within the inclusive range [-3,2]"
    assert said in str(messages[4])


def test_gather_from_nothing() -> None:
    model = indexed("Gather", ["n", "m"], ["k"], axis=1)
    feeds = [(floats(3, 0), [0]), (floats(3, 0), []), (floats(0, 4), [3]), (floats(0, 4), [4])]
    agree(model, [{"x": x, "i": np.array(i, np.int64)} for x, i in feeds])


def test_known_indices_of_a_dim_that_is_not() -> None:
    nodes = [node("Neg", ["x"], ["a"]), node("Gather", ["a", "i"], ["y"], axis=0)]
    model = model_of(nodes, {"x": ["n", 5]}, constants={"i": [2, -3]})
    messages = agree(model, [{"x": floats(n, 5)} for n in (3, 4, 2, 0)])
    assert [m is None for m in messages] == [True, True, False, False]
    assert "node 'gather_y': indices element out of data bounds" in str(messages[2])


@pytest.mark.parametrize("axis", [0, 1])
def test_gather_elements(axis: int) -> None:
    model = indexed("GatherElements", [3, 4], [3, 4], axis=axis)
    good = np.random.default_rng(0).integers(-3, 3, (3, 4))
    bad, worse = good.copy(), good.copy()
    bad[1, 2], worse[0, 0] = 4, -5
    messages = agree(model, [{"x": floats(3, 4), "i": i} for i in (good, bad, worse)])
    assert [m is None for m in messages] == [True, False, False]
    assert "'gatherelements_b'" in str(messages[1])


def test_gather_nd() -> None:
    model = indexed("GatherND", ["n", 4, 2], ["k", 2])
    cases = ([[0, 3], [2, -4]], [[0, 4]], [[3, 0]], [[-3, -4]], [[-4, 0]])
    messages = agree(model, [{"x": floats(3, 4, 2), "i": np.array(i)} for i in cases])
    assert [m is None for m in messages] == [True, False, False, True, False]


@pytest.mark.slow
def test_programs_name_the_node() -> None:
    """Two equal kernels in one program, and a third op that fails first."""
    nodes: list[onnx.NodeProto] = []
    for k in range(2):
        nodes += [
            helper.make_node("Gather", ["x", f"i{k}"], [f"g{k}"], name=f"rows{k}"),
            helper.make_node("Softmax", [f"g{k}"], [f"y{k}"], name=f"soft{k}"),
        ]
    model = model_of(nodes, {"x": ["n", 5], "i0": ["a"], "i1": ["b"]}, ["y0", "y1"], types={"i0": I64, "i1": I64})
    cases = (([0, 1], [2]), ([0, 1], [3]), ([7], [2]))
    for fusion in FUSIONS:
        feeds = [{"x": floats(3, 5), "i0": np.array(a), "i1": np.array(b)} for a, b in cases]
        messages = agree(model, feeds, fusion)
        assert messages[0] is None
        assert "'rows1'" in str(messages[1])
        assert "'rows0'" in str(messages[2])


def test_indices_that_the_model_computes() -> None:
    nodes = [
        helper.make_node("Cast", ["f"], ["c"], name="cast", to=I64),
        node("Gather", ["x", "c"], ["g"]),
        node("Exp", ["g"], ["y"]),
    ]
    model = model_of(nodes, {"x": ["n", 5], "f": ["k", "l"]})
    feeds = [{"x": floats(3, 5), "f": np.array(f, np.float32)} for f in ([[0, 2.5], [1, -1]], [[0, 3.5]], [[-4]])]
    messages = agree(model, feeds)
    assert [m is None for m in messages] == [True, False, False]


def test_gather_nd_of_nothing() -> None:
    """ONNX Runtime looks at no index where a position stands for no element."""
    model = indexed("GatherND", ["n", "m", "k"], ["j", 2])
    cases = [((2, 5, 0), [[0, 9]]), ((2, 0, 3), [[9, 0]]), ((2, 5, 3), [[0, 9]]), ((2, 5, 3), [[1, 4]])]
    messages = agree(model, [{"x": floats(*s), "i": np.array(i)} for s, i in cases])
    assert [m is None for m in messages] == [True, False, False, True]


@pytest.mark.parametrize("op", ["Div", "Mod"])
@pytest.mark.parametrize("dtype", [np.int64, np.uint8])
def test_integers_divided_by_zero(op: str, dtype: Any) -> None:
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    types = {"x": code, "z": code}
    nodes = [node("Mul", ["x", "x"], ["a"]), node(op, ["a", "z"], ["y"])]
    model = model_of(nodes, {"x": ["n", 3], "z": [3]}, types=types)
    cases = [(2, [1, 2, 3]), (2, [1, 0, 3]), (0, [0, 0, 0]), (0, [1, 1, 1]), (4, [2, 9, 4]), (2, [4, 4, 0])]
    messages = agree(model, [{"x": np.full((n, 3), 7, dtype), "z": np.array(z, dtype)} for n, z in cases])
    assert [m is None for m in messages] == [True, False, False, True, True, False]
    assert "cannot divide an integer by 0" in str(messages[1]) and f"'{op.lower()}_y'" in str(messages[1])
