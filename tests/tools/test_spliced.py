"""Pipelines that nest and are edited: the grammar, and compiles with edits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from tools_kit import opt

import igniter
from igniter.compiler.compilation import CompileOptions
from igniter.passes import PassError, flat_passes, parse_passes
from igniter.pipeline_text import PipelineError, expand
from igniter.pipelines import PIPELINES
from igniter.targets import backend_for
from tests.docs.transcripts import ROOT

NESTED = (ROOT / "lit_tests" / "tools" / "nested.mlir").read_text()
FUSION = flat_passes("cpu-fusion")


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("cse,dce", ["cse", "dce"]),
        (" cse , dce ", ["cse", "dce"]),
        ("builtin.module(cse,dce)", ["cse", "dce"]),
        ("builtin.module(cse with dce before cse),canonicalize", ["dce", "cse", "canonicalize"]),
        ("cse with dce after cse", ["cse", "dce"]),
        ("cse with dce after cse, with canonicalize before dce", ["cse", "canonicalize", "dce"]),
        (
            "cse,dce,cse with tile-loops{axis=i size=4} after cse#2",
            ["cse", "dce", "cse", 'tile-loops{axis="i" size=4}'],
        ),
        ("cse,dce,cse with canonicalize after cse#all", ["cse", "canonicalize", "dce", "cse", "canonicalize"]),
        ("cse,dce,cse without cse", ["dce"]),
        ("cse,dce,cse without cse#2", ["cse", "dce"]),
        ("cse,cpu-fusion,dce with canonicalize after cpu-fusion", ["cse", *FUSION, "canonicalize", "dce"]),
        ("cse,cpu-fusion,dce without cpu-fusion", ["cse", "dce"]),
        ("loop.kernel(cse with dce after cse)", ["loop.kernel(cse,dce)"]),
        ("loop.kernel(cse) with dce after cse", ["loop.kernel(cse,dce)"]),
        ("any(cse,loop.func(dce))", ["any(cse,loop.func(dce))"]),
    ],
)
def test_pipelines_expand(text: str, passes: Sequence[str]) -> None:
    assert list(flat_passes(text)) == passes
    assert list(flat_passes(",".join(passes))) == passes
    assert [str(this.spec()) for this in parse_passes(text)] == passes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cse with dce", "cannot read the edit 'with dce' of a pipeline: the forms are 'with PASS before NAME'"),
        ("cse with dce after cse,canonicalize", "'cse,canonicalize' in 'with dce after cse,canonicalize' is no place"),
        ("cse with dce after csee", "no 'csee' for 'with dce after csee'; did you mean 'cse'?"),
        ("cse with dcee after cse", "no pass or pipeline called 'dcee'; did you mean 'dce'?"),
        ("cse with dce after cse#2", "the pipeline has cse 1 times, so there is no cse#2"),
        ("cse with dce after cse#x", "'cse#x' in 'with dce after cse#x' is no place of a pipeline"),
        ("cpu-kernels with cse after fuse-loops", 'edited within schedule-kernels{passes="..."}'),
        ("cse dce", "cannot read the pipeline 'cse dce'"),
        ("cse{", "cannot read the pipeline 'cse{'"),
        ("loop.kernel(cse", "cannot read the pipeline"),
    ],
)
def test_wrong_pipelines_are_errors(text: str, message: str) -> None:
    with pytest.raises(PipelineError) as error:
        parse_passes(text)
    assert message in str(error.value)


def test_every_pipeline_expands_to_itself() -> None:
    for name in PIPELINES:
        assert ",".join(flat_passes(name)) == ",".join(flat_passes(",".join(flat_passes(name))))


def test_a_choice_between_places_is_a_note() -> None:
    assert not expand("cse,dce with canonicalize after cse").notes
    (note,) = expand("cse,dce,cse with canonicalize after cse").notes
    assert "the pipeline has cse 2 times; the first is taken" in note
    found = opt("-p", "cse,dce,cse with canonicalize after cse", "--dump-pass-pipeline", text=NESTED)
    assert "igniter-opt: note: 'with canonicalize after cse'" in found.err
    assert "builtin.module(cse,canonicalize,dce,cse)\n" in found.err


def test_edits_end_with_their_argument() -> None:
    found = opt("-p", "cse with dce before cse", "--canonicalize", "--dump-pass-pipeline", text=NESTED)
    assert found.err == "builtin.module(dce,cse,canonicalize)\n"


def test_a_dumped_pipeline_is_a_pipeline() -> None:
    first = opt("-p", "cpu-loop,cpu-kernels", "--target=x86-64-v3", "--dump-pass-pipeline", text=NESTED)
    dumped, _, nested = first.err.partition("\n")
    again = opt("-p", dumped, "--target=x86-64-v3", "--dump-pass-pipeline", text=NESTED)
    assert again.err == first.err and again.out == first.out
    assert nested.startswith("// schedule-kernels runs canonicalize-loop,")


def test_nested_pipelines_run_on_each_op_alone() -> None:
    # The last pass makes a library of the whole module.
    passes = "cpu-schedule without form-ort-library"
    one_by_one = opt("-p", f"builtin.module(loop.kernel({passes}))", text=NESTED)
    assert one_by_one.status == 0, one_by_one.err
    assert one_by_one.out == opt("-p", f'schedule-kernels{{passes="{passes}"}}', text=NESTED).out


def test_a_nested_pipeline_needs_ops_of_the_module(model: Path) -> None:
    found = opt(model, "-p", "cpu-onnx,cpu-fusion,fusion.region(cse)")
    assert found.status == 1
    assert "'fusion.region' is inside of 'onnx.graph' here" in found.err
    said = opt("-p", "loop.func(cse)", "--emit=none", text=NESTED)
    assert said.status == 0
    assert said.err == (
        "igniter-opt: warning: no pass of 'loop.func(cse)' ran: the module has no loop.func; it has loop.kernel\n"
    )
    said = opt("-p", "builtin.module(loop.kernl(cse))", "--emit=none", text=NESTED)
    assert "the module has no loop.kernl; it has loop.kernel" in said.err
    assert opt(model, "-p", "onnx.graph(infer-shapes)").out == opt(model, "-p", "infer-shapes").out


@pytest.mark.parametrize(
    ("nested", "said"),
    [
        ("builtin.module(onnx.graph(choose-schedule))", "write loop.kernel(choose-schedule), or choose-schedule alone"),
        ("onnx.graph(infer-shapes,fuse-loops)", "it works on loop.func, which is no part of onnx.graph"),
        ("loop.kernel(infer-shapes)", "'loop.kernel(infer-shapes)': it works on onnx.graph"),
        ("loop.func(choose-schedule)", "it works on loop.kernel, which is no part of loop.func"),
        ("onnx.graph(lower-onnx-to-loop,choose-schedule)", ""),
        ("loop.kernel(choose-schedule,lower-to-loops,fuse-loops)", ""),
        ("any(choose-schedule)", ""),
    ],
)
def test_a_nested_pass_that_can_find_nothing_is_an_error(nested: str, said: str) -> None:
    if not said:
        assert parse_passes(nested)
        return
    found = opt("-p", nested, "--emit=none", text=NESTED)
    assert (found.status, found.out) == (1, "") and said in found.err


def test_a_failure_in_a_nested_pipeline_leaves_the_module_whole(bad_passes: None) -> None:
    found = opt("-p", "loop.kernel(cse,crash)", "--print-ir-after-failure", text=NESTED)
    assert found.status == 4 and "pass 'crash'" in found.err
    assert found.err.count("IR Dump After crash Failed on loop.kernel @once") == 1
    module = igniter.parse(NESTED)
    with pytest.raises(PassError):
        module.run_passes("loop.kernel(cse,crash)")
    assert str(module) == str(igniter.parse(NESTED))


# -- compiles ---------------------------------------------------------------------------------------------------------


def test_edits_reach_every_level() -> None:
    own = CompileOptions(target="x86-64-v3").pipelines
    text = "cpu with cse after recompose, with dce after winograd, with cse before fuse-loops, without choose-layouts"
    edited = CompileOptions(target="x86-64-v3", passes=text).pipelines
    assert "recompose,cse" in edited.onnx and edited.tiles == "winograd,dce"
    assert "cse,fuse-loops" in edited.schedule and "choose-layouts" not in edited.fusion
    assert (edited.loop, edited.programs) == (own.loop, own.programs)
    again = CompileOptions(target="x86-64-v3", passes=f"{text}, with form-programs after form-programs").pipelines
    assert again.programs == "form-programs,form-programs"


@pytest.mark.parametrize(
    ("passes", "message"),
    [
        ("cpu", "'cpu' has no edit: write 'with PASS after NAME'"),
        ("cuda with cse after recompose", "'cuda' is not the pipeline of this target"),
        ("cpu with cse after recompos", "did you mean 'recompose'?"),
        ("with cse-e after recompose", "there is no pass or pipeline called 'cse-e'"),
    ],
)
def test_a_compile_refuses_wrong_edits(model: Path, passes: str, message: str) -> None:
    with pytest.raises(PipelineError) as error:
        igniter.compile(model, passes=passes)
    assert message in str(error.value)


def test_options_of_a_report_are_those_of_its_compile() -> None:
    options = CompileOptions(target="x86-64-v3", passes="with dce after winograd", winograd="off")
    assert CompileOptions.of_report(json.loads(json.dumps(options.to_dict()))) == options
    assert options.key() != CompileOptions(target="x86-64-v3", winograd="off").key()
    assert options.kernel_key() != CompileOptions(target="x86-64-v3", winograd="off").kernel_key()


@pytest.mark.slow
def test_a_spliced_pass_runs_and_is_verified(model: Path, tmp_path: Path, bad_passes: None) -> None:
    plain = igniter.compile(model, tmp_path / "plain")
    again = igniter.compile(model, tmp_path / "edited", passes="with eliminate-dead-nodes after canonicalize-onnx#2")
    assert not again.report.get("from_cache") and again.report["verification"]["status"] == "passed"
    assert again.report["options"]["passes"] == "with eliminate-dead-nodes after canonicalize-onnx#2"
    assert again.report["kernel_digest"] == plain.report["kernel_digest"]
    with pytest.raises(igniter.VerificationFailed):
        igniter.compile(model, tmp_path / "wrong", passes="cpu with break-relu before recompose")


@pytest.mark.parametrize(
    ("passes", "message"),
    [
        ("with crash after recompose", "pass 'crash'"),
        ("with corrupt after recompose", "pass 'corrupt': left IR that does not verify"),
    ],
)
def test_a_failed_pass_of_an_edit_is_named(model: Path, bad_passes: None, passes: str, message: str) -> None:
    with pytest.raises(PassError) as error:
        igniter.compile(model, passes=passes, verify=False)
    assert message in str(error.value)


@pytest.mark.slow
def test_other_options_keep_their_effect_around_edits(model: Path) -> None:
    with pytest.raises(igniter.IgniterError, match="removes winograd, which another option asks for"):
        igniter.compile(model, passes="without winograd", winograd="on", verify=False)
    artifact = igniter.compile(model, passes="with cse after flush-subnormals", subnormals="keep", verify=False)
    assert artifact.report["subnormal_weights"]


def test_a_backend_has_the_levels_that_edits_know() -> None:
    from igniter.compiler.spliced import LEVELS

    fields = set(type(backend_for("native").pipelines).__dataclass_fields__)
    assert fields - {"kernels"} == set(LEVELS)
