"""Plug-ins that raise: the error shows their own line, and a rule costs its own node."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from tools_kit import opt

import igniter
from igniter import registry
from igniter.dialects.fusion import RegionOp
from igniter.dialects.loop.instructions import micro_kernel
from igniter.dialects.onnx import ops
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.ops.counts import flops_of
from igniter.dialects.onnx.registry import InferContext, OpSpec, TensorInfo
from igniter.dialects.onnx.rule_guards import failures_of
from igniter.dialects.sym.expr import Expr
from igniter.errors import IgniterError
from igniter.passes import PassError
from igniter.schedules import author as schedule_author

PLUGIN = """
from dataclasses import dataclass
from xdsl.passes import ModulePass
from igniter.analysis.fusion.author import FusionAuthor
from igniter.schedules.author import ScheduleAuthor
from igniter.targets import Backend

def lookup(table):
    return table["axis"]

@dataclass(frozen=True)
class BadPass(ModulePass):
    name = "bad-pass"
    def apply(self, ctx, op):
        lookup({})

@dataclass(frozen=True)
class BadFusion(FusionAuthor):
    name = "bad-fusion"
    def refuse_node(self, node):
        lookup({})

@dataclass(frozen=True)
class BadSchedule(ScheduleAuthor):
    name = "bad-schedule"
    def __call__(self, kernel, machine):
        lookup({})

class BadBackend:
    def __init__(self):
        lookup({})

def form_nothing(op, rewriter):
    lookup({})

RULES = {"Mul": (form_nothing,)}
"""
BROKEN = "broken = {}['kernel']\n"
ENTRIES = """
[igniter.passes]
bad-pass = bad_plugin:BadPass
unimportable = bad_import:Pass
[igniter.fusion_authors]
bad-fusion = bad_plugin:BadFusion
[igniter.schedule_authors]
bad-schedule = bad_plugin:BadSchedule
[igniter.micro_kernels]
bad.kernel = bad_import:KERNEL
[igniter.backends]
bad = bad_plugin:BadBackend
[igniter.patterns]
bad = bad_plugin:RULES
"""
PLACE = '(bad_plugin.py:9, in lookup: return table["axis"])'


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package with a plug-in of every kind; all of them raise."""
    (tmp_path / "bad_plugin.py").write_text(PLUGIN)
    (tmp_path / "bad_import.py").write_text(BROKEN)
    info = tmp_path / "bad_plugin-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(ENTRIES)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bad-plugin\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("bad_plugin", "bad_import"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    registry.forget_packages()
    yield
    monkeypatch.undo()
    registry.forget_packages()


def test_a_pass(plugin: None) -> None:
    done = opt("-p", "cse,bad-pass", text="builtin.module {}\n")
    assert done.err == f"igniter-opt: error: pass 'bad-pass': KeyError: 'axis' {PLACE}\n"
    assert done.status == 4
    assert "bad-plugin 1.0" in registry.plugins()


def test_a_fusion_author(plugin: None, model: Path) -> None:
    with pytest.raises(IgniterError) as caught:
        igniter.load(model).run_passes("infer-shapes,form-fusion-regions{author=bad-fusion}")
    assert "the fusion author 'bad-fusion', asked about 'Gather_0', in refuse_node failed: KeyError" in str(
        caught.value
    )
    assert PLACE in str(caught.value)
    assert caught.value.exit_status == 4


def test_a_schedule_author(plugin: None, model: Path) -> None:
    module = igniter.load(model).run_passes("cpu-onnx,cpu-fusion,cpu-loop")
    with pytest.raises(IgniterError) as caught:
        module.run_passes("choose-schedule{author=bad-schedule}")
    assert f"asked about kernel @r0, failed: KeyError: 'axis' {PLACE}" in str(caught.value)
    assert schedule_author.make_author("bad-schedule")


def test_a_backend(plugin: None) -> None:
    done = opt("--target=bad:any", "-p", "cse", text="builtin.module {}\n")
    assert f"the backend 'bad' cannot be made: KeyError: 'axis' {PLACE}" in done.err


def test_a_module_that_does_not_import(plugin: None) -> None:
    place = "(bad_import.py:1, in <module>: broken = {}['kernel'])"
    done = opt("-p", "unimportable", text="builtin.module {}\n")
    assert f"the pass 'unimportable' cannot be loaded from bad_import:Pass: KeyError: 'kernel' {place}" in done.err
    with pytest.raises(IgniterError) as caught:
        micro_kernel("bad.kernel")
    assert place in str(caught.value)


def test_a_pattern_is_no_match(plugin: None, model: Path, caplog: pytest.LogCaptureFixture) -> None:
    module = igniter.load(model).run_passes("recompose")
    assert f"the pattern 'form_nothing' raised KeyError: 'axis' {PLACE} at Mul; 1 node compiled" in caplog.text
    (remark,) = module.remarks.of("recompose", "missed")
    assert remark.details == {"rule": "pattern 'form_nothing'"}
    done = opt(str(model), "-p", "recompose", "--strict", "--emit=none")
    assert (done.status, "the pattern 'form_nothing' raised" in done.err) == (4, True)
    assert "igniter-opt: warning: the pattern" in opt(str(model), "-p", "recompose", "--emit=none").err


# -- the rules of an op -----------------------------------------------------------------------------------------------


def same(ctx: InferContext) -> list[TensorInfo]:
    x = ctx.input(0)
    assert x is not None
    return [TensorInfo(x.element, x.dims)]


def wrong(*_: object) -> object:
    raise TypeError("no axis")


LAYOUTS = ("packs", "panels", "words", "orders", "tables")

GOOD = {
    "infer": same,
    "fold": lambda _, arrays: [arrays[0] * 2],
    "lower": lambda ctx: [ctx.map(lambda x: x * 2)],
}


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Add, Twice (an op of the domain `own`), Mul and Exp."""
    nodes = [
        helper.make_node("Add", ["x", "b"], ["a"], name="add"),
        helper.make_node("Twice", ["a"], ["t"], name="twice", domain="own"),
        helper.make_node("Mul", ["t", "b"], ["m"], name="mul"),
        helper.make_node("Exp", ["m"], ["y"], name="exp"),
    ]
    ends = [helper.make_tensor_value_info(name, 1, ["n", 8]) for name in ("x", "y")]
    graph = helper.make_graph(
        nodes, "own", ends[:1], ends[1:], [numpy_helper.from_array(np.arange(8, dtype=np.float32), "b")]
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    path = tmp_path / "own.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


@pytest.fixture
def twice(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, object]]:
    """The rules of `own.Twice`, before its registration."""
    ops.all_specs()
    monkeypatch.setattr(ops, "_registered", dict(ops._registered))
    yield dict(GOOD)


def fused(module: igniter.Module) -> list[str]:
    """Returns the op types in regions."""
    nodes = [op for region in module.ir.walk() if isinstance(region, RegionOp) for op in region.block.ops]
    return [getattr(op, "op_type", op.name) for op in nodes if getattr(op, "op_type", "") not in ("Constant", "")]


@pytest.mark.parametrize("rule", ["legal", "lower", "infer", "unprofitable"])
def test_a_rule_costs_its_own_node(
    rule: str, twice: dict[str, object], own: Path, caplog: pytest.LogCaptureFixture
) -> None:
    twice[rule] = wrong
    ops.register(OpSpec("own.Twice", kind="elementwise", **twice))  # type: ignore[arg-type]
    module = igniter.load(own).run_passes("cpu-onnx,cpu-fusion")
    assert [rule] == [name for op in module.ir.walk() for name in failures_of(op)]
    assert f"own.Twice: its rule '{rule}' raised TypeError: no axis (" in caplog.text
    assert "in wrong: raise TypeError" in caplog.text and "--strict" in caplog.text
    assert any(r.details.get("rule") == rule and r.node == "twice" for r in module.remarks)
    # Costs and requirements have a default; without a kernel or a shape the node is outside, the others are fused.
    assert ("Twice" in fused(module)) == (rule == "unprofitable")
    if rule in ("legal", "lower"):
        assert {"Mul", "Exp"} <= set(fused(module))


@pytest.mark.parametrize(("rule", "default"), [*((r, {}) for r in LAYOUTS), ("requires", ()), ("macs", Expr.of(0))])
def test_a_rule_of_costs_or_layouts_has_a_default(
    rule: str, default: object, twice: dict[str, object], own: Path
) -> None:
    twice[rule] = wrong
    spec = ops.register(OpSpec("own.Twice", **twice))  # type: ignore[arg-type]
    module = igniter.load(own).run_passes("infer-shapes")
    (node,) = [op for op in module.ir.walk() if isinstance(op, OnnxOp) and op.op_type == "Twice"]
    assert getattr(ops.spec_of(node), rule)(node) == default
    assert list(failures_of(node)) == [rule]
    assert getattr(spec, rule) is wrong  # The caller's own object is as it was.


def test_the_default_count_is_one_operation_an_element(twice: dict[str, object], own: Path) -> None:
    ops.register(OpSpec("own.Twice", flops=wrong, **twice))  # type: ignore[arg-type]
    module = igniter.load(own).run_passes("infer-shapes")
    (node,) = [op for op in module.ir.walk() if isinstance(op, OnnxOp) and op.op_type == "Twice"]
    assert str(flops_of(node)) == "8*n"


def test_strict_makes_it_an_error(twice: dict[str, object], own: Path) -> None:
    twice["lower"] = wrong
    ops.register(OpSpec("own.Twice", kind="elementwise", **twice))  # type: ignore[arg-type]
    with pytest.raises(PassError, match=r"own.Twice: its rule 'lower' raised TypeError: no axis") as caught:
        igniter.compile(own, strict=True, cache=False, verify=False)
    assert (caught.value.exit_status, caught.value.reproducer) == (4, "")


def test_a_fold_that_raises_is_no_reference(twice: dict[str, object], own: Path) -> None:
    twice["fold"] = wrong
    ops.register(OpSpec("own.Twice", kind="elementwise", **twice))  # type: ignore[arg-type]
    artifact = igniter.compile(own, cache=False)
    said = artifact.report["verification"]
    assert said["status"] == "not verified"
    assert "its rule 'fold' raised TypeError: no axis" in said["reasons"][0]


def test_an_error_that_a_rule_raises_on_purpose_is_its_own(twice: dict[str, object], own: Path) -> None:
    def refuse(*_: object) -> object:
        raise IgniterError("no such axis")

    twice["legal"] = refuse
    ops.register(OpSpec("own.Twice", kind="elementwise", **twice))  # type: ignore[arg-type]
    with pytest.raises(PassError, match=r"pass 'form-fusion-regions': no such axis$"):
        igniter.load(own).run_passes("cpu-onnx,cpu-fusion")


def test_the_library_is_silent(own: Path, twice: dict[str, object], capfd: pytest.CaptureFixture[str]) -> None:
    twice["lower"] = wrong
    ops.register(OpSpec("own.Twice", kind="elementwise", **twice))  # type: ignore[arg-type]
    assert any(isinstance(h, logging.NullHandler) for h in logging.getLogger("igniter").handlers)
    igniter.load(own).run_passes("cpu-onnx,cpu-fusion")
    assert capfd.readouterr() == ("", "")


# -- verification of a plug-in's op, without being asked for it -------------------------------------------------------


@pytest.mark.slow
def test_an_op_with_a_fold_is_verified_by_it(
    twice: dict[str, object], own: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ops.register(OpSpec("own.Twice", kind="elementwise", **twice))  # type: ignore[arg-type]
    said = igniter.compile(own, cache=False).report["verification"]
    assert (said["status"], said["against"]) == ("passed", "Igniter's interpreter")
    assert caplog.text == "" and "not verified" not in said["because"]
    twice["lower"] = lambda ctx: [ctx.map(lambda x: x * 3)]
    ops.register(OpSpec("own.Twice", kind="elementwise", **twice))  # type: ignore[arg-type]
    with pytest.raises(igniter.VerificationFailed):
        igniter.compile(own, cache=False)


def test_an_op_without_a_fold_is_warned_about(
    twice: dict[str, object], own: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The interpreter runs its lowering, so all below it is verified, and the lowering itself is not."""
    del twice["fold"]
    ops.register(OpSpec("own.Twice", kind="elementwise", **twice))  # type: ignore[arg-type]
    said = igniter.compile(own, cache=False).report["verification"]
    assert (said["status"], said["against"]) == ("passed", "Igniter's interpreter")
    assert "not verified is the lowering of own.Twice: without a `fold` it is its own reference" in said["because"]
    assert "the lowering of own.Twice is not verified" in caplog.text and "give its OpSpec a `fold`" in caplog.text


def test_an_op_with_neither_is_named(twice: dict[str, object], own: Path) -> None:
    ops.register(OpSpec("own.Twice", infer=same))  # type: ignore[arg-type]
    with pytest.raises(IgniterError, match=r"'twice' \(own.Twice\): Igniter has no lowering for own.Twice \(--no-load"):
        igniter.compile(own, cache=False)
    checked = opt(str(own), "-p", "infer-shapes,canonicalize-onnx", "--check-each", "--emit=none")
    assert checked.status == 1 and "'twice' (own.Twice)" in checked.err
    assert "nothing computes it: give its OpSpec a `fold`" in checked.err


@pytest.mark.slow
def test_each_pass_over_a_plugins_op_is_checked(twice: dict[str, object], own: Path, bad_passes: None) -> None:
    ops.register(OpSpec("own.Twice", kind="elementwise", **twice))  # type: ignore[arg-type]
    passes = "infer-shapes,canonicalize-onnx,form-fusion-regions,lower-onnx-to-loop"
    found = opt(str(own), "-p", passes, "--check-each", "--emit=none")
    assert found.status == 0, found.err
    assert "check: canonicalize-onnx: 1 results agree" in found.err and "check: lower-onnx-to-loop: " in found.err
    twice["lower"] = lambda ctx: [ctx.map(lambda x: x * 3)]
    ops.register(OpSpec("own.Twice", kind="elementwise", **twice))  # type: ignore[arg-type]
    found = opt(str(own), "-p", passes, "--check-each", "--emit=none")
    assert found.status == 3 and "pass 'lower-onnx-to-loop' changed @r0" in found.err
