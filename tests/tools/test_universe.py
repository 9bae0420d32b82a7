"""xDSL's own `xdsl-opt` reads Igniter's IR and runs its passes, by the entry point that the package declares."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from xdsl.dialects import get_all_dialects
from xdsl.transforms import get_all_passes

from igniter.registry import PASSES
from igniter.universe import UNIVERSE

ROOT = Path(__file__).parents[2]
GROUP = "xdsl.universe"


def xdsl_opt(folder: Path, *args: str, text: str = "") -> str:
    """What `xdsl-opt` prints in an environment with the entry points of `pyproject.toml`."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][GROUP]
    # As `pip install` would write it: this checkout may be installed from an older state.
    info = folder / "declared-0.dist-info"
    info.mkdir(exist_ok=True)
    lines = [f"{name} = {where}" for name, where in declared.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines, ""]))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: declared\nVersion: 0\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))}
    command = [sys.executable, "-m", "xdsl.tools.xdsl_opt", *args]
    done = subprocess.run(command, input=text, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_xdsl_opt_runs_passes_from_a_graph_to_loops(tmp_path: Path):
    graph = ROOT / "docs" / "examples" / "mask_softmax.mlir"
    fused = xdsl_opt(tmp_path, str(graph), "-p", "infer-shapes,form-fusion-regions,lower-onnx-to-loop")
    assert fused.count("loop.nest") == 7
    loops = xdsl_opt(tmp_path, "-p", "inline-nests,choose-schedule,lower-to-loops,fuse-loops", text=fused)
    assert "loop.for" in loops and "loop.nest" not in loops


def test_xdsl_keeps_its_own_names():
    assert not UNIVERSE.all_dialects.keys() & get_all_dialects().keys()
    assert not UNIVERSE.all_passes.keys() & get_all_passes().keys()
    assert {"fusion", "loop", "onnx", "ort", "sym"} <= UNIVERSE.all_dialects.keys()
    assert UNIVERSE.all_passes.keys() >= PASSES.keys() - {"canonicalize", "cse", "dce"}
    assert all(UNIVERSE.all_passes[name]().name == name for name in ("infer-shapes", "tile-loops"))
