"""Models compiled for aarch64, run whole by stock ONNX Runtime for aarch64 in an arm64 root under qemu.

`make test-aarch64` makes the root and runs all of it. Without a root these tests skip.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from _pytest.mark.structures import ParameterSet
from onnx import helper

import igniter
from tests.conformance.node_cases import FAILURES, node_cases
from tests.platforms import aarch64_cases, aarch64_models
from tests.platforms.aarch64_cases import ALL, compile_case, output_types, rebuilt, run_compiled
from tests.platforms.arm64 import Guest, GuestError
from tests.platforms.arm64_root import missing

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")

SAMPLE = (
    "test_softmax_axis_1",
    "test_matmul_3d",
    "test_matmulinteger",
    "test_conv_with_strides_padding",
    "test_layer_normalization_2d_axis1",
    "test_cast_FLOAT_to_BFLOAT16",
)
TARGETS = {"aarch64": "cortex-a57", "neoverse-n1": "neoverse-n1", ALL: "max", "neoverse-v1": "max"}
"""Targets with a CPU of qemu's that has no more than their instructions, where qemu has one."""


PARTS = 12
OTHERS = [(target, sum(map(ord, target)) % PARTS) for target in TARGETS if target != ALL]
"""The other targets, each with a part of the cases."""


def _full(*values: str) -> ParameterSet:
    return pytest.param(*values, marks=pytest.mark.full)


@pytest.fixture(scope="module")
def guest() -> Iterator[Guest]:
    with Guest() as running:
        yield running


@pytest.mark.parametrize("name", SAMPLE)
def test_some_node_cases(name: str, guest: Guest, tmp_path: Path) -> None:
    compiled = compile_case(name, ALL, tmp_path / "out")
    assert not hasattr(compiled, "mode") or compiled.status == "native"
    result = run_compiled(rebuilt(name, compiled.status, compiled.reason, 0), tmp_path / "out", guest)
    assert result.status == "native", result.reason


def test_a_wrong_result_is_found(guest: Guest, tmp_path: Path) -> None:
    compiled = compile_case("test_softmax_axis_1", ALL, tmp_path / "out")
    other = rebuilt("test_softmax_axis_1", compiled.status, "", 0)
    other.expected[0] = other.expected[0] + 1e-3
    assert run_compiled(other, tmp_path / "out", guest).status == "mismatch"


@pytest.mark.parametrize("depth", [64, pytest.param(1100, marks=pytest.mark.full)])
def test_bytes_for_many_rows(depth: int, guest: Guest, tmp_path: Path) -> None:
    """Panels that are interleaved once for up to 192 rows, and by each body for twelve; exact."""
    rng = np.random.default_rng(0)
    weight = rng.integers(-128, 128, (depth, 48)).astype(np.int8)
    infos = [
        helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, ["m", depth]),
        helper.make_tensor_value_info("y", onnx.TensorProto.INT32, ["m", 48]),
    ]
    nodes = [helper.make_node("MatMulInteger", ["x", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], [onnx.numpy_helper.from_array(weight, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    igniter.load(model).compile(tmp_path / "out", target=ALL, verify=False, load=False)
    for height in (1, 6, 13, 193, 405):
        x = rng.integers(0, 256, (height, depth)).astype(np.uint8)
        (found,) = guest.run(tmp_path / "out", {"x": x}, {"y": "tensor(int32)"}, 2)
        np.testing.assert_array_equal(found, x.astype(np.int32) @ weight.astype(np.int32))


@pytest.mark.parametrize("rows", [None, 50])
def test_weights_of_f16_for_many_rows(rows: int | None, guest: Guest, tmp_path: Path) -> None:
    """Panels that are converted once for up to 48 rows, and by each body for six."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((300, 70)).astype(np.float16)
    nodes = [helper.make_node("Cast", ["w"], ["wide"], to=onnx.TensorProto.FLOAT)]
    nodes += [helper.make_node("MatMul", ["x", "wide"], ["s"]), helper.make_node("Relu", ["s"], ["y"])]
    infos = [
        helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [rows or "m", k]) for n, k in (("x", 300), ("y", 70))
    ]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], [onnx.numpy_helper.from_array(weight, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    igniter.load(model).compile(tmp_path / "out", target="aarch64", verify=False, load=False)
    for height in (1, 6, 7, 48, 100) if rows is None else (rows,):
        x = rng.standard_normal((height, 300)).astype(np.float32)
        (found,) = guest.run(tmp_path / "out", {"x": x}, {"y": "tensor(float)"})
        expected = np.maximum(x.astype(np.float64) @ weight.astype(np.float64), 0)
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


LACKING = (
    (ALL, "cortex-a53", "bf16, dotprod, i8mm"),
    (ALL, "neoverse-n1", "bf16, i8mm"),
    ("neoverse-n1", "cortex-a53", "dotprod, fullfp16, lse, rcpc, rdm"),
    ("neoverse-v1", "neoverse-n1", "bf16, complxnum, fp16fml, i8mm, rcpc-immo, sha3"),
)
"""Targets, CPUs of qemu's that lack some of their features, and these features."""


@pytest.mark.parametrize(("target", "cpu", "features"), [LACKING[0], *(_full(*each) for each in LACKING[1:])])
def test_an_older_cpu_is_refused(target: str, cpu: str, features: str, tmp_path: Path) -> None:
    """With the names of the features; an illegal instruction would end the guest. The same library loads on a CPU with
    all features, which `test_some_node_cases` shows."""
    compiled = compile_case("test_matmulinteger", target, tmp_path / "out")
    types = output_types(tmp_path / "out" / "model.onnx")
    said = f"compiled for {target}, and this CPU is aarch64 without {features}: compile the model with --target=aarch64"
    with Guest(cpu) as older, pytest.raises(GuestError, match=f": this library of Igniter is {re.escape(said)}$"):
        older.run(tmp_path / "out", compiled.feed, types)


@pytest.mark.full
@pytest.mark.parametrize(("target", "cpu"), [("aarch64", "cortex-a53"), ("neoverse-n1", "neoverse-n1")])
def test_a_cpu_with_the_features_and_no_more_runs(target: str, cpu: str, tmp_path: Path) -> None:
    compiled = compile_case("test_matmulinteger", target, tmp_path / "out")
    with Guest(cpu) as running:
        result = run_compiled(rebuilt("test_matmulinteger", compiled.status, "", 0), tmp_path / "out", running)
    assert result.status == "native", result.reason


@pytest.mark.full
@pytest.mark.parametrize(("target", "part"), [*((ALL, k) for k in range(PARTS)), *OTHERS])
def test_every_node_case(target: str, part: int) -> None:
    """Every case with all instructions; a twelfth of them for the other targets."""
    names = list(node_cases())[part::PARTS]
    results = list(aarch64_cases.run_cases(names, target, TARGETS[target]))
    failed = [f"{r.name}: {r.status}: {r.reason}" for r in results if r.status in FAILURES]
    assert not failed, "\n".join(failed)


@pytest.mark.full
@pytest.mark.parametrize("target", ["aarch64", ALL])
@pytest.mark.parametrize("name", aarch64_models.NAMES)
def test_models_with_teams_of_threads(name: str, target: str) -> None:
    found = list(aarch64_models.rows([name], target, (1, 2, 4)))
    assert len(found) == 1
    assert all(row.compiled for row in found)
    wrong = [str(row) for row in found if not row.is_right]
    assert not wrong, "\n".join(wrong)
