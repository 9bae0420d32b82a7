"""A model whose outputs say nothing is verified piece by piece, and types that numpy lacks are fed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest
from typer.testing import CliRunner
from xdsl.ir import BlockArgument

import igniter
from igniter import registry
from igniter.dialects.fusion import RegionOp
from igniter.errors import IgniterError
from igniter.tools.main import app
from igniter.verification import by_region, regions

from . import bad_pass
from .models import NEWER, model

STEPS = 6


@pytest.fixture
def chaotic(tmp_path: Path) -> Path:
    """Sines of large sums, each step further from the last: a nudge of the input changes all of the output. Each step
    is a region of its own, since a value in a sequence is not one that a kernel takes."""
    step = "s{i} = SequenceConstruct (c{i})  d{i} = SequenceAt (s{i}, first)  a{i} = MatMul (d{i}, w{i})"
    steps = [f"{step}  b{{i}} = Sub (a{{i}}, one)  c{{j}} = Sin (b{{i}})".format(i=i, j=i + 1) for i in range(STEPS)]
    constants = "<float one = {1}, int64 first = {0}>"
    text = f"g (float[n, 32] c0) => (float[n, 32] c{STEPS}) {constants} {{ {' '.join(steps)} }}"
    rng = np.random.default_rng(0)
    weights = {f"w{i}": (10 * rng.standard_normal((32, 32))).astype(np.float32) for i in range(STEPS)}
    onnx.save(model(text, **weights), tmp_path / "chaotic.onnx")
    return tmp_path / "chaotic.onnx"


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IGNITER_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.slow
def test_what_the_outputs_do_not_tell_the_regions_do(chaotic: Path, tmp_path: Path) -> None:
    artifact = igniter.compile(chaotic, tmp_path / "out", cache=False)
    found = artifact.report["verification"]
    assert (found["status"], found["way"]) == ("passed", "regions")
    assert {case["status"] for case in found["cases"][:-1]} == {"skipped"}
    names = [o["name"] for o in found["cases"][-1]["outputs"]]
    assert sum(n.endswith("(passes)") for n in names) >= STEPS and sum("(@" in n for n in names) >= STEPS
    assert f"c{STEPS}" in names
    done = CliRunner().invoke(app, ["verify", str(tmp_path / "out")])
    assert done.exit_code == 0 and "(by region)" in done.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize(
    ("name", "at", "said"),
    [("SwapSubtractions", "loop", "(@"), ("SwapSubNodes", "onnx", "(passes)")],
)
def test_a_wrong_pass_is_found(chaotic: Path, monkeypatch: pytest.MonkeyPatch, name: str, at: str, said: str) -> None:
    wrong = getattr(bad_pass, name).name
    monkeypatch.setitem(registry.PASSES, wrong, f"{bad_pass.__name__}:{name}")
    options = igniter.CompileOptions(**{f"{at}_passes": f"cpu-{at},{wrong}"})
    with pytest.raises(igniter.VerificationFailed) as failed:
        igniter.compile(chaotic, options=options)
    assert said in str(failed.value)


@pytest.mark.slow
@pytest.mark.usefixtures("own_cache")
def test_a_whole_that_is_not_its_parts_is_found(chaotic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    same = by_region.ByRegion.case

    def other(self: by_region.ByRegion, sizes: Any, ready: Any) -> Any:
        off = replace(self, whole=lambda feed: [np.nextafter(a, np.float32(9)) for a in self.whole(feed)])
        return same(off, sizes, ready)

    monkeypatch.setattr(by_region.ByRegion, "case", other)
    with pytest.raises(igniter.VerificationFailed, match="give different bits"):
        igniter.compile(chaotic)


@pytest.mark.slow
def test_other_kernels_are_not_judged(chaotic: Path) -> None:
    artifact = igniter.compile(chaotic)
    artifact.report["kernel_digest"] = "0" * 16
    found = artifact.verify()
    assert found.status == "not verified" and "different kernels" in " ".join(found.reasons)


# -- types that numpy lacks -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bfloat16", "float8e4m3fn", "float8e5m2"])
def test_inputs_of_types_that_numpy_lacks_are_fed(kind: str, tmp_path: Path) -> None:
    text = f"""g ({kind}[n, 8] x, float[n, 8] z) => (float[n, 8] y, {kind}[n, 8] w) {{
      a = Cast <to = 1> (x)  b = Mul (a, z)  y = Sigmoid (b)  w = Cast <to = {TO[kind]}> (b) }}"""
    onnx.save(model(text, NEWER), tmp_path / "m.onnx")
    found = igniter.compile(tmp_path / "m.onnx", tmp_path / "out").report["verification"]
    assert found["status"] == "passed" and len(found["cases"]) > 1
    dtype = {"bfloat16": ml_dtypes.bfloat16, "float8e4m3fn": ml_dtypes.float8_e4m3fn}.get(kind, ml_dtypes.float8_e5m2)
    np.savez(
        tmp_path / "in.npz",
        x=np.ones((2, 8), dtype).view(f"u{np.dtype(dtype).itemsize}"),
        z=np.ones((2, 8), np.float32),
    )
    artifact = igniter.Artifact.load(tmp_path / "out")
    assert artifact.verify(tmp_path / "in.npz").ok
    wrong = model(text.replace("Mul (a, z)", "Sub (a, z)"), NEWER).SerializeToString()
    assert artifact.verify(reference=wrong).status == "differs"


TO = {"bfloat16": 16, "float8e4m3fn": 17, "float8e5m2": 19}


def test_a_npz_of_another_type_is_refused(tmp_path: Path) -> None:
    text = "g (bfloat16[n] x) => (float[n] y) { y = Cast <to = 1> (x) }"
    artifact = igniter.compile(model(text, NEWER))
    np.savez(tmp_path / "in.npz", x=np.ones(2, np.float32))
    found = artifact.verify(tmp_path / "in.npz")
    assert found.status == "not verified" and found.refused
    with pytest.raises(IgniterError, match="lacks x"):
        np.savez(tmp_path / "in.npz", z=np.ones(2, np.float32))
        artifact.verify(tmp_path / "in.npz")


def test_regions_side_by_side_are_apart(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    chain (float[4, 64] x, float[64, 64] v, float[64, 64] w) => (float[4, 64] y)
    { a = MatMul(x, v)  b = Exp(a)  c = MatMul(b, w)  y = Exp(c) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "chain.onnx")
    module = igniter.load(tmp_path / "chain.onnx").run_passes("infer-shapes,form-fusion-regions{max-nodes=2}")
    found = [op for op in module.ir.walk() if isinstance(op, RegionOp)]
    assert len(found) == 2 and found[0].results[0] in found[1].inputs
    apart, crossing = regions.side_by_side(module.ir, found)
    # Each reads inputs alone, not the results of another: only the wrong one differs.
    copies = [op for op in apart.walk() if isinstance(op, RegionOp)]
    assert found[0].results[0] in crossing
    assert all(isinstance(v, BlockArgument) for copy in copies for v in copy.inputs)
