"""Inference that takes what it found of a node for those like it finds what inference without that finds."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from xdsl.ir import Operation

import igniter
from igniter.analysis.onnx import node_memo, shape_inference
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.ops import _registered, register, spec_named
from igniter.dialects.onnx.registry import InferContext, OpSpec, TensorInfo
from igniter.dialects.onnx.structure import main_graph
from tests.analysis.model import networks

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
Models = list[tuple[str, Callable[[], igniter.Module]]]


def _inferred(module: igniter.Module) -> str:
    module.run_passes("inline-functions,infer-shapes", verify_each=False)
    return str(module)


def _compare(make: Callable[[], igniter.Module], monkeypatch: pytest.MonkeyPatch, what: str = "") -> None:
    monkeypatch.setattr(shape_inference, "MEMO", False)
    without = _inferred(make())
    monkeypatch.setattr(shape_inference, "MEMO", True)
    assert _inferred(make()) == without, what


def _files(folder: str) -> list[Path]:
    return sorted(DATA.glob(f"{folder}/**/*.onnx"))


@pytest.mark.parametrize("path", _files("light"), ids=lambda p: p.stem)
def test_networks_of_the_onnx_package(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _compare(lambda: igniter.load(path), monkeypatch)


@pytest.mark.parametrize("name", ["mobilenet_v2", "bert", "decoder", "grouped_decoder"])
def test_networks_with_symbols(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"layers": 3, "hidden": 64, "heads": 4, "inner": 128} if name == "bert" else {}
    model: onnx.ModelProto = getattr(networks, name)(**small)
    _compare(lambda: igniter.load(model), monkeypatch)


def test_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    for path in EXAMPLES.glob("*.mlir"):
        text = path.read_text()
        if "onnx.graph" in text:
            _compare(lambda text=text: igniter.parse(text), monkeypatch, path.name)


def test_models_of_the_onnx_package(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("pytorch-converted", "pytorch-operator", "simple"):
        for path in _files(folder)[::4]:
            _compare(lambda path=path: _doubled(igniter.load(path)), monkeypatch, path.parent.name)


def _doubled(module: igniter.Module) -> igniter.Module:
    """With each node of the main graph twice, so that every second one is like one before it."""
    for op in list(main_graph(module.ir).body.ops):
        if isinstance(op, OnnxOp):
            again: Operation = op.clone()
            assert op.parent is not None
            op.parent.insert_op_after(again, op)
    return module


@pytest.mark.full
def test_nodes_of_the_onnx_package(monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        cases = load_model_tests(kind="node")
    for case in cases:
        _compare(lambda case=case: _doubled(igniter.load(case.model)), monkeypatch, case.name)


# -- what is taken, and what is not -----------------------------------------------------------------------------------


class _Counted:
    """The number of times that nodes of each op were taken from what was found before."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.taken: list[str] = []
        take = node_memo.NodeMemo.take

        def counted(memo: node_memo.NodeMemo, key: tuple[object, ...], op: OnnxOp) -> bool:
            found = take(memo, key, op)
            if found:
                self.taken.append(op.op_type)
            return found

        monkeypatch.setattr(node_memo.NodeMemo, "take", counted)


def _model(nodes: list[onnx.NodeProto], dims: list[int | str], weights: list[onnx.TensorProto]) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)
    outputs = [helper.make_tensor_value_info(n.output[0], TensorProto.UNDEFINED, None) for n in nodes]
    graph = helper.make_graph(nodes, "g", [x], outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_layers_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = _Counted(monkeypatch)
    _inferred(igniter.load(networks.bert(3, 64, 4, 128)))
    assert counted.taken.count("Softmax") == 2
    # What was found of one model is not taken for another.
    _inferred(igniter.load(networks.bert(3, 64, 4, 128)))
    assert counted.taken.count("Softmax") == 4


def test_values_of_operands_tell_nodes_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = _Counted(monkeypatch)
    shapes = [helper.make_tensor(f"s{k}", TensorProto.INT64, [2], v) for k, v in enumerate([(2, 6), (3, 4), (2, 6)])]
    nodes = [helper.make_node("Reshape", ["x", f"s{k}"], [f"y{k}"]) for k in range(3)]
    text = _inferred(igniter.load(_model(nodes, [12], shapes)))
    assert text.count("-> tensor<2x6xf32>") == 2 and text.count("-> tensor<3x4xf32>") == 1
    assert counted.taken == ["Reshape"]


def test_each_node_has_its_own_unknown_dims(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = _Counted(monkeypatch)
    nodes = [helper.make_node("NonZero", ["x"], [f"y{k}"]) for k in range(2)]
    text = _inferred(igniter.load(_model(nodes, ["n"], [])))
    assert text.count("nonzero_1>") > 0 and text.count("nonzero_1_1>") > 0 and not counted.taken


def test_constants_that_a_rule_reads_are_not_taken_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = _Counted(monkeypatch)
    scales = [helper.make_tensor(f"s{k}", TensorProto.FLOAT, [2], [1.0, 2.0 + k]) for k in range(2)]
    nodes = [helper.make_node("Resize", ["x", "", f"s{k}"], [f"y{k}"]) for k in range(2)]
    text = _inferred(igniter.load(_model(nodes, [1, 4], scales)))
    assert "-> tensor<1x8xf32>" in text and "-> tensor<1x12xf32>" in text and not counted.taken


def test_rules_of_other_packages_are_asked_for_every_node() -> None:
    known = spec_named("Relu")
    asked: list[OnnxOp] = []

    def infer(ctx: InferContext) -> list[TensorInfo]:
        asked.append(ctx.op)
        info = ctx.input(0)
        return [] if info is None else [info]

    register(OpSpec("Relu", infer=infer))
    try:
        nodes = [helper.make_node("Relu", ["x"], [f"y{k}"]) for k in range(3)]
        _inferred(igniter.load(_model(nodes, [4], [])))
    finally:
        del _registered["Relu"]
    assert len(asked) == 3 and spec_named("Relu") is known
