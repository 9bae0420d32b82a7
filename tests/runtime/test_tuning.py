"""`igniter tune`: what is tried, what counts, what is kept, and what compiling makes of it."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner
from xdsl.parser import Parser

import igniter
from igniter.compiler.compilation import CompileOptions
from igniter.context import IgniterContext
from igniter.dialects.loop import KernelOp
from igniter.dialects.loop.schedule import ScheduleAttr, schedule_reason
from igniter.errors import IgniterError
from igniter.schedules.citation import schedule_texts, structure_hash
from igniter.schedules.space import AUTHOR, Parameter, ScheduleSpace
from igniter.toolbox.tune.executors import LocalExecutor, RayExecutor
from igniter.toolbox.tune.measure import Job, Measurement, measure, parsed
from igniter.toolbox.tune.search import Limits, Tunable, Tuned, Tuner, subject_of
from igniter.tools.igniter_opt import run as run_opt
from igniter.tools.main import app
from igniter.transforms.structured.schedule_database import (
    Entry,
    bucket_of,
    opened,
)

pytest.importorskip("optuna")

EXAMPLES = Path(__file__).resolve().parents[2] / "lit_tests" / "examples"

# Two axes that stay two: what is added to each row is read along one of them.
ROWS = """
builtin.module {
  loop.kernel @rows symbols [n] (%x: tensor<?x256xf32, #sym.dims<n, 256>>, %b: tensor<256xf32>)
      -> (tensor<?x256xf32, #sym.dims<n, 256>>) {
    %y = loop.nest "square" [i: parallel n, j: parallel 256] SCHEDULE -> tensor<?x256xf32, #sym.dims<n, 256>> {
      %a = loop.read %x[i, j] : f32
      %c = loop.read %b[j] : f32
      %d = arith.mulf %a, %a : f32
      %e = arith.addf %d, %c : f32
      loop.yield none %e at [i, j]
    }
    loop.return %y : tensor<?x256xf32, #sym.dims<n, 256>>
  }
}"""


class Few:
    """A space of a few points, each said as the schedule of the one nest."""

    def __init__(self, *schedules: str):
        self._texts = schedules
        self.parameters = (Parameter("which", tuple(map(str, range(len(schedules))))),)

    def first(self) -> dict[str, str]:
        return {"which": "0"}

    def seconds(self, point: Mapping[str, str]) -> None:
        del point

    def points(self, seed: int = 0) -> Iterator[dict[str, str]]:
        return iter([{"which": str(k)} for k in range(len(self._texts))])

    def schedules(self, point: Mapping[str, str]) -> dict[str, ScheduleAttr]:
        text = ROWS.replace("SCHEDULE", f"schedule {self._texts[int(point['which'])]}")
        kernel = next(op for op in igniter.parse(text).ir.ops if isinstance(op, KernelOp))
        return {nest.label: nest.schedule for nest in kernel.nests if nest.schedule is not None}


def rows(folder: Path, schedule: str = "") -> Tunable:
    file = folder / "rows.mlir"
    file.write_text(ROWS.replace("SCHEDULE", f"schedule {schedule}" if schedule else ""))
    return subject_of(file, n=64)


class Quiet(LocalExecutor):
    """Candidates run, and those with vectors take half of the baseline's time, others as long: what is beside this
    process decides nothing."""

    def run(self, jobs: Sequence[Job]) -> list[Measurement]:
        return [
            _timed(m, 0.5 if "vector" in j.candidate and j.candidate != j.baseline else 1.0)
            for j, m in zip(jobs, super().run(jobs), strict=True)
        ]


def _timed(found: Measurement, ratio: float) -> Measurement:
    if found.outcome != "timed":
        return found
    return dataclasses.replace(found, ratio=ratio, noise=0.01, seconds=found.baseline_seconds * ratio)


def search(what: Tunable, folder: Path, **given: Any) -> Tuned:
    limits = given.pop("limits", Limits(seconds=600, trials=4, patience=0))
    with opened(folder / "found.sqlite", create=True) as database:
        return Tuner(what, database, limits, rounds=5, **{"executor": Quiet(), **given}).run()


def stored(what: Tunable, folder: Path) -> list[Entry]:
    with opened(folder / "found.sqlite") as database:
        return database.entries(what.subject.kernel, what.subject.target)


# -- the space --------------------------------------------------------------------------------------------------------


def space_of(example: str) -> tuple[KernelOp, ScheduleSpace]:
    """The kernel of an example and its space on a Zen 4, whichever machine runs the test."""
    kernel = subject_of(EXAMPLES / example, target="znver4").kernel
    return kernel, ScheduleSpace(kernel, 64, 32)


@pytest.mark.parametrize("example", ["convolution.mlir", "gemm.mlir", "softmax.mlir", "attention.mlir"])
def test_every_point_is_a_schedule_of_the_language_and_point_0_is_the_authors(example: str) -> None:
    kernel, space = space_of(example)
    own = {nest.label: nest.schedule for nest in kernel.nests}
    assert next(space.points()) == space.first()
    assert space.schedules(space.first()) == own
    points = list(islice(space.points(), 300))
    assert len({json.dumps(p) for p in points}) == len(points) > len(space.parameters)
    different = 0
    for point in points:
        for label, schedule in space.schedules(point).items():
            nest = next(n for n in kernel.nests if n.label == label)
            assert schedule_reason(schedule, {a.name: a.kind for a in nest.axes}) is None, (point, str(schedule))
        different += space.schedules(point) != own
    assert different > 10


def test_the_space_has_what_kernels_need() -> None:
    _, gemm = space_of("gemm.mlir")
    names = {p.name for p in gemm.parameters}
    assert {"g1.tile", "g1.columns", "g1.rows", "g1.order", "g1.depth", "g1.fused"} <= names
    steps = gemm.schedules({"g1.tile": "6x4", "g1.columns": "2", "g1.depth": "256", "g1.order": "columns"})
    assert str(steps["matmul"]) == (
        '[j by 128 threads fuse "g1", i by 48 fuse "g1", k by 256 into result, j by 64, i by 6, product(i, j, k) '
        "tile [6, 4], i, j vector 16 unroll]"
    )
    _, conv = space_of("convolution.mlir")
    found = conv.schedules({"g1.tile": "7x2", "g1.lanes": "o", "g1.down": "x"})
    assert str(found["conv"]) == (
        '[y threads fuse "g1", o by 32 tail mask fuse "g1", x by 7 tail mask fuse "g1", ky, kx_c, x unroll, '
        "o vector 16 unroll]"
    )
    with pytest.raises(ValueError, match="the schedule space has no"):
        conv.schedules({"g1.tile": "99x9"})
    assert all(p.values[0] == AUTHOR for p in (*gemm.parameters, *conv.parameters))


DEEP = """builtin.module {
  loop.kernel @deep symbols [] (%x: tensor<13x70xf32>, %w: tensor<3x70x16xf32>, %b: tensor<33xf32>)
      -> (tensor<13x33xf32>) {
    %p = loop.nest "product" [i: parallel 13, j: parallel 33, k: reduction 70] schedule PRODUCT -> tensor<13x33xf32> {
      %v = loop.read %x[i, k] : f32
      %u = loop.read %w[j floordiv 16, k, j mod 16] : f32
      %q = arith.mulf %v, %u : f32
      loop.yield add %q at [i, j]
    }
    %y = loop.nest "bias" [i: parallel 13, j: parallel 33] schedule BIAS -> tensor<13x33xf32> {
      %v = loop.read %p[i, j] : f32
      %u = loop.read %b[j] : f32
      %q = arith.addf %v, %u : f32
      loop.yield none %q at [i, j]
    }
    loop.return %y : tensor<13x33xf32>
  }
}
"""


@pytest.mark.slow
def test_depths_in_blocks_have_other_sizes_and_none() -> None:
    """What is made of a schedule whose depth is in blocks lowers and computes the same, block sizes and `whole` too."""
    group = 'j by 32 threads fuse "g0", i by 12 fuse "g0"'
    own = {
        "PRODUCT": f"[{group}, k by 32 into result, j by 16, i by 6, product(i, j, k) tile [6, 1], i, j vector 8]",
        "BIAS": f"[{group}, i, j vector 8]",
    }

    def text(product: object, bias: object) -> str:
        return DEEP.replace("PRODUCT", str(product)).replace("BIAS", str(bias))

    module = Parser(IgniterContext(), text(own["PRODUCT"], own["BIAS"])).parse_module()
    kernel = next(op for op in module.ops if isinstance(op, KernelOp))
    space = ScheduleSpace(kernel, 32, 16)
    depth = next(p for p in space.parameters if p.name.endswith(".depth"))
    assert set(depth.values) == {AUTHOR, "64", "whole"}
    whole = space.schedules({depth.name: "whole"})["product"]
    assert "into result" not in str(whole) and str(whole).count("fuse") == 2
    seen = set[str]()
    for point in islice(space.points(), 14):
        found = space.schedules(point)
        made = text(*(f"[{', '.join(map(str, found[n].data))}]" for n in ("product", "bias")))
        output, errors = io.StringIO(), io.StringIO()
        arguments = ["-p", "lower-to-loops", "--check-each", "--emit=none"]
        status = run_opt(arguments, io.BytesIO(made.encode()), output, errors)
        assert status == 0 and "lower-to-loops: 1 results agree" in errors.getvalue(), (made, errors.getvalue())
        seen.add(made)
    assert len(seen) > 8


# -- what counts ------------------------------------------------------------------------------------------------------


def test_a_kernel_with_a_bad_schedule_is_improved_and_the_winner_is_right(tmp_path: Path) -> None:
    # Down the columns, one by one: each access is in another line of memory.
    what = rows(tmp_path, "[j, i]")
    found = search(what, tmp_path, limits=Limits(seconds=600, trials=3, patience=0))
    assert found.ratio == 0.5 and found.gain == 2
    assert "vector" in found.schedules["square"]
    (entry,) = stored(what, tmp_path)
    assert entry.ratio == found.ratio and entry.subject.bucket == "n<=64, threads=1"
    text = ROWS.replace("SCHEDULE", f"schedule {entry.schedules[0]}")
    (tmp_path / "best.mlir").write_text(text)
    x = np.random.default_rng(0).standard_normal((7, 256), np.float32)
    (got,) = igniter.Schedule(tmp_path / "best.mlir").run(x, x[0])
    np.testing.assert_allclose(got, x * x + x[0], 1e-6, 1e-6)


GOOD, BAD = "[i threads, j vector 16]", "[j, i]"


def is_timed(job: Job) -> bool:
    """True if it is a candidate beside another, and not the default by itself or one to rank."""
    return bool(job.baseline) and job.candidate != job.baseline


def crash(job: Job) -> Measurement:
    """Kills its process, but for the default and for ranking."""
    if is_timed(job):
        os.abort()
    return measure(job)


def hang(job: Job) -> Measurement:
    if is_timed(job):
        time.sleep(600)
    return measure(job)


def miscompute(job: Job) -> Measurement:
    """Measures another kernel in the place of a candidate, that computes the negative of it."""
    if is_timed(job):
        wrong = job.candidate.replace("arith.addf", "arith.subf")
        assert wrong != job.candidate
        job = dataclasses.replace(job, candidate=wrong)
    return measure(job)


@pytest.mark.parametrize(
    ("work", "outcome", "reason"),
    [
        (crash, "crashed", "its process was ended by SIGABRT"),
        (hang, "late", "it was not done in"),
        (miscompute, "wrong", "the candidate computes something else: result 0"),
    ],
)
def test_what_crashes_hangs_or_computes_something_else_does_not_count(
    tmp_path: Path, work: Any, outcome: str, reason: str
) -> None:
    what = rows(tmp_path, BAD)
    executor = Patient(work, 3.0) if work is hang else Quiet(work)
    found = search(what, tmp_path, executor=executor, space=Few(GOOD), limits=Limits(600, 1, 0))
    assert found.outcomes == {outcome: 1} and found.ratio == 1 and found.schedules == {}
    assert stored(what, tmp_path) == []
    with opened(tmp_path / "found.sqlite") as database:
        (trial,) = database.trials(what.subject)
    assert reason in trial.reason


class Patient(Quiet):
    """Gives candidates that are timed a shorter time than the default."""

    def __init__(self, work: Any, limit: float):
        super().__init__(work)
        self.limit = limit

    def run(self, jobs: Sequence[Job]) -> list[Measurement]:
        short = [
            dataclasses.replace(j, limit=self.limit) if j.baseline and j.candidate != j.baseline else j for j in jobs
        ]
        return super().run(short)


def test_what_the_language_refuses_is_counted_and_no_failure(tmp_path: Path) -> None:
    what = rows(tmp_path, BAD)
    # Refused behind the verifier: as many copies as only a run knows.
    found = search(what, tmp_path, space=Few(GOOD, "[i unroll, j]", "[i by 2, i, j]"))
    assert found.outcomes["refused"] == 1
    assert found.ratio < 1
    with opened(tmp_path / "found.sqlite") as database:
        refused = [t for t in database.trials(what.subject) if t.outcome == "refused"]
    assert "which is not a constant" in refused[0].reason


def test_a_search_is_taken_up_and_repeats_nothing(tmp_path: Path) -> None:
    what = rows(tmp_path, BAD)
    space = Few(GOOD, "[i by 2, i, j]", "[i, j vector 8]")
    first = search(what, tmp_path, space=space, limits=Limits(600, 2, 0))
    assert (first.trials, first.earlier, first.stopped) == (2, 0, "2 candidates are tried")
    second = search(what, tmp_path, space=space)
    assert (second.trials, second.earlier, second.stopped) == (1, 2, "the space is searched")
    third = search(what, tmp_path, space=space)
    assert (third.trials, third.earlier) == (0, 3)
    # The best is what it was: it is confirmed and stored.
    assert third.ratio == min(first.ratio, second.ratio) and third.schedules


class Interrupted(Quiet):
    """Ctrl-C while the second candidate is timed."""

    seen = 0

    def run(self, jobs: Sequence[Job]) -> list[Measurement]:
        self.seen += sum(bool(j.baseline) for j in jobs)
        # After the default, the first candidate, and once more to confirm it.
        if self.seen > 3:
            raise KeyboardInterrupt
        return super().run(jobs)


def test_ctrl_c_keeps_what_was_found(tmp_path: Path) -> None:
    what = rows(tmp_path, BAD)
    found = search(what, tmp_path, executor=Interrupted(), space=Few(GOOD, "[i by 2, i, j]"))
    assert found.interrupted and found.stopped == "interrupted" and found.trials == 1
    assert found.ratio < 1 and len(stored(what, tmp_path)) == 1


def test_patience(tmp_path: Path) -> None:
    what = rows(tmp_path)
    found = search(what, tmp_path, space=Few("[i, j]", "[j, i]", "[i by 2, i, j]"), limits=Limits(600, 0, 2))
    assert found.stopped == "2 candidates without a gain" and found.ratio == 1


# -- the database and compiling ---------------------------------------------------------------------------------------


def test_the_name_of_a_kernel_and_its_schedules_are_no_part_of_its_key() -> None:
    texts = [ROWS.replace("SCHEDULE", ""), ROWS.replace("SCHEDULE", "schedule [j, i]").replace("@rows", "@other")]
    texts += [ROWS.replace("SCHEDULE", "").replace("%a", "%first"), ROWS.replace("SCHEDULE", "").replace("256", "128")]
    keys = [structure_hash(next(op for op in parsed(t).ops if isinstance(op, KernelOp))) for t in texts]
    assert keys[0] == keys[1] == keys[2] != keys[3]
    assert bucket_of({"n": 65, "m": 64}) == bucket_of({"n": 128, "m": 33}) == "m<=64, n<=128, threads=1"
    assert bucket_of({"n": 64}) != bucket_of({"n": 65})


def record(path: Path, what: Tunable, schedules: Sequence[str]) -> None:
    with opened(path, create=True) as database:
        database.record(Entry(what.subject, tuple(schedules), 1e-6, 2e-6, 0.5, 0.01, 3))


def applied(path: Path, what: Tunable) -> tuple[KernelOp, list[str]]:
    """A kernel without schedules behind the pass, and what the pass said."""
    from igniter.passes import parse_passes, run_passes

    ctx = IgniterContext()
    ctx.remarks.enabled = True
    module = parsed(what.default)
    kernel = next(op for op in module.ops if isinstance(op, KernelOp))
    for nest in kernel.nests:
        nest.schedule = None
    run_passes(ctx, module, parse_passes(f'apply-tuned-schedules{{db="{path}" cpu="{what.target.key}"}}'))
    return kernel, [str(r) for r in ctx.remarks]


def test_stored_schedules_are_applied_and_stale_ones_skipped(tmp_path: Path) -> None:
    what, path = rows(tmp_path), tmp_path / "db.sqlite"
    record(path, what, ["[i by 2, i, j vector 8]"])
    kernel, said = applied(path, what)
    assert schedule_texts(kernel) == ("[i by 2, i, j vector 8]",)
    assert "applied: tuned: 2.00 times as fast as the default at n<=64, threads=1" in said[0]
    for stale, reason in (
        (["[i by 2, i, k vector 8]"], "unknown axis 'k'"),
        (["[i, j nonsense 8]"], "unknown word 'nonsense'"),
        (["[i, j]", "[i, j]"], "it is for 2 nests, but the kernel has 1"),
    ):
        record(path, what, stale)
        kernel, said = applied(path, what)
        assert schedule_texts(kernel) == ("",)
        assert "missed: the schedule found at n<=64, threads=1 is stale" in said[0] and reason in said[0]


def relu_model(folder: Path) -> Path:
    import onnx
    from onnx import TensorProto, helper

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 64])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 64])
    nodes = [helper.make_node("Mul", ["x", "x"], ["a"]), helper.make_node("Tanh", ["a"], ["b"])]
    nodes.append(helper.make_node("Add", ["b", "x"], ["y"]))
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 17)])
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


@pytest.mark.slow
def test_compiling_takes_the_stored_schedule_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IGNITER_CACHE_DIR", str(tmp_path / "cache"))
    model, path = relu_model(tmp_path), tmp_path / "db.sqlite"
    what = subject_of(model)
    assert what.default.count("schedule [") == 1
    (old,) = schedule_texts(what.kernel)
    new = re.sub(r"vector \d+", "vector 2", old)
    assert new != old
    record(path, what, [new])
    options = CompileOptions(tuned=str(path))
    assert options.key() != CompileOptions().key()
    artifact = igniter.compile(model, tmp_path / "out", options=options)
    assert any(r["pass"] == "apply-tuned-schedules" and r["kind"] == "applied" for r in artifact.report["remarks"])
    said = artifact.report["options"]
    assert said["tuned"] == str(path) and len(said["tuned_digest"]) == 16
    plain = igniter.compile(model, tmp_path / "plain")
    assert plain.report["kernel_digest"] != artifact.report["kernel_digest"]
    # Other contents are another key; one that a pass refuses costs its speed alone.
    before = options.key()
    record(path, what, [re.sub(r"vector \d+", "unroll", old)])
    assert options.key() != before
    again = igniter.compile(model, tmp_path / "again", options=options)
    assert again.report["kernel_digest"] == plain.report["kernel_digest"]
    remarks = [r["message"] for r in again.report["remarks"] if r["pass"] == "driver"]
    assert any(f"compiled without the schedules of {path}" in m for m in remarks)


def test_what_is_wrong_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IGNITER_CACHE_DIR", str(tmp_path / "cache"))
    model = relu_model(tmp_path)
    softmax = EXAMPLES / "softmax.mlir"
    nothing = tmp_path / "nothing.sqlite"
    text = tmp_path / "text.sqlite"
    text.write_text("no database\n" * 100)
    for arguments, said in (
        (["compile", model, "--tuned"], "there is no database of schedules at"),
        (["compile", model, "--tuned", "--db", nothing], "create one with `igniter tune MODEL`"),
        (["compile", model, "--db", nothing], "--db names the database of --tuned"),
        (["compile", model, "--tuned", "--db", text], "file is not a database"),
        (["compile", model, "--tuned", "--emit", "onnx"], "--tuned decides about a level behind --emit=onnx"),
        (["tune", softmax, "--kernel", "gemm", "--db", nothing], "has no kernel 'gemm'; it has: softmax"),
        (["tune", softmax, "--sizes", "k=3", "--db", nothing], "there is no dim 'k' to size; there are: m, n"),
    ):
        done = CliRunner().invoke(app, [str(a) for a in arguments])
        assert done.exit_code == 1
        assert said in done.stderr.replace("\n", " "), done.stderr
    with pytest.raises(IgniterError, match="a database stores schedules by target: give --target, or the option cpu"):
        run_for_plain("apply-tuned-schedules{db=somewhere}")


def run_for_plain(pipeline: str) -> None:
    from igniter.passes import run_pipeline

    run_pipeline(IgniterContext(), parsed(ROWS.replace("SCHEDULE", "")), pipeline)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("igniter.toolbox.tune.show.LocalExecutor", Quiet)
    file, path = tmp_path / "rows.mlir", tmp_path / "db.sqlite"
    file.write_text(ROWS.replace("SCHEDULE", "schedule [j, i]"))
    command = [
        "tune",
        str(file),
        "--sizes",
        "n=64",
        "--db",
        str(path),
        "--trials",
        "1",
        "--rounds",
        "3",
        "--budget",
        "300",
    ]
    done = CliRunner().invoke(app, [*command, "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    (kernel,) = found["kernels"]
    assert kernel["kernel"] == "rows" and kernel["sizes"] == {"n": 64} and kernel["share"] == 1
    assert kernel["trials"] == 1 and kernel["gain"] > 1 and found["gain"] == pytest.approx(kernel["gain"])
    again = CliRunner().invoke(app, command)
    assert again.exit_code == 0 and "1 + " in again.stdout and "@rows" in again.stdout


# -- clusters ---------------------------------------------------------------------------------------------------------


def test_ray_is_asked_for_where_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("igniter.toolbox.tune.executors.find_spec", lambda name: None)
    with pytest.raises(IgniterError, match=r"--ray needs Ray: pip install 'onnx-igniter\[ray\]'"):
        RayExecutor()


@pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: pip install 'onnx-igniter[ray]'")
def test_a_cluster_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The workers of the cluster import what they are to do from here.
    path = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
    executor = RayExecutor()
    try:
        what = rows(tmp_path, BAD)
        found = search(what, tmp_path, executor=executor, space=Few(GOOD, "[i by 2, i, j]", "[i unroll, j]"))
        assert found.ratio < 1 and found.outcomes["refused"] == 1
        dead = RayExecutor(work=crash).run([Job(what.default, "x", "native", what.target.key, what.sizes)])
        assert dead[0].outcome == "crashed"
    finally:
        executor.close()
