"""Kernels called from Python."""

from __future__ import annotations

import subprocess
import sys

import pytest

IN_CYCLES = """
import gc
gc.disable()
from igniter.backends.cpu.jit import compile_ir
kept = []
for k in range(40):
    ir = f"define void @k{k}(ptr %b, ptr %s, ptr %c, ptr %p, ptr %q) {{ ret void }}"
    kept.append(compile_ir(f"k{k}", ir))
    kept[-1].itself = kept[-1]
kept.clear()
assert gc.collect() >= 40
"""


@pytest.mark.slow
def test_the_collector_disposes_of_kernels_in_cycles() -> None:
    """It has no order, and an engine must be disposed of before the context of its module."""
    done = subprocess.run([sys.executable, "-c", IN_CYCLES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr or f"status {done.returncode}"
