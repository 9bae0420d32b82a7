"""The mobile benchmark: its commands, with an adb that only notes them, and without one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmark import on_device

ADB = """#!/bin/sh
echo "$@" >> {notes}
case "$1" in
devices) printf 'List of devices attached\\nemulator-5554\\tdevice\\n' ;;
pull) printf 'model,0.25,1,2\\nmodel,0.75,1,2\\n' > "$3" ;;
esac
"""


def made(tmp_path: Path) -> on_device.Plan:
    for name in ("model/m.onnx", "m.igniter/model.onnx", "m.igniter/libigniter_1.so", "runner/onnxruntime_perf_test"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "runner/libonnxruntime.so").write_bytes(b"x")
    sizes = {"batch": 1, "sequence": 128}
    return on_device.plan(tmp_path / "model/m.onnx", tmp_path / "m.igniter", tmp_path / "runner", tmp_path, sizes, 2, 5)


def test_dry_run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert on_device.missing(tmp_path) == "there is no adb"
    assert on_device.run(made(tmp_path), "there is no adb") is None
    said = capsys.readouterr().out
    assert said.startswith("dry run: there is no adb\n  adb shell 'mkdir -p")
    assert "-x 2 -f batch:1 -f sequence:128 -R igniter/libigniter_1.so igniter/model.onnx igniter.csv" in said


def test_a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = tmp_path / "notes"
    (tmp_path / "adb").write_text(ADB.format(notes=notes))
    (tmp_path / "adb").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    steps = made(tmp_path)
    assert on_device.missing(None) == "--runner names no folder with onnxruntime_perf_test and libonnxruntime.so"
    assert on_device.missing(tmp_path / "runner") is None
    assert on_device.run(steps, None) == {"ort": 0.5, "igniter": 0.5}
    verbs = [line.split()[0] for line in notes.read_text().splitlines()]
    assert verbs[2:] == ["shell", "push", "push", "push", "shell", "pull", "shell", "pull", "shell"]
