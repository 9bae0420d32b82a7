"""Profiles of models with graphs in nodes, functions, shared and external weights, odd types and sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.toolbox.profile.profile import Profile

from .networks import BOOL, F32, I64, bert, empty_weight, model_of


def profile_of(model: onnx.ModelProto, sizes: dict[str, int] | None = None, **options: Any) -> Profile:
    return igniter.load(model).profile(sizes, **options)


def graph(nodes: list[onnx.NodeProto], inputs: dict[str, Any], outputs: dict[str, Any]) -> onnx.GraphProto:
    """A graph for an attribute."""
    ports = [[helper.make_tensor_value_info(n, t, s) for n, (t, s) in given.items()] for given in (inputs, outputs)]
    return helper.make_graph(nodes, "inner", *ports)


# -- graphs in nodes --------------------------------------------------------------------------------------------------


def branches(condition: str = "c") -> onnx.ModelProto:
    then = graph([helper.make_node("MatMul", ["x", "w"], ["t"], "big")], {}, {"t": (F32, None)})
    other = graph([helper.make_node("Relu", ["x"], ["e"], "small")], {}, {"e": (F32, None)})
    node = helper.make_node("If", [condition], ["y"], "pick", then_branch=then, else_branch=other)
    weights = {"w": np.zeros((8, 8), np.float32), "no": np.array(False)}
    return model_of([node], {"c": (BOOL, []), "x": (F32, ["n", 8])}, {"y": (F32, None)}, weights)


def test_of_an_if_the_branch_with_more_flops_counts():
    profile = profile_of(branches())
    rows = {r.name: r for r in profile.by_node()}
    assert sorted(rows) == ["pick", "pick.else_branch/small", "pick.then_branch/big"]
    assert str(rows["pick.then_branch/big"].cost.macs) == "64*n"
    assert rows["pick.else_branch/small"].times == 0
    assert rows["pick.else_branch/small"].cost.flops == 0
    assert str(profile.total.cost.flops) == "128*n"
    (note,) = profile.notes
    assert note == "If pick: then_branch counts, for it has more FLOPs than else_branch (128*n and 8*n)"


def test_of_an_if_with_a_constant_condition_its_branch_counts():
    profile = profile_of(branches("no"))
    assert str(profile.total.cost.flops) == "8*n"
    assert "its condition is constant" in profile.notes[0]


def loop(trips: str, carried_condition: bool = True) -> onnx.ModelProto:
    body = graph(
        [
            helper.make_node("Identity" if carried_condition else "Not", ["going"], ["more"], "again"),
            helper.make_node("MatMul", ["state", "w"], ["next"], "step"),
        ],
        {"i": (I64, []), "going": (BOOL, []), "state": (F32, ["n", 8])},
        {"more": (BOOL, []), "next": (F32, ["n", 8])},
    )
    node = helper.make_node("Loop", [trips, "", "x"], ["y"], "rounds", body=body)
    weights = {"w": np.zeros((8, 8), np.float32), "five": np.array(5, np.int64)}
    inputs = {"x": (F32, ["n", 8]), "count": (I64, [])}
    return model_of([node], inputs, {"y": (F32, None)}, weights)


def test_a_loop_counts_as_often_as_it_runs():
    profile = profile_of(loop("five"))
    rows = {r.name: r for r in profile.by_node()}
    assert rows["rounds.body/step"].times == 5
    assert str(profile.total.cost.macs) == f"{5 * 64}*n"
    # The weight is there once, however often it is read.
    assert profile.total.parameters == 64


@pytest.mark.parametrize(("trips", "carried"), [("count", True), ("five", False)])
def test_a_loop_of_unknown_length_counts_by_a_symbol(trips: str, carried: bool):
    profile = profile_of(loop(trips, carried))
    assert str(profile.total.cost.macs) == "64*n*trips"
    assert profile.symbols["trips"] == "iterations of Loop rounds"
    assert profile_of(loop(trips, carried), {"n": 2, "trips": 7}).total.cost.macs == 64 * 2 * 7


def test_a_scan_counts_by_the_length_of_what_it_scans():
    body = graph(
        [helper.make_node("Add", ["s", "part"], ["t"], "add"), helper.make_node("Identity", ["t"], ["out"], "same")],
        {"s": (F32, [4]), "part": (F32, [4])},
        {"t": (F32, [4]), "out": (F32, [4])},
    )
    node = helper.make_node("Scan", ["s0", "xs"], ["last", "all"], "scan", body=body, num_scan_inputs=1)
    model = model_of([node], {"s0": (F32, [4]), "xs": (F32, ["time", 4])}, {"last": (F32, None), "all": (F32, None)})
    assert str(profile_of(model).total.cost.flops) == "4*time"


@pytest.mark.parametrize(
    ("op", "gates", "inputs"), [("LSTM", 4, 8), ("GRU", 3, 6), ("RNN", 1, 6)], ids=["lstm", "gru", "rnn"]
)
def test_recurrent_ops_count_by_time_steps(op: str, gates: int, inputs: int):
    hidden, width = 16, 8
    weights = [empty_weight("w", 2, gates * hidden, width), empty_weight("r", 2, gates * hidden, hidden)]
    node = helper.make_node(op, ["x", "w", "r"], ["y"], "cell", hidden_size=hidden, direction="bidirectional")
    model = model_of([node], {"x": (F32, ["time", "batch", width])}, {"y": (F32, None)}, weights)
    total = profile_of(model).total
    assert str(total.cost.macs) == f"{2 * gates * hidden * (width + hidden)}*batch*time"
    assert str(total.cost.flops) == f"{2 * 2 * gates * hidden * (width + hidden) + 12 * 2 * gates * hidden}*batch*time"


def test_local_functions_are_counted_inside():
    body = [helper.make_node("MatMul", ["a", "b"], ["m"], "product"), helper.make_node("Relu", ["m"], ["r"], "act")]
    function = helper.make_function("local", "Layer", ["a", "b"], ["r"], body, [helper.make_opsetid("", 20)])
    nodes = [
        helper.make_node("Layer", ["x", "w"], ["h"], "first", domain="local"),
        helper.make_node("Layer", ["h", "w"], ["y"], "second", domain="local"),
    ]
    model = model_of(
        *(nodes, {"x": (F32, ["n", 8])}, {"y": (F32, None)}, {"w": np.zeros((8, 8), np.float32)}),
        functions=[function],
        domains=["local"],
    )
    profile = profile_of(model)
    assert [r.name for r in profile.by_node()] == ["first/product", "first/act", "second/product", "second/act"]
    assert str(profile.total.cost.flops) == f"{2 * (128 + 8)}*n"
    assert profile.total.parameters == 64
    assert {r.name: str(r.cost.macs) for r in profile.by_module()} == {"first": "64*n", "second": "64*n"}


# -- weights ----------------------------------------------------------------------------------------------------------


def test_tied_weights_count_once_also_through_a_transpose():
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["x"], "embed"),
        helper.make_node("Transpose", ["table"], ["t"], "turn", perm=[1, 0]),
        helper.make_node("MatMul", ["x", "t"], ["y"], "head"),
    ]
    weights = {"table": np.zeros((100, 16), np.float32)}
    profile = profile_of(model_of(nodes, {"ids": (I64, ["n"])}, {"y": (F32, None)}, weights))
    assert profile.constant_nodes == 1
    assert (profile.total.parameters, profile.total.weight_bytes) == (1600, 6400)
    # Of the table, the rows that are picked are read, and no more than it has.
    assert str(profile.by_node()[0].cost.moved) == "72*n + min(64*n, 6400)"


def test_scalars_and_integers_are_no_parameters():
    nodes = [
        helper.make_node("Mul", ["x", "half"], ["h"]),
        helper.make_node("Reshape", ["h", "shape"], ["y"]),
    ]
    weights = {"half": np.array(0.5, np.float32), "shape": np.array([4, -1], np.int64)}
    total = profile_of(model_of(nodes, {"x": (F32, [8, "n"])}, {"y": (F32, None)}, weights)).total
    assert (total.parameters, total.weight_bytes) == (0, 4 + 16)


@pytest.mark.parametrize(
    ("kind", "bits"),
    [
        *((TensorProto.FLOAT16, 16), (TensorProto.BFLOAT16, 16), (TensorProto.DOUBLE, 64), (TensorProto.INT4, 4)),
        *((TensorProto.UINT4, 4), (TensorProto.INT8, 8), (TensorProto.FLOAT8E4M3FN, 8)),
    ],
)
def test_bytes_are_those_of_the_element_type(kind: int, bits: int):
    weight = helper.make_tensor("w", kind, [9, 3], [0.0] * 27 if bits > 4 else [0] * 27)
    scale = numpy_helper.from_array(np.array(1, np.float32), "s")
    op = "DequantizeLinear" if bits <= 8 else "Cast"
    node = helper.make_node(op, ["w", "s"] if bits <= 8 else ["x"], ["y"], **({} if bits <= 8 else {"to": kind}))
    model = model_of(
        [node], {"x": (F32, ["n", 3])}, {"y": (F32 if bits <= 8 else kind, None)}, [weight, scale], opset=21
    )
    (row,) = profile_of(model).by_node()
    if bits <= 8:
        assert row.weight_bytes == (27 * bits + 7) // 8 + 4
        assert row.parameters == 27
    else:
        assert str(row.cost.activations) == f"{3 * bits // 8}*n"


def test_weights_in_external_files_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    onnx.save_model(bert(1), tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=1024)

    def refuse(where: object) -> memoryview:
        raise AssertionError(f"{where} is read")

    monkeypatch.setattr("igniter.dialects.onnx.weights._file_bytes", refuse)
    total = igniter.load(tmp_path / "m.onnx").profile({"batch": 1, "seq": 8}).total
    assert total.parameters == igniter.load(bert(1)).profile().total.parameters
    with pytest.raises(AssertionError, match="is read"):
        igniter.load(tmp_path / "m.onnx").profile(sparsity=True)


def test_packed_weights_hold_several_parameters_a_byte():
    weights = {
        "w": np.zeros((64, 2, 16), np.uint8),
        "s": np.zeros(64 * 2, np.float32),
    }
    node = helper.make_node(
        "MatMulNBits", ["x", "w", "s"], ["y"], "q", domain="com.microsoft", K=64, N=64, bits=4, block_size=32
    )
    model = model_of([node], {"x": (F32, ["n", 64])}, {"y": (F32, None)}, weights, domains=["com.microsoft"])
    (row,) = profile_of(model).by_node()
    assert row.parameters == 64 * 64 + 128
    assert str(row.cost.macs) == f"{64 * 64}*n"
    assert row.weight_bytes == 2048 + 512


def test_a_model_without_inputs_is_counted_all_the_same():
    nodes = [helper.make_node("MatMul", ["a", "b"], ["y"], "m")]
    weights = {"a": np.zeros((2, 3), np.float32), "b": np.zeros((3, 4), np.float32)}
    profile = profile_of(model_of(nodes, {}, {"y": (F32, [2, 4])}, weights))
    assert (profile.total.cost.macs, profile.constant_nodes) == (24, 0)


# -- what is not known ------------------------------------------------------------------------------------------------


def test_an_op_that_nobody_knows_is_said_and_not_counted():
    nodes = [helper.make_node("Magic", ["x"], ["h"], "wand", domain="my"), helper.make_node("Relu", ["x"], ["y"], "r")]
    model = model_of(nodes, {"x": (F32, ["n"])}, {"h": (F32, ["n"]), "y": (F32, None)}, domains=["my"])
    profile = profile_of(model)
    assert profile.total.uncounted.startswith("my.Magic: Igniter does not know this op")
    assert str(profile.total.cost.flops) == "n"


def test_empty_and_scalar_tensors():
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Neg", ["s"], ["t"])]
    model = model_of(
        *(nodes, {"x": (F32, [0, 4]), "s": (F32, [])}, {"y": (F32, None), "t": (F32, None)}),
        {"w": np.zeros((4, 4), np.float32)},
    )
    total = profile_of(model).total
    assert (total.cost.macs, total.cost.flops) == (0, 1)


# -- sizes ------------------------------------------------------------------------------------------------------------


def test_sizes_put_in_are_those_of_a_model_with_these_sizes():
    sizes = {"batch": 2, "seq": 16}
    symbolic = igniter.load(bert(1)).profile(sizes)
    fixed = bert(1)
    for value in (*fixed.graph.input, *fixed.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_value = sizes[dim.dim_param]
    assert symbolic.to_dict() == igniter.load(fixed).profile().to_dict()


def test_a_size_of_a_symbol_that_the_model_has_not_is_an_error():
    with pytest.raises(igniter.IgniterError, match="no symbol 'sec'; did you mean 'seq'"):
        profile_of(bert(1), {"sec": 3})
    with pytest.raises(igniter.IgniterError, match="it is not negative"):
        profile_of(bert(1), {"seq": -1})
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    with pytest.raises(igniter.IgniterError, match="all its sizes are numbers"):
        profile_of(model_of(nodes, {"x": (F32, [2])}, {"y": (F32, [2])}), {"n": 3})


def test_names_of_one_dim_are_one_symbol_and_must_agree():
    nodes = [helper.make_node("MatMul", ["a", "b"], ["y"])]
    model = model_of(nodes, {"a": (F32, [2, "k"]), "b": (F32, ["depth", 4])}, {"y": (F32, None)})
    assert profile_of(model, {"depth": 3}).total.cost.macs == 24
    assert profile_of(model, {"k": 3, "depth": 3}).total.cost.macs == 24
    with pytest.raises(igniter.IgniterError, match="depth is k in every valid run, and cannot be 4 beside 3"):
        profile_of(model, {"k": 3, "depth": 4})


def test_a_profile_leaves_the_module_as_it_is():
    module = igniter.load(bert(1))
    before = str(module)
    module.profile({"batch": 1})
    assert str(module) == before


def test_a_module_with_regions_has_the_same_profile():
    module = igniter.load(bert(1))
    plain = module.profile()
    fused = module.run_passes("cpu-onnx,cpu-fusion").profile()
    assert fused.total.cost.macs == plain.total.cost.macs
    assert fused.total.parameters == plain.total.parameters


# -- modules ----------------------------------------------------------------------------------------------------------


def test_modules_hold_what_their_parts_hold():
    rows = {r.name: r for r in igniter.load(bert(2)).profile({"batch": 1, "seq": 4}).by_module()}
    whole, one = rows["encoder"], rows["encoder/layer.0"]
    assert whole.cost.macs == rows["encoder/layer.0"].cost.macs + rows["encoder/layer.1"].cost.macs
    assert one.parameters * 2 == whole.parameters
    assert set(igniter.load(bert(2)).profile().by_module(1)[0].name.split()) == {"encoder"}


# -- sparsity ---------------------------------------------------------------------------------------------------------


def patterned(pattern: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    weight = rng.uniform(1, 2, (256, 128)).astype(np.float32)
    if pattern == "2:4":
        fours = weight.reshape(-1, 4)
        fours[np.arange(len(fours)), rng.integers(0, 2, len(fours))] = 0
        fours[np.arange(len(fours)), rng.integers(2, 4, len(fours))] = 0
    elif pattern:
        r, c = map(int, pattern.split("x"))
        off = rng.random((256 // r, 128 // c)) < 0.5
        weight *= 1 - np.kron(off, np.ones((r, c), np.float32))
    return weight


@pytest.mark.parametrize("pattern", ["64x64", "16x16", "32x1", "1x8", "2:4", ""])
def test_sparsity_finds_the_pattern(pattern: str):
    weight = patterned(pattern)
    model = model_of(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (F32, ["n", 256])}, {"y": (F32, None)}, {"w": weight}
    )
    (row,) = profile_of(model, sparsity=True).by_node()
    found = row.sparsity
    assert found is not None
    assert found.zeros == int((weight == 0).sum())
    assert found.pattern == pattern
    assert profile_of(model).total.sparsity is None


def test_sparsity_of_a_quantised_weight_is_by_its_zero_point():
    weights = {
        "q": np.array([[3, 3, 3, 0], [3, 5, 6, 7]], np.uint8),
        "s": np.array(0.5, np.float32),
        "z": np.array(3, np.uint8),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["w"]),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    model = model_of(nodes, {"x": (F32, ["n", 2])}, {"y": (F32, None)}, weights)
    found = profile_of(model, sparsity=True).total.sparsity
    assert found is not None and (found.zeros, found.elements) == (4, 8)


def test_what_a_quantiser_writes_is_counted_without_shapes_in_the_model():
    """The ops of ONNX Runtime's quantiser, for which ONNX has no shape rule, against the same network in floats."""
    scales: dict[str, np.ndarray] = {"s": np.array(0.1, np.float32), "z": np.array(0, np.uint8)}
    weights = {
        **scales,
        "w": np.zeros((4, 3, 3, 3), np.uint8),
        "g": np.zeros((8, 5), np.uint8),
    }

    def node(op: str, inputs: list[str], output: str, **attributes: Any) -> onnx.NodeProto:
        return helper.make_node(op, inputs, [output], output, domain="com.microsoft", **attributes)

    nodes = [
        helper.make_node("QLinearConv", ["x", "s", "z", "w", "s", "z", "s", "z"], ["c"], "c"),
        node("QLinearSigmoid", ["c", "s", "z", "s", "z"], "a"),
        node("QLinearAdd", ["c", "s", "z", "a", "s", "z", "s", "z"], "b"),
        node("QLinearConcat", ["s", "z", "a", "s", "z", "b", "s", "z"], "d", axis=1),
        node("QLinearGlobalAveragePool", ["d", "s", "z", "s", "z"], "p"),
        helper.make_node("Flatten", ["p"], ["f"], "f"),
        node("QGemm", ["f", "s", "z", "g", "s", "z", "", "s", "z"], "y"),
    ]
    kind = TensorProto.UINT8
    model = model_of(
        *(nodes, {"x": (kind, ["n", 3, 8, 8])}, {"y": (kind, None)}, weights), opset=17, domains=["com.microsoft"]
    )
    profile = profile_of(model)
    assert not profile.total.uncounted
    assert str(profile.total.cost.macs) == f"{4 * 36 * 27 + 40}*n"
    assert [str(t) for t in profile.by_node()[-1].outputs] == ["n x 5"]
