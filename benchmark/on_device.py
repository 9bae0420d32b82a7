"""The mobile benchmark: a model compiled for Android is pushed to a device over adb, timed there, and the times pulled.

    python benchmark/run_benchmark.py --model_name=bert-base-uncased --backend=arm64 --adb --runner=FOLDER

FOLDER has ONNX Runtime's `onnxruntime_perf_test` and `libonnxruntime.so`, built for Android
(`./build.sh --android --android_abi arm64-v8a --build_shared_lib`). Original and compiled model run in turns. Without
adb, a device or the folder, nothing is pushed: a dry run compiles the model and prints the commands.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TARGET = "aarch64-android+dotprod"
PLACE = "/data/local/tmp/igniter"
PROGRAM, RUNTIME = "onnxruntime_perf_test", "libonnxruntime.so"
TIMEOUT = 600


@dataclass(frozen=True)
class Plan:
    """The commands of a benchmark, and the files of its times by system."""

    commands: tuple[tuple[str, ...], ...]
    results: Mapping[str, Path]


def plan(
    model: Path, compiled: Path, runner: Path, results: Path, sizes: Mapping[str, int], threads: int, rounds: int
) -> Plan:
    """Returns the commands that push, run and pull: the model, the folder of the compiled one, and the runner."""
    (library,) = compiled.glob("lib*.so")
    commands = [
        ("adb", "shell", f"mkdir -p {PLACE}/ort {PLACE}/igniter"),
        ("adb", "push", str(runner / PROGRAM), str(runner / RUNTIME), PLACE),
        ("adb", "push", *map(str, sorted(p for p in model.parent.iterdir() if p.is_file())), f"{PLACE}/ort"),
        ("adb", "push", *map(str, sorted(p for p in compiled.iterdir() if p.is_file())), f"{PLACE}/igniter"),
    ]
    files = {name: results / f"{compiled.stem}-{name}.csv" for name in ("ort", "igniter")}
    dims = " ".join(f"-f {shlex.quote(name)}:{size}" for name, size in sizes.items())
    for name, path, custom in (("ort", model.name, ""), ("igniter", "model.onnx", f"-R igniter/{library.name} ")):
        run = f"./{PROGRAM} -e cpu -I -m times -r {rounds} -x {threads} {dims} {custom}{name}/{path} {name}.csv"
        commands.append(("adb", "shell", f"cd {PLACE} && chmod +x {PROGRAM} && LD_LIBRARY_PATH=. {run}"))
        commands.append(("adb", "pull", f"{PLACE}/{name}.csv", str(files[name])))
    return Plan((*commands, ("adb", "shell", f"rm -r {PLACE}")), files)


def missing(runner: Path | None) -> str | None:
    """The reason for a dry run; None if there are adb, one device and the runner."""
    if shutil.which("adb") is None:
        return "there is no adb"
    listed = subprocess.run(["adb", "devices"], capture_output=True, text=True, timeout=TIMEOUT, check=False).stdout
    devices = [line for line in listed.splitlines()[1:] if line.endswith("\tdevice")]
    if len(devices) != 1:
        return f"adb has {len(devices)} devices"
    if runner is None or not all((runner / name).is_file() for name in (PROGRAM, RUNTIME)):
        return f"--runner names no folder with {PROGRAM} and {RUNTIME}"
    return None


def run(steps: Plan, reason: str | None) -> dict[str, float] | None:
    """Runs the commands and returns the seconds of a run by system; with a reason, prints them and returns None."""
    if reason is not None:
        print(f"dry run: {reason}")
        for command in steps.commands:
            print(f"  {shlex.join(command)}")
        return None
    for command in steps.commands:
        subprocess.run(command, check=True, timeout=TIMEOUT)
    return {name: mean_seconds(path.read_text()) for name, path in steps.results.items()}


def mean_seconds(text: str) -> float:
    """The mean time of the runs in a file of `onnxruntime_perf_test`: lines of model, seconds, memory, ..."""
    seconds: Sequence[float] = [float(line.split(",")[1]) for line in text.splitlines() if line.count(",") >= 2]
    return sum(seconds) / len(seconds)
