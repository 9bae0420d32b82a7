"""Measures a prototype of a plugin execution provider beside the custom op.

    python -m benchmark.plugin_ep product transformer --folder /tmp/plugin-ep

A model is `product`, `transformer`, a network of `benchmark.models`, or an ONNX file; it must compile to one op. Each
system gets processes of its own, in turns: ONNX Runtime on the original, the custom op of the folder, and the provider
(`plugin_ep.c`), which gets the original's graph and runs the folder's op for it. A process measures the creation of a
session (with the registration, after the import of ONNX Runtime), the median time of a run, and its peak of resident
memory. The outputs of the three are compared.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from benchmark.plugin_ep.models import SIZES, make

SYSTEMS = ("onnxruntime", "custom op", "plugin")
HERE = Path(__file__).parent


def build(folder: Path) -> Path:
    """Compiles the provider with the machine's C compiler, or the one of the package ziglang."""
    found = shutil.which("cc")
    compiler = [found] if found else [sys.executable, "-m", "ziglang", "cc"]
    made = folder / "plugin_ep.so"
    subprocess.run(
        [*compiler, "-std=c11", "-shared", "-fPIC", "-O2", "-w", HERE / "plugin_ep.c", "-o", made, "-ldl"], check=True
    )
    return made


def write_plan(artifact: Path, folder: Path) -> Path:
    """Writes the op of a compiled folder, its ports and its weights, for the provider."""
    model = onnx.load(artifact / "model.onnx")
    if len(model.graph.node) != 1:
        raise SystemExit(f"{artifact} is not one op, but {sorted(n.op_type for n in model.graph.node)}")
    (node,) = model.graph.node
    (library,) = artifact.glob("libigniter_*.so")
    arrays = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    types = {t.name: t.data_type for t in model.graph.initializer}
    lines = [
        str(library.resolve()),
        str(folder / "weights.bin"),
        f"{node.op_type} {len(node.input)} {len(node.output)}",
    ]
    with open(folder / "weights.bin", "wb") as file:
        for name in node.input:
            if name not in arrays:
                lines.append(f"graph {name}")
                continue
            file.write(bytes(-file.tell() % 4096))
            data = arrays[name]
            dims = " ".join(map(str, (data.ndim, *data.shape)))
            lines.append(f"weight {name} {types[name]} {file.tell()} {data.nbytes} {dims}")
            file.write(data.tobytes())
    plan = folder / "plan.txt"
    plan.write_text("\n".join([*lines, *node.output, ""]))
    return plan


def prepare(name: str, place: Path) -> None:
    """Compiles a model, and writes its plan and random inputs."""
    import igniter

    model = make(name)
    onnx.save(model, place / "model.onnx")
    dims = {d.dim_param for v in model.graph.input for d in v.type.tensor_type.shape.dim}
    sizes = {name: size for name, size in SIZES.items() if name in dims}
    igniter.compile(place / "model.onnx", place / "model.igniter", sizes=sizes, verify=False)
    write_plan(place / "model.igniter", place)
    rng = np.random.default_rng(0)
    feeds: dict[str, Any] = {}
    for value in model.graph.input:
        dims = [d.dim_value or sizes.get(d.dim_param, 1) for d in value.type.tensor_type.shape.dim]
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        whole = np.issubdtype(kind, np.integer)
        feeds[value.name] = (rng.integers(0, 2, dims) if whole else rng.standard_normal(dims)).astype(kind)
    np.savez(place / "inputs.npz", **feeds)


def compare(place: Path) -> float:
    """Returns the largest difference of an output of a system from ONNX Runtime's, relative to its largest value."""
    wanted = list(np.load(place / "onnxruntime.npz").values())
    worst = 0.0
    for system in SYSTEMS[1:]:
        for a, b in zip(wanted, np.load(place / f"{system}.npz").values(), strict=True):
            worst = max(worst, float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-30)))
    return worst


def compare_systems(model: str, place: Path, provider: Path, rounds: int, *settings: str) -> None:
    """Runs the processes of each system in turns, and prints the medians."""
    found: dict[str, list[dict[str, float]]] = {s: [] for s in SYSTEMS}
    for _ in range(rounds):
        for system in SYSTEMS:
            command = [sys.executable, "-m", "benchmark.plugin_ep.process", system, place, provider, *settings]
            done = subprocess.run([*map(str, command)], capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"{system} ended with status {done.returncode}: {done.stderr}")
            found[system].append(json.loads(done.stdout.splitlines()[-1]))
    print(f"{model}: largest difference {compare(place):.1e}")
    for system, rows in found.items():
        start, run, peak = (statistics.median(row[key] for row in rows) for key in ("start", "run", "peak"))
        print(f"  {system:12} session {start * 1e3:9.2f} ms   run {run * 1e6:11.1f} us   peak {peak:7.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--folder", required=True, help="of the compiled models, which a later call uses again")
    parser.add_argument("--rounds", type=int, default=5, help="of processes; 0 only compiles")
    parser.add_argument("--seconds", type=float, default=0.5, help="of runs in a process")
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    for model in asked.models:
        place = Path(asked.folder).resolve() / Path(model).stem
        place.mkdir(parents=True, exist_ok=True)
        if not (place / "plan.txt").exists():
            prepare(model, place)
        provider = build(place)
        if asked.rounds:
            compare_systems(model, place, provider, asked.rounds, str(asked.threads), str(asked.seconds))


if __name__ == "__main__":
    main()
