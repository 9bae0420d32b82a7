"""The prototype of a plugin execution provider computes what ONNX Runtime and the custom op compute."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnxruntime as ort
import pytest

from .programs_kit import ROOT, c_compiler


@pytest.mark.full
def test_the_provider_runs_a_compiled_folder(tmp_path: Path) -> None:
    c_compiler()
    if not hasattr(ort, "register_execution_provider_library"):
        pytest.skip(f"ONNX Runtime {ort.__version__} has no plugin execution providers")
    command = ["-m", "benchmark.plugin_ep", "product", "--folder", str(tmp_path), "--rounds", "1", "--seconds", "0"]
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    first, *rows = done.stdout.splitlines()
    assert float(first.rpartition(" ")[2]) < 1e-5
    assert [row.split("session")[0].strip() for row in rows] == ["onnxruntime", "custom op", "plugin"]
