"""`igniter tune` for a GPU: the space of launches, candidates by the driver, and the database; without a GPU the driver
is the recording one, whose launches take a given time."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from typer.testing import CliRunner

import igniter
from igniter.backends.triton import compiled, driver
from igniter.backends.triton.compiler import resources_of
from igniter.dialects.loop import LaunchOp
from igniter.dialects.loop.schedule import schedule_reason
from igniter.errors import IgniterError
from igniter.schedules.launch_space import LaunchSpace
from igniter.schedules.measured_launches import measured_launch
from igniter.schedules.product_blocks import figures_of
from igniter.schedules.space import AUTHOR, Parameter
from igniter.targets import backend_for
from igniter.toolbox.tune.executors import LocalExecutor
from igniter.toolbox.tune.measure import Job, Measurement, measure, parsed, scheduled
from igniter.toolbox.tune.search import Limits, Tunable, Tuner, space_of, subject_of, with_schedules
from igniter.tools.main import app
from igniter.transforms.structured.schedule_database import opened
from tests.backends.triton.programs import func_of, kernels_of, lowered, model
from tests.backends.triton.recording_driver import Launch, RecordingDriver, activate

pytest.importorskip("optuna")
pytest.importorskip("triton")

HALF, FLOAT = TensorProto.FLOAT16, TensorProto.FLOAT
MODELS = {
    "product": (
        [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])],
        {"x": (HALF, [48, 40]), "w": (HALF, [40, 32])},
    ),
    "attention": (
        [helper.make_node("Attention", ["q", "k", "v"], ["y"])],
        {n: (HALF, [1, 2, 80, 16]) for n in "qkv"},
    ),
    "softmax": ([helper.make_node("Softmax", ["x"], ["y"])], {"x": (FLOAT, [70, 30])}),
}
TARGET = "cuda:sm_90"
TARGET_OF = backend_for(TARGET).target_of(TARGET)


class Warps(LaunchSpace):
    """The space of the warps alone."""

    def __init__(self, what: Tunable):
        super().__init__(what.kernel, "", figures_of("sm_90"))

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(p for p in super().parameters if p.name == "l0.warps")


class Here(LocalExecutor):
    """Candidates run in this process, where the recording driver is."""

    def run(self, jobs: Sequence[Job]) -> list[Measurement]:
        return [measure(job) for job in jobs]


def saved(name: str, folder: Path) -> Path:
    nodes, inputs = MODELS[name]
    onnx.save(model(nodes, inputs, opset=23), folder / "m.onnx")
    return folder / "m.onnx"


def plain(name: str, folder: Path) -> Tunable:
    """A kernel to look at, for no GPU."""
    with mock.patch.object(type(backend_for(TARGET)), "timed_on", lambda *_: "a GPU"):
        return subject_of(saved(name, folder), target=TARGET)


@contextmanager
def recording(seconds: Callable[[Launch], float], **given: Any) -> Generator[RecordingDriver]:
    """A driver that computes all that is loaded by `igniter.backends.triton.compiled`."""
    found = RecordingDriver(**{"capability": 90, **given})
    found.seconds = seconds
    original = compiled.kernel_text

    def noted(*args: Any) -> Any:
        text = original(*args)
        made = text.compiled(90)
        found.kernels[made.ptx.encode() + b"\0"] = found.kernels[made.machine_code] = text, 90
        return text

    activate(found)
    driver.gpu.cache_clear()
    try:
        with mock.patch.object(compiled, "kernel_text", noted):
            yield found
    finally:
        driver.gpu.cache_clear()


def by_threads(launch: Launch) -> float:
    """More threads are faster on this GPU."""
    return 0.1 / launch.threads


# -- the space --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_every_point_is_a_schedule_and_point_0_is_the_authors(name: str, tmp_path: Path) -> None:
    kernel = plain(name, tmp_path).kernel
    space = LaunchSpace(kernel, "", figures_of("sm_90"))
    own = {nest.label: nest.schedule for nest in kernel.nests}
    assert next(space.points()) == space.first()
    assert space.schedules(space.first()) == own
    axes = {nest.label: {a.name: a.kind for a in nest.axes} for nest in kernel.nests}
    texts: set[str] = set()
    for point in islice(space.points(), 40):
        found = space.schedules(point)
        assert all(schedule_reason(s, axes[label]) is None for label, s in found.items()), point
        texts.add(str(sorted(map(str, found.values()))))
    assert len(texts) > 8
    with pytest.raises(ValueError, match=r"the space of launches has no value '3' for 'l0\.warps'"):
        space.schedules({"l0.warps": "3"})


def test_the_parameters_are_those_of_the_kind_of_launch(tmp_path: Path) -> None:
    names = {name: {p.name for p in space_of(plain(name, tmp_path)).parameters} for name in MODELS}
    assert names["product"] == {
        *("l0.rows", "l0.columns", "l0.depth", "l0.descriptors", "l0.persistent", "l0.warps", "l0.group")
    }
    assert names["attention"] >= {"l0.rows", "l0.keys", "l0.warps", "l0.stages"}
    assert names["softmax"] == {"l0.block0", "l0.warps"}


def test_procedures_keep_their_launches(tmp_path: Path) -> None:
    nodes = [helper.make_node("CumSum", ["x", "axis"], ["y"])]
    onnx.save(model(nodes, {"x": (FLOAT, [40, 30])}, {"axis": np.int64(1)}), tmp_path / "m.onnx")
    with mock.patch.object(type(backend_for(TARGET)), "timed_on", lambda *_: "a GPU"):
        what = subject_of(tmp_path / "m.onnx", target=TARGET)
    space = space_of(what)
    assert len(what.kernel.computations) > len(what.kernel.nests)
    assert space.schedules(space.first()).keys() == {n.label for n in what.kernel.nests}
    _, func = scheduled(with_schedules(what.kernel, space.schedules(space.first())), TARGET_OF)
    assert "loop.launch" in str(func)


@pytest.mark.parametrize("name", MODELS)
def test_points_lower_to_kernels_of_their_own(name: str, tmp_path: Path) -> None:
    what = plain(name, tmp_path)
    space = space_of(what)
    found: set[str] = set()
    points = [{**space.first(), p.name: p.values[-1]} for p in space.parameters]
    for point in points:
        _, func = scheduled(with_schedules(what.kernel, space.schedules(point)), TARGET_OF)
        found.add(str(func.parent_op()))
    assert len(found) == len(points)


def test_a_point_of_a_product_has_the_time_that_chooses_blocks(tmp_path: Path) -> None:
    space = space_of(plain("product", tmp_path))
    rows = next(p for p in space.parameters if p.name == "l0.rows")
    seconds = [space.seconds({**space.first(), "l0.rows": value}) for value in rows.values]
    assert all(s is not None and 1e-6 < s < 1e-4 for s in seconds)
    assert len(set(seconds)) > 1
    softmax = space_of(plain("softmax", tmp_path))
    assert softmax.seconds(softmax.first()) is None


# -- launches that come with the package ------------------------------------------------------------------------------


def launched(nodes: Any, inputs: Any, target: str = TARGET) -> tuple[str, Any]:
    """The schedule of a launch that is chosen at these sizes, and its kernel on sm_90."""
    module = lowered(model(nodes, inputs, opset=23), target)
    (op,) = [op for op in func_of(module).walk() if isinstance(op, LaunchOp)]
    (kernel,) = kernels_of(module)
    return f"warps {op.warps} stages {op.stages}", compiled.kernel_text(op, kernel)


@pytest.mark.parametrize(
    ("nodes", "inputs", "said"),
    [
        (MODELS["attention"][0], {n: (HALF, [1, 16, 4096, 64]) for n in "qkv"}, "warps 4 stages 3"),
        (MODELS["product"][0][:1], {"x": (HALF, [128, 4096]), "w": (HALF, [4096, 4096])}, "warps 4 stages 4"),
    ],
)
def test_measured_launches_are_chosen_and_spill_nothing(nodes: Any, inputs: Any, said: str) -> None:
    launch, text = launched(nodes, inputs)
    assert launch == said
    assert ("128, 64" in text.source) if "q" in inputs else ("tensordesc" in str(text.signature))
    found = resources_of(text.compiled(90), 90)
    assert (found.spills, found.serialized) == (0, False)


def test_measured_launches_are_for_their_sizes_and_gpu() -> None:
    assert measured_launch("sm_90", "product", (1, 128, 4096, 4096), 2) is not None
    assert measured_launch("sm_90", "product", (1, 100, 4000, 4096), 2) is not None
    assert measured_launch("sm_90", "product", (1, 64, 4096, 4096), 2) is None
    assert measured_launch("sm_80", "product", (1, 128, 4096, 4096), 2) is None
    found = measured_launch("sm_90", "attention", (16, 4096, 4096, 64), 2)
    assert found is not None
    assert found.seconds < found.author_seconds


# -- candidates -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_better_launch_is_found_stored_and_compiled(tmp_path: Path) -> None:
    """On a GPU where more threads are faster: the search finds 8 warps, and compiling takes them."""
    path = saved("softmax", tmp_path)
    with recording(by_threads) as gpu, opened(tmp_path / "s.sqlite", create=True) as database:
        what = subject_of(path, target=TARGET)
        assert what.subject.bucket == "gpu=Recording GPU"
        found = Tuner(what, database, Limits(600, 4, 0), Here(), rounds=3, space=Warps(what)).run()
        assert found.outcomes["timed"] >= 2
        assert set(found.outcomes) <= {"timed", "same", "refused"}
        (entry,) = database.entries(what.subject.kernel, "cuda:sm_90")
        assert not database.entries(what.subject.kernel, "cuda:sm_80")
        assert not gpu.events
    assert found.ratio < 0.6
    assert all("launch warps 8" in s for s in found.schedules.values())
    assert tuple(found.schedules.values()) == entry.schedules

    options = igniter.CompileOptions(target="cuda:sm_90", tuned=str(tmp_path / "s.sqlite"))
    artifact = igniter.load(path).compile(options=options, cache=False, verify=False)
    (said,) = [r for r in artifact.report["remarks"] if r["pass"] == "apply-tuned-schedules"]
    assert said["kind"] == "applied"
    assert "as the default at gpu=Recording GPU" in said["message"]


@pytest.mark.slow
@pytest.mark.parametrize("changed", [{"l0.descriptors": "1"}, {"l0.descriptors": "1", "l0.persistent": "132"}])
def test_a_product_by_descriptors_is_computed_as_the_default(tmp_path: Path, changed: dict[str, str]) -> None:
    with recording(by_threads) as gpu:
        what = subject_of(saved("product", tmp_path), target=TARGET)
        space = space_of(what)
        text = with_schedules(what.kernel, space.schedules({**space.first(), **changed}))
        assert "descriptors" in text
        assert ("persistent 132" in text) == (len(changed) > 1)
        found = measure(Job(text, what.default, TARGET, TARGET_OF.key, what.sizes, rounds=3, device=what.device))
        assert "cuTensorMapEncodeTiled" in gpu.calls
    assert found.outcome == "timed", found.reason


def test_results_are_compared_before_anything_is_timed(tmp_path: Path) -> None:
    """A GPU that computes something else with 8 warps."""
    path = saved("softmax", tmp_path)
    with recording(by_threads) as gpu:
        what = subject_of(path, target=TARGET)
        space = space_of(what)
        original = gpu.compute

        def compute(launch: Launch, pointers: Sequence[int], run: Callable[[], None]) -> None:
            original(launch, pointers, run)
            if launch.threads == 256:
                ctypes.memset(pointers[-1], 0, 64)

        gpu.compute = compute  # pyright: ignore[reportAttributeAccessIssue]
        text = with_schedules(what.kernel, space.schedules({**space.first(), "l0.warps": "8"}))
        job = Job(text, what.default, TARGET, TARGET_OF.key, what.sizes, rounds=3, device=what.device)
        found = measure(job)
    assert found.outcome == "wrong"
    assert "computes something else" in found.reason


def test_a_job_is_for_one_kind_of_gpu(tmp_path: Path) -> None:
    with recording(by_threads, name="Another GPU"):
        what = plain("softmax", tmp_path)
        found = measure(Job(what.default, what.default, TARGET, TARGET_OF.key, what.sizes, device=what.device))
    assert found.outcome == "failed"
    assert found.reason == "the GPU here is 'Another GPU', and the kernel is tuned for 'a GPU'"


def test_a_target_that_the_gpu_does_not_run_is_an_error() -> None:
    with recording(by_threads, capability=80), pytest.raises(IgniterError, match="is sm_80 and does not run code for"):
        backend_for(TARGET).timed_on(TARGET_OF)
    with recording(by_threads, capability=89):
        # PTX for sm_80 runs on every later GPU.
        assert backend_for("cuda").timed_on(backend_for("cuda").target_of("cuda")) == "Recording GPU"


def test_an_error_of_the_driver_is_named() -> None:
    with recording(by_threads) as gpu:
        gpu.fails["cuDevicePrimaryCtxRetain"] = 2
        with pytest.raises(
            IgniterError, match="cuDevicePrimaryCtxRetain gives CUDA_ERROR_OUT_OF_MEMORY: out of memory"
        ):
            backend_for(TARGET).timed_on(TARGET_OF)


# -- the command ------------------------------------------------------------------------------------------------------


def test_without_a_gpu_tuning_says_what_is_missing(tmp_path: Path) -> None:
    driver.gpu.cache_clear()
    with mock.patch.object(driver, "LIBRARY", "libcuda-of-nowhere.so.1"):
        done = CliRunner().invoke(app, ["tune", str(saved("softmax", tmp_path)), "--target=cuda:sm_90"])
    assert done.exit_code == 1
    assert "kernels of 'cuda:sm_90' are timed on a GPU, and there is none here: the driver of NVIDIA" in done.output
    done = CliRunner().invoke(app, ["tune", str(saved("softmax", tmp_path)), "--target=hip:gfx942"])
    assert "the backend 'hip' does not have tuning" in done.output


def test_candidates_are_ordered_by_their_expected_time_without_a_gpu(tmp_path: Path) -> None:
    from igniter.toolbox.tune import ranking

    with mock.patch.object(ranking, "LocalExecutor", Here):
        options = ["--target=cuda:sm_90", "--estimate", "--trials=8", "--json"]
        done = CliRunner().invoke(app, ["tune", str(saved("product", tmp_path)), *options])
    assert done.exit_code == 0, done.output
    (kernel,) = json.loads(done.output)["kernels"]
    seconds = [each["seconds"] for each in kernel["candidates"]]
    assert seconds == sorted(seconds)
    assert kernel["default_seconds"] in seconds
    assert all(AUTHOR not in each["changes"].values() for each in kernel["candidates"])
    done = CliRunner().invoke(app, ["tune", str(saved("product", tmp_path)), "--estimate"])
    assert "--estimate orders candidates for a GPU" in done.output


def test_a_kernel_for_no_gpu_is_text_that_parses(tmp_path: Path) -> None:
    assert parsed(plain("product", tmp_path).default)
