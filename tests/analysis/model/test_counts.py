"""Every op that has a schema has a count; MACs are those of the papers; onnx-tool's figures differ where it is said."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable
from math import prod
from pathlib import Path

import onnx
import pytest

import igniter
from igniter.dialects.onnx.ops import spec_named
from igniter.dialects.onnx.ops.counts import flops_rule
from igniter.dialects.onnx.schemas import op_names
from igniter.toolbox.profile.profile import NodeProfile, Profile, Row

from .networks import F32, bert, mobilenet_v2, model_of

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def schema_names() -> list[str]:
    """The ops of ONNX's domains that the onnx package has, and those of com.microsoft that ONNX Runtime has."""
    import onnxruntime.capi.onnxruntime_pybind11_state as state

    own = {f"{domain}.{name}" if domain else name for domain, name in op_names()}
    contrib = {f"{s.domain}.{s.name}" for s in state.get_all_operator_schema() if s.domain == "com.microsoft"}
    return sorted(own | contrib)


def test_every_op_has_a_count_and_its_rule_in_words():
    names = schema_names()
    assert len(names) > 350
    assert sum(n.startswith("com.microsoft.") for n in names) > 100
    assert not [n for n in names if flops_rule(spec_named(n)) is None]
    for name in names:
        spec = spec_named(name)
        rule = flops_rule(spec)
        assert spec is not None and rule is not None
        assert (rule.__doc__ or "").strip(), f"{name} has a rule without a text"
        assert spec.macs is None or (spec.macs.__doc__ or "").strip(), f"{name} has MACs without a text"
        assert spec.macs is None or "MACs" in (rule.__doc__ or ""), f"FLOPs of {name} do not begin with its MACs"


@pytest.mark.parametrize(
    ("name", "macs", "parameters"),
    [
        # He et al. 2015; Huang et al. 2016; Szegedy et al. 2014; Iandola et al. 2016; Simonyan and Zisserman 2014.
        ("resnet50", 4.09e9, 25.6e6),
        ("densenet121", 2.83e9, 8.1e6),
        ("inception_v1", 1.43e9, 7.0e6),
        ("squeezenet", 0.35e9, 1.24e6),
        ("vgg19", 19.6e9, 143.7e6),
        ("bvlc_alexnet", 0.65e9, 61.0e6),
    ],
)
def test_light_models_have_the_figures_of_papers(name: str, macs: float, parameters: float):
    total = igniter.load(LIGHT / f"light_{name}.onnx").profile().total
    assert total.cost.macs.constant == pytest.approx(macs, rel=0.01)
    assert total.parameters == pytest.approx(parameters, rel=0.01)


def test_mobilenet_v2_has_300_million_macs():
    total = igniter.load(mobilenet_v2()).profile().total
    assert total.cost.macs.constant == pytest.approx(300e6, rel=0.01)
    assert total.parameters == pytest.approx(3.4e6, rel=0.03)


@pytest.mark.slow
def test_bert_base_has_11_2_billion_macs_at_128_tokens():
    profile = igniter.load(bert()).profile()
    per_token = 12 * (4 * 768 * 768 + 2 * 768 * 3072)
    # Scores and their mixture: each query with each key, twice the width.
    assert str(profile.total.cost.macs) == f"{12 * 2 * 768}*batch*seq*seq + {per_token}*batch*seq"
    total = profile.at({"batch": 1, "seq": 128}).total
    assert total.cost.macs.constant == 128 * per_token + 12 * 2 * 768 * 128 * 128
    assert total.cost.macs.constant == pytest.approx(11.2e9, rel=0.005)
    assert total.parameters == 12 * (4 * (768 * 768 + 768) + 2 * 768 * 3072 + 3072 + 768)


def test_a_product_is_an_expression_of_the_symbols():
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["y"], "up")]
    weights = {"w": __import__("numpy").zeros((768, 3072), "float32")}
    model = model_of(nodes, {"x": (F32, ["batch", "seq", 768])}, {"y": (F32, None)}, weights)
    (row,) = igniter.load(model).profile().by_node()
    assert str(row.cost.flops) == f"{2 * 768 * 3072}*batch*seq"
    assert (row.parameters, row.weight_bytes) == (768 * 3072, 4 * 768 * 3072)
    assert str(row.cost.activations) == f"{4 * 3072}*batch*seq"
    assert str(row.cost.moved) == f"{4 * (768 + 3072)}*batch*seq + {4 * 768 * 3072}"


# -- beside onnx-tool -------------------------------------------------------------------------------------------------


def _elements(profile: Profile, op: str, results: bool, biased: bool = False) -> int:
    """The elements of the results or of the first operands of an op's nodes; of those with a bias alone."""

    def of(node: NodeProfile) -> int:
        dims = (node.outputs if results else node.inputs)[0].dims
        assert dims is not None
        return prod(d.constant or 0 for d in dims)

    return sum(of(n) for n in profile.nodes if n.op == op and (not biased or len(n.weights) > 1))


def _elementwise(profile: Profile, row: Row) -> int | None:
    return row.cost.flops.constant


def _bias(profile: Profile, row: Row) -> int:
    return (row.cost.macs.constant or 0) + _elements(profile, row.op, True, biased=True)


def _each(amount: int) -> Callable[[Profile, Row], int]:
    return lambda profile, row: amount * _elements(profile, row.op, True)


def _global_pool(profile: Profile, row: Row) -> int:
    return _elements(profile, row.op, False) + 4 * _elements(profile, row.op, True)


MACS: dict[str, Callable[[Profile, Row], int | None]] = {
    # An addition of a bias is a MAC there; here the sum begins with it.
    "Conv": _bias,
    "Gemm": _bias,
    # One MAC an element there: here a FLOP, and no MAC.
    **dict.fromkeys(("Add", "Mul", "Relu", "Sum"), _elementwise),
    # Each element of a window is a MAC there, and a FLOP here; a global average divides for four more.
    **dict.fromkeys(("AveragePool", "MaxPool"), _elementwise),
    "GlobalAveragePool": _global_pool,
    # Fixed MACs an element.
    "BatchNormalization": _each(31),
    "LRN": _each(42),
    "Softmax": _each(36),
    **dict.fromkeys(("Concat", "Dropout", "Reshape", "Transpose"), _each(0)),
}
"""What onnx-tool says of an op, by what Igniter does: docs/how-to/profile.md has the same in words."""


def reference() -> dict[str, dict[str, dict[str, str]]]:
    """onnx-tool's table by model and op."""
    found: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)
    with (Path(__file__).parent / "onnx_tool_light.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found[row["model"]][row["op"]] = row
    return found


@pytest.mark.parametrize("model", sorted(reference()))
def test_differences_from_onnx_tool_are_the_explained_ones(model: str):
    profile = igniter.load(LIGHT / model).profile()
    rows = {r.op: r for r in profile.by_type()}
    theirs = reference()[model]
    assert rows.keys() == theirs.keys()
    for op, said in theirs.items():
        row = rows[op]
        assert int(said["count"]) == row.nodes
        assert int(said["macs"]) == MACS[op](profile, row), op
        if op == "Reshape":
            # A view: no bytes are written here, and the shape that it takes is no parameter.
            assert row.cost.activations.constant == 0 and row.parameters == 0
            assert int(said["params"]) == row.weight_bytes // 8
        else:
            assert int(said["params"]) == row.parameters, op
            assert int(said["memory_bytes"]) == row.memory.constant, op
