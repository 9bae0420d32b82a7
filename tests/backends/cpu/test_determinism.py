"""The same kernel gives the same code in every process: names of libraries are hashes of it, and so are cache keys."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import sys
from igniter.tools.igniter_opt import main
sys.argv = ["igniter-opt", sys.argv[1], "-p", "cpu-schedule", "--emit=llvm", "--target=x86-64-v3"]
main()
"""


@pytest.mark.slow
def test_code_does_not_depend_on_the_order_of_sets():
    def code(seed: str) -> str:
        example = ROOT / "lit_tests" / "examples" / "softmax.mlir"
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", SCRIPT, str(example)]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    first = code("1")
    assert "define void @softmax(" in first
    assert [seed for seed in ("2", "5", "6") if code(seed) != first] == []
