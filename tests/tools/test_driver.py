"""The compile driver: its stages, its cache key, and what becomes of a kernel that does not compile."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import onnx.parser
import pytest

import igniter
from igniter.compiler import driver
from igniter.compiler.compilation import Compilation, CompileOptions
from igniter.errors import IgniterError
from igniter.runtime.cache import default_cache
from igniter.transforms.structured.schedule_database import opened


def compilation(model: Path, **options: str) -> Compilation:
    module = igniter.load(model)
    return Compilation(module.ir, CompileOptions(**options), module.ctx)


def test_every_option_is_in_the_key(tmp_path: Path) -> None:
    base = CompileOptions()
    keys = {base.key()}
    database = tmp_path / "tuned.sqlite"
    with opened(database, create=True):
        pass
    others = {
        "machine": {"l2_bytes": 1 << 19},
        "sizes": {"n": 8},
        "left": {"relu": "slow"},
        "tuned": str(database),
        "winograd": "on",
        "subnormals": "keep",
        "tile_weights": "file",
        "passes": "cpu without winograd",
    }
    for option in fields(base):
        keys.add(replace(base, **{option.name: others.get(option.name, "other")}).key())
    assert len(keys) == len(fields(base)) + 1
    assert CompileOptions().key() == base.key()


def test_stages_follow_each_other(model: Path) -> None:
    c = compilation(model)
    seen: list[str] = []
    c.progress = seen.append
    assert "fusion.region" not in str(driver.make_onnx(c))
    assert "fusion.region" in str(driver.make_fusion(c))
    assert "loop.kernel" in str(driver.make_loop(c))
    kernels = driver.make_llvm(c)
    assert kernels
    assert all(f'@"{k.name}"' in k.variants[0] or f"@{k.name}(" in k.variants[0] for k in kernels)
    assert ".text" in driver.make_assembly(c)
    library = driver.make_library(c)
    assert library is not None
    assert library.data.startswith(b"\x7fELF")
    assert library.domain in str(c.module)
    assert seen == ["onnx", "fusion", "loop", "llvm", "programs", "asm", "library"]
    assert list(c.seconds) == seen


def test_scheduled_is_the_whole_module(model: Path) -> None:
    c = compilation(model)
    driver.make_onnx(c)
    driver.make_fusion(c)
    driver.make_loop(c)
    text = str(driver.make_scheduled(c))
    assert "loop.func" in text
    assert "loop.kernel" not in text


@pytest.mark.parametrize("target", ["x86-64", "x86-64-v3", "aarch64"])
def test_code_for_other_machines(model: Path, target: str) -> None:
    c = compilation(model, target=target)
    c.strict = True
    driver.make_onnx(c)
    driver.make_fusion(c)
    driver.make_loop(c)
    assert driver.make_llvm(c)
    assert driver.make_assembly(c)


def test_what_does_not_compile_is_left_to_onnxruntime(model: Path, bad_passes: None) -> None:
    options = CompileOptions(schedule_passes="crash")
    artifact = igniter.load(model).compile(options=options)
    report = artifact.report
    assert report["kernels"] == 0
    assert report["regions"] == 0
    assert artifact.libraries == []
    assert report["verification"]["ok"]
    assert "pass 'crash': KeyError: 'crashed 1 times'" in report["left_to_onnxruntime"][0]["reason"]
    assert {entry["kind"] for entry in report["left_to_onnxruntime"]} == {"failed"}
    assert any(r["pass"] == "driver" and r["kind"] == "missed" for r in report["remarks"])
    with pytest.raises(IgniterError, match="pass 'crash'"):
        igniter.load(model).compile(options=options, strict=True)


def test_a_schedule_that_schedules_nothing_is_refused(model: Path) -> None:
    with pytest.raises(IgniterError, match="leave kernel @r0 unscheduled"):
        igniter.load(model).compile(options=CompileOptions(schedule_passes="canonicalize-loop"), strict=True)


def test_a_second_compile_takes_kernels_from_the_cache(model: Path) -> None:
    first = igniter.compile(model, verify=False)
    assert default_cache().size() > 0
    second = igniter.compile(model, verify=False)
    assert first.libraries[0].read_bytes() == second.libraries[0].read_bytes()
    assert second.report["seconds"]["llvm"] < first.report["seconds"]["llvm"]


def test_without_the_cache_nothing_is_stored(model: Path) -> None:
    igniter.compile(model, verify=False, cache=False)
    assert default_cache().size() == 0


def test_an_unknown_target_is_refused_with_the_known_ones(model: Path) -> None:
    with pytest.raises(IgniterError, match="native"):
        igniter.compile(model, target="pentium-mmx-turbo")


UNCOMPILED = """
<ir_version: 8, opset_import: ["" : 17]>
mixed (float[n, 8] x, string[n] words) => (float[n, 8] y, string[m] twice, bool c, float[n, 8] z) {
    a = Mul(x, x)
    y = Relu(a)
    twice = Concat<axis = 0>(words, words)
    s = ReduceSum<keepdims = 0>(x)
    zero = Constant<value_float = 0.0>()
    c = Greater(s, zero)
    z = If(c) <then_branch = then_graph () => (float[n, 8] t) { t = Neg(x) },
               else_branch = else_graph () => (float[n, 8] e) { e = Abs(x) }>
}
"""


def test_every_node_that_is_left_is_listed(tmp_path: Path) -> None:
    module = igniter.load(onnx.parser.parse_model(UNCOMPILED))
    artifact = module.compile(tmp_path / "out", verify=False)
    left = {entry["node"]: entry for entry in artifact.report["left_to_onnxruntime"]}
    stayed = [n for n in onnx.load(artifact.model_path).graph.node if not n.domain.startswith("libigniter_")]
    assert {n.output[0] for n in stayed} <= left.keys()
    assert left["twice"]["op"] == "Concat" and "string" in left["twice"]["reason"]
    assert left["z"]["kind"] == "subgraph" and left["t"]["kind"] == "cost"
    with pytest.raises(IgniterError, match=r"nodes would be left .*'twice' \(Concat\)"):
        module.compile(strict=True, verify=False)


@pytest.mark.slow
def test_remarks_do_not_depend_on_the_cache(model: Path) -> None:
    first, second = (igniter.compile(model, verify=False).report["remarks"] for _ in range(2))
    assert first == second
    assert any(r["pass"] not in ("form-fusion-regions", "driver") for r in first)
