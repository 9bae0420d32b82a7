"""Programs in processes of their own, as a deployment runs them: with stock ONNX Runtime and a compiled folder."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import onnxruntime

SESSION = """
import json, os, resource, sys, threading, time
from pathlib import Path
import numpy as np
import onnxruntime as ort

folder = Path(sys.argv[1])


def session_of(folder, config={}, **settings):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    for name, value in settings.items():
        setattr(options, name, value)
    for name, value in config.items():
        options.add_session_config_entry(name, value)
    for library in json.loads((folder / "report.json").read_text())["libraries"]:
        options.register_custom_ops_library(str(folder / library))
    return ort.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])


def feed(n=3):
    return {"x": np.linspace(-2, 2, n * 64, dtype=np.float32).reshape(n, 64)}


def threads():
    return len(os.listdir("/proc/self/task"))

"""
"""The first lines of each program."""

PACKAGES = Path(onnxruntime.__file__).parents[1]


def run(
    program: str,
    folder: Path,
    *arguments: object,
    before: Sequence[str] = (),
    env: dict[str, str] | None = None,
    check: bool = True,
    **options: object,
) -> subprocess.CompletedProcess[str]:
    """Runs a program on a folder, without Igniter on its path; `before` is a command to run it with."""
    text = SESSION + textwrap.dedent(program)
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGES), **(env or {})}
    done = subprocess.run(
        [*before, sys.executable, "-c", text, str(folder), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=variables,
        **options,  # type: ignore[call-overload]
    )
    assert not check or done.returncode == 0, done.stderr
    return done
