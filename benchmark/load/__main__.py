"""Igniter, ONNX Runtime and OpenVINO on machines that are busy, limited or shared.

    python -m benchmark.load                                        the embedded demo model and MobileNetV2
    python -m benchmark.load --models resnet50 --settings quiet busy quota
    python -m benchmark.load --spinning                             ONNX Runtime's default: idle threads spin

Each setting has a process for each system; they take turns of `--seconds`, `--rounds` times. A cell is the median rate
in runs a second over all callers. `/ORT` is Igniter's rate by ONNX Runtime's (above 1 is faster), `/one thread` by that
of a single thread on the quiet machine, and `/processes`, for callers that keep all CPUs busy, by that of as many
independent processes with one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmark.load.settings import SHARED, Setting, settings_of
from benchmark.load.surroundings import Group, NoGroup, neighbours
from benchmark.load.worker import Job
from benchmark.models.networks import NETWORKS
from benchmark.models.subjects import Sizes, subject
from benchmark.table import Column, show

DEMO = "demo"
ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Row:
    """The rates of one setting, runs a second, by system."""

    model: str
    setting: str
    rates: dict[str, float] = field(default_factory=dict[str, float])
    spread: dict[str, float] = field(default_factory=dict[str, float])
    """The difference of the quartiles, as a share of the median."""
    skipped: str = ""


@dataclass(frozen=True)
class Subject:
    """A model, its compiled form and its inputs, as files."""

    name: str
    model: Path
    compiled: Path
    library: Path
    inputs: Path


def prepare(name: str, folder: Path) -> Subject:
    """Makes and compiles a model with default options."""
    import igniter

    if name == DEMO:
        from igniter.tools.demo_model import Shape, save_demo_model

        path = save_demo_model(folder / "demo.onnx", Shape(layers=8))
        names = [value.name for value in onnx.load(path).graph.input]
        inputs: dict[str, Any] = {name: np.ones((1, 64), np.int64) for name in names}
    else:
        found = subject(name, folder, Sizes(batch=[1], sequence=[64]))
        path, inputs = found.file, dict(found.feed(found.cases[0]))
    artifact = igniter.compile(path, folder / f"{name}.igniter", verify=False)
    arrays = folder / f"{name}.npz"
    np.savez(arrays, **inputs)
    return Subject(name, path, artifact.model_path, artifact.libraries[0], arrays)


def systems() -> list[str]:
    """Returns the systems at hand."""
    return ["ort", "igniter", *(["openvino"] if find_spec("openvino") is not None else [])]


def _job(system: str, model: Subject, setting: Setting, spinning: bool) -> Job:
    ours = system == "igniter"
    return Job(
        system,
        str(model.compiled if ours else model.model),
        str(model.library) if ours else "",
        str(model.inputs),
        setting.sessions,
        setting.callers,
        setting.parallel,
        spinning,
        setting.cpus,
    )


@contextmanager
def _worker(job: Job, group: Group | None) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "benchmark.load.worker"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        if group is not None:
            group.add(process.pid)
        assert process.stdin is not None
        assert process.stdout is not None
        _tell(process, job.text())
        if process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{job.system} cannot run {job.model}: see its message above")
        yield process
    finally:
        process.kill()
        process.wait()


def _tell(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(text + "\n")
    process.stdin.flush()


def _rate(processes: Sequence[subprocess.Popen[str]], seconds: float) -> float:
    for process in processes:
        _tell(process, str(seconds))
    total = 0.0
    for process in processes:
        assert process.stdout is not None
        runs, time = json.loads(process.stdout.readline())
        total += runs / time
    return total


def measure(model: Subject, setting: Setting, seconds: float, rounds: int, spinning: bool) -> Row:
    """Measures all systems in one setting, in turns."""
    row = Row(model.name, setting.name)
    times: dict[str, list[float]] = {}
    with ExitStack() as stack:
        group = None
        if setting.quota is not None:
            try:
                group = Group(setting.quota)
            except NoGroup as error:
                row.skipped = str(error)
                return row
            stack.callback(group.remove)
        workers: dict[str, list[subprocess.Popen[str]]] = {}
        for system in systems():
            # OpenVINO has no such mode.
            if setting.parallel and system == "openvino":
                continue
            job = _job(system, model, setting, spinning)
            workers[system] = [stack.enter_context(_worker(job, group)) for _ in range(setting.processes)]
        stack.enter_context(neighbours(setting.neighbours))
        for _ in range(rounds):
            for system, processes in workers.items():
                times.setdefault(system, []).append(_rate(processes, seconds))
    for system, found in times.items():
        row.rates[system] = statistics.median(found)
        low, _, high = statistics.quantiles(found, n=4) if len(found) > 1 else (found[0],) * 3
        row.spread[system] = (high - low) / row.rates[system]
    return row


COLUMNS = (
    Column("model", 14),
    Column("setting", 10),
    *(Column(system, 9) for system in ("ort", "igniter", "openvino")),
    Column("/ORT", 6),
    Column("/one thread", 11),
    Column("/processes", 10),
    Column("spread", 7),
)


def cells(row: Row, rows: Sequence[Row]) -> list[str]:
    """Returns the cells of a row; `rows` has those of the same model that it is compared with."""
    if row.skipped:
        return [row.model, row.setting, row.skipped, *[""] * 6]
    ours = row.rates["igniter"]
    of = {other.setting: other.rates.get("igniter") for other in rows if other.model == row.model}

    def by(setting: str) -> str:
        reference = of.get(setting)
        return f"{ours / reference:.2f}" if reference else ""

    return [
        row.model,
        row.setting,
        *(f"{row.rates[s]:.1f}" if s in row.rates else "" for s in ("ort", "igniter", "openvino")),
        f"{ours / row.rates['ort']:.2f}",
        by("alone"),
        by("processes") if row.setting in SHARED else "",
        f"{max(row.spread.values()):.0%}",
    ]


def main() -> None:
    """Measures the models in all settings."""
    cpus = len(os.sched_getaffinity(0))
    known = settings_of(cpus)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    listed = "; ".join(f"{s.name}: {s.about}" for s in known)
    add("--models", nargs="+", default=[DEMO, "mobilenet_v2"], help=f"{DEMO}, {', '.join(NETWORKS)}, or another model")
    add("--settings", nargs="+", choices=[s.name for s in known], default=[s.name for s in known], help=listed)
    add("--seconds", type=float, default=1.0, help="the length of a turn")
    add("--rounds", type=int, default=5, help="turns of each system")
    add("--spinning", action="store_true", help="let idle threads of ONNX Runtime's pools spin, its default")
    add("--json", type=Path, help="write the rows to this file, too")
    chosen = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="igniter-load-") as folder:
        show(COLUMNS, silent=False)
        for name in chosen.models:
            model = prepare(name, Path(folder))
            for setting in known:
                if setting.name in chosen.settings:
                    rows.append(measure(model, setting, chosen.seconds, chosen.rounds, chosen.spinning))
                    show(COLUMNS, False, cells(rows[-1], rows))
    if chosen.json is not None:
        about = {"cpus": cpus, "spinning": chosen.spinning, "seconds": chosen.seconds, "rounds": chosen.rounds}
        chosen.json.write_text(json.dumps({**about, "rows": [vars(row) for row in rows]}, indent=2), "utf-8")


if __name__ == "__main__":
    main()
