"""Models compiled for aarch64, run whole by stock ONNX Runtime for aarch64 in an arm64 root under qemu.

`make test-aarch64` makes the root and runs all of it. Without a root these tests skip.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

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
@pytest.mark.parametrize("target", TARGETS)
def test_every_node_case(target: str) -> None:
    names = list(node_cases())
    # Every case with all instructions; a twelfth of them for the other targets.
    chosen = names if target == ALL else names[sum(map(ord, target)) % 12 :: 12]
    results = list(aarch64_cases.run_cases(chosen, target, TARGETS[target]))
    failed = [f"{r.name}: {r.status}: {r.reason}" for r in results if r.status in FAILURES]
    assert not failed, "\n".join(failed)


@pytest.mark.full
@pytest.mark.parametrize("target", ["aarch64", ALL])
def test_models_with_teams_of_threads(target: str) -> None:
    found = list(aarch64_models.rows(aarch64_models.NAMES, target, (1, 2, 4)))
    assert len(found) >= 10
    assert all(row.compiled for row in found)
    wrong = [str(row) for row in found if not row.is_right]
    assert not wrong, "\n".join(wrong)
